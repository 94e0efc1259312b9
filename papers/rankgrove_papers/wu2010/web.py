"""Wu, Burges, Svore and Gao 2010: the Web-1 halves of Table 1 and of Figures 2, 3 and 4.

Web-1 is the private data of a search engine. Generated data of the same size replaces it, or a
collection of the user, fold by fold (MSLR-WEB10K is of the same kind).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rankgrove import LambdaRank, evaluate, make_web
from rankgrove.tuning.tables import markdown
from rankgrove_papers.sources import Collection
from rankgrove_papers.study import NARROW_TEXT, Experiment, Findings, Study, Task
from rankgrove_papers.tables import per_query, pooled
from rankgrove_papers.wu2010.artificial import (
    NEWTON,
    OPTIMAL,
    OPTIMAL_NEWTON,
    PAPER,
    accuracy_by_trees,
    against_baseline,
    best_rounds,
    by_round,
    by_trees,
    gaps_table,
    levels,
    paper_cells,
    rounds_needed,
    step_result,
    systems_table,
    trees_needed,
    weights_by_round,
)
from rankgrove_papers.wu2010.systems import (
    HIDDEN,
    MEASURES,
    NAMES,
    PAPER_NET,
    TABLE_1,
    Parts,
    System,
    best_net,
    tree_result,
    tree_systems,
)

# Table 1: NDCG@10, @3 and @1 on 10K test queries of Web-1.
PAPER_WEB = {
    "LambdaMART": (69.3, 62.5, 61.3),
    "McRank": (69.7, 62.9, 61.6),
    "LambdaRank": (68.6, 61.5, 60.4),
}
SYSTEMS = tree_systems(lambdamart_leaves=15)
NET = "LambdaRank"
NET_RATES = (0.0003, 0.001, 0.003)
# BM25 of the whole document, the baseline of section 5.3: the number of this feature in published
# collections, counted from 1, by their publishers' lists. In OHSUMED it is of title and abstract.
BM25 = {"MSLR-WEB10K": 110, "MQ2007": 25, "MQ2008": 25, "TD2004": 25, "OHSUMED": 41}
BM25_NAME, NO_SETTING = "BM25 alone", "nothing trained"
N_DOCS, N_FEATURES = 26, 367  # of Web-1; the number of documents is a mean over queries


# -- the data ---------------------------------------------------------------------------------


def web_parts(study: Study, fold: int) -> Parts:
    """Return training, validation and test queries: of a fold of the user's data, or generated."""
    user_data = study.data.user_data
    if isinstance(user_data, Collection):
        parts = user_data.fold(fold)
        assert parts.valid is not None  # LETOR's folds have validation data
        return parts.train, parts.valid, parts.test
    return _generated(_sizes(study))


def _sizes(study: Study) -> tuple[int, int, int]:
    return study.size(500, 10_000), study.size(250, 5000), study.size(500, 10_000)


@lru_cache(maxsize=1)
def _generated(sizes: tuple[int, int, int]) -> Parts:
    """Return generated queries, made once per process."""
    train, valid, test = (make_web(n, N_DOCS, N_FEATURES, seed=k) for k, n in enumerate(sizes))
    return train, valid, test


def _folds(study: Study) -> dict[str, int]:
    """Return the folds by the beginning of their keys; generated data is a single fold."""
    user_data = study.data.user_data
    if isinstance(user_data, Collection):
        return {f"fold {k}, ": k for k in user_data.numbers(study.size(1, 5))}
    return {"": 1}


def _described(study: Study) -> str:
    user_data = study.data.user_data
    if isinstance(user_data, Collection):
        collection = user_data.described(list(_folds(study).values()))
        return f"{collection}; these folds' test queries together."
    sizes = " / ".join(f"{n:,}" for n in _sizes(study))
    return (
        f"Generated web-like data: {sizes} training, validation and test queries, {N_DOCS} "
        f"documents per query on average, {N_FEATURES} features, noisy labels."
    )


def _mean_curve(curves: list[list[float]]) -> list[float]:
    """Return the mean curve of folds, up to the end of the shortest one."""
    n = min(len(curve) for curve in curves)
    return [float(value) for value in np.mean([curve[:n] for curve in curves], axis=0)]


# -- Table 1 and Figure 2 ---------------------------------------------------------------------


