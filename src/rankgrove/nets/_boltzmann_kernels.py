# mypy: ignore-errors
"""Training a net on the expected measure of a Boltzmann distribution over rankings (BoltzRank).

Volkovs and Zemel (2009): with r_j the rank of document j of m and phi_j its score, a ranking R has
the energy E(R) = 2 / (m (m - 1)) * sum over pairs, j below k, of g(r_j - r_k) (phi_j - phi_k): an
order against the scores costs energy. P(R) is proportional to exp(-E(R)). With g(x) = alpha x the
sum over pairs is one over documents, -E(R) = 2 alpha / (m - 1) * sum_j (mean rank - r_j) phi_j.
Sums over all m! rankings become sums over a sample of them, over which P is normalised.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import sort_descending
from rankgrove.measures._value_kernels import ranked_value
from rankgrove.nets._net_kernels import backward, longest_of, net_room, scores_of, update
from rankgrove.objectives._lambda_kernels import rebound

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
UNIT = 2.0**-53


@njit(cache=True, nogil=True)
def draw_rankings(strength, key, rankings, noisy, other_key, other_index):
    """Fill every row of `rankings` with a ranking of the n documents, drawn by their strengths.

    A document is first with probability exp(strength) over the sum of all, and so on among the
    others: the order of strengths plus Gumbel noise, which is a hash of (key, draw, document).

    rankings : out, draws x at least n; entry r is the document at rank r, counted from 0
    noisy, other_key, other_index : scratch, at least n entries
    """
    n = strength.size
    for k in range(rankings.shape[0]):
        for i in range(n):
            bits = mix(key + np.uint64(k * n + i + 1) * GOLDEN)
            uniform = (np.float64(bits >> np.uint64(11)) + 0.5) * UNIT
            noisy[i] = strength[i] - math.log(-math.log(uniform))
            rankings[k, i] = i
        sort_descending(noisy[:n], rankings[k, :n], other_key, other_index)


@njit(cache=True, nogil=True)
def normalise(power):
    """Replace powers by their exponentials over the sum of these; return the sum's logarithm."""
    highest = power.max()
    total = 0.0
    for k in range(power.size):
        total += math.exp(power[k] - highest)
    log_total = highest + math.log(total)
    for k in range(power.size):
        power[k] = math.exp(power[k] - log_total)
    return log_total


@njit(cache=True, nogil=True)
def boltzmann_gradient(
    rule, alpha, share, temperature, scores, labels, gain, rank_weight, rankings, room, gradient
):  # fmt: skip
    """Fill the derivatives of share * E[measure] - (1 - share) * KL(T, P), and return its value.

    T is the Boltzmann distribution of the labels over a temperature, G(R) the measure of a ranking.
    With -dE/dphi_i = 2 alpha / (m - 1) (mean rank - r_i), the derivative by phi_i is the sum over
    rankings of (share P (G - E[G]) + (1 - share) (T - P)) (-dE/dphi_i).

    rankings : in, draws x at least n: the sample that stands for all rankings
    room : scratch of boltzmann_room
    """
    ranked_gain, model, target, difference, value = room
    n, n_draws = scores.size, rankings.shape[0]
    slope = 2.0 * alpha / (n - 1)
    middle = 0.5 * (n - 1)
    for k in range(n_draws):
        by_score = 0.0
        by_label = 0.0
        for r in range(n):
            i = rankings[k, r]
            by_score += (middle - r) * scores[i]
            by_label += (middle - r) * labels[i]
            ranked_gain[r] = gain[i]
        model[k] = slope * by_score
        target[k] = slope * by_label / temperature
        difference[k] = target[k] - model[k]
        value[k] = ranked_value(rule, ranked_gain[:n], rank_weight)
    divergence = normalise(model) - normalise(target)
    expected = 0.0
    for k in range(n_draws):
        divergence += target[k] * difference[k]
        expected += model[k] * value[k]
    gradient[:n] = 0.0
    for k in range(n_draws):
        pull = share * model[k] * (value[k] - expected) + (1.0 - share) * (target[k] - model[k])
        for r in range(n):
            gradient[rankings[k, r]] += pull * slope * (middle - r)
    return share * expected - (1.0 - share) * divergence


@njit(cache=True, nogil=True)
def boltzmann_room(longest, n_draws):
    """Return the scratch arrays of boltzmann_gradient."""
    return (
        np.empty(longest),
        np.empty(n_draws),
        np.empty(n_draws),
        np.empty(n_draws),
        np.empty(n_draws),
    )


@njit(cache=True, nogil=True)
def train_boltzmann(
    order, inputs, lists, draws, widths, activation, optimiser, rate, l2, state, scores, gradient
):  # fmt: skip
    """One update per query.

    order : in, the queries in the order of their turns
    lists : in, (rule, alpha, share, temperature, borders of queries, labels, gains, weights of
        ranks, weights of queries)
    draws : in, (number of rankings, whether by scores or by labels, their temperature, one key per
        query)
    scores, gradient : scratch, as long as the longest query
    Returns the first query whose scores are no sane numbers, or -1.
    """
    rule, alpha, share, temperature, ptr, labels, gain, rank_weight, query_weight = lists
    n_draws, by_scores, spread, keys = draws
    parameters, factors, mean, square, powers = state
    longest = longest_of(order, ptr)
    rows, deltas, turned, change = net_room(longest, widths)
    room = boltzmann_room(longest, n_draws)
    rankings = np.empty((n_draws, longest), np.int64)
    strength, noisy, other_key = np.empty(longest), np.empty(longest), np.empty(longest)
    other_index = np.empty(longest, np.int64)
    for k in range(order.size):
        q = order[k]
        if query_weight[q] == 0.0:
            continue
        own = slice(ptr[q], ptr[q + 1])
        n = ptr[q + 1] - ptr[q]
        s, g = scores[:n], gradient[:n]
        if not scores_of(inputs, ptr, q, widths, activation, parameters, rows, s):
            return q
        for i in range(n):
            strength[i] = (s[i] if by_scores else labels[ptr[q] + i]) / spread
        draw_rankings(strength[:n], keys[q], rankings, noisy, other_key, other_index)
        boltzmann_gradient(
            rule, alpha, share, temperature, s, labels[own], gain[own], rank_weight[own],
            rankings, room, g,
        )  # fmt: skip
        for i in range(n):
            g[i] *= query_weight[q]
        backward(n, widths, activation, parameters, rows, g, deltas, turned, change)
        update(optimiser, rate, l2, parameters, factors, change, mean, square, powers)
    return -1


@functools.cache
def train_boltzmann_for(own_ranked_value):
    """Return train_boltzmann around a user's measure; compiled in every process."""
    fill = rebound(boltzmann_gradient, ranked_value=own_ranked_value)
    return rebound(train_boltzmann, boltzmann_gradient=fill)
