"""The leaves of a growing tree: which is split next, and the work of splitting it.

Rows are listed leaf by leaf in ``order``; a leaf is a range of it, and so are its children::

    order    | leaf 0 | leaf 2         | leaf 1      |
                      | left  | right  |

Histograms: the parent's becomes the larger child's when the smaller child's is subtracted from it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from rankgrove.data.binning import BinnedMatrix
from rankgrove.growth import _grower_kernels as kernels
from rankgrove.growth._histogram_kernels import accumulate, accumulate_parts
from rankgrove.growth._kernel_tools import run_parts
from rankgrove.growth._splitting_kernels import OUT_FIELDS
from rankgrove.growth.histogram import N_BINS, CommonWords, HistogramPool
from rankgrove.growth.quantise import Layout
from rankgrove.growth.splitting import FeatureDraw, Split, SplitRules, best_split

# A parallel region must save this much: it costs a tenth of it on an idle machine, and up to a
# hundred times as much where another process holds a core and all threads wait for one.
REGION_NS = 100_000
# What the steps of a split cost, roughly: to weigh them against a region, no more.
BYTE_NS = 0.5  # of a row, added to a histogram
ROW_NS = 1.0  # divided, or copied to its place
FEATURE_NS = 450.0  # of a child, searched


@dataclass(slots=True)
class Leaf:
    """A leaf while the tree grows: rows ``order[start:end]``; `birth` numbers all nodes ever."""

    birth: int
    start: int
    end: int
    depth: int
    total: int  # packed: quantised gradient and count
    weight: int  # quantised hessian
    slot: int = -1  # of its histogram, or -1
    split: Split | None = None

    @property
    def count(self) -> int:
        """Rows of the leaf."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Scales:
    """What one unit of a quantised gain, and of a quantised hessian, is worth."""

    gain: float
    weight: float


