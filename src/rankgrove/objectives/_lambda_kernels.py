# mypy: ignore-errors
"""Lambda gradients of every query, for every rule.

For a pair of documents of unequal gain, of which the better one has the score s_i and the other
s_j, with rho = 1 / (1 + exp(sigma (s_i - s_j))) (overview paper, section 7):

    lambda = sigma |dZ| rho          up for the better one, down for the other
    weight = sigma^2 |dZ| rho (1 - rho)   for both

With E = exp(sigma s) this needs one division and no exponential a pair: rho = E_j / (E_i + E_j),
and rho (1 - rho) = E_i E_j / (E_i + E_j)^2. The loops over a row of pairs are written so that
they become vector code: whole slices from 0 on, few arrays each, sums in a fixed number of lanes,
so that the result is the same on every machine. A pair's |dZ| carries the sign of who is better.
"""

from __future__ import annotations

import functools
import math
import types

import numpy as np
from numba import njit

from rankgrove.measures._ranking_kernels import MOST_COUNTED, count_order, sort_descending
from rankgrove.measures._swap_kernels import swap_row, swap_setup
from rankgrove.measures._value_kernels import SUM

ONES = -2  # the rule of RankNet: every pair of unequal labels counts 1
# exp(sigma s) of a query whose scores span more than this is not kept as one number.
WIDEST = 600.0


@njit(cache=True, nogil=True)
def three_sums(up, weight):
    """Return the sums of `up`, `weight` and |up|, in eight lanes: vector code of a fixed order."""
    u0 = u1 = u2 = u3 = u4 = u5 = u6 = u7 = 0.0
    w0 = w1 = w2 = w3 = w4 = w5 = w6 = w7 = 0.0
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    blocks = up.size // 8
    for b in range(blocks):
        k = 8 * b
        u0 += up[k]
        u1 += up[k + 1]
        u2 += up[k + 2]
        u3 += up[k + 3]
        u4 += up[k + 4]
        u5 += up[k + 5]
        u6 += up[k + 6]
        u7 += up[k + 7]
        w0 += weight[k]
        w1 += weight[k + 1]
        w2 += weight[k + 2]
        w3 += weight[k + 3]
        w4 += weight[k + 4]
        w5 += weight[k + 5]
        w6 += weight[k + 6]
        w7 += weight[k + 7]
        a0 += abs(up[k])
        a1 += abs(up[k + 1])
        a2 += abs(up[k + 2])
        a3 += abs(up[k + 3])
        a4 += abs(up[k + 4])
        a5 += abs(up[k + 5])
        a6 += abs(up[k + 6])
        a7 += abs(up[k + 7])
    u = ((u0 + u1) + (u2 + u3)) + ((u4 + u5) + (u6 + u7))
    w = ((w0 + w1) + (w2 + w3)) + ((w4 + w5) + (w6 + w7))
    a = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    for j in range(8 * blocks, up.size):
        u += up[j]
        w += weight[j]
        a += abs(up[j])
    return u, w, a


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


@njit(cache=True, nogil=True)
def sum_pairs(g_i, w_i, g, w, pair):
    """Fill `pair` with |dZ|, signed: positive where document i is the better one. For SUM."""
    for j in range(g.size):
        pair[j] = (g_i - g[j]) * abs(w_i - w[j])


@njit(cache=True, nogil=True)
def one_pairs(g_i, g, pair):
    """Do as sum_pairs for ONES."""
    for j in range(g.size):
        pair[j] = np.float64(g_i > g[j]) - np.float64(g_i < g[j])


@njit(cache=True, nogil=True)
def sign_pairs(g_i, g, pair):
    """Give swap deltas the sign of sum_pairs."""
    for j in range(g.size):
        pair[j] = abs(pair[j]) if g_i > g[j] else -abs(pair[j])


@njit(cache=True, nogil=True)
def weigh_pairs(v_i, v, pair):
    """Multiply pairs by both documents' weights."""
    for j in range(v.size):
        pair[j] *= v_i * v[j]


