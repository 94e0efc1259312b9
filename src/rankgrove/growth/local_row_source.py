"""The rows of a growing tree that this process holds: their order by leaf, and their histograms.

``order`` lists the rows leaf by leaf. Dividing a leaf reorders only its own range::

    order    | leaf 0 | leaf 2         | leaf 1      |
                      | left  | right  |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankgrove.data.binning import BinnedMatrix
from rankgrove.growth import _grower_kernels as kernels
from rankgrove.growth._grower_kernels import Content, Division, Order
from rankgrove.growth._histogram_kernels import accumulate, accumulate_parts, take_features
from rankgrove.growth._kernel_tools import run_parts
from rankgrove.growth._partition_kernels import label_leaves, label_leaves_part
from rankgrove.growth.columns import columns_of
from rankgrove.growth.frontier import Leaf, Search
from rankgrove.growth.histogram import BLOCK_BINS, CommonWords, room_for_parts
from rankgrove.growth.leaves import leaf_sums
from rankgrove.growth.partition import leaf_dtype, leaves_of
from rankgrove.growth.quantise import Layout, largest_magnitude, magnitudes, quantise, squares
from rankgrove.growth.regions import parts_for, timed, worth_a_region
from rankgrove.growth.shared_bytes import SharedBytes
from rankgrove.growth.splitting import Split
from rankgrove.model.tree import Tree

# Rough costs of the steps of a split, to compare them with the cost of a parallel region.
BYTE_NS = 0.5  # per byte of a row that is added to a histogram
ROW_NS = 1.0  # per row that is divided, or copied to its place
FEATURE_NS = 900.0  # per feature of a child that is searched
PIECES_PER_THREAD = 8
LEAST_ROWS_OF_PIECE = 2048


class LocalRowSource:
    """Rows and work arrays; a :class:`~rankgrove.growth.frontier.RowSource`.

    Parameters
    ----------
    binned : the rows
    layout : how gradients are packed
    row_keys : uint64, one per row: the rounding of a row's gradient depends on it
    n_threads : the number of threads; the caller is inside :func:`rankgrove.parallel.threads`

    Attributes
    ----------
    leaf_of : the leaf of every row, after :meth:`leaf_sums` was called
    """

    def __init__(
        self, binned: BinnedMatrix, layout: Layout, row_keys: np.ndarray, n_threads: int
    ) -> None:
        n = binned.n_rows
        self.binned = binned
        self.layout = layout
        self.n_threads = n_threads
        self.n_chosen = n
        self.leaf_of = np.empty(0, np.uint8)
        self._keys = row_keys
        self._all_rows = np.arange(n, dtype=np.int32)
        self._chosen = self._all_rows
        self._values: list[np.ndarray] = []
        self._packed = np.empty(n, np.int64)
        rows, lefts, rights = (np.empty(n, np.int32) for _ in range(3))
        n_left = np.zeros(PIECES_PER_THREAD * n_threads, np.int64)
        self._order = Order(rows, lefts, rights, n_left)
        self._counter = np.zeros(1, np.int64)
        self._columns = columns_of(binned, n_threads)
        shared = SharedBytes.of(binned, n_threads)
        words, self._places = shared.words, shared.places
        common = CommonWords.of(words.view(np.uint8), shared.n_bytes)
        self._content = Content(words, common.words, common.how, self._packed)
        self.histogram_shape = (layout.planes, binned.words.shape[1], BLOCK_BINS)
        self._parts, self._narrow = room_for_parts(n_threads, layout.planes, words.shape[1])

    def take(
        self, gradient: np.ndarray, hessian: np.ndarray | None, rows: np.ndarray | None
    ) -> None:
        """Set the gradients and rows (None: all) of the next tree."""
        self._values = [gradient] if hessian is None else [gradient, hessian]
        self._chosen = self._all_rows if rows is None else rows
        self.n_chosen = int(self._chosen.size)

    @property
    def _n_parts(self) -> int:
        return parts_for(self.n_chosen, self.n_threads)

    def largest(self) -> list[float]:
        """Return the largest magnitudes."""
        return [largest_magnitude(v, self._chosen, self._n_parts) for v in self._values]

    def magnitudes(self, exponents: list[int]) -> list[int]:
        """Return the sums of magnitudes, in units of ``2**-exponent``."""
        both = list(zip(self._values, exponents, strict=True))

        def sums(n_parts: int) -> list[int]:
            return [magnitudes(v, self._chosen, k, n_parts) for v, k in both]

        work = ROW_NS * self.n_chosen * len(both)
        return timed(sums, self.n_chosen, self.n_threads, work)

    def quantise(self, exponents: list[int], draw: tuple[int, int]) -> None:
        """Fill the packed gradients of the rows, and put all rows into the root."""
        values = self._values
        if self.layout.hessian is not None and len(values) == 1:
            values = [*values, np.ones(self.binned.n_rows)]
        fields = (self.layout.gradient, self.layout.hessian)
        for field, numbers, exponent in zip(fields, values, exponents, strict=False):
            if field is not None:
                rows, keys, out = self._chosen, self._keys, self._packed
                quantise(field, numbers, exponent, rows, keys, draw, out, self._n_parts)
        self._order.rows[: self.n_chosen] = self._chosen

    def squares(self) -> int:
        """Return the sum of the squares of the rounded gradients."""
        rows, work = self._chosen, ROW_NS * self.n_chosen
        n_parts = self._n_parts if self._worth_a_region(work) else 1
        return squares(self.layout.gradient, self._packed, rows, n_parts)

    def count(self, leaf: Leaf, out: np.ndarray) -> None:
        """Fill the histogram of a leaf."""
        self.count_range(leaf.start, leaf.end, out)

    def count_range(self, start: int, end: int, out: np.ndarray) -> None:
        """Fill the histogram of the rows ``order[start:end]``."""
        n_parts = self._count(self._order.rows[start:end])
        take_features(self._parts, n_parts, *self._places, out)

    def _count(self, rows: np.ndarray) -> int:
        """Count rows; the histogram is the sum of the parts whose number is returned."""
        if not self._worth_a_region(self._count_ns(rows.size)):
            accumulate(*self._content, rows, self._parts[0], self._narrow[0])
            return 1
        self._counter[0] = 0
        accumulate_parts(
            *self._content, rows, self._parts, self._narrow,
            self.n_threads, self._pieces_of(rows.size), self._counter,
        )  # fmt: skip
        return self.n_threads

    def split(
        self, parent: Leaf, split: Split, small_is_left: bool, wanted: bool, search: Search
    ) -> None:
        """Divide the rows of a leaf; if wanted, count the smaller child and search."""
        self.split_range(parent.start, parent.end, split, small_is_left, wanted, search)

    def split_range(
        self, start: int, end: int, split: Split, small_is_left: bool, wanted: bool, search: Search
    ) -> int:
        """Divide the rows ``order[start:end]``; return how many go left. Serial for few rows."""
        order, content, n_threads = self._order, self._content, self.n_threads
        column = self._columns[split.feature]
        division = Division(
            column, split.bin, split.missing_left, start, end, small_is_left, wanted, split.table
        )
        n_counted = 0
        if wanted:
            n_left = min(split.left_count, end - start)
            n_counted = n_left if small_is_left else end - start - n_left
        work = ROW_NS * (end - start) + self._count_ns(n_counted)
        if not self._worth_a_region(work):
            kernels.split_serial(
                division, order, content, self._narrow, self._places, self._parts, *search
            )
            return int(order.n_left[0])
        n_pieces = self._pieces_of(end - start)
        self._counter[0] = 0
        kernels.divide_and_count(
            division, order, content, n_threads, n_pieces, self._counter, self._parts, self._narrow
        )
        self._search_parts(n_threads, search, (start, end, n_pieces), wanted)
        return int(order.n_left[:n_pieces].sum())

    def _search_parts(
        self,
        n_parts: int,
        search: Search,
        divided: tuple[int, int, int] = (0, 0, 0),
        wanted: bool = True,
    ) -> None:
        """Put divided rows (from, to, pieces) in their place; if wanted, add up parts and search.

        A child that is not searched still gets its histogram.
        """
        start, end, n_pieces = divided
        scan = search.scan if wanted else np.zeros(2, np.bool_)
        n_searched = int(scan.sum())
        work = ROW_NS * (end - start) + FEATURE_NS * n_searched * self.binned.n_kept
        run_parts(
            kernels.place_and_search_part, kernels.place_and_search,
            self.n_threads if self._worth_a_region(work) else 1,
            self._order, start, end, n_pieces, self._places, n_parts, self._parts,
            *search._replace(scan=scan),
        )  # fmt: skip
        if wanted and not n_searched:
            take_features(self._parts, n_parts, *self._places, search.small)

    def leaf_sums(self, leaves: Sequence[Leaf], largest: list[float]) -> list[np.ndarray]:
        """Return the sums of every leaf: see :func:`~rankgrove.growth.leaves.leaf_sums`."""
        bounds = [(leaf.start, leaf.end) for leaf in leaves]
        return self.range_sums(bounds, self.n_chosen, largest)

    def range_sums(
        self, bounds: Sequence[tuple[int, int]], n_rows: int, largest: list[float]
    ) -> list[np.ndarray]:
        """Like :meth:`leaf_sums`, for ranges of the order; `n_rows` includes rows elsewhere."""
        self.leaf_of = np.empty(self.binned.n_rows, leaf_dtype(len(bounds)))
        starts, ends = (np.array(side) for side in zip(*bounds, strict=True))
        order, n_parts = self._order.rows[: self.n_chosen], self._n_parts
        run_parts(label_leaves_part, label_leaves, n_parts, order, starts, ends, self.leaf_of)
        n, rows, leaf_of = len(bounds), self._chosen, self.leaf_of
        both = zip(self._values, largest, strict=True)
        return [leaf_sums(v, rows, leaf_of, n, n_rows, most, n_parts) for v, most in both]

    def route_others(self, tree: Tree) -> None:
        """Set the leaves of the rows that the tree was not grown on."""
        if self.n_chosen < self.binned.n_rows:
            is_other = np.ones(self.binned.n_rows, np.bool_)
            is_other[self._chosen] = False
            others = np.flatnonzero(is_other).astype(np.int32)
            leaves_of(tree, self.binned, rows=others, out=self.leaf_of, n_threads=self.n_threads)

    def _pieces_of(self, n_rows: int) -> int:
        """Return the number of pieces that threads take `n_rows` rows in."""
        n_pieces = max(self.n_threads, n_rows // LEAST_ROWS_OF_PIECE)
        return min(n_pieces, PIECES_PER_THREAD * self.n_threads)

    def _worth_a_region(self, nanoseconds: float) -> bool:
        return worth_a_region(nanoseconds, self.n_threads)

    def _count_ns(self, n_rows: int) -> float:
        return BYTE_NS * float(n_rows * self._content.words.shape[1] * 8)
