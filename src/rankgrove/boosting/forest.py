"""The trees of a random forest: each on its own bootstrap sample."""

from __future__ import annotations

import numpy as np

from rankgrove.boosting.rows import HeldTraining, TreeGrower
from rankgrove.boosting.sampling import Sampler, share
from rankgrove.boosting.step import Step
from rankgrove.model.tree import Tree
from rankgrove.objectives.pointwise import SquaredError
from rankgrove.random import generator
from rankgrove.training.watch import Watch


class Bootstrap:
    """Draws rows, or whole queries, with replacement.

    Parameters
    ----------
    keys : uint64, one a row or one a query: the order of the file plays no part in the draw
    sizes : the numbers of rows of the queries; None: rows are drawn
    fraction : how many are drawn, as a share of their number
    """

    def __init__(
        self, keys: np.ndarray, sizes: np.ndarray | None, fraction: float, seed: int
    ) -> None:
        self._by_key = np.argsort(keys, kind="stable")
        self._sizes = sizes
        self._n_drawn = share(fraction, keys.size)
        self._seed = seed

    def draw(self, round: int) -> np.ndarray:
        """Return how often every row was drawn."""
        n = self._by_key.size
        lots = generator(self._seed, "bootstrap", round).integers(0, n, self._n_drawn)
        times = np.empty(n, np.int64)
        times[self._by_key] = np.bincount(lots, minlength=n)
        return times if self._sizes is None else np.repeat(times, self._sizes)


class ForestTraining(HeldTraining):
    """Training rows whose gradients are the labels, times how often a row was drawn.

    Attributes
    ----------
    unseen : for every row, the sum of the values of the trees that did not see it, and how many
    """

    def __init__(
        self,
        objective: SquaredError,
        grower: TreeGrower,
        scores: np.ndarray,
        sampler: Sampler,
        bootstrap: Bootstrap,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(objective, grower, scores, sampler, n_threads)
        self.grows_alike = False
        self._labels = objective.labels
        self._weight = objective.weight if objective.weight.size else np.ones(scores.shape[1])
        self._bootstrap = bootstrap
        self.unseen = (np.zeros(scores.shape[1]), np.zeros(scores.shape[1], np.int64))

    def follow(self, round: int) -> None:
        """Draw the sample of a tree."""
        times = self._bootstrap.draw(round)
        self._hessian[0] = times * self._weight
        self._gradient[0] = self._hessian[0] * self._labels
        self._rows = np.flatnonzero(times).astype(np.int32)

    def advance(self, column: int, number: int, step: Step, watch: Watch) -> tuple[Tree, float]:
        """Grow a tree and add it to the scores; return it and its weight."""
        gradient, hessian = self._gradient[0], self._hessian[0]
        tree, leaf_of = self._grower.grow(gradient, hessian, number, self._rows)
        tree, weight = step(tree, leaf_of, self._scores[0], watch)
        values = tree.value[leaf_of]
        self._scores[0] += values
        missed = np.ones(values.size, np.bool_)
        missed[self._rows] = False
        total, n = self.unseen
        total[missed] += values[missed]
        n += missed
        return tree, weight
