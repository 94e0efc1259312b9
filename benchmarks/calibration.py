"""Calibration error on held-out queries: ``python -m benchmarks.calibration``.

A LambdaMART is trained, calibrated on other queries, and measured on a third set, all generated
anew for every seed. Compared with scikit-learn's isotonic regression of the label on the score. All
methods are measured on the same bins, 15 of equal size by score: where predictions have steps, bins
by prediction would be larger and their error smaller by chance.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.isotonic import IsotonicRegression

import rankgrove as rg


def error(predicted: np.ndarray, observed: np.ndarray, bins: np.ndarray) -> float:
    """Return the expected calibration error as a share of the range of the observed values."""
    gaps = np.bincount(bins, predicted - observed)
    return float(np.abs(gaps).sum() / observed.size / np.ptp(observed))


def one(seed: int, sizes: tuple[int, int, int]) -> dict[str, list[float]]:
    """Return calibration error, mean squared error and seconds by method."""
    train, vali, test = (rg.make_web(n, 20, 30, seed=10 * seed + i) for i, n in enumerate(sizes))
    model = rg.LambdaMART("ndcg@10", n_trees=100, n_leaves=15).fit(train)
    learned, scores = model.predict(vali), model.predict(test)
    edges = np.quantile(scores, np.linspace(0, 1, 16)[1:-1])
    bins = np.searchsorted(edges, scores, side="right")
    figures = {}
    for method in ("isotonic", "sigmoid"):
        start = time.process_time()
        calibrated = rg.calibrate(model, vali, method=method)
        seconds = time.process_time() - start
        relevance = calibrated.predict_relevance(test)
        figures[method] = [
            error(relevance.expected, test.y, bins),
            float(np.mean((relevance.expected - test.y) ** 2)),
            *(error(relevance.at_least(g), (test.y >= g) * 1.0, bins) for g in (1, 2, 3, 4)),
            seconds,
        ]
    start = time.process_time()
    theirs = IsotonicRegression(out_of_bounds="clip").fit(learned, vali.y)
    predicted = theirs.predict(scores)
    above = [
        IsotonicRegression(out_of_bounds="clip").fit(learned, vali.y >= g).predict(scores)
        for g in (1, 2, 3, 4)
    ]
    seconds = time.process_time() - start
    figures["scikit-learn"] = [
        error(predicted, test.y, bins),
        float(np.mean((predicted - test.y) ** 2)),
        *(error(p, (test.y >= g) * 1.0, bins) for g, p in enumerate(above, 1)),
        seconds,
    ]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--queries", default="1000,2000,5000", help="to train, calibrate, test")
    args = parser.parse_args()
    train, vali, test = (int(n) for n in args.queries.split(","))
    runs = [one(seed, (train, vali, test)) for seed in range(1, args.seeds + 1)]
    print("| method | error, expected grade | worst seed | squared error | P(grade >= 1) | >= 2 "
          "| >= 3 | >= 4 | s |")  # fmt: skip
    print("|" + "---|" * 9)
    for method in runs[0]:
        values = np.array([run[method] for run in runs])
        mean = values.mean(axis=0)
        cells = [f"{mean[0]:.4f}", f"{values[:, 0].max():.4f}", f"{mean[1]:.4f}"]
        cells += [f"{v:.4f}" for v in mean[2:6]] + [f"{mean[6]:.2f}"]
        print(f"| {method} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
