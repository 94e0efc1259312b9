"""Wu, Burges, Svore and Gao 2010: the experiments on artificial data.

The artificial data is the paper's recipe; its label shares are not published, so there are two
presets. Tables and curves are shared with the experiments on web data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.synthetic import make_artificial
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.study import (
    ARTIFICIAL,
    Curves,
    Experiment,
    Findings,
    Study,
    Task,
    first_round_at,
    markdown,
    mean_cell,
    p_value,
    per_query,
)
from rankgrove.rankers.lambdamart import LambdaMART
from rankgrove.rankers.mcrank import McRank

MEASURES = ["ndcg@10", "ndcg@3", "ndcg@1"]
# Table 1: NDCG@10, @3, @1 on 10K test queries of the artificial data.
PAPER_TABLE_1 = {
    "LambdaMART": (87.9, 81.7, 79.6),
    "McRank": (83.7, 75.6, 72.2),
    "LambdaRank": (75.4, 67.8, 65.8),
}
LABELS = ("skewed", "equal")
SYSTEMS = {"LambdaMART": LambdaMART, "McRank": McRank}
# What the paper's validation chose (section 5.4).
LEAVES, RATE = 20, 0.15

Parts = tuple[QueryDataset, QueryDataset, QueryDataset]  # to train, to validate, to test


# -- Table 1 and Figure 2 ---------------------------------------------------------------------


def table_1(study: Study) -> Findings:
    """LambdaMART and McRank on artificial data: NDCG, and trees against NDCG@10."""
    text, figures = [], {}
    cells = study.cells(tree_tasks())
    for labels in LABELS:
        found = {name: cells[f"{labels} {name}"] for name in SYSTEMS}
        text += [
            f"Labels {labels}, test NDCG in percent (half width of the 95 % interval), after the "
            "best round of the validation data. The paper's figures are of its own data (10,000 "
            "queries, label shares unknown): the order and the gaps compare, not the level.",
            systems_table(
                {name: one["values"] for name, one in found.items()},
                {name: [f"{value:.1f}" for value in PAPER_TABLE_1[name]] for name in SYSTEMS},
            ),
            best_rounds({name: [one] for name, one in found.items()}),
            trees_needed(found),
        ]
        title = f"Accuracy against size ({labels} labels)"
        figures[f"wu2010-figure2-{labels}"] = accuracy_by_trees(found, title)
    return Findings("\n\n".join(text), figures)


def tree_tasks() -> dict[str, Task]:
    """Return the pieces of work of Table 1 by key: every system on both kinds of labels."""
    return {f"{labels} {name}": (fitted, name, labels) for labels in LABELS for name in SYSTEMS}


def fitted(study: Study, name: str, labels: str) -> dict[str, Any]:
    """Train one of the systems on artificial data; return its test values by query, its curve."""
    return tree_result(name, artificial(study, labels), study.size(150, 1000), study.n_threads)


def artificial(study: Study, labels: str) -> Parts:
    """Return training, validation and test queries of the scale's numbers."""
    sizes = (study.size(1000, 10_000), study.size(500, 5000), study.size(1000, 10_000))
    train, valid, test = (make_artificial(n, labels=labels, seed=k) for k, n in enumerate(sizes))
    return train, valid, test


def tree_result(name: str, parts: Parts, n_rounds: int, n_threads: int | None) -> dict[str, Any]:
    """Train a system of trees; return test values by query, and NDCG@10 round by round."""
    train, valid, test = parts
    ranker = SYSTEMS[name](
        measure="ndcg@10",
        n_trees=n_rounds,
        n_leaves=LEAVES,
        learning_rate=RATE,
        n_threads=n_threads,
    ).fit(train, valid={"valid": valid, "test": test})
    return {
        "values": per_query(evaluate(ranker, test, MEASURES)),
        "curve": ranker.history_["test"]["ndcg@10"],
        "trees a round": ranker.ensemble_.n_columns,
        "best round": ranker.best_round_,
    }


def systems_table(
    values: Mapping[str, Mapping[str, list[float]]], paper: Mapping[str, Sequence[str]]
) -> str:
    """Return NDCG of systems beside the paper's, and p-values of the first against each other."""
    first, *others = values
    rows = [
        [
            measure,
            *(mean_cell(one[measure]) for one in values.values()),
            *(paper[name][k] for name in values),
            *(p_value(values[first][measure], values[name][measure]) for name in others),
        ]
        for k, measure in enumerate(MEASURES)
    ]
    header = ["measure", *values, *(f"paper's {name}" for name in values)]
    return markdown([*header, *(f"p against {name} (t-test)" for name in others)], rows)


