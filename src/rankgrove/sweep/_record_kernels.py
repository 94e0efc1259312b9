# mypy: ignore-errors
"""Writing down every order a query goes through, for rules that must see whole orders."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankgrove.sweep._contribution_kernels import describe_groups
from rankgrove.sweep._crossing_kernels import sort_crossings
from rankgrove.sweep._path_kernels import (
    RECORDED,
    fill_slots,
    first_value,
    new_lines,
    new_scratch,
    open_query,
    walk,
)


@njit(cache=True, nogil=True)
def open_recorded(ties, gain, s, t, convex, low, high, start, end, kept_slots, kept_rank):
    """Return the groups of a query, their number, and the crossings in ascending order.

    Arguments as of ``sweep_queries``, of one query.
    """
    n = s.size
    lines, scratch = new_lines(n), new_scratch(n)
    groups, found, keys, codes = open_query(
        s, t, convex, low, high, n, start, end, lines, scratch, np.empty(0, np.int64),
        np.empty(4 * n), np.empty(4 * n, np.int64),
    )  # fmt: skip
    describe_groups(
        RECORDED, ties, gain, lines.order, lines.size, lines.member, groups, lines.g, lines.coef,
        lines.share, lines.step, lines.single, scratch.E,
    )  # fmt: skip
    if start > low:
        lines.rank[:groups] = kept_rank[:groups]
        lines.slots[:groups] = kept_slots[:groups]
        for k in range(groups):
            lines.place[lines.slots[k]] = k
    else:
        fill_slots(groups, lines)
    first_value(RECORDED, ties, groups, lines, lines.g, n, 1.0)
    sort_crossings(
        keys,
        codes,
        found,
        np.empty(found),
        np.empty(found, np.int64),
        np.empty(found + 1, np.int64),
    )
    return lines, groups, keys[:found], codes[:found]


@njit(cache=True, nogil=True)
def write_order(lines, groups, first_row, orders, tied):
    """Write the rows in their present order, and which are tied with the one before."""
    r = 0
    for p in range(groups):
        u = lines.slots[p]
        for m in range(lines.size[u]):
            orders[r] = first_row + lines.order[lines.member[u] + m]
            tied[r] = m > 0
            r += 1


@njit(cache=True, nogil=True)
def record(lines, groups, keys, codes, e, first_row, points, orders, tied):
    """Go on from crossing `e`, writing down every new order, until `points` is full.

    Before the first crossing the order as it stands is written down, at NaN.

    points : out, the key (-alpha) where each order begins
    orders, tied : out, one order after the other
    Returns the next crossing and how many orders were written.
    """
    n = orders.size // points.size
    written = 0
    if e == 0:
        points[0] = np.nan
        write_order(lines, groups, first_row, orders[:n], tied[:n])
        written = 1
    changes = np.empty(points.size, np.int64)
    while e < keys.size and written < points.size:
        before = written
        e, written = walk(
            RECORDED, groups, lines, keys, codes, e, lines.g, n, 1.0, 0, points, changes, written,
            written + 1,
        )  # fmt: skip
        if written > before:
            at = n * before
            write_order(lines, groups, first_row, orders[at : at + n], tied[at : at + n])
    return e, written