@njit(cache=True, nogil=True)
def even_pairs(s_i, s, sigma, pair):
    """Divide pairs by 0.01 + sigma |s_i - s_j|."""
    for j in range(s.size):
        pair[j] /= 0.01 + sigma * abs(s_i - s[j])


@njit(cache=True, nogil=True, error_model="numpy")
def pair_terms(pair, e_i, e, up, weight):
    """Fill what document i gains and j loses (`up`), and what both get (`weight`).

    pair : in, signed |dZ|; e : in, exp(sigma s) of the documents j
    """
    for j in range(e.size):
        e_j = e[j]
        z = pair[j]
        inverse = 1.0 / (e_i + e_j)
        up[j] = z * inverse * (e_j if z > 0.0 else e_i)
        weight[j] = abs(z) * inverse * inverse * (e_i * e_j)


@njit(cache=True, nogil=True, error_model="numpy")
def even_pair_terms(pair, e_i, s_i, sigma, e, s, up, weight):
    """Do even_pairs and pair_terms with one division for both."""
    for j in range(e.size):
        e_j = e[j]
        z = pair[j]
        apart = 0.01 + sigma * abs(s_i - s[j])
        q = 1.0 / ((e_i + e_j) * apart)
        up[j] = z * q * (e_j if z > 0.0 else e_i)
        weight[j] = abs(z) * q * (q * apart) * (e_i * e_j)


@njit(cache=True, nogil=True)
def wide_pair_terms(pair, s_i, sigma, s, up, weight):
    """Do as pair_terms, from the scores: for queries whose scores lie far apart."""
    for j in range(s.size):
        z = pair[j]
        difference = sigma * (s_i - s[j]) if z > 0.0 else sigma * (s[j] - s_i)
        x = math.exp(-abs(difference))
        rho = x / (1.0 + x) if difference > 0.0 else 1.0 / (1.0 + x)
        up[j] = z * rho
        weight[j] = abs(z) * x / ((1.0 + x) * (1.0 + x))


@njit(cache=True, nogil=True)
def ranked_lambdas(
    rule, g, w, v, weighted, s, sigma, truncation, normalise, state, row, up, weight, e, out
):
    """Fill out[0] (lambdas) and out[1] (weights) of one query in ranked order, less sigma.

    g, w, v, s : in, gains, rank weights, row weights and scores in ranked order
    truncation : in, pairs count whose better-ranked document stands above it
    normalise : in, whether to even out pairs far apart, and queries
    state, row, up, weight, e : scratch
    """
    n = g.size
    lambdas, weights = out[0, :n], out[1, :n]
    lambdas[:] = 0.0
    weights[:] = 0.0
    wide = sigma * (s[0] - s[n - 1]) > WIDEST
    uneven = normalise and s[0] != s[n - 1]
    middle = 0.5 * s[0] + 0.5 * s[n - 1]
    for r in range(n):
        e[r] = 0.0 if wide else math.exp(sigma * (s[r] - middle))
    if rule != ONES and rule != SUM:
        swap_setup(rule, g, state)
    total = 0.0
    for i in range(min(truncation, n - 1)):
        below, m = slice(i + 1, n), n - i - 1
        pair = row[below]
        if rule == SUM:
            sum_pairs(g[i], w[i], g[below], w[below], pair)
        elif rule == ONES:
            one_pairs(g[i], g[below], pair)
        else:
            swap_row(rule, g, w, state, i, row)
            sign_pairs(g[i], g[below], pair)
        if weighted:
            weigh_pairs(v[i], v[below], pair)
        if wide:
            if uneven:
                even_pairs(s[i], s[below], sigma, pair)
            wide_pair_terms(pair, s[i], sigma, s[below], up[:m], weight[:m])
        elif uneven:
            even_pair_terms(pair, e[i], s[i], sigma, e[below], s[below], up[:m], weight[:m])
        else:
            pair_terms(pair, e[i], e[below], up[:m], weight[:m])
        subtract_from(lambdas[below], up[:m])
        add_to(weights[below], weight[:m])
        lifted, weighed, moved = three_sums(up[:m], weight[:m])
        lambdas[i] += lifted
        weights[i] += weighed
        total += moved
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
