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
def count_buckets(keys, borders, first, per_alpha, bucket_of, counts):
    """Fill the bucket of every key, and add to the buckets' counts.

    borders : in, descending; the first bucket holds the keys above the first border, every other
        those from a border on
    first, per_alpha : in, equal cells from the first border on: the border before each cell, so
        that few borders are left to look through
    """
    for e in range(keys.size):
        k = keys[e]
        cell = np.int64(min(max((borders[0] - k) * per_alpha, 0.0), first.size - 2.0))
        low = first[cell]
        n = first[cell + 1] - low
        while n > 0:
            half = n >> 1
            below = borders[low + half] >= k
            low += half + 1 if below else 0
            n = n - half - 1 if below else half
        bucket_of[e] = low
        counts[low] += 1


@njit(cache=True, nogil=True)
def fill_buckets(keys, changes, bucket_of, place, out_keys, out_changes):
    """Copy to the buckets; place : inout, where in each the next one goes."""
    for e in range(keys.size):
        to = place[bucket_of[e]]
        place[bucket_of[e]] += 1
        out_keys[to] = keys[e]
        out_changes[to] = changes[e]


@njit(cache=True, nogil=True)
def sort_bucket(keys, changes):
    """Sort by ascending alpha (descending key)."""
    n = keys.size
    sort_crossings(keys, changes, n, np.empty(n), np.empty(n, np.int64), np.empty(n + 1, np.int64))


@njit(cache=True, nogil=True)
def add_up(keys, changes, convex, low, last, last_change, total, breaks, totals):
    """Fill where the sum changes, ascending, and its value before each of these points.

    keys, changes : in, -alpha and the change there, by ascending alpha
    low : in, where the range begins: what changes there is no change within it
    last, last_change : in, a point before all of them, to which the first may belong
    total : in, the sum before that

    Returns how often the sum changes and what it is then, not counting the last point, and the
    last point with its change: what comes after may belong to it.
    """
    n = 0
    reach = last + width_of_point(last, convex)
    for e in range(keys.size):
        here = -keys[e]
        if here <= reach:
            last_change += changes[e]
            continue
        if abs(last_change) > NO_CHANGE and last > low:
            breaks[n] = last
            totals[n] = total
            n += 1
        total += last_change
        last = here
        last_change = changes[e]
        reach = here + width_of_point(here, convex)
    return n, total, last, last_change


@njit(cache=True, nogil=True)
def keep_best(left, rights, totals, best_left, best_right, best_total, n_best):
    """Keep the best stretches: those of highest total, of equal ones the widest, then the lowest.

    left : in, where the first stretch begins; rights, totals : in, where every one ends, its value
    best_left, best_right, best_total : inout, best first; n_best : in, how many there are
    Returns how many there are now.
    """
    most = best_total.size
    for i in range(totals.size):
        total = totals[i] >> EQUAL_BITS
        if n_best == most and total < best_total[most - 1] >> EQUAL_BITS:
            continue
        begin = left if i == 0 else rights[i - 1]
        width = rights[i] - begin
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
        best_left[to] = begin
        best_right[to] = rights[i]
        best_total[to] = totals[i]
    return n_best
