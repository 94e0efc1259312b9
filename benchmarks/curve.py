"""Held-out NDCG@10 against seconds of training, ours and the peers': the picture of the README.

    python -m benchmarks.curve [--queries 3000] [--threads 2] [--out docs/assets/ndcg-time.svg]

The settings are those of `benchmarks.training`. Every point is a training of its own, from arrays
in memory to a model: binning is included, compiling of kernels is not. All contenders take turns,
and the best of two rounds counts.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import rankgrove as rg
from benchmarks.training import contenders, make

TREES = (10, 20, 40, 80, 160, 320)
SHOWN = {
    "rankgrove newton": "rankgrove",
    "LightGBM row-wise": "LightGBM",
    "XGBoost": "XGBoost",
    "CatBoost": "CatBoost",
}


def measured(n_queries: int, threads: int, rounds: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return seconds and NDCG@10 by number of trees, by contender."""
    train, test = make("web", n_queries, 136, 1), make("web", 2000, 136, 2)
    rg.LambdaMART(n_trees=2, n_threads=threads).fit(train.select(np.arange(50)))
    prepare = contenders(train, test, threads, 31)
    seconds: dict[str, np.ndarray] = {}
    quality: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, label in SHOWN.items():
            try:
                start = time.perf_counter()
                run = prepare[name]()
                before = time.perf_counter() - start
            except ImportError:
                print(f"{label} is not installed: left out")
                continue
            times = np.empty(len(TREES))
            values = np.empty(len(TREES))
            for i, n_trees in enumerate(TREES):
                start = time.perf_counter()
                predict = run(n_trees)
                times[i] = before + time.perf_counter() - start
                values[i] = rg.evaluate(predict(), test, "ndcg@10").mean["ndcg@10"]
            seconds[label] = np.minimum(times, seconds.get(label, np.inf))
            quality[label] = values
    return {label: (seconds[label], quality[label]) for label in seconds}


def draw(curves: dict[str, tuple[np.ndarray, np.ndarray]], path: Path) -> None:
    """Write the picture."""
    figure = rg.plot.curves(
        curves,
        "seconds of training",
        "NDCG@10 on held-out queries",
        "LambdaMART, 10 to 320 trees of 31 leaves",
        log_x=True,
    )
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200) if low <= t <= high]
    axes.set_xticks(ticks, labels=[f"{t:g}" for t in ticks])
    axes.set_xticks([], minor=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="picture to write (.svg, .png)")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    curves = measured(args.queries, args.threads, args.rounds)
    print("| trees | " + " | ".join(f"{name}, s | NDCG@10" for name in curves) + " |")
    print("|" + "---|" * (1 + 2 * len(curves)))
    for i, n_trees in enumerate(TREES):
        cells = [f"{s[i]:.2f} | {q[i]:.4f}" for s, q in curves.values()]
        print(f"| {n_trees} | " + " | ".join(cells) + " |")
    if args.out is not None:
        draw(curves, args.out)


if __name__ == "__main__":
    main()
