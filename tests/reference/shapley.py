"""Shapley values as their definition says, over all sets of features: the oracle of TreeSHAP."""

from __future__ import annotations

import itertools
import math


def cover_of(tree, child):
    """Return the rows that reach a child: a node (the sum of its leaves) or a leaf."""
    if child < 0:
        return float(tree.count[tree.n_nodes + ~child])
    return cover_of(tree, int(tree.left[child])) + cover_of(tree, int(tree.right[child]))


def goes_left(tree, node, x):
    """Return whether a document goes left at a node."""
    value = float(x[tree.feature[node]])
    if math.isnan(value):
        return bool(tree.missing_left[node])
    if tree.set_of[node] >= 0:
        return value >= 0.0 and int(value) in tree.sets.codes(int(tree.set_of[node])).tolist()
    return value <= tree.threshold[node]


def expectation(tree, x, known, child=0):
    """Return the mean value below, where only the features in `known` are looked at."""
    if child < 0 or tree.n_nodes == 0:
        return float(tree.value[~child if child < 0 else 0])
    left, right = int(tree.left[child]), int(tree.right[child])
    if int(tree.feature[child]) in known:
        return expectation(tree, x, known, left if goes_left(tree, child, x) else right)
    a, b = cover_of(tree, left), cover_of(tree, right)
    share = a / (a + b) if a + b else 0.5
    low, high = (expectation(tree, x, known, one) for one in (left, right))
    return share * low + (1 - share) * high


def shapley(tree, x, n_features):
    """Return the Shapley value of every feature in one tree."""
    players = sorted({int(j) for j in tree.feature})
    found = [0.0] * n_features
    for j in players:
        others = [k for k in players if k != j]
        for size in range(len(others) + 1):
            weight = 1.0 / (len(players) * math.comb(len(players) - 1, size))
            for chosen in itertools.combinations(others, size):
                with_j = expectation(tree, x, {*chosen, j})
                found[j] += weight * (with_j - expectation(tree, x, set(chosen)))
    return found
