"""Training with cutting planes, for one C after the other: its limits, and its record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from rankgrove.rankers.fitting import Callback
from rankgrove.rankers.linear.chosen_c import Learner
from rankgrove.rankers.linear.data import LinearData
from rankgrove.svm.cutting_plane import Oracle, Progress, Solution, solve
from rankgrove.svm.progress_line import ProgressLine

if TYPE_CHECKING:
    from rankgrove.model.linear import Linear


class CuttingPlaneParameters(Protocol):
    """The parameters of rankers that are trained with cutting planes."""

    epsilon: float
    form: str
    max_iterations: int | None
    time_limit: float | None
    memory_limit: float | None
    progress: bool


class CuttingPlaneLearner(Learner):
    """Solves for one C after the other; constraints of a smaller C hold for a larger one."""

    def __init__(
        self,
        ranker: CuttingPlaneParameters,
        data: LinearData,
        oracle: Oracle,
        callbacks: list[Callback],
    ) -> None:
        self._ranker = ranker
        self._data = data
        self._oracle = oracle
        self._callbacks = callbacks
        limit = ranker.time_limit
        self._deadline = None if limit is None else time.monotonic() + limit
        self._seconds = dict.fromkeys(("all", "oracle", "qp"), 0.0)
        self._before: Solution | None = None

    def learn(self, C: float) -> tuple[Linear, dict[str, Any], bool]:
        """Return the model, a record of its training, and whether training was interrupted."""
        ranker = self._ranker
        line = ProgressLine(type(ranker).__name__) if ranker.progress else None
        called: list[Callback] = [*([line] if line else []), *self._callbacks]

        def tell(done: Progress) -> bool:
            return any([bool(callback(done)) for callback in called])  # noqa: C419  (call all)

        start = None
        if self._before is not None:
            start = self._before.working
            start.rescale(C / self._before.progress.C)
        try:
            solution = solve(
                self._oracle,
                C,
                epsilon=ranker.epsilon,
                form=ranker.form,
                start=start,
                max_iterations=ranker.max_iterations,
                time_limit=self._seconds_left(),
                memory_limit=ranker.memory_limit,
                callback=tell,
            )
        finally:
            if line:
                line.close()
        self._before = solution
        for name, seconds in solution.progress.seconds.items():
            self._seconds[name] += seconds
        model = self._data.linear(solution.w)
        return model, _record(solution), solution.status == "interrupted"

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def is_out_of_time(self) -> bool:
        """Whether there is no time for another C."""
        return self._seconds_left() == 0.0

    def record(self) -> dict[str, Any]:
        """Return the time that training took."""
        return {"seconds_": self._seconds}


def _record(solution: Solution) -> dict[str, Any]:
    """Return the record of a solution, without times, so that equal models give equal files."""
    done: Progress = solution.progress
    return {
        "status": solution.status,
        "objective": done.primal,
        "dual": done.dual,
        "gap": done.gap,
        "violation": done.violation,
        "slack": solution.slack,
        "iterations": done.iteration,
        "constraints": done.n_constraints,
        "added": done.n_added,
    }
