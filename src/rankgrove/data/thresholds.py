"""Threshold features: a value becomes one indicator per threshold, 1 where the value is above.

phi(x, d) = (1[f(d|x) > k] : for every base function f, for every k in K_f) of the SVM-map paper,
section 4.2. A linear model on them is a piecewise constant combination of the functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import scipy.sparse

    from rankgrove.data.arrays import Matrix

SPACINGS = ("even", "quantile")


def place_thresholds(
    features: Matrix,
    n_thresholds: int,
    *,
    rows: np.ndarray | slice | None = None,
    spacing: str = "even",
    region: tuple[float, float] = (0.0, 1.0),
    limits: tuple[float, float] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the thresholds of all columns, concatenated, and the positions where columns begin.

    Parameters
    ----------
    n_thresholds : maximum number of thresholds of a column; equal thresholds are merged
    spacing : ``"even"``: at equal distances over the region, beginning at its lower end;
        ``"quantile"``: at quantiles of the values in the region
    region : the quantiles of a column between which thresholds are placed: (0.01, 0.99) leaves out
        one per cent of the values on either side
    limits : the bounds of the region as values, the same for all columns, instead of `region`

    Notes
    -----
    Missing and infinite values are ignored; values that a sparse matrix does not store are 0.
    """
    columns = [_values(features, rows, j) for j in range(features.shape[1])]
    placed = [_place(values, n_thresholds, spacing, region, limits) for values in columns]
    ptr = np.concatenate([[0], np.cumsum([column.size for column in placed])]).astype(np.int64)
    return np.concatenate([np.empty(0, np.float32), *placed]), ptr


def _values(features: Matrix, rows: np.ndarray | slice | None, j: int) -> np.ndarray:
    picked = slice(None) if rows is None else rows
    if isinstance(features, np.ndarray):
        column = features[picked, j]
    else:
        column = features[:, [j]].toarray()[:, 0][picked]
    return column[np.isfinite(column)]


def _place(
    values: np.ndarray,
    n_thresholds: int,
    spacing: str,
    region: tuple[float, float],
    limits: tuple[float, float] | None,
) -> np.ndarray:
    if not values.size:
        return np.empty(0, np.float32)
    low, high = np.quantile(values, region) if limits is None else limits
    shares = np.arange(n_thresholds) / n_thresholds
    if spacing == "even":
        placed = low + shares * (float(high) - float(low))
    else:
        inside = values[(values >= low) & (values <= high)]
        placed = np.quantile(inside, shares, method="lower") if inside.size else inside
    placed = np.unique(placed.astype(np.float32))
    # A threshold that all values, or none, are above does not distinguish any documents.
    return np.asarray(placed[(placed >= values.min()) & (placed < values.max())])


def step_codes(
    features: np.ndarray,
    rows: np.ndarray,
    thresholds: np.ndarray,
    threshold_ptr: np.ndarray,
) -> np.ndarray:
    """Return, for every value of these rows, how many thresholds of its feature are below it."""
    most = int(np.diff(threshold_ptr).max(initial=0))
    codes = np.empty((rows.size, features.shape[1]), np.uint8 if most < 256 else np.uint16)
    for j in range(features.shape[1]):
        cuts = thresholds[threshold_ptr[j] : threshold_ptr[j + 1]]
        column = features[rows, j]
        steps = np.searchsorted(cuts, column, side="left")
        codes[:, j] = np.where(np.isnan(column), 0, steps)
    return codes


def indicators(
    features: Matrix, thresholds: np.ndarray, threshold_ptr: np.ndarray
) -> scipy.sparse.csr_matrix:
    """Return the threshold features of every row as a CSR matrix of ones (float32).

    Zeros that a sparse matrix does not store count too: they are above thresholds below 0.
    """
    import scipy.sparse

    if isinstance(features, np.ndarray):
        row, column, codes = _all_cells(features, thresholds, threshold_ptr)
    else:
        row, column, codes = _stored_cells(features, thresholds, threshold_ptr)
    counts = np.bincount(row, codes, minlength=features.shape[0]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    first = np.cumsum(codes) - codes
    inside = np.arange(int(codes.sum())) - np.repeat(first, codes)
    indices = np.repeat(threshold_ptr[column], codes) + inside
    matrix = scipy.sparse.csr_matrix(
        (np.ones(indices.size, np.float32), indices, indptr),
        shape=(features.shape[0], int(threshold_ptr[-1])),
    )
    matrix.has_canonical_format = True
    return matrix


def _all_cells(
    features: np.ndarray, thresholds: np.ndarray, threshold_ptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_rows, n_columns = features.shape
    codes = step_codes(features, np.arange(n_rows), thresholds, threshold_ptr)
    row = np.repeat(np.arange(n_rows), n_columns)
    return row, np.tile(np.arange(n_columns), n_rows), codes.ravel().astype(np.int64)


def _stored_cells(
    features: scipy.sparse.csr_matrix, thresholds: np.ndarray, threshold_ptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and codes of the stored values, and of zeros above a threshold."""
    zero = np.zeros((1, features.shape[1]), np.float32)
    of_zero = step_codes(zero, np.zeros(1, np.int64), thresholds, threshold_ptr)[0]
    by_column = features.tocsc()
    cells = []
    for j in range(features.shape[1]):
        part = slice(by_column.indptr[j], by_column.indptr[j + 1])
        row = by_column.indices[part].astype(np.int64)
        values = by_column.data[part]
        cuts = thresholds[threshold_ptr[j] : threshold_ptr[j + 1]]
        codes = np.where(np.isnan(values), 0, np.searchsorted(cuts, values, side="left"))
        if of_zero[j]:
            all_codes = np.full(features.shape[0], of_zero[j], np.int64)
            all_codes[row] = codes
            row, codes = np.arange(features.shape[0]), all_codes
        nonzero = codes > 0
        cells.append((row[nonzero], np.full(int(nonzero.sum()), j), codes[nonzero]))
    row, column, codes = (
        np.concatenate([np.empty(0, np.int64), *part]) for part in zip(*cells, strict=True)
    )
    order = np.lexsort((column, row))
    return row[order], column[order], codes[order].astype(np.int64)