def table_1(study: Study) -> Findings:
    """LambdaMART, McRank, LambdaRank and BM25 on web data: NDCG, and trees against NDCG@10."""
    folds = _folds(study)
    tasks: dict[tuple[str, str], Task] = {
        (setting, name): (_trees, system)
        for setting, systems in SYSTEMS.items()
        for name, system in systems.items()
    }
    tasks[TABLE_1, NET] = (_net,)
    feature = _bm25(study)
    if feature is not None:
        tasks[NO_SETTING, BM25_NAME] = (_one_feature, feature)
    cells = study.cells(
        {
            f"{prefix}{name}, {setting}": (*task, k)
            for prefix, k in folds.items()
            for (setting, name), task in tasks.items()
        }
    )
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for setting, name in tasks:
        of_folds = [cells[f"{prefix}{name}, {setting}"] for prefix in folds]
        results.setdefault(setting, {})[name] = of_folds
    values = {
        setting: {name: pooled([r["values"] for r in of_folds]) for name, of_folds in rows.items()}
        for setting, rows in results.items()
    }
    only_trees = {setting: {name: results[setting][name] for name in NAMES} for setting in SYSTEMS}
    curves = {
        setting: {name: _over_folds(of_folds) for name, of_folds in systems.items()}
        for setting, systems in only_trees.items()
    }
    text = [
        f"{_described(study)} Test NDCG in percent (half width of the 95 % interval), after the "
        "best round or epoch of the validation data. The paper's own settings: NDCG without a "
        "cutoff, all pairs, not normalised, least-squares splits, no l2; LambdaMART 15 leaves and "
        "rate .1, McRank 10 leaves and rate .05, LambdaRank 10 hidden units (section 5.2). "
        "Different from the paper: at least 20 rows per leaf, 255 bins, the best round by the "
        "validation data's NDCG@10, and LambdaRank's steps (Adam, rates .0003 to .003 that fall to "
        "0; the paper: rate 1e-5). The "
        "paper's figures are for Web-1: compare the order and the gaps, not the level.",
        systems_table(values, {TABLE_1: paper_cells(PAPER_WEB)}),
        _bm25_words(study, feature),
        "LambdaMART minus McRank (p: paired t-test over the test queries of one model per fold):",
        gaps_table({setting: values[setting] for setting in SYSTEMS}, PAPER_WEB),
        best_rounds(only_trees),
        *(trees_needed(curves[setting], setting) for setting in SYSTEMS if setting != TABLE_1),
    ]
    title = "Accuracy against size (web data)"
    return Findings("\n\n".join(text), {"wu2010-figure2-web": accuracy_by_trees(curves, title)})


