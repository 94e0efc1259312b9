"""Kernels of quantising: the range of numbers, and their stochastic rounding."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove._random_kernels import mix
from rankgrove.growth._kernel_tools import bounds, unsigned
from rankgrove.jit import njit


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
    if rows.size == values.size:  # all rows: vectors, without an index
        some = values[low:high]
        for i in range(some.size):
            total += np.int64(abs(some[i]) * unit) + 1
    else:
        for i in range(low, high):
            total += np.int64(abs(values[unsigned(rows[i])]) * unit) + 1
    out[part] = total


@njit(cache=True, parallel=True)
def magnitudes(values, rows, unit, out, n_parts):
    """All parts of :func:`magnitudes_part`."""
    for part in prange(n_parts):
        magnitudes_part(values, rows, unit, out, part, n_parts)


@njit(cache=True, inline="always")
def _rounded(x, key, stream):
    """Return x rounded up with the probability of its fraction, by a hash of (stream, key)."""
    whole = np.floor(x)
    chance = np.float64(mix(key ^ stream) >> np.uint64(11)) * 2.0**-53
    return np.int64(whole) + np.int64(chance < x - whole)


@njit(cache=True)
def quantise_part(values, rows, keys, stream, scale, shift, low_field, keep, out, part, n_parts):
    """Set ``out[row]`` to ``(rounded << shift) + low_field``, or add that if `keep`.

    ``values[row] * scale`` is rounded up with the probability of its fraction; the random number
    is a hash of (stream, row key) alone.
    """
    low, high = bounds(0, rows.size, part, n_parts)
    if rows.size == values.size:  # all rows, without an index
        some, some_keys, packed = values[low:high], keys[low:high], out[low:high]
        for i in range(some.size):
            q = _rounded(some[i] * scale, some_keys[i], stream)
            before = packed[i] if keep else np.int64(0)
            packed[i] = before + (q << np.int64(shift)) + np.int64(low_field)
        return
    for i in range(low, high):
        row = unsigned(rows[i])
        q = _rounded(values[row] * scale, keys[row], stream)
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
