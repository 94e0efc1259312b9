# mypy: ignore-errors
"""Gradients of losses of whole queries; the gradient points to where the loss falls.

`weight` (one per row) and `query_weight` are empty if all are 1.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.jit import njit

UNIT = 1.0 / (1 << 53)


@njit(cache=True, nogil=True)
def cross_entropy_queries(
    queries, query_ptr, powers, keys, seed, weight, query_weight, scores, gradient, hessian
):
    """Fill the derivatives of -sum phi_i log rho_i, rho the softmax of a query's scores.

    phi_i is proportional to 2^label - gamma_i, with gamma_i uniform in [0, 1).

    powers : in, 2^label of every row
    keys, seed : in, from which gamma is drawn
    """
    weighted = weight.size > 0
    for q in queries:
        start, end = query_ptr[q], query_ptr[q + 1]
        highest = -np.inf
        for i in range(start, end):
            highest = max(highest, scores[i])
        total, target = 0.0, 0.0
        for i in range(start, end):
            # until the sums are known, gradient holds phi and hessian rho, not normalised
            gamma = UNIT * np.float64(mix(keys[i] ^ seed) >> np.uint64(11))
            gradient[i] = powers[i] - gamma
            if weighted:
                gradient[i] *= weight[i]
            hessian[i] = math.exp(scores[i] - highest)
            total += hessian[i]
            target += gradient[i]
        scale = query_weight[q] if query_weight.size > 0 else 1.0
        if end - start == 1 or target <= 0.0:
            scale = 0.0
            target = 1.0
        for i in range(start, end):
            rho = hessian[i] / total
            gradient[i] = scale * (gradient[i] / target - rho)
            hessian[i] = scale * rho * (1.0 - rho)


@njit(cache=True, nogil=True)
def centred_queries(queries, query_ptr, labels, weight, scores, gradient, hessian):
    """Fill the derivatives of the squared error after each query's mean error is taken out."""
    weighted = weight.size > 0
    for q in queries:
        start, end = query_ptr[q], query_ptr[q + 1]
        error, total = 0.0, 0.0
        for i in range(start, end):
            w = weight[i] if weighted else 1.0
            error += w * (labels[i] - scores[i])
            total += w
        mean = error / total if total > 0.0 else 0.0
        for i in range(start, end):
            w = weight[i] if weighted else 1.0
            gradient[i] = w * (labels[i] - scores[i] - mean)
            hessian[i] = w
