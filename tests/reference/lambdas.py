"""Lambda gradients as the overview paper's section 7 defines them: the oracle of the kernels.

Everything is a loop over the pairs of one query, in plain Python. A pair is (i, j, |dZ|): the row
of the better document, that of the other, and how much the measure changes when they change
places in the ranking.
"""

from __future__ import annotations

import math


def ranked(scores, keys):
    """Return the rows by descending score, those of equal score by their keys."""
    return sorted(range(len(scores)), key=lambda row: (-scores[row], keys[row]))


def pairs(value, labels, scores, keys, truncation=None, gain=lambda label: label, change=None):
    """Return the pairs of unequal gain whose upper document is among the top `truncation`.

    |dZ| is the value after the swap less the one before it, or what `change(labels, a, b)` says
    of ranks a < b. A measure without a value (None) says nothing about any pair.
    """
    order = ranked(scores, keys)
    in_order = [labels[row] for row in order]
    n = len(order)
    before = value(in_order) if change is None else 0.0
    if before is None:
        return []
    found = []
    for a in range(n if truncation is None else min(truncation, n)):
        for b in range(a + 1, n):
            i, j = order[a], order[b]
            if gain(labels[i]) == gain(labels[j]):
                continue
            if change is None:
                after = list(in_order)
                after[a], after[b] = after[b], after[a]
                size = abs(value(after) - before)
            else:
                size = abs(change(in_order, a, b))
            if gain(labels[i]) < gain(labels[j]):
                i, j = j, i
            found.append((i, j, size))
    return found


def weighed(pairs, row_weight, query_weight=1.0):
    """Return the pairs with |dZ| times both documents' weights and that of the query."""
    return [(i, j, size * row_weight[i] * row_weight[j] * query_weight) for i, j, size in pairs]


def sigmoid(x):
    """Return 1 / (1 + exp(-x)), for x of any size."""
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def lambdas(pairs, scores, sigma=1.0):
    """Return for every row the sum of its lambdas, upwards, and that of their weights."""
    up, weight = [0.0] * len(scores), [0.0] * len(scores)
    for i, j, size in pairs:
        difference = sigma * (scores[i] - scores[j])
        rho, one_less_rho = sigmoid(-difference), sigmoid(difference)
        up[i] += sigma * size * rho
        up[j] -= sigma * size * rho
        weight[i] += sigma**2 * size * rho * one_less_rho
        weight[j] += sigma**2 * size * rho * one_less_rho
    return up, weight


def cost(pairs, scores, sigma=1.0):
    """Return C = sum |dZ| log(1 + exp(-sigma (s_i - s_j))), |dZ| held fixed."""
    return math.fsum(
        size * math.log1p(math.exp(-sigma * (scores[i] - scores[j]))) for i, j, size in pairs
    )
