"""Kernels of gains: what candidates for a split of a leaf gain, given the sums of the left child.

For least squares the gain of a split is computed as D*D / (n nL nR) with D = GL n - G nL, which is
the same as GL²/nL + GR²/nR - G²/n but exact up to one rounding: D is a whole number, and a split
that gains nothing gains exactly 0.
"""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np

from rankgrove.jit import njit

_COUNT = np.int64(0xFFFFFFFF)
NOTHING = -1.0  # the gain of a candidate that is not allowed


@njit(cache=True, error_model="numpy")
def mse_gains(prefix, total, min_leaf, n, gains):
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
def _free_newton_gains(prefix, total, weights, weight, step, l2, min_leaf, n, gains):
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
def bounded_mse_gains(prefix, total, low, high, min_leaf, n, gains):
    """As `mse_gains`, for means that are clipped to the bounds of the leaf."""
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
    """As `_free_newton_gains`, for values G/(H + l2) that are clipped to the bounds of the leaf."""
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
def refuse_disorder(prefix, total, weights, weight, step, l2, newton, sign, n, gains):
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
def newton_gains(prefix, total, weights, weight, step, l2, low, high, min_leaf, n, gains):
    """Fill the gains of n candidates of a leaf whose values are between `low` and `high`.

    In: of every candidate the packed sum (gradient << 32, count) and the hessian of its left child;
    the same of the leaf, `total` and `weight`. Hessians are in units of `step`.
    """
    if low > -np.inf or high < np.inf:
        _bounded_newton_gains(
            prefix, total, weights, weight, step, l2, low, high, min_leaf, n, gains
        )
    else:
        _free_newton_gains(prefix, total, weights, weight, step, l2, min_leaf, n, gains)


@njit(cache=True)
def bounds_of(child, rules):
    """Return the lowest and the highest value of a leaf; infinite without constraints."""
    if rules.signs.size:
        return rules.bounds[child, 0], rules.bounds[child, 1]
    return -np.inf, np.inf