class Frontier:
    """Leaves and work arrays; :meth:`grow` makes the splits of one tree."""

    def __init__(
        self,
        binned: BinnedMatrix,
        n_leaves: int,
        rules: SplitRules,
        draw: FeatureDraw,
        histogram_bytes: int,
        n_threads: int,
    ) -> None:
        n = binned.n_rows
        self.n_leaves = n_leaves
        self.rules = rules
        self.draw = draw
        self.n_threads = n_threads
        self.layout = Layout.of(rules.split, n)
        self.packed = np.empty((self.layout.planes, n), np.int64)
        self.order, self._lefts, self._rights = (np.empty(n, np.int32) for _ in range(3))
        self._columns = binned.by_column(n_threads)
        common = CommonWords.of(binned.codes, binned.binner.columns.size)
        self._words = (binned.words, common.words, common.how)
        self._n_bins = np.array([t.size + 1 for t in binned.binner.thresholds], np.int64)
        self._column_numbers = binned.binner.columns
        self._row_bytes = int(binned.codes.shape[1])
        n_blocks = binned.words.shape[1]
        self._pool = HistogramPool(n_blocks, self.layout.planes, n_leaves, histogram_bytes)
        self._parts = np.empty((n_threads, *self._pool.shape), np.int64)
        self._n_left = np.zeros(n_threads, np.int64)
        self._out_gain = np.empty((2, n_blocks), np.float64)
        self._out = np.empty((2, n_blocks, OUT_FIELDS), np.int64)
        # Of one tree:
        self.leaves: list[Leaf] = []
        self._queue: list[tuple[float, int, int]] = []  # (-gain, birth, leaf number)
        self._scales = Scales(1.0, 1.0)
        self._round = 0

    def grow(self, n_rows: int, scales: Scales, round: int) -> list[tuple[int, Split]]:
        """Grow on the rows ``order[:n_rows]``; return the splits made, each with its leaf."""
        self._pool.clear()
        self._scales = scales
        self._round = round
        self._queue = []
        self.leaves = [Leaf(0, 0, n_rows, 0, 0, 0)]
        splits: list[tuple[int, Split]] = []
        self._search_root(self.leaves[0])
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

    def _enqueue(self, number: int) -> None:
        """Queue a leaf that can be split; else its histogram is wanted no more."""
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
        left = Leaf(birth, parent.start, middle, depth, split.left_sum, left_weight)
        right_sum = parent.total - split.left_sum
        right = Leaf(birth + 1, middle, parent.end, depth, right_sum, parent.weight - left_weight)
        return left, right

    def _splittable(self, leaf: Leaf) -> bool:
        """Whether a split of the leaf is worth looking for."""
        full = len(self.leaves) >= self.n_leaves
        deep = self.rules.max_depth is not None and leaf.depth >= self.rules.max_depth
        return not full and not deep and leaf.count >= 2 * self.rules.min_leaf

    def _search_root(self, root: Leaf) -> None:
        if self._n_bins.size == 0 or not self._splittable(root):
            return
        root.slot = self._pool.take()
        self._count(root)
        hist = self._pool[root.slot]
        sums = [int(plane[0, :N_BINS].sum()) for plane in hist]
        root.total, root.weight = self.layout.unpack(sums)
        self._search(root)

    def _split(self, parent: Leaf, split: Split, left: Leaf, right: Leaf) -> None:
        """Divide the rows of a leaf among its children and search these."""
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
        looked = [scan[0], subtract]
        self._run(parent, split, small, large, small is left, wanted, looked)
        for child, leaf in enumerate((small, large)):
            if looked[child]:
                leaf.split = self._found(child, leaf)
        if direct:
            large.slot = self._take_slot()
            self._count(large)
            self._search(large)

    def _run(
        self,
        parent: Leaf,
        split: Split,
        small: Leaf,
        large: Leaf,
        small_is_left: bool,
        wanted: bool,
        looked: list[bool],
    ) -> None:
        """Call the kernels of one split; serial for a small leaf."""
        spare = self._parts[0]
        small_hist = self._pool[small.slot] if wanted else spare
        large_hist = self._pool[large.slot] if looked[1] else spare
        subtract, scan = looked[1], np.array(looked)
        column = self._columns[split.feature]
        rules, step = self.rules, self._scales.weight
        how = (column, split.bin, split.missing_left, self.order, parent.start, parent.end)
        rows = (self._lefts, self._rights)
        search = (
            self._n_bins, self._column_numbers, self._allowed(small, large),
            np.array([small.total, large.total]), np.array([small.weight, large.weight]), step,
            rules.l2, rules.min_leaf, self._fields,
        )  # fmt: skip
        work = ROW_NS * parent.count + self._count_ns(small.count if wanted else 0)
        if not self._worth_a_region(work):
            kernels.split_serial(
                *how, *rows, small_is_left, wanted, *self._words, self.packed, small_hist,
                large_hist, subtract, scan, *search, self._n_left, self._out_gain, self._out,
            )  # fmt: skip
            return
        kernels.divide_and_count(
            *how, *rows, small_is_left, wanted, *self._words, self.packed, self.n_threads,
            self._parts, self._n_left,
        )  # fmt: skip
        work = ROW_NS * parent.count + FEATURE_NS * sum(looked) * self._n_bins.size
        run_parts(
            kernels.place_and_search_part, kernels.place_and_search,
            self.n_threads if self._worth_a_region(work) else 1, *how[3:], *rows, self._n_left,
            self.n_threads, self._parts, small_hist, large_hist, subtract, scan, *search,
            self._out_gain, self._out,
        )  # fmt: skip

    @property
    def _fields(self) -> tuple[np.int64, np.int64]:
        return np.int64(self.layout.count_bits), np.int64(self.layout.hessian_bits)

    def _worth_a_region(self, nanoseconds: float) -> bool:
        return nanoseconds * (1 - 1 / self.n_threads) > REGION_NS

    def _count_ns(self, n_rows: int) -> float:
        return BYTE_NS * float(n_rows * self._row_bytes * self.layout.planes)

    def _allowed(self, *leaves: Leaf) -> np.ndarray:
        return np.stack([self.draw(self._round, leaf.birth) for leaf in leaves])

    def _count(self, leaf: Leaf) -> None:
        """Build the histogram of a leaf from its rows."""
        rows = self.order[leaf.start : leaf.end]
        hist = self._pool[leaf.slot]
        if not self._worth_a_region(self._count_ns(rows.size)):
            accumulate(*self._words, self.packed, rows, hist)
            return
        accumulate_parts(*self._words, self.packed, rows, self._parts, self.n_threads)
        np.sum(self._parts, axis=0, out=hist)

    def _search(self, leaf: Leaf) -> None:
        """Find the best split of a leaf whose histogram there is."""
        kernels.search(
            self._pool[leaf.slot], self._n_bins, self._column_numbers, self._allowed(leaf)[0],
            leaf.total, leaf.weight, self._scales.weight, self.rules.l2, self.rules.min_leaf,
            self._fields, self._out_gain[0], self._out[0],
        )  # fmt: skip
        leaf.split = self._found(0, leaf)

    def _found(self, child: int, leaf: Leaf) -> Split | None:
        return best_split(
            self._out_gain[child],
            self._out[child],
            self._column_numbers,
            leaf.count,
            self._scales.gain,
            self.rules.min_gain,
        )

    def _take_slot(self) -> int:
        """Return a slot of the pool; where it is full, of the queued leaf with the least gain."""
        slot = self._pool.take()
        if slot < 0:
            holders = [entry for entry in self._queue if self.leaves[entry[2]].slot >= 0]
            loser = self.leaves[max(holders)[2]]
            slot, loser.slot = loser.slot, -1
        return slot
