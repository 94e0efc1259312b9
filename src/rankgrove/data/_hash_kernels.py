# mypy: ignore-errors
"""Hashes of rows: sums over their features, so that what is 0 takes no part."""

from __future__ import annotations

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.jit import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MAGNITUDE, _INFINITY = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)
_NAN = np.uint32(0x7FC00000)


@njit(cache=True, nogil=True, inline="always")
def _share(bits, column):
    """Return what a value adds to its row's hash: nothing where it is 0; every NaN is the same."""
    magnitude = np.uint32(bits & _MAGNITUDE)
    if magnitude == np.uint32(0):
        return np.uint64(0)
    one = _NAN if magnitude > _INFINITY else np.uint32(bits)
    return mix(np.uint64(one) + np.uint64(column + 1) * _STEP)


@njit(cache=True, nogil=True)
def hash_dense(bits, rows, first, last, hashes):
    """Fill hashes[first:last] with those of these rows of float32 features, given as bits."""
    for i in range(first, last):
        total = np.uint64(0)
        for column in range(bits.shape[1]):
            total += _share(bits[rows[i], column], column)
        hashes[i] = total


@njit(cache=True, nogil=True)
def hash_sparse(bits, indices, indptr, rows, first, last, hashes):
    """Like the kernel for dense rows, but for a CSR matrix."""
    for i in range(first, last):
        total = np.uint64(0)
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            total += _share(bits[p], indices[p])
        hashes[i] = total
