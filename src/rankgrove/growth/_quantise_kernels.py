"""Kernels of quantising: the range of some numbers, and their stochastic rounding."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit, prange

from rankgrove.growth._kernel_tools import mix


@njit(cache=True, parallel=True)
def largest(values, rows, n_parts, out):
    """Fill ``out[part]`` with the largest magnitude; infinite where one is not a number."""
    size = (rows.size + n_parts - 1) // n_parts
    for part in prange(n_parts):
        most = 0.0
        for i in range(part * size, min((part + 1) * size, rows.size)):
            magnitude = abs(values[rows[i]])
            if not magnitude <= most:
                most = magnitude if magnitude == magnitude else np.inf
        out[part] = most


@njit(cache=True, parallel=True)
def magnitude_units(values, rows, unit, n_parts, out):
    """Fill ``out[part]`` with a sum of magnitudes, each in whole units rounded up."""
    size = (rows.size + n_parts - 1) // n_parts
    for part in prange(n_parts):
        total = 0
        for i in range(part * size, min((part + 1) * size, rows.size)):
            total += np.int64(abs(values[rows[i]]) * unit) + 1
        out[part] = total


@njit(cache=True, parallel=True)
def quantise(values, rows, keys, stream, scale, shift, low, n_parts, out):
    """Fill ``out[row]`` with ``(rounded << shift) + low``.

    ``values[row] * scale`` is rounded up with the probability of its fraction; the random number
    is a hash of (stream, row key) alone.
    """
    size = (rows.size + n_parts - 1) // n_parts
    for part in prange(n_parts):
        for i in range(part * size, min((part + 1) * size, rows.size)):
            row = rows[i]
            x = values[row] * scale
            whole = np.floor(x)
            chance = np.float64(mix(keys[row] ^ stream) >> np.uint64(11)) * 2.0**-53
            q = np.int64(whole) + np.int64(chance < x - whole)
            out[row] = (q << np.int64(shift)) + np.int64(low)
