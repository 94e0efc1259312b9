"""LambdaMART as the papers print it: the oracle of the whole loop, from labels to predictions.

Algorithm of the overview paper's section 7 (LambdaMART paper, Algorithm 1): lambdas and weights
of every query, brute force; a least-squares tree on the lambdas; a Newton step in every leaf;
shrinkage. Nothing is binned, rounded or kept from one round to the next, and nothing but the
measures' definitions is shared with other oracles.
"""

from __future__ import annotations

import math
from itertools import pairwise


def lambdas_of(value, labels, scores, keys, sigma):
    """Return the lambdas (upwards) and weights of one query; ties stand in the keys' order."""
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], keys[row]))
    ranking = [labels[row] for row in order]
    up, weight = [[] for _ in order], [[] for _ in order]
    for a in range(len(order)):
        for b in range(len(order)):
            if ranking[a] <= ranking[b]:  # a is the better document of the pair
                continue
            swapped = list(ranking)
            swapped[a], swapped[b] = swapped[b], swapped[a]
            delta = 0.0 if value(ranking) is None else abs(value(swapped) - value(ranking))
            i, j = order[a], order[b]
            rho = 1 / (1 + math.exp(sigma * (scores[i] - scores[j])))
            up[i].append(sigma * delta * rho)
            up[j].append(-sigma * delta * rho)
            for row in (i, j):
                weight[row].append(sigma**2 * delta * rho * (1 - rho))
    return [math.fsum(x) for x in up], [math.fsum(x) for x in weight]


def split_of(X, up, rows, min_leaf):
    """Return (gain, feature, threshold) of the best least-squares split; the first of equals."""

    def fit(part):  # how much of the squares the part's mean takes away
        return math.fsum(up[row] for row in part) ** 2 / len(part)

    best = None
    for feature in range(len(X[0])):
        values = sorted({x[feature] for x in X})
        for low, high in pairwise(values):
            threshold = (low + high) / 2
            left = [row for row in rows if X[row][feature] <= threshold]
            right = [row for row in rows if X[row][feature] > threshold]
            if min(len(left), len(right)) < min_leaf:
                continue
            gain = fit(left) + fit(right) - fit(rows)
            if gain > 1e-12 * fit(rows) and (best is None or gain > best[0] * (1 + 1e-9)):
                best = gain, feature, threshold
    return best


def grow(X, up, weight, n_leaves, min_leaf):
    """Return a tree as a function of a row of features, grown best first."""
    rows = list(range(len(X)))
    leaves, splits = [(split_of(X, up, rows, min_leaf), rows)], []
    while len(leaves) < n_leaves and any(split for split, _ in leaves):
        k = max(range(len(leaves)), key=lambda k: leaves[k][0][0] if leaves[k][0] else -math.inf)
        (_, feature, threshold), rows = leaves[k]
        left = [row for row in rows if X[row][feature] <= threshold]
        right = [row for row in rows if X[row][feature] > threshold]
        splits.append((k, feature, threshold))  # the left child has its parent's place
        leaves[k] = split_of(X, up, left, min_leaf), left
        leaves.append((split_of(X, up, right, min_leaf), right))
    newton = []
    for _, rows in leaves:
        curvature = math.fsum(weight[row] for row in rows)
        newton.append(math.fsum(up[row] for row in rows) / curvature if curvature > 0 else 0.0)

    def tree(x):
        place = 0
        for number, (k, feature, threshold) in enumerate(splits, 1):
            if k == place and x[feature] > threshold:
                place = number
        return newton[place]

    return tree


def lambdamart(
    value, X, labels, query_ptr, keys, *, n_trees, n_leaves, rate, min_leaf, sigma=1.0, start=None
):
    """Train on X (rows of features, query by query) from the scores `start`, or 0.

    Return the scores of the training rows, and what the trees add as a function of a row.
    """
    scores = [0.0] * len(labels) if start is None else list(start)
    trees = []
    for _ in range(n_trees):
        up, weight = [], []
        for a, b in pairwise(query_ptr):
            of_query = lambdas_of(value, labels[a:b], scores[a:b], keys[a:b], sigma)
            up, weight = up + of_query[0], weight + of_query[1]
        trees.append(grow(X, up, weight, n_leaves, min_leaf))
        scores = [score + rate * trees[-1](x) for score, x in zip(scores, X, strict=True)]
    return scores, lambda x: sum(rate * tree(x) for tree in trees)
