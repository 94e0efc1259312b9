# mypy: ignore-errors
"""Sums of the fidelity loss over pairs of documents with different labels.

Pairs, ``order``, ``weight`` and ``factor`` are as in ``objectives/_label_pair_kernels.py``.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove.jit import njit

BINS = 257  # missing below all values, 255 values, missing above all


@njit(cache=True, nogil=True)
def _pull(gap):
    """Return (1 - P) sqrt(P) of P = 1 / (1 + exp(-gap)), for a gap of any size."""
    if gap >= 0.0:
        z = math.exp(-gap)
        return z / ((1.0 + z) * math.sqrt(1.0 + z))
    z = math.exp(gap)
    return math.sqrt(z / (1.0 + z)) / (1.0 + z)


@njit(cache=True, nogil=True)
def fidelity_sums(
    first, last, scores, codes, has_missing, unit, out, query_ptr, order, labels, weight, factor
):
    """Add the pulls of all pairs to where a threshold begins and ceases to tell them apart.

    `out` is of shape (columns, which of the two is above, where missing values go, BINS): the sum
    up to a bin is that of the pairs that a threshold above this bin tells apart.
    """
    n_columns = has_missing.size
    for q in range(first, last):
        if factor[q] <= 0.0:
            continue
        start, end = query_ptr[q], query_ptr[q + 1]
        run = start
        for at in range(start, end):
            i = order[at]
            if labels[i] != labels[order[run]]:
                run = at
            for below in range(start, run):
                j = order[below]
                both = factor[q] * weight[i] * weight[j] * _pull(scores[i] - scores[j])
                units = np.int64(math.floor(both * unit + 0.5))
                for c in range(n_columns):
                    # as int64: a bin is a byte, and 255 + 1 must not be 0
                    a, b = np.int64(codes[i, c]) + 1, np.int64(codes[j, c]) + 1
                    # without a branch: of equal bins the same place gains and loses
                    side = np.int64(a < b)
                    out[c, side, 0, min(a, b)] += units
                    out[c, side, 0, max(a, b)] -= units
                    if has_missing[c]:
                        a, b = a % 256, b % 256  # missing: below the lowest bin
                        side = np.int64(a < b)
                        out[c, side, 1, min(a, b)] += units
                        out[c, side, 1, max(a, b)] -= units


@njit(cache=True, nogil=True)
def fidelity_losses(first, last, scores, out, query_ptr, order, labels, weight, factor):
    """Fill every query's sum of 1 - sqrt(P) over its pairs."""
    for q in range(first, last):
        out[q] = 0.0
        if factor[q] <= 0.0:
            continue
        start, end = query_ptr[q], query_ptr[q + 1]
        run = start
        for at in range(start, end):
            i = order[at]
            if labels[i] != labels[order[run]]:
                run = at
            for below in range(start, run):
                j = order[below]
                gap = scores[i] - scores[j]
                if gap >= 0.0:
                    p = 1.0 / (1.0 + math.exp(-gap))
                else:
                    z = math.exp(gap)
                    p = z / (1.0 + z)
                out[q] += factor[q] * weight[i] * weight[j] * (1.0 - math.sqrt(p))
