"""BoltzRank as the paper defines it: energies summed over pairs, all rankings written out.

A ranking is a list of documents, best first. No closed form is used.
"""

from __future__ import annotations

import itertools
import math


def all_rankings(n):
    return [list(ranking) for ranking in itertools.permutations(range(n))]


def energy(ranking, potentials, alpha):
    """Return E(R): the pairs whose order contradicts the potentials make it high."""
    m = len(ranking)
    rank = {document: place for place, document in enumerate(ranking, 1)}
    total = 0.0
    for j in range(m):
        for k in range(m):
            if rank[j] > rank[k]:  # k stands above j
                total += alpha * (rank[j] - rank[k]) * (potentials[j] - potentials[k])
    return 2.0 / (m * (m - 1)) * total


def probabilities(rankings, potentials, alpha):
    powers = [math.exp(-energy(ranking, potentials, alpha)) for ranking in rankings]
    return [power / sum(powers) for power in powers]


def objective(rankings, scores, labels, value, alpha, share, temperature):
    """Return share * (the expected value) - (1 - share) * KL(target, model).

    value : function of the labels in ranked order
    """
    model = probabilities(rankings, scores, alpha)
    target = probabilities(rankings, [label / temperature for label in labels], alpha)
    expected = sum(
        p * value([labels[i] for i in ranking]) for p, ranking in zip(model, rankings, strict=True)
    )
    apart = sum(t * math.log(t / p) for t, p in zip(target, model, strict=True))
    return share * expected - (1.0 - share) * apart


def gradient(rankings, scores, *others, step=1e-5):
    """Return the objective's derivatives by the scores, as central differences."""
    found = []
    for i in range(len(scores)):
        up, down = list(scores), list(scores)
        up[i] += step
        down[i] -= step
        rise = objective(rankings, up, *others) - objective(rankings, down, *others)
        found.append(rise / (2 * step))
    return found
