"""MART and McRank written as their papers define them: plain loops, exact greedy trees.

`y` are labels, or signs -1 and 1; `F` are scores. Losses are of one row; pseudoresponses and
steps are those of the overview paper's section 6 and of Friedman's algorithm for K classes.
"""

from __future__ import annotations

import math

import numpy as np

from tests.reference.tree import greedy_tree

# -- losses of one row --------------------------------------------------------------------------


def squared(y, F):
    return (y - F) ** 2 / 2


def logistic(y, F, sigma=1.0):
    """Equation 14, for arguments of any size."""
    v = 2 * y * sigma * F
    return math.log1p(math.exp(-v)) if v > 0 else -v + math.log1p(math.exp(v))


def softmax(F):
    most = max(F)
    parts = [math.exp(f - most) for f in F]
    return [part / math.fsum(parts) for part in parts]


def cross_entropy(k, F):
    """-log p_k."""
    most = max(F)
    return most + math.log(math.fsum(math.exp(f - most) for f in F)) - F[k]


# -- the steps of a leaf, as printed --------------------------------------------------------------


def pseudoresponse(y, F, sigma=1.0):
    return 2 * y * sigma / (1 + math.exp(2 * y * sigma * F))


def logistic_step(y, F, sigma=1.0, weight=None):
    """The Newton step of section 6, with weights of rows."""
    weight = np.ones(len(y)) if weight is None else weight
    responses = [pseudoresponse(a, f, sigma) for a, f in zip(y, F, strict=True)]
    up = math.fsum(w * r for w, r in zip(weight, responses, strict=True))
    down = math.fsum(
        w * abs(r) * (2 * sigma - abs(r)) for w, r in zip(weight, responses, strict=True)
    )
    return up / down


def balanced_step(y, F, n_positive, n_negative, sigma=1.0):
    """Equation 15."""
    responses = [pseudoresponse(a, f, sigma) for a, f in zip(y, F, strict=True)]
    share = [1 / n_positive if a > 0 else 1 / n_negative for a in y]
    up = math.fsum(r * s for r, s in zip(responses, share, strict=True))
    down = math.fsum(
        abs(r) * (2 * sigma - abs(r)) * s for r, s in zip(responses, share, strict=True)
    )
    return up / down


def friedman_step(residuals, n_classes):
    """(K - 1) / K sum r / sum |r| (1 - |r|)."""
    down = math.fsum(abs(r) * (1 - abs(r)) for r in residuals)
    return (n_classes - 1) / n_classes * math.fsum(residuals) / down


# -- whole models ---------------------------------------------------------------------------------


def _follow(features, responses, n_leaves, step, min_leaf):
    """Return what a least-squares tree on `responses` adds to every row."""
    _, leaf_of = greedy_tree(
        features, np.array(responses), np.ones(len(features)), n_leaves, min_leaf=min_leaf
    )
    values = {leaf: step(np.flatnonzero(leaf_of == leaf)) for leaf in set(leaf_of.tolist())}
    return np.array([values[leaf] for leaf in leaf_of])


def mart(features, y, rounds, n_leaves, rate, *, min_leaf=1):
    """Least-squares boosting from the mean; return the scores of the rows."""
    F = np.full(len(y), math.fsum(y) / len(y))
    for _ in range(rounds):
        residuals = y - F
        F = F + rate * _follow(
            features, residuals, n_leaves, lambda rows, r=residuals: r[rows].mean(), min_leaf
        )
    return F


def mart_logistic(features, y, rounds, n_leaves, rate, *, sigma=1.0, balanced=False, min_leaf=1):
    """Two-class boosting from the log odds (balanced: from 0); return the scores of the rows."""
    n_positive, n_negative = int((y > 0).sum()), int((y < 0).sum())
    F = np.zeros(len(y)) + (0 if balanced else math.log(n_positive / n_negative) / (2 * sigma))
    for _ in range(rounds):
        responses = np.array([pseudoresponse(a, f, sigma) for a, f in zip(y, F, strict=True)])
        if balanced:
            responses = responses * np.where(y > 0, 1 / n_positive, 1 / n_negative)

        def step(rows, F=F):
            if balanced:
                return balanced_step(y[rows], F[rows], n_positive, n_negative, sigma)
            return logistic_step(y[rows], F[rows], sigma)

        F = F + rate * _follow(features, responses, n_leaves, step, min_leaf)
    return F


def mcrank(features, codes, n_classes, rounds, n_leaves, rate, *, min_leaf=1):
    """K-class boosting from 0; return the scores, of shape (classes, rows)."""
    F = np.zeros((n_classes, len(codes)))
    for _ in range(rounds):
        p = np.array([softmax(F[:, i]) for i in range(len(codes))]).T
        for k in range(n_classes):
            residuals = (codes == k) - p[k]
            F[k] += rate * _follow(
                features,
                residuals,
                n_leaves,
                lambda rows, r=residuals: friedman_step(r[rows], n_classes),
                min_leaf,
            )
    return F


def mcrank_ordinal(features, codes, n_classes, rounds, n_leaves, rate, *, min_leaf=1):
    """One two-class model of P(y <= k) a threshold, F the log odds; return F by threshold."""
    F = np.zeros((n_classes - 1, len(codes)))
    for _ in range(rounds):
        for k in range(n_classes - 1):
            p = 1 / (1 + np.exp(-F[k]))
            residuals = (codes <= k) - p
            F[k] += rate * _follow(
                features,
                residuals,
                n_leaves,
                lambda rows, r=residuals, p=p: r[rows].sum() / (p[rows] * (1 - p[rows])).sum(),
                min_leaf,
            )
    return F
