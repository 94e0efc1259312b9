"""Rankers for few judged queries: ``python -m benchmarks.little_data``.

Web-like data is generated anew for every seed: 40 or 100 queries to train on, 500 to test on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import rankgrove as rg

SMALL = {"n_trees": 60, "n_leaves": 4}
SAMPLED = {"row_fraction": 0.7, "feature_fraction": 0.3}


def rankers(train: rg.QueryDataset, seed: int) -> dict[str, Callable[[], rg.Ranker]]:
    """Return how each ranker is trained, by name."""
    part, vali = rg.hold_out(train, 0.3, seed=seed)
    bag = rg.BaggedRanker(rg.LambdaMART(n_trees=60, n_leaves=7, **SAMPLED), n_models=20)
    return {
        "30 % held out, early stopping": lambda: rg.LambdaMART(n_trees=300, early_stopping=30).fit(
            part, valid=vali
        ),
        "60 trees of 31 leaves": lambda: rg.LambdaMART(n_trees=60).fit(train),
        "60 trees of 4 leaves": lambda: rg.LambdaMART(**SMALL).fit(train),
        "the same with `smoothing=1`": lambda: rg.LambdaMART(**SMALL, smoothing=1.0).fit(train),
        "bag of 20 models": lambda: bag.fit(train),
        "coordinate ascent": lambda: rg.CoordinateAscent("ndcg@10", n_restarts=2).fit(train),
        "RankSVM": lambda: rg.RankSVM().fit(train),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--queries", type=int, nargs="*", default=[40, 100])
    args = parser.parse_args()
    print("| queries | ranker | NDCG@10 | lowest, highest | s |\n|---|---|---|---|---|")
    for queries in args.queries:
        values: dict[str, list[float]] = {}
        seconds: dict[str, list[float]] = {}
        for seed in range(1, args.seeds + 1):
            train, test = (
                rg.make_web(n, n_docs=20, n_features=30, seed=10 * seed + more)
                for n, more in ((queries, 0), (500, 3))
            )
            for name, fit in rankers(train, seed).items():
                start = time.process_time()
                model = fit()
                seconds.setdefault(name, []).append(time.process_time() - start)
                value = rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"]
                values.setdefault(name, []).append(value)
        for name, all_values in values.items():
            span = f"{min(all_values):.3f}, {max(all_values):.3f}"
            figures = f"{np.mean(all_values):.3f} | {span} | {np.median(seconds[name]):.1f}"
            print(f"| {queries} | {name} | {figures} |")


if __name__ == "__main__":
    main()
