"""The overview paper's nets: compared with trees on artificial data, for four measures, on LETOR.

The overview has no tables. Its systems are compared as in Table 1 of Wu, Burges, Svore and Gao, and
the learning rates of nets are chosen on validation queries, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rankgrove import LambdaMART, LambdaRank, QueryDataset, RankNet, evaluate, make_artificial
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import markdown
from rankgrove.validation import counted
from rankgrove_papers.grid_edges import Choices, edge_report
from rankgrove_papers.sources import Collection
from rankgrove_papers.study import (
    ARTIFICIAL,
    COLLECTIONS,
    NARROW,
    NARROW_TEXT,
    Experiment,
    Findings,
    Study,
)
from rankgrove_papers.tables import mean_and_reach, mean_cell, p_value, per_query
from rankgrove_papers.wu2010 import artificial
from rankgrove_papers.wu2010.systems import HIDDEN, MEASURES, PAPER_NET, TABLE_1, Net, best_net
from rankgrove_papers.wu2010.systems import NAMES as TREE_NAMES

# -- Table 1 --------------------------------------------------------------------------------------

NET_MEASURES = [*MEASURES, "pairs"]
LABELS = ("skewed", "fitted")


class NetSystem(NamedTuple):
    """A net of the table."""

    ranker: type[Net]
    chosen_by: str  # the measure that chooses its rate and its epoch
    hidden: tuple[int, ...]
    options: Mapping[str, Any]


# Wu, Burges, Svore and Gao train LambdaRank for NDCG without a cutoff, on all pairs.
OWN, BEGUN = "LambdaRank, paper's own", "LambdaRank, paper's own, begun with RankNet"
NETS = {
    OWN: NetSystem(LambdaRank, "ndcg@10", HIDDEN, PAPER_NET),
    BEGUN: NetSystem(LambdaRank, "ndcg@10", HIDDEN, PAPER_NET),
    "LambdaRank, rankgrove's defaults": NetSystem(LambdaRank, "ndcg@10", HIDDEN, {}),
    "RankNet": NetSystem(RankNet, "pairs", HIDDEN, {}),
    "RankNet, stopped by ndcg@10": NetSystem(RankNet, "ndcg@10", HIDDEN, {}),
    "LambdaRank, paper's own, linear": NetSystem(LambdaRank, "ndcg@10", (), PAPER_NET),
    "RankNet, linear": NetSystem(RankNet, "pairs", (), {}),
}
CONTRASTS = (
    (OWN, "RankNet"),
    (OWN, "LambdaRank, rankgrove's defaults"),
    (BEGUN, "RankNet"),
    (BEGUN, "RankNet, stopped by ndcg@10"),
    ("LambdaRank, paper's own, linear", "RankNet, linear"),
)


def table_1(study: Study) -> Findings:
    """LambdaRank and RankNet compared with McRank and LambdaMART on artificial data."""
    seeds = range(study.size(1, 3))
    cells = study.cells(
        artificial.tree_tasks(dict.fromkeys(LABELS, (TABLE_1,)))
        | {
            f"{labels} {name} seed {s}": (_net, name, labels, s)
            for labels in LABELS
            for name in NETS
            for s in seeds
        }
    )
    text = [
        f"LambdaMART and McRank: {TABLE_1} of Wu, Burges, Svore and Gao (`wu2010-table1` has the "
        "other settings). LambdaRank, paper's own: trained for NDCG without a cutoff, on all "
        "pairs; 10 hidden units (their section 5.2); Adam at rates .001 and .003 that fall to 0 "
        "(theirs: rate 1e-4). Rates and epochs of nets are chosen on the "
        "validation queries."
    ]
    for labels in LABELS:
        values = {
            name: cells[artificial.tree_key(labels, TABLE_1, name)]["values"] for name in TREE_NAMES
        }
        for name in NETS:
            parts = [cells[f"{labels} {name} seed {s}"] for s in seeds]
            values[name] = _mean_over_seeds([part["values"] for part in parts])
        text += [
            f"Labels {labels}, test NDCG and share of pairs in the right order, in percent (half "
            f"width of the 95 % interval); for nets, the mean of {counted(len(seeds), 'seed')} "
            "per query. The paper's figures are for its own data: compare the order and the gaps, "
            "not the level.",
            _table_1_rows(values),
            _against_ranknet(values),
        ]
    return Findings("\n\n".join(text), {})


def _net(study: Study, name: str, labels: str, seed: int) -> dict[str, Any]:
    train, valid, test = artificial.artificial(study, labels)
    net = NETS[name]
    common: dict[str, Any] = {
        "hidden": net.hidden,
        "n_epochs": study.size(60, 100),
        "random_state": seed,
        "n_threads": study.n_threads,
    }
    start = best_net(RankNet, train, valid, "pairs", **common) if name == BEGUN else None
    model = best_net(net.ranker, train, valid, net.chosen_by, start=start, **common, **net.options)
    return {
        "values": per_query(evaluate(model, test, NET_MEASURES)),
        "rate": model.learning_rate,
        "best epoch": model.best_epoch_,
    }


def _table_1_rows(values: Mapping[str, Mapping[str, list[float]]]) -> str:
    paper = artificial.paper_cells(artificial.PAPER_TABLE_1)
    paper[OWN] = paper["LambdaRank"]
    rows = [
        [
            name,
            *(mean_cell(by_query[m]) if m in by_query else "" for m in NET_MEASURES),
            paper.get(name, ""),
        ]
        for name, by_query in values.items()
    ]
    return markdown(["system", *NET_MEASURES, "paper's NDCG@10/3/1"], rows)


def _against_ranknet(values: Mapping[str, Mapping[str, list[float]]]) -> str:
    """Return a table of the differences of LambdaRank and RankNet, in NDCG@10 and in pairs."""
    rows = []
    for ours, theirs in CONTRASTS:
        cells = []
        for measure in ("ndcg@10", "pairs"):
            first, second = values[ours][measure], values[theirs][measure]
            difference = exact_mean(np.array(first) - np.array(second))
            cells += [f"{100 * difference:+.2f}", p_value(first, second)]
        rows.append([ours, theirs, *cells])
    return "Differences in percent, p of the paired t-test:\n\n" + markdown(
        ["", "minus", "ndcg@10", "p", "pairs", "p "], rows
    )


def _mean_over_seeds(parts: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    """Return the mean of every query over several models."""
    return {name: np.mean([part[name] for part in parts], axis=0).tolist() for name in parts[0]}


# -- four measures --------------------------------------------------------------------------------

# A document is relevant from label 2 on: about one in seven with skewed labels.
GOALS = ("ndcg@10", "map[relevant=2]", "mrr[relevant=2]", "err")


VARIANTS = {"linear": (), "10 hidden units, begun with RankNet": HIDDEN}


def four_measures(study: Study) -> Findings:
    """Train LambdaRank for each of four measures, and measure every model by all four."""
    n_train, n_test = _sizes(study)
    seeds = range(study.size(2, 5))
    text = [
        f"Test values in percent (standard deviation over {counted(len(seeds), 'seed')} of nets "
        f"and training data), artificial data with skewed labels, {n_train:,} training and "
        f"{n_test:,} test queries; one row per measure that LambdaRank was trained for and that "
        "chose its rate and epoch; the best of a column in bold. p: paired t-test over queries, "
        "of means over seeds."
    ]
    cells = study.cells(
        {
            f"{variant}, {goal}, seed {seed}": (_trained_for, hidden, seed, goal)
            for variant, hidden in VARIANTS.items()
            for seed in seeds
            for goal in GOALS
        }
    )
    for variant in VARIANTS:
        parts = {
            goal: [cells[f"{variant}, {goal}, seed {seed}"] for seed in seeds] for goal in GOALS
        }
        text += [f"### LambdaRank, {variant}", *_square(parts)]
    return Findings("\n\n".join(text), {})


def _square(parts: Mapping[str, list[dict[str, list[float]]]]) -> tuple[str, str]:
    """Return a table of goals by measures, and a table of every goal on its own measure."""
    values = {goal: _mean_over_seeds(of_seeds) for goal, of_seeds in parts.items()}
    means = {goal: {m: exact_mean(np.array(v[m])) for m in GOALS} for goal, v in values.items()}
    best = {m: max(GOALS, key=lambda goal, m=m: means[goal][m]) for m in GOALS}  # type: ignore[misc]
    rows = []
    for goal in GOALS:
        cells = []
        for m in GOALS:
            by_seed = [exact_mean(np.array(part[m])) for part in parts[goal]]
            mark = "**" if goal == best[m] else ""
            spread = 100 * float(np.std(by_seed, ddof=1))
            cells.append(f"{mark}{100 * means[goal][m]:.2f}{mark} ({spread:.2f})")
        rows.append([goal, *cells])
    verdicts = [_verdict(goal, best[goal], values) for goal in GOALS]
    return (
        markdown(["trained for", *GOALS], rows),
        markdown(["trained for", "on its own measure", "p (t-test)"], verdicts),
    )


def _verdict(goal: str, best: str, values: Mapping[str, Mapping[str, list[float]]]) -> list[str]:
    """Return a row that says if the model of a measure is best by it, or how far behind it is."""
    if goal == best:
        others = [other for other in GOALS if other != goal]
        second = max(others, key=lambda other: exact_mean(np.array(values[other][goal])))
        return [goal, f"best; next {second}", p_value(values[goal][goal], values[second][goal])]
    behind = np.array(values[best][goal]) - np.array(values[goal][goal])
    return [
        goal,
        f"{100 * exact_mean(behind):.2f} behind {best}",
        p_value(values[best][goal], values[goal][goal]),
    ]


def _sizes(study: Study) -> tuple[int, int]:
    return study.size(500, 5000), study.size(1000, 10_000)


def _trained_for(
    study: Study, hidden: tuple[int, ...], seed: int, goal: str
) -> dict[str, list[float]]:
    """Train for one measure; return the values of the test queries by all measures."""
    n_train, n_test = _sizes(study)
    n_epochs = study.size(30, 100)
    start = _start_net(n_train, hidden, n_epochs, seed, study.n_threads) if hidden else None
    model = best_net(
        LambdaRank,
        *_training(n_train, seed),
        goal,
        start=start,
        measure=goal,
        **_options(hidden, n_epochs, seed, study.n_threads),
    )
    test = make_artificial(n_test, seed=300)  # the same for all seeds, which are averaged
    # leave out queries that any of the measures leaves out
    values = evaluate(model, test, GOALS).per_query
    kept = ~np.any([np.isnan(values[m]) for m in GOALS], axis=0)
    return {m: values[m][kept].tolist() for m in GOALS}


def _options(
    hidden: tuple[int, ...], n_epochs: int, seed: int, n_threads: int | None
) -> dict[str, Any]:
    return {
        "hidden": hidden,
        "n_epochs": n_epochs,
        "random_state": seed,
        "n_threads": n_threads,
    }


@lru_cache(maxsize=1)
def _training(n_train: int, seed: int) -> tuple[QueryDataset, QueryDataset]:
    """Return training and validation data, the same for all goals; made once per process."""
    return (
        make_artificial(n_train, seed=100 + seed),
        make_artificial(n_train // 2, seed=200 + seed),
    )


@lru_cache(maxsize=1)
def _start_net(
    n_train: int, hidden: tuple[int, ...], n_epochs: int, seed: int, n_threads: int | None
) -> Net:
    """Return the RankNet that the training for all goals starts from; trained once per process."""
    options = _options(hidden, n_epochs, seed, n_threads)
    return best_net(RankNet, *_training(n_train, seed), "pairs", **options)


# -- LETOR's collections --------------------------------------------------------------------------

LETOR_MEASURES = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "meanndcg", "map")
LETOR_RATES = (0.0003, 0.001, 0.003)
LETOR_NETS: dict[str, tuple[type[Net], dict[str, Any]]] = {
    "RankNet": (RankNet, {"hidden": HIDDEN}),
    "LambdaRank": (LambdaRank, {"hidden": HIDDEN}),
    "LambdaRank, linear": (LambdaRank, {"hidden": ()}),
    "LambdaRank for MAP": (LambdaRank, {"hidden": HIDDEN, "measure": "map"}),
}
TREES = "LambdaMART"


def letor(study: Study) -> Findings:
    """RankNet and LambdaRank compared with LambdaMART on the folds of MQ2008 and OHSUMED."""
    text = [NARROW_TEXT]
    seeds = range(study.size(1, 3))
    for collection in study.data.collections("mq2008", "ohsumed"):
        numbers = collection.numbers(study.size(1, 5))
        cells = study.cells(
            {
                f"{collection.name}, fold {k}, {name}, seed {s}": (
                    _one_fold,
                    name,
                    collection,
                    k,
                    s,
                )
                for k in numbers
                for name in (TREES, *LETOR_NETS)
                for s in seeds
            }
        )
        values: dict[str, dict[str, list[float]]] = {}
        means: dict[str, list[str]] = {}
        for name in (TREES, *LETOR_NETS):
            by_fold = [
                _mean_over_seeds(
                    [cells[f"{collection.name}, fold {k}, {name}, seed {s}"] for s in seeds]
                )
                for k in numbers
            ]
            values[name] = {m: [v for fold in by_fold for v in fold[m]] for m in LETOR_MEASURES}
            means[name] = [mean_and_reach([fold[m] for fold in by_fold]) for m in LETOR_MEASURES]
        rows = [
            [
                name,
                *means[name],
                "" if name == TREES else p_value(values[name]["ndcg@10"], values[TREES]["ndcg@10"]),
                "" if name == TREES else p_value(values[name]["map"], values[TREES]["map"]),
            ]
            for name in values
        ]
        text += [
            f"### {collection.described(numbers)}, {counted(len(seeds), 'seed')}",
            markdown(["system", *LETOR_MEASURES, "p, ndcg@10", "p, map"], rows),
            edge_report(
                {
                    f"{name}, rate": Choices(
                        [
                            cell["rate"][0]
                            for key, cell in cells.items()
                            if f", {name}, seed" in key
                        ],
                        LETOR_RATES,
                    )
                    for name in LETOR_NETS
                }
            ),
        ]
    text.append(
        "Means over folds of test values (half width of the 95 % interval over queries), LETOR's "
        "measures; rates and epochs chosen on the validation part by NDCG@10. p: paired "
        f"t-test over queries against {TREES}."
    )
    return Findings("\n\n".join(text), {})


def _one_fold(
    study: Study, name: str, collection: Collection, k: int, seed: int
) -> dict[str, list[float]]:
    fold = collection.fold(k)
    assert fold.valid is not None  # LETOR's folds have validation data
    common: dict[str, Any] = {"random_state": seed, "n_threads": study.n_threads}
    model: Any
    if name == TREES:
        model = LambdaMART(
            "ndcg@10",
            n_trees=study.size(100, 500),
            n_leaves=7,
            learning_rate=0.05,
            query_fraction=0.5,
            feature_fraction=0.3,
            early_stopping=100,
            **NARROW,
            **common,
        ).fit(fold.train, valid=fold.valid)
    else:
        ranker, options = LETOR_NETS[name]
        n_epochs = study.size(30, 100)
        options = {"n_epochs": n_epochs, **options, **common}
        model = best_net(ranker, fold.train, fold.valid, "ndcg@10", rates=LETOR_RATES, **options)
    values = per_query(evaluate(model, fold.test, LETOR_MEASURES, "letor"))
    return {**values, "rate": [model.learning_rate]}


EXPERIMENTS = (
    Experiment(
        "burges2010-table1",
        "burges2010",
        "LambdaRank and RankNet compared with McRank and LambdaMART on artificial data",
        table_1,
        data=ARTIFICIAL,
    ),
    Experiment(
        "burges2010-measures",
        "burges2010",
        "LambdaRank trained for four measures, measured by all four",
        four_measures,
        data=ARTIFICIAL,
    ),
    Experiment(
        "burges2010-letor",
        "burges2010",
        "RankNet and LambdaRank compared with LambdaMART on LETOR's collections",
        letor,
        data=COLLECTIONS,
        measured="letor",
        takes="letor",
    ),
)
