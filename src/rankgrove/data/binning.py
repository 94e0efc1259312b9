"""Binning: every feature is cut into at most 255 bins, so that a value takes one byte.

A bin is a range of values between two thresholds; thresholds are float32 midpoints between
adjacent observed values. Comparing bins and comparing values give exactly the same result::

    values      0   0   1   1.5  7      NaN
    thresholds        .5  1.25  4.25
    bin         0   0   1    2   3      255        bin(x) <= b   <=>   x <= thresholds[b]

Thresholds come from exact counts of all rows, not from a sample: they depend neither on the number
of threads nor on the order of the rows. A feature with only one value is dropped. The bins of
categorical features are in `category_bins.py`. The matrix of bins is stored row by row, padded to
whole 8-byte words::

    codes[i]    f0 f1 f2 f3 f4 f5 f6 f7 | f8 f9 0  0  0  0  0  0      uint8
    words[i]    one uint64              | one uint64                  the same memory
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankgrove.data.arrays import Rows, frozen
from rankgrove.data.category_bins import CategoryBins, Target, fold_of_rows
from rankgrove.data.queries import query_order_rows
from rankgrove.errors import DataError
from rankgrove.parallel import threads
from rankgrove.validation import check_integer, counted

if TYPE_CHECKING:
    import scipy.sparse

    from rankgrove.data.arrays import Matrix
    from rankgrove.data.columns_file import ColumnsFile
    from rankgrove.data.queries import QueryDataset

MISSING = 255  # the bin of NaN
MOST_SPARSE_COLUMNS = 1 << 18  # columns of a sparse matrix with at least one stored value
N_BINS = 256  # values of a byte: 255 bins for values, one for missing values
MOST_VALUE_BINS = 255
_COLUMNS_AT_ONCE = 16  # one cache line of float32
_SPARSE_ROWS_AT_ONCE = 8192
_SPARSE_CELLS_AT_ONCE = 1 << 24
_MOST_COLUMNS_AT_ONCE = 1024


class ColumnBins(NamedTuple):
    """The thresholds of a column, and its numbers of missing and of distinct values."""

    column: int
    thresholds: np.ndarray
    n_missing: int
    n_values: int
    fullest: int  # rows of the most frequent value
    categories: CategoryBins | None = None  # of a categorical column


@dataclass(frozen=True, eq=False)
class Binner:
    """The thresholds of every feature, as chosen by :meth:`fit`.

    Attributes
    ----------
    n_features : number of columns of the data
    columns : int32 array, the column of every feature that is kept (those not constant). Features
        with one dominant value come first: eight of them make a word that is equal in many rows
    thresholds : one float32 array per kept feature, ascending; there is one bin more than
        thresholds. Those of a categorical feature mean nothing
    categories : by kept feature, the bins of a categorical feature, or None; empty: no feature is
        categorical

    Examples
    --------
    >>> import numpy as np
    >>> from rankgrove.data.binning import Binner
    >>> X = np.array([[0, 5], [1, 5], [np.nan, 5]], np.float32)
    >>> binner = Binner.fit(X)
    >>> binner.columns, binner.thresholds
    (array([0], dtype=int32), (array([0.5], dtype=float32),))
    >>> binner.transform(X).codes[:, 0]
    array([  0,   1, 255], dtype=uint8)
    """

    n_features: int
    columns: np.ndarray
    thresholds: tuple[np.ndarray, ...]
    categories: tuple[CategoryBins | None, ...] = ()

    @classmethod
    def fit(
        cls,
        features: Matrix,
        rows: Rows = None,
        max_bins: int = MOST_VALUE_BINS,
        n_threads: int | None = None,
        categorical: Collection[int] = (),
        target: Target | None = None,
    ) -> Binner:
        """Choose thresholds from float32 `features` (dense or CSR), all rows or some.

        A feature with at most `max_bins` distinct values has a bin for each of them. Otherwise the
        bins hold numbers of rows that are as equal as possible; frequent values and infinities
        have bins of their own. The columns `categorical` hold codes of categories; if more
        than 254 of them are not rare, they are ordered by the `target`, if it is given.
        """
        max_bins = check_integer("max_bins", "Binner", max_bins, low=2, high=MOST_VALUE_BINS)
        bins = []
        seen, columns = features, np.arange(features.shape[1])
        if not isinstance(features, np.ndarray):  # a column without stored values is constant: 0
            columns = np.unique(features.indices)
            if columns.size > MOST_SPARSE_COLUMNS:
                raise too_many_columns(columns.size)
            seen = _narrowed(features, columns)
        with threads(n_threads):
            for first, thresholds, summary in _fit_by_groups(seen, rows, max_bins):
                for c, (n_thresholds, *counted) in enumerate(summary.tolist()):
                    column_thresholds = thresholds[c, :n_thresholds].copy()
                    bins.append(ColumnBins(int(columns[first + c]), column_thresholds, *counted))
        if categorical:
            from rankgrove.data.counting import category_bins, count_columns, sum_column

            sums_of = None if target is None else partial(sum_column, features, rows, target)
            bins = [column for column in bins if column.column not in categorical]
            for column in sorted(categorical):
                (counts,) = count_columns(features, column, column + 1, rows, n_threads)
                bins.append(category_bins(column, counts, max_bins, sums_of))
        return cls.of(int(features.shape[1]), bins)

    @classmethod
    def of(cls, n_features: int, bins: Iterable[ColumnBins]) -> Binner:
        """Return the binner of these columns, without those that cannot be split."""
        kept = [c for c in bins if c.thresholds.size or (c.n_missing and c.n_values)]
        kept.sort(key=lambda column: (-max(column.fullest, column.n_missing), column.column))
        columns = np.array([column.column for column in kept], np.int32)
        categories = tuple(column.categories for column in kept)
        if all(of_column is None for of_column in categories):
            categories = ()
        return cls(n_features, columns, tuple(column.thresholds for column in kept), categories)

    def categories_of(self, at: int) -> CategoryBins | None:
        """Return the bins of the kept feature `at`, if it is categorical."""
        return self.categories[at] if self.categories else None

    @property
    def splits_by_set(self) -> np.ndarray:
        """Of every kept feature, whether splits are sets of bins."""
        by_set = np.zeros(self.columns.size, np.bool_)
        for at, categories in enumerate(self.categories):
            by_set[at] = categories is not None and not categories.ordered
        return by_set

    @property
    def has_ordered(self) -> bool:
        """Whether categories are ordered by the target: bins then depend on labels."""
        return any(c is not None and c.ordered for c in self.categories)

    def content(self) -> list[np.ndarray]:
        """Return everything that tells binners apart, as arrays."""
        named = [part for c in self.categories if c is not None for part in (c.codes, c.bins)]
        return [self.columns, *self.thresholds, *named]

    def transform(
        self, features: Matrix, rows: Rows = None, n_threads: int | None = None
    ) -> BinnedMatrix:
        """Return the bins of float32 `features` (dense or CSR), all rows or some."""
        from rankgrove.data._binning_kernels import bin_rows, densify

        if features.shape[1] != self.n_features:
            raise DataError(
                f"The data has {counted(features.shape[1], 'feature')}; the bins were made for "
                f"{self.n_features}."
            )
        index = row_index(features, rows)
        codes = np.empty((index.size, -(-self.columns.size // 8) * 8), np.uint8)
        tables, steps = self.tables()
        with threads(n_threads):
            if isinstance(features, np.ndarray):
                bin_rows(_dense(features), index, self.columns, tables, steps, codes)
            else:
                kept = _narrowed(features, self.columns)
                all_kept = np.arange(self.columns.size, dtype=np.int32)
                height = _SPARSE_CELLS_AT_ONCE // max(all_kept.size, 1)
                height = min(max(height, 1), _SPARSE_ROWS_AT_ONCE, max(index.size, 1))
                block = np.empty((height, all_kept.size), np.float32)
                for start in range(0, index.size, height):
                    part = index[start : start + height]
                    dense = block[: part.size]
                    densify(kept.data, kept.indices, kept.indptr, part, dense)
                    inside = np.arange(part.size)
                    out = codes[start : start + part.size]
                    bin_rows(frozen(dense), inside, all_kept, tables, steps, out)
        for at, categories in enumerate(self.categories):
            if categories is not None:
                values = one_column(features, rows, int(self.columns[at]))
                codes[:, at] = categories.of_values(values)
        return BinnedMatrix(self, codes)

    def transform_training(self, data: QueryDataset, n_threads: int | None = None) -> BinnedMatrix:
        """Return the bins, in query order, of rows that the bins were made of.

        Ordered categories have the bin of their mean over the other folds of queries.
        """
        rows = query_order_rows(data)
        binned = self.transform(data.features, rows, n_threads)
        for at, categories in enumerate(self.categories):
            if categories is not None and categories.ordered:
                values = one_column(data.features, rows, int(self.columns[at]))
                binned.codes[:, at] = categories.of_training(values, fold_of_rows(data))
        return binned

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the thresholds padded with infinity, and the first step of a binary search."""
        tables = np.full((self.columns.size, N_BINS), np.inf, np.float32)
        steps = np.zeros(self.columns.size, np.uint32)
        for c, thresholds in enumerate(self.thresholds):
            tables[c, : thresholds.size] = thresholds
            steps[c] = 1 << (thresholds.size.bit_length() - 1) if thresholds.size else 0
        return tables, steps


