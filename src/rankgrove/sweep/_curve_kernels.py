# mypy: ignore-errors
"""From changes of single queries to the curve of their sum, and its best stretches."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankgrove.sweep._crossing_kernels import sort_crossings

# Alphas that differ by less than this part of their size are one: crossings that fall together
# would otherwise be torn apart by the rounding of scores such as 1/3.
ONE_POINT, ROUNDING = 2.0**-40, 2.0**-51
# Equal values of different orders may differ by a few units of the fixed point.
NO_CHANGE = 8
EQUAL_BITS = 4


@njit(cache=True, nogil=True)
def width_of_point(alpha, convex):
    """Return how far an alpha can be from another that is the same but for rounding.

    In the convex form both weights count, alpha and 1 - alpha.
    """
    size = min(abs(alpha), abs(1.0 - alpha)) if convex else abs(alpha)
    return ONE_POINT * size + ROUNDING * abs(alpha)


@njit(cache=True, nogil=True)
def add_up(keys, changes, convex, low, total, breaks, totals):
    """Fill where the sum changes, ascending, and its value before each of these points.

    keys, changes : inout, -alpha and the change there; they are sorted by ascending alpha
    low : in, where the range begins: what changes there is no change within it
    total : in, the sum before all of them

    Returns how often the sum changes and what it is then, not counting the last point, and the
    last point with its change: what comes after may belong to it.
    """
    m = keys.size
    sort_crossings(keys, changes, m, np.empty(m), np.empty(m, np.int64), np.empty(m + 1, np.int64))
    n = 0
    e = 0
    while True:
        here = -keys[e]
        last = here + width_of_point(here, convex)
        change = changes[e]
        e += 1
        while e < m and -keys[e] <= last:
            change += changes[e]
            e += 1
        if e == m:
            return n, total, here, change
        if abs(change) > NO_CHANGE and here > low:
            breaks[n] = here
            totals[n] = total
            n += 1
        total += change


@njit(cache=True, nogil=True)
def keep_best(lefts, rights, totals, best_left, best_right, best_total, n_best):
    """Keep the best stretches: those of highest total, of equal ones the widest, then the lowest.

    best_left, best_right, best_total : inout, best first; n_best : in, how many there are
    Returns how many there are now.
    """
    most = best_total.size
    for i in range(totals.size):
        total = totals[i] >> EQUAL_BITS
        if n_best == most and total < best_total[most - 1] >> EQUAL_BITS:
            continue
        width = rights[i] - lefts[i]
        to = n_best
        while to > 0:
            p = to - 1
            other = best_total[p] >> EQUAL_BITS
            if other > total or (other == total and best_right[p] - best_left[p] >= width):
                break
            to -= 1
        if to == most:
            continue
        n_best = min(n_best + 1, most)
        for p in range(n_best - 1, to, -1):
            best_left[p] = best_left[p - 1]
            best_right[p] = best_right[p - 1]
            best_total[p] = best_total[p - 1]
        best_left[to] = lefts[i]
        best_right[to] = rights[i]
        best_total[to] = totals[i]
    return n_best
