"""Kernels of splits on sets of categories: the best set of a categorical feature of a leaf.

The categories of a leaf that have enough rows are sorted by gradient over hessian, shrunk towards
that of the leaf. Every prefix and every suffix of that order is a candidate set; everything else,
categories with few rows and missing values among it, goes to the other side. For convex losses one
of the prefixes is the best of all partitions (Fisher 1958), where nothing is shrunk.

Sorting by the target makes noise look like signal: among m categories without any effect, the best
prefix has an expected gain of about 2/pi per category, in units of the noise of one category. That
expectation is subtracted, except for what two categories would have.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

MISSING = 255
_COUNT = np.int64(0xFFFFFFFF)
NOTHING = -1.0
# Places in `rules.category`: see CategoryRules.
SMOOTHING, L2, NOISE, MIN_ROWS, MAX_SET = range(5)
N_RULES = 5
MASK = 6  # of a split's fields: four words with the bins that go left


@njit(cache=True, error_model="numpy", inline="always")
def _score(gradient, hessian):
    return gradient * gradient / hessian if hessian > 0.0 else 0.0


@njit(cache=True)
def category_sums(hist, block, start, n, rules, sums, weights):
    """Fill the sums (gradient and count) and hessians of every category of a leaf.

    Without hessians the weights are the counts, so that the gain is that of least squares.
    """
    count_bits, hessian_bits = rules.count_bits, rules.hessian_bits
    for b in range(n):
        total = hist[0, block, start + b]
        if hist.shape[0] == 2:
            sums[b] = total
            weights[b] = hist[1, block, start + b]
        elif hessian_bits > 0:
            both = total & ((np.int64(1) << (count_bits + hessian_bits)) - np.int64(1))
            weights[b] = both >> count_bits
            count = both & ((np.int64(1) << count_bits) - np.int64(1))
            sums[b] = ((total >> (count_bits + hessian_bits)) << np.int64(32)) + count
        else:
            sums[b] = total
            weights[b] = total & _COUNT


@njit(cache=True, error_model="numpy")
def scan_categories(hist, block, feature, child, rules, sums, weights, fields):
    """Find the best set of a categorical feature; return its gain, NOTHING if there is none.

    In: hist (planes, blocks, 2048); feature, whose bins begin at 256 times its place in the block;
    child, the number of the leaf in rules (SearchRules). Room: sums, weights. Out: fields, those of
    the split, from its packed sum on.
    """
    n = rules.n_bins[feature]
    start = (feature % 8) * 256
    category_sums(hist, block, start, n, rules, sums, weights)
    has_hessian = hist.shape[0] == 2 or rules.hessian_bits > 0
    step = rules.step if has_hessian else 1.0
    l2 = rules.l2 if has_hessian else 0.0
    total = rules.totals[child]
    sum_all, count_all = np.float64(total >> np.int64(32)), total & _COUNT
    weight = rules.weights[child] if has_hessian else count_all
    hessian_all = np.float64(weight) * step
    per_row = hessian_all / np.float64(count_all)  # smoothing and l2 are given in rows
    smoothing = rules.category[SMOOTHING] * per_row
    l2 += rules.category[L2] * per_row
    mean = sum_all / (hessian_all + l2) if hessian_all + l2 > 0.0 else 0.0
    min_rows = max(np.int64(rules.category[MIN_ROWS]), 1)
    codes = np.empty(n, np.int64)
    m = 0
    n_kept = np.int64(0)
    for b in range(n):
        count = sums[b] & _COUNT
        if count >= min_rows:
            codes[m] = b
            m += 1
            n_kept += count
    if m == 0 or (m == 1 and n_kept == count_all):
        return NOTHING
    keys = np.empty(m, np.float64)
    for k in range(m):
        b = codes[k]
        hessian = np.float64(weights[b]) * step + smoothing
        gradient = np.float64(sums[b] >> np.int64(32)) + mean * smoothing
        keys[k] = gradient / hessian if hessian > 0.0 else 0.0
    order = np.argsort(keys, kind="mergesort")  # stable: of equal keys the lower bin comes first
    nothing_else = n_kept == count_all
    longest = min(np.int64(rules.category[MAX_SET]), m - 1 if nothing_else else m)
    penalty = rules.category[NOISE] * max(m - 2, 0)
    before = _score(sum_all, hessian_all + l2)
    best, best_size, best_end = NOTHING, 0, 0
    best_sum, best_weight = np.int64(0), np.int64(0)
    for end in range(2):
        left, left_weight = np.int64(0), np.int64(0)
        for k in range(longest):
            b = codes[order[k if end == 0 else m - 1 - k]]
            left += sums[b]
            left_weight += weights[b]
            count = left & _COUNT
            if min(count, count_all - count) < rules.min_leaf:
                continue
            gradient = np.float64(left >> np.int64(32))
            after = _score(gradient, np.float64(left_weight) * step + l2) + _score(
                sum_all - gradient, np.float64(weight - left_weight) * step + l2
            )
            gain = after - before
            if gain > 1e-12 * after and gain - penalty > max(best, 0.0):
                best, best_size, best_end = gain - penalty, k + 1, end
                best_sum, best_weight = left, left_weight
    if best_size == 0:
        return NOTHING
    # Where nothing else is there, unknown categories go to the larger side, like missing values.
    turned = nothing_else and 2 * (best_sum & _COUNT) > count_all
    for word in range(4):
        fields[MASK + word] = 0
    for k in range(m):
        place = k if best_end == 0 else m - 1 - k
        if (k < best_size) != turned:
            b = codes[order[place]]
            fields[MASK + (b >> 6)] |= np.int64(1) << (b & 63)
    fields[4] = total - best_sum if turned else best_sum
    fields[5] = (weight - best_weight if turned else best_weight) if has_hessian else 0
    return best
