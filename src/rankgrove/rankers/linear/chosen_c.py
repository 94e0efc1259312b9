"""The base class of linear rankers with a C: thresholds, the choice of C, learned attributes."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.dataset_checks import has_missing
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure, exact_mean, rank
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.linear import Linear
from rankgrove.rankers.base import Arrays, Content, Learned
from rankgrove.rankers.fitting import Callback, Training
from rankgrove.rankers.linear.data import LinearData, linear_data, scaled_rows
from rankgrove.rankers.linear.parameters import listed_c
from rankgrove.scoring.linear_scores import score_linear
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.rankers.linear.linear_predictor import LinearPredictor as _Base
else:
    _Base = object

_log = logging.getLogger("rankgrove")
_ALL_ZERO = "all weights are 0: the bound is too loose at this C"
# validation data: its name, and a function that measures a model on it
Sight = tuple[str, Callable[[Linear], dict[str, float]]]


class Learner(ABC):
    """Trains a model for every C, from the smallest to the largest."""

    @abstractmethod
    def learn(self, C: float) -> tuple[Linear, dict[str, Any], bool]:
        """Return the model, a record of its training, and whether training was interrupted."""

    def is_out_of_time(self) -> bool:
        """Whether there is no time for another C."""
        return False

    def record(self) -> dict[str, Any]:
        """Return further attributes of the ranker, in addition to the models' records."""
        return {}


