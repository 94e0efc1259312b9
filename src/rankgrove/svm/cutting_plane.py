"""Structural SVMs by cutting planes, independent of the kind of examples.

The problem is Optimization Problem 1 of the SVM-map paper, with shares s_i (1/n, or weights):

    min  |w|^2 / 2  +  C * sum of s_i xi_i
    s.t. for every example i and every output y:  w . g_i(y) >= Delta_i(y) - xi_i,  xi_i >= 0

where g_i(y) = Psi(x_i, y_i) - Psi(x_i, y). An oracle finds, for a w, the output of an example whose
constraint is violated most. ``n-slack`` is the paper's Algorithm 1. ``1-slack`` has one constraint
for every choice of outputs for all examples, their mean; its number of iterations does not grow
with the number of examples. The optimum is the same for the same C:

    min  |w|^2 / 2  +  C * xi      s.t.  w . sum of s_i g_i(y_i) >= sum of s_i Delta_i(y_i) - xi
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rankgrove.svm.constraints import WorkingSet
from rankgrove.validation import check_choice, check_real, refuse

FORMS = ("1-slack", "n-slack")
PATIENCE = 50  # number of solves after which an idle constraint is dropped
# The QP is solved to this share of the violation of the last constraint: finer is wasted work.
QP_SHARE = 0.1


class Oracle(ABC):
    """A problem for the solver. A user's oracle has `single`, and may have a faster `joint`.

    Attributes
    ----------
    n_weights : length of w
    shares : the weights of the examples; they add up to 1
    """

    n_weights: int
    shares: np.ndarray

    @abstractmethod
    def single(self, w: np.ndarray, example: int) -> tuple[float, np.ndarray]:
        """Return Delta(y) and g(y) of the output y that maximises Delta(y) - w . g(y).

        The true output, with 0 and zeros, is included: the maximum is never negative.
        """

    def joint(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sums over all examples of share * Delta and of share * g."""
        total, direction = 0.0, np.zeros(self.n_weights)
        for i, share in enumerate(np.asarray(self.shares).tolist()):
            loss, gradient = self.single(w, i)
            total += share * loss
            direction += share * gradient
        return total, direction


@dataclass
class Progress:
    """The state of solving, which is passed to the callback after every pass over all examples.

    Attributes
    ----------
    C, epsilon : parameters of the problem
    iteration : number of passes over all examples so far
    primal : the best objective so far, an upper bound on the optimum
    dual : a lower bound on it
    violation : the violation of the newest constraint; solving ends at epsilon
    n_constraints, n_added : number of constraints kept, and ever added
    seconds : time so far; "oracle" and "qp" are parts of "all"
    """

    C: float
    epsilon: float
    iteration: int = 0
    primal: float = np.inf
    dual: float = 0.0
    violation: float = np.inf
    n_constraints: int = 0
    n_added: int = 0
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("all", "oracle", "qp"), 0.0)
    )

    @property
    def gap(self) -> float:
        """An upper bound of the distance of the objective from the optimum."""
        return self.primal - self.dual

    def __str__(self) -> str:
        return (
            f"C {self.C:g}: {self.iteration} iterations, {self.n_constraints} constraints, "
            f"violation {self.violation:.2g} (goal {self.epsilon:.2g}), objective "
            f"{self.primal:.4g}, gap {self.gap:.2g}"
        )


@dataclass(frozen=True)
class Solution:
    """The result of :func:`solve`: the best w, with its certificate.

    Attributes
    ----------
    w : the weights
    status : "converged", or why it ended early: "iteration limit", "time limit", "memory limit",
        "stopped" (by the callback) or "interrupted" (Ctrl-C)
    slack : the mean slack at w: sum of share * xi
    progress : the figures at the end; ``progress.primal`` is the objective of w
    working : the constraints, from which solving for another C can start
    """

    w: np.ndarray
    status: str
    slack: float
    progress: Progress
    working: WorkingSet

    @property
    def converged(self) -> bool:
        """Whether no constraint is violated by more than epsilon."""
        return self.status == "converged"


