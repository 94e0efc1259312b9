"""How good is AutoRanker's estimate? Its nested value against the value on new queries.

    python -m benchmarks.auto_estimate [--draws 30] [--fits 60] [--queries 60]

Two kinds of data, a new draw every time: labels of pure noise (two grades, MAP), where nothing can
be learned and the value on new queries is that of a random order, and web-like data (NDCG@10),
where the trained model is measured on 2,000 new queries. All queries have 20 documents. Printed are
the mean of estimate minus truth with its standard error, and in how many draws the 95 % interval
holds the truth. One thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import rankgrove as rg


def noise(n_queries: int, draw: int) -> rg.QueryDataset:
    rng = np.random.default_rng(7000 + draw)
    n = 20 * n_queries
    X = rng.normal(size=(n, 10)).astype(np.float32)
    y = (rng.random(n) < 0.2).astype(float)
    return rg.QueryDataset(X, y, qid=np.repeat(np.arange(n_queries), 20))


def random_order(data: rg.QueryDataset, measure: str) -> float:
    """Return the expected value of a random order: that of equal scores."""
    expected = f"{measure}[ties=expected]"
    means = rg.evaluate(np.zeros(data.n_rows), data, expected).mean
    return float(next(iter(means.values())))


def web(n_queries: int, seed: int) -> rg.QueryDataset:
    return rg.make_web(n_queries, n_docs=20, n_features=20, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--fits", type=int, default=60)
    parser.add_argument("--queries", type=int, default=60)
    args = parser.parse_args()
    sets = {
        "noise": ("map", lambda draw: noise(args.queries, draw), noise(4000, -1)),
        "web": ("ndcg@10", lambda draw: web(args.queries, 8000 + draw), web(2000, 99)),
    }
    for name, (measure, make, new) in sets.items():
        began = time.perf_counter()
        differences, held = [], []
        for draw in range(args.draws):
            best = rg.AutoRanker(measure, n_fits=args.fits, random_state=draw, n_threads=1).fit(
                make(draw)
            )
            if name == "noise":
                truth = random_order(new, measure)
            else:
                truth = float(rg.evaluate(best, new, measure).mean[measure])
            low, high = best.interval_
            differences.append(best.value_ - truth)
            held.append(low <= truth <= high)
        error = np.std(differences, ddof=1) / np.sqrt(args.draws)
        print(
            f"{name}, {measure}, {args.draws} draws: estimate - truth {np.mean(differences):+.4f} "
            f"(standard error {error:.4f}), interval held in {100 * np.mean(held):.0f} %, "
            f"{time.perf_counter() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
