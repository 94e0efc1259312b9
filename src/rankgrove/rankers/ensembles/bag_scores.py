"""Scores of a bag: one pass over the trees of all models, where all models are trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.bagging.aggregate import aggregate
from rankgrove.data.queries import QueryDataset
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.given import features_of
from rankgrove.scoring.score import score

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents


class BagScores:
    """The scores of a bag of models.

    Where all models are sums of trees, they become one ensemble: with ``"mean"`` the trees of all
    models, each times its model's share; else one column per model. All models are scored in one
    pass over the documents and then scaled within every query.
    """

    def __init__(
        self, models: Sequence[Ranker], weights: np.ndarray, combine: str, n_features: int
    ) -> None:
        self.models = models
        self.combine = combine
        self.weights = weights
        self._joined: Ensemble | None = None
        self._base = np.zeros(len(models))
        parts = [model.flat() for model in models]
        if all(part is not None for part in parts):
            ensembles = [part for part in parts if part is not None]
            self._base = np.array([ensemble.base for ensemble in ensembles])
            shares = weights / weights.sum()
            self._joined = (
                summed(ensembles, shares, n_features)
                if combine == "mean"
                else _side_by_side(ensembles, n_features)
            )

    def one_ensemble(self) -> Ensemble | None:
        """Return the trees whose sum is the bag's score, or None where it is no such sum."""
        return self._joined if self.combine == "mean" else None

    def predict(self, X: Documents, n_threads: int | None) -> np.ndarray:
        """Return one score per row, in the caller's order."""
        if self._joined is not None and self.combine == "mean":
            return score(self._joined, *features_of(X, "predict"), n_threads)
        columns = self.columns(X, n_threads)
        if not isinstance(X, QueryDataset):  # plain means need no queries
            all_rows = np.array([0, columns.shape[1]])
            return aggregate(columns, all_rows, self.combine, self.weights, n_threads)
        grouped = (X.grouped(scores) for scores in columns)
        return X.ungrouped(aggregate(grouped, X.query_ptr, self.combine, self.weights, n_threads))

    def columns(self, X: Documents, n_threads: int | None) -> np.ndarray:
        """Return every model's scores, of shape (models, rows), in the caller's order."""
        if self._joined is not None and self.combine != "mean" and len(self.models) > 1:
            scores = score(self._joined, *features_of(X, "predict"), n_threads)
            return np.asarray(scores + self._base[:, None])
        return np.array([model.predict(X, n_threads=n_threads) for model in self.models])


def summed(ensembles: Sequence[Ensemble], shares: np.ndarray, n_features: int) -> Ensemble:
    """Return one ensemble of all trees, with values multiplied by their ensemble's share."""
    trees = []
    for ensemble, share in zip(ensembles, shares.tolist(), strict=True):
        scaled = replace(ensemble, value=share * ensemble.value)
        trees += [scaled.tree(t) for t in range(ensemble.n_trees)]
    base = float(shares @ np.array([ensemble.base for ensemble in ensembles]))
    return Ensemble.from_trees(trees, n_features, base)


def _side_by_side(ensembles: Sequence[Ensemble], n_features: int) -> Ensemble:
    """Return one ensemble with one column per model; shorter ones are padded with trees of 0."""
    zero = Tree.constant(0.0)
    longest = max(ensemble.n_trees for ensemble in ensembles)
    trees = [
        ensemble.tree(t) if t < ensemble.n_trees else zero
        for t in range(longest)
        for ensemble in ensembles
    ]
    return Ensemble.from_trees(trees, n_features, 0.0, len(ensembles))
