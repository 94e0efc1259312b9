"""Kernels of binning: sort columns, choose thresholds, look values up.

Kernels fill what the caller allocates and never raise. A column is sorted as 32-bit keys whose
unsigned order is the order of the floats.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove.jit import njit

MISSING = 255
ROWS_AT_ONCE = 512  # of a dense matrix: 136 float32 columns of them stay in the second-level cache
_LARGEST = np.float32(np.finfo(np.float32).max)
_SIGN = np.uint32(0x80000000)
_ALL = np.uint32(0xFFFFFFFF)
_NO_KEY = np.uint32(0xFFFFFFFF)  # of a NaN: above the key of every number


@njit(cache=True, inline="always")
def _key(bits: np.uint32) -> np.uint32:
    """Return the key of a float's bits; the two zeros have one key, every NaN the last one."""
    magnitude = np.uint32(bits & np.uint32(0x7FFFFFFF))
    if magnitude > np.uint32(0x7F800000):
        return _NO_KEY
    if magnitude == np.uint32(0):
        return _SIGN
    return np.uint32(bits ^ _ALL) if bits & _SIGN else np.uint32(bits ^ _SIGN)


@njit(cache=True, parallel=True)
def gather_keys(features, rows, first, keys):
    """Fill ``keys[c, i]`` with the key of ``features[rows[i], first + c]``; features as bits."""
    n = rows.size
    n_chunks = (n + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
    width = keys.shape[0]
    for chunk in prange(n_chunks):
        start = chunk * ROWS_AT_ONCE
        end = min(start + ROWS_AT_ONCE, n)
        for c in range(width):
            for i in range(start, end):
                keys[c, i] = _key(features[rows[i], first + c])


@njit(cache=True, parallel=True)
def gather_sparse_keys(data, indptr, first, keys, sizes):
    """Fill ``keys[c]`` with the keys of column ``first + c`` of a CSC matrix of bits."""
    for c in prange(keys.shape[0]):
        start, end = indptr[first + c], indptr[first + c + 1]
        sizes[c] = end - start
        for i in range(start, end):
            keys[c, i - start] = _key(data[i])


@njit(cache=True)
def _sort(keys, scratch, n):
    """Sort ``keys[:n]`` by three passes of a radix sort; a digit that all keys share is skipped."""
    counts = np.zeros((3, 2048), np.int64)
    for i in range(n):
        key = keys[i]
        counts[0, key & np.uint32(2047)] += 1
        counts[1, (key >> np.uint32(11)) & np.uint32(2047)] += 1
        counts[2, key >> np.uint32(22)] += 1
    source, target = keys, scratch
    for digit in range(3):
        shift = np.uint32(11 * digit)
        total = 0
        alone = False
        for b in range(2048):
            here = counts[digit, b]
            alone = alone or here == n
            counts[digit, b] = total
            total += here
        if alone:
            continue
        for i in range(n):
            key = source[i]
            b = (key >> shift) & np.uint32(2047)
            target[counts[digit, b]] = key
            counts[digit, b] += 1
        source, target = target, source
    return source


@njit(cache=True)
def _runs(keys, n, values, counts, zeros):
    """Write the distinct values of sorted keys and how often each occurs; return their number.

    `zeros` is the number of zeros that a sparse column does not store. Missing values must have
    been cut off. `counts` may be the same memory as `keys`.
    """
    m = 0
    i = 0
    pending = zeros > 0
    following = keys[0] if n else _NO_KEY  # counts may be written over keys: read one key ahead
    while i < n or pending:
        if pending and following >= _SIGN:
            key, count, pending = _SIGN, zeros, False
        else:
            key, count = following, 0
        while i < n and following == key:
            count += 1
            i += 1
            following = keys[i] if i < n else _NO_KEY
        values[m] = key ^ _SIGN if key & _SIGN else key ^ _ALL
        counts[m] = count
        m += 1
    return m


@njit(cache=True)
def _midpoint(low, high):
    """Return a finite float32 t with ``low <= t < high``; minus infinity where there is none."""
    if high == np.inf:
        return np.float32(0) if low == -np.inf else _LARGEST
    if low == -np.inf:
        return -_LARGEST if high > -_LARGEST else np.float32(-np.inf)
    middle = np.float32(0.5 * (np.float64(low) + np.float64(high)))
    return low if middle >= high else middle


@njit(cache=True)
def _frequent(counts, values, m, max_bins, alone):
    """Mark the values that deserve a bin of their own; return the rows and bins of the others."""
    rows = 0
    bins = max_bins
    for i in range(m):
        alone[i] = not np.isfinite(values[i])
        if alone[i]:
            bins -= 1
        else:
            rows += counts[i]
    for _ in range(4):  # each value set apart lowers the bar for the rest; it settles at once
        bar = rows / max(bins, 1)
        before = bins
        for i in range(m):
            if bins > 1 and not alone[i] and counts[i] > bar:
                alone[i] = True
                rows -= counts[i]
                bins -= 1
        if bins == before:
            break
    return rows, bins


@njit(cache=True)
def _choose(values, counts, m, max_bins, alone, thresholds):
    """Write the thresholds between bins of m distinct values; return their number."""
    few = m <= max_bins
    rows, bins = (0, 0) if few else _frequent(counts, values, m, max_bins, alone)
    held = 0
    k = 0
    for i in range(m - 1):
        cut = few
        if not few:
            target = rows / max(bins, 1)
            if alone[i]:
                cut = True
            else:
                held += counts[i]
                if alone[i + 1]:
                    infinite = not np.isfinite(values[i + 1])
                    cut = infinite or (bins > 0 and 2 * held >= target)
                else:
                    cut = bins > 1 and held + 0.5 * counts[i + 1] >= target
                if cut:
                    rows -= held
                    bins -= 1
            cut = cut and k < max_bins - 1
        if cut:
            threshold = _midpoint(values[i], values[i + 1])
            held = 0
            if threshold > -np.inf:
                thresholds[k] = threshold
                k += 1
    return k


@njit(cache=True, parallel=True)
def fit_columns(keys, sizes, zeros, max_bins, scratch, alone, thresholds, summary):
    """Choose the thresholds of columns given as keys.

    In: keys (c, n+1) and sizes (c), destroyed; zeros (c), stored nowhere; scratch (c, n+1)
    uint32 and alone (c, n+1) bool, for work. Out: thresholds (c, 255) float32 and summary (c, 4):
    number of thresholds, missing values, distinct values, rows of the fullest value.
    """
    for c in prange(keys.shape[0]):
        n = sizes[c]
        ordered = _sort(keys[c], scratch[c], n)
        present = n
        if n and ordered[n - 1] == _NO_KEY:
            present = np.searchsorted(ordered[:n], _NO_KEY)
        other = scratch[c] if ordered is keys[c] else keys[c]
        m = _runs(ordered, present, other, ordered, zeros[c])
        k = _choose(other.view(np.float32), ordered, m, max_bins, alone[c], thresholds[c])
        summary[c, 0] = k
        summary[c, 1] = n - present
        summary[c, 2] = m
        fullest = np.uint32(0)
        for i in range(m):
            fullest = max(fullest, ordered[i])
        summary[c, 3] = fullest


@njit(cache=True, parallel=True)
def bin_rows(features, rows, columns, tables, steps, codes):
    """Fill ``codes[i, c]`` with the bin of ``features[rows[i], columns[c]]``.

    The bin of x is the number of thresholds below it. The binary search takes one step for all
    rows at hand before the next, so that the compiler makes vector code of it.
    """
    n = rows.size
    for chunk in prange((n + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
        start = chunk * ROWS_AT_ONCE
        m = min(ROWS_AT_ONCE, n - start)
        x = np.empty(ROWS_AT_ONCE, np.float32)
        position = np.empty(ROWS_AT_ONCE, np.uint32)
        for c in range(columns.size):
            table = tables[c]
            for i in range(m):
                x[i] = features[rows[start + i], columns[c]]
                position[i] = 0
            step = np.uint32(steps[c])
            while step:
                for i in range(m):
                    up = np.uint32(position[i] + step)
                    below = table[np.uint64(up) - np.uint64(1)] < x[i]
                    position[i] = up if below else position[i]
                step = np.uint32(step >> np.uint32(1))
            for i in range(m):
                present = x[i] == x[i]
                codes[start + i, c] = np.uint8(position[i]) if present else np.uint8(MISSING)
        codes[start : start + m, columns.size :] = 0


@njit(cache=True, parallel=True)
def densify(data, indices, indptr, rows, dense):
    """Fill the dense rows of some rows of a CSR matrix."""
    for i in prange(rows.size):
        dense[i, :] = 0
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            dense[i, indices[p]] = data[p]


@njit(cache=True, parallel=True)
def transpose(codes, columns):
    """Fill ``columns[c, i]`` with ``codes[i, c]``, tile by tile."""
    n = codes.shape[0]
    width = columns.shape[0]
    tile = 64
    for chunk in prange((n + tile - 1) // tile):
        start = chunk * tile
        end = min(start + tile, n)
        for c in range(width):
            for i in range(start, end):
                columns[c, i] = codes[i, c]
