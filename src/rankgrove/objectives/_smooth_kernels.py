# mypy: ignore-errors
"""A smoothed measure and its gradient, query by query."""

from __future__ import annotations

import math

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import longest_query


@njit(cache=True, nogil=True)
def smooth_queries(
    query_ptr, is_fixed, gain, weight, order, scores, sigma, first, last, value, gradient
):
    """Fill the smoothed values of queries `first` to before `last`, and their gradients.

    With t the score of the document at a rank, the rank's gain is the mean m of all gains under
    p_i proportional to exp(-(s_i - t)^2 / sigma). Of it
    dm/ds_i = -2 (s_i - t) / sigma p_i (g_i - m), and t moves it by minus the sum of these.

    gain, scores : in, one per row; weight : in, one per rank, laid out as rows are
    order : in, the row at every rank
    value : out, one per query; gradient : out, one per row. Both 0 where a query's value is fixed
    """
    p = np.empty(longest_query(query_ptr, first, last))
    for q in range(first, last):
        start, end = query_ptr[q], query_ptr[q + 1]
        gradient[start:end] = 0.0
        value[q] = 0.0
        if is_fixed[q]:
            continue
        for k in range(start, end):
            if weight[k] == 0.0:
                continue
            t = scores[order[k]]
            total, mean = 0.0, 0.0
            for i in range(start, end):
                away = scores[i] - t
                e = math.exp(-away * away / sigma)
                p[i - start] = e
                total += e
                mean += e * gain[i]
            mean /= total
            value[q] += weight[k] * mean
            factor = -2.0 * weight[k] / (sigma * total)
            moved = 0.0
            for i in range(start, end):
                d = factor * (scores[i] - t) * p[i - start] * (gain[i] - mean)
                gradient[i] += d
                moved += d
            gradient[order[k]] -= moved
