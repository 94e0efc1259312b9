# mypy: ignore-errors
"""Sorting the documents of every query by score: the step all measures share."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit

RUN = 12  # runs of this length are sorted by insertion, then merged
# Up to this many documents counting who stands above whom, in vectors of comparisons, is faster
# than sorting.
MOST_COUNTED = 256


@njit(cache=True, nogil=True)
def longest_query(query_ptr, first, last):
    """Return the number of documents of the longest of the queries first:last."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, query_ptr[q + 1] - query_ptr[q])
    return longest


@njit(cache=True, nogil=True)
def count_order(key, offset, above, taken, order):
    """Fill order[r] with offset + the place of the r-th largest key, equal keys as they stand.

    above, taken : scratch of n entries
    """
    n = key.size
    for i in range(n):
        above[i] = 0
        taken[i] = 0
    for i in range(n):
        k = key[i]
        for j in range(n):
            above[j] += np.int32(k > key[j])
    for i in range(n):
        a = above[i]
        order[a + taken[a]] = offset + i
        taken[a] += 1


@njit(cache=True, nogil=True)
def sort_descending(key, index, other_key, other_index):
    """Sort `key` descending, carrying `index`, equal keys in their given order.

    key, index : inout, n keys without NaN and what goes with them
    other_key, other_index : scratch of the same length
    """
    n = key.size
    for start in range(0, n, RUN):
        for i in range(start + 1, min(start + RUN, n)):
            k, x = key[i], index[i]
            j = i - 1
            while j >= start and key[j] < k:
                key[j + 1] = key[j]
                index[j + 1] = index[j]
                j -= 1
            key[j + 1] = k
            index[j + 1] = x
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            if middle >= end or key[middle - 1] >= key[middle]:
                continue  # one run only, or two that already follow each other
            # The left run moves aside; merging back never overtakes the right run.
            length = middle - start
            for i in range(length):
                other_key[i] = key[start + i]
                other_index[i] = index[start + i]
            a = 0
            b = middle
            to = start
            while a < length and b < end:
                if other_key[a] >= key[b]:
                    key[to] = other_key[a]
                    index[to] = other_index[a]
                    a += 1
                else:
                    key[to] = key[b]
                    index[to] = index[b]
                    b += 1
                to += 1
            while a < length:
                key[to] = other_key[a]
                index[to] = other_index[a]
                a += 1
                to += 1
        width *= 2


@njit(cache=True, nogil=True)
def rank_queries(scores, query_ptr, first, last, order, tied, retrieved):
    """Rank the documents of the queries from `first` to before `last` by descending score.

    scores : in, one per row in query order, no NaN
    order : out, the row that stands at each position
    tied : out, whether a position has the same score as the one before it in its query
    retrieved : out, the number of documents of a query with a score above minus infinity
    """
    longest = longest_query(query_ptr, first, last)
    key = np.empty(longest, np.float64)
    other_key = np.empty(longest, np.float64)
    other_index = np.empty(longest, np.int64)
    above = np.empty(MOST_COUNTED, np.int32)
    taken = np.empty(MOST_COUNTED, np.int32)
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        n = end - start
        if n <= MOST_COUNTED:
            count_order(scores[start:end], start, above, taken, order[start:end])
        else:
            for i in range(n):
                key[i] = scores[start + i]
                order[start + i] = start + i
            sort_descending(key[:n], order[start:end], other_key, other_index)
        before = np.nan
        found = 0
        for i in range(start, end):
            score = scores[order[i]]
            tied[i] = score == before
            found += score > -np.inf
            before = score
        retrieved[q] = found
