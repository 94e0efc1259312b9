"""The exact best weight of two rankers, against evaluating a grid of 100 weights.

10,000 queries of 50 documents; both use our own kernels and the same threads. The sweep finds the
best of all weights and the whole curve, the grid the best of its 100.

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
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    n = given.queries * given.docs
    labels = rng.choice(5, n, p=SKEWED).astype(float)
    a, b = 0.5 * labels + rng.normal(size=(2, n))
    leaves = 0.1 * rng.choice(rng.normal(size=31), n)  # a tree of 31 leaves: a line search
    ptr = np.arange(given.queries + 1) * given.docs
    for name in given.measures.split(","):
        prepared = rg.measure(name).prepare(labels, ptr)
        found: dict[str, float] = {}

        def exact(prepared=prepared, found=found) -> None:
            result = sweep(prepared, a, b, n_threads=given.threads)
            found["exact"], found["crossings"] = result.value, result.n_crossings

        def grid(prepared=prepared, found=found) -> None:
            values = []
            for alpha in np.linspace(0.0, 1.0, 100).tolist():
                ranking = rank(combine_scores(a, b, alpha, "convex"), ptr, given.threads)
                values.append(exact_mean(prepared.values(ranking, given.threads)))
            found["grid"] = max(values)

        def line_search(prepared=prepared) -> None:
            sweep(
                prepared,
                a,
                leaves,
                form="additive",
                low=0.1,
                high=100.0,
                keep_curve=False,
                n_threads=given.threads,
            )

        contenders = {"exact": exact, "grid of 100": grid, "exact, of a tree": line_search}
        for work in contenders.values():
            work()  # compilation
        best = best_times(contenders, given.rounds)
        print(
            f"{name}, {given.queries:,} queries of {given.docs}: {found['crossings']:,.0f} "
            f"crossings; best {found['exact']:.6f}, of the grid {found['grid']:.6f}"
        )
        print_ratios(best, "exact")


if __name__ == "__main__":
    main()
