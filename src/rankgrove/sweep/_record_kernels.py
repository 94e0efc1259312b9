# mypy: ignore-errors
"""Recording every order of a query along alpha, for rules that need whole orders.

The groups are in slots, ordered by rank. A crossing changes two ranks; the two groups then move
slot by slot to their new places.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._value_kernels import EXPECTED
from rankgrove.sweep._crossing_kernels import packed, sort_crossings, width_of_point
from rankgrove.sweep._line_kernels import new_scratch, open_query, query_of

# Kinds of orders: of a stretch; at a point where documents are tied; of a stretch that begins at
# (or, by rounding, within) such a point.
PLAIN, AT_POINT, AFTER_POINT = 0, 1, 2


class Slots(NamedTuple):
    """The present order: `group`, `rank` by slot; `place`, its slot, by group; `far`, scratch."""

    group: np.ndarray
    rank: np.ndarray
    place: np.ndarray
    far: np.ndarray


class Orders(NamedTuple):
    """Recorded orders of a query, the first document of which is row `first_row`.

    points, kinds : the key (-alpha) where each order begins, and its kind
    rows, tied : one order after the other: the rows, and which are tied with the one before
    """

    first_row: int
    points: np.ndarray
    kinds: np.ndarray
    rows: np.ndarray
    tied: np.ndarray


def new_slots(n: int) -> Slots:
    """Return slots for the groups of a query of `n` documents."""
    return Slots(*np.empty((4, n), np.int64))


@njit(cache=True, nogil=True)
def fill_slots(n, by_group, slots):
    """Put the groups into slots by their ranks."""
    rank, group = slots.rank, slots.group
    for k in range(n):
        r = by_group[k]
        to = k - 1
        while to >= 0 and rank[to] > r:
            rank[to + 1] = rank[to]
            group[to + 1] = group[to]
            to -= 1
        rank[to + 1] = r
        group[to + 1] = k
    for p in range(n):
        slots.place[group[p]] = p


@njit(cache=True, nogil=True)
def open_recorded(measure, q, s, t, span, kept, lines, slots, counts):
    """Find the groups of query `q` and their slots; return the crossings in ascending order.

    measure, s, t, span, kept : in, as of ``sweep_queries``
    lines, slots : out
    counts : out, the numbers of groups and of crossings

    The two rows that are returned (see ``packed``) are keys and codes.
    """
    a, b = measure.ptr[q], measure.ptr[q + 1]
    n = b - a
    groups, found, listed, keys, codes = open_query(
        query_of(measure, q), s[a:b], t[a:b], span, lines, new_scratch(n),
        np.empty(0, np.int64), np.empty(4 * n), np.empty(4 * n, np.int64),
    )  # fmt: skip
    if span.start > span.low:
        slots.rank[:groups] = kept.rank[a : a + groups]
        slots.group[:groups] = kept.state[a : a + groups]
        for k in range(groups):
            slots.place[slots.group[k]] = k
    else:
        fill_slots(groups, lines.rank, slots)
    sort_crossings(
        keys, codes, listed, np.empty(listed), np.empty(listed, np.int64),
        np.empty(listed + 1, np.int64),
    )  # fmt: skip
    counts[0] = groups
    counts[1] = found
    return packed(keys[:listed], codes[:listed], keys[:0], codes[:0])


@njit(cache=True, nogil=True)
def move(n, slots, size, single, keys, codes, e):
    """Go through all crossings at the next point; return the one after, and if any matters."""
    rank, group, place = slots.rank, slots.group, slots.place
    here = keys[e]
    matters = False
    while e < keys.size and keys[e] == here:
        down, up = codes[e] >> 32, codes[e] & 0xFFFFFFFF
        e += 1
        rank[place[down]] += size[up]
        rank[place[up]] -= size[down]
        p = place[up] - 1
        rises = True
        while True:
            # First the overtaking group rises to its rank, then the other one sinks to its own.
            if rises and (p < 0 or rank[p] <= rank[p + 1]):
                rises = False
                p = place[down]
            if not rises and (p + 1 == n or rank[p] <= rank[p + 1]):
                break
            u, v = group[p], group[p + 1]
            group[p], group[p + 1] = v, u
            place[u], place[v] = p + 1, p
            rank[p], rank[p + 1] = rank[p + 1], rank[p]
            matters |= single[u] != single[v]
            p += -1 if rises else 1
    return e, matters


@njit(cache=True, nogil=True)
def write_order(lines, slots, groups, first_row, orders, tied):
    """Write the rows in their present order, and whether each is tied with the one before."""
    r = 0
    for p in range(groups):
        u = slots.group[p]
        for m in range(lines.size[u]):
            orders[r] = first_row + lines.order[lines.member[u] + m]
            tied[r] = m > 0
            r += 1


@njit(cache=True, nogil=True)
def write_tied(lines, slots, groups, codes, first, last, first_row, orders, tied):
    """Write the order at a point where lines cross: the documents that meet there are tied."""
    far = slots.far
    for p in range(groups):
        far[p] = p
    for e in range(first, last):
        p, q = slots.place[codes[e] >> 32], slots.place[codes[e] & 0xFFFFFFFF]
        far[min(p, q)] = max(far[min(p, q)], max(p, q))
    write_order(lines, slots, groups, first_row, orders, tied)
    r = 0
    begin = 0
    end = -1
    for p in range(groups):
        if p > end:
            orders[begin:r].sort()  # equal scores in the order of the rows, as in a ranking
            begin = r
        else:
            tied[r] = True
        end = max(end, far[p])
        r += lines.size[slots.group[p]]
    orders[begin:r].sort()


@njit(cache=True, nogil=True)
def record(ties, lines, slots, groups, crossings, e, span, reach, out):
    """Continue from crossing `e` and record every new order, until `out` is full.

    Before the first crossing the present order is recorded, at NaN.

    reach : in, the alpha up to which the last point with an order of its own extends; infinite: no
        orders at points are recorded
    out : out, Orders

    Returns the next crossing, the number of orders recorded, and `reach`.
    """
    keys, codes = crossings.keys, crossings.codes
    first_row, points, kinds, orders, tied = out
    n = orders.size // points.size
    written = 0
    if e == 0:
        points[0] = np.nan
        kinds[0] = PLAIN
        write_order(lines, slots, groups, first_row, orders[:n], tied[:n])
        written = 1
    while e < keys.size and -keys[e] <= span.end and written + 1 < points.size:
        here = keys[e]
        if -here > reach:
            stop = -here + width_of_point(-here, span.convex)
            last = e + 1
            while last < keys.size and -keys[last] <= stop:
                last += 1
            documents = lines.size[codes[e] >> 32] + lines.size[codes[e] & 0xFFFFFFFF]
            if ties != EXPECTED or last > e + 1 or documents > 2:
                reach = stop
                points[written] = here
                kinds[written] = AT_POINT
                at = slice(n * written, n * written + n)
                write_tied(lines, slots, groups, codes, e, last, first_row, orders[at], tied[at])
                written += 1
        e, matters = move(groups, slots, lines.size, lines.single, keys, codes, e)
        if matters:
            points[written] = here
            kinds[written] = AFTER_POINT if -here <= reach < np.inf else PLAIN
            at = slice(n * written, n * written + n)
            write_order(lines, slots, groups, first_row, orders[at], tied[at])
            written += 1
    if e < keys.size and -keys[e] > span.end:
        e = keys.size
    return e, written, reach
