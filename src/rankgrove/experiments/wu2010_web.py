"""Wu, Burges, Svore and Gao 2010: the Web-1 halves of Table 1 and of Figures 2, 3 and 4.

Web-1 is a search engine's own data. Generated data of its sizes stands for it, or a collection of
the user's, fold by fold (MSLR-WEB10K is of the same kind).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rankgrove.data.synthetic import make_web
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.burges2010 import HIDDEN, best_net
from rankgrove.experiments.sources import Collection
from rankgrove.experiments.study import Experiment, Findings, Study, markdown, per_query, pooled
from rankgrove.experiments.wu2010 import (
    MEASURES,
    NEWTON,
    OPTIMAL,
    OPTIMAL_NEWTON,
    PAPER,
    SYSTEMS,
    Parts,
    accuracy_by_trees,
    best_rounds,
    by_round,
    by_trees,
    levels,
    rounds_needed,
    step_result,
    systems_table,
    tree_result,
    trees_needed,
    weights_by_round,
)
from rankgrove.rankers.nets import LambdaRank

# Table 1: NDCG@10, @3 and @1 on 10K test queries of Web-1, half width of the 95 % interval.
PAPER_WEB = {
    "LambdaMART": ("69.3 (0.46)", "62.5 (0.60)", "61.3 (0.81)"),
    "McRank": ("69.7 (0.46)", "62.9 (0.60)", "61.6 (0.81)"),
    "LambdaRank": ("68.6 (0.47)", "61.5 (0.60)", "60.4 (0.82)"),
}
NET = "LambdaRank"
NET_RATES = (0.0003, 0.001, 0.003)
N_DOCS, N_FEATURES = 26, 367  # of Web-1, the documents on average


# -- the data ---------------------------------------------------------------------------------


def web_parts(study: Study, fold: int) -> Parts:
    """Return training, validation and test queries: of a fold of the user's data, or generated."""
    own = study.data.own
    if isinstance(own, Collection):
        found = own.fold(fold)
        assert found.valid is not None  # LETOR's folds have one
        return found.train, found.valid, found.test
    return _generated(_sizes(study))


def _sizes(study: Study) -> tuple[int, int, int]:
    return study.size(500, 10_000), study.size(250, 5000), study.size(500, 10_000)


@lru_cache(maxsize=1)
def _generated(sizes: tuple[int, int, int]) -> Parts:
    """Return generated queries, made once a process."""
    train, valid, test = (make_web(n, N_DOCS, N_FEATURES, seed=k) for k, n in enumerate(sizes))
    return train, valid, test


def _folds(study: Study) -> dict[str, int]:
    """Return how keys begin -> the fold: one for the generated data."""
    own = study.data.own
    if isinstance(own, Collection):
        return {f"fold {k}, ": k for k in own.numbers(study.size(1, 5))}
    return {"": 1}


def _described(study: Study) -> str:
    own = study.data.own
    if isinstance(own, Collection):
        return f"{own.described(list(_folds(study).values()))}; these folds' test queries together."
    sizes = " / ".join(f"{n:,}" for n in _sizes(study))
    return (
        f"Generated web-like data: {sizes} training, validation and test queries, {N_DOCS} "
        f"documents a query on average, {N_FEATURES} features, noisy labels."
    )


def _mean_curve(curves: list[list[float]]) -> list[float]:
    """Return the mean over folds, as far as all have come."""
    n = min(len(curve) for curve in curves)
    return [float(value) for value in np.mean([curve[:n] for curve in curves], axis=0)]


# -- Table 1 and Figure 2 ---------------------------------------------------------------------


