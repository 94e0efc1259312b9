"""The leaves of a growing tree, the best split of each, and the choice of the next.

Rows are listed leaf by leaf; a leaf is a range of that list, and so are its children::

    order    | leaf 0 | leaf 2         | leaf 1      |
                      | left  | right  |

Only a :class:`RowSource` knows where the rows are: the frontier asks it for histograms. The
histogram of the larger child is that of the parent minus that of the smaller child.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from rankgrove.data.binning import Binner
from rankgrove.growth._grower_kernels import search_leaf
from rankgrove.growth._splitting_kernels import OUT_FIELDS, SearchRules
from rankgrove.growth.constraints import NO_BOUNDS, Meeting
from rankgrove.growth.histogram import N_BINS, HistogramPool
from rankgrove.growth.quantise import Layout
from rankgrove.growth.splitting import COUNT_MASK, FeatureDraw, Split, SplitRules, best_split


@dataclass(slots=True)
class Leaf:
    """A leaf while the tree grows: rows ``order[start:end]``.

    A left child has the `number` of its parent. `birth` numbers all nodes, in order of creation.
    """

    number: int
    birth: int
    start: int
    end: int
    depth: int
    total: int  # packed: quantised gradient and count
    weight: int  # quantised hessian
    slot: int = -1  # of its histogram, or -1
    split: Split | None = None
    low: float = -math.inf  # bounds of its value, in units of quantised gradients
    high: float = math.inf
    used: tuple[int, ...] = ()  # features of the splits above it, if not all may meet

    @property
    def count(self) -> int:
        """Number of rows of the leaf."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Scales:
    """The values of one unit of a quantised gain and of a quantised hessian.

    `noise` is the mean square of a row's gradient, in quantised units, over its mean hessian: the
    gain that a category without any effect has on average.
    """

    gain: float
    weight: float
    noise: float = 0.0


class Search(NamedTuple):
    """The search of the smaller (0) and the larger child (1): the last arguments of kernels.

    Attributes
    ----------
    small, large : histograms; the larger child's is that of its parent, from which the smaller
        child's is still to be subtracted
    scan : which children to search; if the larger one, also whether to subtract
    rules : the rules, for both children
    out_gain, out : the best splits, by child and block of features
    """

    small: np.ndarray
    large: np.ndarray
    scan: np.ndarray
    rules: SearchRules
    out_gain: np.ndarray
    out: np.ndarray


class RowSource(Protocol):
    """The rows of a growing tree, in this process or elsewhere.

    A row has a gradient and usually a hessian: lists have one entry for each.
    """

    n_chosen: int  # rows that the tree is grown on

    def largest(self) -> list[float]:
        """Return the largest magnitudes."""

    def magnitudes(self, exponents: list[int]) -> list[int]:
        """Return the sums of magnitudes, in units of ``2**-exponent``."""

    def quantise(self, exponents: list[int], draw: tuple[int, int]) -> None:
        """Start a tree: round all numbers times ``2**exponent``; `draw` is (seed, round)."""

    def squares(self) -> int:
        """Return the sum of the squares of the rounded gradients."""
        ...

    def count(self, leaf: Leaf, out: np.ndarray) -> None:
        """Fill the histogram of a leaf."""

    def split(
        self, parent: Leaf, split: Split, small_is_left: bool, wanted: bool, search: Search
    ) -> None:
        """Divide the rows of a leaf; if wanted, count the smaller child and search."""

    def leaf_sums(self, leaves: Sequence[Leaf], largest: list[float]) -> list[np.ndarray]:
        """Return the sums of every leaf: see :func:`~rankgrove.growth.leaves.leaf_sums`."""


