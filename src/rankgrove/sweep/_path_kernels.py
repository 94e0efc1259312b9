# mypy: ignore-errors
"""Following the ranks of every query's documents along alpha, crossing by crossing.

A group's rank is the number of documents above it by the rule of :mod:`._crossing_kernels`, its
state the sum of their steps. A crossing changes both for two groups. A value is the sum of the
groups' contributions at their ranks, so a change does not depend on the groups at other ranks.
Where several lines cross at one point, the changes sum to the right total, so the crossings need
not be distinguished; where rounding makes three lines cross in an impossible order, some ranks are
equal between two crossings and right after the last one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import longest_query
from rankgrove.measures._value_kernels import CASCADE, EXPECTED, FIRST, PAIRS, PRECISIONS, SUM
from rankgrove.sweep._contribution_kernels import contribution, pairs_between, pairs_within
from rankgrove.sweep._crossing_kernels import grown, packed, sort_crossings, width_of_point
from rankgrove.sweep._line_kernels import (
    Crossings,
    Kept,
    Measured,
    Span,
    new_lines,
    new_scratch,
    open_query,
    query_of,
)
from rankgrove.sweep._tie_kernels import new_meeting, tied_pairs, tied_rise

MASK = 0xFFFFFFFF
MOST_ROOM = 1 << 18  # changes for which memory is allocated at first


class Changes(NamedTuple):
    """Where values change, as keys (-alpha), and by how much.

    points, changes : the changes between points
    tie_points, tie_changes : points where the value may not be the mean of those before and after
        it, and twice the value minus their sum
    """

    points: np.ndarray
    changes: np.ndarray
    tie_points: np.ndarray
    tie_changes: np.ndarray


# -- one query --------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def lone_contribution(rule, gain, state, stay, weight, scale):
    """Return the contribution of a group of one document at a rank with the given weight."""
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
def first_value(query, n, lines):
    """Fill the contributions of `n` groups; return their sum (for PAIRS: the balance of pairs)."""
    rule, ties, _, weight, depth, scale, unit = query
    size, member, rank, state = lines.size, lines.member, lines.rank, lines.state
    stay, g, coef, share = lines.stay, lines.g, lines.coef, lines.share
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
            rule, rank[u], state[u], unit, member[u], size[u], coef, share, weight, depth, scale
        )
        total += lines.part[u]
    return total


@njit(cache=True, nogil=True)
def pairs_fixed_point(balance, weight, scale):
    """Return pairwise accuracy from a balance of pairs: (pairs + balance) / 2 / pairs."""
    return np.int64(np.rint((0.5 + 0.5 * balance * weight) * scale))


@njit(cache=True, nogil=True)
def rise_at_point(query, lines, crossings, e, stop, total, meeting):
    """Return the value at the next point minus the present value, and the same at best.

    The point has the crossings from `e` on, up to alpha `stop`.
    """
    keys, codes = crossings.keys, crossings.codes
    last = e + 1
    while last < keys.size and -keys[last] <= stop:
        last += 1
    if query.rule == PAIRS:
        weight, scale = query.weight[0], query.scale
        now = pairs_fixed_point(total, weight, scale)
        rise, best = tied_pairs(query.ties, lines, codes, e, last)
        rise = pairs_fixed_point(total + rise, weight, scale) - now
        best = pairs_fixed_point(total + best, weight, scale) - now
    else:
        rise, best = tied_rise(query, lines, codes, e, last, meeting)
    return rise, max(best, 0)


@njit(cache=True, nogil=True)
def walk(query, lines, crossings, span, total, reach, out, counts, meeting):
    """Go through a query's crossings up to the end of a span.

    crossings : in, also those that are one point with the end
    total : in, the value at the start (for PAIRS: the balance of pairs)
    reach : in, see Kept
    out : out, Changes; no ties are written where `reach` is infinite
    counts : inout, the numbers of changes and of ties that are in `out`

    Returns `reach` at the end.
    """
    # Taking an array out of a tuple costs more than using it.
    rule, depth, scale, unit = query.rule, query.depth, query.scale, query.unit
    weight, keys, codes = query.weight, crossings.keys, crossings.codes
    points, changes, tie_points, tie_changes = out
    written, tied = counts[0], counts[1]
    rank, state, stay, part, size = lines.rank, lines.state, lines.stay, lines.part, lines.size
    member, step, single = lines.member, lines.step, lines.single
    g, coef, share = lines.g, lines.coef, lines.share
    knows_above = rule != SUM and rule != PAIRS
    # whether the value where two documents meet is the mean of those before and after
    is_mean = query.ties == EXPECTED
    e = 0
    while e < keys.size and -keys[e] <= span.end:
        here = keys[e]
        if -here > reach:
            stop = -here + width_of_point(-here, span.convex)
            is_lone = e + 1 == keys.size or -keys[e + 1] > stop
            if not (is_lone and size[codes[e] >> 32] + size[codes[e] & MASK] == 2 and is_mean):
                reach = stop
                rise, best = rise_at_point(query, lines, crossings, e, stop, total, meeting)
                # Two changes: their sum is the rise, the first is the rise at best.
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
    counts[0], counts[1] = written, tied
    return reach


# -- all queries ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def sweep_queries(measure, s, t, span, kept, initial, first, last, counts):
    """Follow the queries first:last from the start to the end of a span.

    measure, span, kept : see the NamedTuples of :mod:`._line_kernels`
    s, t : in, the two scores
    kept : inout; rank and state are not read where the span starts at `low`
    initial : out, every query's value just after the start
    counts : out, the numbers of changes, of ties and of crossings

    Returns two rows (see ``packed``): the keys (-alpha) of all changes, then those of ties; and the
    changes.
    """
    measure, span, kept = Measured(*measure), Span(*span), Kept(*kept)
    n = longest_query(measure.ptr, first, last)
    lines, scratch, meeting = new_lines(n), new_scratch(n), new_meeting(n)
    no_bins = np.empty(0, np.int64)
    keys, codes = np.empty(4 * n), np.empty(4 * n, np.int64)
    other_keys, other_codes = np.empty(4 * n), np.empty(4 * n, np.int64)
    bucket_counts = np.empty(4 * n + 1, np.int64)
    # Memory that is allocated and not written to costs nothing; copying it does.
    room = 4 * n
    for q in range(first, last):
        size = measure.ptr[q + 1] - measure.ptr[q]
        room += 0 if measure.skip[q] else size * (size - 1) // 2
    room = min(room, max(MOST_ROOM, 4 * n))
    points, changes = np.empty(room), np.empty(room, np.int64)
    tie_points, tie_changes = np.empty(8 * n), np.empty(8 * n, np.int64)
    counts[:] = 0
    for q in range(first, last):
        initial[q] = 0
        if measure.skip[q]:
            continue
        a, b = measure.ptr[q], measure.ptr[q + 1]
        query = query_of(measure, q)
        groups, found, listed, keys, codes = open_query(
            query, s[a:b], t[a:b], span, lines, scratch, no_bins, keys, codes
        )
        counts[2] += found
        if span.start > span.low:
            lines.rank[:groups] = kept.rank[a : a + groups]
            lines.state[:groups] = kept.state[a : a + groups]
        total = first_value(query, groups, lines)
        initial[q] = total
        if query.rule == PAIRS:
            initial[q] = pairs_fixed_point(total, query.weight[0], query.scale)
        if listed > other_keys.size:
            other_keys, other_codes = np.empty(keys.size), np.empty(keys.size, np.int64)
            bucket_counts = np.empty(keys.size + 1, np.int64)
        sort_crossings(keys, codes, listed, other_keys, other_codes, bucket_counts)
        most, most_ties = counts[0] + listed + 1, counts[1] + 3 * listed + 1
        if most > points.size:
            points, changes = grown(points, most), grown(changes, most)
        if most_ties > tie_points.size:
            tie_points, tie_changes = grown(tie_points, most_ties), grown(tie_changes, most_ties)
        crossings = Crossings(keys[:listed], codes)
        out = Changes(points, changes, tie_points, tie_changes)
        kept.reach[q] = walk(
            query, lines, crossings, span, total, kept.reach[q], out, counts, meeting
        )
        kept.rank[a : a + groups] = lines.rank[:groups]
        kept.state[a : a + groups] = lines.state[:groups]
    n, n_ties = counts[0], counts[1]
    return packed(points[:n], changes[:n], tie_points[:n_ties], tie_changes[:n_ties])


@njit(cache=True, nogil=True)
def count_crossings(measure, s, t, span, bins, first, last):
    """Add to `bins`, equal parts of a span, the numbers of crossings of the queries first:last."""
    n = longest_query(measure.ptr, first, last)
    lines, scratch = new_lines(n), new_scratch(n)
    keys, codes = np.empty(0), np.empty(0, np.int64)
    for q in range(first, last):
        if not measure.skip[q]:
            a, b = measure.ptr[q], measure.ptr[q + 1]
            query = query_of(measure, q)
            open_query(query, s[a:b], t[a:b], span, lines, scratch, bins, keys, codes)
