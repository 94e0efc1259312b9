# mypy: ignore-errors
"""From changes of single queries to the curve of their sum, and its best stretches."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.sweep._crossing_kernels import sort_crossings, width_of_point

# Equal values of different orders may differ by a few units of the fixed point.
NO_CHANGE = 8
EQUAL_BITS = 4


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
def add_up(
    keys, changes, tie_keys, tie_changes, convex, low, ends, sums, total, breaks, totals, tops
):
    """Fill where the sum changes, ascending, and its value before each of these points.

    keys, changes : in, -alpha and the change there, by ascending alpha
    tie_keys, tie_changes : in, -alpha, and twice the value at the point minus the sum of those
        before and after it, by ascending alpha
    low : in, where the range begins: changes exactly there are ignored
    ends, sums : inout, the last point, to which the first changes may belong: its first and last
        alpha; its change, all rises, the change of ties, all rises of ties
    total : in, the sum before that point
    breaks, totals : out, the changes, without those of the last point
    tops : out, one row per point that may be better than both neighbouring stretches, without the
        last point: its first and last alpha, its value, its largest possible value by rounding of
        scores, and the better value of the neighbouring stretches

    Returns the number of changes, the sum after them, and the number of points.
    """
    n = 0
    n_tops = 0
    e = 0
    k = 0
    first, last = ends
    change, rises, tie_change, tie_rises = sums
    reach = first + width_of_point(first, convex)
    while e < keys.size or k < tie_keys.size:
        is_tie = k < tie_keys.size and (e == keys.size or tie_keys[k] >= keys[e])
        here = -tie_keys[k] if is_tie else -keys[e]
        if here > reach:
            if first > low:
                if abs(change) > NO_CHANGE:
                    breaks[n] = first
                    totals[n] = total
                    n += 1
                above = rises - max(change, 0) + 0.5 * tie_rises
                if above > NO_CHANGE:
                    tops[n_tops, 0] = first
                    tops[n_tops, 1] = last
                    tops[n_tops, 2] = total + 0.5 * (change + tie_change)
                    tops[n_tops, 3] = total + max(change, 0) + above
                    tops[n_tops, 4] = total + max(change, 0)
                    n_tops += 1
            total += change
            first = here
            reach = here + width_of_point(here, convex)
            change = rises = tie_change = tie_rises = 0
        last = here
        if is_tie:
            tie_change += tie_changes[k]
            tie_rises += max(tie_changes[k], 0)
            k += 1
        else:
            change += changes[e]
            rises += max(changes[e], 0)
            e += 1
    ends[0], ends[1] = first, last
    sums[0], sums[1], sums[2], sums[3] = change, rises, tie_change, tie_rises
    return n, total, n_tops


@njit(cache=True, nogil=True)
def keep_best(left, rights, totals, best_left, best_right, best_total, n_best):
    """Keep the best stretches: those of highest total, of equal ones the widest, then the lowest.

    left : in, where the first stretch begins; rights, totals : in, where every one ends, its value
    best_left, best_right, best_total : inout, best first; n_best : in, their number

    Returns their new number.
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


@njit(cache=True, nogil=True)
def fill_means(totals, scale, fixed, n, means):
    """Fill the means that fixed-point sums represent; `means` may be the same memory."""
    for i in range(totals.size):
        means[i] = (totals[i] / scale + fixed) / n
