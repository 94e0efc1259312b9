"""Symmetric growth: one split divides all leaves of a level.

The split with the highest sum of gains over the leaves of a level is made in all of them, with the
same feature, threshold (or category) and side of missing values::

    level 0                 x3 <= 0.5
                          /           \\
    level 1        x1 <= 7             x1 <= 7
                  /       \\           /       \\
                leaf     leaf       leaf     leaf

A leaf is not divided, and adds nothing to the sum, where a child would have fewer than `min_leaf`
rows or the leaf's own gain is not positive (with `l2` it can be negative); later levels may divide
it. So a tree has at most ``2**depth`` leaves, and may have fewer. The same holds where its children
would be out of the order of a monotone constraint. Where not all features may meet, those of all
levels must be of one group.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankgrove.data.binning import Binner
from rankgrove.growth import _symmetric_kernels as kernels
from rankgrove.growth._kernel_tools import run_parts
from rankgrove.growth.frontier import Frontier, Leaf, RowSource, Scales
from rankgrove.growth.histogram import N_BINS
from rankgrove.growth.local_row_source import FEATURE_NS
from rankgrove.growth.quantise import Layout
from rankgrove.growth.regions import worth_a_region
from rankgrove.growth.splitting import NO_TABLE, FeatureDraw, Split, SplitRules
from rankgrove.parallel import thread_count, threads


class SymmetricFrontier(Frontier):
    """The leaves of a level; :meth:`grow` makes the splits of one tree, level by level.

    A leaf for which the pool has no room is counted whenever its histogram is needed.
    """

    def __init__(
        self,
        source: RowSource,
        binner: Binner,
        layout: Layout,
        n_leaves: int,
        rules: SplitRules,
        draw: FeatureDraw,
        histogram_bytes: int,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(source, binner, layout, n_leaves, rules, draw, histogram_bytes)
        depth = n_leaves.bit_length() - 1
        self._n_levels = depth if rules.max_depth is None else min(depth, rules.max_depth)
        self._n_threads = thread_count(n_threads)
        n_features = self._n_bins.size
        self._totals = np.empty((n_features, 2, N_BINS), np.float64)
        self._sides = np.ones(n_features, np.int64)  # 2: missing values may go to either side
        # Of one level:
        self._level = 0
        self._allowed = np.empty(0, np.bool_)
        self._used: tuple[int, ...] = ()  # features of the levels so far, if not all may meet

    @property
    def needs_noise(self) -> bool:
        """Return False: single categories are split off, and noise has few of these to choose."""
        return False

    def grow(self, n_rows: int, scales: Scales, round: int) -> list[tuple[int, Split]]:
        """Grow a tree on `n_rows` rows; return its splits, each with its leaf."""
        root = self._begin(n_rows, scales, round)
        self._level = 0
        self._used = ()
        splits: list[tuple[int, Split]] = []
        if self._n_bins.size and self._splittable(root):
            self._count_root(root)
            has_missing = self._missing_bins(self._pool[root.slot]) > 0
            self._sides = np.where(has_missing & ~self._is_categorical, 2, 1)
        while divisions := self._divisions():
            self._level += 1
            if self._meeting is not None:
                self._used = tuple({*self._used, divisions[0][1].feature})
            for parent, split in divisions:
                left, right = self._children(parent, split, len(splits))
                splits.append((parent.number, split))
                self.leaves[parent.number] = left
                self.leaves.append(right)
                self._divide(parent, split, left, right)
        return splits

    def _splittable(self, leaf: Leaf) -> bool:
        """Return whether the leaf takes part in the next split."""
        return self._level < self._n_levels and leaf.count >= 2 * self.rules.min_leaf

    def _features_of(self, leaf: Leaf) -> np.ndarray:
        return self._allowed

    def _divisions(self) -> list[tuple[Leaf, Split]]:
        """Return the leaves that the best split of the level divides, each with its split."""
        leaves = [leaf for leaf in self.leaves if self._splittable(leaf)]
        if not leaves or not self._n_bins.size:
            return []
        allowed = None if self._meeting is None else self._meeting.allowed(self._used)
        self._allowed = self.draw(self._round, self._level, allowed)
        self._totals.fill(0.0)
        for leaf in leaves:
            self._add_gains(leaf)
        feature, bin, side, total = kernels.best_candidate(
            self._totals, self._n_bins, self._column_numbers, self._sides
        )
        if not total * self._scales.gain > self.rules.min_gain:
            return []
        divisions, any_missing = [], False
        is_category = bool(self._is_categorical[feature])
        table = NO_TABLE
        if is_category:
            table = (np.arange(N_BINS) == bin).astype(np.uint8)
        for leaf in leaves:
            hist, rules = self._histogram(leaf), self._rules_of(leaf)
            gain, left_sum, left_weight = kernels.division_of(hist, feature, bin, side, rules)
            if gain > 0.0:
                gain *= self._scales.gain
                split = Split(gain, feature, bin, bool(side), left_sum, left_weight, table)
                divisions.append((leaf, split))
                any_missing |= bool(self._missing_bins(hist)[feature])
        if is_category or any_missing:
            return divisions
        n_left = sum(split.left_count for _, split in divisions)
        missing_left = 2 * n_left >= sum(leaf.count for leaf, _ in divisions)
        return [(leaf, replace(split, missing_left=missing_left)) for leaf, split in divisions]

    def _add_gains(self, leaf: Leaf) -> None:
        """Add the gains of all splits of a leaf to the totals of the level."""
        work = FEATURE_NS * self._n_bins.size
        arguments = (
            self._histogram(leaf), self._rules_of(leaf), self._sides, self._totals
        )  # fmt: skip
        if not worth_a_region(work, self._n_threads):
            kernels.add_gains_part(*arguments, 0, 1)
            return
        with threads(self._n_threads) as n_parts:
            run_parts(kernels.add_gains_part, kernels.add_gains, n_parts, *arguments)

    def _missing_bins(self, hist: np.ndarray) -> np.ndarray:
        """Return the number of missing values of every feature."""
        last_bins = hist[0].reshape(-1, N_BINS)[: self._n_bins.size, -1]
        return np.asarray(last_bins & ((1 << self.layout.count_bits) - 1))

    def _histogram(self, leaf: Leaf) -> np.ndarray:
        if leaf.slot >= 0:
            return self._pool[leaf.slot]
        self.source.count(leaf, self._spare)
        return self._spare

    def _divide(self, parent: Leaf, split: Split, left: Leaf, right: Leaf) -> None:
        """Divide the rows of a leaf among its children, and make the histograms of these."""
        small, large = (left, right) if left.count <= right.count else (right, left)
        nothing = self._search_of(small, large, False, [False, False])
        self.source.split(parent, split, small is left, False, nothing)
        subtract = self._splittable(large) and parent.slot >= 0
        if not subtract and parent.slot >= 0:
            self._pool.give_back(parent.slot)
        if self._splittable(small):
            small.slot = self._pool.take()
        if small.slot >= 0 or subtract:
            hist = self._pool[small.slot] if small.slot >= 0 else self._spare
            self.source.count(small, hist)
            if subtract:
                large.slot = parent.slot
                rest = self._pool[large.slot]
                np.subtract(rest, hist, out=rest)
