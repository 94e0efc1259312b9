"""The SVM-map paper's experiments: base functions combined by SVMs, and LETOR's collections.

Tables 6 to 11 are repeated on the runs of another TREC track: 50 trials of 10 training, 5
validation and 35 test queries, in which every query has each role equally often (section 5); 50
thresholds per base function (section 4.2); C chosen by MAP on the validation queries. The value of
a query is its mean over the trials that tested it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from rankgrove import (
    Evaluation,
    QueryDataset,
    StructuralSVM,
    SVMAcc,
    SVMMap,
    SVMMrr,
    SVMNdcg,
    SVMRoc,
    evaluate,
    random_trials,
)
from rankgrove.evaluation.significance import wilcoxon_signed_rank
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import markdown, p_text
from rankgrove.validation import counted
from rankgrove_papers.grid_edges import Choices, edge_report
from rankgrove_papers.sources import Collection, TrecRuns, published_figures
from rankgrove_papers.study import COLLECTIONS, Curves, Experiment, Findings, Study
from rankgrove_papers.tables import mean_and_reach, p_value, per_query

SVM = StructuralSVM | SVMAcc

N_TRIALS = 50
N_THRESHOLDS = 50  # of every base function, section 4.2
REFERENCE = "SVM-map"
# "A wide range of C values" (section 5). C is the weight of the mean loss; LIBLINEAR's C is this
# value divided by the number of documents (here about 20,000). The grids are so wide that their
# edges are rarely chosen: SVM-map needs values below .001, SVM-acc3 and SVM-acc4 above 1000.
GRID = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
LOW_GRID = (1e-6, 1e-5, 1e-4, *GRID)
WIDE_GRID = (*GRID, 1e4, 1e5, 1e6, 1e7)
# The classification SVMs stop at LIBLINEAR's default tolerance, or after 200 passes.
ACC: dict[str, Any] = {"C": GRID, "tolerance": 0.1, "max_iterations": 200}
# The paper's systems. SVM-acc2 to SVM-acc4 are in its section 5.2.1. SVM-acc2: the cost of a false
# negative is the ratio of irrelevant to relevant documents; SVM-acc3: percentiles within the query;
# SVM-acc4: features scaled to [0, 1] within the query. The last two have 50 evenly spaced
# thresholds between 0 and 1.
SYSTEMS: dict[str, tuple[type[SVM], dict[str, Any]]] = {
    "SVM-map": (SVMMap, {"C": LOW_GRID}),
    "SVM-roc": (SVMRoc, {"C": GRID}),
    "SVM-acc": (SVMAcc, ACC),
    "SVM-acc2": (SVMAcc, ACC | {"balanced": True}),
    "SVM-acc3": (SVMAcc, ACC | {"C": WIDE_GRID, "scaling": "percentile"}),
    "SVM-acc4": (SVMAcc, ACC | {"C": (*WIDE_GRID, 1e8, 1e9), "scaling": "query"}),
}
LETOR_SYSTEMS: dict[str, tuple[type[SVM], dict[str, Any]]] = {
    "SVM-map": (SVMMap, {"C": GRID}),
    "SVM-map, 50 thresholds": (SVMMap, {"C": GRID, "thresholds": N_THRESHOLDS}),
    "SVM-roc": (SVMRoc, {"C": GRID}),
    "SVM-mrr": (SVMMrr, {"C": GRID}),
    "SVM-ndcg": (SVMNdcg, {"C": GRID}),
    "SVM-acc": (SVMAcc, ACC),
    "SVM-acc2": (SVMAcc, ACC | {"balanced": True}),
}
LETOR_MEASURES = ("map", "p@1", "p@5", "p@10", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "meanndcg")
PUBLISHED = ("RankSVM-Struct", "AdaRank-MAP", "AdaRank-NDCG", "RankBoost")

# The paper's MAP on TREC 9 and TREC 10: tables 9 (Indri) and 10 (submissions), and table 11.
PAPER = {
    "SVM-map": (".242 .236, .290 .287", ".284 .288"),
    "SVM-roc": (".237 .234, .282 .278", ".274 .272"),
    "SVM-acc": (".147 .155, .213 .222", ".215 .211"),
    "SVM-acc2": (".219 .207, .270 .261", ".267 .258"),
    "SVM-acc3": (".113 .153, .133 .182", ".133 .174"),
    "SVM-acc4": (".155 .155, .233 .238", ".228 .234"),
}

VARIANT = (
    "SVM-map, SVM-roc, SVM-mrr and SVM-ndcg: 1-slack cutting planes to a violation of .001. "
    "SVM-acc: hinge loss by LIBLINEAR, to its tolerance of .1 or 200 passes; SVM-acc2 with the "
    "cost ratio of irrelevant to relevant documents, SVM-acc3 with percentiles within the query, "
    "SVM-acc4 with features scaled to [0, 1] within the query."
)

# query id -> value
Values = dict[str, float]


# -- the trials on TREC runs ----------------------------------------------------------------------


@lru_cache(maxsize=2)
def base_functions(runs: TrecRuns, without: str | None = None) -> QueryDataset:
    """Return the documents that any run retrieved, with the runs' scores; read once per process."""
    data = runs.read()
    return data if without is None else _without(data, without)


