# mypy: ignore-errors
"""Following the order of every query's documents along alpha, crossing by crossing.

The groups stand in slots, in the order of their rank: the number of documents above them by the
pairwise rule of :mod:`._crossing_kernels`. A crossing changes two ranks; the two groups then move
slot by slot to where they belong. Where several lines cross at one point the moves between add up
to the right whole, so nothing needs to be told apart; where rounding lets three lines cross in an
impossible order, ranks are equal for a moment and right again after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from rankgrove.measures._ranking_kernels import MOST_COUNTED
from rankgrove.measures._value_kernels import CASCADE, FIRST, PAIRS, PRECISIONS
from rankgrove.sweep._contribution_kernels import (
    MOST_LOG,
    contribution,
    describe_groups,
    pairs_between,
    pairs_within,
)
from rankgrove.sweep._crossing_kernels import (
    find_crossings,
    group_documents,
    grown,
    sort_crossings,
    sort_documents,
)

RECORDED = -1  # the code of rules whose value is found by evaluating every order


class Lines(NamedTuple):
    """The groups of one query.

    By group: s, t, size, member (place of its first document in `order`), place (its slot), step,
    single (see describe_groups). By slot: slots (its group), rank, begin, state, part (documents
    above by the pairwise rule and by place, what they add up to, what the slot contributes). By
    document: order, g, coef, share.
    """

    s: np.ndarray
    t: np.ndarray
    single: np.ndarray
    size: np.ndarray
    member: np.ndarray
    rank: np.ndarray
    place: np.ndarray
    step: np.ndarray
    slots: np.ndarray
    begin: np.ndarray
    state: np.ndarray
    part: np.ndarray
    order: np.ndarray
    g: np.ndarray
    coef: np.ndarray
    share: np.ndarray


@njit(cache=True, nogil=True)
def new_lines(n):
    """Return room for the groups of a query of up to `n` documents."""
    i, f = np.empty((10, n), np.int64), np.empty((6, n))
    return Lines(
        f[0], f[1], f[2], i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], f[3], f[4],
        f[5],
    )  # fmt: skip


class Scratch(NamedTuple):
    """Room that queries share: for sorting documents, rows of crossings, tied groups."""

    key: np.ndarray
    other_key: np.ndarray
    other_index: np.ndarray
    above: np.ndarray
    taken: np.ndarray
    c: np.ndarray
    E: np.ndarray


@njit(cache=True, nogil=True)
def new_scratch(n):
    """Return scratch for queries of up to `n` documents."""
    f, few = np.empty((4, n + 1)), np.empty((2, MOST_COUNTED), np.int32)
    return Scratch(f[0], f[1], np.empty(n, np.int64), few[0], few[1], f[2], f[3])


# -- one query --------------------------------------------------------------------------------


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
def open_query(s, t, convex, low, high, depth, start, end, lines, scratch, bins, keys, codes):
    """Group the documents of a query, find its crossings; return what find_crossings does."""
    order = lines.order[: s.size]
    sort_documents(
        s, t, convex, low, scratch.key, order, scratch.above, scratch.taken, scratch.other_key,
        scratch.other_index,
    )  # fmt: skip
    n = group_documents(s, t, order, lines.s, lines.t, lines.size, lines.member)
    return find_crossings(
        lines.s, lines.t, lines.size, lines.member, n, convex, low, high, depth, start, end,
        lines.rank, scratch.c, bins, keys, codes,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def fill_slots(n, lines):
    """Put the groups into slots by rank; `rank`, which was by group, is by slot then."""
    rank, slots = lines.rank, lines.slots
    for k in range(n):
        r = rank[k]
        to = k - 1
        while to >= 0 and rank[to] > r:
            rank[to + 1] = rank[to]
            slots[to + 1] = slots[to]
            to -= 1
        rank[to + 1] = r
        slots[to + 1] = k
    for p in range(n):
        lines.place[slots[p]] = p


@njit(cache=True, nogil=True, inline="always")
def contribution_at(rule, begin, state, u, member, size, coef, share, weight, depth, scale):
    """Return what group `u` contributes; a lone document's case is spelled out, for speed."""
    if size[u] > 1 or rule == CASCADE:
        return contribution(
            rule, begin, state, member[u], size[u], coef, share, weight, depth, scale
        )
    if begin >= depth or (rule == FIRST and state > 0):
        return np.int64(0)
    own = coef[member[u]]
    if rule == PRECISIONS:
        own += state * share[member[u]]
    return np.int64(np.rint(own * weight[begin] * scale))


