"""Lambda gradients as the overview paper's section 7 defines them: the oracle of the kernels.

Everything is a loop over the pairs of one query, in plain Python. A pair is (i, j, |dZ|): the row
of the better document, that of the other, and how much the measure changes when they change
places in the ranking.
"""

from __future__ import annotations

import math

from tests.reference import measures


def ranked(scores, keys):
    """Return the rows by descending score, those of equal score by their keys."""
    return sorted(range(len(scores)), key=lambda row: (-scores[row], keys[row]))


def changing_value(measure, k=None, beyond_cutoff=True, **kwargs):
    """Return the value whose change by a swap is a pair's |dZ|: a function of labels in order.

    measure : a function of `measures`, k its cutoff, kwargs what else it takes
    beyond_cutoff : False: the measure itself, so that ranks below the cutoff weigh nothing. True:
        the whole ranking's value, NDCG's over the ideal DCG at the cutoff as before.
    """
    if k is None or not beyond_cutoff:
        return lambda labels: measure(labels, **({} if k is None else {"k": k}), **kwargs)
    if measure is not measures.ndcg:
        return lambda labels: measure(labels, **kwargs)

    def over_the_cut_ideal(labels):
        best = measures.dcg(sorted(labels, reverse=True), k, **kwargs)
        return measures.dcg(labels, **kwargs) / best if best > 0 else None

    return over_the_cut_ideal


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


def normalised_lambdas(pairs, scores, sigma=1.0, query_weight=1.0):
    """Return what `lambdas` does where normalise=True, as LambdaObjective documents it.

    |dZ| is divided by 0.01 + sigma |s_i - s_j|, unless all scores of the query are equal. With S,
    the sum over all documents and their pairs of |dZ| rho (no sigma in it), all sums of the query
    are then scaled by log2(1 + S) / S. The query's weight comes last.
    """
    if min(scores) < max(scores):
        pairs = [(i, j, size / (0.01 + sigma * abs(scores[i] - scores[j]))) for i, j, size in pairs]
    in_pairs = [size * sigmoid(sigma * (scores[j] - scores[i])) for i, j, size in pairs]
    S = 2 * math.fsum(in_pairs)  # every pair has two documents
    scale = query_weight * (math.log2(1 + S) / S if S > 0 else 1.0)
    return tuple([scale * x for x in sums] for sums in lambdas(pairs, scores, sigma))


def cost(pairs, scores, sigma=1.0):
    """Return C = sum |dZ| log(1 + exp(-sigma (s_i - s_j))), |dZ| held fixed."""
    return math.fsum(
        size * math.log1p(math.exp(-sigma * (scores[i] - scores[j]))) for i, j, size in pairs
    )
