# mypy: ignore-errors
"""Gradients of clicks that depend on positions, and exact sums over the cells of positions.

A pair of documents has |dZ| as in _lambda_kernels. It pushes the better one up by `over`, and the
other one by `under`; with E = exp(sigma s):

    up = (over E_j - under E_i) / (E_i + E_j)
    weight = (|over| + |under|) E_i E_j / (E_i + E_j)^2

Of a clicked document i and a document j that was not clicked, over = |dZ| a_i b_j and under = 0: a
and b are in the table of the documents' cells. In the linear form every document i pushes itself
against every other one, by over = |w_i - w_j| a_i: then the lambdas are linear in a.

A sum over a cell is three whole numbers, in units of 1, 2^-32 and 2^-64. So it is the same for any
order of its terms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.objectives._lambda_kernels import (
    ONES,
    WIDEST,
    Lambdas,
    lambda_room,
    noise_at,
    one_pairs,
    sort_query,
    sum_pairs,
    weigh_pairs,
)
from rankgrove.objectives._pair_vectors import LANES, click_row, double_row, linear_row

HIGHEST = float(1 << 31)  # terms of sums are limited to this
UNIT = float(1 << 32)
LIMBS = 3


@njit(cache=True, nogil=True)
def add_exact(x, limbs):
    """Add a number to a sum of three whole numbers."""
    x = min(max(x, -HIGHEST), HIGHEST)
    whole = np.int64(x)
    rest = (x - whole) * UNIT
    middle = np.int64(rest)
    limbs[0] += whole
    limbs[1] += middle
    limbs[2] += np.int64((rest - middle) * UNIT)


@njit(cache=True, nogil=True)
def sum_cells(queries, query_ptr, cell, first, second, sums):
    """Add two numbers per row to the sums of the rows' cells.

    sums : inout, of shape (2, cells, LIMBS)
    """
    for q in queries:
        for i in range(query_ptr[q], query_ptr[q + 1]):
            add_exact(first[i], sums[0, cell[i]])
            add_exact(second[i], sums[1, cell[i]])


@njit(cache=True, nogil=True)
def soft_logistic_queries(queries, query_ptr, labels, sigma, weight, scores, gradient, hessian):
    """Fill the derivatives of the logistic loss for labels that are any numbers.

    With P = 1 / (1 + exp(-2 sigma F)) the gradient is 2 sigma (y - P).
    """
    weighted = weight.size > 0
    slope = 2.0 * sigma
    for q in queries:
        for i in range(query_ptr[q], query_ptr[q + 1]):
            w = weight[i] if weighted else 1.0
            v = slope * scores[i]
            e = math.exp(-abs(v))
            likely, unlikely = 1.0 / (1.0 + e), e / (1.0 + e)
            gradient[i] = w * slope * (labels[i] - (likely if v >= 0.0 else unlikely))
            hessian[i] = w * slope * slope * (likely * unlikely)


class ClickLambdas(NamedTuple):
    """What the lambdas of clicks depend on, apart from scores.

    lambdas : as for judgements
    clicked : 0 or 1 per row
    cell : the cell of every row
    table : of shape (cells, 4): a without and with a click, b without and with a click
    linear : whether every document pushes itself
    losses : whether losses are summed by cell: of clicked documents, and of the others
    sums : inout, these sums, of shape (2, cells, LIMBS)
    query_ptr, has_pairs : as in `lambdas`
    """

    lambdas: Lambdas
    clicked: np.ndarray
    cell: np.ndarray
    table: np.ndarray
    linear: bool
    losses: bool
    sums: np.ndarray
    query_ptr: np.ndarray
    has_pairs: np.ndarray


@njit(cache=True, nogil=True)
def click_pairs(i, n, rule, linear, g, w, a, b, v, weighted, pair, over, under):
    """Fill the pairs of document i and all documents below it."""
    below = slice(i + 1, n)
    if linear:
        for j in range(i + 1, n):
            pair[j] = 1.0 if rule == ONES else abs(w[i] - w[j])
    elif rule == ONES:
        one_pairs(g[i], g[below], pair[below])
    else:
        sum_pairs(g[i], w[i], g[below], w[below], pair[below])
    if weighted:
        weigh_pairs(v[i], v[below], pair[below])
    if linear:
        for j in range(i + 1, n):
            over[j] = pair[j] * a[i]
            under[j] = pair[j] * a[j]
        return
    for j in range(i + 1, n):
        z = pair[j]
        over[j] = z * (a[i] * b[j]) if z > 0.0 else 0.0
        under[j] = -z * (a[j] * b[i]) if z < 0.0 else 0.0


@njit(cache=True, nogil=True)
def wide_clicks(i, n, sigma, uneven, pair, over, under, s, lambdas, weights):
    """Do as double_row, from the scores: for queries whose scores lie far apart."""
    lifted = 0.0
    weighed = 0.0
    moved = 0.0
    for j in range(i + 1, n):
        difference = sigma * (s[i] - s[j])
        x = math.exp(-abs(difference))
        likely, unlikely = 1.0 / (1.0 + x), x / (1.0 + x)
        of_i, of_j = (unlikely, likely) if difference > 0.0 else (likely, unlikely)
        apart = 0.01 + abs(difference) if uneven else 1.0
        up = (over[j] * of_i - under[j] * of_j) / apart
        weight = (abs(over[j]) + abs(under[j])) * (likely * unlikely) / apart
        lambdas[j] -= up
        weights[j] += weight
        lifted += up
        weighed += weight
        moved += abs(pair[j]) * (of_i if pair[j] > 0.0 else of_j) / apart
    return lifted, weighed, moved


@njit(cache=True, nogil=True)
def add_losses(i, n, sigma, uneven, pair, a, b, s, plus, minus):
    """Add the losses of document i and all below it: to `plus` of the better one of a pair
    divided by the other one's ratio, to `minus` of the other one divided by the better one's.
    """
    for j in range(i + 1, n):
        z = pair[j]
        if z == 0.0:
            continue
        better, worse = (i, j) if z > 0.0 else (j, i)
        x = sigma * (s[better] - s[worse])
        loss = math.log1p(math.exp(-abs(x))) + (0.0 if x > 0.0 else -x)
        loss *= abs(z)
        if uneven:
            loss /= 0.01 + abs(x)
        plus[better] += loss * b[worse]
        minus[worse] += loss * a[better]


@njit(cache=True, nogil=True)
def ranked_click_lambdas(
    n, rule, linear, losses, g, w, a, b, v, weighted, s, sigma, truncation, normalise,
    pair, over, under, e, lambdas, weights, plus, minus,
):  # fmt: skip
    """Fill the lambdas and weights of one query in ranked order, less sigma; see ranked_lambdas.

    a, b : in, of n documents in ranked order, from the table
    over, under : scratch
    plus, minus : out, the losses of documents, if `losses`
    """
    wide = sigma * (s[0] - s[n - 1]) > WIDEST
    uneven = normalise and s[0] != s[n - 1]
    middle = 0.5 * s[0] + 0.5 * s[n - 1]
    for r in range(n):
        e[r] = 0.0 if wide else math.exp(sigma * (s[r] - middle))
    for r in range(n, n + LANES):  # as many documents that add 0
        g[r] = 0.0
        w[r] = 0.0
        a[r] = 0.0
        b[r] = 0.0
        s[r] = s[n - 1]
        e[r] = 0.0
        pair[r] = 0.0
        over[r] = 0.0
        under[r] = 0.0
    lambdas[: n + LANES] = 0.0
    weights[: n + LANES] = 0.0
    plus[:n] = 0.0
    minus[:n] = 0.0
    total = 0.0
    last = n  # below the last clicked document there are no pairs
    if not linear:
        last = -1
        for r in range(n):
            if a[r] > 0.0:
                last = r
    in_vectors = rule != ONES and not weighted and not wide
    for i in range(min(truncation, n - 1, last + 1)):
        if losses or not in_vectors:
            click_pairs(i, n, rule, linear, g, w, a, b, v, weighted, pair, over, under)
        if losses:
            add_losses(i, n, sigma, uneven, pair, a, b, s, plus, minus)
        if in_vectors and linear:
            row = linear_row(i, n, sigma, uneven, w, a, s, e, lambdas, weights)
        elif in_vectors and not losses:
            row = click_row(i, n, sigma, uneven, g, w, a, b, s, e, lambdas, weights)
        elif wide:
            row = wide_clicks(i, n, sigma, uneven, pair, over, under, s, lambdas, weights)
        else:
            row = double_row(i, n, sigma, uneven, pair, over, under, s, e, lambdas, weights)
        lambdas[i] += row[0]
        weights[i] += row[1]
        total += row[2]
    # S is that of the clicks alone, without a and b: those shift weight from query to query too
    if normalise and not linear and total > 0.0:
        scale = math.log2(1.0 + 2.0 * total) / (2.0 * total)
        for r in range(n):
            lambdas[r] *= scale
            weights[r] *= scale


@njit(cache=True, nogil=True)
def click_lambdas_in(room, clicks, seed, queries, scores, gradient, hessian):
    """Fill gradient and hessian of the rows of `queries`; see lambdas_in.

    room : scratch, of lambda_room
    clicks : in, ClickLambdas; its sums: inout
    """
    numbers, _, order, other_order, above, taken = room
    key, other, s, g, w, v, e, pair, lambdas, weights, drawn = numbers
    objective = clicks.lambdas
    sigma, noise, shuffle = objective.sigma, objective.noise, objective.shuffle
    weighted = objective.row_weight.size > 0
    has_noise = noise.scale > 0.0
    draws = noise.draws if has_noise else 1
    a, b, over = np.empty(key.size), np.empty(key.size), np.empty(key.size)
    under, plus, minus = np.empty(key.size), np.empty(key.size), np.empty(key.size)
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
                a[r] = clicks.table[clicks.cell[row], clicks.clicked[row]]
                b[r] = clicks.table[clicks.cell[row], 2 + clicks.clicked[row]]
                order[r] = row
            ranked_click_lambdas(
                n, objective.rule, clicks.linear, clicks.losses, g, w, a, b, v, weighted, s, sigma,
                objective.truncation, objective.normalise, pair, over, under, e, lambdas, weights,
                plus, minus,
            )  # fmt: skip
            for r in range(n):
                row = order[r]
                gradient[row] += sigma * share * lambdas[r]
                hessian[row] += sigma * sigma * share * weights[r]
                if clicks.losses:
                    add_exact(share * plus[r], clicks.sums[0, clicks.cell[row]])
                    add_exact(share * minus[r], clicks.sums[1, clicks.cell[row]])


@njit(cache=True, nogil=True)
def click_lambda_queries(clicks, seed, queries, scores, gradient, hessian):
    """Like click_lambdas_in, with scratch arrays of its own."""
    ptr = clicks.lambdas.query_ptr
    longest = np.int64(1)
    for k in range(queries.size):
        longest = max(longest, ptr[queries[k] + 1] - ptr[queries[k]])
    room = lambda_room(longest)
    click_lambdas_in(room, clicks, seed, queries, scores, gradient, hessian)