@njit(cache=True, nogil=True)
def first_value(rule, ties, n, lines, weight, depth, scale):
    """Fill all slots; return the sum of what they contribute (of PAIRS: the balance of pairs)."""
    slots, size, member, step = lines.slots, lines.size, lines.member, lines.step
    g, coef, share, part = lines.g, lines.coef, lines.share, lines.part
    begin, state = lines.begin, lines.state
    documents = 0
    sum_of_steps = np.int64(0)
    total = np.int64(0)
    for p in range(n):
        u = slots[p]
        begin[p] = documents
        state[p] = sum_of_steps
        if rule == PAIRS:
            total += pairs_within(g, member[u], size[u], ties)
            for q in range(p + 1, n):
                v = slots[q]
                total += pairs_between(g, member[u], size[u], member[v], size[v])
        elif rule != RECORDED:
            part[p] = contribution_at(
                rule, begin[p], state[p], u, member, size, coef, share, weight, depth, scale
            )
            total += part[p]
        documents += size[u]
        sum_of_steps += step[u]
        if rule == CASCADE:
            sum_of_steps = min(sum_of_steps, MOST_LOG)
    return total


@njit(cache=True, nogil=True)
def pairs_fixed_point(balance, weight, scale):
    """Return pairwise accuracy of a balance of pairs: (pairs + balance) / 2 over the pairs."""
    return np.int64(np.rint((0.5 + 0.5 * balance * weight) * scale))


@njit(cache=True, nogil=True)
def walk(
    rule, n, lines, keys, codes, e, weight, depth, scale, total, points, changes, written, most
):
    """Go through the crossings from `e` on, until the value has changed `most` times.

    keys, codes : in, the crossings in ascending order
    total : in, of PAIRS the balance of pairs
    points, changes : out, from `written` on: the keys (-alpha) where the value changes, and by
        how much (of RECORDED: how many exchanges there may change it)

    Returns the next crossing, and how many changes are written now.
    """
    # The arrays by themselves: taking them out of the tuple costs more than using them.
    rank, slots, place, size = lines.rank, lines.slots, lines.place, lines.size
    member, step, single, begin = lines.member, lines.step, lines.single, lines.begin
    state, part, g, coef, share = lines.state, lines.part, lines.g, lines.coef, lines.share
    while e < keys.size and written < most:
        here = keys[e]
        change = np.int64(0)
        while e < keys.size and keys[e] == here:
            down, up = codes[e] >> 32, codes[e] & 0xFFFFFFFF
            e += 1
            rank[place[down]] += size[up]
            rank[place[up]] -= size[down]
            p = place[up] - 1
            rises = True
            while True:
                # First the one that overtakes rises to its rank, then the other sinks to its own.
                if rises and (p < 0 or rank[p] <= rank[p + 1]):
                    rises = False
                    p = place[down]
                if not rises and (p + 1 == n or rank[p] <= rank[p + 1]):
                    break
                u, v = slots[p], slots[p + 1]
                slots[p], slots[p + 1] = v, u
                place[u], place[v] = p + 1, p
                rank[p], rank[p + 1] = rank[p + 1], rank[p]
                begin[p + 1] = begin[p] + size[v]
                state[p + 1] = state[p] + step[v]
                if rule == CASCADE:
                    state[p + 1] = min(state[p + 1], MOST_LOG)
                if begin[p] < depth and single[u] != single[v]:
                    if rule == RECORDED:
                        change += 1
                    elif rule == PAIRS:
                        change -= 2 * pairs_between(g, member[u], size[u], member[v], size[v])
                    else:
                        change -= part[p] + part[p + 1]
                        part[p] = contribution_at(
                            rule, begin[p], state[p], v, member, size, coef, share, weight, depth,
                            scale,
                        )  # fmt: skip
                        part[p + 1] = contribution_at(
                            rule, begin[p + 1], state[p + 1], u, member, size, coef, share, weight,
                            depth, scale,
                        )  # fmt: skip
                        change += part[p] + part[p + 1]
                p += -1 if rises else 1
        if rule == PAIRS:
            before = pairs_fixed_point(total, weight[0], scale)
            total += change
            change = pairs_fixed_point(total, weight[0], scale) - before
        if change != 0:
            points[written] = here
            changes[written] = change
            written += 1
    return e, written


