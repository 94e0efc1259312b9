# mypy: ignore-errors
"""Lambda gradients of every query, for every rule.

For a pair of documents of unequal gain, of which the better one has the score s_i and the other
s_j, with rho = 1 / (1 + exp(sigma (s_i - s_j))) (overview paper, section 7):

    lambda = sigma |dZ| rho          up for the better one, down for the other
    weight = sigma^2 |dZ| rho (1 - rho)   for both

With E = exp(sigma s) this needs one division and no exponential a pair: rho = E_j / (E_i + E_j),
and rho (1 - rho) = E_i E_j / (E_i + E_j)^2. The loops over a row of pairs are written so that
they become vector code: whole slices from 0 on, few arrays each, sums in a fixed number of lanes,
so that the result is the same on every machine.
"""

from __future__ import annotations

import functools
import math
import types

import numpy as np
from numba import njit

from rankgrove.measures._ranking_kernels import MOST_COUNTED, count_order, sort_descending
from rankgrove.measures._swap_kernels import swap_row, swap_setup

LANES = 8
ONES = -2  # the rule of RankNet: every pair of unequal labels counts 1
# exp(sigma s) of a query whose scores span more than this is not kept as one number.
WIDEST = 600.0


@njit(cache=True, nogil=True)
def lane_sum(x, lane):
    """Return the sum of `x`, in an order that is the same for any vector width."""
    for k in range(LANES):
        lane[k] = 0.0
    blocks = x.size // LANES
    for b in range(blocks):
        block = x[b * LANES : (b + 1) * LANES]
        for k in range(LANES):
            lane[k] += block[k]
    total = 0.0
    for k in range(LANES):
        total += lane[k]
    for j in range(blocks * LANES, x.size):
        total += x[j]
    return total


@njit(cache=True, nogil=True)
def add_to(x, y):
    """x += y."""
    for j in range(x.size):
        x[j] += y[j]


@njit(cache=True, nogil=True)
def subtract_from(x, y):
    """x -= y."""
    for j in range(x.size):
        x[j] -= y[j]


@njit(cache=True, nogil=True, error_model="numpy")
def pair_terms(g_i, e_i, g, e, delta, up, weight):
    """Fill the lambda that lifts document i and the weight of its pairs with documents j.

    g, e, delta : in, gains, exp(sigma s) and swap deltas of the documents j
    up : out, what i gains (and j loses); weight : out, what both get
    """
    for j in range(g.size):
        e_j = e[j]
        inverse = 1.0 / (e_i + e_j)
        d = abs(delta[j]) * inverse
        up[j] = d * e_j if g_i > g[j] else -d * e_i
        weight[j] = d * inverse * e_i * e_j


@njit(cache=True, nogil=True)
def wide_pair_terms(g_i, s_i, g, s, delta, up, weight):
    """Do as pair_terms, from sigma * scores: for queries whose scores lie far apart."""
    for j in range(g.size):
        difference = s_i - s[j] if g_i > g[j] else s[j] - s_i
        x = math.exp(-abs(difference))
        rho = x / (1.0 + x) if difference > 0.0 else 1.0 / (1.0 + x)
        d = abs(delta[j])
        up[j] = d * rho if g_i > g[j] else -d * rho
        weight[j] = d * x / ((1.0 + x) * (1.0 + x))


@njit(cache=True, nogil=True)
def one_deltas(g_i, g, delta):
    """Fill `delta` with 1 where the gains differ."""
    for j in range(g.size):
        delta[j] = 1.0 if g_i != g[j] else 0.0


@njit(cache=True, nogil=True)
def weigh_deltas(v_i, v, delta):
    """Multiply a pair's delta by both documents' weights."""
    for j in range(v.size):
        delta[j] *= v_i * v[j]


@njit(cache=True, nogil=True)
def even_deltas(s_i, s, sigma, delta):
    """Divide a pair's delta by 0.01 + sigma |s_i - s_j|."""
    for j in range(s.size):
        delta[j] /= 0.01 + sigma * abs(s_i - s[j])


@njit(cache=True, nogil=True)
def absolute_sum(x, lane):
    """Return the sum of |x|, in an order that is the same for any vector width."""
    for k in range(LANES):
        lane[k] = 0.0
    blocks = x.size // LANES
    for b in range(blocks):
        block = x[b * LANES : (b + 1) * LANES]
        for k in range(LANES):
            lane[k] += abs(block[k])
    total = 0.0
    for k in range(LANES):
        total += lane[k]
    for j in range(blocks * LANES, x.size):
        total += abs(x[j])
    return total


