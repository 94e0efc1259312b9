# mypy: ignore-errors
"""What a measure needs of the labels alone: ideals, and the weight of every rank of every query.

All work on the queries from `first` to before `last`.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import sort_descending

GRADES = 16  # a query with more different gains than this is sorted instead


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def next_grade(gain, last):
    """Return the largest gain below `last` and how often it occurs (two passes of vectors)."""
    grade = -np.inf
    for i in range(gain.size):
        grade = max(grade, gain[i] if gain[i] < last else -np.inf)
    count = 0
    for i in range(gain.size):
        count += np.int64(gain[i] == grade)
    return grade, count


@njit(cache=True, nogil=True)
def best_gains(gain, depth, ordered):
    """Fill the first `depth` entries of `ordered` with the largest gains in descending order."""
    r = 0
    grade = np.inf
    for _ in range(GRADES):
        grade, count = next_grade(gain, grade)
        for _ in range(min(count, depth - r)):
            ordered[r] = grade
            r += 1
        if r == depth:
            return
    n = gain.size
    for i in range(n):
        ordered[i] = gain[i]
    unused = np.empty(n, np.int64)  # compiles sooner than np.sort
    sort_descending(ordered[:n], unused, np.empty(n), np.empty(n, np.int64))


@njit(cache=True, nogil=True)
def ideal_sums(gain, table, query_ptr, first, last, ideal):
    """Fill `ideal` with the largest sum of gain times table that an order of a query reaches."""
    ordered = np.empty(0)
    for q in range(first, last):
        n = query_ptr[q + 1] - query_ptr[q]
        if n > ordered.size:
            ordered = np.empty(2 * n)
        depth = min(n, table.size)
        best_gains(gain[query_ptr[q] : query_ptr[q + 1]], depth, ordered)
        total = 0.0
        for r in range(depth):
            total += ordered[r] * table[r]
        ideal[q] = total


@njit(cache=True, nogil=True)
def scaled_weights(table, scale, query_ptr, first, last, weight):
    """Fill weight[r] of every query with table[r] * scale[q]; past the table's end 0."""
    for q in range(first, last):
        start = query_ptr[q]
        for r in range(query_ptr[q + 1] - start):
            weight[start + r] = table[r] * scale[q] if r < table.size else 0.0


@njit(cache=True, nogil=True)
def mean_ndcg_weights(gain, discount, query_ptr, first, last, weight):
    """Fill weight[r] with discount[r] / n * sum over k > r of 1 / (ideal DCG at k).

    The mean of NDCG@1 ... NDCG@n is linear in the gains, so it needs no rule of its own.
    """
    ordered = np.empty(0)
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        n = end - start
        if n > ordered.size:
            ordered = np.empty(2 * n)
        best_gains(gain[start:end], n, ordered)
        ideal = 0.0
        for r in range(n):
            ideal += ordered[r] * discount[r]
            weight[start + r] = 1.0 / ideal if ideal > 0.0 else 0.0
        tail = 0.0
        for r in range(n - 1, -1, -1):
            tail += weight[start + r]
            weight[start + r] = tail * discount[r] / n


@njit(cache=True, nogil=True)
def roc_weights(gain, query_ptr, first, last, weight):
    """Fill weight[r] so that the relevant ranks' weights sum to the ROC area.

    The document at rank r (from 1) has n - r below it; P relevant ones have P(P-1)/2 relevant
    ones below them in all: area = sum over relevant of ((n - r) - (P-1)/2) / (P N).
    """
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        n = end - start
        relevant = 0
        for i in range(start, end):
            if gain[i] > 0.0:
                relevant += 1
        pairs = relevant * (n - relevant)
        for r in range(n):
            if pairs > 0:
                weight[start + r] = (n - 1 - r - 0.5 * (relevant - 1)) / pairs
            else:
                weight[start + r] = 0.0


@njit(cache=True, nogil=True)
def unequal_pairs(gain, query_ptr, first, last, pairs):
    """Fill `pairs` with the number of pairs of unequal gain in every query."""
    for q in range(first, last):
        ordered = gain[query_ptr[q] : query_ptr[q + 1]].copy()
        n = ordered.size
        unused = np.empty(n, np.int64)
        sort_descending(ordered, unused, np.empty(n), np.empty(n, np.int64))
        equal = 0
        run = 0
        for i in range(n):
            run = run + 1 if i > 0 and ordered[i] == ordered[i - 1] else 0
            equal += run
        pairs[q] = n * (n - 1) // 2 - equal
