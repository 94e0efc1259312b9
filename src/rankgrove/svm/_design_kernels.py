# mypy: ignore-errors
"""Sums of weighted rows: the other half of scoring, X' c beside X w."""

from __future__ import annotations

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def add_dense(features, rows, first, last, coefficient, out):
    """Add coefficient[r] times the row rows[r] to out, for r from `first` to before `last`."""
    for r in range(first, last):
        c = coefficient[r]
        if c != 0.0:
            x = features[rows[r]]
            for j in range(out.size):
                out[j] += c * x[j]


@njit(cache=True, nogil=True)
def add_sparse(data, indices, indptr, rows, first, last, coefficient, out):
    """Like the kernel for dense rows, but for rows of a CSR matrix."""
    for r in range(first, last):
        c = coefficient[r]
        if c != 0.0:
            row = rows[r]
            for k in range(indptr[row], indptr[row + 1]):
                out[indices[k]] += c * data[k]


@njit(cache=True, nogil=True)
def add_codes(codes, threshold_ptr, first, last, coefficient, out):
    """Add the coefficients of rows to their steps; steps are laid out as in step_values."""
    for r in range(first, last):
        c = coefficient[r]
        if c != 0.0:
            for j in range(threshold_ptr.size - 1):
                out[threshold_ptr[j] + j + codes[r, j]] += c


@njit(cache=True, nogil=True)
def steps_to_thresholds(threshold_ptr, step, out):
    """Fill for every threshold the sum over the steps above it."""
    for j in range(threshold_ptr.size - 1):
        total = 0.0
        for k in range(threshold_ptr[j + 1] - 1, threshold_ptr[j] - 1, -1):
            total += step[k + j + 1]
            out[k] = total
