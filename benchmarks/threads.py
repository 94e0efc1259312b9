"""What more threads than this machine has would give: a simulation from measured parts.

    python -m benchmarks.threads [--queries 6000] [--trees 20] [--threads 1,2,4,8,16,32,64]

Trains on one thread and records how long every step of a tree takes: lambdas, quantising, the rows
and the search of every split, sums of leaves, adding to the scores. What is left is serial: Python
between the steps. For p threads, every step takes its time divided by p, but not less than that of
its largest piece (a query, a piece of rows, a block of eight features), plus what a parallel region
costs; steps below the limit of `regions.py` stay on one thread. Rows are also limited by memory,
`--bandwidth` bytes per second for all threads together. The line for two threads is also measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rankgrove as rg
from rankgrove.boosting import local_rows
from rankgrove.growth import frontier
from rankgrove.growth.local_row_source import (
    LEAST_ROWS_OF_PIECE,
    PIECES_PER_THREAD,
    LocalRowSource,
)
from rankgrove.growth.regions import LEAST_NS

REGION = 10e-6  # seconds to enter a region with two threads, measured; it grows with log2(p)


@dataclass
class Step:
    """One step that was taken: its seconds, into how many pieces it can be cut, and its bytes."""

    name: str
    seconds: float
    pieces: float
    n_bytes: float = 0.0


@dataclass
class Recorder:
    """Records the steps of training on one thread."""

    width: int
    steps: list[Step] = field(default_factory=list)
    search: float = 0.0  # seconds of the search of one leaf

    def timed(self, owner: Any, name: str, note: Callable[..., Step | None]) -> None:
        """Replace a method by one that records it."""
        method = getattr(owner, name)

        def recorded(*arguments: Any, **more: Any) -> Any:
            start = time.perf_counter()
            result = method(*arguments, **more)
            step = note(time.perf_counter() - start, *arguments)
            if step is not None:
                self.steps.append(step)
            return result

        setattr(owner, name, recorded)

    def rows(self, name: str, n_bytes: int) -> Callable[..., Step]:
        """Return a note of a step over all rows, of which each takes some bytes."""

        def note(seconds: float, source: Any, *_: Any) -> Step:
            n = source.n_chosen
            return Step(name, seconds, n / LEAST_ROWS_OF_PIECE, n * n_bytes)

        return note

    def count(self, seconds: float, source: Any, leaf: Any, *_: Any) -> Step:
        """Note the histogram of a leaf."""
        return Step(
            "histograms", seconds, leaf.count / LEAST_ROWS_OF_PIECE, leaf.count * self.width
        )

    def split(self, seconds: float, source: Any, parent: Any, split: Any, *rest: Any) -> None:
        """Note a split: its rows and its search."""
        searched = self.search * int(rest[-1].scan.sum())
        self.steps.append(Step("search", searched, self.width / 8))
        small = min(split.left_count, parent.count - split.left_count)
        n_bytes = parent.count * 13 + small * (self.width + 8)
        left = max(seconds - searched, 0.0)
        pieces = parent.count / LEAST_ROWS_OF_PIECE
        self.steps.append(Step("rows of splits", left, pieces, n_bytes))


def simulated(
    steps: list[Step], n_trees: int, serial: float, p: int, bandwidth: float
) -> dict[str, float]:
    """Return the seconds of a tree by kind of step, for p threads."""
    total = {"serial": serial}
    for step in steps:
        parallel = step.seconds
        if p > 1 and step.seconds * (1 - 1 / p) > LEAST_NS * 1e-9:
            pieces = min(max(1.0, step.pieces), PIECES_PER_THREAD * p)
            turns = np.ceil(pieces / p)  # of the busiest thread
            parallel = max(step.seconds * turns / pieces, step.n_bytes / bandwidth)
            parallel += REGION * np.log2(p)
        total[step.name] = total.get(step.name, 0.0) + parallel / n_trees
    return total


def record(data: rg.QueryDataset, n_trees: int) -> tuple[list[Step], float]:
    """Return the steps of all trees, and the serial seconds of a tree."""
    width = int(rg.LambdaMART().bins(data).codes.shape[1])
    recorder = Recorder(width)
    search = frontier.search_leaf
    times: list[float] = []

    def timed_search(*arguments: Any) -> None:
        start = time.perf_counter()
        search(*arguments)
        times.append(time.perf_counter() - start)

    frontier.search_leaf = timed_search
    train(data, 2, 1)
    recorder.search = min(times)
    recorder.timed(LocalRowSource, "magnitudes", recorder.rows("quantising", 16))
    recorder.timed(LocalRowSource, "largest", recorder.rows("quantising", 16))
    recorder.timed(LocalRowSource, "quantise", recorder.rows("quantising", 40))
    recorder.timed(LocalRowSource, "count", recorder.count)
    recorder.timed(LocalRowSource, "split", recorder.split)
    recorder.timed(LocalRowSource, "leaf_sums", recorder.rows("sums of leaves", 18))
    n = data.n_rows

    def lambdas(seconds: float, *_: Any) -> Step:
        return Step("lambdas", seconds, data.n_queries, n * 48)

    def adding(seconds: float, *_: Any) -> Step:
        return Step("adding", seconds, n / LEAST_ROWS_OF_PIECE, n * 17)

    recorder.timed(local_rows.LocalRows, "gradients", lambdas)
    recorder.timed(local_rows.LocalRows, "add", adding)
    seconds = train(data, n_trees, 1)
    parallel = sum(step.seconds for step in recorder.steps) / n_trees
    return recorder.steps, max(0.0, seconds - parallel)


def train(data: rg.QueryDataset, n_trees: int, n_threads: int) -> float:
    """Train; return the seconds per tree between the first round and the last."""
    seen: list[float] = []
    model = rg.LambdaMART(n_trees=n_trees, truncation=30, n_threads=n_threads)
    model.fit(data, callbacks=lambda progress: seen.append(time.perf_counter()))
    return (seen[-1] - seen[0]) / max(1, n_trees - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=6000)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--threads", default="1,2,4,8,16,32,64")
    parser.add_argument("--bandwidth", type=float, default=100e9)
    args = parser.parse_args()
    data = rg.make_web(args.queries, seed=1)
    print(repr(data))
    train(data.select(np.arange(50)), 2, 2)
    measured = min(train(data, args.trees, 2) for _ in range(2))
    steps, serial = record(data, args.trees)

    def with_threads(p: int) -> dict[str, float]:
        return simulated(steps, args.trees, serial, p, args.bandwidth)

    one, names = sum(with_threads(1).values()), list(with_threads(1))
    print(f"measured with two threads: {1000 * measured:.1f} ms per tree")
    print("| threads | ms per tree | times as fast | " + " | ".join(names) + " |")
    print("|---|---|---|" + "---|" * len(names))
    for p in map(int, args.threads.split(",")):
        parts = with_threads(p)
        total = sum(parts.values())
        cells = " | ".join(f"{1000 * parts[name]:.1f}" for name in names)
        print(f"| {p} | {1000 * total:.1f} | {one / total:.1f} | {cells} |")


if __name__ == "__main__":
    main()
