"""The QP of cutting-plane methods: concave, on a simplex or on one simplex a group.

    maximise a . D - a' H a / 2   with   a >= 0   and   sum of a over a group <= the group's bound

It is small, dense and often singular, and is solved again and again with one more row: so every
solve starts from the last solution, and the gap, not a count of steps, says when it is good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Enough for any problem that can be solved in float64 at all; what is left then is in the gap.
MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class QPSolution:
    """Where :func:`solve_qp` ended.

    Attributes
    ----------
    a : the variables
    value : the objective there
    gap : no feasible point is better by more than this
    steps : how many steps it took
    """

    a: np.ndarray
    value: float
    gap: float
    steps: int


def solve_qp(
    hessian: np.ndarray,
    linear: np.ndarray,
    bound: np.ndarray,
    *,
    group: np.ndarray | None = None,
    start: np.ndarray | None = None,
    tolerance: float = 1e-10,
    most_steps: int = MOST_STEPS,
) -> QPSolution:
    """Maximise ``a . linear - a' hessian a / 2`` on simplices.

    Parameters
    ----------
    hessian : symmetric, positive semidefinite, of shape (n, n); of a larger one, its first n rows
        and columns
    linear : n numbers
    bound : the largest sum of every group
    group : the group of every variable; None: all are in group 0
    start : a point to begin at, with no negative entry; None: 0. What is above a bound is scaled
        down
    tolerance : the gap that is good enough

    Examples
    --------
    >>> found = solve_qp(np.eye(2), np.array([3.0, 1.0]), np.array([2.0]))
    >>> found.a, found.value, found.gap <= 1e-10
    (array([2., 0.]), 4.0, True)
    """
    from rankgrove.svm._qp_kernels import certificate, maximise

    groups = np.zeros(linear.size, np.int64) if group is None else group
    a = np.zeros(linear.size) if start is None else np.array(start, np.float64)
    _into_bounds(a, groups, bound)
    steps = int(maximise(hessian, linear, groups, bound, a, tolerance, most_steps))
    _into_bounds(a, groups, bound)
    value, gap = certificate(hessian, linear, groups, bound, a)
    return QPSolution(a, float(value), float(gap), steps)


def _into_bounds(a: np.ndarray, group: np.ndarray, bound: np.ndarray) -> None:
    """Scale every group down to its bound, in place: rounding may leave it a little above."""
    total = np.bincount(group, a, minlength=bound.size)
    over = total > bound
    if over.any():
        factor = np.ones(bound.size)
        factor[over] = bound[over] / total[over]
        a *= factor[group]
