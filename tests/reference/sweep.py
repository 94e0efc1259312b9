"""The measure of a combination of two scores by brute force: evaluated between all crossings."""

from __future__ import annotations

import itertools

import numpy as np

from rankgrove.measures.base import exact_mean, rank

TOO_NARROW = 1e-11  # stretches that only rounding makes: not looked at


def mean_at(prepared, start, other, alpha, form):
    scores = (1 - alpha) * start + alpha * other if form == "convex" else start + alpha * other
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
    """Return the middles of the stretches between all crossings, and the means there."""
    cuts = crossings(start, other, prepared.query_ptr, form, low, high)
    edges = np.concatenate([[low], cuts, [high]])
    wide = np.diff(edges) > TOO_NARROW * np.maximum(1, np.abs(edges[1:]))
    middles = ((edges[1:] + edges[:-1]) / 2)[wide]
    means = [mean_at(prepared, start, other, alpha, form) for alpha in middles.tolist()]
    return middles, np.array(means)
