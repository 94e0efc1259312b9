"""Kernels of leaf sums: fixed-point sums in two whole numbers per leaf."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove.growth._kernel_tools import bounds, unsigned
from rankgrove.jit import njit


@njit(cache=True)
def leaf_sums_part(values, rows, leaf_of, scale, fraction, out, part, n_parts):
    """Add to ``out[part, leaf]`` the row count, the sum of whole parts and that of fractions.

    A value times `scale` is split into a whole part and `fraction` times the rest, truncated. Both
    scales are powers of two, so that only this truncation rounds.
    """
    low, high = bounds(0, rows.size, part, n_parts)
    sums = out[part]
    for i in range(low, high):
        row = unsigned(rows[i])
        leaf = np.uint64(leaf_of[row])
        x = values[row] * scale
        whole = np.floor(x)
        sums[leaf, 0] += 1
        sums[leaf, 1] += np.int64(whole)
        sums[leaf, 2] += np.int64((x - whole) * fraction)


@njit(cache=True, parallel=True)
def leaf_sums(values, rows, leaf_of, scale, fraction, out, n_parts):
    """All parts of :func:`leaf_sums_part`."""
    for part in prange(n_parts):
        leaf_sums_part(values, rows, leaf_of, scale, fraction, out, part, n_parts)


@njit(cache=True)
def add_values_part(scores, values, leaf_of, part, n_parts):
    """Add ``values[leaf_of[i]]`` to ``scores[i]``."""
    low, high = bounds(0, scores.size, part, n_parts)
    for i in range(low, high):
        scores[i] += values[np.uint64(leaf_of[i])]


@njit(cache=True, parallel=True)
def add_values(scores, values, leaf_of, n_parts):
    """All parts of :func:`add_values_part`."""
    for part in prange(n_parts):
        add_values_part(scores, values, leaf_of, part, n_parts)
