"""The trees of a random forest: each on its own bootstrap sample."""

from __future__ import annotations

import numpy as np

from rankgrove.boosting.local_rows import LocalRows, TreeGrower
from rankgrove.boosting.sampling import share
from rankgrove.boosting.step import Grown
from rankgrove.objectives.pointwise import SquaredError
from rankgrove.random import generator


class Bootstrap:
    """Draws rows, or whole queries, with replacement.

    Parameters
    ----------
    keys : uint64, one per row or one per query: the order of the file does not affect the draw
    sizes : the numbers of rows of the queries; None: rows are drawn
    fraction : size of the sample, as a share of all rows or queries
    """

    def __init__(
        self, keys: np.ndarray, sizes: np.ndarray | None, fraction: float, seed: int
    ) -> None:
        self._by_key = np.argsort(keys, kind="stable")
        self._sizes = sizes
        self._n_drawn = share(fraction, keys.size)
        self._seed = seed

    is_random = True

    def draw(self, round: int) -> tuple[None, np.ndarray]:
        """Return the rows that a round's tree is grown on, ascending."""
        return None, np.flatnonzero(self.times(round)).astype(np.int32)

    def times(self, round: int) -> np.ndarray:
        """Return how often every row was drawn."""
        n = self._by_key.size
        lots = generator(self._seed, "bootstrap", round).integers(0, n, self._n_drawn)
        times = np.empty(n, np.int64)
        times[self._by_key] = np.bincount(lots, minlength=n)
        return times if self._sizes is None else np.repeat(times, self._sizes)


class BootstrapLabels:
    """The objective of a forest's trees: labels, weighted by how often a row was drawn.

    Every tree fits the labels themselves, independently of earlier trees.
    """

    n_columns = 1
    varies_by_round = True

    def __init__(self, squared: SquaredError, bootstrap: Bootstrap) -> None:
        self.labels = squared.labels
        self.query_ptr = squared.query_ptr
        self._weight = squared.weight if squared.weight.size else np.ones(squared.labels.size)
        self._bootstrap = bootstrap

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill `gradient` and `hessian` for the sample of a round."""
        hessian[:] = self._bootstrap.times(round) * self._weight
        gradient[:] = hessian * self.labels


class ForestRows(LocalRows):
    """Training rows that also keep the scores of the trees that did not see them.

    Attributes
    ----------
    unseen : for every row, the sum of the values of the trees that did not see it, and their number
    """

    def __init__(
        self,
        objective: BootstrapLabels,
        grower: TreeGrower,
        scores: np.ndarray,
        bootstrap: Bootstrap,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(objective, grower, scores, bootstrap, n_threads)
        self.unseen = (np.zeros(scores.shape[1]), np.zeros(scores.shape[1], np.int64))

    def add(self, column: int, grown: Grown) -> None:
        """Add a tree to the scores, and to those of the rows that it did not see."""
        values = grown.tree.value[grown.leaf_of]
        self._scores[0] += values
        missed = np.ones(values.size, np.bool_)
        missed[self._rows] = False
        total, n_trees = self.unseen
        total[missed] += values[missed]
        n_trees += missed
