# mypy: ignore-errors
"""The groups of one query as arrays, from its documents to their crossings in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from rankgrove.measures._ranking_kernels import MOST_COUNTED
from rankgrove.measures._value_kernels import CASCADE, PAIRS, STABLE, SUM
from rankgrove.sweep._contribution_kernels import describe_groups, unit_of_state
from rankgrove.sweep._crossing_kernels import find_crossings, group_documents, sort_documents

RECORDED = -1  # the code of rules whose value is found by evaluating every order


class Lines(NamedTuple):
    """The groups of one query.

    By group: s, t, size, member (place of its first document in `order`), step, single (see
    describe_groups), lives (whether its rank matters), rank and state (how many documents are
    above it, and what they add up to), part (what it contributes), stay (of CASCADE: 2^-state).
    By document: order, g, coef, share.
    """

    s: np.ndarray
    t: np.ndarray
    single: np.ndarray
    stay: np.ndarray
    size: np.ndarray
    member: np.ndarray
    step: np.ndarray
    lives: np.ndarray
    rank: np.ndarray
    state: np.ndarray
    part: np.ndarray
    order: np.ndarray
    g: np.ndarray
    coef: np.ndarray
    share: np.ndarray


@njit(cache=True, nogil=True)
def new_lines(n: int) -> Lines:
    """Return room for the groups of a query of up to `n` documents."""
    f, i = np.empty((7, n)), np.empty((8, n), np.int64)
    return Lines(
        f[0], f[1], f[2], f[3], i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], f[4], f[5], f[6]
    )


class Scratch(NamedTuple):
    """Room that queries share: for sorting documents, rows of crossings, tied groups."""

    key: np.ndarray
    other_key: np.ndarray
    other_index: np.ndarray
    counted: np.ndarray
    taken: np.ndarray
    c: np.ndarray
    E: np.ndarray


@njit(cache=True, nogil=True)
def new_scratch(n):
    """Return scratch for queries of up to `n` documents."""
    f, few = np.empty((4, n + 1)), np.empty((2, MOST_COUNTED), np.int32)
    return Scratch(f[0], f[1], np.empty(n, np.int64), few[0], few[1], f[2], f[3])


@njit(cache=True, nogil=True)
def counted_depth(rule, depth, weight):
    """Return how many ranks of a query count."""
    if rule in (PAIRS, RECORDED):
        return weight.size
    n = min(depth, weight.size)
    while n > 0 and weight[n - 1] == 0.0:
        n -= 1
    return n


@njit(cache=True, nogil=True)
def mark_living(rule, ties, n_groups, lines):
    """Find the groups whose rank matters: not those that contribute nothing at any rank."""
    all_live = ties == STABLE or rule in (PAIRS, RECORDED)
    for k in range(n_groups):
        lives = all_live
        for r in range(lines.member[k], lines.member[k] + lines.size[k]):
            g = lines.g[r]
            lives |= g != 0.0 if rule in (SUM, CASCADE) else g > 0.0
        lines.lives[k] = np.int64(lives)


@njit(cache=True, nogil=True)
def open_query(
    rule, ties, gain, s, t, convex, low, high, depth, start, end, lines, scratch, bins, keys, codes
):
    """Group the documents of a query and find its crossings.

    Returns what find_crossings does, and what the state counts 1 as.
    """
    order = lines.order[: s.size]
    sort_documents(
        s, t, convex, low, scratch.key, order, scratch.counted, scratch.taken, scratch.other_key,
        scratch.other_index,
    )  # fmt: skip
    n = group_documents(s, t, order, lines.s, lines.t, lines.size, lines.member)
    unit = unit_of_state(rule, gain)
    describe_groups(
        rule, ties, gain, unit, order, lines.size, lines.member, n, lines.g, lines.coef,
        lines.share, lines.step, lines.single, scratch.E,
    )  # fmt: skip
    mark_living(rule, ties, n, lines)
    groups, found, listed, keys, codes = find_crossings(
        lines.s, lines.t, lines.size, lines.member, lines.step, lines.single, lines.lives, n,
        convex, low, high, depth, start, end, lines.rank, lines.state, scratch.c, bins, keys, codes,
    )  # fmt: skip
    return groups, found, listed, keys, codes, unit
