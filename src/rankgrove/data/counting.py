"""Exact counts of the values of a column, summed over parts of the data, to bin all of it.

Every part of the data counts the values of its rows. The sum of these counts is the count of the
whole data, and gives the same thresholds to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.binning import MOST_VALUE_BINS, ColumnBins, key_groups
from rankgrove.data.category_bins import (
    LEAST_ROWS,
    MOST_BINS,
    CategoryBins,
    Target,
    frequent,
    means_by_category,
    most_frequent,
)
from rankgrove.errors import DataError
from rankgrove.parallel import threads

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix


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


def category_bins(column: int, counted: ColumnCounts) -> ColumnBins:
    """Return the bins of a categorical column: one for each of the most frequent categories."""
    kept = most_frequent(counted.counts)
    codes = counted.values[kept].astype(np.int64)
    n_missing = counted.n_missing + int(counted.counts.sum()) - int(counted.counts[kept].sum())
    places = np.arange(max(codes.size - 1, 0), dtype=np.float32) + np.float32(0.5)
    fullest = int(counted.counts.max(initial=0))
    bins = CategoryBins(codes, np.arange(codes.size).astype(np.uint8), ordered=False)
    return ColumnBins(column, places, n_missing, codes.size, fullest, bins)


def ordered_bins(
    column: int, counted: ColumnCounts, values: np.ndarray, target: Target, max_bins: int
) -> ColumnBins:
    """Return the bins of a categorical column whose categories are ordered by the target."""
    kept = frequent(counted.counts)
    codes, counts = counted.values[kept].astype(np.int64), counted.counts[kept]
    unordered = CategoryBins(codes, np.zeros(codes.size, np.uint8), ordered=True)
    means = means_by_category(unordered.places(values), codes.size, target)[0].astype(np.float32)
    distinct, group = np.unique(means, return_inverse=True)
    rows = np.bincount(group, counts).astype(np.uint32)
    n_missing = counted.n_missing + int(counted.counts.sum()) - int(counts.sum())
    found = bins_of(column, ColumnCounts(distinct, rows, n_missing), max_bins)
    bins = np.searchsorted(found.thresholds, means).astype(np.uint8)
    return found._replace(categories=replace(unordered, bins=bins))


def merged_bins(
    first: int,
    parts: Iterable[Sequence[ColumnCounts]],
    max_bins: int,
    categorical: Collection[int] = (),
) -> list[ColumnBins]:
    """Return the bins of the columns from `first` on, given the counts of every part."""
    columns = []
    for c, counts in enumerate(zip(*parts, strict=True), first):
        counted = merge_counts(counts)
        if c not in categorical:
            columns.append(bins_of(c, counted, max_bins))
            continue
        n_often = frequent(counted.counts).size
        if n_often > MOST_BINS:
            raise DataError(
                f"Feature {c + 1} has {n_often:,} categories of at least {LEAST_ROWS} rows. "
                f"Training on parts takes at most {MOST_BINS}, because more are ordered by labels "
                "of all parts. Train on one machine, or pool rare categories."
            )
        columns.append(category_bins(c, counted))
    return columns
