"""Scaling features: over the whole data set, or within every query.

Sparse features stay sparse: zeros that the scaling keeps are never stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel

if TYPE_CHECKING:
    import scipy.sparse

    from rankgrove.data.arrays import Matrix

_ROWS_AT_ONCE = 8192


def mean_and_deviation(
    features: Matrix, rows: np.ndarray | slice | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of every column, without missing values.

    A column with infinite values has a mean or deviation that is not finite.
    """
    chosen = np.arange(features.shape[0])
    if rows is not None:
        chosen = chosen[rows]
    if not isinstance(features, np.ndarray):
        return _sparse_moments(features[chosen])
    parts = [chosen[i : i + _ROWS_AT_ONCE] for i in range(0, chosen.size, _ROWS_AT_ONCE)]
    n_columns = features.shape[1]
    total, n_known = np.zeros(n_columns), np.zeros(n_columns)
    with np.errstate(invalid="ignore", over="ignore"):
        for part in parts:
            block = features[part].astype(np.float64)
            known = ~np.isnan(block)
            total += np.where(known, block, 0.0).sum(axis=0)
            n_known += known.sum(axis=0)
        mean = total / np.maximum(n_known, 1)
        squares = np.zeros(n_columns)
        for part in parts:
            away = features[part].astype(np.float64) - mean
            squares += np.where(np.isnan(features[part]), 0.0, away * away).sum(axis=0)
    return mean, np.sqrt(squares / np.maximum(n_known, 1))


def _sparse_moments(features: scipy.sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    n_rows, n_columns = features.shape
    values = features.data.astype(np.float64)
    known = ~np.isnan(values)
    column, values = features.indices[known], values[known]
    n_known = n_rows - np.bincount(features.indices[~known], minlength=n_columns)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.bincount(column, values, minlength=n_columns) / np.maximum(n_known, 1)
        away = values - mean[column]
        squares: np.ndarray = np.bincount(column, away * away, minlength=n_columns)
        n_stored = np.bincount(column, minlength=n_columns)
        squares = squares + (n_known - n_stored) * mean * mean
    return mean, np.sqrt(squares / np.maximum(n_known, 1))


def scale_by_query(
    features: Matrix, query_ptr: np.ndarray, how: str, n_threads: int | None = None
) -> Matrix:
    """Return features (rows in query order) scaled within every query.

    Parameters
    ----------
    how : ``"query"``: (value - least) / (largest - least) of the query's values, 0 where all are
        equal (SVM-map paper, SVM-acc4); ``"percentile"``: the share of the query's documents whose
        value is lower (SVM-acc3). A missing value becomes 0 and counts as lower than all others

    Examples
    --------
    >>> X = np.array([[0.2], [0.7], [0.6], [5.0]], np.float32)
    >>> scale_by_query(X, np.array([0, 3, 4]), "query")[:, 0].round(2).tolist()
    [0.0, 1.0, 0.8..., 0.0]
    """
    from rankgrove.data._scaling_kernels import percentile_queries, range_queries

    kernel = range_queries if how == "query" else percentile_queries
    if not isinstance(features, np.ndarray):
        return _scale_sparse(features, query_ptr, kernel)
    out = np.empty(features.shape, np.float32)
    bounds = parallel.piece_bounds(query_ptr, n_threads)
    parallel.run_pieces(lambda a, b: kernel(features, query_ptr, a, b, out), bounds, n_threads)
    return out


def _scale_sparse(
    features: scipy.sparse.csr_matrix, query_ptr: np.ndarray, kernel: Callable[..., None]
) -> scipy.sparse.csr_matrix:
    """Scale query by query, each as a dense block of the columns that occur in it."""
    import scipy.sparse

    data, indices, counts = [], [], []
    for first, last in zip(query_ptr[:-1].tolist(), query_ptr[1:].tolist(), strict=True):
        part = slice(features.indptr[first], features.indptr[last])
        columns, local = np.unique(features.indices[part], return_inverse=True)
        row = np.repeat(np.arange(last - first), np.diff(features.indptr[first : last + 1]))
        block = np.zeros((last - first, columns.size), np.float32)
        block[row, local] = features.data[part]
        scaled = np.empty_like(block)
        kernel(block, np.array([0, last - first]), 0, 1, scaled)
        at_row, at_column = np.nonzero(scaled)
        data.append(scaled[at_row, at_column])
        indices.append(columns[at_column])
        counts.append(np.bincount(at_row, minlength=last - first))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    matrix = scipy.sparse.csr_matrix(
        (np.concatenate(data), np.concatenate(indices), indptr), shape=features.shape
    )
    matrix.has_canonical_format = True
    return matrix
