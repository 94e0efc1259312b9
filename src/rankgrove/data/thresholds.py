"""Threshold features: a value becomes indicators of the thresholds below it.

phi(x, d) = (1[f(d|x) > k] : for every base function f, for every k in K_f) of the SVM-map paper,
section 4.2; a linear model of them is a piecewise constant combination of the functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import scipy.sparse

    Matrix = np.ndarray | scipy.sparse.csr_matrix

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
    """Return the thresholds of every column one after the other, and where each begins.

    Parameters
    ----------
    n_thresholds : most thresholds of a column; it has fewer where they would fall together
    spacing : ``"even"``: at equal distances over the region, which begins with the first;
        ``"quantile"``: at equal shares of the values in the region
    region : the shares of values between which a column is sensitive: (0.01, 0.99) leaves out the
        outermost hundredth on either side
    limits : the region itself, the same for all columns, in place of `region`

    Notes
    -----
    Missing and infinite values do not count, and values that a sparse matrix does not name are 0.
    """
    columns = [_values(features, rows, j) for j in range(features.shape[1])]
    placed = [_place(values, n_thresholds, spacing, region, limits) for values in columns]
    ptr = np.concatenate([[0], np.cumsum([own.size for own in placed])]).astype(np.int64)
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
    # One that no value or every value is above tells documents apart no more than none.
    return np.asarray(placed[(placed >= values.min()) & (placed < values.max())])


def step_codes(
    features: np.ndarray,
    rows: np.ndarray,
    thresholds: np.ndarray,
    threshold_ptr: np.ndarray,
) -> np.ndarray:
    """Return above how many of its feature's thresholds every value of some dense rows stands."""
    most = int(np.diff(threshold_ptr).max(initial=0))
    codes = np.empty((rows.size, features.shape[1]), np.uint8 if most < 256 else np.uint16)
    for j in range(features.shape[1]):
        own = thresholds[threshold_ptr[j] : threshold_ptr[j + 1]]
        column = features[rows, j]
        found = np.searchsorted(own, column, side="left")
        codes[:, j] = np.where(np.isnan(column), 0, found)
    return codes


def indicators(
    features: Matrix, thresholds: np.ndarray, threshold_ptr: np.ndarray
) -> scipy.sparse.csr_matrix:
    """Return the threshold features of every row as a CSR matrix of ones (float32).

    Of a sparse matrix with thresholds below 0 also the zeros that it does not name are above them.
    """
    import scipy.sparse

    if isinstance(features, np.ndarray):
        row, column, codes = _all_cells(features, thresholds, threshold_ptr)
    else:
        row, column, codes = _named_cells(features, thresholds, threshold_ptr)
    counts = np.bincount(row, codes, minlength=features.shape[0]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    first = np.cumsum(codes) - codes
    inside = np.arange(int(codes.sum())) - np.repeat(first, codes)
    indices = np.repeat(threshold_ptr[column], codes) + inside
    made = scipy.sparse.csr_matrix(
        (np.ones(indices.size, np.float32), indices, indptr),
        shape=(features.shape[0], int(threshold_ptr[-1])),
    )
    made.has_canonical_format = True
    return made


def _all_cells(
    features: np.ndarray, thresholds: np.ndarray, threshold_ptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_rows, n_columns = features.shape
    codes = step_codes(features, np.arange(n_rows), thresholds, threshold_ptr)
    row = np.repeat(np.arange(n_rows), n_columns)
    return row, np.tile(np.arange(n_columns), n_rows), codes.ravel().astype(np.int64)


def _named_cells(
    features: scipy.sparse.csr_matrix, thresholds: np.ndarray, threshold_ptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and codes of the named values, and of zeros above a threshold."""
    zero = np.zeros((1, features.shape[1]), np.float32)
    of_zero = step_codes(zero, np.zeros(1, np.int64), thresholds, threshold_ptr)[0]
    by_column = features.tocsc()
    found = []
    for j in range(features.shape[1]):
        part = slice(by_column.indptr[j], by_column.indptr[j + 1])
        row = by_column.indices[part].astype(np.int64)
        values = by_column.data[part]
        own = thresholds[threshold_ptr[j] : threshold_ptr[j + 1]]
        codes = np.where(np.isnan(values), 0, np.searchsorted(own, values, side="left"))
        if of_zero[j]:
            every = np.full(features.shape[0], of_zero[j], np.int64)
            every[row] = codes
            row, codes = np.arange(features.shape[0]), every
        some = codes > 0
        found.append((row[some], np.full(int(some.sum()), j), codes[some]))
    row, column, codes = (
        np.concatenate([np.empty(0, np.int64), *part]) for part in zip(*found, strict=True)
    )
    order = np.lexsort((column, row))
    return row[order], column[order], codes[order].astype(np.int64)
