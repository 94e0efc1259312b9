"""The measure of a combination of two scores by brute force: between all crossings, and at each."""

from __future__ import annotations

import itertools
import math

import numpy as np

from rankgrove.measures.base import exact_mean, rank

TOO_NARROW = 1e-11  # stretches that only rounding makes: not looked at
SAME_SCORE = 1e-12


def mean_at(prepared, start, other, alpha, form):
    scores = (1 - alpha) * start + alpha * other if form == "convex" else start + alpha * other
    return exact_mean(prepared.values(rank(scores, prepared.query_ptr, 1), 1))


def mean_where_tied(prepared, start, other, alpha, form):
    """Return the mean where lines meet: scores that differ only by rounding are equal."""
    scores = (1 - alpha) * start + alpha * other if form == "convex" else start + alpha * other
    for a, b in itertools.pairwise(prepared.query_ptr.tolist()):
        order = a + np.argsort(scores[a:b])
        for i, j in itertools.pairwise(order.tolist()):
            if scores[j] - scores[i] <= SAME_SCORE * max(1.0, abs(alpha)):
                scores[j] = scores[i]
    return exact_mean(prepared.values(rank(scores, prepared.query_ptr, 1), 1))


def crossings(start, other, query_ptr, form, low, high):
    """Return every alpha in the open range at which two documents of a query cross, ascending."""
    found = set()
    for a, b in itertools.pairwise(query_ptr.tolist()):
        for i, j in itertools.combinations(range(a, b), 2):
            ds, dt = start[i] - start[j], other[i] - other[j]
            turn = ds - dt if form == "convex" else -dt
            if turn != 0 and low < ds / turn < high:
                found.add(ds / turn)
    return np.array(sorted(found))


def brute_force(prepared, start, other, form, low, high):
    """Return the middles of the stretches between all crossings, and the means there.

    And the crossings between the stretches, the means exactly there, where documents are tied that
    are not tied beside them, and the means there as scores are rounded.
    """
    cuts = crossings(start, other, prepared.query_ptr, form, low, high)
    edges = np.concatenate([[low], cuts, [high]])
    wide = np.diff(edges) > TOO_NARROW * np.maximum(1, np.abs(edges[1:]))
    middles = ((edges[1:] + edges[:-1]) / 2)[wide]
    between = edges[1:][wide][:-1]
    means = [mean_at(prepared, start, other, alpha, form) for alpha in middles.tolist()]
    tied = [mean_where_tied(prepared, start, other, alpha, form) for alpha in between.tolist()]
    rounded = [mean_at(prepared, start, other, alpha, form) for alpha in between.tolist()]
    return middles, np.array(means), between, np.array(tied), np.array(rounded)


# -- in whole numbers ---------------------------------------------------------------------------


def exact_candidates(start, other, query_ptr, form, low, high):
    """Return numerators and denominators of all alphas that can be the best, of whole scores.

    The ends, the crossings, and a point of every stretch between them: nothing is rounded.
    """
    found = {low, high}
    for a, b in itertools.pairwise(query_ptr.tolist()):
        for i, j in itertools.combinations(range(a, b), 2):
            ds, dt = start[i] - start[j], other[i] - other[j]
            turn = ds - dt if form == "convex" else -dt
            if turn != 0:
                sign = 1 if turn > 0 else -1
                found.add((int(sign * ds), int(sign * turn)))
    reduced = {(n // math.gcd(n, d), d // math.gcd(n, d)) for n, d in found}
    inside = sorted(
        ((n, d) for n, d in reduced if low[0] * d <= n * low[1] and n * high[1] <= high[0] * d),
        key=lambda pair: pair[0] / pair[1],
    )
    # The mediant of two fractions lies between them.
    between = [(n + m, d + k) for (n, d), (m, k) in itertools.pairwise(inside)]
    return np.array(inside + between, np.int64)
