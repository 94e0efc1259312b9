# mypy: ignore-errors
"""The lines of one query: which documents go together, and where their lines cross.

Every document is a line, its combined score as a function of the weight alpha: (1-alpha) s +
alpha t (convex), or s + alpha t. Documents of equal s and t are one group: they are tied all the
way. Two groups cross at most once, at::

    c = (s_i - s_j) / ((t_j - t_i) + (s_i - s_j))   convex
    c = (s_i - s_j) / (t_j - t_i)                   additive

The order of two groups just after alpha follows from c alone: the one with the smaller slope is
above before c, the other one from c on. Nothing else is ever compared, so no rounding of combined
scores can contradict the order.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit
from rankgrove.measures._ranking_kernels import MOST_COUNTED, count_order, sort_descending

MOST_CROWDED = 8  # mean number of crossings in the bucket of a crossing, for insertion to be fast
NO_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)
# Alphas whose relative difference is smaller than this are one point: otherwise the rounding of
# scores such as 1/3 would separate crossings that coincide.
ONE_POINT, ROUNDING = 2.0**-40, 2.0**-51


@njit(cache=True, nogil=True)
def width_of_point(alpha, convex):
    """Return the largest distance between two alphas that differ by rounding only.

    In the convex form both weights count, alpha and 1 - alpha.
    """
    size = min(abs(alpha), abs(1.0 - alpha)) if convex else abs(alpha)
    return ONE_POINT * size + ROUNDING * abs(alpha)


@njit(cache=True, nogil=True)
def sort_documents(s, t, convex, low, order, scratch):
    """Fill `order` with the documents by score at `low`, then t, then s, all descending."""
    n, key = s.size, scratch.key
    for i in range(n):
        key[i] = (1.0 - low) * s[i] + low * t[i] if convex else s[i] + low * t[i]
        order[i] = i
    if n <= MOST_COUNTED:
        count_order(key[:n], 0, scratch.counted, scratch.taken, order)
    else:
        sort_descending(key[:n], order, scratch.other_key, scratch.other_index)
        for i in range(n):
            key[i] = (1.0 - low) * s[i] + low * t[i] if convex else s[i] + low * t[i]
    for r in range(1, n):
        i = order[r]
        k = r - 1
        while k >= 0:
            j = order[k]
            if key[j] != key[i] or t[j] > t[i] or (t[j] == t[i] and s[j] >= s[i]):
                break
            order[k + 1] = j
            k -= 1
        order[k + 1] = i


@njit(cache=True, nogil=True)
def group_documents(s, t, order, gs, gt, size, member):
    """Put documents of equal s and t together; return the number of groups.

    gs, gt, size, member : out, a group's scores, its number of documents, and the place in
        `order` of the first of them
    """
    groups = 0
    for r in range(order.size):
        i = order[r]
        if groups > 0 and gs[groups - 1] == s[i] and gt[groups - 1] == t[i]:
            size[groups - 1] += 1
        else:
            gs[groups] = s[i]
            gt[groups] = t[i]
            size[groups] = 1
            member[groups] = r
            groups += 1
    return groups


@njit(cache=True, nogil=True, error_model="numpy")
def crossings_with(gs, gt, size, n, s, t, convex, low, high, start, end, c):
    """Fill `c` with where the first `n` groups cross the line (s, t), which begins below them.

    Returns the number of their documents that are above the line from `low` to `high`; the number
    of groups that, because scores at `low` are rounded, are not above it just after `low`; and the
    number of groups that cross it between `low` and `high`, after `start`, up to `end`.
    """
    above = 0
    wrong = 0
    within = 0
    start = max(start, low)
    for a in range(n):
        difference = gs[a] - s
        turn = t - gt[a]
        if convex:
            turn += difference
        x = difference / turn
        c[a] = x
        stays = ((x >= high) & (turn >= 0.0)) | ((x <= low) & (turn < 0.0))
        above += size[a] * np.int64(stays)
        wrong += np.int64(((x <= low) & (turn > 0.0)) | ((x > low) & (turn < 0.0)))
        within += np.int64((x > start) & (x <= end) & (x < high))
    return above, wrong, within


@njit(cache=True, nogil=True)
def packed(keys, numbers, more_keys, more_numbers):
    """Return keys, as their bits, and whole numbers as the two rows of one array.

    A kernel that Python calls returns at most one array. Numba builds a tuple of arrays by calls
    into Python; if one of them raises KeyboardInterrupt, it continues with half a result, and the
    process ends in a SystemError or crashes.
    """
    n = keys.size
    rows = np.empty((2, n + more_keys.size), np.int64)
    rows[0, :n] = keys.view(np.int64)
    rows[1, :n] = numbers
    rows[0, n:] = more_keys.view(np.int64)
    rows[1, n:] = more_numbers
    return rows


@njit(cache=True, nogil=True)
def grown(array, least):
    """Return a copy of `array` with room for at least `least` entries."""
    larger = np.empty(max(least, 2 * array.size), array.dtype)
    larger[: array.size] = array
    return larger


@njit(cache=True, nogil=True)
def find_crossings(lines, n_groups, span, depth, c, bins, keys, codes):
    """Find the crossings c of all groups with low < c < high and start < c <= end.

    Crossings just after `end` that are one point with it are listed too, last, but not counted.
    Groups that have `depth` or more documents above them on the whole range are dropped: they never
    reach a rank that counts, and neither do the groups that pass below them.

    lines : inout, `n_groups` groups; those that are kept are moved to the front. A crossing of two
        groups of which neither `lives` is not listed. out, `rank` and `state` just after `low`
    c : scratch
    bins : inout, numbers of crossings in equal parts of start .. end; if there are any bins,
        crossings are only counted
    keys, codes : out, grown where needed: see Crossings, not sorted

    Returns the number of groups kept, the number of crossings, the number of those listed, and keys
    and codes.
    """
    convex, low, high, start, end = span
    gs, gt, size, member, step = lines.s, lines.t, lines.size, lines.member, lines.step
    single, lives, rank, state = lines.single, lines.lives, lines.rank, lines.state
    kept = 0
    found = 0
    listed = 0
    before = 0
    sum_of_steps = np.int64(0)
    per_alpha = bins.size / (end - start)
    ahead = end + width_of_point(end, convex)
    for j in range(n_groups):
        above, wrong, within = crossings_with(
            gs, gt, size, kept, gs[j], gt[j], convex, low, high, start, end, c
        )
        if above >= depth:
            continue
        found += within
        gs[kept] = gs[j]
        gt[kept] = gt[j]
        size[kept] = size[j]
        member[kept] = member[j]
        step[kept] = step[j]
        single[kept] = single[j]
        lives[kept] = lives[j]
        rank[kept] = before
        state[kept] = sum_of_steps
        before += size[j]
        sum_of_steps += step[j]
        if bins.size:
            for a in range(kept):
                x = c[a]
                if low < x < high and start < x <= end:
                    bins[min(np.int64((x - start) * per_alpha), bins.size - 1)] += 1
            kept += 1
            continue
        if listed + kept > keys.size:
            keys = grown(keys, listed + kept)
            codes = grown(codes, listed + kept)
        after = max(start, low)
        live = lives[kept]
        for a in range(kept):
            x = c[a]
            keys[listed] = -x
            codes[listed] = (a << 32) | kept
            listed += np.int64((x > after) & (x <= ahead) & (x < high)) & (lives[a] | live)
        if wrong:
            # Within rounding the line began above some of them.
            mend_wrong(lines, kept, convex, low, c, codes, listed)
        kept += 1
    return kept, found, listed, keys, codes


@njit(cache=True, nogil=True)
def mend_wrong(lines, b, convex, low, c, codes, listed):
    """Correct the ranks and crossings of group `b` and of those before it that are not above it."""
    gs, gt, size, step = lines.s, lines.t, lines.size, lines.step
    rank, state = lines.rank, lines.state
    last = listed - 1
    for a in range(b - 1, -1, -1):
        turn = gt[b] - gt[a]
        if convex:
            turn += gs[a] - gs[b]
        is_listed = last >= 0 and codes[last] == ((a << 32) | b)
        if (c[a] <= low and turn > 0.0) or (c[a] > low and turn < 0.0):
            rank[a] += size[b]
            rank[b] -= size[a]
            state[a] += step[b]
            state[b] -= step[a]
            if is_listed:
                codes[last] = (b << 32) | a
        if is_listed:
            last -= 1


@njit(cache=True, nogil=True)
def bucket_of(key, bits, by_bits, origin, per_unit, n):
    """Return one of n equal parts of the range of alpha, or of the range of its bits."""
    x = np.float64(bits & NO_SIGN) if by_bits else -key
    return min(max(np.int64((x - origin) * per_unit), 0), n - 1)


@njit(cache=True, nogil=True)
def spread(keys, codes, n, by_bits, low, high, counts, other_keys, other_codes):
    """Sort crossings by bucket; if buckets are crowded, do nothing and return False."""
    per_unit = n / (high - low)
    bits = keys.view(np.int64)
    counts[: n + 1] = 0
    for e in range(n):
        counts[bucket_of(keys[e], bits[e], by_bits, low, per_unit, n) + 1] += 1
    crowd = 0
    for bucket in range(n):
        crowd += counts[bucket + 1] * counts[bucket + 1]
        counts[bucket + 1] += counts[bucket]
    if crowd > MOST_CROWDED * n:
        return False
    other_keys[:n] = keys[:n]
    other_codes[:n] = codes[:n]
    bits = other_keys.view(np.int64)
    for e in range(n):
        bucket = bucket_of(other_keys[e], bits[e], by_bits, low, per_unit, n)
        to = counts[bucket]
        counts[bucket] += 1
        keys[to] = other_keys[e]
        codes[to] = other_codes[e]
    return True


@njit(cache=True, nogil=True)
def sort_crossings(keys, codes, n, other_keys, other_codes, counts):
    """Sort the first `n` crossings by ascending alpha (descending key); the sort is stable.

    Their range is divided into `n` equal buckets, or, if these are crowded, the range of their bits
    (roughly a logarithm); insertion sort does the rest. If those are crowded too, merge sort is
    used.

    other_keys, other_codes : scratch of n; counts : scratch of n + 1
    """
    if n < 2:
        return
    low, high = -keys[0], -keys[0]
    for e in range(n):
        low = min(low, -keys[e])
        high = max(high, -keys[e])
    if low == high:
        return
    done = spread(keys, codes, n, False, low, high, counts, other_keys, other_codes)
    if not done and low > 0.0:
        ends = np.array([low, high]).view(np.int64).astype(np.float64)
        if ends[0] < ends[1]:
            done = spread(keys, codes, n, True, ends[0], ends[1], counts, other_keys, other_codes)
    if not done:
        sort_descending(keys[:n], codes[:n], other_keys, other_codes)
        return
    for e in range(1, n):
        k, x = keys[e], codes[e]
        to = e - 1
        while to >= 0 and keys[to] < k:
            keys[to + 1] = keys[to]
            codes[to + 1] = codes[to]
            to -= 1
        keys[to + 1] = k
        codes[to + 1] = x
