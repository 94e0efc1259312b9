"""How training time scales with rows, features and threads, and its peak memory.

    python -m benchmarks.scaling [--queries 6000] [--trees 20]

The time per tree is the difference between training all trees and a fifth of them; the times for
half and a quarter of the rows or features are given as ratios to the whole. Memory is the peak of
the process during training minus its memory before (Linux only), compared with the float32 and
the binned matrix.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import rankgrove as rg
from rankgrove.data.binning import Binner


def seconds_per_tree(data: rg.QueryDataset, n_trees: int, threads: int) -> float:
    few = max(1, n_trees // 5)
    best = {few: np.inf, n_trees: np.inf}
    for _ in range(2):
        for n in best:
            start = time.perf_counter()
            rg.LambdaMART(n_trees=n, truncation=30, n_threads=threads).fit(data)
            best[n] = min(best[n], time.perf_counter() - start)
    return (best[n_trees] - best[few]) / (n_trees - few)


def memory(field: str) -> int:
    """Return a field of the process status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=6000)
    parser.add_argument("--trees", type=int, default=20)
    args = parser.parse_args()
    data = rg.make_web(args.queries, seed=1)
    rg.LambdaMART(n_trees=2).fit(data.select(np.arange(50)))
    print(repr(data))
    if Path("/proc/self/clear_refs").exists():
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        rg.LambdaMART(n_trees=3).fit(data)
        peak = memory("VmHWM") - before
        matrix = data.X.nbytes
        binned = Binner.fit(data.X).transform(data.X).codes.nbytes
        print(
            f"  memory: matrix {matrix / 1e6:.0f} MB, binned {binned / 1e6:.0f} MB, training adds "
            f"{peak / 1e6:.0f} MB: {(matrix + peak) / (matrix + binned):.2f} x (matrix + binned)"
        )
    whole = seconds_per_tree(data, args.trees, 2)
    print(f"  two threads      {1000 * whole:7.1f} ms per tree")
    one_thread = seconds_per_tree(data, args.trees, 1)
    print(f"  one thread       {1000 * one_thread:7.1f} ms per tree, {one_thread / whole:.2f} x")
    for part in (2, 4):
        fewer_rows = data.select(np.arange(data.n_queries // part))
        fewer_rows = rg.QueryDataset(fewer_rows.X, fewer_rows.y, fewer_rows.qid)
        each = seconds_per_tree(fewer_rows, args.trees, 2)
        print(f"  1/{part} of the rows   {1000 * each:5.1f} ms per tree, {each / whole:.2f} x")
        # every 2nd or 4th feature: the kinds of features stay mixed
        fewer_features = rg.QueryDataset(np.ascontiguousarray(data.X[:, ::part]), data.y, data.qid)
        each = seconds_per_tree(fewer_features, args.trees, 2)
        print(f"  1/{part} of features   {1000 * each:5.1f} ms per tree, {each / whole:.2f} x")


if __name__ == "__main__":
    main()
