"""What linear rankers with a C share: thresholds, the choice of C, what is kept of training."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.inputs import has_missing
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure, exact_mean, rank
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.linear import Linear
from rankgrove.rankers.boosted_data import listed_callbacks, named_measures
from rankgrove.rankers.given import valid_datasets
from rankgrove.rankers.linear_data import LinearData, linear_data, scaled_rows
from rankgrove.rankers.linear_model import LinearPredictor
from rankgrove.rankers.watching import check_alike
from rankgrove.scoring.linear import score_linear
from rankgrove.validation import check_integer, check_real, counted, refuse

if TYPE_CHECKING:
    from typing import Self

_log = logging.getLogger("rankgrove")
_ALL_ZERO = "all weights are 0: the bound says nothing at this C"
# What C="auto" tries.
AUTO = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)

# C -> the model, what to keep on record of its training, and whether that was interrupted
Learner = Callable[[float], tuple[Linear, dict[str, Any], bool]]


class LinearRanker(LinearPredictor):
    """Base of the linear rankers that have a C.

    A subclass names its parameters in ``__init__``, and has ``goal`` (the measure that C is chosen
    by) and ``_learner``.
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
    graded: ClassVar[bool] = False  # labels count as they are, and there is no `relevant`

    C: float | str | Sequence[float]
    relevant: float
    thresholds: int | None

    @property
    def measure(self) -> Measure:
        """What C is chosen by where nothing else is said, and what `score` returns."""
        if self.goal_is_binary:
            return parse_measure(self.goal, relevant=self.relevant)
        return parse_measure(self.goal)

    # -- training -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        group: Any = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_qid: Any = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        weight: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        callbacks: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : in place of `qid`, the number of rows of every query in turn, as LightGBM has it
        valid : a QueryDataset or (X, y, qid), or several in a dict or list; where `C` is several
            values, the one that is best on the first is kept
        eval_set, eval_group, eval_qid : in place of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids: as LightGBM and XGBoost have them
        valid_measures : what to measure there; the first decides. Default: the ranker's `measure`
        weight, query_weight : where `X` is not a data set
        sample_weight : scikit-learn's name of `weight`
        callbacks : one function or several, called with a ``Progress`` after every iteration;
            returning True ends training with the best solution so far
        """
        owner = type(self).__name__
        self.check_parameters()
        called = listed_callbacks(callbacks, f"{owner}.fit")
        weights = {"weight": weight, "sample_weight": sample_weight, "query_weight": query_weight}
        train = self._training_data(X, y, qid, group, f"{owner}.fit", **weights)
        watched = valid_datasets(valid, f"{owner}.fit", eval_set, eval_group, eval_qid)
        measures = named_measures(valid_measures, self.measure, bool(watched))
        self.check_valid(bool(watched))
        self.saw_missing_ = has_missing(train.features)
        grid = sorted({float(value) for value in self._listed_c()})
        sights = [self._sight(name, one, train, measures) for name, one in watched.items()]
        data = linear_data(
            train,
            relevant=None if self.graded else self.relevant,
            scaling=self.scaling or "none",
            thresholds=self.thresholds,
            n_threads=self.n_threads,
            owner=owner,
            weights=self._takes_row_weights,
        )
        self._choose(grid, self._learner(data, called), sights, measures)
        self.skipped_ = data.skipped
        self._keep_features(train)
        if not self.linear_.weights.any():
            _log.warning("%s (C %g): %s.", owner, self.C_, _ALL_ZERO)
        return self

    _takes_row_weights: ClassVar[bool] = False

    def _learner(self, data: LinearData, callbacks: list[Any]) -> Learner:
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        for value in self._listed_c():
            check_real("C", owner, value, above=0.0)
        if not self.graded:
            check_real("relevant", owner, self.relevant)
        self._check_scaling()
        if self.thresholds is not None:
            check_integer("thresholds", owner, self.thresholds, low=1, high=65_535)

    def _listed_c(self) -> list[Any]:
        if isinstance(self.C, str):
            if self.C != "auto":
                refuse("C", type(self).__name__, "a number, a list of them, or 'auto'", self.C)
            return list(AUTO)
        listed = list(self.C) if isinstance(self.C, Sequence | np.ndarray) else [self.C]
        if not listed:
            refuse("C", type(self).__name__, "a number, a list of them, or 'auto'", self.C)
        return listed

    def check_valid(self, given: bool) -> None:
        """Refuse several values of C where there is no validation data to choose by."""
        if len(set(self._listed_c())) > 1 and not given:
            raise ParameterError(
                f"{type(self).__name__}: several values of C need validation data to choose by: "
                "give fit a valid= (--valid on the command line), or a single C."
            )

    def _sight(
        self, name: str, data: QueryDataset, train: QueryDataset, measures: dict[str, Measure]
    ) -> tuple[str, Callable[[Linear], dict[str, float]]]:
        """Return a function that measures a model on validation data."""
        owner = type(self).__name__
        check_alike(data, name, train.n_features, train.given_names, owner)
        features, rows = scaled_rows(data, self.scaling or "none", self.n_threads)
        labels, ptr = data.grouped(data.y), data.query_ptr
        prepared = {one: measure.prepare(labels, ptr) for one, measure in measures.items()}

        for measure_name, what in prepared.items():
            if np.isnan(what.fixed_value[what.is_fixed]).sum() == data.n_queries:
                raise DataError(
                    f"{owner}: {measure_name} leaves out every query of the {name} data "
                    "(nothing relevant, or all labels equal)."
                )

        def look(model: Linear) -> dict[str, float]:
            ranking = rank(score_linear(model, features, rows, self.n_threads), ptr)
            return {one: exact_mean(what.values(ranking)) for one, what in prepared.items()}

        return name, look

    def _choose(
        self,
        grid: list[float],
        learn: Learner,
        sights: list[tuple[str, Callable[[Linear], dict[str, float]]]],
        measures: dict[str, Measure],
    ) -> None:
        """Train for every C, and keep the one that is best on the first validation data."""
        self.history_: dict[str, dict[str, list[float]]] = {
            name: {one: [] for one in measures} for name, _ in sights
        }
        self.solutions_: list[dict[str, Any]] = []
        self.interrupted_ = False
        best = -math.inf
        for C in grid:
            try:
                model, record, cut_short = learn(C)
            except KeyboardInterrupt:
                if not self.solutions_:
                    raise
                self.interrupted_ = True
                break
            self.interrupted_ = cut_short
            if cut_short and self.solutions_:
                break  # a model that was cut short stands only where there is no other
            self.solutions_.append({"C": C, **record})
            for name, look in sights:
                for one, value in look(model).items():
                    self.history_[name][one].append(value)
            value = next(iter(self.history_[sights[0][0]].values()))[-1] if sights else 0.0
            if value > best:
                best, self.linear_, self.C_, self.solution_ = value, model, C, self.solutions_[-1]
            if cut_short or self._out_of_time():
                break

    def _out_of_time(self) -> bool:
        return False

    # -- what was learned -------------------------------------------------------------------------

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: how it was trained, and what moves its scores most."""
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
        left_out = [f"{n:,} with {why}" for why, n in self.skipped_.items() if n]
        if left_out:
            lines.append(f"queries left out: {', '.join(left_out)}")
        tried = [record["C"] for record in self.solutions_]
        if len(tried) > 1 and self.C_ in (tried[0], tried[-1]):
            more = "smaller" if tried[0] == self.C_ else "larger"
            lines.append(f"this C is at the edge of those tried: {more} ones may be better")
        for name, measures in self.history_.items():
            for measure_name, values in measures.items():
                lines.append(f"{name} {measure_name}: {values[tried.index(self.C_)]:.4f}")
        lines += self._feature_lines(n_features)
        return "\n".join(lines)

    # -- for the base class -----------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return self._content(), self.linear_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._take(content)
        self.linear_ = Linear.from_arrays(arrays)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
