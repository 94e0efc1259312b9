# mypy: ignore-errors
"""Kernels that draw sessions. Every number is a hash of the session, the position and its use."""

from __future__ import annotations

import math

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.clicks._weight_kernels import uniform
from rankgrove.jit import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# What a draw is for; the draws of lists and of clicks are numbered within these.
QUERY, RANKER, CONTEXT = np.uint64(1), np.uint64(2), np.uint64(3)
NOISE, SHUFFLE, CLICK, STOP = (np.uint64(n << 32) for n in (1, 2, 3, 4))
POSITION, CHAIN, BROWSING = 0, 1, 2


@njit(cache=True, nogil=True, inline="always")
def draw(key, s, use):
    """Return a number between 0 and 1 for a session and a use."""
    return uniform(mix(mix(key + np.uint64(s) * GOLDEN) + use * GOLDEN))


@njit(cache=True, nogil=True, inline="always")
def chosen(reached, u):
    """Return the first place where cumulative probabilities reach u."""
    low, high = 0, reached.size - 1
    while low < high:
        mid = (low + high) // 2
        if reached[mid] > u:
            high = mid
        else:
            low = mid + 1
    return low


@njit(cache=True, nogil=True)
def draw_heads(key, first, last, queries, rankers, contexts, query, ranker, context):
    """Fill the query, the ranker and the context of sessions from cumulative probabilities."""
    for s in range(first, last):
        query[s] = chosen(queries, draw(key, s, QUERY))
        ranker[s] = chosen(rankers, draw(key, s, RANKER))
        context[s] = chosen(contexts, draw(key, s, CONTEXT))


@njit(cache=True, nogil=True)
def show(key, s, ranked, scores, n_docs, n_shown, noise, shuffle_top, values, shown):
    """Fill `shown` with the documents of a session; n_shown of them are used.

    ranked : rows of the query, best first
    scores : of ranked rows, for noise
    values : scratch
    """
    if noise > 0:
        n = 0
        for j in range(n_docs):
            u = draw(key, s, NOISE + np.uint64(j))
            value = scores[j] - noise * math.log(-math.log(u))
            if n == n_shown:
                if value <= values[n - 1]:
                    continue
                n -= 1
            at = n
            while at > 0 and values[at - 1] < value:
                values[at] = values[at - 1]
                shown[at] = shown[at - 1]
                at -= 1
            values[at] = value
            shown[at] = ranked[j]
            n += 1
    else:
        for j in range(min(n_docs, max(n_shown, shuffle_top))):
            shown[j] = ranked[j]
    top = min(shuffle_top, n_docs)
    if noise > 0:
        top = min(top, n_shown)
    for j in range(top - 1, 0, -1):
        k = np.int64(draw(key, s, SHUFFLE + np.uint64(j)) * (j + 1))
        shown[j], shown[k] = shown[k], shown[j]


@njit(cache=True, nogil=True)
def simulate(
    key, first, last, query, ranker, context, query_ptr, session_ptr, ranked, scores, noise,
    shuffle_top, kind, attraction, satisfaction, examination, low, high, after_click, going,
    values, shown, pair, position, click,
):  # fmt: skip
    """Fill the impressions of sessions.

    ranked, scores : n_rankers x n_rows, in query order
    kind : which model
    attraction, satisfaction : per row of the data
    examination : contexts x positions; browsing: contexts x positions x distances
    low, high : click probability per position of irrelevant and of relevant documents examined
    after_click, going : probabilities of going on, per position after a click, and always
    """
    for s in range(first, last):
        q = query[s]
        start = query_ptr[q]
        n_docs = query_ptr[q + 1] - start
        base = session_ptr[s]
        n = session_ptr[s + 1] - base
        rows = ranked[ranker[s], start : start + n_docs]
        show(key, s, rows, scores[ranker[s], start : start + n_docs], n_docs, n, noise,
             shuffle_top, values, shown)  # fmt: skip
        alive = True
        above = -1
        for j in range(n):
            row = shown[j]
            pair[base + j] = row
            position[base + j] = j + 1
            examined = 1.0
            if kind == 0:
                examined = examination[context[s], j, 0]
            elif kind == 2:
                examined = examination[context[s], j, j - above if above >= 0 else 0]
            elif not alive:
                examined = 0.0
            p = examined * (low[j] + (high[j] - low[j]) * attraction[row])
            clicked = draw(key, s, CLICK + np.uint64(j)) < p
            click[base + j] = clicked
            if clicked:
                above = j
            if kind == 1 and alive:
                on = going
                if clicked:
                    on *= (1 - satisfaction[row]) * after_click[j]
                alive = draw(key, s, STOP + np.uint64(j)) < on
