"""Kernels of splitting: the best threshold of every feature of a leaf.

A candidate (bin b, side of the missing values) sends the rows of bins 0..b to the left. Of equal
gains the lowest column wins, then the lowest bin, then missing values to the right.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.growth._category_kernels import MASK, scan_categories
from rankgrove.growth._gain_kernels import (
    NOTHING,
    bounded_mse_gains,
    bounds_of,
    mse_gains,
    newton_gains,
    refuse_disorder,
)
from rankgrove.jit import njit

MISSING = 255
FEATURES_A_BLOCK = 8
# Of a split: feature, bin, missing left, any missing, packed sum and hessian of the left child,
# and of a set of categories four words with the bins that go left.
OUT_FIELDS = MASK + 4


class SearchRules(NamedTuple):
    """What the search for the best splits of one or two leaves depends on.

    Attributes
    ----------
    n_bins, columns : one per feature
    allowed : leaves x features: which features a leaf may use
    totals, weights : of every leaf, the packed sum and the quantised hessian
    step : the value of one unit of a quantised hessian
    l2, min_leaf : as in :class:`~rankgrove.growth.splitting.SplitRules`
    count_bits, hessian_bits : of a packed sum; 0 hessian bits: it has none
    is_categorical : one per feature; None where none is, so that nothing is compiled for them
    category : rules for sets of categories, in the order of `_category_kernels.py`
    signs : int8, the direction of every feature, 0 for none; empty: there are no constraints
    bounds : leaves x 2, the lowest and highest value of a leaf, in units of quantised gradients;
        empty if `signs` is
    """

    n_bins: np.ndarray
    columns: np.ndarray
    allowed: np.ndarray
    totals: np.ndarray
    weights: np.ndarray
    step: float
    l2: float
    min_leaf: int
    count_bits: int
    hessian_bits: int
    is_categorical: np.ndarray | None
    category: np.ndarray
    signs: np.ndarray
    bounds: np.ndarray


@njit(cache=True)
def splits_by_set(is_categorical, feature):
    """Return whether a feature is categorical."""
    if is_categorical is None:
        return False
    return is_categorical[feature]


@njit(cache=True)
def _scan_set(is_categorical, hist, block, feature, child, rules, gains, fields):
    """Find the best set of categories; not compiled where there are none."""
    if is_categorical is None:
        return NOTHING
    return scan_categories(hist, block, feature, child, rules, gains, fields)


@njit(cache=True)
def _prefix(hist, start, base, n, out):
    total = base
    for b in range(n):
        total += hist[start + b]
        out[b] = total


@njit(cache=True)
def _unpack(prefix, weights, count_bits, hessian_bits, n):
    """Bring sums of three fields into the form of two: gradient and count, and hessian."""

    for b in range(n):
        both = prefix[b] & ((np.int64(1) << (count_bits + hessian_bits)) - np.int64(1))
        weights[b] = both >> count_bits
        count = both & ((np.int64(1) << count_bits) - np.int64(1))
        gradient = prefix[b] >> (count_bits + hessian_bits)
        prefix[b] = (gradient << np.int64(32)) + count


@njit(cache=True)
def fill_gains(sums, weights, has_hessian, feature, child, rules, n, gains):
    """Fill the gains of n candidates of a feature, given the sums of their left children."""
    total, min_leaf = rules.totals[child], rules.min_leaf
    weight, step, l2 = rules.weights[child], rules.step, rules.l2
    low, high = bounds_of(child, rules)
    if has_hessian:
        newton_gains(sums, total, weights, weight, step, l2, low, high, min_leaf, n, gains)
    elif low > -np.inf or high < np.inf:
        bounded_mse_gains(sums, total, low, high, min_leaf, n, gains)
    else:
        mse_gains(sums, total, min_leaf, n, gains)
    if rules.signs.size:
        sign = np.float64(rules.signs[feature])
        if sign != 0.0:
            # the candidate that separates all values from the missing ones has no order
            ordered = min(n, rules.n_bins[feature] - 1)
            refuse_disorder(
                sums, total, weights, weight, step, l2, has_hessian, sign, ordered, gains
            )


@njit(cache=True)
def scan_side(hist, block, start, missing_left, n, child, rules, prefix, weights, gains):
    """Fill the gains of a feature's n candidates with missing values on one side."""
    missing = hist[0, block, start + MISSING] if missing_left else np.int64(0)
    _prefix(hist[0, block], start, missing, n, prefix)
    if hist.shape[0] == 2:
        missing = hist[1, block, start + MISSING] if missing_left else np.int64(0)
        _prefix(hist[1, block], start, missing, n, weights)
    elif rules.hessian_bits > 0:
        _unpack(prefix, weights, rules.count_bits, rules.hessian_bits, n)
    feature = block * FEATURES_A_BLOCK + start // 256
    has_hessian = hist.shape[0] == 2 or rules.hessian_bits > 0
    fill_gains(prefix, weights, has_hessian, feature, child, rules, n, gains)


@njit(cache=True)
def scan_block(hist, block, child, rules, out_gain, out):
    """Find the best split among the eight features of a block of a leaf's histogram.

    In: hist (planes, blocks, 2048); child, the number of the leaf in rules (SearchRules).
    Out: out_gain[child, block] and out[child, block] (OUT_FIELDS).
    """
    prefix = np.empty(256, np.int64)
    weights = np.zeros(256, np.int64)
    gains = np.empty(256, np.float64)
    fields = np.zeros(OUT_FIELDS, np.int64)
    fields[3] = 1  # where missing values go is not to be decided again
    best = NOTHING
    best_column = -1
    first = block * FEATURES_A_BLOCK
    n_bins, columns, allowed = rules.n_bins, rules.columns, rules.allowed[child]
    best_split = out[child, block]
    count_mask = (np.int64(1) << rules.count_bits) - np.int64(1)
    for feature in range(first, min(first + FEATURES_A_BLOCK, n_bins.size)):
        if not allowed[feature]:
            continue
        start = (feature - first) * 256
        if splits_by_set(rules.is_categorical, feature):
            gain = _scan_set(
                rules.is_categorical, hist, block, feature, child, rules, gains, fields
            )
            if gain > best or (gain == best and gain > 0.0 and columns[feature] < best_column):
                best = gain
                best_column = columns[feature]
                fields[0] = feature
                for k in range(OUT_FIELDS):  # compiles sooner than a slice
                    best_split[k] = fields[k]
            continue
        n_missing = hist[0, block, start + MISSING] & count_mask
        best_bin = -1  # of this feature, if it has the best split so far
        for missing_left in range(2 if n_missing else 1):
            # Separating all values from the missing ones is a split; sending all left is none.
            n = n_bins[feature] - (0 if n_missing and not missing_left else 1)
            scan_side(hist, block, start, missing_left, n, child, rules, prefix, weights, gains)
            for b in range(n):
                if gains[b] < best or gains[b] == NOTHING:
                    continue
                if gains[b] == best and (
                    b >= best_bin if best_bin >= 0 else columns[feature] > best_column
                ):
                    continue
                best = gains[b]
                best_bin = b
                best_column = columns[feature]
                best_split[0] = feature
                best_split[1] = b
                best_split[2] = missing_left
                best_split[3] = n_missing
                best_split[4] = prefix[b]
                best_split[5] = weights[b]
                best_split[MASK:] = 0
    out_gain[child, block] = best
