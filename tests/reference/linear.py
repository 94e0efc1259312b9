"""Linear rankers as their papers say, pair by pair and step by step."""

from __future__ import annotations

import itertools
import math

import numpy as np

import rankgrove as rg


def pairs_of(labels, query_ptr):
    """Return all (better, worse) pairs of every query."""
    return [
        [(i, j) for i, j in itertools.permutations(range(a, b), 2) if labels[i] > labels[j]]
        for a, b in itertools.pairwise(query_ptr.tolist())
    ]


def mean_value(measure, labels, scores, query_ptr):
    """Return the mean of a measure over the queries that have a value."""
    values = [
        rg.measure(measure).query_value(labels[a:b], scores[a:b])
        for a, b in itertools.pairwise(query_ptr.tolist())
    ]
    return float(np.nanmean(values))


def best_on_line(measure, labels, query_ptr, rest, column):
    """Return the highest mean of rest + w * column over all w, and of -column and column alone.

    Between two neighbouring crossings nothing changes: one look at each stretch is enough.
    """
    crossings = set()
    for a, b in itertools.pairwise(query_ptr.tolist()):
        for i, j in itertools.combinations(range(a, b), 2):
            if column[i] != column[j]:
                crossings.add((rest[j] - rest[i]) / (column[i] - column[j]))
    cuts = sorted(crossings)
    weights = [cuts[0] - 1.0, *((a + b) / 2 for a, b in itertools.pairwise(cuts)), cuts[-1] + 1.0]
    tried = [rest + w * column for w in weights] + [column, -column]
    return max(mean_value(measure, labels, scores, query_ptr) for scores in tried)


def smooth_value(gains, weights, scores, sigma):
    """Return the smoothed value of one query: h of every rank and document, written out."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    total = 0.0
    for rank, document in enumerate(order):
        h = [math.exp(-((s - scores[document]) ** 2) / sigma) for s in scores]
        total += weights[rank] * sum(a * g for a, g in zip(h, gains, strict=True)) / sum(h)
    return total


def mix(x):
    """Return the finaliser of splitmix64 of a whole number."""
    mask = (1 << 64) - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def uniform(seed, counter):
    """Return the number in [0, 1) that belongs to a counter."""
    return (mix((seed + 0x9E3779B97F4A7C15 * (counter + 1)) & ((1 << 64) - 1)) >> 11) / 2.0**53


def crr_weights(X, labels, query_ptr, seed, n_steps, *, alpha, loss, l2, rate, all_pairs=True):
    """Return weights, intercept and mean loss after steps of combined regression and ranking.

    Ordered pairs are written down, query by query: by label, then as rows stand.
    """
    queries = list(itertools.pairwise(query_ptr.tolist()))
    listed = []
    for a, b in queries:
        by_label = sorted(range(a, b), key=lambda i: labels[i])
        listed.append([(i, j) for i in by_label for j in by_label if labels[i] != labels[j]])
    sizes = np.cumsum([0.0, *(b - a for a, b in queries)])
    counts = np.cumsum([0.0, *((len(p) if all_pairs else float(bool(p))) for p in listed)])
    w, intercept, cost = np.zeros(X.shape[1]), 0.0, 0.0
    total, total_intercept = w.copy(), 0.0
    for k in range(n_steps):
        a, b = uniform(seed, 3 * k + 1), uniform(seed, 3 * k + 2)
        if uniform(seed, 3 * k) < alpha:
            first, last = queries[int(np.searchsorted(sizes, a * sizes[-1], "right")) - 1]
            i = first + int(b * (last - first))
            x, wanted, constant = X[i], labels[i], 1.0
        else:
            own = listed[int(np.searchsorted(counts, a * counts[-1], "right")) - 1]
            i, j = own[int(b * len(own))]
            x, wanted, constant = X[i] - X[j], labels[i] - labels[j], 0.0
            if loss == "logistic":
                wanted = (1.0 + wanted) / 2.0
        score, eta = w @ x + intercept * constant, rate / math.sqrt(1.0 + k / len(labels))
        size = x @ x + constant
        if loss == "squared":
            cost += (wanted - score) ** 2 / 2.0
            step = eta / (1.0 + eta * size) * (wanted - score)
        else:
            p = 1.0 / (1.0 + math.exp(-score))
            cost -= wanted * math.log(p) + (1.0 - wanted) * math.log(1.0 - p)
            step = eta / (1.0 + eta * size / 4.0) * (wanted - p)
        w = (w + step * x) / (1.0 + eta * l2)
        intercept += step * constant
        total, total_intercept = total + w, total_intercept + intercept
    return total / n_steps, total_intercept / n_steps, cost / n_steps
