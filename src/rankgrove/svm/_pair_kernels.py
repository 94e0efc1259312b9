# mypy: ignore-errors
"""The hinge loss of all pairs of unequal labels, without looking at the pairs."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import longest_query, sort_descending
from rankgrove.measures._value_kernels import fenwick_add, fenwick_below


@njit(cache=True, nogil=True)
def violated_pairs(query_ptr, level, scores, first, last, better_than, worse_than):
    """Count for every document of the queries first:last the pairs whose margin is below 1.

    A pair of a better document i and a worse one j counts where s_j > s_i - 1. Both counts take
    the same rounded s_i - 1, so that a pair is in both or in neither.

    level : in, one per row: 1 for the lowest label of its query, 2 for the next, ...
    better_than : out, one per row: counted pairs in which it is the better document, c+
    worse_than : out, one per row: counted pairs in which it is the worse one, c-
    """
    longest, levels = longest_query(query_ptr, first, last), 0
    for row in range(query_ptr[first], query_ptr[last]):
        levels = max(levels, level[row])
    key, row_of = np.empty(longest), np.empty(longest, np.int64)
    other_key, other_row = np.empty(longest), np.empty(longest, np.int64)
    counts = np.empty(levels + 1, np.int64)
    for q in range(first, last):
        start, n = query_ptr[q], query_ptr[q + 1] - query_ptr[q]
        for i in range(n):
            key[i], row_of[i] = scores[start + i], start + i
        sort_descending(key[:n], row_of[:n], other_key, other_row)
        counts[:] = 0
        j = 0
        for i in range(n):  # the highest score first: ever more documents are above s_i - 1
            while j < n and key[j] > key[i] - 1.0:
                fenwick_add(counts, level[row_of[j]] - 1)
                j += 1
            better_than[row_of[i]] = fenwick_below(counts, level[row_of[i]] - 1)
        counts[:] = 0
        i, seen = n - 1, 0
        for j in range(n - 1, -1, -1):  # the lowest first: ever more have s_i - 1 < s_j
            while i >= 0 and key[j] > key[i] - 1.0:
                fenwick_add(counts, level[row_of[i]] - 1)
                i -= 1
                seen += 1
            worse_than[row_of[j]] = seen - fenwick_below(counts, level[row_of[j]])
