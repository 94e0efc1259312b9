"""Kernels of splitting: the best threshold of every feature of a leaf.

A candidate (bin b, side of the missing values) sends the rows of bins 0..b to the left. Of equal
gains the lowest column wins, then the lowest bin, then missing values to the right.

For least squares the gain of a split is computed as D*D / (n nL nR) with D = GL n - G nL, which is
the same as GL²/nL + GR²/nR - G²/n but exact up to one rounding: D is a whole number, and a split
that gains nothing gains exactly 0.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from rankgrove.growth._category_kernels import MASK, scan_categories

MISSING = 255
_COUNT = np.int64(0xFFFFFFFF)
NOTHING = -1.0  # the gain of a candidate that is not allowed
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
    is_categorical : one per feature
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
    is_categorical: np.ndarray
    category: np.ndarray
    signs: np.ndarray
    bounds: np.ndarray


@njit(cache=True)
def _prefix(hist, start, base, n, out):
    total = base
    for b in range(n):
        total += hist[start + b]
        out[b] = total


@njit(cache=True, error_model="numpy")
def _mse_gains(prefix, total, min_leaf, n, gains):
    sum_all = total >> np.int64(32)
    count_all = total & _COUNT
    inverse = 1.0 / np.float64(count_all)
    for b in range(n):
        left = prefix[b] & _COUNT
        right = count_all - left
        d = np.float64((prefix[b] >> np.int64(32)) * count_all - sum_all * left)
        gain = d * d / (np.float64(left) * np.float64(right)) * inverse
        gains[b] = gain if min(left, right) >= min_leaf else NOTHING


@njit(cache=True, error_model="numpy", inline="always")
def _score(gradient, hessian):
    return gradient * gradient / hessian if hessian > 0.0 else 0.0


@njit(cache=True, error_model="numpy")
def _newton_gains(prefix, total, weights, weight, step, l2, min_leaf, n, gains):
    """As for least squares; `weights` are the prefix sums of hessians, in units of `step`."""
    sum_all = np.float64(total >> np.int64(32))
    count_all = total & _COUNT
    before = _score(sum_all, np.float64(weight) * step + l2)
    for b in range(n):
        left = prefix[b] & _COUNT
        gradient = np.float64(prefix[b] >> np.int64(32))
        after_left = _score(gradient, np.float64(weights[b]) * step + l2)
        after_right = _score(sum_all - gradient, np.float64(weight - weights[b]) * step + l2)
        after = after_left + after_right
        gain = after - before
        useful = min(left, count_all - left) >= min_leaf and gain > 1e-12 * after
        gains[b] = gain if useful else NOTHING


@njit(cache=True, error_model="numpy", inline="always")
def _clip(value, low, high):
    value = value if value > low else low
    return value if value < high else high


@njit(cache=True, error_model="numpy", inline="always")
def _added(gradient, hessian, value, before):
    """What a leaf's quadratic model v (2 G - H v) adds from the value `before` to `value`."""
    return (value - before) * (2.0 * gradient - hessian * (value + before))


@njit(cache=True, error_model="numpy")
def _bounded_mse_gains(prefix, total, low, high, min_leaf, n, gains):
    """As `_mse_gains`, for means that are clipped to the bounds of the leaf."""
    sum_all = np.float64(total >> np.int64(32))
    count_all = total & _COUNT
    before = _clip(sum_all / np.float64(count_all), low, high)
    least = 1e-12 * before * before * np.float64(count_all)
    for b in range(n):
        left = prefix[b] & _COUNT
        right = count_all - left
        gradient = np.float64(prefix[b] >> np.int64(32))
        rest = sum_all - gradient
        v = _clip(gradient / np.float64(left), low, high)
        w = _clip(rest / np.float64(right), low, high)
        gain = _added(gradient, np.float64(left), v, before)
        gain += _added(rest, np.float64(right), w, before)
        gains[b] = gain if (min(left, right) >= min_leaf) & (gain > least) else NOTHING


@njit(cache=True, error_model="numpy")
def _bounded_newton_gains(prefix, total, weights, weight, step, l2, low, high, min_leaf, n, gains):
    """As `_newton_gains`, for values G/(H + l2) that are clipped to the bounds of the leaf."""
    sum_all = np.float64(total >> np.int64(32))
    count_all = total & _COUNT
    whole = np.float64(weight) * step + l2
    before = _clip(sum_all / whole if whole > 0.0 else 0.0, low, high)
    penalty = l2 * before * before  # both children have l2, their parent has it once
    least = 1e-12 * before * before * whole
    for b in range(n):
        left = prefix[b] & _COUNT
        gradient = np.float64(prefix[b] >> np.int64(32))
        rest = sum_all - gradient
        h_left = np.float64(weights[b]) * step + l2
        h_right = np.float64(weight - weights[b]) * step + l2
        v = _clip(gradient / h_left if h_left > 0.0 else 0.0, low, high)
        w = _clip(rest / h_right if h_right > 0.0 else 0.0, low, high)
        gain = _added(gradient, h_left, v, before) + _added(rest, h_right, w, before) - penalty
        enough = min(left, count_all - left) >= min_leaf
        gains[b] = gain if enough & (gain > least) else NOTHING


@njit(cache=True, error_model="numpy")
def _refuse_disorder(prefix, total, weights, weight, step, l2, newton, sign, n, gains):
    """Refuse the candidates whose values are out of order; clipping them would change no order."""
    sum_all = np.float64(total >> np.int64(32))
    count_all = total & _COUNT
    for b in range(n):
        gradient = np.float64(prefix[b] >> np.int64(32))
        left = prefix[b] & _COUNT
        h_left = np.float64(weights[b]) * step + l2 if newton else np.float64(left)
        h_right = (
            np.float64(weight - weights[b]) * step + l2 if newton else np.float64(count_all - left)
        )
        v = gradient / h_left if h_left > 0.0 else 0.0
        w = (sum_all - gradient) / h_right if h_right > 0.0 else 0.0
        gains[b] = gains[b] if sign * (w - v) >= 0.0 else NOTHING


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
    low, high = -np.inf, np.inf
    if rules.signs.size:
        low, high = rules.bounds[child, 0], rules.bounds[child, 1]
    if low > -np.inf or high < np.inf:
        if has_hessian:
            _bounded_newton_gains(
                sums, total, weights, weight, step, l2, low, high, min_leaf, n, gains
            )
        else:
            _bounded_mse_gains(sums, total, low, high, min_leaf, n, gains)
    elif has_hessian:
        _newton_gains(sums, total, weights, weight, step, l2, min_leaf, n, gains)
    else:
        _mse_gains(sums, total, min_leaf, n, gains)
    if rules.signs.size:
        sign = np.float64(rules.signs[feature])
        if sign != 0.0:
            # the candidate that separates all values from the missing ones has no order
            ordered = min(n, rules.n_bins[feature] - 1)
            _refuse_disorder(
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
        if rules.is_categorical[feature]:
            gain = scan_categories(hist, block, feature, child, rules, prefix, weights, fields)
            if gain > best or (gain == best and gain > 0.0 and columns[feature] < best_column):
                best = gain
                best_column = columns[feature]
                fields[0] = feature
                best_split[:] = fields
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
