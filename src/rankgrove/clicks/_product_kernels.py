# mypy: ignore-errors
"""Kernels of models where a click has the probability attractiveness x examination.

Impressions of the same pair in the same cell (a position, or a position and the last click above)
are alike: EM works on their counts, pair by pair::

    pair       0           1
    entry_ptr  0           3      5
    cell       0   1   4   0   2          the cells in which the pair was seen
    shown      9   2   1   7   7          impressions, and clicks
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove.jit import njit

TINY = 1e-12


@njit(cache=True, nogil=True)
def sort_by_pair(pair, ptr, order):
    """Fill `ptr` (n_pairs + 1, zeros) and `order`, the impressions pair by pair."""
    for i in range(pair.size):
        ptr[pair[i] + 1] += 1
    for p in range(ptr.size - 1):
        ptr[p + 1] += ptr[p]
    for i in range(pair.size):
        order[ptr[pair[i]]] = i
        ptr[pair[i]] += 1
    for p in range(ptr.size - 1, 0, -1):
        ptr[p] = ptr[p - 1]
    ptr[0] = 0


@njit(cache=True, nogil=True)
def collapse(ptr, order, cell, last_seen, entry_ptr, entry_cell, entry_of):
    """Number the entries; return how many there are.

    ptr, order : impressions by pair
    cell : of every impression
    last_seen : n_cells numbers -1
    entry_ptr, entry_cell : out, of entries
    entry_of : out, the entry of every impression, in the order of `order`
    """
    n = 0
    for p in range(ptr.size - 1):
        entry_ptr[p] = n
        for j in range(ptr[p], ptr[p + 1]):
            c = cell[order[j]]
            if last_seen[c] < entry_ptr[p]:
                last_seen[c] = n
                entry_cell[n] = c
                n += 1
            entry_of[j] = last_seen[c]
    entry_ptr[ptr.size - 1] = n
    return n


@njit(cache=True, nogil=True)
def count(ptr, order, entry_of, click, session_of, weight, first, last, shown, clicked):
    """Add the weights of impressions and clicks of the pairs first ... last to their entries."""
    for j in range(ptr[first], ptr[last]):
        i = order[j]
        w = weight[session_of[i]]
        shown[entry_of[j]] += w
        if click[i]:
            clicked[entry_of[j]] += w


@njit(cache=True, nogil=True)
def product_step(
    entry_ptr, entry_cell, shown, clicked, attraction, examination, hits, misses, first, last, new,
    sums,
):  # fmt: skip
    """Take a step of EM for the pairs first ... last; return their objective.

    hits, misses : pseudo-counts of the prior of every pair
    new : out, attractiveness of pairs
    sums : in and out, 2 x n_cells: expected examinations, impressions
    """
    total = 0.0
    for p in range(first, last):
        a = attraction[p]
        top = hits[p]
        bottom = hits[p] + misses[p]
        if entry_ptr[p] == entry_ptr[p + 1]:  # never shown
            new[p] = top / bottom if bottom > 0 else a
            continue
        total += hits[p] * math.log(max(a, TINY)) + misses[p] * math.log(max(1 - a, TINY))
        for k in range(entry_ptr[p], entry_ptr[p + 1]):
            c = entry_cell[k]
            e = examination[c]
            click = min(max(a * e, TINY), 1 - TINY)
            missed = shown[k] - clicked[k]
            total += clicked[k] * math.log(click) + missed * math.log(1 - click)
            top += clicked[k] + missed * a * (1 - e) / (1 - click)
            bottom += shown[k]
            sums[0, c] += clicked[k] + missed * e * (1 - a) / (1 - click)
            sums[1, c] += shown[k]
        new[p] = min(top / bottom, 1.0) if bottom > 0 else a
    return total


@njit(cache=True, nogil=True)
def share_clicks(
    entry_ptr, entry_cell, shown, clicked, examination, unit, first, last, shares, value
):
    """Add what examination expects of the clicks of pairs seen in several cells, as whole numbers.

    examination : of cells; 0: the cell is left out
    unit : a click is so many units, so that sums do not depend on the order of pairs
    shares : in and out, per cell: clicks of pairs, shared out as examination expects
    value : in and out, clicks of pairs x log(sum of examinations), in units / 64
    """
    for p in range(first, last):
        if entry_ptr[p + 1] - entry_ptr[p] < 2:
            continue
        total = 0.0
        clicks = 0.0
        for k in range(entry_ptr[p], entry_ptr[p + 1]):
            e = examination[entry_cell[k]]
            if e > 0:
                total += shown[k] * e
                clicks += clicked[k]
        if clicks == 0 or total == 0:
            continue
        value[0] += np.int64(np.rint(clicks * math.log(total) * (unit / 64)))
        for k in range(entry_ptr[p], entry_ptr[p + 1]):
            c = entry_cell[k]
            if examination[c] > 0:
                share = shown[k] * examination[c] / total
                shares[c] += np.int64(np.rint(clicks * share * unit))


@njit(cache=True, nogil=True)
def exposures(entry_ptr, entry_cell, shown, clicked, examination, out):
    """Fill `out`, 3 x n_pairs: clicks, sum of examinations, sum of their squares."""
    for p in range(entry_ptr.size - 1):
        c = 0.0
        once = 0.0
        twice = 0.0
        for k in range(entry_ptr[p], entry_ptr[p + 1]):
            e = examination[entry_cell[k]]
            c += clicked[k]
            once += shown[k] * e
            twice += shown[k] * e * e
        out[0, p] = c
        out[1, p] = once
        out[2, p] = twice


@njit(cache=True, nogil=True)
def browsing_cells(session_ptr, position, click, first, last, most, cell):
    """Fill the cells of impressions of sessions: position, and distance to the last click above.

    most : positions and distances beyond it are taken for it; no click above: distance 0
    """
    for s in range(first, last):
        above = 0
        for i in range(session_ptr[s], session_ptr[s + 1]):
            place = np.int64(position[i])
            distance = min(place - above, most) if above > 0 else 0
            cell[i] = (min(place, most) - 1) * (most + 1) + distance
            if click[i]:
                above = place


@njit(cache=True, nogil=True)
def browsing_probabilities(
    session_ptr, pair, position, attraction, table, most, first, last, state, out
):
    """Fill the marginal click probabilities of the impressions of sessions.

    state : scratch, one more number than the longest session has impressions; state[j] is the
        probability that the last click so far was on impression j - 1, state[0] that of none
    """
    for s in range(first, last):
        start = session_ptr[s]
        state[0] = 1.0
        for i in range(start, session_ptr[s + 1]):
            place = np.int64(position[i])
            row = (min(place, most) - 1) * (most + 1)
            total = 0.0
            for j in range(i - start + 1):
                distance = 0
                if j > 0:
                    distance = min(place - np.int64(position[start + j - 1]), most)
                p = attraction[pair[i]] * table[row + distance]
                total += state[j] * p
                state[j] *= 1 - p
            state[i - start + 1] = total
            out[i] = total