class _End(Exception):
    """Ends the loop, with the reason."""


class _Loop:
    """The state of one solve: limits, clocks, the best w."""

    def __init__(
        self,
        oracle: Oracle,
        C: float,
        epsilon: float,
        working: WorkingSet,
        limits: tuple[int | None, float | None, float | None],
        callback: Callable[[Progress], bool | None] | None,
    ) -> None:
        self._looked_at: np.ndarray | None = None
        self.oracle, self.C, self.working = oracle, C, working
        self.progress = Progress(C, epsilon)
        self.best_w, self.best_slack = working.w, np.nan
        self._most, self._time, self._memory = limits
        self._callback = callback
        self._began = time.perf_counter()

    def look(self, w: np.ndarray, slack: float, violation: float, fine: bool = True) -> None:
        """Record the objective at `w`, whose slacks are known for all examples.

        `fine` says that the QP of w was solved to the final tolerance.
        """
        done = self.progress
        done.iteration += 1
        done.violation = violation
        self._take(w, slack)
        self._count()
        stopped = self._callback is not None and self._callback(done)
        if fine and violation <= done.epsilon:
            raise _End("converged")
        if stopped:
            raise _End("stopped")
        if self._most is not None and done.iteration >= self._most:
            raise _End("iteration limit")
        self.check_time()

    def _take(self, w: np.ndarray, slack: float) -> None:
        """Keep w if it is the best so far, and update the bounds."""
        done = self.progress
        objective = 0.5 * float(w @ w) + self.C * slack
        if objective < done.primal:
            done.primal, self.best_w, self.best_slack = objective, w, slack
        done.dual = max(done.dual, self.working.value)
        self._looked_at = w

    def check_time(self) -> None:
        """End the loop if its time is over."""
        if self._time is not None and time.perf_counter() - self._began > self._time:
            raise _End("time limit")

    def ask(self, w: np.ndarray, example: int | None = None) -> tuple[float, np.ndarray, float]:
        """Ask the oracle about one example or all: return loss, gradient and slack."""
        start = time.perf_counter()
        oracle = self.oracle
        if example is not None:
            loss, gradient = oracle.single(w, example)
        elif hasattr(oracle, "joint"):
            loss, gradient = oracle.joint(w)
        else:  # an object with only the required methods
            loss, gradient = Oracle.joint(oracle, w)
        self.progress.seconds["oracle"] += time.perf_counter() - start
        return loss, gradient, max(0.0, loss - float(gradient @ w))

    def add(self, loss: float, gradient: np.ndarray, group: int) -> None:
        """Add a constraint to the working set, if the memory suffices."""
        if self._memory is not None and self.working.megabytes_with_one_more() > self._memory:
            self.working.drop(1)
            if self.working.megabytes_with_one_more() > self._memory:
                raise _End("memory limit")
        self.working.add(loss, gradient, group)

    def solve(self, tolerance: float, patience: int) -> None:
        """Solve the QP again, and drop constraints that have long been idle."""
        start = time.perf_counter()
        self.working.solve(self.C, tolerance)
        self.working.drop(patience)
        self.progress.seconds["qp"] += time.perf_counter() - start

    def _count(self) -> None:
        done = self.progress
        done.n_constraints, done.n_added = len(self.working), self.working.n_added
        done.seconds["all"] = time.perf_counter() - self._began

    def run(self, body: Callable[[_Loop], None]) -> Solution:
        """Run until the body ends, and return the best solution."""
        try:
            try:
                body(self)
            except _End as end:
                status = str(end)
                if self._looked_at is not self.working.w:  # a pass was cut short
                    self._take(self.working.w, self.ask(self.working.w)[2])
        except KeyboardInterrupt:
            if self._looked_at is None:
                raise
            status = "interrupted"
        self._count()
        return Solution(self.best_w, status, self.best_slack, self.progress, self.working)


