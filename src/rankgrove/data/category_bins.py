"""Bins of categorical features.

Up to 254 categories have a bin each, and trees split on sets of them. Rare categories and those
beyond the 254 most frequent ones are in the bin of missing values.

A feature of more categories is ordered by its target: the mean label of a category above that of
its queries, shrunk to 0. Bins are then ranges of that order, as for numbers, and a split is again a
set of categories, those up to a threshold. In training the mean of a row's category comes from the
queries of the other folds (`category_means.py`)::

    category      17    4     290   8           in the order of the means
    mean         -.31  -.02   .11   .12  ...
    bin           0     0     1     1           rows of other queries: at most 255 bins
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankgrove.data.category_means import fold_of_queries

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

MISSING = 255  # the bin of missing, rare and unknown categories
MOST_BINS = 254  # categories with a bin of their own
LEAST_ROWS = 2  # a category of fewer rows is rare


def fold_of_rows(data: QueryDataset) -> np.ndarray:
    """Return the fold of every row in query order."""
    return np.repeat(fold_of_queries(data), np.diff(data.query_ptr))


def exact_unit(lowest: float, highest: float, n_rows: int) -> float:
    """Return the unit of differences of labels for which a sum over all rows is exact.

    A float64 holds all whole numbers up to 2**53: sums of that many units have no rounding error,
    so they are the same in any order, and for any division of the rows into parts.
    """
    exponent = math.frexp(highest / 2 - lowest / 2)[1] + 1  # all differences are below 2**exponent
    return math.ldexp(1.0, max(exponent + n_rows.bit_length() - 53, -1022))


class Target(NamedTuple):
    """What categories are ordered by, of every row in the order of the rows to bin.

    Attributes
    ----------
    value : the label minus the mean label of the query, in whole units
    fold : of the row's query, from 0 to FOLDS - 1
    """

    value: np.ndarray
    fold: np.ndarray

    @classmethod
    def of(cls, data: QueryDataset, unit: float | None = None) -> Target:
        """Return the target of a data set's rows in query order.

        A part of the data takes the `unit` of the whole: see :func:`exact_unit`.
        """
        if unit is None:
            unit = exact_unit(float(data.y.min()), float(data.y.max()), data.n_rows)
        labels, sizes = data.grouped(data.y).astype(np.float64), np.diff(data.query_ptr)
        means = np.add.reduceat(labels, data.query_ptr[:-1]) / sizes
        value = np.rint((labels - np.repeat(means, sizes)) / unit) * unit
        return cls(value, fold_of_rows(data))


@dataclass(frozen=True, eq=False)
class CategoryBins:
    """The bins of a categorical feature.

    Attributes
    ----------
    codes : the categories that have bins, ascending
    bins : uint8, the bin of each
    by_fold : of ordered categories, the bins of training rows: uint8 of shape (FOLDS, codes)
    """

    codes: np.ndarray
    bins: np.ndarray
    by_fold: np.ndarray | None = None

    @property
    def ordered(self) -> bool:
        """Whether bins are ranges of an order, so that splits are thresholds of it.

        Otherwise every category has its own bin, and splits are sets of bins.
        """
        return self.by_fold is not None

    def of_values(self, values: np.ndarray) -> np.ndarray:
        """Return the bins of some values."""
        return np.append(self.bins, np.uint8(MISSING))[places_of(values, self.codes)]

    def of_training(self, values: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """Return the bins of ordered categories in training rows, which are in given folds."""
        assert self.by_fold is not None
        places = places_of(values, self.codes)
        return np.where(places < 0, MISSING, self.by_fold[fold, places]).astype(np.uint8)

    def left_codes(self, goes_left: np.ndarray) -> np.ndarray:
        """Return the categories of the bins that go left, given for every bin."""
        return np.asarray(self.codes[goes_left[self.bins] == 1])

    def table(self, holds: np.ndarray) -> np.ndarray:
        """Return by bin (256 of them) whether it is in a set, given for every category."""
        table = np.zeros(MISSING + 1, np.uint8)
        table[self.bins] = holds
        return table


def frequent(counts: np.ndarray) -> np.ndarray:
    """Return the places of the categories that are not rare, given their numbers of rows."""
    return np.flatnonzero(counts >= LEAST_ROWS)


def most_frequent(counts: np.ndarray) -> np.ndarray:
    """Return the places of at most 254 categories, ascending; of equal counts the first ones."""
    often = frequent(counts)
    order = often[np.argsort(-counts[often].astype(np.int64), kind="stable")]
    return np.sort(order[:MOST_BINS])


def places_of(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the place of every value among the codes (ascending); -1: it has none."""
    table = np.full(int(codes[-1]) + 2, -1, np.int32)  # the last one: unknown
    table[codes] = np.arange(codes.size)
    known = (values >= 0) & (values <= codes[-1])
    return table[np.where(known, values, codes[-1] + 1).astype(np.int64)]
