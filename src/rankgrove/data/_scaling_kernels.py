# mypy: ignore-errors
"""Scaling of features within queries."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def range_queries(features, query_ptr, first, last, out):
    """Fill out with (value - least) / (largest - least), column by column within a query.

    Least and largest are of finite values; infinite ones become 0 or 1.
    """
    for q in range(first, last):
        for j in range(features.shape[1]):
            low, high = np.inf, -np.inf
            for row in range(query_ptr[q], query_ptr[q + 1]):
                value = np.float64(features[row, j])
                if value < low and value > -np.inf:
                    low = value
                if value > high and value < np.inf:
                    high = value
            for row in range(query_ptr[q], query_ptr[q + 1]):
                value = np.float64(features[row, j])
                if value == np.inf:
                    out[row, j] = 1.0
                elif high > low and value >= low:
                    out[row, j] = (value - low) / (high - low)
                else:
                    out[row, j] = 0.0


@njit(cache=True, nogil=True)
def percentile_queries(features, query_ptr, first, last, out):
    """Fill out with the share of the query's documents whose value is lower."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, query_ptr[q + 1] - query_ptr[q])
    column = np.empty(longest, np.float32)
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        n = end - start
        for j in range(features.shape[1]):
            missing = 0
            for row in range(start, end):
                value = features[row, j]
                if value == value:
                    column[row - start - missing] = value
                else:
                    missing += 1
            known = np.sort(column[: n - missing])
            for row in range(start, end):
                value = features[row, j]
                if value == value:
                    lower = missing + np.searchsorted(known, value)
                    out[row, j] = lower / n
                else:
                    out[row, j] = 0.0


@njit(cache=True, nogil=True)
def mid_rank_queries(features, query_ptr, first, last, out):
    """Fill out with the share of the query's known values that are lower, ties counted half.

    Missing values stay missing.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, query_ptr[q + 1] - query_ptr[q])
    column = np.empty(longest, np.float32)
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        for j in range(features.shape[1]):
            n = 0
            for row in range(start, end):
                value = features[row, j]
                if value == value:
                    column[n] = value
                    n += 1
            known = np.sort(column[:n])
            for row in range(start, end):
                value = features[row, j]
                if value == value:
                    lower = np.searchsorted(known, value)
                    not_higher = np.searchsorted(known, value, side="right")
                    out[row, j] = 0.5 * (lower + not_higher) / n
                else:
                    out[row, j] = np.nan