def solve(
    oracle: Oracle,
    C: float,
    *,
    epsilon: float = 1e-3,
    form: str = "1-slack",
    start: WorkingSet | None = None,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
) -> Solution:
    """Solve a structural SVM.

    Parameters
    ----------
    oracle : the problem: an :class:`Oracle`, or any object with `n_weights`, `shares` and `single`
    C : the weight of the mean slack relative to |w|^2 / 2, as in the paper's equation 3
    epsilon : the violation of constraints that is tolerated; the objective is then within
        C * epsilon of the optimum, plus the gap of the QP, which is at most a tenth of that
    form : "1-slack" or "n-slack"
    start : the constraints of another solve of the same problem in the same form, for another C
    max_iterations : maximum number of passes over all examples
    time_limit : seconds
    memory_limit : megabytes that constraints and their Gram matrix may take
    callback : called after every pass over all examples with a :class:`Progress`; True ends solving

    Returns
    -------
    Solution
        if solving ended early, also by Ctrl-C, the best w so far with its certified gap

    Examples
    --------
    Two examples, each with one wrong output: least |w| with margins is (1, 1).

    >>> class Axes(Oracle):
    ...     n_weights, shares = 2, np.array([0.5, 0.5])
    ...     def single(self, w, i):
    ...         return (1.0, np.eye(2)[i]) if w[i] < 1.0 else (0.0, np.zeros(2))
    >>> solution = solve(Axes(), C=100.0, epsilon=1e-6)
    >>> solution.status, solution.w.round(3).tolist()
    ('converged', [1.0, 1.0])
    """
    if not all(hasattr(oracle, name) for name in ("n_weights", "shares", "single")):
        refuse("oracle", "solve", "an object with n_weights, shares and single(w, example)", oracle)
    check_real("C", "solve", C, above=0.0)
    is_joint = check_choice("form", "solve", form, FORMS) == "1-slack"
    working = start
    if working is None:
        working = WorkingSet(
            oracle.n_weights, np.ones(1) if is_joint else np.asarray(oracle.shares)
        )
    if len(working):
        working.solve(C, QP_SHARE * C * epsilon)
    limits = (max_iterations, time_limit, memory_limit)
    loop = _Loop(oracle, C, epsilon, working, limits, callback)
    return loop.run(_one_slack if is_joint else _n_slack)


def _one_slack(loop: _Loop) -> None:
    """Add the most violated joint constraint and solve again, until none is violated."""
    working, epsilon = loop.working, loop.progress.epsilon
    least, tolerance = np.inf, epsilon
    while True:
        w = working.w
        loss, gradient, slack = loop.ask(w)
        violation = slack - float(working.slacks(w)[0])
        loop.look(w, slack, violation, fine=tolerance <= epsilon)
        if violation > epsilon:
            loop.add(loss, gradient, 0)
            tolerance = least = min(least, violation)
        else:
            tolerance = epsilon  # the same constraints once more, to the final tolerance
        loop.solve(QP_SHARE * loop.C * tolerance, PATIENCE)


def _n_slack(loop: _Loop) -> None:
    """The paper's Algorithm 1: one slack per example, a solve after every new constraint.

    An iteration is one pass over the examples. The objective is known only at a w for which all
    examples were asked: after a pass that adds nothing, or by a separate pass.
    """
    working, epsilon = loop.working, loop.progress.epsilon
    shares = np.asarray(loop.oracle.shares)
    patience = max(PATIENCE, 5 * shares.size)
    tolerance = QP_SHARE * loop.C * epsilon
    while True:
        worst = 0.0
        before = working.n_added
        slacks = np.zeros(shares.size)
        w = working.w
        for i in range(shares.size):
            w = working.w
            loss, gradient, slacks[i] = loop.ask(w, i)
            violation = slacks[i] - working.slack(w, i)
            worst = max(worst, violation)
            if violation > epsilon:
                loop.add(loss, gradient, i)
                loop.solve(tolerance, patience)
            loop.check_time()
        if working.n_added > before:
            # w moved during the pass: ask all examples at the last one, for a certain bound.
            w = working.w
            slack = loop.ask(w)[2]
        else:
            slack = float(shares @ slacks)
        loop.look(w, slack, worst)
