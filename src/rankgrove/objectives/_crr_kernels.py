# mypy: ignore-errors
"""Stochastic gradient steps on single documents and on pairs of a query (Sculley 2010)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from rankgrove._random_kernels import mix

SQUARED = 0
LOGISTIC = 1
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def uniform(seed, counter):
    """Return the number in [0, 1) that belongs to a counter."""
    bits = mix(seed + GOLDEN * (np.uint64(counter) + np.uint64(1)))
    return (bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def place_in(cumulative, first, last, at):
    """Return the place k, first <= k < last, with cumulative[k] <= at < cumulative[k + 1]."""
    low, high = first, last
    while high - low > 1:
        middle = (low + high) // 2
        if cumulative[middle] <= at:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def drawn_document(query_ptr, documents_before, a, b):
    """Return a document: its query by the cumulative weights of queries, then evenly."""
    n_queries = query_ptr.size - 1
    q = place_in(documents_before, 0, n_queries, a * documents_before[n_queries])
    size = query_ptr[q + 1] - query_ptr[q]
    return query_ptr[q] + min(int(b * size), size - 1)


@njit(cache=True, nogil=True)
def drawn_pair(query_ptr, pairs_before, by_label, group_ptr, others_before, a, b):
    """Return two documents of unequal labels of a query, all ordered pairs of it alike.

    pairs_before : in, the cumulative weights of queries for pairs
    by_label : in, rows ordered by query and label; group_ptr : in, at every place of that order
        the first place and the one after the last of the same query and label, two columns
    others_before : in, for every place the number of ordered pairs before it, all queries together
    """
    n_queries = query_ptr.size - 1
    q = place_in(pairs_before, 0, n_queries, a * pairs_before[n_queries])
    start, end = query_ptr[q], query_ptr[q + 1]
    n_pairs = others_before[end] - others_before[start]
    at = others_before[start] + min(int(b * n_pairs), n_pairs - 1)
    i = place_in(others_before, start, end, at)
    j = start + (at - others_before[i])
    if j >= group_ptr[i, 0]:  # jump over the documents of the same label
        j += group_ptr[i, 1] - group_ptr[i, 0]
    return by_label[i], by_label[j]


@njit(cache=True, nogil=True)
def load_row(matrix, row, shift, factor, out):
    """Fill `out` with a scaled row of a dense or CSR matrix."""
    dense, data, indices, indptr = matrix
    if dense.shape[0] > 0:
        given = dense[row]
        for f in range(out.size):
            out[f] = (given[f] - shift[f]) * factor[f]
        return
    out[:] = 0.0
    for k in range(indptr[row], indptr[row + 1]):
        out[indices[k]] = data[k] * factor[indices[k]]


@njit(cache=True, nogil=True)
def crr_steps(
    matrix, rows, shift, factor, target, queries, pairs, loss, alpha, l2, rate, per_epoch, seed,
    first, last, w, total,
):  # fmt: skip
    """Take the steps from `first` to before `last`; return the sum of losses before each of them.

    queries : in, (query_ptr, documents_before); pairs : in, what drawn_pair needs beside query_ptr
    target : in, one a row; of a pair it is the difference, for the logistic loss (1 + it) / 2
    w : inout, the weights and then the intercept; total : inout, the sum of w after every step

    A step is implicit, as far as the loss's curvature goes: eta / (1 + eta |x|^2) for squared
    loss, so that no step goes beyond the document or pair that it is for, and none comes apart.
    """
    query_ptr, documents_before = queries
    n = w.size - 1
    x, other = np.empty(n), np.empty(n)
    cost = 0.0
    for k in range(first, last):
        a, b = uniform(seed, 3 * k + 1), uniform(seed, 3 * k + 2)
        if uniform(seed, 3 * k) < alpha:
            i = drawn_document(query_ptr, documents_before, a, b)
            load_row(matrix, rows[i], shift, factor, x)
            wanted, constant = target[i], 1.0
        else:
            i, j = drawn_pair(query_ptr, *pairs, a, b)
            load_row(matrix, rows[i], shift, factor, x)
            load_row(matrix, rows[j], shift, factor, other)
            for f in range(n):
                x[f] -= other[f]
            wanted, constant = target[i] - target[j], 0.0
            if loss == LOGISTIC:
                wanted = 0.5 * (1.0 + wanted)
        score, size = w[n] * constant, constant
        for f in range(n):
            score += w[f] * x[f]
            size += x[f] * x[f]
        eta = rate / math.sqrt(1.0 + k / per_epoch)
        if loss == SQUARED:
            cost += 0.5 * (wanted - score) ** 2
            step = eta / (1.0 + eta * size) * (wanted - score)
        else:
            # log(1 + exp(-score)) + (1 - wanted) score, without a large exponential
            cost += math.log1p(math.exp(-abs(score))) + max(score, 0.0) - wanted * score
            step = eta / (1.0 + 0.25 * eta * size) * (wanted - 1.0 / (1.0 + math.exp(-score)))
        shrink = 1.0 / (1.0 + eta * l2)
        for f in range(n):
            w[f] = shrink * (w[f] + step * x[f])
            total[f] += w[f]
        w[n] += step * constant
        total[n] += w[n]
    return cost