# -- all queries ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def longest_query(ptr, first, last):
    """Return the number of documents of the longest query."""
    n = 0
    for q in range(first, last):
        n = max(n, ptr[q + 1] - ptr[q])
    return n


@njit(cache=True, nogil=True)
def sweep_queries(
    rule, ties, gain, weight, ptr, skip, depth, s, t, convex, low, high, start, end, scale,
    kept_slots, kept_rank, initial, first, last,
):  # fmt: skip
    """Follow the queries from `first` to before `last` from alpha `start` to `end`.

    rule .. depth : in, a prepared measure; skip : in, the queries whose value is fixed
    s, t : in, the two scores; low, high : in, the whole range, of which start .. end is a part
    scale : in, what the fixed point counts 1 as
    kept_slots, kept_rank : inout, by row: the order at `start` (not looked at where that is
        `low`), and at `end`
    initial : out, every query's value just after `start`

    Returns the keys (-alpha) at which values change, by how much, and the number of crossings.
    """
    n = longest_query(ptr, first, last)
    lines, scratch, no_bins = new_lines(n), new_scratch(n), np.empty(0, np.int64)
    keys, codes = np.empty(4 * n), np.empty(4 * n, np.int64)
    other_keys, other_codes = np.empty(4 * n), np.empty(4 * n, np.int64)
    counts = np.empty(4 * n + 1, np.int64)
    points, changes = np.empty(64 * n), np.empty(64 * n, np.int64)
    n_changes = 0
    n_crossings = 0
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        initial[q] = 0
        if skip[q]:
            continue
        w = weight[a:b]
        deep = counted_depth(rule, depth, w)
        groups, found, keys, codes = open_query(
            s[a:b], t[a:b], convex, low, high, deep, start, end, lines, scratch, no_bins, keys,
            codes,
        )  # fmt: skip
        n_crossings += found
        describe_groups(
            rule, ties, gain[a:b], lines.order, lines.size, lines.member, groups, lines.g,
            lines.coef, lines.share, lines.step, lines.single, scratch.E,
        )  # fmt: skip
        if start > low:
            for k in range(groups):
                lines.rank[k] = kept_rank[a + k]
                lines.slots[k] = kept_slots[a + k]
                lines.place[lines.slots[k]] = k
        else:
            fill_slots(groups, lines)
        total = first_value(rule, ties, groups, lines, w, deep, scale)
        initial[q] = pairs_fixed_point(total, w[0], scale) if rule == PAIRS else total
        if found > other_keys.size:
            other_keys, other_codes = np.empty(keys.size), np.empty(keys.size, np.int64)
            counts = np.empty(keys.size + 1, np.int64)
        sort_crossings(keys, codes, found, other_keys, other_codes, counts)
        if n_changes + found > points.size:
            points = grown(points, n_changes + found)
            changes = grown(changes, n_changes + found)
        _, n_changes = walk(
            rule, groups, lines, keys[:found], codes, 0, w, deep, scale, total, points, changes,
            n_changes, n_changes + found,
        )  # fmt: skip
        for k in range(groups):
            kept_rank[a + k] = lines.rank[k]
            kept_slots[a + k] = lines.slots[k]
    return points[:n_changes].copy(), changes[:n_changes].copy(), n_crossings


@njit(cache=True, nogil=True)
def count_crossings(
    rule, weight, ptr, skip, depth, s, t, convex, low, high, start, end, bins, first, last
):
    """Add to `bins`, equal parts of start .. end, how many crossings lie in each."""
    n = longest_query(ptr, first, last)
    lines, scratch = new_lines(n), new_scratch(n)
    keys, codes = np.empty(0), np.empty(0, np.int64)
    for q in range(first, last):
        if not skip[q]:
            a, b = ptr[q], ptr[q + 1]
            deep = counted_depth(rule, depth, weight[a:b])
            open_query(
                s[a:b], t[a:b], convex, low, high, deep, start, end, lines, scratch, bins, keys,
                codes,
            )  # fmt: skip