class ChoosesC(_Base):
    """Base of the linear rankers that have a C.

    A subclass declares its parameters, and has ``goal`` (the measure that decides on C) and
    ``_learner``.
    """

    goal: ClassVar[str]
    trainable: ClassVar[bool] = True
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "interrupted": "interrupted_",
        "C": "C_",
        "solution": "solution_",
        "solutions": "solutions_",
        "skipped": "skipped_",
    }
    goal_is_binary: ClassVar[bool] = True  # the measure has a parameter `relevant`
    graded: ClassVar[bool] = False  # labels are graded, and there is no `relevant`

    C: float | str | Sequence[float]
    relevant: float
    thresholds: int | None

    C_: float
    solution_: dict[str, Any]
    solutions_: list[dict[str, Any]]
    history_: dict[str, dict[str, list[float]]]
    skipped_: dict[str, int]
    interrupted_: bool

    @property
    def measure(self) -> Measure:
        """The measure that decides on C by default, and that `score` returns."""
        if self.goal_is_binary:
            return parse_measure(self.goal, relevant=self.relevant)
        return parse_measure(self.goal)

    # -- training ---------------------------------------------------------------------------------

    def _target(self) -> Measure:
        return self.measure

    def _fit(self, training: Training) -> Learned:
        train = training.train
        grid = sorted({float(value) for value in self._listed_c()})
        sights = [self._sight(name, d, training.measures) for name, d in training.valid.items()]
        data = linear_data(
            train,
            relevant=None if self.graded else self.relevant,
            scaling=self.scaling or "none",
            thresholds=self.thresholds,
            n_threads=self.n_threads,
            owner=type(self).__name__,
            weights=self.takes_row_weights,
        )
        learner = self._learner(data, list(training.callbacks))
        learned = _chosen(grid, learner, sights, training.measures)
        if not learned["linear_"].weights.any():
            _log.warning("%s (C %g): %s.", type(self).__name__, learned["C_"], _ALL_ZERO)
        learned |= {"skipped_": data.skipped, "saw_missing_": has_missing(train.features)}
        return learned | learner.record()

    takes_row_weights: ClassVar[bool] = False

    def _learner(self, data: LinearData, callbacks: list[Callback]) -> Learner:
        raise NotImplementedError

    def _listed_c(self) -> list[float]:
        return listed_c("C", type(self).__name__, self.C)

    def check_valid(self, given: bool) -> None:
        """Refuse several values of C without validation data."""
        if len(set(self._listed_c())) > 1 and not given:
            raise ParameterError(
                f"{type(self).__name__}: several values of C need validation data to choose by: "
                "give fit a valid= (--valid on the command line), or a single C."
            )

    def _sight(
        self, name: str, data: QueryDataset, measures: Mapping[str, Measure]
    ) -> tuple[str, Callable[[Linear], dict[str, float]]]:
        """Return a function that measures a model on validation data."""
        owner = type(self).__name__
        features, rows = scaled_rows(data, self.scaling or "none", self.n_threads)
        labels, ptr = data.grouped(data.y), data.query_ptr
        prepared = {key: measure.prepare(labels, ptr) for key, measure in measures.items()}

        for measure_name, values in prepared.items():
            if np.isnan(values.fixed_value[values.is_fixed]).sum() == data.n_queries:
                raise DataError(
                    f"{owner}: {measure_name} leaves out every query of the {name} data "
                    "(nothing relevant, or all labels equal)."
                )

        def look(model: Linear) -> dict[str, float]:
            ranking = rank(score_linear(model, features, rows, self.n_threads), ptr)
            return {key: exact_mean(values.values(ranking)) for key, values in prepared.items()}

        return name, look

    # -- the trained ranker -----------------------------------------------------------------------

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its training, and its most important features."""
        self._check_is_fitted()
        chosen = f"C {self.C_:g}"
        if len(self.solutions_) > 1:
            chosen += f", the best of {len(self.solutions_)}"
        shown = {k: v for k, v in self.solution_.items() if k != "C"}
        lines = [
            f"{type(self).__name__}: {counted(self.linear_.weights.size, 'weight')} of "
            f"{counted(self.n_features_in_, 'feature')}, {chosen}",
            "training: " + ", ".join(f"{k} {_short(v)}" for k, v in shown.items()),
        ]
        if not self.linear_.weights.any():
            lines.append(_ALL_ZERO)
        left_out = [f"{n:,} with {reason}" for reason, n in self.skipped_.items() if n]
        if left_out:
            lines.append(f"queries left out: {', '.join(left_out)}")
        tried = [record["C"] for record in self.solutions_]
        if len(tried) > 1 and self.C_ in (tried[0], tried[-1]):
            more = "smaller" if tried[0] == self.C_ else "larger"
            lines.append(f"this C is at the edge of the values tried: {more} ones may be better")
        for name, measures in self.history_.items():
            for measure_name, values in measures.items():
                lines.append(f"{name} {measure_name}: {values[tried.index(self.C_)]:.4f}")
        lines += self._feature_lines(n_features)
        return "\n".join(lines)

    # -- for the base class -----------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        return self._content(), self.linear_.to_arrays()

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self._take(content)
        self.linear_ = Linear.from_arrays(arrays)


def _chosen(
    grid: list[float], learner: Learner, sights: list[Sight], measures: Mapping[str, Measure]
) -> dict[str, Any]:
    """Train for every C, and return the attributes of the one best on the first validation data."""
    history: dict[str, dict[str, list[float]]] = {
        name: {key: [] for key in measures} for name, _ in sights
    }
    solutions: list[dict[str, Any]] = []
    best: dict[str, Any] = {}
    best_value, interrupted = -math.inf, False
    for C in grid:
        try:
            model, record, cut_short = learner.learn(C)
        except KeyboardInterrupt:
            if not solutions:
                raise
            interrupted = True
            break
        interrupted = cut_short
        if cut_short and solutions:
            break  # an interrupted model is kept only if it is the first
        solutions.append({"C": C, **record})
        for name, look in sights:
            for key, value in look(model).items():
                history[name][key].append(value)
        value = next(iter(history[sights[0][0]].values()))[-1] if sights else 0.0
        if value > best_value:
            best_value = value
            best = {"linear_": model, "C_": C, "solution_": solutions[-1]}
        if cut_short or learner.is_out_of_time():
            break
    return {
        **best,
        "history_": history,
        "solutions_": solutions,
        "interrupted_": interrupted,
    }


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
