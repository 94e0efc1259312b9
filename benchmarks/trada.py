"""Adapting 300 trees to 40,000 rows against training 30 trees on them.

    python -m benchmarks.trada [--queries 1000] [--features 50] [--rounds 7] [--threads 1]

Both are whole calls of ``fit`` (including binning, checks and the report of changes), with trees of
12 leaves. Kernels are compiled before timing; contenders take turns, and the best round counts.
"""

from __future__ import annotations

import argparse

import rankgrove as rg
from benchmarks.timing import best_times

SHAPE = {"n_leaves": 12, "learning_rate": 0.05}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    threads = {"n_threads": args.threads}
    big, small = rg.make_domains(2000, args.queries, n_features=args.features, seed=1)
    print(f"{small!r}, {args.threads} thread(s)")
    for ranker, objective in ((rg.MART, "squared error"), (rg.LambdaMART, "lambdas")):
        base = ranker(n_trees=300, **SHAPE, **threads).fit(big)
        contenders = {
            "training 30 trees": lambda r=ranker: r(n_trees=30, **SHAPE, **threads).fit(small)
        }
        for tune in ("responses", "splits"):
            contenders[f"adapting 300, {tune}"] = lambda b=base, t=tune: rg.Trada(
                b, tune=t, **threads
            ).fit(small)
        best_times(contenders, 1)  # compiles
        best = best_times(contenders, args.rounds)
        trained = best["training 30 trees"]
        for name, seconds in best.items():
            print(f"  {objective:<14} {name:<24} {seconds:7.3f} s  {seconds / trained:5.2f}")


if __name__ == "__main__":
    main()
