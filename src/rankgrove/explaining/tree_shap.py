"""Exact Shapley values of tree ensembles, path-dependent as in TreeSHAP and LightGBM."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble

if TYPE_CHECKING:
    import scipy.sparse

    Matrix = np.ndarray | scipy.sparse.csr_matrix

Tables = dict[int, tuple[tuple[int, int, int], np.ndarray]]  # tree -> first node, nodes, first leaf
ROWS_AT_ONCE = 8192  # rows of sparse data that are made dense
TREES_AT_ONCE = 256  # trees whose tables are in memory
SERIAL_STEPS = 1 << 11  # with fewer documents times trees, one thread is used


def tree_contributions(
    ensemble: Ensemble,
    features: np.ndarray,
    cover: np.ndarray,
    n_threads: int | None = None,
) -> tuple[float, np.ndarray]:
    """Return the expected score, and every document's feature contributions.

    Parameters
    ----------
    ensemble : trees with one score per row
    features : float32, one row per document
    cover : number of rows that reach every leaf; a condition on an unknown feature is met by its
        share of these rows
    """
    from rankgrove.explaining._shap_kernels import (
        Trees,
        add_tree,
        expected_values,
        fill_tables,
        follow_paths,
    )

    trees = ensemble
    above = np.empty(trees.feature.size, np.int64)
    share = np.empty(2 * trees.feature.size)
    points = np.empty(trees.n_trees, np.int64)
    follow_paths(
        *(trees.node_ptr, trees.leaf_ptr, trees.feature, trees.left, trees.right),
        *(cover, above, share, points),
    )
    expected = np.empty(trees.n_trees)
    expected_values(
        trees.node_ptr, trees.leaf_ptr, trees.left, trees.right, share, trees.value, expected
    )
    n_rows = features.shape[0]
    phi = np.zeros((n_rows, trees.n_features))
    for_kernels = tuple(
        Trees(
            *(trees.feature, trees.threshold, trees.left, trees.right, trees.missing_left),
            *(trees.value, above, share),
        )
    )
    sets = _sets(trees)
    few = 1 if n_rows * trees.n_trees < SERIAL_STEPS else n_threads
    add: Callable[..., None] = add_tree
    rules = {n: _quadrature(n) for n in np.unique(points).tolist()}
    ends, bounds = trees.node_ptr.tolist(), parallel.piece_bounds(np.arange(n_rows + 1), few, 4)
    for begin in range(0, trees.n_trees if n_rows else 0, TREES_AT_ONCE):
        tables: Tables = {}
        for t in range(begin, min(begin + TREES_AT_ONCE, trees.n_trees)):
            a, n = ends[t], ends[t + 1] - ends[t]
            table = np.empty((2 * n, 4, int(points[t])))
            fill_tables(a, n, above, share, *rules[int(points[t])], table)
            tables[t] = (a, n, int(trees.leaf_ptr[t])), table

        def work(first: int, last: int, tables: Tables = tables) -> None:
            for place, table in tables.values():
                add(features, first, last, *place, for_kernels, sets, table, phi)

        parallel.run_pieces(work, bounds, few)
    return math.fsum([trees.base, *expected.tolist()]), phi


def leaf_cover(
    ensemble: Ensemble, background: QueryDataset | None, n_threads: int | None = None
) -> np.ndarray:
    """Return the number of rows that reach every leaf, in training or in the background data.

    For a model with sums of hessians instead of counts, such as XGBoost's, these are returned.
    """
    if background is None:
        if ensemble.leaf_count.min(initial=0) >= 0:
            return ensemble.leaf_count.astype(np.float64)
        weight = ensemble.leaf_weight
        if np.isfinite(weight).all() and weight.min(initial=0.0) >= 0.0 and weight.any():
            return np.array(weight)
        raise DataError(
            "The model does not record how many rows reached its leaves in training, which Shapley "
            "values depend on: give data like its training data, background= (--background on the "
            "command line)."
        )
    from rankgrove.explaining._shap_kernels import count_leaves

    trees, total = ensemble, np.zeros(ensemble.n_leaves)
    for block in dense_blocks(background.features, background.rows):
        pieces = parallel.piece_bounds(np.arange(trees.n_trees + 1), n_threads)

        def work(first: int, last: int, block: np.ndarray = block) -> None:
            count_leaves(
                *(block, np.arange(block.shape[0])),
                *(trees.node_ptr[first : last + 1], trees.leaf_ptr[first : last + 1]),
                *(trees.feature, trees.threshold, trees.left, trees.right),
                *(trees.missing_left, _sets(trees), total),
            )

        if trees.n_trees:
            parallel.run_pieces(work, pieces, n_threads)
    return total


def _sets(trees: Ensemble) -> tuple[np.ndarray, ...] | None:
    """Return the sets of categories as kernels take them."""
    return (trees.set_of, trees.sets.ptr, trees.sets.words) if trees.has_sets else None


def dense_blocks(features: Matrix, rows: np.ndarray | slice | None) -> Iterator[np.ndarray]:
    """Yield the rows, block by block, as dense float32 matrices."""
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
