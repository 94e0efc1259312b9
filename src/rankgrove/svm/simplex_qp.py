"""The QP of cutting-plane methods: concave, on a simplex or on one simplex per group.

    maximise a . D - a' H a / 2   with   a >= 0   and   sum of a over a group <= the group's bound

It is small, dense and often singular, and is solved repeatedly, each time with one more row. So
every solve starts from the last solution, and ends by the gap, not after a number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Enough for any problem that can be solved in float64; else the gap shows the remaining error.
MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class QPSolution:
    """The result of :func:`solve_qp`.

    Attributes
    ----------
    a : the variables
    value : the objective
    gap : no feasible point is better by more than this
    steps : number of steps
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
    hessian : symmetric, positive semidefinite, of shape (n, n); of a larger one, the first n rows
        and columns are used
    linear : n numbers
    bound : the largest sum of every group
    group : the group of every variable; None: all are in group 0
    start : a point to start from, without negative entries; None: 0. Groups above their bound are
        scaled down
    tolerance : the gap at which solving ends

    Examples
    --------
    >>> solution = solve_qp(np.eye(2), np.array([3.0, 1.0]), np.array([2.0]))
    >>> solution.a, solution.value, solution.gap <= 1e-10
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
    """Scale every group down to its bound, in place: rounding may have left it slightly above."""
    total = np.bincount(group, a, minlength=bound.size)
    over = total > bound
    if over.any():
        factor = np.ones(bound.size)
        factor[over] = bound[over] / total[over]
        a *= factor[group]