def _over_folds(of_folds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean curve of several folds, and the number of trees per round."""
    return {
        "curve": _mean_curve([result["curve"] for result in of_folds]),
        "trees a round": max(result["trees a round"] for result in of_folds),
    }


def _trees(study: Study, system: System, fold: int) -> dict[str, Any]:
    """Train a system of trees; return its test values by query, and its curve."""
    return tree_result(system, web_parts(study, fold), study.size(60, 1000), study.n_threads)


def _net(study: Study, fold: int) -> dict[str, Any]:
    """Train LambdaRank at several rates; return the test values of the best by validation data."""
    train, valid, test = web_parts(study, fold)
    model = best_net(
        LambdaRank,
        train,
        valid,
        "ndcg@10",
        rates=NET_RATES,
        hidden=HIDDEN,
        n_epochs=study.size(20, 60),
        n_threads=study.n_threads,
        **PAPER_NET,
    )
    return {
        "values": per_query(evaluate(model, test, MEASURES)),
        "rate": model.learning_rate,
        "best epoch": model.best_epoch_,
    }


def _bm25(study: Study) -> int | None:
    """Return the number of the BM25 feature, if the data is known to have one."""
    user_data = study.data.user_data
    return BM25.get(user_data.name) if isinstance(user_data, Collection) else None


def _one_feature(study: Study, number: int, fold: int) -> dict[str, Any]:
    """Return the test values of ranking by one feature, counted from 1."""
    *_, test = web_parts(study, fold)
    scores = np.asarray(test.X[:, number - 1], np.float64)
    scores[np.isnan(scores)] = np.nanmin(scores) - 1  # missing ones last
    return {"values": per_query(evaluate(scores, test, MEASURES))}


def _bm25_words(study: Study, feature: int | None) -> str:
    if feature is not None:
        return f"BM25 alone (section 5.3) is feature {feature} of the collection."
    if study.data.user_data is None:
        return (
            "Section 5.3's BM25 has no counterpart here: generated features are mixtures, none of "
            "them a retrieval function."
        )
    known = ", ".join(f"{name} {number}" for name, number in BM25.items())
    return f"Section 5.3's BM25 has a row if its feature is known ({known})."


# -- Figures 3 and 4 --------------------------------------------------------------------------

BASELINE = "Newton, rate 0.1"
LEAVES = 15
BOUNDS = {"step_bounds": (0.1, 5.0)}  # "worked best and helped to prevent overfitting"
STEPS: dict[str, dict[str, Any]] = {
    BASELINE: NEWTON | {"learning_rate": 0.1},
    "Newton, rate 1": NEWTON | {"learning_rate": 1.0},
    "optimal": OPTIMAL | BOUNDS,
    "optimal, up to 100": OPTIMAL,
    "optimal, Newton leaves": OPTIMAL_NEWTON | BOUNDS,
    "paper's lambdas, Newton, rate 0.1": NEWTON | PAPER | {"learning_rate": 0.1},
    "paper's lambdas, optimal": OPTIMAL | PAPER | BOUNDS,
}


# The paper's baseline on web data is Newton's step at shrinkage .1 (section 5.6).
BASELINES = {
    "optimal": BASELINE,
    "optimal, up to 100": BASELINE,
    "optimal, Newton leaves": BASELINE,
    "paper's lambdas, optimal": "paper's lambdas, Newton, rate 0.1",
}


def figure_3(study: Study) -> Findings:
    """The exact line search against the Newton step on web data, and its weights (Figure 4)."""
    folds = _folds(study)
    cells = study.cells(
        {
            f"{prefix}{name}": (_stepped, STEPS[name], k)
            for prefix, k in folds.items()
            for name in STEPS
        }
    )
    runs: dict[str, dict[str, Any]] = {}
    for name in STEPS:
        parts = [cells[f"{prefix}{name}"] for prefix in folds]
        runs[name] = {of: _mean_curve([part[of] for part in parts]) for of in ("test", "train")}
        runs[name]["alpha"] = parts[0][
            "alpha"
        ]  # a mean of weights would not be the weight of any tree
    baseline = runs[BASELINE]["test"]
    wanted = levels(baseline[0], max(baseline), (0.5, 0.75, 0.9, 1.0))
    text = [
        f"{_described(study)} Trees of {LEAVES} leaves; exact weights found on the validation "
        "queries, between 0.1 and 5 unless noted otherwise. Paper's lambdas: all pairs, not "
        "normalised, least-squares splits, no l2; of NDCG@10 with rank weights that continue below "
        "rank 10. Test NDCG@10 in percent by number of trees (Figure 3 b). In the paper the exact "
        "step is as good as Newton's step at rate 0.1 with 80 trees instead of 250.",
        by_trees(runs),
        rounds_needed(runs, wanted),
        against_baseline(runs, BASELINES, wanted),
        f"The exact weights{', first fold' if len(folds) > 1 else ''} (Figure 4): median, least "
        "and largest of a stretch of rounds.",
        _weights(runs),
    ]
    figures = {
        "wu2010-figure3-web": by_round(runs, "test", "test NDCG@10", "Exact line search"),
        "wu2010-figure3-web-training": by_round(
            runs, "train", "training NDCG@10", "Exact line search, training queries"
        ),
        "wu2010-figure4-web": weights_by_round(runs),
    }
    return Findings("\n\n".join([*text, NARROW_TEXT]), figures)


def _stepped(study: Study, options: dict[str, Any], fold: int) -> dict[str, Any]:
    train, valid, test = web_parts(study, fold)
    watched = {"valid": valid, "test": test, "train": train}
    options = {"n_trees": study.size(60, 300), "n_leaves": LEAVES} | options
    return step_result(train, watched, study.n_threads, **options)


def _weights(runs: dict[str, dict[str, Any]]) -> str:
    n_rounds = min(len(run["alpha"]) for run in runs.values())
    ends = [end for end in (10, 25, 50, 100, 200) if end < n_rounds] + [n_rounds]
    stretches = list(zip([0, *ends[:-1]], ends, strict=True))
    rows = []
    for name, run in runs.items():
        if "optimal" in name:
            parts = [np.array(run["alpha"][start:end]) for start, end in stretches]
            cells = [f"{np.median(p):.2f} ({p.min():.2f} to {p.max():.2f})" for p in parts]
            rows.append([name, *cells])
    return markdown(["step", *(f"trees {a + 1} to {b}" for a, b in stretches)], rows)


EXPERIMENTS = (
    Experiment(
        "wu2010-web-table1",
        "wu2010",
        "Table 1 and Figure 2, web data: LambdaMART, McRank and LambdaRank",
        table_1,
        data="web-like, generated (rg.make_web)",
        takes="letor",
    ),
    Experiment(
        "wu2010-web-figure3",
        "wu2010",
        "Figures 3 and 4, web data: exact line search",
        figure_3,
        data="web-like, generated (rg.make_web)",
        takes="letor",
    ),
)
