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
# Steps along pairs of variables are slow where the problem is badly conditioned: after this many
# of them, moves of all variables at once take turns with them.
PATIENCE = 20_000
ROUNDING = 1e-9  # a gap of this share of the value is not worth such a move
MOST_ENDS = 5
MOST_MOVES = 20


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
    steps = ends = 0
    while True:
        most = min(PATIENCE, most_steps - steps)
        taken = int(maximise(hessian, linear, groups, bound, a, tolerance, most))
        steps += taken
        _into_bounds(a, groups, bound)
        value, gap = certificate(hessian, linear, groups, bound, a)
        ends += taken < most  # rounding may end it before the gap is closed
        closed = gap <= tolerance + ROUNDING * (1.0 + abs(value))
        if closed or steps >= most_steps or ends > MOST_ENDS:
            return QPSolution(a, float(value), float(gap), steps)
        moved = a.copy()
        _move_on_face(hessian, linear, groups, bound, moved)
        _into_bounds(moved, groups, bound)
        if certificate(hessian, linear, groups, bound, moved)[0] > value:
            a = moved


def _move_on_face(
    hessian: np.ndarray, linear: np.ndarray, group: np.ndarray, bound: np.ndarray, a: np.ndarray
) -> None:
    """Move `a` toward the maximum of its face, in place, as far as it stays feasible.

    The face has the variables above 0, and full groups stay full. A variable that becomes 0 leaves
    the face, and the move is repeated.
    """
    n = linear.size
    for _ in range(min(n, MOST_MOVES)):
        free = np.flatnonzero(a > 0.0)
        if free.size == 0:
            return
        rest = bound - np.bincount(group, a, minlength=bound.size)
        full = np.flatnonzero(rest <= 1e-12 * bound)
        equal = (group[free] == full[:, None]).astype(np.float64)
        gradient = linear[free] - hessian[np.ix_(free, np.arange(n))] @ a
        system = np.block(
            [[hessian[np.ix_(free, free)], equal.T], [equal, np.zeros((full.size, full.size))]]
        )
        wanted = np.concatenate([gradient, np.zeros(full.size)])
        solution = np.linalg.lstsq(system, wanted, rcond=None)[0]
        move, whole = solution[: free.size], 1.0
        # What the system cannot reach is a direction without curvature: it ends at a border.
        flat = (wanted - system @ solution)[: free.size]
        if np.linalg.norm(flat) > 1e-9 * np.linalg.norm(gradient):
            move, whole = flat / np.linalg.norm(flat), np.inf
        if not move @ gradient > 0.0:
            return
        falls = move < 0.0
        longest = np.append(-a[free][falls] / move[falls], whole)
        sums = np.bincount(group[free], move, minlength=bound.size)
        grows = (sums > 0.0) & (rest > 1e-12 * bound)
        longest = np.append(longest, rest[grows] / sums[grows])
        step = longest.min()
        if not np.isfinite(step):
            return
        a[free] = np.maximum(a[free] + step * move, 0.0)
        if step == whole:
            return
        a[free[a[free] <= 1e-15 * bound.max()]] = 0.0


def _into_bounds(a: np.ndarray, group: np.ndarray, bound: np.ndarray) -> None:
    """Scale every group down to its bound, in place: rounding may have left it slightly above."""
    total = np.bincount(group, a, minlength=bound.size)
    over = total > bound
    if over.any():
        factor = np.ones(bound.size)
        factor[over] = bound[over] / total[over]
        a *= factor[group]
