# mypy: ignore-errors
"""The forward pass of a net over a block of documents.

All numbers of a layer stand in one row per document, its units side by side. Every width (inputs,
units, documents) is filled up to a multiple of LANES with zeros, so that no loop has a remainder::

    parameters   W1 [inputs x units] | b1 [units] | W2 | b2 | ... | w [last units]
    activations  standardised inputs [documents x inputs] | layer 1 [documents x units] | ...

`widths` are the filled-up widths of the inputs and of every hidden layer. The score has no bias:
it would lift all documents alike.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.model._tile_vectors import (
    MOST_VECTORS,
    ROWS,
    bits_of,
    real_of,
    tile_1,
    tile_2,
    tile_3,
)
from rankgrove.model.mlp import ACTIVATIONS, LANES

TANH = ACTIVATIONS.index("tanh")
BLOCK = 64  # documents that go through the net together

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to a whole number, in the low bits
_BIAS = 1023


@njit(cache=True, nogil=True)
def filled_up(n):
    """Return the next multiple of LANES."""
    return (n + LANES - 1) // LANES * LANES


@njit(cache=True, nogil=True)
def raw_rows(matrix, rows, first, n, width, out):
    """Fill `out` [documents x width] with the features of rows[first : first + n].

    matrix : in, (dense, data, indices, indptr): dense has no row where the others are a CSR matrix
    """
    dense, data, indices, indptr = matrix
    n_features = dense.shape[1]
    out[: filled_up(n) * width] = 0.0
    for d in range(n):
        row = rows[first + d]
        own = out[d * width : (d + 1) * width]
        if dense.shape[0] > 0:
            given = dense[row]
            for f in range(n_features):
                own[f] = given[f]
        else:
            for at in range(indptr[row], indptr[row + 1]):
                own[indices[at]] = data[at]


@njit(cache=True, nogil=True)
def standardise(n, width, mean, scale, out):
    """Bring the rows of raw_rows to mean 0 and deviation 1; a missing value is the mean.

    Returns the number of infinite values.
    """
    n_infinite = 0
    for d in range(n):
        own = out[d * width : (d + 1) * width]
        for f in range(mean.size):
            x = own[f]
            n_infinite += abs(x) == np.inf
            own[f] = 0.0 if x != x else (x - mean[f]) * scale[f]
    return n_infinite


@njit(cache=True, nogil=True)
def product(a, a_row, a_inner, b, c, n_rows, n_inner, n_columns):
    """Add to c [rows x columns] the product of a(row, inner) and b [inner x columns]."""
    for i in range(0, n_rows, ROWS):
        j, at = 0, i * n_columns
        while n_columns - j >= MOST_VECTORS * LANES:
            tile_3(a, b, c, n_inner, i * a_row, a_row, a_inner, j, at + j, n_columns)
            j += MOST_VECTORS * LANES
        if n_columns - j >= 2 * LANES:
            tile_2(a, b, c, n_inner, i * a_row, a_row, a_inner, j, at + j, n_columns)
        elif n_columns - j >= LANES:
            tile_1(a, b, c, n_inner, i * a_row, a_row, a_inner, j, at + j, n_columns)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def tanh(x):
    """Return tanh x to the last place but one, by arithmetic that compilers make vectors of.

    With m = exp(-2 |x|) - 1 it is -m / (2 + m); m = 2^k (exp(r) - 1) + (2^k - 1), where r is what
    -2 |x| lacks to k log 2.
    """
    y = -2.0 * abs(x)
    y = -40.0 if y < -40.0 else y
    shifted = y * _LOG2_E + _MAGIC
    k = shifted - _MAGIC
    r = (y - k * _LN2_HIGH) - k * _LN2_LOW
    power = real_of((bits_of(shifted) + _BIAS) << 52)
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    m = power * (p * r * r + r) + (power - 1.0)
    t = m / (2.0 + m)
    return t if x < 0.0 else -t


@njit(cache=True, nogil=True, error_model="numpy")
def activate(activation, z):
    """Put every unit's activation in the place of its input."""
    if activation == TANH:
        for i in range(z.size):
            z[i] = tanh(z[i])
    else:
        for i in range(z.size):
            z[i] = z[i] if z[i] > 0.0 or z[i] != z[i] else 0.0


@njit(cache=True, nogil=True)
def forward(n, widths, activation, parameters, rows, scores):
    """Fill the hidden layers' rows, and the scores of n documents.

    rows : inout, activations of `n` documents filled up: the inputs are there
    """
    n_filled = filled_up(n)
    at = 0
    before = 0
    for layer in range(1, widths.size):
        n_in, n_out = widths[layer - 1], widths[layer]
        w = parameters[at : at + n_in * n_out]
        bias = parameters[at + n_in * n_out : at + n_in * n_out + n_out]
        at += n_in * n_out + n_out
        below = rows[before : before + n_filled * n_in]
        before += n_filled * n_in
        own = rows[before : before + n_filled * n_out]
        for d in range(n_filled):
            for j in range(n_out):
                own[d * n_out + j] = bias[j]
        product(below, n_in, 1, w, own, n_filled, n_in, n_out)
        activate(activation, own)
    last = widths[-1]
    w = parameters[at : at + last]
    for d in range(n):
        a = rows[before + d * last : before + (d + 1) * last]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, last, 4):
            s0 += a[j] * w[j]
            s1 += a[j + 1] * w[j + 1]
            s2 += a[j + 2] * w[j + 2]
            s3 += a[j + 3] * w[j + 3]
        scores[d] = (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True)
def score_rows(matrix, rows, begin, end, mean, scale, widths, activation, parameters, scores):
    """Fill the scores of rows[begin:end]; return the first place with an infinite value, or -1."""
    room = np.empty(BLOCK * widths.sum())
    for first in range(begin, end, BLOCK):
        n = min(BLOCK, end - first)
        raw_rows(matrix, rows, first, n, widths[0], room)
        if standardise(n, widths[0], mean, scale, room) > 0:
            return first
        forward(n, widths, activation, parameters, room, scores[first : first + n])
    return -1


@njit(cache=True, nogil=True)
def first_values(matrix, rows, origin):
    """Fill `origin` with every feature's first value in order of `rows` that is not missing."""
    n_features = matrix[0].shape[1]
    width = filled_up(n_features)
    room = np.empty(LANES * width)
    missing = n_features
    origin[:] = np.nan
    for first in range(rows.size):
        raw_rows(matrix, rows, first, 1, width, room)
        for f in range(n_features):
            if np.isnan(origin[f]) and not np.isnan(room[f]):
                origin[f] = room[f]
                missing -= 1
        if missing == 0:
            break
    for f in range(n_features):
        if np.isnan(origin[f]):
            origin[f] = 0.0


@njit(cache=True, nogil=True)
def add_distances(matrix, rows, origin, squared, count, total):
    """Add up every feature's distances from `origin`, or their squares, in order of `rows`.

    count, total : inout, the number of values, and their sum
    """
    n_features = matrix[0].shape[1]
    width = filled_up(n_features)
    room = np.empty(BLOCK * width)
    for first in range(0, rows.size, BLOCK):
        n = min(BLOCK, rows.size - first)
        raw_rows(matrix, rows, first, n, width, room)
        for d in range(n):
            for f in range(n_features):
                x = room[d * width + f] - origin[f]
                there = x == x
                count[f] += there
                x = x * x if squared else x
                total[f] += x if there else 0.0
