# mypy: ignore-errors
"""The value of a query exactly where lines meet, by the measure's rule for ties.

Where two single documents meet, the expectation over their two orders is the mean of the values
just before and just after; it is never above both. Where three or more documents meet (or under
another rule for ties), the value at the point has to be computed: the documents that meet there are
one tied class. The number of documents above the class is that above any of its groups, minus those
of the class that are above the group just before the point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._value_kernels import EXPECTED, STABLE
from rankgrove.sweep._contribution_kernels import (
    contribution,
    expected_coefficients,
    ordered_coefficients,
)


class Meeting(NamedTuple):
    """Scratch for the groups that meet at one point.

    groups : those that meet. By group: is_met; above, below, state (the numbers of documents of its
        class above and below it just before the point, and the sum of the steps of those above).
        By document of a class: rows, g, coef, share, E.
    """

    groups: np.ndarray
    is_met: np.ndarray
    above: np.ndarray
    below: np.ndarray
    state: np.ndarray
    rows: np.ndarray
    g: np.ndarray
    coef: np.ndarray
    share: np.ndarray
    E: np.ndarray


@njit(cache=True, nogil=True)
def new_meeting(n):
    """Return scratch for queries of up to `n` documents."""
    i, f = np.zeros((6, n), np.int64), np.empty((4, n + 1))
    return Meeting(i[0], i[1], i[2], i[3], i[4], i[5], f[0], f[1], f[2], f[3])


@njit(cache=True, nogil=True)
def gather_meeting(lines, codes, first, last, meeting):
    """Fill in the groups that meet in the crossings first:last; return their number."""
    n = 0
    is_met, above, below, state = meeting.is_met, meeting.above, meeting.below, meeting.state
    for e in range(first, last):
        down, up = codes[e] >> 32, codes[e] & 0xFFFFFFFF
        for group in (down, up):
            if not is_met[group]:
                is_met[group] = 1
                above[group] = below[group] = state[group] = 0
                meeting.groups[n] = group
                n += 1
        above[up] += lines.size[down]
        state[up] += lines.step[down]
        below[down] += lines.size[up]
    return n


@njit(cache=True, nogil=True)
def tied_rise(query, lines, codes, first, last, meeting):
    """Return the value at a point minus the value just before it.

    Also returns this difference for the best order of the documents that meet there: rounding of
    scores may produce any of their orders.

    codes : in, codes[first:last] are the crossings at the point
    """
    rule, ties, gain, weight, depth, scale, unit = query
    n_met = gather_meeting(lines, codes, first, last, meeting)
    groups, is_met, above = meeting.groups, meeting.is_met, meeting.above
    rise = np.int64(0)
    best = np.int64(0)
    for i in range(n_met):
        u = groups[i]
        if not is_met[u] or not lines.lives[u]:
            continue
        begin = max(lines.rank[u] - above[u], 0)
        size = min(above[u] + lines.size[u] + meeting.below[u], gain.size)
        state = max(lines.state[u] - meeting.state[u], 0)
        # The class: all groups with the same number of documents of other classes above them.
        n = 0
        relevant = np.int64(0)
        before = np.int64(0)
        for k in range(i, n_met):
            v = groups[k]
            if not is_met[v] or not lines.lives[v] or lines.rank[v] - above[v] != begin:
                continue
            is_met[v] = 0
            before += lines.part[v]
            relevant += lines.step[v]
            for r in range(lines.member[v], lines.member[v] + lines.size[v]):
                meeting.rows[n] = lines.order[r]
                meeting.g[n] = lines.g[r]
                n += 1
        size = max(size, n)
        if begin >= depth:
            continue
        g, coef, share = meeting.g[:size], meeting.coef[:size], meeting.share[:size]
        g[n:] = 0.0  # those whose rank does not matter
        if ties == STABLE:
            rows = meeting.rows[:n]
            rows.sort()
            for k in range(n):
                g[k] = gain[rows[k]]
        else:
            g.sort()
        if ties == EXPECTED:
            expected_coefficients(rule, g, relevant, coef, share, meeting.E)
        else:
            ordered_coefficients(rule, g, coef, share)
        rise -= before
        rise += contribution(rule, begin, state, unit, 0, size, coef, share, weight, depth, scale)
        g.sort()
        ordered_coefficients(rule, g[::-1], coef, share)
        best -= before
        best += contribution(rule, begin, state, unit, 0, size, coef, share, weight, depth, scale)
    for i in range(n_met):
        is_met[groups[i]] = 0
    return rise, best


@njit(cache=True, nogil=True)
def tied_pairs(ties, lines, codes, first, last):
    """Return the rise of the balance of pairs at a point, and for the best order there."""
    rise = np.int64(0)
    best = np.int64(0)
    order, g = lines.order, lines.g
    for e in range(first, last):
        down, up = codes[e] >> 32, codes[e] & 0xFFFFFFFF
        for i in range(lines.member[down], lines.member[down] + lines.size[down]):
            for j in range(lines.member[up], lines.member[up] + lines.size[up]):
                balance = np.int64(g[i] > g[j]) - np.int64(g[i] < g[j])
                rise -= balance
                best += abs(balance) - balance
                if ties == STABLE:
                    rise += balance if order[i] < order[j] else -balance
                elif ties != EXPECTED:
                    rise -= abs(balance)
    return rise, best
