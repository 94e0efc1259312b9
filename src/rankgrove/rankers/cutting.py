"""What rankers that the cutting-plane solver trains share: its limits, and its record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rankgrove.rankers.linear import Learner, LinearRanker
from rankgrove.rankers.linear_data import LinearData
from rankgrove.svm.cutting_plane import FORMS, Oracle, Progress, Solution, solve
from rankgrove.svm.progress import ProgressLine
from rankgrove.validation import check_choice, check_integer, check_real

if TYPE_CHECKING:
    from rankgrove.model.linear import Linear


class CuttingPlaneRanker(LinearRanker):
    """Base of the linear rankers that cutting planes train.

    A subclass names its parameters in ``__init__``, and has ``_oracle``.
    """

    epsilon: float
    form: str
    max_iterations: int | None
    time_limit: float | None
    memory_limit: float | None
    progress: bool

    def _oracle(self, data: LinearData) -> Oracle:
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        check_real("epsilon", owner, self.epsilon, above=0.0)
        check_choice("form", owner, self.form, FORMS)
        if self.max_iterations is not None:
            check_integer("max_iterations", owner, self.max_iterations, low=1)
        for name in ("time_limit", "memory_limit"):
            if getattr(self, name) is not None:
                check_real(name, owner, getattr(self, name), above=0.0)

    def _learner(self, data: LinearData, callbacks: list[Any]) -> Learner:
        oracle = self._oracle(data)
        self._deadline = None if self.time_limit is None else time.monotonic() + self.time_limit
        self.seconds_ = dict.fromkeys(("all", "oracle", "qp"), 0.0)
        before: list[Solution] = []

        def learn(C: float) -> tuple[Linear, dict[str, Any], bool]:
            line = ProgressLine(type(self).__name__) if self.progress else None
            called = [*([line] if line else []), *callbacks]

            def tell(done: Progress) -> bool:
                return any([bool(one(done)) for one in called])  # noqa: C419  (all are called)

            start = None
            if before:  # constraints of a smaller C are true for this one too
                start = before[-1].working
                start.rescale(C / before[-1].progress.C)
            try:
                found = solve(
                    oracle,
                    C,
                    epsilon=self.epsilon,
                    form=self.form,
                    start=start,
                    max_iterations=self.max_iterations,
                    time_limit=self._seconds_left(),
                    memory_limit=self.memory_limit,
                    callback=tell,
                )
            finally:
                if line:
                    line.close()
            before[:] = [found]
            for name, seconds in found.progress.seconds.items():
                self.seconds_[name] += seconds
            return data.linear(found.w), _record(found), found.status == "interrupted"

        return learn

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _out_of_time(self) -> bool:
        return self._seconds_left() == 0.0


def _record(found: Solution) -> dict[str, Any]:
    """Return what to keep of a solution: no times, so that equal models make equal files."""
    done: Progress = found.progress
    return {
        "status": found.status,
        "objective": done.primal,
        "dual": done.dual,
        "gap": done.gap,
        "violation": done.violation,
        "slack": found.slack,
        "iterations": done.iteration,
        "constraints": done.n_constraints,
        "added": done.n_added,
    }
