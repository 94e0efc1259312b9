"""Mean targets of categories, shrunken and cross-fitted by query.

The mean of a category is taken over `PRIOR_ROWS` rows more than it has, whose target is the prior,
the mean of all rows: a category of few rows is near the prior. A training row must not see its own
label: its means are those of the queries in the other folds.

Two things are made of such means. Many categories are ordered by the label minus the mean label of
the query, with the prior 0 (`category_bins.py`). And categories become numbers, their mean labels,
for rankers that cannot use codes (`rankers/ensembles/encoding.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankgrove.random import derive_seed, mix64

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

FOLDS = 5
PRIOR_ROWS = 10.0


def fold_of_queries(data: QueryDataset) -> np.ndarray:
    """Return the fold of every query, from 0 to FOLDS - 1: a hash of its id."""
    seed = np.uint64(derive_seed(0, "folds of categories"))
    return (mix64(data.query_keys ^ seed) % np.uint64(FOLDS)).astype(np.int64)


class CategorySums(NamedTuple):
    """Sums of a target, and numbers (or weights) of rows; by fold and category: (FOLDS, n)."""

    sums: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(
        cls,
        places: np.ndarray,
        n: int,
        fold: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> CategorySums:
        """Return the sums over some rows.

        Parameters
        ----------
        places : of every row the number of its category, below `n`; -1: the row is left out
        fold, target, weight : of every row; the target is given times the weight
        """
        rows = places >= 0
        flat = fold[rows] * n + places[rows]
        sums = np.bincount(flat, target[rows], minlength=FOLDS * n)
        counts = np.bincount(flat, None if weight is None else weight[rows], minlength=FOLDS * n)
        return cls(sums.reshape(FOLDS, n), counts.reshape(FOLDS, n))

    @classmethod
    def merged(cls, parts: Sequence[CategorySums]) -> CategorySums:
        """Return the sums over all parts of the data."""
        return cls(*(np.sum(of_parts, axis=0) for of_parts in zip(*parts, strict=True)))

    def total(self) -> CategorySums:
        """Return the sums over all folds, by category."""
        return CategorySums(self.sums.sum(axis=0), self.counts.sum(axis=0))

    def elsewhere(self) -> CategorySums:
        """Return for every fold the sums over the other folds."""
        others = [np.arange(FOLDS) != fold for fold in range(FOLDS)]
        sums, counts = (np.stack([part[rest].sum(axis=0) for rest in others]) for part in self)
        return CategorySums(sums, counts)

    def means(self, prior: float | np.ndarray = 0.0) -> np.ndarray:
        """Return the shrunken means."""
        return (self.sums + PRIOR_ROWS * prior) / (self.counts + PRIOR_ROWS)