def table_1(study: Study) -> Findings:
    """LambdaMART, McRank and LambdaRank on web data: NDCG, and trees against NDCG@10."""
    folds = _folds(study)
    cells = study.cells(
        {
            f"{begins}{name}": (_system, name, k)
            for begins, k in folds.items()
            for name in (*SYSTEMS, NET)
        }
    )
    parts = {name: [cells[f"{begins}{name}"] for begins in folds] for name in (*SYSTEMS, NET)}
    trees = {
        name: {
            "curve": _mean_curve([one["curve"] for one in parts[name]]),
            "trees a round": max(one["trees a round"] for one in parts[name]),
        }
        for name in SYSTEMS
    }
    text = [
        f"{_described(study)} Test NDCG in percent (half width of the 95 % interval), after the "
        "best round or epoch of the validation data. The paper's figures are of Web-1: the order "
        "and the gaps compare, not the level.",
        systems_table(
            {name: pooled([one["values"] for one in parts[name]]) for name in parts}, PAPER_WEB
        ),
        best_rounds({name: parts[name] for name in SYSTEMS}),
        trees_needed(trees),
    ]
    title = "Accuracy against size (web data)"
    return Findings("\n\n".join(text), {"wu2010-figure2-web": accuracy_by_trees(trees, title)})


def _system(study: Study, name: str, fold: int) -> dict[str, Any]:
    """Train one of the systems; return its test values by query, and what a tree needs."""
    parts = web_parts(study, fold)
    if name != NET:
        return tree_result(name, parts, study.size(60, 1000), study.n_threads)
    train, valid, test = parts
    model = best_net(
        LambdaRank,
        train,
        valid,
        "ndcg@10",
        rates=NET_RATES,
        hidden=HIDDEN,
        n_epochs=study.size(20, 60),
        n_threads=study.n_threads,
    )
    return {
        "values": per_query(evaluate(model, test, MEASURES)),
        "rate": model.learning_rate,
        "best epoch": model.best_epoch_,
    }


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


def figure_3(study: Study) -> Findings:
    """The exact line search against the Newton step on web data, and its weights (Figure 4)."""
    folds = _folds(study)
    cells = study.cells(
        {
            f"{begins}{name}": (_stepped, STEPS[name], k)
            for begins, k in folds.items()
            for name in STEPS
        }
    )
    found: dict[str, dict[str, Any]] = {}
    for name in STEPS:
        parts = [cells[f"{begins}{name}"] for begins in folds]
        found[name] = {of: _mean_curve([part[of] for part in parts]) for of in ("test", "train")}
        found[name]["alpha"] = parts[0]["alpha"]  # a mean of weights is the weight of no tree
    baseline = found[BASELINE]["test"]
    text = [
        f"{_described(study)} Trees of {LEAVES} leaves; exact weights found on the validation "
        "queries, within 0.1 and 5 unless it says otherwise. Test NDCG@10 in percent after so "
        "many trees (Figure 3 b). In the paper the exact step needs 80 trees for what Newton's "
        "step at rate 0.1 needs 250 for.",
        by_trees(found),
        rounds_needed(found, levels(baseline[0], max(baseline), (0.5, 0.75, 0.9, 1.0))),
        f"The exact weights{', first fold' if len(folds) > 1 else ''} (Figure 4): median, least "
        "and largest of a stretch of rounds.",
        _weights(found),
    ]
    figures = {
        "wu2010-figure3-web": by_round(found, "test", "test NDCG@10", "Exact line search"),
        "wu2010-figure3-web-training": by_round(
            found, "train", "training NDCG@10", "Exact line search, training queries"
        ),
        "wu2010-figure4-web": weights_by_round(found),
    }
    return Findings("\n\n".join(text), figures)


def _stepped(study: Study, options: dict[str, Any], fold: int) -> dict[str, Any]:
    train, valid, test = web_parts(study, fold)
    watched = {"valid": valid, "test": test, "train": train}
    options = {"n_trees": study.size(60, 300), "n_leaves": LEAVES} | options
    return step_result(train, watched, study.n_threads, **options)


def _weights(found: dict[str, dict[str, Any]]) -> str:
    n_rounds = min(len(one["alpha"]) for one in found.values())
    ends = [end for end in (10, 25, 50, 100, 200) if end < n_rounds] + [n_rounds]
    stretches = list(zip([0, *ends[:-1]], ends, strict=True))
    rows = []
    for name, one in found.items():
        if "optimal" in name:
            parts = [np.array(one["alpha"][start:end]) for start, end in stretches]
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
