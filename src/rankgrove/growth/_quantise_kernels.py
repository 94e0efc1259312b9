"""Kernels of quantising: the range of numbers, and their stochastic rounding."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit, prange

from rankgrove._random_kernels import mix
from rankgrove.growth._kernel_tools import bounds, unsigned


@njit(cache=True)
def largest_part(values, rows, out, part, n_parts):
    """Set ``out[part]`` to the largest magnitude; infinite if there is a NaN."""
    low, high = bounds(0, rows.size, part, n_parts)
    most = 0.0
    for i in range(low, high):
        magnitude = abs(values[unsigned(rows[i])])
        if not magnitude <= most:
            most = magnitude if magnitude == magnitude else np.inf
    out[part] = most


@njit(cache=True, parallel=True)
def largest(values, rows, out, n_parts):
    """All parts of :func:`largest_part`."""
    for part in prange(n_parts):
        largest_part(values, rows, out, part, n_parts)


@njit(cache=True)
def magnitudes_part(values, rows, unit, out, part, n_parts):
    """Set ``out[part]`` to a sum of magnitudes, each in whole units rounded up."""
    low, high = bounds(0, rows.size, part, n_parts)
    total = 0
    for i in range(low, high):
        total += np.int64(abs(values[unsigned(rows[i])]) * unit) + 1
    out[part] = total


@njit(cache=True, parallel=True)
def magnitudes(values, rows, unit, out, n_parts):
    """All parts of :func:`magnitudes_part`."""
    for part in prange(n_parts):
        magnitudes_part(values, rows, unit, out, part, n_parts)


@njit(cache=True)
def quantise_part(values, rows, keys, stream, scale, shift, low_field, keep, out, part, n_parts):
    """Set ``out[row]`` to ``(rounded << shift) + low_field``, or add that if `keep`.

    ``values[row] * scale`` is rounded up with the probability of its fraction; the random number
    is a hash of (stream, row key) alone.
    """
    low, high = bounds(0, rows.size, part, n_parts)
    for i in range(low, high):
        row = unsigned(rows[i])
        x = values[row] * scale
        whole = np.floor(x)
        chance = np.float64(mix(keys[row] ^ stream) >> np.uint64(11)) * 2.0**-53
        q = np.int64(whole) + np.int64(chance < x - whole)
        before = out[row] if keep else np.int64(0)
        out[row] = before + (q << np.int64(shift)) + np.int64(low_field)


@njit(cache=True, parallel=True)
def quantise(values, rows, keys, stream, scale, shift, low_field, keep, out, n_parts):
    """All parts of :func:`quantise_part`."""
    for part in prange(n_parts):
        quantise_part(values, rows, keys, stream, scale, shift, low_field, keep, out, part, n_parts)


@njit(cache=True)
def squares_part(packed, rows, shift, out, part, n_parts):
    """Set ``out[part]`` to the sum of the squares of the numbers above `shift` bits."""
    low, high = bounds(0, rows.size, part, n_parts)
    total = 0
    for i in range(low, high):
        q = packed[unsigned(rows[i])] >> np.int64(shift)
        total += q * q
    out[part] = total


@njit(cache=True, parallel=True)
def squares(packed, rows, shift, out, n_parts):
    """All parts of :func:`squares_part`."""
    for part in prange(n_parts):
        squares_part(packed, rows, shift, out, part, n_parts)
