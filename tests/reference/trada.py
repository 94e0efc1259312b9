"""Tree adaptation as the paper writes it, row by row and node by node, for squared error."""

from __future__ import annotations

import math

import numpy as np


def p0_of(n0, n1, beta):
    """Equation 3; 1 where no target row arrives."""
    if n1 == 0 or beta == 0:
        return 1.0
    return 0.0 if math.isinf(beta) else n0 / (n0 + beta * n1)


def goes_left(x, threshold, missing_left, held=None):
    if np.isnan(x):
        return bool(missing_left)
    return bool(x <= threshold) if held is None else x >= 0 and int(x) in held


def best_split(x, r, candidates, missing_left, near, l2, min_leaf):
    """Return the best of some thresholds by square error saved, ties to the nearest; or None."""

    def worth(part):
        return sum(part) ** 2 / (len(part) + l2) if len(part) + l2 > 0 else 0.0

    best, found = worth(r), None
    for v in candidates:
        left = [ri for xi, ri in zip(x, r, strict=True) if goes_left(xi, v, missing_left)]
        right = [ri for xi, ri in zip(x, r, strict=True) if not goes_left(xi, v, missing_left)]
        if len(left) < min_leaf or len(right) < min_leaf:
            continue
        value = worth(left) + worth(right)
        tie = found is not None and math.isclose(value, best, rel_tol=1e-9)
        if tie and abs(v - near) >= abs(found - near):
            continue
        if tie or value > best * (1 + 1e-9) + 1e-12:
            best, found = value, v
    return found


def adapt_tree(tree, rate, X, r, beta, tune, level, candidates, l2=0.0, min_leaf=1):
    """Return thresholds, leaf values and the leaf of every row of one adapted tree."""
    threshold = tree.threshold.astype(np.float64).copy()
    value = tree.value.copy()
    leaf_of = np.zeros(len(X), int)

    def mean(rows):
        return sum(r[i] for i in rows) / (len(rows) + l2) if rows else 0.0

    def go(place, rows, before):
        """`before`: the sum of the mixed layers above, and both parents' responses."""
        mixed, m0_parent, m1_parent = before
        is_leaf = place < 0
        at = tree.n_nodes + ~place if is_leaf else place
        p0 = p0_of(tree.count[at], len(rows), beta)
        m0, m1 = tree.mean[at], mean(rows)
        mixed = mixed + p0 * (m0 - m0_parent) + ((1 - p0) * (m1 - m1_parent) if p0 < 1 else 0.0)
        if is_leaf:
            whole = mixed if level == "layer" else p0 * m0 + ((1 - p0) * m1 if p0 < 1 else 0.0)
            value[~place] = rate * whole
            leaf_of[rows] = ~place
            return
        j, missing = tree.feature[place], tree.missing_left[place]
        held = None
        if tree.set_of[place] >= 0:
            held = tree.sets.codes(int(tree.set_of[place])).tolist()
        elif tune == "splits" and rows and np.isfinite(threshold[place]):
            v0 = threshold[place]
            x = [X[i, j] for i in rows]
            v1 = best_split(x, [r[i] for i in rows], candidates[j], missing, v0, l2, min_leaf)
            if v1 is not None:
                threshold[place] = np.float32(p0 * v0 + (1 - p0) * v1)
        left = [i for i in rows if goes_left(X[i, j], np.float32(threshold[place]), missing, held)]
        right = [i for i in rows if i not in set(left)]
        go(tree.left[place], left, (mixed, m0, m1))
        go(tree.right[place], right, (mixed, m0, m1))

    go(0 if tree.n_nodes else -1, list(range(len(X))), (0.0, 0.0, 0.0))
    return threshold, value, leaf_of


def adapt(ensemble, rate, X, y, candidates, beta, tune, level, l2=0.0, min_leaf=1):
    """Return the adapted thresholds and values of all trees, the constant and the scores."""
    p0 = p0_of(ensemble.tree(0).count[0], len(y), beta)
    base = p0 * ensemble.base + (1 - p0) * np.mean(y)
    scores = np.full(len(y), base)
    thresholds, values = [], []
    for t in range(ensemble.n_trees):
        threshold, value, leaf_of = adapt_tree(
            ensemble.tree(t), rate, X, y - scores, beta, tune, level, candidates, l2, min_leaf
        )
        scores += value[leaf_of]
        thresholds.append(threshold)
        values.append(value)
    return np.concatenate(thresholds), np.concatenate(values), base, scores