class Frontier:
    """Leaves and histograms; :meth:`grow` makes the splits of one tree."""

    def __init__(
        self,
        source: RowSource,
        binner: Binner,
        layout: Layout,
        n_leaves: int,
        rules: SplitRules,
        draw: FeatureDraw,
        histogram_bytes: int,
    ) -> None:
        self.source = source
        self.n_leaves = n_leaves
        self.rules = rules
        self.draw = draw
        self.layout = layout
        self._n_bins = np.array([t.size + 1 for t in binner.thresholds], np.int64)
        self._column_numbers = binner.columns
        self._is_categorical = binner.splits_by_set
        self._signs = rules.constraints.signs(binner.columns)
        self._bounds = np.empty((2, 2)) if self._signs.size else NO_BOUNDS
        groups = rules.constraints.groups
        self._meeting = None if groups is None else Meeting(groups, binner.columns)
        n_blocks = -(-binner.columns.size // 8)
        self._pool = HistogramPool(n_blocks, layout.planes, n_leaves, histogram_bytes)
        self._spare = np.empty(self._pool.shape, np.int64)
        self._out_gain = np.empty((2, n_blocks), np.float64)
        self._out = np.empty((2, n_blocks, OUT_FIELDS), np.int64)
        # Of one tree:
        self.leaves: list[Leaf] = []
        self._queue: list[tuple[float, int, int]] = []  # (-gain, birth, leaf number)
        self._scales = Scales(1.0, 1.0)
        self._category = rules.categories.numbers(0.0)
        self._round = 0

    @property
    def needs_noise(self) -> bool:
        """Return whether gains of sets of categories are compared with those of noise."""
        return bool(self._is_categorical.any())

    def grow(self, n_rows: int, scales: Scales, round: int) -> list[tuple[int, Split]]:
        """Grow a tree on `n_rows` rows; return its splits, each with its leaf."""
        root = self._begin(n_rows, scales, round)
        splits: list[tuple[int, Split]] = []
        if self._n_bins.size and self._splittable(root):
            self._count_root(root)
            self._search(root)
        self._enqueue(0)
        while self._queue:
            _, _, number = heapq.heappop(self._queue)
            parent = self.leaves[number]
            split = parent.split
            if split is None:
                raise AssertionError("a leaf in the queue has a split")
            left, right = self._children(parent, split, len(splits))
            splits.append((number, split))
            self.leaves[number] = left
            self.leaves.append(right)
            self._split(parent, split, left, right)
            if len(self.leaves) == self.n_leaves:
                break
            self._enqueue(number)
            self._enqueue(len(self.leaves) - 1)
        return splits

    def _begin(self, n_rows: int, scales: Scales, round: int) -> Leaf:
        """Start a tree; return its root."""
        self._pool.clear()
        self._scales = scales
        self._category = self.rules.categories.numbers(scales.noise)
        self._round = round
        self._queue = []
        self.leaves = [Leaf(0, 0, 0, n_rows, 0, 0, 0)]
        return self.leaves[0]

    def _enqueue(self, number: int) -> None:
        """Queue a leaf if it can be split; otherwise free its histogram."""
        leaf = self.leaves[number]
        if leaf.split is not None:
            heapq.heappush(self._queue, (-leaf.split.gain, leaf.birth, number))
        elif leaf.slot >= 0:
            self._pool.give_back(leaf.slot)
            leaf.slot = -1

    def _children(self, parent: Leaf, split: Split, n_splits: int) -> tuple[Leaf, Leaf]:
        middle = parent.start + split.left_count
        depth = parent.depth + 1
        birth = 2 * n_splits + 1
        left_weight = split.left_weight
        number = parent.number
        left = Leaf(number, birth, parent.start, middle, depth, split.left_sum, left_weight)
        number, right_sum = n_splits + 1, parent.total - split.left_sum
        right_weight = parent.weight - left_weight
        right = Leaf(number, birth + 1, middle, parent.end, depth, right_sum, right_weight)
        if self._signs.size:
            self._bound(parent, split, left, right)
        if self._meeting is not None:
            used = parent.used
            used = used if split.feature in used else (*used, split.feature)
            left.used = right.used = used
        return left, right

    def _bound(self, parent: Leaf, split: Split, left: Leaf, right: Leaf) -> None:
        """Set the bounds of two children: those of their parent, and the middle of their values."""
        left.low = right.low = parent.low
        left.high = right.high = parent.high
        has_order = split.bin < self._n_bins[split.feature] - 1  # else: values and missing ones
        sign = int(self._signs[split.feature]) if has_order else 0
        if sign:
            below, above = (left, right) if sign > 0 else (right, left)
            below.high = above.low = 0.5 * (self._value(below) + self._value(above))

    def _value(self, leaf: Leaf) -> float:
        """Return the value of a leaf by its quantised sums, within its bounds."""
        hessian = float(leaf.total & COUNT_MASK)
        if self.layout.hessian is not None:
            hessian = leaf.weight * self._scales.weight + self.rules.l2
        value = (leaf.total >> 32) / hessian if hessian > 0.0 else 0.0
        return min(max(value, leaf.low), leaf.high)

    def _splittable(self, leaf: Leaf) -> bool:
        """Return whether to search for a split of the leaf."""
        full = len(self.leaves) >= self.n_leaves
        deep = self.rules.max_depth is not None and leaf.depth >= self.rules.max_depth
        return not full and not deep and leaf.count >= 2 * self.rules.min_leaf

    def _count_root(self, root: Leaf) -> None:
        """Count the root's histogram; the sums of all rows come from it."""
        root.slot = self._pool.take()
        hist = self._pool[root.slot]
        self.source.count(root, hist)
        sums = [int(plane[0, :N_BINS].sum()) for plane in hist]
        root.total, root.weight = self.layout.unpack(sums)

    def _split(self, parent: Leaf, split: Split, left: Leaf, right: Leaf) -> None:
        """Divide the rows of a leaf among its children, and search them."""
        small, large = (left, right) if left.count <= right.count else (right, left)
        scan = [self._splittable(small), self._splittable(large)]
        direct = scan[1] and parent.slot < 0  # its histogram was dropped: count both children
        subtract = scan[1] and not direct
        wanted = scan[0] or subtract
        if wanted:
            small.slot = self._take_slot()
        if subtract:
            large.slot, parent.slot = parent.slot, -1
        elif parent.slot >= 0:
            self._pool.give_back(parent.slot)
            parent.slot = -1
        searched = [scan[0], subtract]
        search = self._search_of(small, large, wanted, searched)
        self.source.split(parent, split, small is left, wanted, search)
        for child, leaf in enumerate((small, large)):
            if searched[child]:
                leaf.split = self._best_split(child, leaf)
        if direct:
            large.slot = self._take_slot()
            self.source.count(large, self._pool[large.slot])
            self._search(large)

    def _search_of(self, small: Leaf, large: Leaf, wanted: bool, searched: list[bool]) -> Search:
        return Search(
            small=self._pool[small.slot] if wanted else self._spare,
            large=self._pool[large.slot] if searched[1] else self._spare,
            scan=np.array(searched),
            rules=self._rules_of(small, large),
            out_gain=self._out_gain,
            out=self._out,
        )

    def _rules_of(self, *leaves: Leaf) -> SearchRules:
        if self._signs.size:
            for child, leaf in enumerate(leaves):
                self._bounds[child, 0], self._bounds[child, 1] = leaf.low, leaf.high
        return SearchRules(
            n_bins=self._n_bins,
            columns=self._column_numbers,
            allowed=np.stack([self._features_of(leaf) for leaf in leaves]),
            totals=np.array([leaf.total for leaf in leaves]),
            weights=np.array([leaf.weight for leaf in leaves]),
            step=self._scales.weight,
            l2=self.rules.l2,
            min_leaf=self.rules.min_leaf,
            count_bits=self.layout.count_bits,
            hessian_bits=self.layout.hessian_bits,
            is_categorical=self._is_categorical if self._is_categorical.any() else None,
            category=self._category,
            signs=self._signs,
            bounds=self._bounds,
        )

    def _features_of(self, leaf: Leaf) -> np.ndarray:
        """Return a mask of the features that may divide a leaf."""
        allowed = None if self._meeting is None else self._meeting.allowed(leaf.used)
        return self.draw(self._round, leaf.birth, allowed)

    def _search(self, leaf: Leaf) -> None:
        """Find the best split of a leaf that has a histogram."""
        rules = self._rules_of(leaf)
        search_leaf(self._pool[leaf.slot], 0, rules, self._out_gain, self._out)
        leaf.split = self._best_split(0, leaf)

    def _best_split(self, child: int, leaf: Leaf) -> Split | None:
        return best_split(
            self._out_gain[child],
            self._out[child],
            self._column_numbers,
            leaf.count,
            self._scales.gain,
            self.rules.min_gain,
        )

    def _take_slot(self) -> int:
        """Return a slot of the pool; if it is full, that of the queued leaf with the least gain."""
        slot = self._pool.take()
        if slot < 0:
            holders = [entry for entry in self._queue if self.leaves[entry[2]].slot >= 0]
            loser = self.leaves[max(holders)[2]]
            slot, loser.slot = loser.slot, -1
        return slot
