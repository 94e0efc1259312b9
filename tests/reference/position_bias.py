"""Position bias as its papers define it, in plain Python: the oracle of the kernels."""

from __future__ import annotations

import math
import random

from tests.reference.lambdas import ranked, sigmoid


def evened(pairs, scores, sigma, normalise):
    """Return pairs with |dZ| over 0.01 + sigma |s_i - s_j|, unless all scores are equal."""
    if not normalise or min(scores) == max(scores):
        return pairs
    return [(i, j, size / (0.01 + sigma * abs(scores[i] - scores[j]))) for i, j, size in pairs]


def scale_of(pairs, scores, sigma, normalise):
    """Return log2(1 + S) / S of a query's pairs, which are without the weights of clicks."""
    S = 2 * math.fsum(size * sigmoid(sigma * (scores[j] - scores[i])) for i, j, size in pairs)
    return math.log2(1 + S) / S if normalise and S > 0 else 1.0


def weighed_lambdas(pairs, scores, factor, sigma=1.0, normalise=False):
    """Return lambdas and weights of (clicked, other, |dZ|) pairs times factor(clicked, other)."""
    pairs = evened(pairs, scores, sigma, normalise)
    scale = scale_of(pairs, scores, sigma, normalise)
    up, weight = [0.0] * len(scores), [0.0] * len(scores)
    for i, j, size in pairs:
        rho = sigmoid(sigma * (scores[j] - scores[i]))
        push = scale * size * factor(i, j)
        up[i] += sigma * push * rho
        up[j] -= sigma * push * rho
        for row in (i, j):
            weight[row] += sigma**2 * push * rho * (1 - rho)
    return up, weight


def linear_lambdas(size, corrected, scores, keys, truncation=None, sigma=1.0, normalise=False):
    """Return lambdas where every document i pushes itself over all others, by corrected[i].

    size(a, b) is the difference of the weights of ranks a and b, from 0. It is divided by the
    distance of scores where `normalise`; queries are not scaled.
    """
    order = ranked(scores, keys)
    up, weight = [0.0] * len(scores), [0.0] * len(scores)
    for a in range(len(order) if truncation is None else min(truncation, len(order))):
        for b in range(a + 1, len(order)):
            ((_, _, push),) = evened([(order[a], order[b], size(a, b))], scores, sigma, False)
            if normalise and min(scores) < max(scores):
                push /= 0.01 + sigma * abs(scores[order[a]] - scores[order[b]])
            for i, j in ((order[a], order[b]), (order[b], order[a])):
                rho = sigmoid(sigma * (scores[j] - scores[i]))
                up[i] += sigma * push * corrected[i] * rho
                up[j] -= sigma * push * corrected[i] * rho
                for row in (i, j):
                    weight[row] += sigma**2 * push * abs(corrected[i]) * rho * (1 - rho)
    return up, weight


def losses(pairs, scores, plus, minus, sigma=1.0, normalise=False):
    """Return {row: loss / t-} of clicked and {row: loss / t+} of other documents.

    plus, minus : the ratio of every row
    """
    clicked, other = [0.0] * len(scores), [0.0] * len(scores)
    for i, j, size in evened(pairs, scores, sigma, normalise):
        loss = size * -math.log(sigmoid(sigma * (scores[i] - scores[j])))
        clicked[i] += loss / minus[j]
        other[j] += loss / plus[i]
    return clicked, other


def ratios(losses_by_cell, shown, norm):
    """Return t of every cell from the sums of losses: relative to the first cell."""
    mean = [loss / n for loss, n in zip(losses_by_cell, shown, strict=True)]
    return [(x / mean[0]) ** (1 / (norm + 1)) for x in mean]


def newton(bias, gradient, hessian, rate, l2):
    """Return the additive bias after a step, relative to the first cell."""
    moved = [
        b + rate * (g - l2 * b) / (h + l2) for b, g, h in zip(bias, gradient, hessian, strict=True)
    ]
    return [b - moved[0] for b in moved]


def position_based_clicks(relevance, order, examination, seed):
    """Return sessions of (row, position, click): shown in the given orders, examined, clicked."""
    draw = random.Random(seed)
    return [
        [
            (row, k + 1, draw.random() < examination[k] * relevance[row])
            for k, row in enumerate(session[: len(examination)])
        ]
        for session in order
    ]
