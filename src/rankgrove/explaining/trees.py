"""Exact Shapley values of tree ensembles, path-dependent as in TreeSHAP and LightGBM."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble

if TYPE_CHECKING:
    import scipy.sparse

    Matrix = np.ndarray | scipy.sparse.csr_matrix

ROWS_AT_ONCE = 8192  # of sparse data made dense
TREES_AT_ONCE = 256  # whose tables are in memory
SERIAL_STEPS = 1 << 11  # fewer documents times trees are not worth a second thread


def tree_contributions(
    ensemble: Ensemble,
    features: np.ndarray,
    cover: np.ndarray,
    n_threads: int | None = None,
) -> tuple[float, np.ndarray]:
    """Return the mean score, and what every feature adds to it in every document.

    Parameters
    ----------
    ensemble : trees with one score a row
    features : float32, one row a document
    cover : how many rows reach every leaf; conditions that a document is not asked for are met by
        shares of these
    """
    from rankgrove.explaining._shap_kernels import (
        add_tree,
        expected_values,
        fill_tables,
        follow_paths,
    )

    own = ensemble
    above = np.empty(own.feature.size, np.int64)
    share = np.empty(2 * own.feature.size)
    points = np.empty(own.n_trees, np.int64)
    follow_paths(
        *(own.node_ptr, own.leaf_ptr, own.feature, own.left, own.right),
        *(cover, above, share, points),
    )
    expected = np.empty(own.n_trees)
    expected_values(own.node_ptr, own.leaf_ptr, own.left, own.right, share, own.value, expected)
    n_rows = features.shape[0]
    phi = np.zeros((n_rows, own.n_features))
    trees = (own.feature, own.threshold, own.left, own.right, own.missing_left, own.value)
    few = 1 if n_rows * own.n_trees < SERIAL_STEPS else n_threads

    add: Any = add_tree
    rules = {n: _quadrature(n) for n in np.unique(points).tolist()}
    ends, bounds = own.node_ptr.tolist(), parallel.piece_bounds(np.arange(n_rows + 1), few, 4)
    for begin in range(0, own.n_trees if n_rows else 0, TREES_AT_ONCE):
        tables = {}
        for t in range(begin, min(begin + TREES_AT_ONCE, own.n_trees)):
            a, n = ends[t], ends[t + 1] - ends[t]
            table = np.empty((2 * n, 4, int(points[t])))
            fill_tables(a, n, above, share, *rules[int(points[t])], table)
            tables[t] = (a, n, int(own.leaf_ptr[t])), table

        def work(first: int, last: int, tables: dict[int, Any] = tables) -> None:
            for place, table in tables.values():
                add(features, first, last, *place, *trees, above, share, table, phi)

        parallel.run_pieces(work, bounds, few)
    return math.fsum([own.base, *expected.tolist()]), phi


def leaf_cover(ensemble: Ensemble, background: Any, n_threads: int | None = None) -> np.ndarray:
    """Return how many rows reach every leaf: of training, or of other data where it is given.

    A model that knows no counts, but sums of hessians (as XGBoost's do), is taken by these.
    """
    if background is None:
        if ensemble.leaf_count.min(initial=0) >= 0:
            return ensemble.leaf_count.astype(np.float64)
        weight = ensemble.leaf_weight
        if np.isfinite(weight).all() and weight.min(initial=0.0) >= 0.0 and weight.any():
            return np.array(weight)
        raise DataError(
            "The model does not say how many rows reached its leaves in training, which Shapley "
            "values hang on: give data like its training data, background= (--background on the "
            "command line)."
        )
    from rankgrove.explaining._shap_kernels import count_leaves

    own = ensemble
    total = np.zeros(own.n_leaves)
    for block in dense_blocks(background.features, background.rows):
        pieces = parallel.piece_bounds(np.arange(own.n_trees + 1), n_threads)

        def work(first: int, last: int, block: np.ndarray = block) -> None:
            count_leaves(
                *(block, np.arange(block.shape[0])),
                *(own.node_ptr[first : last + 1], own.leaf_ptr[first : last + 1]),
                *(own.feature, own.threshold, own.left, own.right, own.missing_left, total),
            )

        if own.n_trees:
            parallel.run_pieces(work, pieces, n_threads)
    return total


def dense_blocks(features: Matrix, rows: np.ndarray | slice | None) -> Any:
    """Give the rows, block by block, as dense float32 matrices."""
    chosen = np.arange(features.shape[0])
    chosen = chosen if rows is None else chosen[rows]
    for first in range(0, chosen.size, ROWS_AT_ONCE):
        part = features[chosen[first : first + ROWS_AT_ONCE]]
        yield part if isinstance(part, np.ndarray) else part.toarray()


def dense(features: Matrix, rows: np.ndarray | slice | None) -> np.ndarray:
    """Return the rows as one dense float32 matrix."""
    blocks = list(dense_blocks(features, rows))
    return np.concatenate(blocks) if blocks else np.empty((0, features.shape[1]), np.float32)


def _quadrature(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights on 0 ... 1 that integrate degree 2 n - 1 exactly."""
    at, weight = np.polynomial.legendre.leggauss(n)
    return (at + 1.0) / 2.0, weight / 2.0
