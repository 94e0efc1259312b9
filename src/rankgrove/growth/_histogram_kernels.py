"""Kernels of histograms: add the packed sums of rows to their bins.

Rows are taken ROWS_AT_ONCE at a time. Their words are gathered block by block, so that the adding
loop reads consecutive memory and the 8 x 256 sums of a block stay in the first-level cache::

    words (by row)              buffer (by block of 8 features)
    r4:  w0 w1 w2               b0:  r4.w0  r9.w0  r17.w0 ...  --+
    r9:  w0 w1 w2       ->      b1:  r4.w1  r9.w1  r17.w1 ...    +->  hist[0, b]: 8 x 256 int64
    r17: w0 w1 w2               b2:  r4.w2  r9.w2  r17.w2 ...

A line of the buffer is PADDING words longer than necessary: lines exactly 4 KiB apart would share
the same few lines of the cache, which makes the whole 1.7 times slower.

Features with one dominant value are in the same blocks, so that in many rows all eight features of
a block have their dominant value. Such rows are not added eight times: their sum is known from the
total. The last block may have few features; then only these are added.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit, prange

from rankgrove.growth._kernel_tools import bounds, prefetch, unsigned

ROWS_AT_ONCE = 512
PADDING = 24
AHEAD = 16  # rows between prefetching and reading
LINE = 8  # words of a cache line
SKIP = -1  # a way to add a block: all rows with the common word at once
FEW = 4  # up to this number, features are added one by one


@njit(cache=True)
def _add(hist, words, sums, m):
    """Add ``sums[i]`` to the bins of the eight features of ``words[i]``."""
    byte = np.uint64(255)
    for i in range(m):
        w = words[i]
        s = sums[i]
        hist[w & byte] += s
        hist[((w >> np.uint64(8)) & byte) + np.uint64(256)] += s
        hist[((w >> np.uint64(16)) & byte) + np.uint64(512)] += s
        hist[((w >> np.uint64(24)) & byte) + np.uint64(768)] += s
        hist[((w >> np.uint64(32)) & byte) + np.uint64(1024)] += s
        hist[((w >> np.uint64(40)) & byte) + np.uint64(1280)] += s
        hist[((w >> np.uint64(48)) & byte) + np.uint64(1536)] += s
        hist[(w >> np.uint64(56)) + np.uint64(1792)] += s


@njit(cache=True)
def _add_uncommon(hist, words, sums, m, common, some_words, some_sums):
    """Like :func:`_add`, but rows whose word is `common` are added all at once."""
    n = 0
    skipped = 0
    for i in range(m):
        some_words[n] = words[i]
        some_sums[n] = sums[i]
        skipped += sums[i]
        n += np.int64(words[i] != common)
    for i in range(n):
        skipped -= some_sums[i]
    _add(hist, some_words, some_sums, n)
    for feature in range(8):
        code = (common >> np.uint64(8 * feature)) & np.uint64(255)
        hist[code + np.uint64(256 * feature)] += skipped


@njit(cache=True)
def _add_few(hist, words, sums, m, n_features):
    """Like :func:`_add`, but for the first features only."""
    for feature in range(n_features):
        shift = np.uint64(8 * feature)
        start = np.uint64(256 * feature)
        for i in range(m):
            hist[((words[i] >> shift) & np.uint64(255)) + start] += sums[i]


@njit(cache=True)
def accumulate(words, common, how, packed, rows, hist):
    """Set hist (planes, blocks, 2048) to the sums of ``packed[:, rows]`` in every bin.

    ``how[b]`` is SKIP if rows whose word of block b is ``common[b]`` are skipped, otherwise the
    number of features of the block.
    """
    n = rows.size
    n_blocks = words.shape[1]
    planes = packed.shape[0]
    hist[:] = 0
    buffer = np.empty((n_blocks, ROWS_AT_ONCE + PADDING), np.uint64)
    sums = np.empty((planes, ROWS_AT_ONCE), np.int64)
    some_words = np.empty(ROWS_AT_ONCE, np.uint64)
    some_sums = np.empty(ROWS_AT_ONCE, np.int64)
    flat = words.reshape(-1)
    for start in range(0, n, ROWS_AT_ONCE):
        m = min(ROWS_AT_ONCE, n - start)
        for i in range(m):
            row = unsigned(rows[start + i])
            next_row = np.int64(rows[min(start + i + AHEAD, n - 1)]) * n_blocks
            for b in range(0, n_blocks, LINE):
                prefetch(flat, next_row + b)
            for p in range(planes):
                sums[p, i] = packed[p, row]
            for b in range(n_blocks):
                buffer[b, i] = words[row, b]
        for b in range(n_blocks):
            for p in range(planes):
                if how[b] == SKIP:
                    _add_uncommon(
                        hist[p, b], buffer[b], sums[p], m, common[b], some_words, some_sums
                    )
                elif how[b] <= FEW:
                    _add_few(hist[p, b], buffer[b], sums[p], m, how[b])
                else:
                    _add(hist[p, b], buffer[b], sums[p], m)


@njit(cache=True, parallel=True)
def accumulate_parts(words, common, how, packed, rows, parts, n_parts):
    """Set ``parts[t]`` to the histogram of the t-th part of the rows."""
    for t in prange(n_parts):
        low, high = bounds(0, rows.size, t, n_parts)
        accumulate(words, common, how, packed, rows[low:high], parts[t])
