"""Statements of the overview paper about nets, apart from their accuracy.

Section 4.2: a trained LambdaRank is a local optimum of its measure. Section 7.1: a LambdaRank on
the scores of rankers combines them as well as the exact best weights. Section 2.1: with accumulated
lambdas the time of a query is almost linear in its documents.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from rankgrove import (
    MART,
    LambdaMART,
    LambdaRank,
    QueryDataset,
    RankNet,
    StackedRanker,
    check_local_optimum,
    evaluate,
    interpolate,
    make_artificial,
    make_web,
    optimal_combination,
)
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import markdown
from rankgrove_papers.burges2010.nets import GOALS
from rankgrove_papers.study import (
    ARTIFICIAL,
    NARROW,
    NARROW_TEXT,
    Curves,
    Experiment,
    Findings,
    Study,
)
from rankgrove_papers.tables import mean_cell, p_value, per_query
from rankgrove_papers.wu2010.systems import HIDDEN

# -- section 4.2: local optimality ----------------------------------------------------------------

STEPS = (0.05, 0.1, 0.2)
SYSTEMS = ("untrained", "RankNet", "LambdaRank")


def local_optimality(study: Study) -> Findings:
    """Test whether nets are local optima of a measure: untrained, RankNet, LambdaRank for it."""
    rows = []
    lines: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    cells = study.cells(
        {f"{goal} {name}": (_tested, name, goal) for goal in GOALS for name in SYSTEMS}
    )
    for goal in GOALS:
        for name in SYSTEMS:
            cell = cells[f"{goal} {name}"]
            rows.append(
                [
                    goal,
                    name,
                    f"{100 * cell['value']:.2f}",
                    *(f"{100 * share:.1f}" for share in cell["fractions"]),
                    f"{100 * cell['bounds'][-1]:.1f}",
                    "passes" if cell["fractions"][-1] == 0.0 and cell["falls"] else "fails",
                    f"{100 * cell['below highest']:.3f}",
                ]
            )
            if goal == GOALS[0]:
                lines[name] = (np.array(cell["offsets"]), np.array(cell["curve"]))
    n_directions = 459
    header = [
        "measure",
        "net",
        "value",
        *(f"rise at {step:g}" for step in STEPS),
        f"p at most, at {STEPS[-1]:g}",
        f"verdict at {STEPS[-1]:g}",
        "below a curve's highest",
    ]
    text = (
        f"Training data of {_n_queries(study):,} queries of 50 documents, {n_directions} random "
        "directions (equation 9: 99 % confidence that at most 1 % of all go up). In percent: the "
        "mean of the measure on the training data; the share of directions along which it rises "
        "after a step of the given length, relative to the weight vector; the bound on the share "
        "of all directions; and how far the learned weights are below the highest point of the "
        f"curves along coordinates, on average.\n\n{markdown(header, rows)}"
    )
    figure = Curves(
        lines,
        "change of one weight",
        f"change of the mean {GOALS[0]}",
        "The measure along coordinates through the weights, mean of all",
    )
    return Findings(text, {"burges2010-optimum": figure})


def _n_queries(study: Study) -> int:
    return study.size(300, 2000)


def _tested(study: Study, name: str, goal: str) -> dict[str, Any]:
    train = make_artificial(_n_queries(study), seed=1)
    n_epochs = study.size(60, 200)
    common: dict[str, Any] = {"hidden": HIDDEN, "n_threads": study.n_threads}
    if name == "LambdaRank":
        model: Any = LambdaRank(
            goal, learning_rate=0.003, schedule="linear", n_epochs=n_epochs, **common
        ).fit(train)
    elif name == "RankNet":
        model = RankNet(learning_rate=0.003, schedule="linear", n_epochs=n_epochs, **common).fit(
            train
        )
    else:  # the initial weights
        model = LambdaRank(goal, learning_rate=1e-12, n_epochs=1, **common).fit(train)
    optimum = check_local_optimum(
        model,
        train,
        goal,
        steps=STEPS,
        coordinates=study.size(50, 100),
        n_threads=study.n_threads,
    )
    bounds = [check.p_bound for check in (optimum.at_step(k) for k in range(len(STEPS)))]
    return {
        "value": optimum.value,
        "fractions": optimum.fractions.tolist(),
        "bounds": bounds,
        "falls": optimum.at_step(len(STEPS) - 1).passed,
        "below highest": float((optimum.curves.max(axis=1) - optimum.value).mean()),
        "offsets": optimum.offsets.tolist(),
        "curve": (optimum.curves.mean(axis=0) - optimum.value).tolist(),
    }


# -- section 7.1: stacking ------------------------------------------------------------------------

PARTS = ("LambdaMART", "LambdaRank", "MART")
COMBINED = (
    "exact combination of the first two",
    "interpolation, exact steps",
    "interpolation, Powell",
    "stack of the first two, linear",
    "stack of all, linear",
    "stack of all, 10 hidden units",
)


def stacking(study: Study) -> Findings:
    """Combine rankers exactly, by interpolation and by LambdaRank on their scores."""
    text = [NARROW_TEXT]
    cells = study.cells({data: (_combined, data) for data in ("artificial", "web-like")})
    for data, rankers in cells.items():
        best = max(PARTS, key=lambda name: exact_mean(np.array(rankers[name]["test"])))
        rows = [
            [
                name,
                f"{100 * cell['held out']:.2f}",
                mean_cell(cell["test"]),
                "" if name == best else p_value(cell["test"], rankers[best]["test"]),
                "" if name in PARTS else p_value(cell["test"], rankers[COMBINED[0]]["test"]),
            ]
            for name, cell in rankers.items()
        ]
        n_train, n_held_out, n_test = _stack_sizes(study)
        text += [
            f"{data.capitalize()} data, {n_train:,} training queries, {n_held_out:,} held-out ones "
            f"for the combinations, {n_test:,} test queries; NDCG@10 in percent (half width of "
            f"the 95 % interval); p: paired t-test on the test queries:",
            markdown(
                ["ranker", "held out", "test", f"p against {best}", "p against the exact one"], rows
            ),
        ]
    return Findings("\n\n".join(text), {})


def _stack_sizes(study: Study) -> tuple[int, int, int]:
    return study.size(600, 4000), study.size(300, 2000), study.size(600, 4000)


def _combined(study: Study, data: str) -> dict[str, Any]:
    train, held_out, test = (
        _stack_data(data, n, seed) for seed, n in enumerate(_stack_sizes(study), 11)
    )
    threads: dict[str, Any] = {"n_threads": study.n_threads}
    n_trees = study.size(60, 200)
    parts: list[Any] = [
        LambdaMART("ndcg@10", n_trees=n_trees, n_leaves=10, **NARROW, **threads).fit(train),
        LambdaRank(
            "ndcg@10",
            hidden=HIDDEN,
            learning_rate=0.003,
            schedule="linear",
            n_epochs=study.size(20, 60),
            **threads,
        ).fit(train),
        MART(n_trees=n_trees, n_leaves=10, **threads).fit(train),
    ]
    combined: list[Any] = [
        optimal_combination(parts[0], parts[1], held_out, "ndcg@10", **threads).ranker,
        interpolate(parts, held_out, "ndcg@10", **threads).ranker,
        interpolate(parts, held_out, "ndcg@10", method="powell", **threads).ranker,
        StackedRanker(parts[:2], **threads).fit(held_out),
        StackedRanker(parts, **threads).fit(held_out),
        StackedRanker(parts, hidden=HIDDEN, **threads).fit(held_out),
    ]
    return {
        name: {
            "held out": evaluate(model, held_out, "ndcg@10").mean["ndcg@10"],
            "test": per_query(evaluate(model, test, "ndcg@10"))["ndcg@10"],
        }
        for name, model in zip((*PARTS, *COMBINED), [*parts, *combined], strict=True)
    }


def _stack_data(data: str, n_queries: int, seed: int) -> QueryDataset:
    if data == "artificial":
        return make_artificial(n_queries, seed=seed)
    return make_web(n_queries, n_docs=40, n_features=50, seed=seed)


# -- section 2.1: the factorisation ---------------------------------------------------------------

FORMS = ("factorised", "pairs")


def factorised(study: Study) -> Findings:
    """Time epochs of RankNet by documents per query, with an update per query and per pair."""
    sizes = [10, 20, 40, 80] if study.scale == "small" else [10, 20, 40, 80, 160, 320]
    alone = replace(study, cluster=None)  # parallel work would distort the times
    cells = alone.cells(
        {f"{form}, {n} documents": (_timed, form, n) for form in FORMS for n in sizes}
    )
    seconds = {form: np.array([cells[f"{form}, {n} documents"] for n in sizes]) for form in FORMS}
    rows = [
        [n, *(f"{1e6 * seconds[form][k]:.1f}" for form in FORMS), f"{ratio:.0f}"]
        for k, (n, ratio) in enumerate(
            zip(sizes, seconds["pairs"] / seconds["factorised"], strict=True)
        )
    ]
    powers = {
        form: float(np.polyfit(np.log(sizes[1:]), np.log(times[1:]), 1)[0])
        for form, times in seconds.items()
    }
    text = (
        "RankNet with 10 hidden units on 50 features, plain gradient steps: microseconds of "
        "training per query, by its number of documents (quickest of eight epochs):\n\n"
        + markdown(["documents", "one update per query", "one update per pair", "ratio"], rows)
        + "\n\nThe time of a query grows as its number of documents to the power "
        f"{powers['factorised']:.2f} with one update per query, {powers['pairs']:.2f} with one "
        f"update per pair (fitted from {sizes[1]} documents on)."
    )
    names = dict(zip(FORMS, ("one update per query", "one update per pair"), strict=True))
    figure = Curves(
        {names[form]: (np.array(sizes), 1e6 * times) for form, times in seconds.items()},
        "documents per query",
        "microseconds per query",
        "RankNet: training time of a query",
        log_x=True,
        log_y=True,
    )
    return Findings(text, {"burges2010-factorised": figure})


def _timed(study: Study, form: str, n_docs: int) -> float:
    """Return the seconds per query of the fastest epoch."""
    n_documents = study.size(16_000, 64_000) // (16 if form == "pairs" else 1)
    data = make_artificial(max(2, n_documents // n_docs), n_docs=n_docs, seed=1)
    ends: list[float] = []
    RankNet(hidden=HIDDEN, form=form, optimiser="sgd", learning_rate=1e-4, n_epochs=9).fit(
        data, callbacks=[lambda _: ends.append(time.perf_counter())]
    )
    return float(np.diff(ends).min()) / data.n_queries


EXPERIMENTS = (
    Experiment(
        "burges2010-optimum",
        "burges2010",
        "section 4.2: whether trained nets are local optima of their measures",
        local_optimality,
        data=ARTIFICIAL,
    ),
    Experiment(
        "burges2010-stacking",
        "burges2010",
        "section 7.1: LambdaRank on rankers' scores, exact combination, interpolation",
        stacking,
        data="artificial (rg.make_artificial) and web-like (rg.make_web)",
    ),
    Experiment(
        "burges2010-factorised",
        "burges2010",
        "section 2.1: time of an epoch against documents per query, both forms of RankNet",
        factorised,
        data=ARTIFICIAL,
        measured="",
    ),
)
