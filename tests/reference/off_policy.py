"""Counterfactual estimates as their definitions say: session by session, in plain Python.

A session is (query, documents in shown order, clicks).
"""

from __future__ import annotations

import math


def by_position(sessions, rankings, look, reward="clicks", clip=math.inf, model=None):
    """Clicks over the mean examination of the document in its query's sessions, reweighted."""
    k = len(look)
    values = []
    for query, _, _ in sessions:
        same = [one for one in sessions if one[0] == query]
        value = 0.0
        for place, document in enumerate(rankings[query][:k]):
            new = look[place] if reward == "clicks" else 1 / math.log2(2 + place)
            shown = [
                (look[docs.index(document)], clicks[docs.index(document)])
                for _, docs, clicks in same
                if document in docs
            ]
            guess = model[query, document] if model else 0.0
            value += new * guess
            seen = sum(theta for theta, _ in shown) / len(same)
            if seen > 0:
                weight = min(new / seen, clip)
                value += weight * sum(c - theta * guess for theta, c in shown) / len(same)
        values.append(value)
    return sum(values) / len(values)


def by_item_and_position(sessions, rankings):
    """The click rate of every document in its new position, where it was there."""
    values = []
    for query, _, _ in sessions:
        same = [one for one in sessions if one[0] == query]
        value = 0.0
        for place, document in enumerate(rankings[query]):
            there = [
                clicks[place]
                for _, docs, clicks in same
                if place < len(docs) and docs[place] == document
            ]
            value += sum(there) / len(there) if there else 0.0
        values.append(value)
    return sum(values) / len(values)
