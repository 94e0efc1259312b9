"""Kernels of leaf sums: fixed-point sums in two whole numbers a leaf."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(cache=True, parallel=True)
def leaf_sums(values, rows, leaf_of, scale, fraction, n_parts, out):
    """Fill ``out[part, leaf]`` with (row count, sum of whole parts, sum of fractions).

    A value times `scale` is split into a whole part and `fraction` times the rest, cut off; both
    scales are powers of two, so that nothing but the last cut rounds.
    """
    size = (rows.size + n_parts - 1) // n_parts
    for part in prange(n_parts):
        sums = out[part]
        for i in range(part * size, min((part + 1) * size, rows.size)):
            row = rows[i]
            leaf = np.int64(leaf_of[row])
            x = values[row] * scale
            whole = np.floor(x)
            sums[leaf, 0] += 1
            sums[leaf, 1] += np.int64(whole)
            sums[leaf, 2] += np.int64((x - whole) * fraction)
