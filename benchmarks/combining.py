"""The exact best weight of two rankers, against evaluating a grid of 100 weights.

10,000 queries of 50 documents; both use rankgrove's kernels and the same threads. The sweep finds
the best of all weights and the whole curve, the grid only the best of its 100 weights.

    python -m benchmarks.combining [--queries 10000] [--docs 50] [--measures ndcg@10,map,err]
"""

from __future__ import annotations

import argparse

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios
from rankgrove.measures.base import exact_mean, rank
from rankgrove.sweep.sweep import combine_scores, sweep

SKEWED = [0.52, 0.33, 0.105, 0.035, 0.01]  # labels of web judgements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--docs", type=int, default=50)
    parser.add_argument("--measures", default="ndcg@10,ndcg,map,err")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    n = args.queries * args.docs
    labels = rng.choice(5, n, p=SKEWED).astype(float)
    a, b = 0.5 * labels + rng.normal(size=(2, n))
    leaves = 0.1 * rng.choice(rng.normal(size=31), n)  # a tree of 31 leaves: a line search
    ptr = np.arange(args.queries + 1) * args.docs
    for name in args.measures.split(","):
        prepared = rg.measure(name).prepare(labels, ptr)
        results: dict[str, float] = {}

        def exact(prepared=prepared, results=results) -> None:
            result = sweep(prepared, a, b, n_threads=args.threads)
            results["exact"], results["crossings"] = result.value, result.n_crossings

        def grid(prepared=prepared, results=results) -> None:
            values = []
            for alpha in np.linspace(0.0, 1.0, 100).tolist():
                ranking = rank(combine_scores(a, b, alpha, "convex"), ptr, args.threads)
                values.append(exact_mean(prepared.values(ranking, args.threads)))
            results["grid"] = max(values)

        def line_search(prepared=prepared) -> None:
            sweep(
                prepared,
                a,
                leaves,
                form="additive",
                low=0.1,
                high=100.0,
                keep_curve=False,
                n_threads=args.threads,
            )

        contenders = {"exact": exact, "grid of 100": grid, "exact, of a tree": line_search}
        for work in contenders.values():
            work()  # compilation
        best = best_times(contenders, args.rounds)
        print(
            f"{name}, {args.queries:,} queries of {args.docs}: {results['crossings']:,.0f} "
            f"crossings; best {results['exact']:.6f}, of the grid {results['grid']:.6f}"
        )
        print_ratios(best, "exact")


if __name__ == "__main__":
    main()