@njit(cache=True, nogil=True)
def ranked_lambdas(
    rule, g, w, v, weighted, s, sigma, truncation, normalise, state, row, up, weight, e, lane, out
):
    """Fill out[0] (lambdas) and out[1] (weights) of one query in ranked order, less sigma.

    g, w, v, s : in, gains, rank weights, row weights and scores in ranked order
    truncation : in, pairs count whose better-ranked document stands above it
    normalise : in, whether to even out pairs far apart, and queries
    state, row, up, weight, e, lane : scratch
    """
    n = g.size
    lambdas, weights = out[0, :n], out[1, :n]
    lambdas[:] = 0.0
    weights[:] = 0.0
    wide = sigma * (s[0] - s[n - 1]) > WIDEST
    middle = 0.5 * s[0] + 0.5 * s[n - 1]
    for r in range(n):
        e[r] = sigma * s[r] if wide else math.exp(sigma * (s[r] - middle))
    if rule != ONES:
        swap_setup(rule, g, state)
    uneven = normalise and s[0] != s[n - 1]
    total = 0.0
    for i in range(min(truncation, n - 1)):
        below, m = slice(i + 1, n), n - i - 1
        if rule == ONES:
            one_deltas(g[i], g[below], row[below])
        else:
            swap_row(rule, g, w, state, i, row)
        if weighted:
            weigh_deltas(v[i], v[below], row[below])
        if uneven:
            even_deltas(s[i], s[below], sigma, row[below])
        if wide:
            wide_pair_terms(g[i], e[i], g[below], e[below], row[below], up[:m], weight[:m])
        else:
            pair_terms(g[i], e[i], g[below], e[below], row[below], up[:m], weight[:m])
        subtract_from(lambdas[below], up[:m])
        add_to(weights[below], weight[:m])
        lambdas[i] += lane_sum(up[:m], lane)
        weights[i] += lane_sum(weight[:m], lane)
        if normalise:
            total += absolute_sum(up[:m], lane)
    if normalise and total > 0.0:
        # every pair's lambda acts on two documents
        scale = math.log2(1.0 + 2.0 * total) / (2.0 * total)
        for r in range(n):
            lambdas[r] *= scale
            weights[r] *= scale


@njit(cache=True, nogil=True)
def sort_query(key, order, above, taken, other_key, other_order):
    """Fill `order` with the places of the keys in descending order; `key` is scratch after."""
    n = key.size
    if n <= MOST_COUNTED:
        count_order(key, 0, above, taken, order)
    else:
        for i in range(n):
            order[i] = i
        sort_descending(key, order, other_key, other_order)


@njit(cache=True, nogil=True)
def lambda_queries(
    rule,
    sigma,
    truncation,
    normalise,
    queries,
    query_ptr,
    shuffle,
    has_pairs,
    gain,
    rank_weight,
    row_weight,
    query_weight,
    scores,
    gradient,
    hessian,
):
    """Fill gradient and hessian of the rows of `queries`.

    shuffle : in, the rows of every query in a random order that ties keep
    has_pairs : in, whether a query has a pair to order
    row_weight, query_weight : in, or empty where all are 1
    """
    weighted = row_weight.size > 0
    longest = 1
    for k in range(queries.size):
        longest = max(longest, query_ptr[queries[k] + 1] - query_ptr[queries[k]])
    buffer = np.empty((9, longest + 2))
    key, s, g, v = buffer[0], buffer[1], buffer[2], buffer[3]
    e, row, up, weight, other = buffer[4], buffer[5], buffer[6], buffer[7], buffer[8]
    state = np.zeros((3, longest + 2))
    out = np.empty((2, longest))
    lane = np.empty(LANES)
    order = np.empty(longest, np.int64)
    other_order = np.empty(longest, np.int64)
    above = np.empty(MOST_COUNTED, np.int32)
    taken = np.empty(MOST_COUNTED, np.int32)
    for k in range(queries.size):
        q = queries[k]
        start = query_ptr[q]
        n = query_ptr[q + 1] - start
        if not has_pairs[q]:
            for i in range(start, start + n):
                gradient[i] = 0.0
                hessian[i] = 0.0
            continue
        for i in range(n):
            key[i] = scores[shuffle[start + i]]
        sort_query(key[:n], order[:n], above, taken, other, other_order)
        for r in range(n):
            at = shuffle[start + order[r]]
            order[r] = at
            s[r] = scores[at]
            g[r] = gain[at]
            if weighted:
                v[r] = row_weight[at]
        ranked_lambdas(
            rule,
            g[:n],
            rank_weight[start : start + n],
            v[:n],
            weighted,
            s[:n],
            sigma,
            truncation,
            normalise,
            state,
            row[:n],
            up,
            weight,
            e[:n],
            lane,
            out,
        )
        scale = query_weight[q] if query_weight.size > 0 else 1.0
        for r in range(n):
            gradient[order[r]] = sigma * scale * out[0, r]
            hessian[order[r]] = sigma * sigma * scale * out[1, r]


@njit(nogil=True)
def no_setup(rule, g, state):
    """Stand in for swap_setup: a user's own rule keeps no state."""


@functools.cache
def lambda_queries_for(own_swap_row):
    """Return lambda_queries around a user's swap_row; compiled anew in every process."""
    ranked = _rebound(ranked_lambdas, swap_row=own_swap_row, swap_setup=no_setup)
    return _rebound(lambda_queries, ranked_lambdas=ranked)


def _rebound(kernel, **names):
    """Return `kernel` compiled anew with some of its global names bound to other functions."""
    plain = kernel.py_func
    own = types.FunctionType(plain.__code__, plain.__globals__ | names, plain.__name__)
    return njit(nogil=True)(own)
