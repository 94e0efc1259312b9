# mypy: ignore-errors
"""Lambda gradients of every query, for every rule.

For a pair of documents of unequal gain, of which the better one has the score s_i and the other
s_j, with rho = 1 / (1 + exp(sigma (s_i - s_j))) (overview paper, section 7):

    lambda = sigma |dZ| rho          up for the better one, down for the other
    weight = sigma^2 |dZ| rho (1 - rho)   for both

With E = exp(sigma s) this needs one division and no exponential a pair: rho = E_j / (E_i + E_j),
and rho (1 - rho) = E_i E_j / (E_i + E_j)^2; where pairs are evened out, the same division does
that too. A pair's |dZ| carries the sign of who is better. The rows of pairs are vector code, see
_pair_vectors.
"""

from __future__ import annotations

import functools
import math
import types
from typing import NamedTuple

import numpy as np
from numba import prange

from rankgrove._piece_kernels import next_number
from rankgrove._random_kernels import mix
from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import MOST_COUNTED, count_order, sort_descending
from rankgrove.measures._swap_kernels import swap_row, swap_setup
from rankgrove.measures._value_kernels import SUM
from rankgrove.objectives._pair_vectors import LANES, given_row, one_row, sum_row

ONES = -2  # the rule of RankNet: every pair of unequal labels counts 1
LINEAR = (SUM, ONES)
# exp(sigma s) of a query whose scores span more than this is not kept as one number.
WIDEST = 600.0
# Noise takes one of this many values; a hash of 64 bits has enough bits for some draws.
QUANTILE_BITS = 12
N_QUANTILES = 1 << QUANTILE_BITS
DRAWS_PER_HASH = 64 // QUANTILE_BITS
NEXT_HASH = np.uint64(0x9E3779B97F4A7C15)


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


@njit(cache=True, nogil=True)
def wide_row(i, n, sigma, pair, s, lambdas, weights):
    """Do as given_row, from the scores: for queries whose scores lie far apart."""
    lifted = 0.0
    weighed = 0.0
    moved = 0.0
    for j in range(i + 1, n):
        z = pair[j]
        difference = sigma * (s[i] - s[j]) if z > 0.0 else sigma * (s[j] - s[i])
        x = math.exp(-abs(difference))
        rho = x / (1.0 + x) if difference > 0.0 else 1.0 / (1.0 + x)
        up = z * rho
        weight = abs(z) * x / ((1.0 + x) * (1.0 + x))
        lambdas[j] -= up
        weights[j] += weight
        lifted += up
        weighed += weight
        moved += abs(up)
    return lifted, weighed, moved


@njit(cache=True, nogil=True)
def fill_pairs(i, n, rule, g, w, v, weighted, state, pair):
    """Fill ``pair[i+1:n]`` with |dZ|, positive where document i is the better one."""
    below = slice(i + 1, n)
    if rule == SUM:
        sum_pairs(g[i], w[i], g[below], w[below], pair[below])
    elif rule == ONES:
        one_pairs(g[i], g[below], pair[below])
    else:
        swap_row(rule, g[:n], w[:n], state, i, pair[:n])
        sign_pairs(g[i], g[below], pair[below])
    if weighted:
        weigh_pairs(v[i], v[below], pair[below])


