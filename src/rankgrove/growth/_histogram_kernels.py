"""Kernels of histograms: add the packed sums of rows to their bins.

Rows are taken ROWS_AT_ONCE at a time. Their words are gathered block by block, so that the adding
loop reads consecutive memory and the sums of a block stay in the first-level cache::

    words (by row)              buffer (by block of 8 bytes)
    r4:  w0 w1 w2               b0:  r4.w0  r9.w0  r17.w0 ...  --+
    r9:  w0 w1 w2       ->      b1:  r4.w1  r9.w1  r17.w1 ...    +->  part[0, b]: 8 x STRIDE int64
    r17: w0 w1 w2               b2:  r4.w2  r9.w2  r17.w2 ...

A line of the buffer is PADDING words longer than necessary, and the 256 sums of a byte begin STRIDE
places after those of the byte before: the processor takes a load for a store that is not finished
yet if they are a multiple of 4 KiB apart, and frequent bins would be all the time. While rows are
added, those of the next turn are prefetched: memory and arithmetic overlap. Small leaves have one
turn for each thread, so that rows of the first turn are prefetched as well, BETWEEN rows ahead.

Bytes with one dominant value are in the same blocks, so that in many rows all eight bytes of a
block have their dominant value. Such rows are not added eight times: their sum is known from the
total. The last block may have few bytes; then only these are added.

A byte has the bins of one feature, or of several that share it (`shared_bytes.py`). `take_feature`
brings the sums of parts into the form that the search for splits reads, features x 256 bins.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove._piece_kernels import next_number
from rankgrove.growth._kernel_tools import bounds, prefetch, unsigned
from rankgrove.jit import njit

ROWS_AT_ONCE = 512
PADDING = 24
STRIDE = 272  # sums from one byte to the next
BETWEEN = 32  # rows that are added between two prefetches
LINE = 8  # words of a cache line
SKIP = -1  # a way to add a block: all rows with the common word at once
FEW = 4  # up to this number, bytes are added one by one
# Three fields of an int64 for rows that are added up in turns: see `add_rows`.
COUNT_BITS = 16
HESSIAN_BITS = 24
GRADIENT_SHIFT = COUNT_BITS + HESSIAN_BITS
MOST_COUNT = (1 << COUNT_BITS) - 1
MOST_HESSIAN = (1 << HESSIAN_BITS) - 1
MOST_GRADIENT = (1 << (63 - GRADIENT_SHIFT)) - 1


@njit(cache=True, forceinline=True)
def _add(hist, words, sums, low, high):
    """Add ``sums[i]`` to the bins of the bytes of ``words[i]``, for i from low to high - 1."""
    byte = np.uint64(255)
    for i in range(low, high):
        w = words[np.uint64(i)]
        s = sums[np.uint64(i)]
        hist[w & byte] += s
        hist[((w >> np.uint64(8)) & byte) + np.uint64(STRIDE)] += s
        hist[((w >> np.uint64(16)) & byte) + np.uint64(2 * STRIDE)] += s
        hist[((w >> np.uint64(24)) & byte) + np.uint64(3 * STRIDE)] += s
        hist[((w >> np.uint64(32)) & byte) + np.uint64(4 * STRIDE)] += s
        hist[((w >> np.uint64(40)) & byte) + np.uint64(5 * STRIDE)] += s
        hist[((w >> np.uint64(48)) & byte) + np.uint64(6 * STRIDE)] += s
        hist[(w >> np.uint64(56)) + np.uint64(7 * STRIDE)] += s


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
    _add(hist, some_words, some_sums, 0, n)
    for place in range(8):
        code = (common >> np.uint64(8 * place)) & np.uint64(255)
        hist[code + np.uint64(STRIDE * place)] += skipped


@njit(cache=True)
def _add_few(hist, words, sums, m, n_bytes):
    """Like :func:`_add`, but for the first bytes only."""
    for place in range(n_bytes):
        shift = np.uint64(8 * place)
        start = np.uint64(STRIDE * place)
        for i in range(m):
            hist[((words[i] >> shift) & np.uint64(255)) + start] += sums[i]


@njit(cache=True, forceinline=True)
def _prefetch_rows(words, n_blocks, packed, rows, low, high):
    """Prefetch the words and packed sums of ``rows[low:high]``."""
    for i in range(low, high):
        row = np.int64(rows[i])
        prefetch(packed, row)
        first = row * n_blocks
        for b in range(0, n_blocks, LINE):
            prefetch(words, first + b)
        prefetch(words, first + n_blocks - 1)  # rows need not begin with a line


@njit(cache=True)
def _widen(narrow, part):
    """Add sums of three fields to planes of two, (gradient, count) and hessian; clear them."""
    for b in range(narrow.shape[0]):
        for k in range(narrow.shape[1]):
            total = narrow[b, k]
            count = total & np.int64(MOST_COUNT)
            gradient = total >> np.int64(GRADIENT_SHIFT)
            part[0, b, k] += (gradient << np.int64(32)) + count
            part[1, b, k] += (total >> np.int64(COUNT_BITS)) & np.int64(MOST_HESSIAN)
            narrow[b, k] = 0


@njit(cache=True, forceinline=True)
def _add_turn(
    words, common, how, packed, rows, ahead, buffer, sums, m, some_words, some_sums, hist
):
    """Add m rows, whose words are in the buffer; prefetch those of the next turn, from `ahead`."""
    n_blocks = how.size
    end = min(ahead + ROWS_AT_ONCE, rows.size)
    per_block = (ROWS_AT_ONCE + n_blocks - 1) // n_blocks
    per_step = (per_block * BETWEEN + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
    for b in range(n_blocks):
        if how[b] > FEW:
            for low in range(0, m, BETWEEN):
                _add(hist[b], buffer[b], sums, low, min(low + BETWEEN, m))
                stop = min(ahead + per_step, end)
                _prefetch_rows(words, n_blocks, packed, rows, ahead, stop)
                ahead = stop
        else:
            if how[b] == SKIP:
                _add_uncommon(hist[b], buffer[b], sums, m, common[b], some_words, some_sums)
            else:
                _add_few(hist[b], buffer[b], sums, m, how[b])
            stop = min(ahead + per_block, end)
            _prefetch_rows(words, n_blocks, packed, rows, ahead, stop)
            ahead = stop


@njit(cache=True)
def add_rows(words, common, how, packed, rows, part, narrow):
    """Add ``packed[rows]`` to part (planes, blocks, 8 * STRIDE), in every bin.

    ``how[b]`` is SKIP if rows whose word of block b is ``common[b]`` are skipped, otherwise the
    number of bytes of the block. With two planes, rows are added to `narrow` (blocks, 8 * STRIDE),
    whose three fields have room for some of them; before a field may overflow, its sums are added
    to the planes. Room for one turn of rows is certain: `Field.most_of_row` limits single rows.
    """
    n = rows.size
    n_blocks = words.shape[1]
    has_narrow = part.shape[0] == 2
    hist = narrow if has_narrow else part[0]
    if has_narrow:
        hist[:] = 0
    buffer = np.empty((n_blocks, ROWS_AT_ONCE + PADDING), np.uint64)
    sums = np.empty(ROWS_AT_ONCE, np.int64)
    some_words = np.empty(ROWS_AT_ONCE, np.uint64)
    some_sums = np.empty(ROWS_AT_ONCE, np.int64)
    flat = words.reshape(-1)
    count, gradient, hessian = np.int64(0), np.int64(0), np.int64(0)
    for start in range(0, n, ROWS_AT_ONCE):
        m = min(ROWS_AT_ONCE, n - start)
        if start == 0:  # those of later turns were prefetched while rows were added
            _prefetch_rows(flat, n_blocks, packed, rows, 0, min(BETWEEN, m))
        for i in range(m):
            if start == 0 and i + BETWEEN < m:
                _prefetch_rows(flat, n_blocks, packed, rows, i + BETWEEN, i + BETWEEN + 1)
            row = unsigned(rows[start + i])
            sums[i] = packed[row]
            first = row * np.uint64(n_blocks)
            for b in range(n_blocks):
                buffer[b, i] = flat[first + np.uint64(b)]
        if has_narrow:
            new_gradient, new_hessian = np.int64(0), np.int64(0)
            for i in range(m):
                new_gradient += abs(sums[i] >> np.int64(GRADIENT_SHIFT))
                new_hessian += (sums[i] >> np.int64(COUNT_BITS)) & np.int64(MOST_HESSIAN)
            if (
                count + m > MOST_COUNT
                or gradient + new_gradient > MOST_GRADIENT
                or hessian + new_hessian > MOST_HESSIAN
            ):
                _widen(hist, part)
                count, gradient, hessian = np.int64(0), np.int64(0), np.int64(0)
            count += m
            gradient += new_gradient
            hessian += new_hessian
        _add_turn(
            flat, common, how, packed, rows, start + m, buffer, sums, m, some_words, some_sums, hist
        )
    if has_narrow:
        _widen(hist, part)


@njit(cache=True)
def accumulate(words, common, how, packed, rows, part, narrow):
    """Set part to the sums of the rows."""
    part[:] = 0
    add_rows(words, common, how, packed, rows, part, narrow)


@njit(cache=True, parallel=True)
def accumulate_parts(words, common, how, packed, rows, parts, narrow, n_threads, n_pieces, counter):
    """Set `parts` to sums of the rows, which add up; threads take pieces as they become free.

    counter : one number, 0 before the call
    """
    for t in prange(n_threads):
        parts[t] = 0
        piece = next_number(counter)
        while piece < n_pieces:
            low, high = bounds(0, rows.size, piece, n_pieces)
            add_rows(words, common, how, packed, rows[low:high], parts[t], narrow[t])
            piece = next_number(counter)


@njit(cache=True)
def take_feature(parts, n_parts, plane, byte, table, out):
    """Set `out` to the 256 sums of a feature, given parts by byte; see `shared_bytes.py`."""
    block, start = byte >> 3, (byte & 7) * STRIDE
    if table.size == 0:
        for k in range(256):
            total = parts[0, plane, block, start + k]
            for t in range(1, n_parts):
                total += parts[t, plane, block, start + k]
            out[k] = total
        return
    out[:] = 0
    for k in range(256):
        total = parts[0, plane, block, start + k]
        for t in range(1, n_parts):
            total += parts[t, plane, block, start + k]
        out[table[k]] += total


@njit(cache=True)
def take_features(parts, n_parts, byte_of, table_of, tables, out):
    """Set the histogram `out` (planes, blocks, 2048) to the sums of parts by byte."""
    for plane in range(out.shape[0]):
        for feature in range(out.shape[1] * 8):
            sums = out[plane, feature >> 3, (feature & 7) * 256 : (feature & 7) * 256 + 256]
            if feature < byte_of.size:
                table = tables[table_of[feature], : 256 * (table_of[feature] >= 0)]
                take_feature(parts, n_parts, plane, byte_of[feature], table, sums)
            else:
                sums[:] = 0
