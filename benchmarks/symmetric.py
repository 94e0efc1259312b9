"""Symmetric against leafwise trees, in processor time: ``python -m benchmarks.symmetric``.

LambdaMART (Newton splits; binning included) and growth alone (no lambdas) on 1,000 web-like
queries, one thread, both growths in turn, without compilation; the best of several rounds counts.
The limit of leaves is the same for both; symmetric trees may have fewer, so the leaves that they
have are printed. Then the time of scoring, by tree. ``benchmarks.learners`` compares quality.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios
from rankgrove.data.binning import Binner
from rankgrove.growth.grower import Grower
from rankgrove.growth.splitting import GROWTHS


def grow(grower: Grower, data: rg.QueryDataset, n_trees: int) -> None:
    gradient = data.y + np.random.default_rng(0).normal(size=data.n_rows)
    for round in range(n_trees):
        grower.grow(gradient, np.ones(data.n_rows), round)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    data = rg.make_web(args.queries, seed=1)
    binned = Binner.fit(data.features, n_threads=1).transform(data.features, n_threads=1)
    print(f"{data.n_rows:,} rows x {data.n_features} features, one thread, processor time")
    for n_leaves in (16, 32, 64):
        rankers = {
            growth: rg.LambdaMART(
                n_trees=args.trees, n_leaves=n_leaves, growth=growth, n_threads=1
            ).fit(data)
            for growth in GROWTHS
        }
        growers = {
            growth: Grower(
                binned, n_leaves=n_leaves, growth=growth, split="newton", min_leaf=20, n_threads=1
            )
            for growth in GROWTHS
        }
        sizes = [f"{r.ensemble_.n_leaves / args.trees:.1f} {g}" for g, r in rankers.items()]
        print(f"\n{n_leaves} leaves at most; mean leaves per tree: {', '.join(sizes)}")
        contenders: dict[str, dict[str, Callable[[], object]]] = {
            "LambdaMART.fit": {g: partial(r.fit, data) for g, r in rankers.items()},
            "growth alone": {
                g: partial(grow, grower, data, args.trees) for g, grower in growers.items()
            },
            "predict": {g: partial(r.predict, data, n_threads=1) for g, r in rankers.items()},
        }
        for name, works in contenders.items():
            best = best_times(works, args.rounds, time.process_time)
            per_tree = {growth: seconds / args.trees for growth, seconds in best.items()}
            print(f"{name}, per tree")
            print_ratios(per_tree, GROWTHS[0])


if __name__ == "__main__":
    main()
