# mypy: ignore-errors
"""The small QP of cutting planes, by steps along pairs of variables, and its linear algebra.

All sums run in a fixed order, whatever the number of threads.
"""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit

FLAT = 1e-14  # a curvature below this part of its diagonal is none
REFRESH = 1000  # steps after which the gradient is recomputed: updates accumulate rounding errors


@njit(cache=True, nogil=True)
def dot(x, y):
    """Return x . y, summed in four lanes."""
    n = x.size
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    k = 0
    while k + 3 < n:
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
        k += 4
    while k < n:
        a += x[k] * y[k]
        k += 1
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def products(rows, x, out):
    """Fill out[k] = rows[k] . x."""
    for k in range(rows.shape[0]):
        out[k] = dot(rows[k], x)


@njit(cache=True, nogil=True)
def combination(rows, a, out):
    """Fill out = sum of a[k] rows[k]."""
    for j in range(out.size):
        out[j] = 0.0
    for k in range(a.size):
        weight = a[k]
        if weight != 0.0:
            row = rows[k]
            for j in range(out.size):
                out[j] += weight * row[j]


@njit(cache=True, nogil=True)
def refresh(hessian, linear, a, gradient):
    """Fill gradient = linear - hessian a."""
    n = linear.size
    for k in range(n):
        gradient[k] = linear[k]
    for k in range(n):
        weight = a[k]
        if weight != 0.0:
            row = hessian[k]
            for j in range(n):
                gradient[j] -= weight * row[j]


@njit(cache=True, nogil=True)
def group_gaps(group, bound, a, gradient, top, upper, gap):
    """Fill for every group its best variable and its part of the gap; return the whole gap.

    The objective is concave, so no feasible point lies above it by more than the largest gain of
    its linear model: bound * (largest gradient, or 0) - a . gradient, summed over the groups.

    top, upper : out, the largest gradient of a group and whose it is; 0 and -1: the free rest's
    """
    for g in range(bound.size):
        top[g] = 0.0
        upper[g] = -1
        gap[g] = 0.0
    for k in range(a.size):
        g = group[k]
        gap[g] -= a[k] * gradient[k]
        if gradient[k] > top[g]:
            top[g] = gradient[k]
            upper[g] = k
    whole = 0.0
    for g in range(bound.size):
        gap[g] += bound[g] * top[g]
        whole += gap[g]
    return whole


@njit(cache=True, nogil=True)
def best_lower(hessian, group, a, gradient, rest, own, upper, top):
    """Return which variable should give to `upper`, and how much, for the largest gain.

    -1 stands for the rest of a group, what its bound leaves free: a variable with no gradient.
    """
    best_gain, best_step, lower = 0.0, 0.0, -2
    diagonal = hessian[upper, upper] if upper >= 0 else 0.0
    for k in range(a.size):
        if group[k] != own or a[k] <= 0.0 or k == upper:
            continue
        slope = top - gradient[k]
        if slope <= 0.0:
            continue
        curve = diagonal + hessian[k, k]
        least = FLAT * curve
        if upper >= 0:
            curve -= 2.0 * hessian[upper, k]
        step = a[k]
        if curve > least:
            step = min(step, slope / curve)
        gain = step * (slope - 0.5 * step * max(curve, 0.0))
        if gain > best_gain:
            best_gain, best_step, lower = gain, step, k
    if upper >= 0 and rest > 0.0 and top > 0.0:
        step = rest
        if diagonal > 0.0:
            step = min(step, top / diagonal)
        gain = step * (top - 0.5 * step * diagonal)
        if gain > best_gain:
            best_gain, best_step, lower = gain, step, -1
    return lower, best_step


@njit(cache=True, nogil=True)
def maximise(hessian, linear, group, bound, a, tolerance, most_steps):
    """Maximise a . linear - a' hessian a / 2 with a >= 0 and sums of groups within their bounds.

    Every step takes the group with the largest part of the gap, its variable with the largest
    gradient, and the partner with which a move gains most.

    a : inout, a feasible start
    Returns the steps taken. The gap is then at most `tolerance`, unless the steps ran out or
    rounding leaves nothing to gain.
    """
    n, m = linear.size, bound.size
    gradient = np.empty(n)
    top, gap = np.empty(m), np.empty(m)
    upper = np.empty(m, np.int64)
    rest = bound.copy()
    for k in range(n):
        rest[group[k]] -= a[k]
    refresh(hessian, linear, a, gradient)
    fresh = True
    for step_number in range(most_steps):
        whole = group_gaps(group, bound, a, gradient, top, upper, gap)
        own = np.argmax(gap)
        lower, step = best_lower(hessian, group, a, gradient, rest[own], own, upper[own], top[own])
        if whole <= tolerance or lower == -2:
            if fresh:
                return step_number
            refresh(hessian, linear, a, gradient)
            fresh = True
            continue
        up = upper[own]
        if up >= 0:
            a[up] += step
            for k in range(n):
                gradient[k] -= step * hessian[up, k]
        else:
            rest[own] += step
        if lower >= 0:
            a[lower] = a[lower] - step if step < a[lower] else 0.0
            for k in range(n):
                gradient[k] += step * hessian[lower, k]
        else:
            rest[own] = rest[own] - step if step < rest[own] else 0.0
        fresh = False
        if (step_number + 1) % REFRESH == 0:
            refresh(hessian, linear, a, gradient)
            fresh = True
    return most_steps


@njit(cache=True, nogil=True)
def certificate(hessian, linear, group, bound, a):
    """Return the objective and the gap, both from scratch."""
    n, m = linear.size, bound.size
    gradient = np.empty(n)
    top, gap = np.empty(m), np.empty(m)
    upper = np.empty(m, np.int64)
    refresh(hessian, linear, a, gradient)
    value = 0.0
    for k in range(n):
        value += 0.5 * a[k] * (linear[k] + gradient[k])
    return value, group_gaps(group, bound, a, gradient, top, upper, gap)
