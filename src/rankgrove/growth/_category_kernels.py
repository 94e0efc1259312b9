"""Kernels of splits on sets of categories: the best set of a categorical feature of a leaf.

The categories of a leaf that have enough rows are sorted by gradient over hessian, shrunk towards
that of the leaf. Every prefix and every suffix of that order is a candidate set; everything else,
categories with few rows and missing values among it, goes to the other side. Where nothing is
shrunk or subtracted, one of them is the best of all sets (Fisher 1958), with l2 and bounds too: the
gain is a convex function of the gradient and the hessian of the set. It is not always the best of
the sets that `max_set` and `min_leaf` allow.

Sorting by the target makes noise look like signal. Let the categories of hessians H_c have no
effect: their gradients are noise of variance s H_c. The extreme categories that hold a share p of
the sum R of all sqrt(H_c) have then a gradient of about sqrt(s) R phi(z_p), where z_p is the
quantile and phi the density of the normal distribution, and as the left child with hessian H_L of H
they gain s (R phi(z_p))² H / (H_L (H - H_L)). For m categories of the same size that is 2/pi per
category at p = 1/2, the most, and 2 log m for a single one. It is subtracted from the gain of every
set, except for what two equal categories would have: they are as good as a threshold.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

from statistics import NormalDist

import numpy as np

from rankgrove.growth._gain_kernels import NOTHING, bounds_of, newton_gains
from rankgrove.jit import njit

MISSING = 255
_COUNT = np.int64(0xFFFFFFFF)
_ALL_BUT_THE_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)
_TINY = 1e-300
# Places in `rules.category`: see CategoryRules.
SMOOTHING, L2, NOISE, MIN_ROWS, MAX_SET = range(5)
# The density of the normal distribution at its quantiles 0, 1/256, ..., 1.
_NORMAL = NormalDist()
DENSITIES = np.array([0.0, *(_NORMAL.pdf(_NORMAL.inv_cdf(k / 256)) for k in range(1, 256)), 0.0])
MASK = 6  # of a split's fields: four words with the bins that go left


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
def _frequent(n, min_rows, sums, order):
    """Set `order` to the categories of at least min_rows rows; return their number."""
    m = 0
    for b in range(n):
        if sums[b] & _COUNT >= min_rows:
            order[m] = b
            m += 1
    return m


@njit(cache=True, error_model="numpy")
def _sort(order, sums, weights, step, smoothing, mean):
    """Sort categories by their gradient over hessian; of equal ones the lower bin comes first.

    The key of a category is one whole number: the bits of its ratio, which are in the order of the
    ratios once those of negative ones are flipped, with the bin in place of the last eight.
    """
    ratios = np.empty(order.size, np.float64)
    for k in range(order.size):
        b = order[k]
        hessian = np.float64(weights[b]) * step + smoothing
        gradient = np.float64(sums[b] >> np.int64(32)) + mean * smoothing
        ratios[k] = gradient / max(hessian, _TINY)  # without a hessian: at one of the ends
    keys = ratios.view(np.int64)
    for k in range(order.size):
        bits = keys[k] ^ ((keys[k] >> np.int64(63)) & _ALL_BUT_THE_SIGN)
        keys[k] = (bits & ~np.int64(255)) | order[k]
    keys.sort()
    for k in range(order.size):
        order[k] = keys[k] & np.int64(255)


@njit(cache=True, error_model="numpy")
def _subtract_noise(order, end, weights, weight, noise, n, gains):
    """Subtract from the gains of n sets what sets of categories without any effect would have."""
    m = order.size
    hessians, roots = np.empty(m, np.float64), np.empty(m, np.float64)
    for k in range(m):
        hessians[k] = np.float64(weights[order[k if end == 0 else m - 1 - k]])
        roots[k] = np.sqrt(hessians[k])
    for k in range(1, m):
        hessians[k] += hessians[k - 1]
        roots[k] += roots[k - 1]
    if roots[m - 1] == 0.0:
        return
    per_root = 256.0 / roots[m - 1]
    for k in range(n):
        place = roots[k] * per_root
        lower = min(np.int64(place), 255)
        density = DENSITIES[lower] + (place - lower) * (DENSITIES[lower + 1] - DENSITIES[lower])
        gradient = roots[m - 1] * density
        both = hessians[k] * (weight - hessians[k])
        expected = gradient * gradient * weight / both if both > 0.0 else 0.0
        gains[k] -= noise * max(expected - 4.0 / np.pi, 0.0)


@njit(cache=True, error_model="numpy")
def scan_categories(hist, block, feature, child, rules, gains, fields):
    """Find the best set of a categorical feature; return its gain, NOTHING if there is none.

    In: hist (planes, blocks, 2048); feature, whose bins begin at 256 times its place in the block;
    child, the number of the leaf in rules (SearchRules). Room: gains. Out: fields, those of the
    split, from its packed sum on.
    """
    n = rules.n_bins[feature]
    sums, weights = np.empty(n, np.int64), np.empty(n, np.int64)
    category_sums(hist, block, (feature % 8) * 256, n, rules, sums, weights)
    has_hessian = hist.shape[0] == 2 or rules.hessian_bits > 0
    step = rules.step if has_hessian else 1.0
    total = rules.totals[child]
    count_all = total & _COUNT
    weight = rules.weights[child] if has_hessian else count_all
    hessian_all = np.float64(weight) * step
    per_row = hessian_all / np.float64(count_all)  # smoothing and l2 are given in rows
    l2 = (rules.l2 if has_hessian else 0.0) + rules.category[L2] * per_row
    smoothing = rules.category[SMOOTHING] * per_row
    mean = np.float64(total >> np.int64(32)) / (hessian_all + l2) if hessian_all + l2 > 0.0 else 0.0
    order = np.empty(n, np.int64)
    m = _frequent(n, max(np.int64(rules.category[MIN_ROWS]), 1), sums, order)
    order = order[:m]
    n_kept = np.int64(0)
    for k in range(m):
        n_kept += sums[order[k]] & _COUNT
    nothing_else = n_kept == count_all
    if m == 0 or (m == 1 and nothing_else):
        return NOTHING
    _sort(order, sums, weights, step, smoothing, mean)
    longest = min(np.int64(rules.category[MAX_SET]), m - 1 if nothing_else else m)
    low, high = bounds_of(child, rules)
    lefts, left_weights = np.empty(longest, np.int64), np.empty(longest, np.int64)
    best, best_size, best_end = 0.0, 0, 0
    best_sum, best_weight = np.int64(0), np.int64(0)
    # Where nothing else is there, suffixes are the other sides of prefixes.
    for end in range(1 if nothing_else and longest == m - 1 else 2):
        left, left_weight = np.int64(0), np.int64(0)
        for k in range(longest):
            b = order[k if end == 0 else m - 1 - k]
            left += sums[b]
            left_weight += weights[b]
            lefts[k] = left
            left_weights[k] = left_weight
        newton_gains(
            lefts, total, left_weights, weight, step, l2, low, high, rules.min_leaf, longest, gains
        )
        if rules.category[NOISE] > 0.0:
            noise = rules.category[NOISE]
            _subtract_noise(order, end, weights, np.float64(weight), noise, longest, gains)
        for k in range(longest):
            if gains[k] > best:
                best, best_size, best_end = gains[k], k + 1, end
                best_sum, best_weight = lefts[k], left_weights[k]
    if best_size == 0:
        return NOTHING
    # Where nothing else is there, unknown categories go to the larger side, like missing values.
    turned = nothing_else and 2 * (best_sum & _COUNT) > count_all
    for word in range(4):
        fields[MASK + word] = 0
    for k in range(m):
        if (k < best_size) != turned:
            b = order[k if best_end == 0 else m - 1 - k]
            fields[MASK + (b >> 6)] |= np.int64(1) << (b & 63)
    fields[4] = total - best_sum if turned else best_sum
    fields[5] = (weight - best_weight if turned else best_weight) if has_hessian else 0
    return best
