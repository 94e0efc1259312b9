"""Scoring by trees that test sets of categories, against trees of the same size with thresholds.

LightGBM trains two models on generated data: in one, some features are categories; in the other,
each of these is a number instead, the category's effect with some noise. Both are scored by
rankgrove and by LightGBM, in one thread, measured in processor time. Training and compiling is not
timed.

    python -m benchmarks.categories_scoring [--trees 300] [--leaves 31] [--categories 100]
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import best_times
from rankgrove.formats.foreign import TreeParts
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring.score import score
from rankgrove.scoring.scorer import Scorer

QUERY = 100  # documents
MOST = 1.3  # times the time of thresholds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--categories", type=int, default=100, help="of every categorical feature")
    parser.add_argument("--features", type=int, default=60)
    parser.add_argument("--categorical", type=int, default=2, help="how many of the features")
    parser.add_argument("--rows", type=int, default=20_000, help="to train on")
    parser.add_argument("--docs", type=int, default=5_000, help="to score")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with_sets, numeric, y = generated(args)
    boosters = {
        "sets": trained(with_sets, y, args, list(range(args.categorical))),
        "thresholds": trained(numeric, y, args, []),
    }
    docs = {"sets": with_sets[: args.docs], "thresholds": numeric[: args.docs]}
    trees = {kind: lightgbm_trees(booster, args.features) for kind, booster in boosters.items()}
    for kind, one in trees.items():
        of_sets = one.set_of >= 0
        print(
            f"{kind}: {one.n_trees} trees, {one.feature.size:,} nodes, {of_sets.mean():.0%} test "
            f"{np.unique(one.set_of[of_sets]).size:,} sets; scores differ from LightGBM's by "
            f"{check(one, boosters[kind], docs[kind]):.0e}"
        )
    measure(trees, boosters, docs, args)


def generated(args: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features with categories, the same with numbers instead, and labels."""
    rng = np.random.default_rng(1)
    numeric = rng.normal(size=(args.rows, args.features)).astype(np.float32)
    with_sets = numeric.copy()
    y = np.sin(2 * numeric[:, args.categorical :]).sum(axis=1) + rng.normal(size=args.rows)
    for j in range(args.categorical):
        code = np.minimum(rng.geometric(4 / args.categories, args.rows), args.categories) - 1
        effect = rng.normal(size=args.categories)
        with_sets[:, j] = code
        numeric[:, j] = effect[code] + 0.1 * numeric[:, j]
        y += effect[code] * (1.0 + 0.5 * numeric[:, args.categorical + j % 3])
    return with_sets, numeric, y


def trained(X: np.ndarray, y: np.ndarray, args: argparse.Namespace, categorical: list[int]) -> Any:
    import lightgbm

    data = lightgbm.Dataset(X, y, categorical_feature=categorical)
    parameters = {"num_leaves": args.leaves, "verbose": -1, "num_threads": 1}
    return lightgbm.train(parameters, data, args.trees)


def lightgbm_trees(booster: Any, n_features: int) -> Ensemble:
    """Return the trees of a LightGBM model."""
    trees = []
    for tree in booster.dump_model()["tree_info"]:
        parts = TreeParts()
        waiting = [(None, tree["tree_structure"])]
        while waiting:
            place, node = waiting.pop()
            if "leaf_value" in node:
                parts.leaf(place, node["leaf_value"], count=node.get("leaf_count", 0))
                continue
            test, codes = node["threshold"], None
            if node["decision_type"] == "==":
                test, codes = 0.0, [int(code) for code in test.split("||")]
            number = parts.split(place, node["split_feature"], test, node["default_left"], codes)
            waiting += [
                ((number, left), node[f"{'left' if left else 'right'}_child"])
                for left in (True, False)
            ]
        trees.append(parts.tree())
    return Ensemble.from_trees(trees, n_features)


def check(trees: Ensemble, booster: Any, X: np.ndarray) -> float:
    expected = booster.predict(X, num_threads=1)
    return float(abs(score(trees, X, n_threads=1, scorer="lanes") - expected).max())


def measure(trees: Any, boosters: Any, docs: Any, args: argparse.Namespace) -> None:
    scorers = {kind: Scorer(one) for kind, one in trees.items()}
    queries = {
        kind: [X[i : i + QUERY] for i in range(0, len(X), QUERY)] for kind, X in docs.items()
    }

    def one_by_one(kind: str) -> None:
        for query in queries[kind]:
            scorers[kind].predict(query)

    def tops(kind: str) -> None:
        for first in range(0, len(docs[kind]), 1000):
            scorers[kind].top(docs[kind][first : first + 1000], 10)

    def batch(scorer: str, kind: str) -> None:
        score(trees[kind], docs[kind], n_threads=1, scorer=scorer)

    ways = {
        "rankgrove, batch": partial(batch, "lanes"),
        f"rankgrove, queries of {QUERY}": one_by_one,
        "rankgrove, top 10 of 1,000": tops,
        "rankgrove, walk": partial(batch, "walk"),
        "LightGBM": lambda kind: boosters[kind].predict(docs[kind], raw_score=True, num_threads=1),
    }
    print(f"{'ns per document':<30}{'thresholds':>12}{'sets':>12}{'ratio':>8}")
    for name, way in ways.items():
        rounds = args.rounds if "rankgrove" in name else 2
        contenders = {kind: partial(way, kind) for kind in ("thresholds", "sets")}
        best_times(contenders, 1)  # compiles
        best = best_times(contenders, rounds, time.process_time)
        ratio = best["sets"] / best["thresholds"]
        a_doc = [1e9 * best[kind] / args.docs for kind in ("thresholds", "sets")]
        print(f"{name:<30}{a_doc[0]:12.0f}{a_doc[1]:12.0f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
