"""Rows to LETOR text: the shortest decimals that read back as the same float32, in parallel.

Every part of a block of rows has its own stretch of the output, long enough for the worst case,
and reports how much of it was used.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from rankgrove.data._number_kernels import CERTAIN, to_float32
from rankgrove.jit import njit

# A value takes at most a sign, 9 digits, a point, 4 zeros or an exponent; an index 10 digits;
# then the colon and the blank.
MOST_VALUE_BYTES = 16
MOST_PAIR_BYTES = MOST_VALUE_BYTES + 12
_MOST_DIGITS = 9  # nine decimals tell any two float32 apart
_LOWEST_PLAIN, _HIGHEST_PLAIN = -4, 9  # decimal exponents written without an e
_TEN = np.array([10.0**k for k in range(-60, 61)])
_NEW_LINE, _BLANK, _MINUS, _POINT, _ZERO, _COLON, _LOWER_E = 10, 32, 45, 46, 48, 58, 101


class Block(NamedTuple):
    """Rows to write; `X` where the data is dense, else `columns`, `values`, `pointers`."""

    dense: bool
    zeros: bool
    n_features: int
    force_last: bool  # write the last feature of the first row even if it is 0
    X: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    pointers: np.ndarray


class Texts(NamedTuple):
    """Texts of a column: those of row i are blob[start[which[i]]:end[which[i]]]."""

    blob: np.ndarray
    start: np.ndarray
    end: np.ndarray
    which: np.ndarray


@njit(cache=True, nogil=True)
def _put_integer(out, pos, number):
    """Write a whole number that is not negative; return the position after it."""
    length = 1
    rest = number // 10
    while rest > 0:
        length += 1
        rest //= 10
    for k in range(length - 1, -1, -1):
        out[pos + k] = _ZERO + number % 10
        number //= 10
    return pos + length


@njit(cache=True, nogil=True)
def shortest(value):
    """Return (mantissa, digits, exponent) of a positive finite float32: mantissa * 10**exponent.

    The reader's own conversion is the judge: the first length that it surely reads back as
    `value`. Nine digits always do, because they are denser than float32.
    """
    double = np.float64(value)
    power = int(np.floor(np.log10(double)))
    if double >= _TEN[power + 61]:  # log10 may round across a power of ten
        power += 1
    elif double < _TEN[power + 60]:
        power -= 1
    for digits in range(1, _MOST_DIGITS + 1):
        exponent = power - digits + 1
        mantissa = np.int64(np.rint(double * _TEN[60 - exponent]))
        sure, back = to_float32(mantissa, exponent)
        if digits == _MOST_DIGITS or (sure == CERTAIN and back == value):
            if mantissa >= 10 ** min(digits, 18):  # rounded up to the next power
                mantissa //= 10
                exponent += 1
            return mantissa, digits, exponent
    return np.int64(0), 0, 0


@njit(cache=True, nogil=True)
def _put_digits(out, pos, mantissa, digits, exponent):
    """Write a decimal plainly, or with an exponent where that is shorter."""
    leading = exponent + digits - 1  # the power of ten of the first digit
    if leading < _LOWEST_PLAIN or leading > _HIGHEST_PLAIN:
        head = mantissa // 10 ** (digits - 1)
        pos = _put_integer(out, pos, head)
        if digits > 1:
            out[pos] = _POINT
            rest = mantissa - head * 10 ** (digits - 1)
            for k in range(digits - 1, 0, -1):
                out[pos + k] = _ZERO + rest % 10
                rest //= 10
            pos += digits
        out[pos] = _LOWER_E
        pos += 1
        if leading < 0:
            out[pos] = _MINUS
            pos += 1
        return _put_integer(out, pos, abs(leading))
    if exponent >= 0:
        return _put_integer(out, pos, mantissa * 10**exponent)
    scale = 10**-exponent
    head = mantissa // scale
    pos = _put_integer(out, pos, head)
    out[pos] = _POINT
    rest = mantissa - head * scale
    for k in range(-exponent, 0, -1):
        out[pos + k] = _ZERO + rest % 10
        rest //= 10
    return pos + 1 - exponent


@njit(cache=True, nogil=True)
def put_value(out, pos, value):
    """Write a float32 at out[pos:]; return the position after it."""
    if value != value:
        out[pos], out[pos + 1], out[pos + 2] = 110, 97, 110
        return pos + 3
    if np.signbit(value):
        out[pos] = _MINUS
        pos += 1
        value = -value
    if value == np.inf:
        out[pos], out[pos + 1], out[pos + 2] = 105, 110, 102
        return pos + 3
    if value < 1e6 and value == np.floor(value):
        return _put_integer(out, pos, np.int64(value))
    mantissa, digits, exponent = shortest(value)
    while mantissa % 10 == 0:
        mantissa //= 10
        digits -= 1
        exponent += 1
    return _put_digits(out, pos, mantissa, digits, exponent)


@njit(cache=True, nogil=True)
def _put_pair(out, pos, column, value):
    out[pos] = _BLANK
    pos = _put_integer(out, pos + 1, column + 1)
    out[pos] = _COLON
    return put_value(out, pos + 1, value)


@njit(cache=True, nogil=True)
def _put_text(out, pos, texts, row):
    k = texts.which[row]
    for i in range(texts.start[k], texts.end[k]):
        out[pos] = texts.blob[i]
        pos += 1
    return pos


@njit(cache=True, nogil=True)
def _put_features(out, pos, row, block, force_last):
    last = block.n_features - 1
    if block.dense:
        for j in range(block.n_features):
            value = block.X[row, j]
            absent = value == 0.0 and not np.signbit(value)
            if not absent or block.zeros or (force_last and j == last):
                pos = _put_pair(out, pos, j, value)
        return pos
    column = 0  # the next one to write
    for slot in range(block.pointers[row], block.pointers[row + 1]):
        value = block.values[slot]
        if block.zeros:
            while column < block.columns[slot]:
                pos = _put_pair(out, pos, column, np.float32(0.0))
                column += 1
        if value != 0.0 or np.signbit(value) or block.zeros:
            pos = _put_pair(out, pos, block.columns[slot], value)
            column = block.columns[slot] + 1
    if block.zeros:
        while column <= last:
            pos = _put_pair(out, pos, column, np.float32(0.0))
            column += 1
    elif force_last and column <= last:
        pos = _put_pair(out, pos, last, np.float32(0.0))
    return pos


@njit(cache=True, nogil=True)
def write_part(out, pos, first, stop, block, labels, qids, comments):
    """Write the rows first .. stop-1 at out[pos:]; return the position after them."""
    for row in range(first, stop):
        pos = _put_text(out, pos, labels, row)
        pos = _put_text(out, pos, qids, row)
        pos = _put_features(out, pos, row, block, block.force_last and row == 0)
        pos = _put_text(out, pos, comments, row)
        out[pos] = _NEW_LINE
        pos += 1
    return pos


@njit(cache=True, nogil=True, parallel=True)
def write_parts(out, starts, ends, cuts, block, labels, qids, comments):
    """Write part p, the rows cuts[p] .. cuts[p+1]-1, at out[starts[p]:ends[p]]; ends is filled."""
    for part in prange(starts.size):
        ends[part] = write_part(
            out, starts[part], cuts[part], cuts[part + 1], block, labels, qids, comments
        )
