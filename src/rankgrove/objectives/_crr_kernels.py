# mypy: ignore-errors
"""Stochastic gradient steps on single documents and on pairs of a query (Sculley 2010)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.jit import njit

SQUARED = 0
LOGISTIC = 1
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Documents(NamedTuple):
    """The training data.

    matrix : features of all rows, dense or CSR: see :func:`~rankgrove.model.mlp.matrix_parts`
    rows : by document, its row of the matrix
    shift, factor : by feature: a value x becomes (x - shift) * factor
    target : by document; of a pair it is the difference d, for the logistic loss (1 + d) / 2
    """

    matrix: tuple[np.ndarray, ...]
    rows: np.ndarray
    shift: np.ndarray
    factor: np.ndarray
    target: np.ndarray


class Index(NamedTuple):
    """How documents and pairs are found by number.

    documents_before, pairs_before : cumulative weights of queries for documents, and for pairs
    by_label : documents ordered by query and label
    group_ptr : for every place of that order, the first place of the same query and label and the
        one after the last, two columns
    others_before : for every place, the number of ordered pairs before it, over all queries
    """

    query_ptr: np.ndarray
    documents_before: np.ndarray
    pairs_before: np.ndarray
    by_label: np.ndarray
    group_ptr: np.ndarray
    others_before: np.ndarray


class Rules(NamedTuple):
    """The loss and the steps: see :class:`~rankgrove.rankers.linear.crr.CRR`."""

    loss: int
    alpha: float
    l2: float
    rate: float
    per_epoch: float
    seed: np.uint64


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
def drawn_document(index, a, b):
    """Return a document: its query by the weights of queries, then uniformly."""
    query_ptr, documents_before = index.query_ptr, index.documents_before
    n_queries = query_ptr.size - 1
    q = place_in(documents_before, 0, n_queries, a * documents_before[n_queries])
    size = query_ptr[q + 1] - query_ptr[q]
    return query_ptr[q] + min(int(b * size), size - 1)


@njit(cache=True, nogil=True)
def drawn_pair(index, a, b):
    """Return two documents of a query with unequal labels, uniformly among its ordered pairs."""
    query_ptr, pairs_before = index.query_ptr, index.pairs_before
    group_ptr, others_before = index.group_ptr, index.others_before
    n_queries = query_ptr.size - 1
    q = place_in(pairs_before, 0, n_queries, a * pairs_before[n_queries])
    start, end = query_ptr[q], query_ptr[q + 1]
    n_pairs = others_before[end] - others_before[start]
    at = others_before[start] + min(int(b * n_pairs), n_pairs - 1)
    i = place_in(others_before, start, end, at)
    j = start + (at - others_before[i])
    if j >= group_ptr[i, 0]:  # skip the documents of the same label
        j += group_ptr[i, 1] - group_ptr[i, 0]
    return index.by_label[i], index.by_label[j]


@njit(cache=True, nogil=True)
def load_row(documents, i, out):
    """Fill `out` with the scaled features of document `i`."""
    dense, data, indices, indptr = documents.matrix
    row, shift, factor = documents.rows[i], documents.shift, documents.factor
    if dense.shape[0] > 0:
        given = dense[row]
        for f in range(out.size):
            out[f] = (given[f] - shift[f]) * factor[f]
        return
    out[:] = 0.0
    for k in range(indptr[row], indptr[row + 1]):
        out[indices[k]] = data[k] * factor[indices[k]]


@njit(cache=True, nogil=True)
def crr_steps(documents, index, rules, first, last, w, total):
    """Take the steps first:last; return the sum of the losses, each before its step.

    w : inout, the weights and then the intercept; total : inout, the sum of w after every step

    A step is implicit in the curvature of the loss: eta / (1 + eta |x|^2) for squared loss, so that
    no step overshoots its document or pair, and no sequence of steps diverges.
    """
    loss, alpha, l2, rate, per_epoch, seed = rules
    target = documents.target
    n = w.size - 1
    x, other = np.empty(n), np.empty(n)
    cost = 0.0
    for k in range(first, last):
        a, b = uniform(seed, 3 * k + 1), uniform(seed, 3 * k + 2)
        if uniform(seed, 3 * k) < alpha:
            i = drawn_document(index, a, b)
            load_row(documents, i, x)
            wanted, constant = target[i], 1.0
        else:
            i, j = drawn_pair(index, a, b)
            load_row(documents, i, x)
            load_row(documents, j, other)
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
