"""Sums of trees on rows: products with weights, and least-squares replacement of removed trees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.model.ensemble import Ensemble
from rankgrove.parallel import piece_bounds, run_pieces
from rankgrove.scoring.score import score

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

STEPS = 8  # of conjugate gradients: few, so that no tree gets an extreme weight


class TreeMatrix:
    """The value of every tree for every row, stored as leaf numbers and leaf values.

    Parameters
    ----------
    ensemble : the trees, one column
    features, rows : the documents, in query order
    query_ptr : the borders of queries
    """

    def __init__(
        self,
        ensemble: Ensemble,
        features: Matrix,
        rows: np.ndarray | slice | None,
        query_ptr: np.ndarray,
        n_threads: int | None,
    ) -> None:
        self.ensemble = ensemble
        self._query_ptr = np.ascontiguousarray(query_ptr, np.int64)
        n_rows = int(query_ptr[-1])
        self._n_threads = n_threads
        widest = int(np.diff(ensemble.leaf_ptr).max(initial=1))
        self.leaf = np.empty((ensemble.n_trees, n_rows), np.min_scalar_type(widest - 1))
        for t in range(ensemble.n_trees):
            tree = ensemble.tree(t)
            numbers = replace(tree, value=np.arange(tree.value.size, dtype=np.float64))
            leaf_numbers = Ensemble.from_trees([numbers], ensemble.n_features)
            self.leaf[t] = score(leaf_numbers, features, rows, n_threads)
        self._ptr = np.ascontiguousarray(ensemble.leaf_ptr, np.int64)
        self._value = np.array(ensemble.value)

    def spread(self, scale: np.ndarray) -> np.ndarray:
        """Return every tree's effect on the differences of a query's documents: a sum of squares.

        scale : factor of every query's scores
        """
        from rankgrove.pruning._tree_matrix_kernels import squared_spread

        spreads = np.empty(self.leaf.shape[0])
        run_pieces(
            lambda a, b: squared_spread(
                self.leaf, self._ptr, self._value, self._query_ptr, scale, a, b, spreads
            ),
            piece_bounds(np.arange(spreads.size + 1), self._n_threads),
            self._n_threads,
        )
        return spreads

    def sum(self, trees: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the weighted sum of the columns of `trees`."""
        from rankgrove.pruning._tree_matrix_kernels import add_trees

        total = np.zeros(self.leaf.shape[1])
        add_trees(self.leaf, self._ptr, self._value, trees, weights, total)
        return total

    def dots(self, trees: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the product of every column of `trees` with `x`."""
        from rankgrove.pruning._tree_matrix_kernels import dots

        products = np.empty(trees.size)
        run_pieces(
            lambda a, b: dots(self.leaf, self._ptr, self._value, trees, a, b, x, products),
            piece_bounds(np.arange(trees.size + 1), self._n_threads),
            self._n_threads,
        )
        return products

    def stand_in(self, trees: np.ndarray, weights: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """Return changes of the weights of `trees` that replace lost scores.

        A few steps of conjugate gradients on least squares: minimise |lost - sum of d_t w_t h_t|^2
        over d, in units of the current weights, so the change of tree t is d_t w_t. Constants per
        query are ignored: they do not change the ranking.
        """
        from rankgrove.pruning._tree_matrix_kernels import centre

        d = np.zeros(trees.size)
        rest = lost.copy()
        centre(self._query_ptr, rest)
        gradient = weights * self.dots(trees, rest)
        direction, square = gradient.copy(), _dot(gradient, gradient)
        for _ in range(min(STEPS, trees.size)):
            if square <= 0.0:
                break
            along = self.sum(trees, weights * direction)
            centre(self._query_ptr, along)
            length = _dot(along, along)
            if length <= 0.0:
                break
            step = square / length
            d += step * direction
            rest -= step * along
            gradient = weights * self.dots(trees, rest)
            before, square = square, _dot(gradient, gradient)
            direction = gradient + (square / before) * direction
        return np.asarray(d * weights)


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    # not with BLAS, whose order of summation depends on its threads
    return float(np.sum(a * b))
