"""Kernels of symmetric trees: the gains of one split, added up over the leaves of a level.

A candidate is (feature, bin, side of the missing values); gains are (features, 2, 256), by side and
bin. Leaves are added one after the other, so the order of the additions is fixed. Of equal sums the
lowest column wins, then the lowest bin, then missing values to the right. A candidate of a
categorical feature is one category: it goes left, all others and missing values go right.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove.growth._category_kernels import category_sums
from rankgrove.growth._splitting_kernels import (
    FEATURES_A_BLOCK,
    MISSING,
    fill_gains,
    scan_side,
    splits_by_set,
)
from rankgrove.jit import njit


@njit(cache=True)
def _add_useful(gains, n, out):
    for b in range(n):
        out[b] += max(gains[b], 0.0)  # a candidate that does not divide the leaf gains nothing


@njit(cache=True)
def _scan_single(hist, feature, n, rules, sums, weights, gains):
    """Fill the gains of separating one category from the others, for n categories."""
    block, place = divmod(feature, FEATURES_A_BLOCK)
    category_sums(hist, block, place * 256, n, rules, sums, weights)
    has_hessian = hist.shape[0] == 2 or rules.hessian_bits > 0
    fill_gains(sums, weights, has_hessian, feature, 0, rules, n, gains)


@njit(cache=True)
def _add_block(hist, block, rules, sides, totals):
    """Add the gains of a leaf for the eight features of a block."""
    prefix = np.empty(256, np.int64)
    weights = np.zeros(256, np.int64)
    gains = np.empty(256, np.float64)
    count_mask = (np.int64(1) << rules.count_bits) - np.int64(1)
    first = block * FEATURES_A_BLOCK
    for feature in range(first, min(first + FEATURES_A_BLOCK, rules.n_bins.size)):
        if not rules.allowed[0, feature]:
            continue
        start = (feature - first) * 256
        if splits_by_set(rules.is_categorical, feature):
            n = rules.n_bins[feature]
            _scan_single(hist, feature, n, rules, prefix, weights, gains)
            _add_useful(gains, n, totals[feature, 0])
            continue
        missing = hist[0, block, start + MISSING] & count_mask
        for side in range(sides[feature]):
            # as in scan_block: all values may be separated from the missing ones
            n = rules.n_bins[feature] - (0 if sides[feature] == 2 and side == 0 else 1)
            if side == 0 or missing:  # otherwise both sides gain the same
                scan_side(hist, block, start, side, n, 0, rules, prefix, weights, gains)
            _add_useful(gains, n, totals[feature, side])


@njit(cache=True)
def add_gains_part(hist, rules, sides, totals, part, n_parts):
    """Add the gains of a leaf, for a part of the blocks of features.

    In: hist (planes, blocks, 2048); rules (SearchRules) of the leaf; sides, for every feature 2 if
    it has missing values in the root, else 1. In and out: totals (features, 2, 256).
    """
    for block in range(part, hist.shape[1], n_parts):
        _add_block(hist, block, rules, sides, totals)


@njit(cache=True, parallel=True)
def add_gains(hist, rules, sides, totals, n_parts):
    """All parts of :func:`add_gains_part`."""
    for part in prange(n_parts):
        add_gains_part(hist, rules, sides, totals, part, n_parts)


@njit(cache=True)
def best_candidate(totals, n_bins, columns, sides):
    """Return feature, bin and side of the candidate with the highest sum, and the sum."""
    best, best_feature, best_bin, best_side = 0.0, -1, -1, 0
    for feature in range(n_bins.size):
        for b in range(n_bins[feature]):
            for side in range(sides[feature]):
                total = totals[feature, side, b]
                if total < best or total == 0.0:
                    continue
                if total == best and (
                    feature == best_feature or columns[feature] > columns[best_feature]
                ):
                    continue
                best, best_feature, best_bin, best_side = total, feature, b, side
    return best_feature, best_bin, best_side, best


@njit(cache=True)
def division_of(hist, feature, bin, side, rules):
    """Return the gain of a split of a leaf, and the packed sum and hessian of its left child."""
    prefix = np.empty(256, np.int64)
    weights = np.zeros(256, np.int64)
    gains = np.empty(256, np.float64)
    block, place = divmod(feature, FEATURES_A_BLOCK)
    if splits_by_set(rules.is_categorical, feature):
        _scan_single(hist, feature, bin + 1, rules, prefix, weights, gains)
    else:
        scan_side(hist, block, place * 256, side, bin + 1, 0, rules, prefix, weights, gains)
    return gains[bin], prefix[bin], weights[bin]
