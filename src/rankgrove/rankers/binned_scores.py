"""Scores of data that has bins instead of features, by trees whose thresholds are those of bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.binning import Binner
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError

if TYPE_CHECKING:
    from rankgrove.model.ensemble import Ensemble
    from rankgrove.rankers.base import Ranker


def scores_of_bins(
    ranker: Ranker, data: BinnedDataset, predict: Callable[[QueryDataset], np.ndarray], owner: str
) -> np.ndarray:
    """Return the scores of the rows, piece by piece; refuse trees with other thresholds."""
    parts = _trees_in(ranker)
    if not parts or not all(_fits(trees, data.binner) for trees in parts):
        raise DataError(
            f"{owner}: the data in {data.folder} has bins only, and the model does not split "
            "between these bins alone, so that it needs the features. Read the data itself, with "
            "rg.read_letor or rg.read_table."
        )
    scores = np.empty(data.n_rows)
    for rows, piece in data.decoded():
        scores[rows] = predict(piece)
    return scores


def _trees_in(ranker: Ranker) -> list[Ensemble]:
    """Return the trees of a ranker and of its members; none if one of them has no trees."""
    own = ranker.own_trees()
    found = [] if own is None else [own]
    for member in ranker.members():
        if not hasattr(member, "own_trees") or not (inner := _trees_in(member)):
            return []
        found += inner
    return found


def _fits(trees: Ensemble, binner: Binner) -> bool:
    """Whether all values of a bin go the same way everywhere."""
    at = {column: i for i, column in enumerate(binner.columns.tolist())}
    for column in np.unique(trees.feature).tolist():
        if column not in at:
            return False
        nodes = np.flatnonzero(trees.feature == column)
        categories = binner.categories_of(at[column])
        sets = trees.set_of[nodes]
        if categories is None:
            if (sets >= 0).any():
                return False
            thresholds = trees.threshold[nodes]
            # infinity: missing values against the rest
            known = np.isin(thresholds, binner.thresholds[at[column]]) | (thresholds == np.inf)
            if not known.all():
                return False
            continue
        if (sets < 0).any() or trees.missing_left[nodes].any():
            return False
        for number in np.unique(sets).tolist():
            codes = trees.sets.codes(number)
            inside = np.isin(categories.codes, codes)
            split = np.isin(categories.bins[inside], categories.bins[~inside]).any()
            if split or not np.isin(codes, categories.codes).all():
                return False
    return True
