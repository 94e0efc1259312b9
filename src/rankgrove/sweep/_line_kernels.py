# mypy: ignore-errors
"""The groups of one query as arrays, from its documents to their crossings in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import MOST_COUNTED
from rankgrove.measures._value_kernels import CASCADE, PAIRS, STABLE, SUM
from rankgrove.sweep._contribution_kernels import describe_groups, unit_of_state
from rankgrove.sweep._crossing_kernels import find_crossings, group_documents, sort_documents

RECORDED = -1  # the code of rules whose value is found by evaluating every order


# Arguments that belong together are one NamedTuple. Python passes those of sweep_queries as plain
# tuples, to which it gives their names back: Numba takes about 4 microseconds per call longer for
# NamedTuples, up to 5 % of a sweep. A kernel that uses an array often takes it out of the tuple
# first: Numba may count a reference every time it is taken out.


class Measured(NamedTuple):
    """A prepared measure: what the values of all queries are computed from.

    rule, ties : the codes of the measure's rule and of its rule for ties
    gain, weight, ptr, depth : as of the prepared measure
    skip : the queries whose value is fixed
    scale : the fixed-point number that represents 1
    """

    rule: int
    ties: int
    gain: np.ndarray
    weight: np.ndarray
    ptr: np.ndarray
    skip: np.ndarray
    depth: int
    scale: float


class Query(NamedTuple):
    """What the value of one query is computed from.

    As of :class:`Measured`; depth : the number of ranks that count; unit : the whole number that
    represents 1 in states.
    """

    rule: int
    ties: int
    gain: np.ndarray
    weight: np.ndarray
    depth: int
    scale: float
    unit: float


class Span(NamedTuple):
    """The form of the combination, the whole range low .. high, and its part start .. end."""

    convex: bool
    low: float
    high: float
    start: float
    end: float


class Kept(NamedTuple):
    """The state at the end of one part of the range, where the next part starts.

    rank, state : by row: of every group (of recorded orders: of every slot, its rank and its group)
    reach : by query: the alpha up to which its last point extends, where the value at that point is
        not the mean of those on both sides; infinite if single points are not considered
    """

    rank: np.ndarray
    state: np.ndarray
    reach: np.ndarray


class Crossings(NamedTuple):
    """Crossings in ascending order.

    keys : -alpha; codes : the overtaken group << 32 | the overtaking group
    """

    keys: np.ndarray
    codes: np.ndarray


class Lines(NamedTuple):
    """The groups of one query.

    By group: s, t, size, member (place of its first document in `order`), step and single (see
    describe_groups), lives (whether its rank matters), rank and state (the number of documents
    above it, and the sum of their steps), part (its contribution), stay (for CASCADE: 2^-state).
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
    """Scratch that queries share: for sorting documents, rows of crossings, tied groups."""

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
    """Return the number of ranks of a query that count."""
    if rule in (PAIRS, RECORDED):
        return weight.size
    n = min(depth, weight.size)
    while n > 0 and weight[n - 1] == 0.0:
        n -= 1
    return n


@njit(cache=True, nogil=True)
def query_of(measure, q):
    """Return what the value of query `q` is computed from."""
    a, b = measure.ptr[q], measure.ptr[q + 1]
    gain, weight = measure.gain[a:b], measure.weight[a:b]
    depth = counted_depth(measure.rule, measure.depth, weight)
    unit = unit_of_state(measure.rule, gain)
    return Query(measure.rule, measure.ties, gain, weight, depth, measure.scale, unit)


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
def open_query(query, s, t, span, lines, scratch, bins, keys, codes):
    """Group the documents of a query and find its crossings.

    s, t : in, the query's two scores; lines : out; bins, keys, codes : see find_crossings

    Returns what find_crossings returns.
    """
    order = lines.order[: s.size]
    sort_documents(s, t, span.convex, span.low, order, scratch)
    n = group_documents(s, t, order, lines.s, lines.t, lines.size, lines.member)
    describe_groups(query, lines, n, scratch.E)
    mark_living(query.rule, query.ties, n, lines)
    return find_crossings(lines, n, span, query.depth, scratch.c, bins, keys, codes)
