"""What validation data costs while training: ``python -m benchmarks.validation``.

Trains with and without validation data, in turns; the time per tree is the difference between many
trees and few. Then one tree is applied to the validation rows in two ways: by their bins, as
training does, and by the bit-vector scorer on the features.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times
from rankgrove.growth.partition import leaves_of
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring.score import score as score_ensemble


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--valid", type=int, default=3000)
    parser.add_argument("--trees", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    train, valid = rg.make_web(args.queries, seed=1), rg.make_web(args.valid, seed=2)
    print(f"training data: {train.n_rows:,} rows; validation data: {valid.n_rows:,} rows")
    few = args.trees // 5

    def fit(n_trees: int, with_valid: bool) -> Callable[[], rg.LambdaMART]:
        def run() -> rg.LambdaMART:
            model = rg.LambdaMART(n_trees=n_trees, n_threads=args.threads)
            return model.fit(train, valid=valid if with_valid else None)

        return run

    fit(2, True)()
    best = best_times(
        {f"{n} {v}": fit(n, v) for v in (False, True) for n in (few, args.trees)}, args.rounds
    )
    alone, both = (
        (best[f"{args.trees} {v}"] - best[f"{few} {v}"]) / (args.trees - few) for v in (False, True)
    )
    print(f"without validation {1000 * alone:.1f} ms per tree")
    print(f"with validation    {1000 * both:.1f} ms per tree, {both / alone:.2f} x")

    model = fit(3, False)()
    binned = model.bins(train).binner.transform(valid.features)
    tree = model.ensemble_.tree(1)
    one = replace(Ensemble.from_trees([tree], train.n_features))
    by_bins = best_times(
        {
            "by bins": lambda: tree.value[leaves_of(tree, binned, n_threads=args.threads)],
            "bit vectors": lambda: score_ensemble(one, valid.features, None, args.threads),
        },
        7,
    )
    assert np.array_equal(
        tree.value[leaves_of(tree, binned)], score_ensemble(one, valid.features, None, None)
    )
    for name, seconds in by_bins.items():
        print(f"one tree, {name:<12} {1e9 * seconds / valid.n_rows:6.1f} ns per row")
    start = time.perf_counter()
    rg.evaluate(np.zeros(valid.n_rows), valid, "ndcg@10")
    print(
        f"ranking and NDCG@10: {1e9 * (time.perf_counter() - start) / valid.n_rows:.1f} ns per row"
    )


if __name__ == "__main__":
    main()
