"""Measures written as their definitions say, in plain Python: the oracles of the kernels.

Each takes the labels of one query in ranked order and returns its value, or None where the
measure says nothing about the query (no relevant document, no pair).
"""

from __future__ import annotations

import math


def dcg(labels, k=None, gain=lambda l: 2**l - 1, discount=lambda r: 1 / math.log2(1 + r)):
    top = labels[:k] if k else labels
    return sum(gain(l) * discount(r) for r, l in enumerate(top, 1))


def ndcg(labels, k=None, **kwargs):
    best = dcg(sorted(labels, reverse=True), k, **kwargs)
    return dcg(labels, k, **kwargs) / best if best > 0 else None


def mean_ndcg(labels, **kwargs):
    if max(labels) <= 0:
        return None
    return sum(ndcg(labels, k, **kwargs) for k in range(1, len(labels) + 1)) / len(labels)


def letor_discount(rank):
    return 1.0 if rank <= 2 else 1 / math.log2(rank)


def err(labels, k=None, max_grade=3):
    if max(labels) <= 0:
        return None
    total, reach = 0.0, 1.0
    for rank, label in enumerate(labels[:k] if k else labels, 1):
        stop = (2**label - 1) / 2**max_grade
        total += reach * stop / rank
        reach *= 1 - stop
    return total


def average_precision(labels, k=None, relevant=1):
    hits = [l >= relevant for l in labels]
    if not any(hits):
        return None
    top = hits[:k] if k else hits
    return sum(sum(hits[:r]) / r for r, hit in enumerate(top, 1) if hit) / sum(hits)


def reciprocal_rank(labels, k=None, relevant=1):
    if all(l < relevant for l in labels):
        return None
    for rank, label in enumerate(labels[:k] if k else labels, 1):
        if label >= relevant:
            return 1 / rank
    return 0.0


def precision(labels, k, relevant=1):
    if all(l < relevant for l in labels):
        return None
    return sum(l >= relevant for l in labels[:k]) / k


def recall(labels, k, relevant=1):
    total = sum(l >= relevant for l in labels)
    return sum(l >= relevant for l in labels[:k]) / total if total else None


def roc_area(labels, relevant=1):
    pairs = right = 0
    for i, a in enumerate(labels):
        for j, b in enumerate(labels):
            if a >= relevant > b:
                pairs += 1
                right += i < j
    return right / pairs if pairs else None


def pairwise_accuracy(labels):
    pairs = right = 0
    for i, a in enumerate(labels):
        for b in labels[i + 1 :]:
            pairs += a != b
            right += a > b
    return right / pairs if pairs else None


def best_accuracy(labels, relevant=1):
    hits = [l >= relevant for l in labels]
    return max(
        (sum(hits[:cut]) + sum(not hit for hit in hits[cut:])) / len(hits)
        for cut in range(len(hits) + 1)
    )


def r_precision(labels, relevant=1):
    total = sum(l >= relevant for l in labels)
    return precision(labels, total, relevant) if total else None


def success(labels, k, relevant=1):
    return float(any(l >= relevant for l in labels[:k])) if max(labels) >= relevant else None


def f1(labels, k, relevant=1):
    if max(labels) < relevant:
        return None
    p, r = precision(labels, k, relevant), recall(labels, k, relevant)
    return 2 * p * r / (p + r) if p + r else 0.0


def rank_biased_precision(labels, p, k=None, relevant=1):
    if max(labels) < relevant:
        return None
    return (1 - p) * sum(p**r for r, l in enumerate(labels[:k]) if l >= relevant)


def pfound(labels, chance, decay, k=None):
    """Yandex's measure: look, and go on unless satisfied or tired."""
    look, found = 1.0, 0.0
    for l in labels[:k]:
        found += look * chance(l)
        look *= (1 - chance(l)) * decay
    return found if any(chance(l) for l in labels) else None


def bpref(labels, relevant=1):
    """Of a query whose documents are all judged."""
    good = [l >= relevant for l in labels]
    if not any(good):
        return None
    bound = min(sum(good), len(good) - sum(good))
    counts = [
        1 - min(good[:r].count(False), sum(good)) / bound if bound else 1.0
        for r in range(len(good))
        if good[r]
    ]
    return sum(counts) / sum(good)


def inferred_ap(labels, relevant=1):
    """trec_eval's form, of a query whose documents are all judged."""
    good = [l >= relevant for l in labels]
    if not any(good):
        return None
    total = 0.0
    for r in range(len(good)):
        if good[r]:
            above, hits = r, sum(good[:r])
            total += (1 + above * (hits + 1e-5) / (above + 2e-5)) / (r + 1)
    return total / sum(good)
