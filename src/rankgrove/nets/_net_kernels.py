# mypy: ignore-errors
"""Training a net: the backward pass, the updates, and an epoch query by query or pair by pair.

A query is one forward pass, its documents' lambdas, and one backward pass (overview paper, section
2.1): dC/dw = sum over documents of lambda_i ds_i/dw. One model is one chain of updates, each of
which needs the one before it: a kernel runs on one thread. Layouts are those of _mlp_kernels;
gradients point up, in the direction in which the measure grows.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from rankgrove.jit import njit
from rankgrove.model._mlp_kernels import TANH, filled_up, forward, product, raw_rows, standardise
from rankgrove.objectives._lambda_kernels import lambda_room, lambdas_in, lambdas_in_for, rebound
from rankgrove.objectives._preference_kernels import preference

SGD = 0
MEAN_DECAY = 0.9  # Adam's usual constants
SQUARE_DECAY = 0.999
ADAM_EPSILON = 1e-8
HIGHEST_SCORE = 1e150  # beyond this training has come apart


@njit(cache=True, nogil=True)
def times_slope(activation, own, delta):
    """Multiply by the derivatives of the activations that `own` holds."""
    if activation == TANH:
        for i in range(own.size):
            delta[i] *= 1.0 - own[i] * own[i]
    else:
        for i in range(own.size):
            delta[i] = delta[i] if own[i] > 0.0 else 0.0


@njit(cache=True, nogil=True)
def transpose(n_in, n_out, w, turned):
    """Fill turned [out x in] with w [in x out]."""
    for i in range(n_in):
        for j in range(n_out):
            turned[j * n_in + i] = w[i * n_out + j]


@njit(cache=True, nogil=True)
def backward(n, widths, activation, parameters, rows, lambdas, deltas, turned, gradient):
    """Fill `gradient` with the sum over n documents of lambda_i times the score's derivatives.

    rows : in, the activations that `forward` left
    lambdas : in, one per document
    deltas : scratch, twice as many rows of the widest hidden layer as documents, filled up
    turned : scratch, for the largest matrix between hidden layers
    """
    n_filled = filled_up(n)
    gradient[:] = 0.0
    last = widths[-1]
    at = parameters.size - last
    before = n_filled * (widths.sum() - last)
    own = rows[before : before + n * last]
    for d in range(n):
        for j in range(last):
            gradient[at + j] += lambdas[d] * own[d * last + j]
    if widths.size == 1:
        return
    half = deltas.size // 2
    delta, other = deltas[:half], deltas[half:]
    for d in range(n):
        for j in range(last):
            delta[d * last + j] = lambdas[d] * parameters[at + j]
    delta[n * last : n_filled * last] = 0.0
    times_slope(activation, own, delta)
    for layer in range(widths.size - 1, 0, -1):
        n_in, n_out = widths[layer - 1], widths[layer]
        at -= n_in * n_out + n_out
        before -= n_filled * n_in
        below = rows[before : before + n_filled * n_in]
        product(below, 1, n_in, delta, gradient[at : at + n_in * n_out], n_in, n, n_out)
        bias = gradient[at + n_in * n_out : at + n_in * n_out + n_out]
        for d in range(n):
            for j in range(n_out):
                bias[j] += delta[d * n_out + j]
        if layer > 1:
            transpose(n_in, n_out, parameters[at : at + n_in * n_out], turned)
            other[: n_filled * n_in] = 0.0
            product(delta, n_out, 1, turned, other, n_filled, n_out, n_in)
            times_slope(activation, below, other)
            delta, other = other, delta


@njit(cache=True, nogil=True, error_model="numpy")
def update(optimiser, rate, l2, parameters, factors, gradient, mean, square, powers):
    """Take one step up the gradient; every weight that is no bias shrinks by rate * l2 first.

    mean, square : inout, Adam's running means of the gradient and of its square
    powers : inout, MEAN_DECAY and SQUARE_DECAY to the power of the number of steps
    """
    if l2 > 0.0:
        for i in range(parameters.size):
            parameters[i] -= rate * l2 * factors[i] * parameters[i]
    if optimiser == SGD:
        for i in range(parameters.size):
            parameters[i] += rate * gradient[i]
        return
    powers[0] *= MEAN_DECAY
    powers[1] *= SQUARE_DECAY
    mean_scale, square_scale = 1.0 / (1.0 - powers[0]), 1.0 / (1.0 - powers[1])
    for i in range(parameters.size):
        g = gradient[i]
        mean[i] = MEAN_DECAY * mean[i] + (1.0 - MEAN_DECAY) * g
        square[i] = SQUARE_DECAY * square[i] + (1.0 - SQUARE_DECAY) * (g * g)
        root = math.sqrt(square[i] * square_scale) + ADAM_EPSILON
        parameters[i] += rate * (mean[i] * mean_scale) / root


@njit(cache=True, nogil=True)
def net_room(longest, widths):
    """Return scratch arrays: activations, deltas, a turned matrix, and a gradient."""
    n_filled = filled_up(longest)
    widest = 0
    largest = 0
    n_parameters = widths[-1]
    for layer in range(1, widths.size):
        widest = max(widest, widths[layer])
        n_parameters += (widths[layer - 1] + 1) * widths[layer]
        if layer > 1:
            largest = max(largest, widths[layer - 1] * widths[layer])
    rows = np.empty(n_filled * widths.sum())
    deltas = np.empty(2 * n_filled * widest)
    return rows, deltas, np.empty(largest), np.empty(n_parameters)


@njit(cache=True, nogil=True)
def longest_of(order, ptr):
    """Return the number of documents of the longest of some queries."""
    longest = 1
    for k in range(order.size):
        longest = max(longest, ptr[order[k] + 1] - ptr[order[k]])
    return longest


@njit(cache=True, nogil=True)
def load_query(inputs, ptr, q, width, block):
    """Fill `block` with the standardised inputs of the documents of query q."""
    matrix, row_of, mean, scale = inputs
    n = ptr[q + 1] - ptr[q]
    raw_rows(matrix, row_of, ptr[q], n, width, block)
    standardise(n, width, mean, scale, block)


@njit(cache=True, nogil=True)
def scores_of(inputs, ptr, q, widths, activation, parameters, rows, scores):
    """Fill the activations and scores of the documents of query q; return whether all is well."""
    n = ptr[q + 1] - ptr[q]
    load_query(inputs, ptr, q, widths[0], rows)
    forward(n, widths, activation, parameters, rows, scores)
    return all_well(scores[:n])


@njit(cache=True, nogil=True)
def all_well(scores):
    """Whether scores are numbers of a sane size."""
    well = True
    for i in range(scores.size):
        well &= abs(scores[i]) < HIGHEST_SCORE
    return well


@njit(cache=True, nogil=True)
def train_queries(
    order, inputs, objective, seed, widths, activation, optimiser, rate, l2, state,
    scores, gradient, hessian,
):  # fmt: skip
    """One update per query, with the accumulated lambdas of its documents.

    order : in, the queries in the order of their turns
    inputs : in, (matrix, its rows in query order, mean, scale)
    objective, seed : in, Lambdas, and the seed of their noise
    state : inout, (parameters, which are no biases, mean, square, powers)
    scores, gradient, hessian : scratch, one per row
    Returns the first query whose scores are no sane numbers, or -1.
    """
    ptr = objective.query_ptr
    parameters, factors, mean, square, powers = state
    longest = longest_of(order, ptr)
    room = lambda_room(longest)
    rows, deltas, turned, change = net_room(longest, widths)
    for k in range(order.size):
        q = order[k]
        if not objective.has_pairs[q]:
            continue
        own = slice(ptr[q], ptr[q + 1])
        if not scores_of(inputs, ptr, q, widths, activation, parameters, rows, scores[own]):
            return q
        lambdas_in(room, objective, seed, order[k : k + 1], scores, gradient, hessian)
        n = ptr[q + 1] - ptr[q]
        backward(
            n, widths, activation, parameters, rows, gradient[own], deltas, turned, change
        )  # fmt: skip
        update(optimiser, rate, l2, parameters, factors, change, mean, square, powers)
    return -1


@functools.cache
def train_queries_for(own_swap_row):
    """Return train_queries around a user's swap_row; compiled in every process."""
    return rebound(train_queries, lambdas_in=lambdas_in_for(own_swap_row))


