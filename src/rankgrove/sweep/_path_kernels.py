# mypy: ignore-errors
"""Following the ranks of every query's documents along alpha, crossing by crossing.

A group's rank is the number of documents above it by the rule of :mod:`._crossing_kernels`, its
state what those add up to. A crossing changes both of two groups, and a value is the sum of
what the groups contribute at their ranks: who stands at the other ranks need not be known. Where
several lines cross at one point the changes between add up to the right whole, so nothing needs to
be told apart; where rounding lets three lines cross in an impossible order, ranks are equal for a
moment and right again after it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from rankgrove.measures._value_kernels import CASCADE, EXPECTED, FIRST, PAIRS, PRECISIONS, SUM
from rankgrove.sweep._contribution_kernels import contribution, pairs_between, pairs_within
from rankgrove.sweep._crossing_kernels import grown, packed, sort_crossings, width_of_point
from rankgrove.sweep._line_kernels import counted_depth, new_lines, new_scratch, open_query
from rankgrove.sweep._tie_kernels import new_meeting, tied_pairs, tied_rise

MASK = 0xFFFFFFFF
MOST_ROOM = 1 << 18  # changes that room is made for before there are any

# -- one query --------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def lone_contribution(rule, gain, state, stay, weight, scale):
    """Return what a group of one document contributes at a rank of a weight."""
    if rule == FIRST and state > 0:
        return np.int64(0)
    value = gain
    if rule == PRECISIONS:
        value = np.float64(gain > 0.0) * (1.0 + state)
    elif rule == FIRST:
        value = np.float64(gain > 0.0)
    value *= weight
    if rule == CASCADE:
        value *= stay
    return np.int64(np.rint(value * scale))


@njit(cache=True, nogil=True)
def first_value(rule, ties, n, lines, unit, weight, depth, scale):
    """Fill what groups contribute; return the sum (of PAIRS: the balance of pairs)."""
    size, member, rank, state = lines.size, lines.member, lines.rank, lines.state
    stay, g = lines.stay, lines.g
    total = np.int64(0)
    for u in range(n):
        if rule == PAIRS:
            total += pairs_within(g, member[u], size[u], ties)
            for v in range(n):
                if rank[u] < rank[v] or (rank[u] == rank[v] and u < v):
                    total += pairs_between(g, member[u], size[u], member[v], size[v])
            continue
        if rule == CASCADE:
            stay[u] = np.exp2(-state[u] / unit)
        lines.part[u] = contribution(
            rule, rank[u], state[u], unit, member[u], size[u], lines.coef, lines.share, weight,
            depth, scale,
        )  # fmt: skip
        total += lines.part[u]
    return total


@njit(cache=True, nogil=True)
def pairs_fixed_point(balance, weight, scale):
    """Return pairwise accuracy of a balance of pairs: (pairs + balance) / 2 over the pairs."""
    return np.int64(np.rint((0.5 + 0.5 * balance * weight) * scale))


@njit(cache=True, nogil=True)
def rise_at_point(
    rule, ties, lines, gain, keys, codes, e, stop, weight, depth, scale, unit, total, meeting
):
    """Return `stop`, and by how much the value at the next point, and at best, is above now.

    The point has the crossings from `e` on up to alpha `stop`.
    """
    last = e + 1
    while last < keys.size and -keys[last] <= stop:
        last += 1
    if rule == PAIRS:
        now = pairs_fixed_point(total, weight[0], scale)
        rise, best = tied_pairs(ties, lines, codes, e, last)
        rise = pairs_fixed_point(total + rise, weight[0], scale) - now
        best = pairs_fixed_point(total + best, weight[0], scale) - now
    else:
        rise, best = tied_rise(
            rule, ties, lines, gain, codes, e, last, weight, depth, scale, unit, meeting
        )
    return stop, rise, max(best, 0)


@njit(cache=True, nogil=True)
def walk(
    rule, ties, lines, gain, keys, codes, end, convex, weight, depth, scale, unit, total, reach,
    points, changes, written, tie_points, tie_changes, tied, meeting,
):  # fmt: skip
    """Go through a query's crossings up to `end`.

    keys, codes : in, the crossings in ascending order, also those that are one point with `end`
    total : in, of PAIRS the balance of pairs
    reach : in, how far the last point reaches, where its value is not the mean of those beside it
    points, changes : out, from `written` on: the keys (-alpha) where the value changes, and by
        how much
    tie_points, tie_changes : out, from `tied` on: where the value at a point may not be the mean of
        those before and after it, by how much twice the value is above their sum; none is written
        where `reach` is infinite

    Returns how many changes and ties are written now, and `reach`.
    """
    # The arrays by themselves: taking them out of the tuple costs more than using them.
    rank, state, stay, part, size = lines.rank, lines.state, lines.stay, lines.part, lines.size
    member, step, single = lines.member, lines.step, lines.single
    g, coef, share = lines.g, lines.coef, lines.share
    knows_above = rule != SUM and rule != PAIRS
    is_mean = ties == EXPECTED  # the value where two documents meet, of those before and after
    e = 0
    while e < keys.size and -keys[e] <= end:
        here = keys[e]
        if -here > reach:
            stop = -here + width_of_point(-here, convex)
            is_lone = e + 1 == keys.size or -keys[e + 1] > stop
            if not (is_lone and size[codes[e] >> 32] + size[codes[e] & MASK] == 2 and is_mean):
                reach, rise, best = rise_at_point(
                    rule, ties, lines, gain, keys, codes, e, stop, weight, depth, scale, unit,
                    total, meeting,
                )  # fmt: skip
                # Two changes, which add up to the rise, and the first alone to what it is at best.
                tie_points[tied : tied + 2] = here
                tie_changes[tied] = 2 * best
                tie_changes[tied + 1] = 2 * (rise - best)
                tied += 2
        change = np.int64(0)
        while e < keys.size and keys[e] == here:
            down, up = codes[e] >> 32, codes[e] & MASK
            e += 1
            rank[down] += size[up]
            rank[up] -= size[down]
            if rule == PAIRS:
                change -= 2 * pairs_between(g, member[down], size[down], member[up], size[up])
                continue
            if knows_above:
                state[down] += step[up]
                state[up] -= step[down]
                if rule == CASCADE and step[down] != 0 and step[up] != 0:
                    stay[down] = np.exp2(-state[down] / unit)
                    stay[up] = np.exp2(-state[up] / unit)
            change -= part[down] + part[up]
            for u in (down, up):
                if rank[u] >= depth:
                    part[u] = 0
                elif size[u] == 1:
                    part[u] = lone_contribution(
                        rule, single[u], state[u], stay[u], weight[rank[u]], scale
                    )
                else:
                    part[u] = contribution(
                        rule, rank[u], state[u], unit, member[u], size[u], coef, share, weight,
                        depth, scale,
                    )  # fmt: skip
                change += part[u]
        if rule == PAIRS:
            before = pairs_fixed_point(total, weight[0], scale)
            total += change
            change = pairs_fixed_point(total, weight[0], scale) - before
        points[written] = here
        changes[written] = change
        written += np.int64(change != 0)
        if -here <= reach < np.inf:
            tie_points[tied] = here
            tie_changes[tied] = -change
            tied += np.int64(change != 0)
    return written, tied, reach


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
    kept_rank, kept_state, reach, initial, first, last, counts,
):  # fmt: skip
    """Follow the queries from `first` to before `last` from alpha `start` to `end`.

    rule .. depth : in, a prepared measure; skip : in, the queries whose value is fixed
    s, t : in, the two scores; low, high : in, the whole range, of which start .. end is a part
    scale : in, what the fixed point counts 1 as
    kept_rank, kept_state : inout, by row: of every group at `start` (not looked at where that is
        `low`), and at `end`
    reach : inout, by query, as of ``walk``
    initial : out, every query's value just after `start`
    counts : out, the number of changes, and of crossings

    Returns two rows (see ``packed``): the keys (-alpha) at which values change, then those of ties;
    and by how much.
    """
    n = longest_query(ptr, first, last)
    lines, scratch, meeting = new_lines(n), new_scratch(n), new_meeting(n)
    no_bins = np.empty(0, np.int64)
    keys, codes = np.empty(4 * n), np.empty(4 * n, np.int64)
    other_keys, other_codes = np.empty(4 * n), np.empty(4 * n, np.int64)
    bucket_counts = np.empty(4 * n + 1, np.int64)
    # What is allocated and not written to costs nothing, what is copied does.
    room = 4 * n
    for q in range(first, last):
        size = ptr[q + 1] - ptr[q]
        room += 0 if skip[q] else size * (size - 1) // 2
    room = min(room, max(MOST_ROOM, 4 * n))
    points, changes = np.empty(room), np.empty(room, np.int64)
    tie_points, tie_changes = np.empty(8 * n), np.empty(8 * n, np.int64)
    n_changes = 0
    n_ties = 0
    n_crossings = 0
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        initial[q] = 0
        if skip[q]:
            continue
        w = weight[a:b]
        deep = counted_depth(rule, depth, w)
        groups, found, listed, keys, codes, unit = open_query(
            rule, ties, gain[a:b], s[a:b], t[a:b], convex, low, high, deep, start, end, lines,
            scratch, no_bins, keys, codes,
        )  # fmt: skip
        n_crossings += found
        if start > low:
            lines.rank[:groups] = kept_rank[a : a + groups]
            lines.state[:groups] = kept_state[a : a + groups]
        total = first_value(rule, ties, groups, lines, unit, w, deep, scale)
        initial[q] = pairs_fixed_point(total, w[0], scale) if rule == PAIRS else total
        if listed > other_keys.size:
            other_keys, other_codes = np.empty(keys.size), np.empty(keys.size, np.int64)
            bucket_counts = np.empty(keys.size + 1, np.int64)
        sort_crossings(keys, codes, listed, other_keys, other_codes, bucket_counts)
        if n_changes + listed + 1 > points.size:
            points = grown(points, n_changes + listed + 1)
            changes = grown(changes, n_changes + listed + 1)
        if n_ties + 3 * listed + 1 > tie_points.size:
            tie_points = grown(tie_points, n_ties + 3 * listed + 1)
            tie_changes = grown(tie_changes, n_ties + 3 * listed + 1)
        n_changes, n_ties, reach[q] = walk(
            rule, ties, lines, gain[a:b], keys[:listed], codes, end, convex, w, deep, scale, unit,
            total, reach[q], points, changes, n_changes, tie_points, tie_changes, n_ties, meeting,
        )  # fmt: skip
        kept_rank[a : a + groups] = lines.rank[:groups]
        kept_state[a : a + groups] = lines.state[:groups]
    counts[0] = n_changes
    counts[1] = n_crossings
    return packed(
        points[:n_changes], changes[:n_changes], tie_points[:n_ties], tie_changes[:n_ties]
    )


@njit(cache=True, nogil=True)
def count_crossings(
    rule, ties, gain, weight, ptr, skip, depth, s, t, convex, low, high, start, end, bins, first,
    last,
):  # fmt: skip
    """Add to `bins`, equal parts of start .. end, how many crossings lie in each."""
    n = longest_query(ptr, first, last)
    lines, scratch = new_lines(n), new_scratch(n)
    keys, codes = np.empty(0), np.empty(0, np.int64)
    for q in range(first, last):
        if not skip[q]:
            a, b = ptr[q], ptr[q + 1]
            deep = counted_depth(rule, depth, weight[a:b])
            open_query(
                rule, ties, gain[a:b], s[a:b], t[a:b], convex, low, high, deep, start, end, lines,
                scratch, bins, keys, codes,
            )  # fmt: skip