def _sizes(data: QueryDataset) -> tuple[int, int, int]:
    """Return the numbers of training, validation and test queries: 10, 5 and 35 of 50."""
    n_train, n_valid = max(1, data.n_queries // 5), max(1, data.n_queries // 10)
    return n_train, n_valid, data.n_queries - n_train - n_valid


def run_trials(study: Study) -> Findings:
    """Run the trials with all runs, and without the best one; return the tables."""
    runs = study.data.trec("trec-web2012")
    data = base_functions(runs)
    base = {
        name: _values(evaluate(data.column(name), data, "map"), "map")
        for name in data.feature_names
    }
    ranked = sorted(base, key=lambda name: -exact_mean(np.array(list(base[name].values()))))
    n_trials = study.size(2, N_TRIALS)
    n_train, n_valid, n_test = _sizes(data)
    text = [
        f"{data.n_queries} queries, {data.n_rows:,} documents, "
        f"{counted(data.n_features, 'base function')}, {n_trials} trials of {n_train} training, "
        f"{n_valid} validation and {n_test} test queries. {VARIANT}"
    ]
    for without, tables in [(None, "6, 7, 9 and 10"), (ranked[0], "8 and 11")]:
        cells = _all_trials(study, runs, without, n_trials)
        systems = {name: _mean_by_query(of_name) for name, of_name in cells.items()}
        title = "all base functions" if without is None else f"all but the best, {without}"
        text += [
            f"### Trained on {title} (the paper's tables {tables})",
            _table(systems[REFERENCE], {name: base[name] for name in ranked}),
            _table(
                systems[REFERENCE],
                {k: v for k, v in systems.items() if k != REFERENCE},
                {name: figures[without is not None] for name, figures in PAPER.items()},
            ),
            _chosen(cells, SYSTEMS),
        ]
    text.append(
        "MAP: mean over queries. W/L: queries for which SVM-map has the higher, the lower value. "
        "p: two-tailed Wilcoxon signed-rank test; ** where p < .05. The paper's MAP: TREC 9 and "
        "10, with Indri's functions and with submissions (tables 9 and 10); table 11."
    )
    return Findings("\n\n".join(text), {"yue2007-figure2": _figure_2(study, runs)})


def _figure_2(study: Study, runs: TrecRuns) -> Curves:
    """Return the step function that SVM-map learns for every base function (as in Figure 2)."""
    steps = study.cell("figure 2", _steps, runs)
    return Curves(
        {name: (np.array(x), np.array(y)) for name, (x, y) in steps.items()},
        "value of the base function, from its least (0) to its largest (1)",
        "added to the score",
        f"SVM-map's step functions of {len(steps)} base functions",
    )


def _steps(study: Study, runs: TrecRuns) -> dict[str, Any]:
    data = base_functions(runs)
    model = SVMMap(C=100.0, thresholds=N_THRESHOLDS, n_threads=study.n_threads).fit(data)
    steps = {}
    for name, (at, weights) in zip(data.feature_names, model.linear_.by_feature(), strict=True):
        reach = max(float(at[-1] - at[0]), 1e-300)
        steps[name] = (((at - at[0]) / reach).tolist(), np.cumsum(weights).tolist())
    return steps


def _without(data: QueryDataset, name: str) -> QueryDataset:
    kept = [j for j, other in enumerate(data.feature_names) if other != name]
    return QueryDataset(
        np.ascontiguousarray(data.X[:, kept]),
        data.y,
        data.qid,
        feature_names=[data.feature_names[j] for j in kept],
    )


def _all_trials(
    study: Study, runs: TrecRuns, without: str | None, n_trials: int
) -> dict[str, list[dict[str, Any]]]:
    """Return the results of every system, by trial."""
    n_functions = base_functions(runs, without).n_features
    keys = {
        name: [f"{n_functions} functions, trial {t}, {name}" for t in range(1, n_trials + 1)]
        for name in SYSTEMS
    }
    cells = study.cells(
        {
            keys[name][t - 1]: (_one_trial, runs, without, t, name)
            for t in range(1, n_trials + 1)
            for name in SYSTEMS
        }
    )
    return {name: [cells[key] for key in of_name] for name, of_name in keys.items()}


def _mean_by_query(trials: Sequence[Mapping[str, Any]]) -> Values:
    """Return the value of every query: the mean over the trials that tested it."""
    values: dict[str, list[float]] = {}
    for trial in trials:
        for qid, value in trial["ap"].items():
            values.setdefault(qid, []).append(value)
    return {qid: exact_mean(np.array(of_query)) for qid, of_query in values.items()}


def _chosen(
    cells: Mapping[str, Sequence[Mapping[str, Any]]],
    systems: Mapping[str, tuple[type[SVM], dict[str, Any]]],
) -> str:
    """Return how often every system chose the edge of its grid, and reached the iteration limit."""
    chosen = {
        f"{name}, C": Choices(
            [cell["C"] for cell in of_name],
            systems[name][1]["C"],
            curves=[cell["valid"] for cell in of_name],
        )
        for name, of_name in cells.items()
    }
    stopped = []
    for name, of_name in cells.items():
        limited = sum(cell["status"] == "iteration limit" for cell in of_name)
        if limited:
            stopped.append(f"{name} {limited / len(of_name):.0%}")
    if not stopped:
        return edge_report(chosen)
    of_all = f"Chosen models whose training ended at the limit of passes: {', '.join(stopped)}."
    return f"{edge_report(chosen)}\n\n{of_all}"


def _one_trial(
    study: Study, runs: TrecRuns, without: str | None, t: int, name: str
) -> dict[str, Any]:
    data = base_functions(runs, without)
    (trial,) = islice(random_trials(data, N_TRIALS, *_sizes(data)), t - 1, t)
    ranker, options = SYSTEMS[name]
    model = ranker(thresholds=N_THRESHOLDS, n_threads=study.n_threads, **options)
    model.fit(trial.train, valid=trial.valid, valid_measures="map")
    ap = _values(evaluate(model, trial.test, "map"), "map")
    return {**_training(model), "ap": ap}


def _training(model: SVM) -> dict[str, Any]:
    """Return the chosen C, how its training ended, and the validation MAP of every C."""
    return {
        "C": model.C_,
        "status": model.solution_["status"],
        "valid": model.history_["valid"]["map"],
    }


def _values(evaluation: Evaluation, measure: str) -> Values:
    values = evaluation.per_query[measure].tolist()
    pairs = zip(map(str, evaluation.query_ids), values, strict=True)
    return {qid: value for qid, value in pairs if value == value}


def _table(
    ours: Values, others: Mapping[str, Values], paper: Mapping[str, str] | None = None
) -> str:
    """Return a table in the layout of the paper's: MAP, wins and losses, significance."""
    rows = [[REFERENCE, f"{_mean(ours):.3f}", "", ""]]
    for name, values in others.items():
        common = [qid for qid in ours if qid in values]
        differences = np.array([ours[qid] - values[qid] for qid in common])
        wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
        p = wilcoxon_signed_rank(differences)
        stars = " **" if p < 0.05 else ""
        rows.append([name, f"{_mean(values):.3f}", f"{wins}/{losses}{stars}", p_text(p)])
    header = ["Model", "MAP", "W/L", "p"]
    if paper is not None:
        header.append("paper's MAP")
        rows = [[*row, paper[row[0]]] for row in rows]
    return markdown(header, rows)


def _mean(values: Values) -> float:
    return exact_mean(np.array(list(values.values())))


# -- LETOR's collections --------------------------------------------------------------------------


def run_letor(study: Study) -> Findings:
    """Train on the folds of MQ2008 and OHSUMED; return a table of each."""
    text = []
    for collection in study.data.collections("mq2008", "ohsumed"):
        numbers = collection.numbers(study.size(1, 5))
        cells = study.on_folds(collection, numbers, LETOR_SYSTEMS, _one_fold)
        rows: list[list[object]] = []
        first: list[float] = []
        for name in LETOR_SYSTEMS:
            folds = [cell["values"] for cell in cells[name]]
            every = [value for fold in folds for value in fold["map"]]
            first = first or every
            p = "" if name == REFERENCE else p_value(first, every)
            means = [mean_and_reach([fold[m] for fold in folds]) for m in LETOR_MEASURES]
            rows.append([name, *means, p])
        if collection.name == "MQ2008":
            rows += _published(study, len(numbers))
        text += [
            f"### {collection.described(numbers)}",
            markdown(["Model", *(name.upper() for name in LETOR_MEASURES), "p, MAP"], rows),
            _chosen(cells, LETOR_SYSTEMS),
        ]
    text.append(
        "Means over folds of test values (half width of the 95 % interval over queries), LETOR's "
        "measures; C chosen by MAP on the validation part. p: paired t-test over queries against "
        f"{REFERENCE}. {VARIANT}"
    )
    return Findings("\n\n".join(text), {})


def _one_fold(study: Study, name: str, collection: Collection, k: int) -> dict[str, Any]:
    fold = collection.fold(k)
    ranker, options = LETOR_SYSTEMS[name]
    model = ranker(n_threads=study.n_threads, **options)
    model.fit(fold.train, valid=fold.valid, valid_measures="map")
    return {
        **_training(model),
        "values": per_query(evaluate(model, fold.test, LETOR_MEASURES, "letor")),
    }


def _published(study: Study, n_folds: int) -> list[list[object]]:
    """Return the publishers' figures of other systems, means over the same folds."""
    rows: list[list[object]] = []
    for name in PUBLISHED:
        lines = study.data.baseline(f"{name}.MQ2008.txt")
        if lines is not None:
            figures = published_figures(lines)
            means = [exact_mean(np.array(figures[m][:n_folds])) for m in LETOR_MEASURES]
            rows.append([f"{name} (published)", *(f"{value:.4f}" for value in means), ""])
    return rows


EXPERIMENTS = (
    Experiment(
        "yue2007-trec",
        "yue2007",
        "Tables 6 to 11: SVM-map against base functions, SVM-roc and four SVM-acc",
        run_trials,
        data="eight Indri runs of the TREC 2012 web track",
        takes="trec",
    ),
    Experiment(
        "yue2007-letor",
        "yue2007",
        "the SVMs on LETOR's collections compared with published figures",
        run_letor,
        data=COLLECTIONS,
        measured="letor",
        takes="letor",
    ),
)
