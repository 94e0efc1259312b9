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
