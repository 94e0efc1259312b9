"""The study behind the defaults of RankBoost, AdaRank and CRR.

    python -m benchmarks.classical_defaults --data FOLDER [--ranker crr] [--every 1]

Test parts are not used. In every fold of MQ2008 and OHSUMED, the four parts for training and
validation form four inner folds: two parts train, the third chooses the number of rounds by MAP,
the fourth evaluates (convention `letor`). That is 20 runs per candidate and collection.

The rule: the candidate with the largest MAP is chosen for a ranker. MAP is averaged over the runs,
then over targets and collections with equal weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rankgrove as rg
from rankgrove.evaluation.significance import paired_t

MEASURES = ["map", "ndcg@1", "meanndcg"]
SETTINGS: dict[str, dict[str, Any]] = {
    "rankboost": {
        "10 thresholds": rg.RankBoost(n_thresholds=10),
        "all thresholds": rg.RankBoost(),
    },
    "adarank": {
        f"{target}, {update}, tolerance {tolerance}, scaling {scaling}": rg.AdaRank(
            target, 150, update, tolerance, scaling=scaling, early_stopping=40
        )
        for target in ("map", "ndcg")
        for update in ("latest", "cumulative")
        for tolerance in (0.002, None)
        for scaling in ("standard", None)
    },
    "crr": {
        f"l2 {l2}, rate {rate}, pairs {pairs}": rg.CRR(l2=l2, learning_rate=rate, pairs=pairs)
        for l2, rate, pairs in (
            (1e-4, 0.001, "all"),
            (0.1, 0.001, "all"),
            (0.1, 0.003, "all"),
            (0.3, 0.001, "all"),
            (0.3, 0.003, "all"),
            (0.3, 0.01, "all"),
            (1.0, 0.001, "all"),
            (1.0, 0.003, "all"),
            (3.0, 0.001, "all"),
            (0.3, 0.003, "query"),
        )
    },
}


def inner_folds(parts: list[rg.QueryDataset]) -> Iterator[Any]:
    """Yield the inner folds of every published fold, without its test part."""
    for k in range(len(parts)):
        yield from rg.letor_folds([parts[(k + i) % len(parts)] for i in range(len(parts) - 1)])


def main() -> None:
    """Evaluate and print every candidate, with the p-value of its difference to the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ranker", choices=SETTINGS, action="append")
    parser.add_argument("--every", type=int, default=1, help="take every n-th inner fold only")
    options = parser.parse_args()
    for name in ("mq2008", "ohsumed"):
        files = sorted((options.data / name).glob("S[1-5].txt*"))
        width = max(rg.read_letor(file).n_features for file in files)
        parts = [rg.read_letor(file, n_features=width) for file in files]
        folds = list(inner_folds(parts))[:: options.every]
        for kind in options.ranker or SETTINGS:
            first = None
            for label, ranker in SETTINGS[kind].items():
                values = np.array([_measured(ranker, fold) for fold in folds])
                first = values if first is None else first
                means = ", ".join(
                    f"{m} {v:.4f}" for m, v in zip(MEASURES, values.mean(0), strict=True)
                )
                p = paired_t(values[:, 0] - first[:, 0]) if values is not first else 1.0
                print(f"{name}, {kind}, {label}: {means}, p over runs {p:.3f}", flush=True)


def _measured(ranker: Any, fold: Any) -> list[float]:
    ranker.set_params(n_threads=1).fit(fold.train, valid=fold.valid, valid_measures="map")
    mean = rg.evaluate(ranker, fold.test, MEASURES, "letor").mean
    return [mean[m] for m in MEASURES]


if __name__ == "__main__":
    main()
