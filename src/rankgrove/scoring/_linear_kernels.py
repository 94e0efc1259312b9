# mypy: ignore-errors
"""Weighted sums of features, row by row: of dense rows, of sparse rows, of steps."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def score_dense(features, rows, first, last, weight, scores):
    """Fill scores[first:last] with the weighted sums of rows[first:last], in eight lanes."""
    n = weight.size
    whole = n - n % 8
    for r in range(first, last):
        x = features[rows[r]]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        e, f, g, h = 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 8):
            a += x[j] * weight[j]
            b += x[j + 1] * weight[j + 1]
            c += x[j + 2] * weight[j + 2]
            d += x[j + 3] * weight[j + 3]
            e += x[j + 4] * weight[j + 4]
            f += x[j + 5] * weight[j + 5]
            g += x[j + 6] * weight[j + 6]
            h += x[j + 7] * weight[j + 7]
        total = ((a + e) + (b + f)) + ((c + g) + (d + h))
        for j in range(whole, n):
            total += x[j] * weight[j]
        scores[r] = total


@njit(cache=True, nogil=True)
def score_sparse(data, indices, indptr, rows, first, last, weight, scores):
    """Like score_dense, but for rows of a CSR matrix."""
    for r in range(first, last):
        row = rows[r]
        total = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            total += data[k] * weight[indices[k]]
        scores[r] = total


@njit(cache=True, nogil=True)
def step_of(thresholds, first, last, value):
    """Return the number of thresholds[first:last] (ascending) below `value`; 0 for NaN."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low - first


@njit(cache=True, nogil=True)
def step_values(threshold_ptr, weight, value):
    """Fill the value of every step: the sum of the weights of the thresholds below it.

    Feature j has one step more than thresholds: its steps begin at threshold_ptr[j] + j.
    """
    for j in range(threshold_ptr.size - 1):
        at = threshold_ptr[j] + j
        total = 0.0
        value[at] = 0.0
        for k in range(threshold_ptr[j], threshold_ptr[j + 1]):
            total += weight[k]
            at += 1
            value[at] = total


@njit(cache=True, nogil=True)
def score_codes(codes, first, last, threshold_ptr, value, scores):
    """Fill scores[first:last] with the sums of the values of the rows' steps, given as codes."""
    for r in range(first, last):
        total = 0.0
        for j in range(threshold_ptr.size - 1):
            total += value[threshold_ptr[j] + j + codes[r, j]]
        scores[r] = total


@njit(cache=True, nogil=True)
def score_steps(features, rows, first, last, thresholds, threshold_ptr, value, scores):
    """Like score_codes, but find the steps of the features first."""
    for r in range(first, last):
        x = features[rows[r]]
        total = 0.0
        for j in range(threshold_ptr.size - 1):
            step = step_of(thresholds, threshold_ptr[j], threshold_ptr[j + 1], x[j])
            total += value[threshold_ptr[j] + j + step]
        scores[r] = total


@njit(cache=True, nogil=True)
def score_sparse_steps(
    data, indices, indptr, rows, first, last, thresholds, threshold_ptr, value, scores
):
    """Like score_steps, but for rows of a CSR matrix: values that are not stored are 0."""
    n = threshold_ptr.size - 1
    base = 0.0
    of_zero = np.empty(n)
    for j in range(n):
        step = step_of(thresholds, threshold_ptr[j], threshold_ptr[j + 1], np.float32(0.0))
        of_zero[j] = value[threshold_ptr[j] + j + step]
        base += of_zero[j]
    for r in range(first, last):
        row = rows[r]
        total = base
        for k in range(indptr[row], indptr[row + 1]):
            j = indices[k]
            step = step_of(thresholds, threshold_ptr[j], threshold_ptr[j + 1], data[k])
            total += value[threshold_ptr[j] + j + step] - of_zero[j]
        scores[r] = total