@njit(cache=True, nogil=True)
def train_groups(
    order, inputs, preferences, widths, activation, optimiser, rate, l2, state, scores, gradient
):  # fmt: skip
    """One update a group of documents, with the accumulated lambdas of its preferences.

    preferences : in, (sigma, borders of groups' documents, borders of their pairs, first, second,
        probability, weight); first and second are places within the group
    scores, gradient : scratch, one per document
    """
    sigma, ptr, pair_ptr, first, second, probability, weight = preferences
    parameters, factors, mean, square, powers = state
    rows, deltas, turned, change = net_room(longest_of(order, ptr), widths)
    for k in range(order.size):
        q = order[k]
        n = ptr[q + 1] - ptr[q]
        s, g = scores[:n], gradient[:n]
        if not scores_of(inputs, ptr, q, widths, activation, parameters, rows, s):
            return q
        g[:] = 0.0
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            i, j = first[p], second[p]
            up, _ = preference(sigma, s[i] - s[j], probability[p], weight[p])
            g[i] += up
            g[j] -= up
        backward(n, widths, activation, parameters, rows, g, deltas, turned, change)
        update(optimiser, rate, l2, parameters, factors, change, mean, square, powers)
    return -1


@njit(cache=True, nogil=True)
def pair_room(widths):
    """Return the scratch arrays of :func:`pair_update`."""
    return net_room(2, widths), np.empty(2), np.empty(2)


