"""Decimal numbers from bytes, to the last bit what Python's ``float`` gives.

A number is read as ``mantissa * 10**exponent``. Where both are small enough one multiplication or
division of exact doubles rounds once, as ``float`` does. Otherwise the double is known to a few
units in its last place, which settles its float32 unless a rounding border lies in between; what
is left is handed back as DOUBTFUL, for Python to decide.

Text handed to these kernels ends in a line feed, which no number contains: no bounds are checked.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np

from rankgrove.jit import njit

# What read_number found.
NOT_A_NUMBER, DECIMAL, NAN, INFINITE = 0, 1, 2, 3
# How sure to_float32 and to_float64 are.
CERTAIN, DOUBTFUL, TOO_LARGE = 0, 1, 2

MOST_DIGITS = 18  # as many as an int64 always holds
_LOWEST, _HIGHEST = -99, 60  # powers of ten between which an 18-digit mantissa can matter
_POWERS = np.array([float(f"1e{k}") for k in range(_LOWEST, _HIGHEST + 1)])
_EXACT_POWER = 22  # 10**22 is the last power of ten that a double holds exactly
_EXACT_MANTISSA = 2**53
_LEAST_FULL_MANTISSA = 10 ** (MOST_DIGITS - 1)
_LARGEST_DIGITS = 179769  # the first six of the largest double ...
_LARGEST_EXPONENT = 308 - (MOST_DIGITS - 1)  # ... and its power of ten after MOST_DIGITS of them
_SLACK = 2.0**-49  # covers the four roundings (of 2**-53 each) of the estimate, with room

_HASH, _PLUS, _MINUS, _POINT, _LOWER_E = 35, 43, 45, 46, 101
_WORD_NAN = int.from_bytes(b"nan", "big")
_WORD_NULL = int.from_bytes(b"null", "big")
_WORD_INF = int.from_bytes(b"inf", "big")
_WORD_INFINITY = int.from_bytes(b"infinity", "big")


@njit(cache=True, nogil=True, forceinline=True)
def is_space(byte):
    """Whether a byte separates tokens: ASCII white space but the line feed."""
    return byte == 32 or (9 <= byte <= 13 and byte != 10)


@njit(cache=True, nogil=True, forceinline=True)
def ends_token(byte):
    """Whether a token ends before this byte."""
    return byte == 32 or (9 <= byte <= 13) or byte == _HASH


@njit(cache=True, nogil=True, forceinline=True)
def skip_spaces(data, pos):
    """Return the first position from `pos` on that is not white space."""
    while is_space(data[pos]):
        pos += 1
    return pos


@njit(cache=True, nogil=True)
def _long_mantissa(data, pos, end):
    """Return the leading significant digits of data[pos:end], and how many more there are."""
    mantissa = np.int64(0)
    kept = 0
    dropped = 0
    for i in range(pos, end):
        digit = data[i] ^ 48
        if digit > 9:  # the point
            continue
        if kept == MOST_DIGITS:
            dropped += 1
        elif kept > 0 or digit > 0:
            mantissa = mantissa * 10 + digit
            kept += 1
    return mantissa, dropped


@njit(cache=True, nogil=True)
def _exponent(data, pos):
    """Return the exponent written at `pos`, after the e, and its end; no digits: `pos` itself."""
    start = pos
    negative = data[pos] == _MINUS
    if negative or data[pos] == _PLUS:
        pos += 1
    first = pos
    value = 0
    while data[pos] ^ 48 <= 9:
        if value < 1_000_000_000:  # beyond every double, and no overflow
            value = value * 10 + (data[pos] ^ 48)
        pos += 1
    if pos == first:
        return 0, start
    return (-value if negative else value), pos


@njit(cache=True, nogil=True)
def _word(data, pos, signed):
    """Return the kind of the word at `pos` (nan, null, inf, infinity in any case), and its end."""
    key = np.int64(0)
    first = pos
    while not ends_token(data[pos]) and pos - first < 9:
        if pos - first < 8:
            key = (key << 8) | (data[pos] | 32)
        pos += 1
    length = pos - first
    if (length == 3 and key == _WORD_NAN) or (length == 4 and key == _WORD_NULL and not signed):
        return NAN, pos
    if (length == 3 and key == _WORD_INF) or (length == 8 and key == _WORD_INFINITY):
        return INFINITE, pos
    return NOT_A_NUMBER, pos


@njit(cache=True, nogil=True, forceinline=True)
def read_number(data, pos):
    """Return (kind, negative, mantissa, exponent, end) of the number that starts at `pos`.

    A number must fill its token. Digits beyond MOST_DIGITS are dropped, which leaves a mantissa
    larger than any that counts as exact.
    """
    negative = data[pos] == _MINUS
    signed = negative or data[pos] == _PLUS
    if signed:
        pos += 1
    first = pos
    mantissa = np.int64(0)
    exponent = 0
    digit = data[pos] ^ 48
    while digit <= 9:
        mantissa = mantissa * 10 + digit
        pos += 1
        digit = data[pos] ^ 48
    digits = pos - first
    if data[pos] == _POINT:
        pos += 1
        point = pos
        digit = data[pos] ^ 48
        while digit <= 9:
            mantissa = mantissa * 10 + digit
            pos += 1
            digit = data[pos] ^ 48
        exponent = point - pos
        digits -= exponent
    if digits > MOST_DIGITS:  # the sum above may have overflown
        mantissa, dropped = _long_mantissa(data, first, pos)
        exponent += dropped
    if digits == 0:
        kind, end = NOT_A_NUMBER, pos
        if pos == first:
            kind, end = _word(data, pos, signed)
        return kind, negative, mantissa, exponent, end
    if data[pos] | 32 == _LOWER_E:
        written, end = _exponent(data, pos + 1)
        if end == pos + 1:
            return NOT_A_NUMBER, negative, mantissa, exponent, pos
        exponent += written
        pos = end
    kind = DECIMAL if ends_token(data[pos]) else NOT_A_NUMBER
    return kind, negative, mantissa, exponent, pos


@njit(cache=True, nogil=True)
def estimate_float32(mantissa, exponent):
    """Return (how sure, float32) of a mantissa and exponent that no double holds exactly."""
    if mantissa == 0 or exponent < _LOWEST:
        return CERTAIN, np.float32(0.0)
    if exponent > _HIGHEST:
        return TOO_LARGE, np.float32(0.0)
    value = mantissa * _POWERS[exponent - _LOWEST]
    if value > 3.5e38:
        return TOO_LARGE, np.float32(0.0)
    low = np.float32(value * (1.0 - _SLACK))
    high = np.float32(value * (1.0 + _SLACK))
    if low == high and high < np.inf:
        return CERTAIN, low
    return DOUBTFUL, np.float32(np.nan)


@njit(cache=True, nogil=True)
def is_largest_double(mantissa, exponent):
    """Whether a number is the largest double, 1.7976931348623157e308, to six digits.

    Istella's data sets write it where a value is missing, with 12 to 15 digits.
    """
    if mantissa <= 0:
        return False
    while mantissa < _LEAST_FULL_MANTISSA:
        mantissa *= 10
        exponent -= 1
    return exponent == _LARGEST_EXPONENT and mantissa // 10**12 == _LARGEST_DIGITS


@njit(cache=True, nogil=True, forceinline=True)
def to_float64(mantissa, exponent):
    """Return (how sure, double) of a mantissa and exponent."""
    if mantissa <= _EXACT_MANTISSA and -_EXACT_POWER <= exponent <= _EXACT_POWER:
        if exponent < 0:
            return CERTAIN, mantissa / _POWERS[-exponent - _LOWEST]
        return CERTAIN, mantissa * _POWERS[exponent - _LOWEST]
    return DOUBTFUL, np.nan


@njit(cache=True, nogil=True, forceinline=True)
def to_float32(mantissa, exponent):
    """Return (how sure, float32) of a mantissa and exponent."""
    if exponent == 0 and mantissa <= _EXACT_MANTISSA:  # a count
        return CERTAIN, np.float32(mantissa)
    sure, value = to_float64(mantissa, exponent)
    if sure == CERTAIN:  # at most 2**53 * 10**22, well inside float32
        return CERTAIN, np.float32(value)
    return estimate_float32(mantissa, exponent)