@dataclass(frozen=True, eq=False)
class BinnedMatrix:
    """Rows as bins: ``codes`` (n_rows, width) uint8, width a multiple of 8; see the module.

    Where the bins are in files, `codes` maps one of them, `columns` is the other one, which has
    them column by column, and `missing` says whether values are missing. None: not known.
    """

    binner: Binner
    codes: np.ndarray
    columns: ColumnsFile | None = None
    missing: bool | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    @property
    def n_kept(self) -> int:
        """Number of features kept; the columns after them are padding."""
        return int(self.binner.columns.size)

    @property
    def has_missing(self) -> bool | None:
        """Whether any value of a kept feature is missing; None if no feature is kept."""
        if self.n_kept == 0:
            return None
        if self.missing is not None:
            return self.missing
        return int(self.codes[:, : self.n_kept].max(initial=0)) == MISSING

    @property
    def words(self) -> np.ndarray:
        """The same memory as uint64, eight features per word."""
        return self.codes.view(np.uint64)

    def some(self, rows: np.ndarray) -> BinnedMatrix:
        """Return some of the rows (positions, or a mask)."""
        return BinnedMatrix(self.binner, np.ascontiguousarray(self.codes[rows]))

    def by_column(self, n_threads: int | None = None) -> np.ndarray:
        """Return the bins column by column, shape (n_kept, n_rows): a copy, or the mapped file."""
        if self.columns is not None:
            return self.columns.mapped()
        from rankgrove.data._binning_kernels import transpose

        columns = np.empty((self.n_kept, self.n_rows), np.uint8)
        with threads(n_threads):
            transpose(self.codes, columns)
        return columns


