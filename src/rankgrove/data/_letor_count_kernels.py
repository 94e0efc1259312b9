"""How much there is in LETOR text, at the speed of memory: data lines, and colons."""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove.data._letor_kernels import END, START
from rankgrove.data._number_kernels import skip_spaces
from rankgrove.jit import njit

_LINE_FEED, _HASH, _COLON = 10, 35, 58
_LINE_FEEDS = np.uint64(0x0A0A_0A0A_0A0A_0A0A)
_ONES, _HIGH_BITS = np.uint64(0x0101_0101_0101_0101), np.uint64(0x8080_8080_8080_8080)


@njit(cache=True, nogil=True)
def _is_data_line(data, pos):
    pos = skip_spaces(data, pos)
    return data[pos] != _LINE_FEED and data[pos] != _HASH


@njit(cache=True, nogil=True)
def count_chunk(data, words, start, end):
    """Return the number of data lines in data[start:end], which begins at a line start.

    `words` is `data` again, eight bytes a word: blocks without a line feed are skipped at the
    speed of memory. A byte of x is zero if and only if (x - 01..01) & ~x & 80..80 has a bit.
    """
    rows = 0
    if start < end and _is_data_line(data, start):
        rows += 1
    pos = start
    while pos < end - 1:  # the last byte ends the last line
        stop = min((pos & ~127) + 128, end - 1)
        if pos & 127 == 0 and stop - pos == 128:
            found = np.uint64(0)
            for i in range(pos >> 3, stop >> 3):
                x = words[i] ^ _LINE_FEEDS
                found |= (x - _ONES) & ~x & _HIGH_BITS
            if found == 0:
                pos = stop
                continue
        for i in range(pos, stop):
            if data[i] == _LINE_FEED and _is_data_line(data, i + 1):
                rows += 1
        pos = stop
    return rows


@njit(cache=True, nogil=True, parallel=True)
def count_colons(data, state, colons):
    """Fill colons[chunk]: no chunk has more feature values."""
    for chunk in prange(state.shape[0]):
        found = 0
        for i in range(state[chunk, START], state[chunk, END]):
            found += data[i] == _COLON
        colons[chunk] = found