@njit(cache=True, nogil=True)
def ranked_lambdas(
    n, rule, g, w, v, weighted, s, sigma, truncation, normalise, state, pair, e, lambdas, weights
):
    """Fill the lambdas and weights of one query in ranked order, less sigma.

    g, w, v, s : in, gains, rank weights, row weights and scores of n documents in ranked order
    truncation : in, pairs count whose better-ranked document stands above it
    normalise : in, whether to even out pairs far apart, and queries
    state, pair, e : scratch
    All arrays of documents have LANES more places than documents.
    """
    wide = sigma * (s[0] - s[n - 1]) > WIDEST
    uneven = normalise and s[0] != s[n - 1]
    middle = 0.5 * s[0] + 0.5 * s[n - 1]
    least = g[0]
    for r in range(n):
        e[r] = 0.0 if wide else math.exp(sigma * (s[r] - middle))
        least = min(least, g[r])
    for r in range(n, n + LANES):  # as many documents that add 0: e is 0, and none is worse
        g[r] = least
        w[r] = 0.0
        s[r] = s[n - 1]
        e[r] = 0.0
        pair[r] = 0.0
    lambdas[: n + LANES] = 0.0
    weights[: n + LANES] = 0.0
    if rule != ONES and rule != SUM:
        swap_setup(rule, g[:n], state)
    total = 0.0
    for i in range(min(truncation, n - 1)):
        if rule == SUM and not weighted and not wide:
            row = sum_row(i, n, sigma, uneven, g, w, s, e, lambdas, weights)
        elif rule == ONES and not weighted and not wide:
            row = one_row(i, n, sigma, uneven, g, s, e, lambdas, weights)
        else:
            fill_pairs(i, n, rule, g, w, v, weighted, state, pair)
            if wide:
                if uneven:
                    even_pairs(s[i], s[i + 1 : n], sigma, pair[i + 1 : n])
                row = wide_row(i, n, sigma, pair, s, lambdas, weights)
            else:
                row = given_row(i, n, sigma, uneven, pair, s, e, lambdas, weights)
        lambdas[i] += row[0]
        weights[i] += row[1]
        total += row[2]
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
def lambda_room(longest):
    """Return the scratch arrays of :func:`lambdas_in` for queries of at most so many rows."""
    room = longest + LANES
    key, other, s, g = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    w, v, e, pair = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    lambdas, weights, drawn = np.empty(room), np.empty(room), np.empty(room)
    state = np.zeros((3, longest + 2))
    order = np.empty(longest, np.int64)
    other_order = np.empty(longest, np.int64)
    above = np.empty(MOST_COUNTED, np.int32)
    taken = np.empty(MOST_COUNTED, np.int32)
    numbers = (key, other, s, g, w, v, e, pair, lambdas, weights, drawn)
    return numbers, state, order, other_order, above, taken


class Noise(NamedTuple):
    """How the order of a query is drawn: stochastic lambdas.

    scale : factor of the noise; 0: the order is that of the scores
    draws : number of orders per query and round; lambdas are their mean
    keys : one number per row, from which its noise is drawn
    quantiles : of the distribution of the noise, equally likely
    """

    scale: float
    draws: int
    keys: np.ndarray
    quantiles: np.ndarray


class Lambdas(NamedTuple):
    """What the lambdas of a data set depend on, apart from scores.

    shuffle : the rows of every query in a random order that ties keep
    has_pairs : whether a query has a pair to order
    row_weight, query_weight : empty if all are 1
    """

    rule: int
    sigma: float
    truncation: int
    normalise: bool
    query_ptr: np.ndarray
    shuffle: np.ndarray
    has_pairs: np.ndarray
    gain: np.ndarray
    rank_weight: np.ndarray
    row_weight: np.ndarray
    query_weight: np.ndarray
    noise: Noise