@njit(cache=True, nogil=True)
def pair_update(
    i, j, probability, weight, sigma, inputs, widths, activation, optimiser, rate, l2, state, room
):  # fmt: skip
    """Present one pair to the net: two scores, two derivatives, one update (section 2, equation 2).

    inputs : in, the standardised inputs of the query's documents
    Returns whether the scores are sane numbers.
    """
    (rows, deltas, turned, change), s, up = room
    parameters, factors, mean, square, powers = state
    width = widths[0]
    rows[: filled_up(2) * width] = 0.0
    rows[:width] = inputs[i * width : (i + 1) * width]
    rows[width : 2 * width] = inputs[j * width : (j + 1) * width]
    forward(2, widths, activation, parameters, rows, s)
    if not all_well(s):
        return False
    up[0], _ = preference(sigma, s[0] - s[1], probability, weight)
    up[1] = -up[0]
    backward(2, widths, activation, parameters, rows, up, deltas, turned, change)
    update(optimiser, rate, l2, parameters, factors, change, mean, square, powers)
    return True


@njit(cache=True, nogil=True)
def train_query_pairs(
    order, inputs, objective, widths, activation, optimiser, rate, l2, state
):  # fmt: skip
    """One update a pair of documents of unequal label: RankNet as it was first.

    Within a query the pairs come in the order of `shuffle`: every document with all worse ones.
    """
    ptr, shuffle, gain = objective.query_ptr, objective.shuffle, objective.gain
    row_weight, query_weight = objective.row_weight, objective.query_weight
    width = widths[0]
    block = np.empty(filled_up(longest_of(order, ptr)) * width)
    room = pair_room(widths)
    for k in range(order.size):
        q = order[k]
        if not objective.has_pairs[q]:
            continue
        load_query(inputs, ptr, q, width, block)
        of_query = query_weight[q] if query_weight.size > 0 else 1.0
        for a in range(ptr[q], ptr[q + 1]):
            for b in range(ptr[q], ptr[q + 1]):
                i, j = shuffle[a], shuffle[b]
                if gain[i] <= gain[j]:
                    continue
                weight = of_query
                if row_weight.size > 0:
                    weight *= row_weight[i] * row_weight[j]
                if not pair_update(
                    i - ptr[q], j - ptr[q], 1.0, weight, objective.sigma, block,
                    widths, activation, optimiser, rate, l2, state, room,
                ):  # fmt: skip
                    return q
    return -1


@njit(cache=True, nogil=True)
def train_group_pairs(
    order, inputs, preferences, widths, activation, optimiser, rate, l2, state
):  # fmt: skip
    """One update a preference."""
    sigma, ptr, pair_ptr, first, second, probability, weight = preferences
    width = widths[0]
    block = np.empty(filled_up(longest_of(order, ptr)) * width)
    room = pair_room(widths)
    for k in range(order.size):
        q = order[k]
        load_query(inputs, ptr, q, width, block)
        for p in range(pair_ptr[q], pair_ptr[q + 1]):
            if not pair_update(
                first[p], second[p], probability[p], weight[p], sigma, block,
                widths, activation, optimiser, rate, l2, state, room,
            ):  # fmt: skip
                return q
    return -1
