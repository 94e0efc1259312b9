"""Scoring by a linear model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError
from rankgrove.model.linear import Linear

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

SERIAL_CELLS = 1 << 16  # fewer values are not worth a second thread


def score_linear(
    model: Linear,
    features: Matrix,
    rows: np.ndarray | slice | None = None,
    n_threads: int | None = None,
) -> np.ndarray:
    """Return one float64 score per row of float32 `features` (dense or CSR), for all rows or some.

    If the model scales features by query, `features` must already be scaled.
    """
    chosen = np.arange(features.shape[0])
    if rows is not None:
        chosen = chosen[rows]
    if model.has_thresholds:
        return _step_scores(model, features, chosen, n_threads) + model.intercept
    weight, base = model.raw_weights()
    scores = weighted_sums(features, chosen, weight, n_threads)
    bad = ~np.isfinite(scores)
    if bad.any():  # missing values, or infinite ones
        scores[bad] = weighted_sums(
            filled(features, chosen[bad], model.shift), None, weight, n_threads
        )
    return scores + base


def weighted_sums(
    features: Matrix, rows: np.ndarray | None, weight: np.ndarray, n_threads: int | None = None
) -> np.ndarray:
    """Return the weighted sum of the features of every row; the bits do not depend on threads."""
    from rankgrove.scoring._linear_kernels import score_dense, score_sparse

    chosen = np.arange(features.shape[0]) if rows is None else rows
    scores = np.empty(chosen.size)
    if isinstance(features, np.ndarray):
        over_rows(
            lambda a, b: score_dense(features, chosen, a, b, weight, scores),
            scores.size,
            features.shape[1],
            n_threads,
        )
    else:
        data, indices, indptr = features.data, features.indices, features.indptr
        over_rows(
            lambda a, b: score_sparse(data, indices, indptr, chosen, a, b, weight, scores),
            scores.size,
            indices.size // max(1, features.shape[0]),
            n_threads,
        )
    return scores


def step_table(threshold_ptr: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the value of every step of every feature (see ``step_values``)."""
    from rankgrove.scoring._linear_kernels import step_values

    value = np.empty(weights.size + threshold_ptr.size - 1)
    step_values(threshold_ptr, weights, value)
    return value


def _step_scores(
    model: Linear, features: Matrix, rows: np.ndarray, n_threads: int | None
) -> np.ndarray:
    from rankgrove.scoring._linear_kernels import score_sparse_steps, score_steps

    value = step_table(model.threshold_ptr, model.weights)
    scores = np.empty(rows.size)
    steps = (model.thresholds, model.threshold_ptr, value, scores)
    if isinstance(features, np.ndarray):
        work = lambda a, b: score_steps(features, rows, a, b, *steps)  # noqa: E731
        width = features.shape[1]
    else:
        arrays = (features.data, features.indices, features.indptr, rows)
        work = lambda a, b: score_sparse_steps(*arrays, a, b, *steps)  # noqa: E731
        width = features.indices.size // max(1, features.shape[0])
    over_rows(work, rows.size, width, n_threads)
    return scores


def over_rows(
    work: Callable[[int, int], None], n_rows: int, width: int, n_threads: int | None
) -> None:
    """Call ``work(first, last)`` for pieces of rows of about `width` values each."""
    if n_rows:
        n_used = 1 if n_rows * width < SERIAL_CELLS else n_threads
        parallel.run_pieces(work, parallel.piece_bounds(np.arange(n_rows + 1), n_used), n_used)


def filled(features: Matrix, rows: np.ndarray, fill: np.ndarray) -> Matrix:
    """Return some rows with missing values replaced by `fill` of their column."""
    part = features[rows]
    if isinstance(part, np.ndarray):
        places = np.nonzero(np.isnan(part))
        part[places] = fill[places[1]]
        values = part
    else:
        missing = np.isnan(part.data)
        part.data[missing] = fill[part.indices[missing]]
        values = part.data
    infinite = np.isinf(values)
    if infinite.any():
        where = np.nonzero(infinite)
        column = where[1][0] if values.ndim == 2 else part.indices[where[0][0]]
        raise DataError(
            f"A linear model cannot score infinite values, but feature {column + 1} has "
            f"{values[infinite][0]}. Replace them, or train with thresholds."
        )
    return part
