"""Batches on one and two threads, in wall time: ``python -m benchmarks.batches [--threads 2]``.

``LambdaMART.predict`` on arrays of float32, on data sets, and on arrays of float64 (which are
converted first), from 1,000 to 300,000 documents of 136 features; the best of interleaved rounds.
Other work on the machine's cores makes the figures of two threads meaningless.
"""

from __future__ import annotations

import argparse

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    data = rg.make_web(300, 100, 136, seed=1)
    model = rg.LambdaMART(n_trees=500, n_leaves=32).fit(data)
    print(f"| documents | form | 1 thread, ms | {args.threads} threads, ms | faster by |")
    print("|---|---|---|---|---|")
    for n in SIZES:
        X = np.ascontiguousarray(np.tile(data.X, (n // data.n_rows + 1, 1))[:n])
        forms = {
            "float32": X,
            "data set": rg.QueryDataset(X, np.zeros(n), np.arange(n) // 100),
            "float64": X.astype(np.float64),
        }
        for name, features in forms.items():
            contenders = {
                str(k): lambda k=k, features=features: model.predict(features, n_threads=k)
                for k in (1, args.threads)
            }
            best = best_times(contenders, args.rounds)
            one, many = best["1"], best[str(args.threads)]
            print(f"| {n:,} | {name} | {one * 1e3:.2f} | {many * 1e3:.2f} | {one / many:.2f} |")


if __name__ == "__main__":
    main()
