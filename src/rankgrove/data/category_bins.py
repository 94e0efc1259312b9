"""Bins of categorical features.

Up to 254 categories have a bin each, and trees split on sets of them. Rare categories and those
beyond the 254 most frequent ones are in the bin of missing values.

A feature of more categories is ordered by its target: the mean label of a category above that of
its queries, shrunk to 0. Bins are then ranges of that order, as for numbers, and a split is again a
set of categories, those up to a threshold. In training a row must not see its own label: its
category's mean comes from the queries of the other folds (cross-fitting by query)::

    category      17    4     290   8           in the order of the means
    mean         -.31  -.02   .11   .12  ...
    bin           0     0     1     1           rows of other queries: at most 255 bins
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankgrove.random import derive_seed, mix64

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

MISSING = 255  # the bin of missing, rare and unknown categories
MOST_BINS = 254  # categories with a bin of their own
LEAST_ROWS = 2  # a category of fewer rows is rare
FOLDS = 5
SHRINKING = 10.0  # rows of mean 0 that are added to every category


class Target(NamedTuple):
    """What categories are ordered by, of every row in the order of the rows to bin.

    Attributes
    ----------
    value : the label minus the mean label of the query
    fold : of the row's query, from 0 to FOLDS - 1
    """

    value: np.ndarray
    fold: np.ndarray

    @classmethod
    def of(cls, data: QueryDataset) -> Target:
        """Return the target of a data set's rows in query order."""
        labels, sizes = data.grouped(data.y).astype(np.float64), np.diff(data.query_ptr)
        means = np.add.reduceat(labels, data.query_ptr[:-1]) / sizes
        seed = np.uint64(derive_seed(0, "folds of categories"))
        fold = (mix64(data.query_keys ^ seed) % np.uint64(FOLDS)).astype(np.int64)
        return cls(labels - np.repeat(means, sizes), np.repeat(fold, sizes))


@dataclass(frozen=True, eq=False)
class CategoryBins:
    """The bins of a categorical feature.

    Attributes
    ----------
    codes : the categories that have bins, ascending
    bins : uint8, the bin of each
    ordered : whether bins are ranges of an order, so that splits are thresholds of it; otherwise
        every category has its own bin, and splits are sets of bins
    """

    codes: np.ndarray
    bins: np.ndarray
    ordered: bool

    def of_values(self, values: np.ndarray) -> np.ndarray:
        """Return the bins of some values."""
        table = np.full(int(self.codes[-1]) + 2, MISSING, np.uint8)  # the last one: unknown
        table[self.codes] = self.bins
        known = (values >= 0) & (values <= self.codes[-1])
        places = np.where(known, values, self.codes[-1] + 1).astype(np.int64)
        return np.asarray(table[places])

    def places(self, values: np.ndarray) -> np.ndarray:
        """Return the place of every value among the codes; -1: it has none."""
        places = np.searchsorted(self.codes, values).astype(np.int64)
        places[places == self.codes.size] = 0
        places[self.codes[places] != values] = -1
        return places

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


def means_by_category(
    places: np.ndarray, n: int, target: Target
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the shrunken mean of every category, the same by fold left out, and its known rows.

    In: `places`, of every row the number of its category below `n`, or -1. Out: arrays of shape
    (n,), (FOLDS, n) and (FOLDS, n); a category without rows in the other folds is not known there.
    """
    rows = places >= 0
    flat = target.fold[rows] * n + places[rows]
    sums = np.bincount(flat, target.value[rows], minlength=FOLDS * n).reshape(FOLDS, n)
    counts = np.bincount(flat, minlength=FOLDS * n).reshape(FOLDS, n)
    others = counts.sum(axis=0) - counts
    mean = sums.sum(axis=0) / (counts.sum(axis=0) + SHRINKING)
    return mean, (sums.sum(axis=0) - sums) / (others + SHRINKING), others
