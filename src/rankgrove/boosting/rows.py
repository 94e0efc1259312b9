"""The training rows that this process holds: their scores, and a tree grown on their gradients."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rankgrove.boosting.loop import Objective
from rankgrove.boosting.sampling import Sampler
from rankgrove.boosting.step import Step
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.splitting import SplitRules
from rankgrove.model.tree import Tree
from rankgrove.training.watch import Watch


class TreeGrower(Protocol):
    """What grows a tree: a :class:`~rankgrove.growth.grower.Grower`, or a search for stumps."""

    rules: SplitRules

    def grow(
        self,
        gradient: np.ndarray,
        hessian: np.ndarray | None = None,
        round: int = 0,
        rows: np.ndarray | None = None,
    ) -> tuple[Tree, np.ndarray]:
        """Return a tree, and the leaf of every row."""


class HeldTraining:
    """Training rows for the boosting loop (see :class:`~rankgrove.boosting.loop.TrainingRows`).

    Parameters
    ----------
    objective, grower : what to follow, and what follows it
    scores : of shape (columns, rows), of the trees so far; brought up to date in place
    sampler : which queries and rows a round sees
    """

    def __init__(
        self,
        objective: Objective,
        grower: TreeGrower,
        scores: np.ndarray,
        sampler: Sampler,
        n_threads: int | None = None,
    ) -> None:
        self.n_columns = objective.n_columns
        self.grows_alike = not sampler.is_random and grower.rules.feature_fraction == 1.0
        self._objective = objective
        self._grower = grower
        self._scores = scores
        self._sampler = sampler
        self._n_threads = n_threads
        self._gradient, self._hessian = np.zeros(scores.shape), np.zeros(scores.shape)
        self._rows: np.ndarray | None = None

    def follow(self, round: int) -> None:
        """Draw what a round sees, and compute its gradients."""
        one = 0 if self.n_columns == 1 else slice(None)
        queries, self._rows = self._sampler.draw(round)
        arrays = (self._scores[one], self._gradient[one], self._hessian[one])
        self._objective.gradients(*arrays, queries, self._n_threads)

    def advance(self, column: int, number: int, step: Step, watch: Watch) -> tuple[Tree, float]:
        """Grow a tree, weigh it and add it to the scores; return it and its weight."""
        gradient, hessian = self._gradient[column], self._hessian[column]
        tree, leaf_of = self._grower.grow(gradient, hessian, number, self._rows)
        tree, weight = step(tree, leaf_of, self._scores[column], watch)
        add_leaf_values(self._scores[column], tree.value, leaf_of, n_threads=self._n_threads)
        return tree, weight
