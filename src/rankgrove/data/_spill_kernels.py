"""Kernels of spilled values: rows to packed columns, and packed columns to keys, values and bins.

A column of a block of rows is packed in words of 32 bits. Where most values are the hole (0, or NaN
where absent features are missing), only the others are stored, and then their rows::

    dense     v0 v1 v2 ...                      one word per row
    sparse    v3 v17 v40 | 3,17  40,0           values; rows as uint16, two per word

A sparse column of no values takes no words. `counts` has the number of stored values, -1: dense.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove.data._binning_kernels import MISSING, _key
from rankgrove.jit import njit

_TILE = 64


@njit(cache=True, parallel=True)
def turn(bits, turned):
    """Fill ``turned[c, i]`` with ``bits[i, c]``, tile by tile."""
    n, width = bits.shape
    for chunk in prange((n + _TILE - 1) // _TILE):
        start = chunk * _TILE
        end = min(start + _TILE, n)
        for c in range(width):
            for i in range(start, end):
                turned[c, i] = bits[i, c]


@njit(cache=True, parallel=True)
def count_stored(turned, hole, counts):
    """Fill `counts` with the number of values to store; -1 where a dense column takes less."""
    n = turned.shape[1]
    for c in prange(turned.shape[0]):
        stored = 0
        for i in range(n):
            stored += turned[c, i] != hole
        counts[c] = stored if stored + (stored + 1) // 2 < n else -1


@njit(cache=True, parallel=True)
def pack(turned, hole, counts, starts, words):
    """Write the columns of a dense block, ``turned[c]``, to words[starts[c]:]."""
    n = turned.shape[1]
    for c in prange(turned.shape[0]):
        at = starts[c]
        if counts[c] < 0:
            for i in range(n):
                words[at + i] = turned[c, i]
            continue
        rows = at + counts[c]
        k = 0
        for i in range(n):
            if turned[c, i] != hole:
                words[at + k] = turned[c, i]
                if k & 1:
                    words[rows + (k >> 1)] |= np.uint32(i) << np.uint32(16)
                else:
                    words[rows + (k >> 1)] = np.uint32(i)
                k += 1


@njit(cache=True)
def pack_sparse(bits, rows, pointers, starts, words):
    """Write the columns of a CSC block to words[starts[c]:]."""
    for c in range(starts.size):
        n = pointers[c + 1] - pointers[c]
        for k in range(n):
            words[starts[c] + k] = bits[pointers[c] + k]
            row = np.uint32(rows[pointers[c] + k])
            place = starts[c] + n + (k >> 1)
            if k & 1:
                words[place] |= row << np.uint32(16)
            else:
                words[place] = row


@njit(cache=True, inline="always")
def _row(words, start, count, k):
    """Return the row of the k-th stored value of a sparse column."""
    pair = words[start + count + (k >> 1)]
    return np.int64((pair >> np.uint32(16)) if k & 1 else (pair & np.uint32(0xFFFF)))


@njit(cache=True)
def add_keys(words, places, starts, counts, n_rows, keys, sizes):
    """Append the keys of stored values of packed columns to ``keys[places[c]]``.

    Too little work for threads: a block has few rows of few columns.
    """
    for c in range(places.size):
        target = places[c]
        n = n_rows if counts[c] < 0 else counts[c]
        at = sizes[target]
        for k in range(n):
            keys[target, at + k] = _key(words[starts[c] + k])
        sizes[target] = at + n


@njit(cache=True)
def unpack(words, start, count, out):
    """Write the stored values of a packed column into `out`, which holds the hole elsewhere."""
    if count < 0:
        out[:] = words[start : start + out.size]
    else:
        for k in range(count):
            out[_row(words, start, count, k)] = words[start + k]


@njit(cache=True, inline="always")
def _bins_of(x, n, table, step, out, missing):
    """Fill ``out[:n]`` with the bins of ``x[:n]``: see `bin_rows`."""
    position = np.zeros(n, np.uint32)
    step = np.uint32(step)
    while step:
        for i in range(n):
            up = np.uint32(position[i] + step)
            below = table[np.uint64(up) - np.uint64(1)] < x[i]
            position[i] = up if below else position[i]
        step = np.uint32(step >> np.uint32(1))
    for i in range(n):
        out[i] = np.uint8(position[i]) if x[i] == x[i] else missing


@njit(cache=True, parallel=True)
def bin_packed(words, starts, counts, hole, tables, steps, bins):
    """Fill ``bins[c]`` with the bins of a packed column; count -2: all values are the hole."""
    n = bins.shape[1]
    values = words.view(np.float32)
    missing = np.uint8(MISSING)
    for c in prange(starts.size):
        if counts[c] == -1:
            x = values[starts[c] : starts[c] + n]
            _bins_of(x, n, tables[c], steps[c], bins[c], missing)
            continue
        one = np.empty(1, np.uint8)
        _bins_of(hole, 1, tables[c], steps[c], one, missing)
        bins[c, :] = one[0]
        if counts[c] > 0:
            stored = counts[c]
            x = values[starts[c] : starts[c] + stored]
            found = np.empty(stored, np.uint8)
            _bins_of(x, stored, tables[c], steps[c], found, missing)
            for k in range(stored):
                bins[c, _row(words, starts[c], stored, k)] = found[k]


@njit(cache=True, parallel=True)
def to_rows(bins, codes):
    """Fill ``codes[i, c]`` with ``bins[c, i]``, and the padding with 0."""
    width, n = bins.shape
    for chunk in prange((n + _TILE - 1) // _TILE):
        start = chunk * _TILE
        end = min(start + _TILE, n)
        codes[start:end, width:] = 0
        for c in range(width):
            for i in range(start, end):
                codes[i, c] = bins[c, i]
