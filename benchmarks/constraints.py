"""Trees with and without constraints, in processor time: ``python -m benchmarks.constraints``.

Growth alone (no lambdas) and LambdaMART (binning included) on web-like queries, one thread, all
contenders in turn, without compilation; the best of several rounds counts. Every third feature has
a direction, that of its correlation with the label, so that most leaves have bounds; or features
may meet in two halves. The leaves of the trees are printed: constraints may leave fewer.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times
from rankgrove.data.binning import Binner
from rankgrove.growth.constraints import Constraints
from rankgrove.growth.grower import Grower
from rankgrove.growth.splitting import CRITERIA, GROWTHS

FREE = "no constraints"


def directions(data: rg.QueryDataset) -> dict[int, int]:
    """Return column -> sign of the correlation with the label, for every third column."""
    labels = data.y - data.y.mean()
    signs = {j: int(np.sign(labels @ data.column(j + 1))) for j in range(0, data.n_features, 3)}
    return {column: sign for column, sign in signs.items() if sign}


def grow(grower: Grower, gradients: list[np.ndarray], hessian: np.ndarray) -> int:
    """Grow one tree on every gradient; return the number of leaves."""
    return sum(grower.grow(g, hessian, k)[0].n_leaves for k, g in enumerate(gradients))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--leaves", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    data = rg.make_web(args.queries, n_features=args.features, seed=1)
    binned = Binner.fit(data.features, n_threads=1).transform(data.features, n_threads=1)
    signs = directions(data)
    half = data.n_features // 2
    halves = (frozenset(range(half)), frozenset(range(half, data.n_features)))
    kinds = {
        FREE: Constraints(),
        f"monotone, {len(signs)} features": Constraints(signs),
        "interactions, 2 groups": Constraints(groups=halves),
    }
    rng = np.random.default_rng(0)
    gradients = [data.y + rng.normal(size=data.n_rows) for _ in range(args.trees)]
    hessian = 0.5 + rng.random(data.n_rows)
    print(f"{data.n_rows:,} rows x {data.n_features} features, one thread, processor time per tree")
    for growth in GROWTHS:
        for split in CRITERIA:
            rules = {"n_leaves": args.leaves, "growth": growth, "split": split, "min_leaf": 20}
            growers = {
                name: Grower(binned, n_threads=1, constraints=kind, **rules)
                for name, kind in kinds.items()
            }
            works = {name: partial(grow, g, gradients, hessian) for name, g in growers.items()}
            leaves = {name: work() / args.trees for name, work in works.items()}
            show(f"{growth}, {split}", works, leaves, args)
    named = {
        FREE: {},
        f"monotone, {len(signs)} features": {"monotone": {j + 1: s for j, s in signs.items()}},
    }
    rankers = {
        name: rg.LambdaMART(n_trees=args.trees, n_leaves=args.leaves, n_threads=1, **constraints)
        for name, constraints in named.items()
    }
    leaves = {n: r.fit(data).ensemble_.n_leaves / args.trees for n, r in rankers.items()}
    works = {name: partial(ranker.fit, data) for name, ranker in rankers.items()}
    show("LambdaMART.fit", works, leaves, args)


def show(title: str, works: dict, leaves: dict[str, float], args: argparse.Namespace) -> None:
    """Time contenders in turn, and print their times with the ratio to the first."""
    best = best_times(works, args.rounds, time.process_time)
    print(title)
    for name, seconds in best.items():
        milliseconds, ratio = 1e3 * seconds / args.trees, seconds / best[FREE]
        print(f"  {name:<24} {milliseconds:8.3f} ms  {ratio:5.3f}  ({leaves[name]:.1f} leaves)")


if __name__ == "__main__":
    main()
