"""Structural SVMs for rankings as the SVM-map paper defines them: the oracle of the oracles.

A ranking is a list of document numbers, best first. Everything is plain Python.
"""

from __future__ import annotations

import itertools
import math


def psi(features, relevant, order):
    """Return Psi(x, y): the mean over pairs of +-(phi_i - phi_j), plus where i stands before j."""
    place = {d: r for r, d in enumerate(order)}
    good = [d for d in order if relevant[d]]
    bad = [d for d in order if not relevant[d]]
    total = [0.0] * len(features[0])
    for i in good:
        for j in bad:
            sign = 1 if place[i] < place[j] else -1
            for k in range(len(total)):
                total[k] += sign * (features[i][k] - features[j][k])
    return [value / (len(good) * len(bad)) for value in total]


def perfect(relevant):
    """Return a ranking with the relevant documents first."""
    return sorted(range(len(relevant)), key=lambda d: not relevant[d])


def map_loss(labels):
    """Return 1 - average precision of relevance by rank."""
    precisions = [sum(labels[: r + 1]) / (r + 1) for r, good in enumerate(labels) if good]
    return 1 - sum(precisions) / len(precisions)


def roc_loss(labels):
    """Return the share of pairs in the wrong order."""
    wrong = sum(not a and b for a, b in itertools.combinations(labels, 2))
    return wrong / (sum(labels) * (len(labels) - sum(labels)))


def mrr_loss(labels):
    """Return 1 - the reciprocal rank of the first relevant document."""
    return 1 - 1 / (1 + list(labels).index(True))


def ndcg_loss(labels):
    """Return 1 - NDCG of binary relevance over all ranks."""
    ideal = sum(1 / math.log2(2 + r) for r in range(sum(labels)))
    return 1 - sum(1 / math.log2(2 + r) for r, good in enumerate(labels) if good) / ideal


LOSSES = {"map": map_loss, "roc": roc_loss, "mrr": mrr_loss, "ndcg": ndcg_loss}


def violation(loss, scores, relevant, order):
    """Return H(y; w) = Delta + w . Psi(x, y) - w . Psi(x, true), of scores w . phi."""
    column = [[s] for s in scores]
    (found,), (true,) = psi(column, relevant, order), psi(column, relevant, perfect(relevant))
    return loss([bool(relevant[d]) for d in order]) + found - true


def interleavings(scores, relevant):
    """Give all rankings whose relevant, and whose irrelevant, documents stand by score."""
    by_score = sorted(range(len(scores)), key=lambda d: -scores[d])
    good = [d for d in by_score if relevant[d]]
    bad = [d for d in by_score if not relevant[d]]
    for spots in itertools.combinations(range(len(scores)), len(good)):
        one, other = iter(good), iter(bad)
        yield [next(one) if r in spots else next(other) for r in range(len(scores))]


def most_violated(loss, scores, relevant):
    """Return the largest H over all interleavings."""
    return max(
        violation(loss, scores, relevant, order) for order in interleavings(scores, relevant)
    )


def greedy_positions(scores, relevant):
    """Return opt_1, ..., opt_N of Algorithm 2, each by a search over all places (equation 13)."""
    good = sorted((s for s, r in zip(scores, relevant, strict=True) if r), reverse=True)
    bad = sorted((s for s, r in zip(scores, relevant, strict=True) if not r), reverse=True)
    p, n = len(good), len(bad)

    def delta(j, k):  # equation 5, with the 1 / (P N) of Psi that it leaves out
        change = (j / (j + k) - (j - 1) / (j + k - 1)) / p
        return change - 2 * (good[k - 1] - bad[j - 1]) / (p * n)

    def slide(j, k):  # equation 6: delta_j(k, P + 1)
        return math.fsum(delta(j, i) for i in range(k, p + 1))

    return [max(range(p + 1, 0, -1), key=lambda k: slide(j, k)) for j in range(1, n + 1)]


def equation_8(scores, relevant, positions):
    """Return H of the ranking that `positions` o_1 <= ... <= o_N encode, by equation 8."""
    good = sorted((s for s, r in zip(scores, relevant, strict=True) if r), reverse=True)
    bad = sorted((s for s, r in zip(scores, relevant, strict=True) if not r), reverse=True)
    p, n = len(good), len(bad)
    return math.fsum(
        (j / (j + k) - (j - 1) / (j + k - 1)) / p - 2 * (good[k - 1] - bad[j - 1]) / (p * n)
        for j, position in enumerate(positions, 1)
        for k in range(position, p + 1)
    )
