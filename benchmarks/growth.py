"""Binning and tree growth against LightGBM: ``python -m benchmarks.growth``.

Both are timed in one run, in turn, without compilation, and the best of several turns counts. Both
fit the same targets by squared error with the same number of leaves, bins and threads; LightGBM
builds its histograms row by row, which is faster here. The training errors after the same number of
trees are printed with the times: equal quality is part of the claim. A profile of the stages
follows.

On a machine that is shared with others, ``--threads 1 --clock cpu`` compares processor time, which
depends little on the load.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.weblike import weblike
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.growth import _grower_kernels, frontier, grower, local_row_source
from rankgrove.growth.grower import Grower
from rankgrove.growth.leaves import add_leaf_values

RATE = 0.1
MIN_LEAF = 20  # LightGBM's default


clocks = {"wall": time.perf_counter, "cpu": time.process_time}
clock = time.perf_counter


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = clock()
    result = work()
    return clock() - start, result


class Ours:
    """A plain boosting loop with squared error."""

    def __init__(self, binned: BinnedMatrix, y: np.ndarray, options: argparse.Namespace) -> None:
        self.grower = Grower(
            binned,
            n_leaves=options.leaves,
            split=options.split,
            min_leaf=MIN_LEAF,
            n_threads=options.threads,
        )
        self.n_threads = options.threads
        self.y = y
        self.scores = np.full(y.size, y.mean())
        self.round = 0

    def advance(self, n_trees: int) -> None:
        """Add trees."""
        for _ in range(n_trees):
            tree, leaf_of = self.grower.grow(self.y - self.scores, None, self.round)
            add_leaf_values(self.scores, RATE * tree.value, leaf_of, n_threads=self.n_threads)
            self.round += 1

    def error(self) -> float:
        """Return the mean squared error on the training rows."""
        return float(((self.y - self.scores) ** 2).mean())


class Theirs:
    """LightGBM's loop, advanced tree by tree."""

    def __init__(self, dataset: Any, y: np.ndarray, options: argparse.Namespace) -> None:
        import lightgbm

        parameters = {**lightgbm_parameters(options), "num_leaves": options.leaves}
        self.booster = lightgbm.Booster(parameters, dataset)
        self.y = y

    def advance(self, n_trees: int) -> None:
        """Add trees."""
        for _ in range(n_trees):
            self.booster.update()

    def error(self) -> float:
        """Return the mean squared error on the training rows."""
        return float(self.booster.eval_train()[0][2])


def lightgbm_parameters(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "objective": "regression",
        "learning_rate": RATE,
        "max_bin": 255,
        "min_data_in_leaf": MIN_LEAF,
        "num_threads": options.threads,
        "force_row_wise": True,
        "verbose": -1,
    }


def compare_binning(
    X: np.ndarray, y: np.ndarray, options: argparse.Namespace
) -> tuple[BinnedMatrix, Any]:
    import lightgbm

    def ours() -> BinnedMatrix:
        binner = Binner.fit(X, n_threads=options.threads)
        return binner.transform(X, n_threads=options.threads)

    def theirs() -> Any:
        return lightgbm.Dataset(X, y, params=lightgbm_parameters(options)).construct()

    runs = [(seconds(ours), seconds(theirs)) for _ in range(options.repeats)]
    best = [min(run[side][0] for run in runs) for side in range(2)]
    print(f"binning          {best[0]:8.2f} s   LightGBM {best[1]:8.2f} s   {ratio(best)}")
    return runs[0][0][1], runs[0][1][1]


def compare_growth(ours: Ours, theirs: Theirs, options: argparse.Namespace) -> None:
    """Advance both by `step` trees in turn; the best turn of each is the time."""
    step = max(1, options.trees // options.turns)
    times: list[list[float]] = [[], []]
    for _ in range(options.turns):
        for side, booster in enumerate((ours, theirs)):
            times[side].append(seconds(lambda b=booster: b.advance(step))[0] / step)  # type: ignore[misc]
    best = [min(side) * 1e3 for side in times]
    middle = [float(np.median(side)) * 1e3 for side in times]
    print(f"a tree, best     {best[0]:8.1f} ms  LightGBM {best[1]:8.1f} ms  {ratio(best)}")
    print(f"a tree, median   {middle[0]:8.1f} ms  LightGBM {middle[1]:8.1f} ms  {ratio(middle)}")
    n = step * options.turns
    print(f"error, {n:3d} trees {ours.error():8.5f}     LightGBM {theirs.error():8.5f}")


def ratio(pair: list[float]) -> str:
    return f"{pair[1] / pair[0]:5.2f} x faster"


@contextmanager
def stages() -> Iterator[Counter[str]]:
    """Count the time spent in every stage while the body runs."""
    spent: Counter[str] = Counter()
    places = [
        (grower, "_measure", "quantise"),
        (local_row_source.LocalRowSource, "quantise", "quantise"),
        (local_row_source, "accumulate_parts", "root histogram"),
        (_grower_kernels, "divide_and_count", "partition and histogram"),
        (_grower_kernels, "place_and_search", "place, subtract and search"),
        (_grower_kernels, "place_and_search_part", "place, subtract and search"),
        (_grower_kernels, "split_serial", "small leaves, all of it"),
        (frontier, "search_leaf", "root search"),
        (local_row_source.LocalRowSource, "leaf_sums", "leaf numbers and sums"),
        (grower, "assemble", "assembly"),
    ]
    saved = [(module, name, getattr(module, name)) for module, name, _ in places]
    for (module, name, stage), (_, _, function) in zip(places, saved, strict=True):

        def timed(*args: Any, _function: Any = function, _stage: str = stage, **more: Any) -> Any:
            taken, result = seconds(lambda: _function(*args, **more))
            spent[_stage] += taken
            return result

        setattr(module, name, timed)
    try:
        yield spent
    finally:
        for module, name, function in saved:
            setattr(module, name, function)


def profile(ours: Ours, n_trees: int) -> None:
    """Print the best and the median time of every stage over `n_trees` trees."""
    trees: list[Counter[str]] = []
    for _ in range(n_trees):
        with stages() as spent:
            total, _ = seconds(lambda: ours.advance(1))
        spent["the rest (Python, boosting loop)"] = total - sum(spent.values())
        trees.append(spent)
    print(f"{'stage, ms per tree':40s} {'best':>8s} {'median':>8s}")
    by_stage = {stage: [1e3 * tree[stage] for tree in trees] for stage in trees[0]}
    for stage, taken in sorted(by_stage.items(), key=lambda item: -min(item[1])):
        print(f"  {stage:38s} {min(taken):8.2f} {np.median(taken):8.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=6000)
    parser.add_argument("--docs", type=int, default=120)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--clock", default="wall", choices=list(clocks))
    parser.add_argument("--split", default="mse", choices=["mse", "newton"])
    return parser.parse_args()


def main() -> None:
    global clock
    options = arguments()
    clock = clocks[options.clock]
    small, labels, _ = weblike(100, 100)
    first, _ = seconds(lambda: Ours(Binner.fit(small).transform(small), labels, options).advance(2))
    print(f"first use (compiling, or loading compiled kernels) {first:.1f} s")
    X, y, _ = weblike(options.queries, options.docs)
    print(f"{X.shape[0]:,} rows x {X.shape[1]} features, {options.threads} threads")
    binned, dataset = compare_binning(X, y, options)
    ours, theirs = Ours(binned, y, options), Theirs(dataset, y, options)
    ours.advance(1)
    theirs.advance(1)
    compare_growth(ours, theirs, options)
    profile(ours, 20)


if __name__ == "__main__":
    main()
