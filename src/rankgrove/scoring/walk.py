"""Scoring by walking down every tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble
from rankgrove.validation import counted

if TYPE_CHECKING:
    import scipy.sparse

    Matrix = np.ndarray | scipy.sparse.csr_matrix

_SPARSE_ROWS_AT_ONCE = 8192
SERIAL_STEPS = 1 << 16  # fewer steps down trees are not worth a second thread


def score(
    ensemble: Ensemble,
    features: Matrix,
    rows: np.ndarray | slice | None = None,
    n_threads: int | None = None,
) -> np.ndarray:
    """Return one float64 score a row of float32 `features` (dense or CSR), all rows or some."""
    if features.shape[1] != ensemble.n_features:
        raise DataError(
            f"The model was trained on {counted(ensemble.n_features, 'feature')}; the data "
            f"has {features.shape[1]}. Give it the same features in the same order."
        )
    if isinstance(features, np.ndarray):
        return _score_dense(ensemble, features, rows, n_threads)
    sparse = features if rows is None else features[rows]
    scores = np.empty(sparse.shape[0])
    for first in range(0, sparse.shape[0], _SPARSE_ROWS_AT_ONCE):
        part = slice(first, first + _SPARSE_ROWS_AT_ONCE)
        scores[part] = _score_dense(ensemble, sparse[part].toarray(), None, n_threads)
    return scores


def _score_dense(
    ensemble: Ensemble,
    features: np.ndarray,
    rows: np.ndarray | slice | None,
    n_threads: int | None,
) -> np.ndarray:
    from rankgrove.scoring._walk_kernels import walk_rows

    features = np.ascontiguousarray(features, np.float32)
    everything = np.arange(features.shape[0])
    index = everything if rows is None else everything[rows]
    scores = np.full(index.size, ensemble.base)
    few = 1 if index.size * ensemble.n_trees < SERIAL_STEPS else n_threads
    bounds = parallel.piece_bounds(np.arange(index.size + 1), few)

    def work(first: int, last: int) -> None:
        walk_rows(
            features,
            index[first:last],
            ensemble.node_ptr,
            ensemble.leaf_ptr,
            ensemble.feature,
            ensemble.threshold,
            ensemble.left,
            ensemble.right,
            ensemble.missing_left,
            ensemble.value,
            scores[first:last],
        )

    if index.size:
        parallel.run_pieces(work, bounds, few)
    return scores
