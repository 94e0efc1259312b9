# mypy: ignore-errors
"""Training a net on whole lists: the cross entropy of top-one probabilities."""

from __future__ import annotations

import math

from rankgrove.jit import njit
from rankgrove.nets._net_kernels import backward, longest_of, net_room, scores_of, update


@njit(cache=True, nogil=True)
def list_gradient(scores, target, weight, gradient):
    """Fill minus the derivative of the cross entropy: target - softmax(scores), times a weight."""
    highest = scores[0]
    for i in range(1, scores.size):
        highest = max(highest, scores[i])
    total = 0.0
    for i in range(scores.size):
        gradient[i] = math.exp(scores[i] - highest)
        total += gradient[i]
    for i in range(scores.size):
        gradient[i] = weight * (target[i] - gradient[i] / total)


@njit(cache=True, nogil=True)
def train_lists(
    order, inputs, lists, widths, activation, optimiser, rate, l2, state, scores, gradient
):
    """One update per query.

    order : in, the queries in the order of their turns
    lists : in, (borders of queries, the labels' probability of every row, weights of queries)
    scores, gradient : scratch, as long as the longest query
    Returns the first query whose scores are no sane numbers, or -1.
    """
    ptr, target, weight = lists
    parameters, factors, mean, square, powers = state
    rows, deltas, turned, change = net_room(longest_of(order, ptr), widths)
    for k in range(order.size):
        q = order[k]
        if weight[q] == 0.0:
            continue
        n = ptr[q + 1] - ptr[q]
        s, g = scores[:n], gradient[:n]
        if not scores_of(inputs, ptr, q, widths, activation, parameters, rows, s):
            return q
        list_gradient(s, target[ptr[q] : ptr[q + 1]], weight[q], g)
        backward(n, widths, activation, parameters, rows, g, deltas, turned, change)
        update(optimiser, rate, l2, parameters, factors, change, mean, square, powers)
    return -1
