"""Exact counts of the values of a column, summed over parts of the data, to bin all of it.

Every part of the data counts the values of its rows. The sum of these counts is the count of the
whole data, and gives the same thresholds to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.binning import MISSING, MOST_VALUE_BINS, ColumnBins, key_groups, one_column
from rankgrove.data.category_bins import (
    MOST_BINS,
    CategoryBins,
    Target,
    frequent,
    most_frequent,
    places_of,
)
from rankgrove.data.category_means import CategorySums
from rankgrove.parallel import threads

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

SumsOf = Callable[[int, np.ndarray], CategorySums]  # (column, codes) -> sums over all rows


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """The distinct values of a column (float32, ascending), their counts (uint32), and its NaNs.

    Examples
    --------
    >>> import numpy as np
    >>> from rankgrove.data.counting import count_columns
    >>> (column,) = count_columns(np.array([[2], [0], [np.nan], [2]], np.float32), 0, 1)
    >>> column.values, column.counts, column.n_missing
    (array([0., 2.], dtype=float32), array([1, 2], dtype=uint32), 1)
    """

    values: np.ndarray
    counts: np.ndarray
    n_missing: int


def count_columns(
    features: Matrix, first: int, last: int, rows: Rows = None, n_threads: int | None = None
) -> list[ColumnCounts]:
    """Count the values of the columns `first` to `last` - 1 of float32 features (dense or CSR)."""
    from rankgrove.data import _counting_kernels as kernels

    columns = []
    with threads(n_threads):
        for _, keys, sizes, zeros, scratch in key_groups(features[:, first:last], rows):
            values, counts = np.empty_like(keys), np.empty_like(keys)
            summary = np.empty((len(keys), 2), np.int64)
            kernels.count_columns(keys, sizes, zeros, scratch, values, counts, summary)
            for c, (n_values, n_missing) in enumerate(summary.tolist()):
                distinct = values[c, :n_values].copy().view(np.float32)
                columns.append(ColumnCounts(distinct, counts[c, :n_values].copy(), n_missing))
    return columns


def sum_column(
    features: Matrix, rows: Rows, target: Target, column: int, codes: np.ndarray
) -> CategorySums:
    """Return the target's sums by category of a column, for the given codes (ascending)."""
    places = places_of(one_column(features, rows, column), codes)
    return CategorySums.of(places, codes.size, target.fold, target.value)


def merge_counts(parts: Sequence[ColumnCounts]) -> ColumnCounts:
    """Return the counts of a column over all parts."""
    values = np.concatenate([part.values for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.argsort(values, kind="stable")  # sorted runs are merged quickly
    values, counts = values[order], counts[order]
    starts = np.flatnonzero(np.concatenate([values[:1] == values[:1], values[1:] != values[:-1]]))
    total = np.add.reduceat(counts, starts) if starts.size else counts
    return ColumnCounts(
        values[starts], total.astype(np.uint32), sum(part.n_missing for part in parts)
    )


def bins_of(column: int, counted: ColumnCounts, max_bins: int) -> ColumnBins:
    """Return the bins of a column, given the counts of the whole data."""
    from rankgrove.data._counting_kernels import choose

    thresholds = np.empty(MOST_VALUE_BINS, np.float32)
    alone = np.empty(counted.values.size, np.bool_)
    k = choose(counted.values, counted.counts, max_bins, alone, thresholds)
    fullest = int(counted.counts.max(initial=0))
    n_values = int(counted.values.size)
    return ColumnBins(column, thresholds[:k].copy(), counted.n_missing, n_values, fullest)


def category_bins(
    column: int, counted: ColumnCounts, max_bins: int, sums_of: SumsOf | None = None
) -> ColumnBins:
    """Return the bins of a categorical column.

    More categories than bins are ordered by the target, whose sums are asked for; without `sums_of`
    the most frequent ones have bins.
    """
    kept = frequent(counted.counts)
    if sums_of is not None and kept.size > MOST_BINS:
        codes = counted.values[kept].astype(np.int64)
        return ordered_bins(column, counted, codes, sums_of(column, codes), max_bins)
    kept = most_frequent(counted.counts)
    codes = counted.values[kept].astype(np.int64)
    n_missing = counted.n_missing + int(counted.counts.sum()) - int(counted.counts[kept].sum())
    places = np.arange(max(codes.size - 1, 0), dtype=np.float32) + np.float32(0.5)
    fullest = int(counted.counts.max(initial=0))
    bins = CategoryBins(codes, np.arange(codes.size).astype(np.uint8))
    return ColumnBins(column, places, n_missing, codes.size, fullest, bins)


def ordered_bins(
    column: int, counted: ColumnCounts, codes: np.ndarray, sums: CategorySums, max_bins: int
) -> ColumnBins:
    """Return the bins of a categorical column whose `codes` are ordered by the target."""
    total = sums.total()
    means = total.means().astype(np.float32)
    distinct, group = np.unique(means, return_inverse=True)
    rows = np.bincount(group, total.counts).astype(np.uint32)
    n_missing = counted.n_missing + int(counted.counts.sum()) - int(total.counts.sum())
    found = bins_of(column, ColumnCounts(distinct, rows, n_missing), max_bins)
    bins = np.searchsorted(found.thresholds, means).astype(np.uint8)
    by_fold = training_bins(found.thresholds, sums)
    return found._replace(categories=CategoryBins(codes, bins, by_fold))


def training_bins(thresholds: np.ndarray, sums: CategorySums) -> np.ndarray:
    """Return by fold and category the bin of the category's mean over the other folds.

    A category without rows in the other folds is unknown there.
    """
    elsewhere = sums.elsewhere()
    bins = np.searchsorted(thresholds, elsewhere.means().astype(np.float32)).astype(np.uint8)
    bins[elsewhere.counts == 0] = MISSING
    return bins


def merged_bins(
    first: int,
    parts: Iterable[Sequence[ColumnCounts]],
    max_bins: int,
    categorical: Collection[int] = (),
    sums_of: SumsOf | None = None,
) -> list[ColumnBins]:
    """Return the bins of the columns from `first` on, given the counts of every part."""
    columns = []
    for c, counts in enumerate(zip(*parts, strict=True), first):
        counted = merge_counts(counts)
        if c in categorical:
            columns.append(category_bins(c, counted, max_bins, sums_of))
        else:
            columns.append(bins_of(c, counted, max_bins))
    return columns
