"""Linear rankers on data of MQ2007's size: 70,000 rows of 46 features.

    python -m benchmarks.linear [--queries 1700] [--docs 41] [--features 46] [--peer-queries 300]
                                [--only CoordinateAscent]

Coordinate ascent with exact search is compared with its search by steps, and RankSVM with LIBLINEAR
on explicit pairs (of fewer queries, because these take much memory). The goal for coordinate ascent
is a minute on two cores.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from sklearn.svm import LinearSVC

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios

RANKERS = {
    "CoordinateAscent, exact": lambda: rg.CoordinateAscent(),
    "CoordinateAscent, steps": lambda: rg.CoordinateAscent(search="steps"),
    "RankSVM": lambda: rg.RankSVM(),
    "RankSVM, C = 100": lambda: rg.RankSVM(C=100.0),
    "SmoothRank": lambda: rg.SmoothRank(),
    "ListNet, 100 epochs": lambda: rg.ListNet(),
    "CRR, 50 epochs": lambda: rg.CRR(),
}


def differences(data: rg.QueryDataset) -> np.ndarray:
    """Return the feature differences of all pairs with unequal labels, better minus worse."""
    X, y = data.grouped(np.asarray(data.X, np.float64)), data.grouped(data.y)
    ends = list(itertools.pairwise(data.query_ptr.tolist()))
    used = np.repeat([np.ptp(y[a:b]) > 0 for a, b in ends], np.diff(data.query_ptr))
    deviation = X[used].std(axis=0)
    X = np.divide(X, deviation, out=np.zeros_like(X), where=deviation > 0)
    parts = []
    for a, b in ends:
        better, worse = np.nonzero(y[a:b, None] > y[None, a:b])
        parts.append(X[a + better] - X[a + worse])
    return np.concatenate(parts)


def against_liblinear(data: rg.QueryDataset, C: float = 1.0) -> None:
    """Time RankSVM and LIBLINEAR on the same pairs, and print both objectives."""
    models: dict[str, np.ndarray] = {}

    def ours() -> None:
        models["ours"] = rg.RankSVM(C=C).fit(data).coef_

    def peer() -> None:
        pairs = differences(data)
        signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
        svm = LinearSVC(C=C / len(pairs), loss="hinge", fit_intercept=False, tol=1e-3)
        models["peer"] = svm.fit(signs[:, None] * pairs, signs).coef_[0]

    best = best_times({"RankSVM": ours, "LIBLINEAR on pairs": peer}, 3)
    pairs = differences(data)
    print(f"RankSVM on {data.n_rows:,} rows, {len(pairs):,} pairs, C = {C:g}")
    print_ratios(best, "RankSVM")
    for name, w in models.items():
        value = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - pairs @ w).mean()
        print(f"  objective of {name}: {value:.5f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1700)
    parser.add_argument("--docs", type=int, default=41)
    parser.add_argument("--features", type=int, default=46)
    parser.add_argument("--peer-queries", type=int, default=300)
    parser.add_argument("--only", default="", help="rankers whose name contains this")
    args = parser.parse_args()
    rankers = {name: make for name, make in RANKERS.items() if args.only in name}
    sizes = {"n_docs": args.docs, "n_features": args.features}
    data = rg.make_web(args.queries, seed=1, **sizes)
    test = rg.make_web(args.queries // 2, seed=2, **sizes)
    few = rg.make_web(args.peer_queries, seed=3, **sizes)
    for make in rankers.values():  # compile
        make().fit(few.select(np.arange(5)))
    print(repr(data))
    for name, make in rankers.items():
        start, work = time.perf_counter(), time.process_time()
        model = make().fit(data)
        seconds, work = time.perf_counter() - start, time.process_time() - work
        trained, held = (rg.evaluate(model, d, "ndcg@10").mean["ndcg@10"] for d in (data, test))
        print(
            f"  {name:<24} {seconds:7.2f} s, {work:7.2f} s of processors  "
            f"NDCG@10 {trained:.4f}, held out {held:.4f}",
            flush=True,
        )
    if not args.only:
        against_liblinear(few)


if __name__ == "__main__":
    main()