def too_many_columns(n_columns: int) -> DataError:
    """Return the error for more columns with values than trees can be grown on."""
    return DataError(
        f"Trees can be grown on at most {MOST_SPARSE_COLUMNS:,} features that are not "
        f"0 everywhere: each takes 2 KB per leaf. The data has {n_columns:,}. "
        "Drop the rarest, or train a linear model or a net."
    )


def _fit_by_groups(
    features: Matrix, rows: Rows, max_bins: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield (first column, thresholds, summary) of one group of columns after another."""
    from rankgrove.data._binning_kernels import fit_columns

    for first, keys, sizes, zeros, scratch in key_groups(features, rows):
        thresholds = np.empty((len(keys), MOST_VALUE_BINS), np.float32)
        summary = np.empty((len(keys), 4), np.int64)
        alone = np.empty(keys.shape, np.bool_)
        fit_columns(keys, sizes, zeros, max_bins, scratch, alone, thresholds, summary)
        yield first, thresholds, summary


def key_groups(
    features: Matrix, rows: Rows
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (first column, keys, sizes, zeros, scratch) of one group of columns after another.

    The keys of column c are ``keys[c, :sizes[c]]``; zeros that a sparse column does not store are
    only counted. The arrays are overwritten for the next group.
    """
    from rankgrove.data import _binning_kernels as kernels

    index = row_index(features, rows)
    n_columns = features.shape[1]
    sparse = None
    if isinstance(features, np.ndarray):
        bits = _dense(features).view(np.uint32)
        length = index.size
    else:
        sparse = (features if rows is None else features[index]).tocsc()
        bits = sparse.data.view(np.uint32)
        length = int(np.diff(sparse.indptr).max(initial=0))
    width = min(_COLUMNS_AT_ONCE, n_columns)
    if sparse is not None:  # short columns: many of them per call
        many = min((1 << 20) // (length + 1), _MOST_COLUMNS_AT_ONCE, n_columns)
        width = max(width, many)
    keys = np.empty((width, length + 1), np.uint32)
    scratch = np.empty_like(keys)
    for first in range(0, n_columns, max(width, 1)):
        n_here = min(width, n_columns - first)
        sizes = np.full(n_here, index.size)
        zeros = np.zeros(n_here, np.int64)
        if sparse is None:
            kernels.gather_keys(bits, index, first, keys[:n_here])
        else:
            kernels.gather_sparse_keys(bits, sparse.indptr, first, keys[:n_here], sizes)
            zeros = index.size - sizes
        yield first, keys[:n_here], sizes, zeros, scratch[:n_here]


def _narrowed(features: scipy.sparse.csr_matrix, columns: np.ndarray) -> scipy.sparse.csr_matrix:
    """Return some columns of a CSR matrix, in this order, in time linear in its stored values."""
    import scipy.sparse

    place = np.full(features.shape[1], -1, np.int32)
    place[columns] = np.arange(columns.size, dtype=np.int32)
    indices = place[features.indices]
    data, indptr = features.data, features.indptr
    stays = indices >= 0
    if not stays.all():
        before = np.concatenate([[0], np.cumsum(stays)])
        data, indices, indptr = data[stays], indices[stays], before[indptr].astype(indptr.dtype)
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=(features.shape[0], columns.size))


def one_column(features: Matrix, rows: Rows, column: int) -> np.ndarray:
    """Return the values of a column, of all rows or some."""
    index = row_index(features, rows)
    if isinstance(features, np.ndarray):
        return np.asarray(features[index, column])
    return np.asarray(features[:, [column]].toarray()[index, 0])


def row_index(features: Matrix, rows: Rows) -> np.ndarray:
    """Return `rows` as an int64 index."""
    n_rows = int(features.shape[0])
    if rows is None:
        return np.arange(n_rows)
    if isinstance(rows, slice):
        return np.arange(*rows.indices(n_rows))
    index = np.ascontiguousarray(rows, dtype=np.int64)
    if index.size and (index.min() < 0 or index.max() >= n_rows):
        raise DataError(f"Rows must be between 0 and {n_rows - 1}.")
    return index


def _dense(features: np.ndarray) -> np.ndarray:
    return frozen(np.ascontiguousarray(features, dtype=np.float32))