@njit(cache=True, nogil=True)
def noise_at(noise, row, draw, seed):
    """Return the noise of a row in a draw: one hash serves five draws, with 12 bits each."""
    bits = mix(noise.keys[row] ^ (seed + np.uint64(draw // DRAWS_PER_HASH) * NEXT_HASH))
    place = bits >> np.uint64(QUANTILE_BITS * (draw % DRAWS_PER_HASH))
    return noise.scale * noise.quantiles[place & np.uint64(N_QUANTILES - 1)]


@njit(cache=True, nogil=True)
def lambdas_in(room, objective, seed, queries, scores, gradient, hessian):
    """Fill gradient and hessian of the rows of `queries`.

    room : scratch, of lambda_room
    objective : in, Lambdas
    seed : in, of the noise of this round
    """
    numbers, state, order, other_order, above, taken = room
    key, other, s, g, w, v, e, pair, lambdas, weights, drawn = numbers
    sigma, noise, shuffle = objective.sigma, objective.noise, objective.shuffle
    weighted = objective.row_weight.size > 0
    has_noise = noise.scale > 0.0
    draws = noise.draws if has_noise else 1
    for k in range(queries.size):
        q = queries[k]
        start = objective.query_ptr[q]
        n = objective.query_ptr[q + 1] - start
        for i in range(start, start + n):
            gradient[i] = 0.0
            hessian[i] = 0.0
        if not objective.has_pairs[q]:
            continue
        share = (objective.query_weight[q] if objective.query_weight.size > 0 else 1.0) / draws
        for draw in range(draws):
            for i in range(n):
                row = shuffle[start + i]
                drawn[i] = scores[row]
                if has_noise:
                    drawn[i] += noise_at(noise, row, draw, seed)
                key[i] = drawn[i]
            sort_query(key[:n], order[:n], above, taken, other, other_order)
            for r in range(n):
                row = shuffle[start + order[r]]
                s[r] = drawn[order[r]]
                g[r] = objective.gain[row]
                w[r] = objective.rank_weight[start + r]
                if weighted:
                    v[r] = objective.row_weight[row]
                order[r] = row
            ranked_lambdas(
                n, objective.rule, g, w, v, weighted, s, sigma, objective.truncation,
                objective.normalise, state, pair, e, lambdas, weights,
            )  # fmt: skip
            for r in range(n):
                gradient[order[r]] += sigma * share * lambdas[r]
                hessian[order[r]] += sigma * sigma * share * weights[r]


@njit(cache=True, nogil=True)
def lambda_queries(objective, seed, queries, scores, gradient, hessian):
    """Like lambdas_in, with scratch arrays of its own."""
    longest = np.int64(1)
    for k in range(queries.size):
        q = queries[k]
        longest = max(longest, objective.query_ptr[q + 1] - objective.query_ptr[q])
    lambdas_in(lambda_room(longest), objective, seed, queries, scores, gradient, hessian)


@njit(nogil=True)
def no_setup(rule, g, state):
    """Stand in for swap_setup: the rule keeps no state."""


@njit(nogil=True)
def no_row(rule, g, w, state, i, row):
    """Stand in for swap_row, where it is not called."""


@functools.cache
def lambdas_in_for(own_swap_row):
    """Return lambdas_in around a user's swap_row; compiled anew in every process."""
    fill = rebound(fill_pairs, swap_row=own_swap_row)
    ranked = rebound(ranked_lambdas, fill_pairs=fill, swap_setup=no_setup)
    return rebound(lambdas_in, ranked_lambdas=ranked)


@functools.cache
def lambda_queries_for(own_swap_row):
    """Return lambda_queries around a user's swap_row."""
    return rebound(lambda_queries, lambdas_in=lambdas_in_for(own_swap_row))


def rebound(kernel, ending=None, **names):
    """Return `kernel` compiled anew with some of its global names bound to other functions.

    ending : of the new kernel's name, if it is made when the module is loaded: then it is cached
    """
    plain = kernel.py_func
    own = types.FunctionType(plain.__code__, plain.__globals__ | names, plain.__name__)
    if ending is None:
        return njit(nogil=True)(own)
    own.__name__ = own.__qualname__ = plain.__name__ + ending
    return njit(cache=True, nogil=True)(own)


# For LINEAR rules alone, so that training NDCG does not compile the rows of ERR and others.
_linear = functools.partial(rebound, ending="_linear")
_fill_linear = _linear(fill_pairs, swap_row=no_row)
_ranked_linear = _linear(ranked_lambdas, fill_pairs=_fill_linear, swap_setup=no_setup)
lambdas_in_linear = _linear(lambdas_in, ranked_lambdas=_ranked_linear)
lambda_queries_linear = _linear(lambda_queries, lambdas_in=lambdas_in_linear)


# For much data: the threads of a parallel region, which growth uses too, and which wait for their
# next work by spinning. Other threads would have to share the cores with them.


@njit(cache=True, nogil=True)
def _some_pieces_linear(fields, noise, seed, queries, cuts, counter, scores, gradient, hessian):
    """Fill gradient and hessian of the pieces of `queries` that this thread gets."""
    objective = Lambdas(
        fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6], fields[7],
        fields[8], fields[9], fields[10], noise,
    )  # fmt: skip
    longest = np.int64(1)
    for k in range(queries.size):
        q = queries[k]
        longest = max(longest, objective.query_ptr[q + 1] - objective.query_ptr[q])
    room = lambda_room(longest)
    piece = next_number(counter)
    while piece < cuts.size - 1:
        own = queries[cuts[piece] : cuts[piece + 1]]
        lambdas_in_linear(room, objective, seed, own, scores, gradient, hessian)
        piece = next_number(counter)


@njit(cache=True, parallel=True)
def lambda_pieces_linear(
    fields, noise, seed, queries, cuts, counter, scores, gradient, hessian, n_threads
):
    """Do as lambda_queries_linear, on several threads.

    fields : in, Lambdas less their noise: prange takes no tuples in tuples
    cuts : in, the borders of pieces of `queries`
    counter : inout, one number, 0 before the call
    """
    for _ in prange(n_threads):
        _some_pieces_linear(fields, noise, seed, queries, cuts, counter, scores, gradient, hessian)
