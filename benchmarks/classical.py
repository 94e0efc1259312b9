"""Classical rankers: training time on data of MQ2007's size; sums by label against lists of pairs.

    python -m benchmarks.classical [--queries 1700] [--rounds 3] [--threads 1]

1,700 queries of about 41 documents, 46 features (generated): seconds of wall time, and of processor
time, which depends less on other work on the machine. RankBoost's pair weights are products of one
factor per document, so that sums by label suffice; the second part times one round of potentials
against a NumPy loop over queries that lists every pair, as the algorithm is usually written. Both
must give the same potentials before they are timed.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios
from rankgrove.objectives.label_pairs import ExponentialPairs, LabelPairs


def listed_potentials(data: rg.QueryDataset, scores: np.ndarray) -> np.ndarray:
    """Return RankBoost's potentials by listing the pairs of every query."""
    potentials = np.zeros(data.n_rows)
    for a, b in pairwise(data.query_ptr):
        y, f = data.y[a:b], scores[a:b]
        weight = np.where(y[:, None] > y[None, :], np.exp(f[None, :] - f[:, None]), 0.0)
        potentials[a:b] = weight.sum(axis=1) - weight.sum(axis=0)
    return potentials


def main() -> None:
    """Time everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1700)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    data = rg.make_web(args.queries, n_docs=41, n_features=46, seed=1)
    print(repr(data))
    rankers = {
        "RankBoost, 300 rounds, all thresholds": rg.RankBoost(),
        "RankBoost, 300 rounds, 10 thresholds": rg.RankBoost(n_thresholds=10),
        "AdaRank for MAP": rg.AdaRank("map"),
        "AdaRank for MAP, paper's, 500 rounds": rg.AdaRank("map", update="latest", tolerance=1.0),
        "FRank, 50 rounds": rg.FRank(n_trees=50),
        "GBRank, 50 trees": rg.GBRank(n_trees=50),
        "RandomForest, 50 trees": rg.RandomForest(n_trees=50),
    }
    small = rg.make_web(20, n_docs=20, n_features=46, seed=2)
    for ranker in rankers.values():  # compiles the kernels
        ranker.set_params(n_threads=args.threads).fit(small)
    for name, ranker in rankers.items():
        wall, used = [], []
        for _ in range(args.rounds):
            began = time.perf_counter(), time.process_time()
            ranker.fit(data)
            wall.append(time.perf_counter() - began[0])
            used.append(time.process_time() - began[1])
        print(f"  {name:<38} {min(wall):7.2f} s, {min(used):6.2f} s of processor", flush=True)

    scores = np.random.default_rng(0).normal(size=data.n_rows)
    objective = ExponentialPairs(LabelPairs(data.y, data.query_ptr))
    gradient, hessian = np.empty((2, data.n_rows))
    objective.gradients(scores, gradient, hessian, n_threads=1)
    expected = listed_potentials(data, scores)
    top = np.abs(expected).max()
    np.testing.assert_allclose(
        gradient / np.abs(gradient).max(), expected / top, atol=1e-12, rtol=1e-9
    )
    print(f"potentials of {int(objective.pairs.counts.sum()):,} pairs, one round, one thread:")
    best = best_times(
        {
            "rankgrove": lambda: objective.gradients(scores, gradient, hessian, n_threads=1),
            "NumPy, pairs listed": lambda: listed_potentials(data, scores),
        },
        args.rounds,
    )
    print_ratios(best, "rankgrove")


if __name__ == "__main__":
    main()