def best_rounds(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Say after how many rounds, fold by fold, each system of trees was best."""
    words = [
        f"{name} {', '.join(str(one['best round']) for one in folds)} of {len(folds[0]['curve'])} "
        f"(trees a round: {folds[0]['trees a round']})"
        for name, folds in found.items()
    ]
    return f"Best rounds: {'; '.join(words)}."


def trees_needed(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Say how many trees each system needs for some levels of NDCG@10."""
    top = max(found["McRank"]["curve"])
    low = max(one["curve"][0] for one in found.values())
    rows = []
    for level in levels(low, top, (1 / 2, 2 / 3, 5 / 6, 1)):
        trees = []
        for one in found.values():
            rounds = first_round_at(one["curve"], level)
            trees.append("not reached" if rounds is None else rounds * one["trees a round"])
        rows.append([f"{100 * level:.1f}", *trees])
    return "Trees after which the test NDCG@10 first reaches a level (Figure 2):\n\n" + markdown(
        ["NDCG@10", *(f"{name}, trees" for name in found)], rows
    )


def levels(low: float, top: float, shares: Sequence[float]) -> list[float]:
    """Return levels so far on the way from low to top, cut off to tenths of a percent."""
    return [float(np.floor(1000 * (low + share * (top - low))) / 1000) for share in shares]


def accuracy_by_trees(found: Mapping[str, Mapping[str, Any]], title: str) -> Curves:
    """Return Figure 2: the test NDCG@10 of systems against their trees."""
    lines = {
        name: ((1 + np.arange(len(one["curve"]))) * one["trees a round"], np.asarray(one["curve"]))
        for name, one in found.items()
    }
    return Curves(lines, "trees", "test NDCG@10", title, log_x=True)


# -- Figures 3 and 4 --------------------------------------------------------------------------

# The paper's own lambdas and trees, where the toolkit's defaults differ.
PAPER = {"split": "mse", "normalise": False, "truncation": None, "l2": 0.0}
NEWTON = {"step": "newton"}
OPTIMAL = {"step": "optimal", "step_on": "valid", "learning_rate": 1.0}
OPTIMAL_NEWTON = {"step": "optimal-newton", "step_on": "valid", "learning_rate": 1.0}
STEPS: dict[str, dict[str, Any]] = {
    "Newton, rate 1": NEWTON | {"learning_rate": 1.0},
    "Newton, rate 0.1": NEWTON | {"learning_rate": 0.1},
    "optimal": OPTIMAL,
    "optimal, Newton leaves": OPTIMAL_NEWTON,
    "paper's lambdas, Newton, rate 1": NEWTON | PAPER | {"learning_rate": 1.0},
    "paper's lambdas, Newton, rate 0.1": NEWTON | PAPER | {"learning_rate": 0.1},
    "paper's lambdas, optimal": OPTIMAL | PAPER,
}


def figure_3(study: Study) -> Findings:
    """The exact line search against the Newton step, and the weights it chooses (Figure 4)."""
    cells = study.cells({f"steps {name}": (_stepped, STEPS[name]) for name in STEPS})
    found = {name: cells[f"steps {name}"] for name in STEPS}
    text = (
        "Test NDCG@10 in percent after so many trees (Figure 3). In the paper the exact step needs "
        "far fewer trees than Newton's on its data (80 against 250 on web data at rate 0.1).\n\n"
        f"{by_trees(found)}\n\n{rounds_needed(found, (0.55, 0.6, 0.65, 0.7, 0.75))}"
    )
    figures = {
        "wu2010-figure3": by_round(found, "test", "test NDCG@10", "Exact line search"),
        "wu2010-figure4": weights_by_round(found),
    }
    return Findings(text, figures)


def by_trees(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of NDCG@10 after some numbers of trees, a row a step."""
    n_rounds = min(len(one["test"]) for one in found.values())
    marks = [r for r in (10, 25, 50, 100, 200, 300) if r <= n_rounds]
    rows = [
        [name, *(f"{100 * one['test'][r - 1]:.2f}" for r in marks), f"{100 * max(one['test']):.2f}"]
        for name, one in found.items()
    ]
    return markdown(["step", *(f"{r} trees" for r in marks), "best"], rows)


def rounds_needed(found: Mapping[str, Mapping[str, Any]], wanted: Sequence[float]) -> str:
    """Say how many trees each step needs for some levels of NDCG@10."""
    rows = []
    for name, one in found.items():
        need = [first_round_at(one["test"], level) for level in wanted]
        rows.append([name, *("-" if n is None else n for n in need)])
    return "Trees after which the test NDCG@10 first reaches a level:\n\n" + markdown(
        ["step", *(f"{round(100 * level, 1):g}" for level in wanted)], rows
    )


def by_round(found: Mapping[str, Mapping[str, Any]], of: str, label: str, title: str) -> Curves:
    """Return what every step has round by round as lines."""
    lines = {
        name: (1 + np.arange(len(one[of])), np.asarray(one[of])) for name, one in found.items()
    }
    return Curves(lines, "boosting round", label, title)


def weights_by_round(found: Mapping[str, Mapping[str, Any]]) -> Curves:
    """Return Figure 4: the weights of the exact steps."""
    exact = {name: one for name, one in found.items() if "optimal" in name}
    return by_round(exact, "alpha", "weight of the tree", "Weights the exact line search chose")


def _stepped(study: Study, options: dict[str, Any]) -> dict[str, Any]:
    train, valid, test = artificial(study, "skewed")
    watched = {"valid": valid, "test": test}
    options = {"n_trees": study.size(60, 200), "n_leaves": LEAVES} | options
    return step_result(train, watched, study.n_threads, **options)


def step_result(
    train: QueryDataset, watched: dict[str, QueryDataset], n_threads: int | None, **options: Any
) -> dict[str, Any]:
    """Train with some step; return NDCG@10 of what is watched and the weights, round by round."""
    seen: list[Any] = []
    LambdaMART("ndcg@10", n_threads=n_threads, **options).fit(
        train, valid=watched, callbacks=[seen.append]
    )
    done = seen[-1]
    curves = {name: done.watch.history[name]["ndcg@10"] for name in watched}
    return curves | {"alpha": done.steps}


EXPERIMENTS = (
    Experiment(
        "wu2010-table1",
        "wu2010",
        "Table 1 and Figure 2: LambdaMART and McRank",
        table_1,
        data=ARTIFICIAL,
    ),
    Experiment(
        "wu2010-figure3",
        "wu2010",
        "Figures 3 and 4: exact line search",
        figure_3,
        data=ARTIFICIAL,
    ),
)
