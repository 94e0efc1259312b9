"""Training rows in this process: their scores, and trees grown on their gradients."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rankgrove.boosting.loop import Objective
from rankgrove.boosting.step import Grown
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.splitting import SplitRules
from rankgrove.model.tree import Tree
from rankgrove.objectives.position_bias import PositionBias


class TreeGrower(Protocol):
    """Grows trees: a :class:`~rankgrove.growth.grower.Grower`, or a search for stumps."""

    rules: SplitRules

    def grow(
        self,
        gradient: np.ndarray,
        hessian: np.ndarray | None = None,
        round: int = 0,
        rows: np.ndarray | None = None,
    ) -> tuple[Tree, np.ndarray]:
        """Return a tree, and the leaf of every row."""


class RowSampler(Protocol):
    """Draws the queries and rows that a round sees."""

    @property
    def is_random(self) -> bool:
        """Whether rounds see different queries or rows."""

    def draw(self, round: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return a round's queries, and the rows to grow on, ascending; None: all."""


class LocalRows:
    """Training rows for the boosting loop (see :class:`~rankgrove.boosting.loop.TrainingRows`).

    Parameters
    ----------
    objective, grower : compute the gradients, and grow trees on them
    scores : scores of the trees so far, of shape (columns, rows); updated in place
    sampler : draws the queries and rows that a round sees
    """

    def __init__(
        self,
        objective: Objective,
        grower: TreeGrower,
        scores: np.ndarray,
        sampler: RowSampler,
        n_threads: int | None = None,
    ) -> None:
        self.n_columns = objective.n_columns
        draws = sampler.is_random or grower.rules.feature_fraction < 1.0
        self.grows_alike = not (draws or objective.varies_by_round)
        self._objective = objective
        self._grower = grower
        self._scores = scores
        self._sampler = sampler
        self._n_threads = n_threads
        self._gradient, self._hessian = np.zeros(scores.shape), np.zeros(scores.shape)
        self._bias: PositionBias | None = getattr(objective, "bias", None)
        self._rows: np.ndarray | None = None

    def gradients(self, round: int) -> None:
        """Draw a round's queries and rows, and compute its gradients."""
        columns = 0 if self.n_columns == 1 else slice(None)
        queries, self._rows = self._sampler.draw(round)
        arrays = (self._scores[columns], self._gradient[columns], self._hessian[columns])
        self._objective.gradients(*arrays, queries, self._n_threads, round)
        if self._bias is not None:
            self._bias.advance(getattr(self._objective, "sums", None))

    def grow(self, column: int, number: int) -> Grown:
        """Return a tree that follows the gradients of a column."""
        gradient, hessian = self._gradient[column], self._hessian[column]
        tree, leaf_of = self._grower.grow(gradient, hessian, number, self._rows)
        return Grown(tree, leaf_of, self._scores[column])

    def add(self, column: int, grown: Grown) -> None:
        """Add a tree to the scores of a column."""
        add_leaf_values(
            self._scores[column], grown.tree.value, grown.leaf_of, n_threads=self._n_threads
        )
