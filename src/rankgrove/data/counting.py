"""Exact counts of the values of a column, summed over parts of the data, to bin all of it.

Every part of the data counts the values of its rows. The sum of these counts is the count of the
whole data, and gives the same thresholds to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.binning import MOST_VALUE_BINS, ColumnBins, key_groups
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


def merged_bins(
    first: int, parts: Iterable[Sequence[ColumnCounts]], max_bins: int
) -> list[ColumnBins]:
    """Return the bins of the columns from `first` on, given the counts of every part."""
    columns = zip(*parts, strict=True)
    return [bins_of(first + c, merge_counts(counts), max_bins) for c, counts in enumerate(columns)]
