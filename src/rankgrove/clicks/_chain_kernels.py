# mypy: ignore-errors
"""Kernels of models whose users read from the top down until they stop.

A user who examines a document clicks with the probability of its attractiveness. After a click the
user stops with probability `stop`, which belongs to the pair or to the position; a user who has not
stopped there goes on with probability `going`, and so does a user who has not clicked. Cascade:
stop 1, going 1. Dependent click: stop by position, going 1. DBN: stop by pair; simplified DBN: the
same with going 1.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.clicks._weight_kernels import GOLDEN, uniform
from rankgrove.jit import njit

TINY = 1e-12
FAR = 1e-200


@njit(cache=True, nogil=True)
def chain_step(
    order, first, last, session_ptr, pair, position, click, weight, attraction, stop, last_stop,
    going, by_position, a_sums, s_sums, shared, below,
):  # fmt: skip
    """Add up the expectations of sessions order[first:last]; return their log likelihood.

    a_sums : in and out, 2 x n_pairs: clicks, expected examinations
    s_sums : in and out, 2 x n_pairs or n_positions: expected stops after clicks, clicks after
        which a stop could be seen
    last_stop : per session, the probability of stopping after its last click; empty: as in `stop`
    shared : in and out, 2: expected times of going on, and of choosing whether to
    below : scratch, one more number than the longest session has impressions
    """
    total = 0.0
    for k in range(first, last):
        s = order[k]
        w = weight[s]
        if w == 0.0:
            continue
        start, end = session_ptr[s], session_ptr[s + 1]
        final = start - 1  # the last click
        for i in range(start, end):
            if click[i]:
                final = i
        # below[i - start]: no click from i on, if i is examined
        below[end - start] = 1.0
        for i in range(end - 1, final, -1):
            on = 1.0 if i == end - 1 else 1 - going + going * below[i + 1 - start]
            below[i - start] = max((1 - attraction[pair[i]]) * on, FAR)
        ways = 1.0  # the probability of the clicks so far
        for i in range(start, final):
            p = pair[i]
            a_sums[1, p] += w
            shared[0] += w
            shared[1] += w
            if click[i]:
                at = np.int64(position[i]) - 1 if by_position else np.int64(p)
                a_sums[0, p] += w
                s_sums[1, at] += w
                ways *= max(going * attraction[p] * (1 - stop[at]), TINY)
            else:
                ways *= max(going * (1 - attraction[p]), TINY)
            if ways < FAR:  # before it underflows
                total += w * math.log(ways)
                ways = 1.0
        alive = w  # the probability that the next document is examined, times w
        if final >= start:
            p = pair[final]
            a_sums[0, p] += w
            a_sums[1, p] += w
            ways *= max(attraction[p], TINY)
            if final < end - 1:
                at = np.int64(position[final]) - 1 if by_position else np.int64(p)
                ends = last_stop[s] if last_stop.size > 0 else stop[at]
                on = (1 - ends) * going * below[final + 1 - start]
                off = (1 - ends) * (1 - going)
                either = max(ends + off + on, TINY)
                ways *= either
                s_sums[0, at] += w * ends / either
                s_sums[1, at] += w
                shared[0] += w * on / either
                shared[1] += w * (on + off) / either
                alive = w * on / either
        else:
            ways = below[0]
        total += w * math.log(ways)
        for i in range(final + 1, end):
            a_sums[1, pair[i]] += alive
            if i < end - 1:
                on = going * below[i + 1 - start]
                share = on / max(1 - going + on, TINY)
                shared[0] += alive * share
                shared[1] += alive
                alive *= share
    return total


@njit(cache=True, nogil=True)
def chain_exposures(
    order, first, last, session_ptr, pair, position, click, weight, attraction, going, stop,
    by_position, a_sums, s_sums, last_at, again_at, below,
):  # fmt: skip
    """Add up what tells how attractive documents are, and how often clicks satisfy.

    A click has the probability attractiveness x e, e the probability that the document is
    examined, given the clicks above. A click is not the last one with the probability
    (1 - stop) x f, f the probability of another click where users are not satisfied.

    a_sums : in and out, 3 x n_pairs: clicks, sum of e, sum of squares of e
    s_sums : in and out, 3 x n_pairs or n_positions, of clicks that are not at the end: those that
        were not the last, sum of f, sum of squares of f
    last_at, again_at : out, per session: the pair or position of the last click, and its f; -1: no
        click, or at the end
    below : scratch, one more number than the longest session has impressions
    """
    for k in range(first, last):
        s = order[k]
        w = weight[s]
        if w == 0.0:
            continue
        start, end = session_ptr[s], session_ptr[s + 1]
        final = start - 1  # the last click
        on = 1.0
        for i in range(end - 1, start - 1, -1):
            if click[i] and final < start:
                final = i
            below[i - start] = (1 - attraction[pair[i]]) * on  # no click from i on
            on = 1 - going + going * below[i - start]
        examined = 1.0
        for i in range(start, end):
            p = np.int64(pair[i])
            at = np.int64(position[i]) - 1 if by_position else p
            a_sums[1, p] += w * examined
            a_sums[2, p] += w * examined * examined
            if not click[i]:
                c = attraction[p] * examined
                examined = going * (examined - c) / max(1 - c, TINY)
                continue
            a_sums[0, p] += w
            examined = going * (1 - stop[at])
            if i < end - 1:
                again = going * (1 - below[i + 1 - start])
                if i == final:
                    last_at[s] = at
                    again_at[s] = again
                s_sums[0, at] += w * (i < final)
                s_sums[1, at] += w * again
                s_sums[2, at] += w * again * again


@njit(cache=True, nogil=True)
def chain_counts(
    order, first, last, session_ptr, pair, position, click, weight, to_first, by_position, a_sums,
    s_sums,
):  # fmt: skip
    """Count what the closed forms need in sessions order[first:last].

    to_first : whether documents count as examined up to the first click, not up to the last;
        without a click all of them do
    a_sums : in and out, 2 x n_pairs: clicks, examinations
    s_sums : in and out, 2 x n_pairs or n_positions: last clicks, clicks
    """
    for k in range(first, last):
        s = order[k]
        w = weight[s]
        start, end = session_ptr[s], session_ptr[s + 1]
        final = end
        for i in range(start, end):
            if click[i]:
                final = i
                if to_first:
                    break
        for i in range(start, min(final + 1, end)):
            p = pair[i]
            a_sums[1, p] += w
            if click[i]:
                at = np.int64(position[i]) - 1 if by_position else np.int64(p)
                a_sums[0, p] += w
                s_sums[1, at] += w
                if i == final:
                    s_sums[0, at] += w


@njit(cache=True, nogil=True)
def chain_probabilities(
    session_ptr, pair, position, click, attraction, stop, going, by_position, conditional, first,
    last, out,
):  # fmt: skip
    """Fill the click probabilities of the impressions of sessions.

    conditional : given the clicks above in the session
    """
    for s in range(first, last):
        examined = 1.0
        for i in range(session_ptr[s], session_ptr[s + 1]):
            a = attraction[pair[i]]
            at = np.int64(position[i]) - 1 if by_position else np.int64(pair[i])
            p = a * examined
            out[i] = p
            if not conditional:
                examined *= going * (1 - a * stop[at])
            elif click[i]:
                examined = going * (1 - stop[at])
            else:
                examined = going * (examined - p) / max(1 - p, TINY)


@njit(cache=True, nogil=True)
def stops_on_grid(
    ptr, left_out, others, weight, missing, stops, mass, draws, key, first, last, out, without, sums
):
    """Fill the stops of the pairs first ... last by summing over a grid.

    ptr : the last clicks of every pair
    left_out : pairs whose stops stay as they are
    others : per pair, the number of its clicks with another one below
    weight, missing : of last clicks; probabilities of no other click if users do not stop
    stops, mass : the grid, and its prior probabilities
    draws, key : whether stops are drawn, and the key of the draws; otherwise they are means
    out : out, per pair
    without : out, per last click, the mean without it
    sums : in and out, per cell, the sum of its probabilities of pairs with clicks
    """
    n = stops.size
    p = np.empty(n)
    average = 0.0
    for j in range(n):
        average += mass[j] * stops[j]
    for k in range(first, last):
        if left_out[k]:
            continue
        if others[k] == 0.0 and ptr[k] == ptr[k + 1] and not draws:
            out[k] = average
            continue
        for j in range(n):
            p[j] = mass[j] * (1 - stops[j]) ** others[k]
        for i in range(ptr[k], ptr[k + 1]):
            highest = 0.0
            for j in range(n):
                likely = stops[j] + (1 - stops[j]) * missing[i]
                p[j] *= likely if weight[i] == 1.0 else likely ** weight[i]
                highest = max(highest, p[j])
            if 0.0 < highest < FAR:
                for j in range(n):
                    p[j] /= highest
        total = 0.0
        for j in range(n):
            total += p[j]
        if total <= 0.0:
            continue
        mean = 0.0
        for j in range(n):
            mean += p[j] * stops[j]
            if others[k] > 0.0 or ptr[k] < ptr[k + 1]:
                sums[j] += p[j] / total
        out[k] = min(mean / total, 1.0)
        if draws:
            goal = total * uniform(mix(key + np.uint64(k) * GOLDEN))
            j = 0
            reached = p[0]
            while reached < goal and j < n - 1:
                j += 1
                reached += p[j]
            out[k] = stops[j]
        for i in range(ptr[k], ptr[k + 1]):
            above = 0.0
            below = 0.0
            for j in range(n):
                share = p[j] / max(stops[j] + (1 - stops[j]) * missing[i], TINY)
                above += share * stops[j]
                below += share
            without[i] = min(above / below, 1.0)


@njit(cache=True, nogil=True)
def chain_examination(
    session_ptr, pair, position, click, attraction, stop, going, by_position, first, last, below,
    out,
):  # fmt: skip
    """Fill the probabilities of examination, given all clicks of a session.

    Everything down to the last click was examined. `below` is scratch as for chain_step.
    """
    for s in range(first, last):
        start, end = session_ptr[s], session_ptr[s + 1]
        final = start - 1  # the last click
        for i in range(start, end):
            if click[i]:
                final = i
        below[end - start] = 1.0
        for i in range(end - 1, final, -1):
            on = 1.0 if i == end - 1 else 1 - going + going * below[i + 1 - start]
            below[i - start] = max((1 - attraction[pair[i]]) * on, FAR)
        alive = 1.0
        for i in range(start, end):
            out[i] = alive
            if i < final or i == end - 1:
                continue
            leaving = 0.0
            if i == final:
                at = np.int64(position[i]) - 1 if by_position else np.int64(pair[i])
                leaving = stop[at]
            on = (1 - leaving) * going
            further = on * below[i + 1 - start]
            alive *= further / max(1 - on + further, TINY)
