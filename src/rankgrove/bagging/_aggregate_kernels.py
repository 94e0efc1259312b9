# mypy: ignore-errors
"""Scores of one model brought to a scale that all models share, query by query."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import longest_query, sort_descending


@njit(cache=True, nogil=True)
def add_scaled(scores, query_ptr, first, last, weight, total):
    """Add scores scaled linearly to 0 ... 1 within every query; all equal, they add nothing."""
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        low, high = np.inf, -np.inf
        for i in range(start, end):
            low, high = min(low, scores[i]), max(high, scores[i])
        if high > low:
            for i in range(start, end):
                total[i] += weight * ((scores[i] - low) / (high - low))


@njit(cache=True, nogil=True)
def add_borda(scores, query_ptr, first, last, weight, total):
    """Add the number of a query's documents that are ranked lower; a tie counts half."""
    longest = longest_query(query_ptr, first, last)
    key, other_key = np.empty(longest), np.empty(longest)
    index, other_index = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        n = end - start
        for i in range(n):
            key[i], index[i] = scores[start + i], start + i
        sort_descending(key[:n], index[:n], other_key, other_index)
        i = 0
        while i < n:
            j = i + 1
            while j < n and key[j] == key[i]:
                j += 1
            lower = (n - j) + 0.5 * (j - i - 1)
            for k in range(i, j):
                total[index[k]] += weight * lower
            i = j
