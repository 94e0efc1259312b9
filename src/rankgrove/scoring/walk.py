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
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Return one float64 score a row of `features` (dense or CSR), all rows or some.

    Features are float32; those that are float64 are rounded, unless thresholds are float64 too.
    `start` are scores that the trees add to: those of a submodel. Where the ensemble has several
    columns the result is of shape (columns, rows).
    """
    columns = _score_columns(ensemble, features, rows, n_threads, start)
    columns = columns.astype(np.float64, copy=False)
    return columns[0] if ensemble.n_columns == 1 else columns


def _score_columns(
    ensemble: Ensemble,
    features: Matrix,
    rows: np.ndarray | slice | None,
    n_threads: int | None,
    start: np.ndarray | None,
) -> np.ndarray:
    """Return the scores of shape (columns, rows)."""
    if features.shape[1] != ensemble.n_features:
        raise DataError(
            f"The model was trained on {counted(ensemble.n_features, 'feature')}; the data "
            f"has {features.shape[1]}. Give it the same features in the same order."
        )
    chosen = np.arange(features.shape[0])
    if rows is not None:
        chosen = chosen[rows]
    kind = np.float32 if ensemble.single else np.float64
    scores = np.full((ensemble.n_columns, chosen.size), ensemble.base, kind)
    if start is not None:  # as it is, where there is no base: not even -0.0 becomes 0.0
        scores[...] = start + ensemble.base if ensemble.base else start
    if isinstance(features, np.ndarray):
        _add_dense(ensemble, features, chosen, n_threads, scores)
        return scores
    for first in range(0, chosen.size, _SPARSE_ROWS_AT_ONCE):
        some = slice(first, first + _SPARSE_ROWS_AT_ONCE)
        part = features[chosen[some]].toarray()
        part_scores = scores[:, some].copy()
        _add_dense(ensemble, part, np.arange(part.shape[0]), n_threads, part_scores)
        scores[:, some] = part_scores
    return scores


def _add_dense(
    ensemble: Ensemble,
    features: np.ndarray,
    rows: np.ndarray,
    n_threads: int | None,
    scores: np.ndarray,
) -> None:
    from rankgrove.scoring._walk_kernels import walk_rows

    # float64 values are compared as they are with thresholds that are float64 themselves
    double = features.dtype == ensemble.threshold.dtype == np.float64
    features = np.ascontiguousarray(features, np.float64 if double else np.float32)
    few = 1 if rows.size * ensemble.n_trees < SERIAL_STEPS else n_threads
    bounds = parallel.piece_bounds(np.arange(rows.size + 1), few)

    def work(first: int, last: int) -> None:
        walk_rows(
            features,
            rows,
            first,
            last,
            ensemble.node_ptr,
            ensemble.leaf_ptr,
            ensemble.feature,
            ensemble.threshold,
            ensemble.left,
            ensemble.right,
            ensemble.missing_left,
            ensemble.value,
            scores,
        )

    if rows.size:
        parallel.run_pieces(work, bounds, few)
