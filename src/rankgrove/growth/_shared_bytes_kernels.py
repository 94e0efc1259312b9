"""Kernels of shared bytes: combinations of two bytes, counted and numbered."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def count_pairs(first, second, seen, stamp, most):
    """Return the number of different pairs (first[i], second[i]); most + 1 if there are more.

    seen : scratch, 65536 numbers other than the stamp
    """
    n = 0
    for i in range(first.size):
        pair = (np.int64(first[i]) << 8) + np.int64(second[i])
        if seen[pair] != stamp:
            seen[pair] = stamp
            n += 1
            if n > most:
                break
    return n


@njit(cache=True, nogil=True)
def number_pairs(first, second, number_of, most):
    """Number the pairs as they occur, in `number_of`; return how many, at most + 1.

    number_of : in and out, -1 for pairs that did not occur
    """
    n = 0
    for i in range(first.size):
        pair = (np.int64(first[i]) << 8) + np.int64(second[i])
        if number_of[pair] < 0:
            if n == most:
                return most + 1
            number_of[pair] = n
            n += 1
    return n


@njit(cache=True, nogil=True)
def join_pairs(first, second, number_of):
    """Replace ``first[i]`` by the number of the pair (first[i], second[i])."""
    for i in range(first.size):
        first[i] = number_of[(np.int64(first[i]) << 8) + np.int64(second[i])]


@njit(cache=True, nogil=True)
def fill_bytes(codes, own, shared, numbers, low, high, out):
    """Fill the bytes of the rows low .. high - 1.

    Byte b is column ``own[b]`` of the codes, or line ``shared[b]`` of `numbers` if that is not -1.
    """
    for i in range(low, high):
        for b in range(own.size):
            if shared[b] < 0:
                out[i, b] = codes[i, own[b]]
            else:
                out[i, b] = numbers[shared[b], i]
