# mypy: ignore-errors
"""Gradients of losses of single rows; the gradient points to where the loss falls.

All go over the rows of some queries. `weight` is empty where all rows count alike.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def squared_queries(queries, query_ptr, labels, weight, scores, gradient, hessian):
    """Fill the derivatives of (y - F)^2 / 2."""
    weighted = weight.size > 0
    for q in queries:
        for i in range(query_ptr[q], query_ptr[q + 1]):
            w = weight[i] if weighted else 1.0
            gradient[i] = w * (labels[i] - scores[i])
            hessian[i] = w


@njit(cache=True, nogil=True)
def logistic_queries(queries, query_ptr, signs, sigma, weight, scores, gradient, hessian):
    """Fill the derivatives of log(1 + exp(-2 y sigma F)), y = -1 or 1 (overview paper, (14)).

    The gradient is 2 y sigma / (1 + exp(2 y sigma F)); the second derivative |g| (2 sigma - |g|),
    whose factors are 2 sigma times the probabilities of the two classes. Both are made of
    exp(-|2 sigma F|), so that neither loses digits, however sure the model is.
    """
    weighted = weight.size > 0
    slope = 2.0 * sigma
    for q in queries:
        for i in range(query_ptr[q], query_ptr[q + 1]):
            w = weight[i] if weighted else 1.0
            y = np.float64(signs[i])
            v = y * slope * scores[i]
            e = math.exp(-abs(v))
            likely, unlikely = 1.0 / (1.0 + e), e / (1.0 + e)
            gradient[i] = w * y * slope * (unlikely if v >= 0.0 else likely)
            hessian[i] = w * slope * slope * (likely * unlikely)


@njit(cache=True, nogil=True)
def softmax_queries(queries, query_ptr, codes, weight, scores, gradient, hessian):
    """Fill the derivatives of -log p_y, p the softmax of a row's scores, one per class.

    Arrays are of shape (classes, rows). The gradient of class k is 1[y = k] - p_k; the second
    derivative p_k (1 - p_k) is multiplied by K / (K - 1), so that a leaf's Newton step is that of
    Friedman, (K - 1) / K sum r / sum |r| (1 - |r|).
    """
    weighted = weight.size > 0
    n_classes = scores.shape[0]
    factor = n_classes / (n_classes - 1.0)
    e = np.empty(n_classes)
    for q in queries:
        for i in range(query_ptr[q], query_ptr[q + 1]):
            w = weight[i] if weighted else 1.0
            top = 0
            for k in range(1, n_classes):
                if scores[k, i] > scores[top, i]:
                    top = k
            rest = 0.0  # of all but the likeliest, whose e is 1
            for k in range(n_classes):
                e[k] = math.exp(scores[k, i] - scores[top, i])
                if k != top:
                    rest += e[k]
            total = 1.0 + rest
            for k in range(n_classes):
                p = e[k] / total
                others = (rest if k == top else total - e[k]) / total  # 1 - p, all digits kept
                gradient[k, i] = w * (others if codes[i] == k else -p)
                hessian[k, i] = w * factor * (p * others)


@njit(cache=True, nogil=True)
def expected_by_softmax(values, scores, begin, end, out):
    """Set out[i] to the sum over k of p_k values[k], p the softmax of ``scores[:, i]``."""
    n_classes = scores.shape[0]
    for i in range(begin, end):
        most = scores[0, i]
        for k in range(1, n_classes):
            most = max(most, scores[k, i])
        total = 0.0
        expected = 0.0
        for k in range(n_classes):
            e = math.exp(scores[k, i] - most)
            total += e
            expected += e * values[k]
        out[i] = expected / total


@njit(cache=True, nogil=True)
def expected_by_thresholds(values, scores, begin, end, out):
    """Set out[i] to values[0] + sum of (values[k+1] - values[k]) P(y > values[k]).

    P(y > values[k]) is 1 / (1 + exp(-scores[k, i])).
    """
    for i in range(begin, end):
        expected = values[0]
        for k in range(scores.shape[0]):
            e = math.exp(-abs(scores[k, i]))
            above = (1.0 if scores[k, i] >= 0.0 else e) / (1.0 + e)
            expected += (values[k + 1] - values[k]) * above
        out[i] = expected
