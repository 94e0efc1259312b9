"""The base class of linear rankers that are trained by rounds: validation and early stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from rankgrove.data.dataset_checks import has_missing
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.linear import Linear
from rankgrove.rankers.base import Arrays, Content, Learned
from rankgrove.rankers.fitting import Training, history_lines, watch_of
from rankgrove.rankers.linear.data import LinearData, linear_data, scaled_rows
from rankgrove.rankers.linear.linear_predictor import LinearPredictor
from rankgrove.scoring.linear_scores import score_linear
from rankgrove.training import progress as training_progress
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History, Watch
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix


class Round(NamedTuple):
    """The result of a round: weights, their training objective, and the intercept."""

    weights: np.ndarray
    objective: float
    intercept: float = 0.0


@dataclass(repr=False, kw_only=True)
class Progress(training_progress.Progress):
    """The state of training after a round, passed to every callback.

    Attributes
    ----------
    linear : the model after the newest round
    objective : the training objective after every round
    """

    linear: Linear | None = None
    kept: Linear | None = None
    objective: list[float] = field(default_factory=list)


Callback = Callable[[Progress], bool | None]


class LinearRoundsRanker(LinearPredictor):
    """Base of the linear rankers that are trained by rounds.

    A subclass declares its parameters, and has a ``measure``, ``_rounds`` (a generator of the
    results of rounds) and ``_most_rounds``.
    """

    trainable: ClassVar[bool] = True
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "best_round": "best_round_",
        "rounds": "n_rounds_",
        "objective": "objective_",
        "interrupted": "interrupted_",
    }
    # Without validation data: keep the round with the highest objective, or else the last one.
    keeps_highest: ClassVar[bool] = False
    unit: ClassVar[str] = "rounds"  # the name of rounds, in the plural
    takes_row_weights: ClassVar[bool] = False

    measure: str | Measure
    progress: bool
    early_stopping: int | None = None

    history_: History
    best_round_: int | None
    n_rounds_: int
    objective_: list[float]
    interrupted_: bool

    # -- methods that a subclass defines ----------------------------------------------------------

    def _rounds(self, data: LinearData) -> Iterator[Round]:
        raise NotImplementedError

    def _most_rounds(self) -> int:
        raise NotImplementedError

    # -- training ---------------------------------------------------------------------------------

    def _check_together(self) -> None:
        parse_measure(self.measure)

    def _fit(self, training: Training) -> Learned:
        train, owner = training.train, type(self).__name__
        watch = watch_of(training, self.early_stopping, self.n_threads)
        shown = {
            name: scaled_rows(data, self.scaling or "none", self.n_threads)
            for name, data in training.valid.items()
        }
        data = linear_data(
            train,
            relevant=None,
            scaling=self.scaling or "none",
            thresholds=None,
            n_threads=self.n_threads,
            owner=owner,
            weights=self.takes_row_weights,
            every=True,
        )
        if data.is_constant():
            raise DataError(
                f"{owner}: every feature has the same value in all rows: there is nothing to "
                "learn from."
            )
        end = self._run(data, watch, shown, training.callbacks)
        assert end.kept is not None
        return {
            "linear_": end.kept,
            "history_": end.watch.history,
            "best_round_": end.watch.best_round,
            "n_rounds_": end.round,
            "objective_": end.objective,
            "interrupted_": end.interrupted,
            "saw_missing_": has_missing(train.features),
        }

    def _run(
        self,
        data: LinearData,
        watch: Watch,
        shown: dict[str, tuple[Matrix, np.ndarray]],
        callbacks: Sequence[Callback],
    ) -> Progress:
        """Run rounds until there are no more, patience ends, or a callback returns True."""
        end = Progress(round=0, rounds=self._most_rounds(), watch=watch)
        bar = ProgressBar(type(self).__name__, self.unit) if self.progress else None
        called: list[Callback] = [*([bar] if bar else []), *callbacks]
        try:
            for weights, objective, intercept in self._rounds(data):
                linear = data.linear(weights, intercept)
                for name, valid in watch.watched.items():
                    valid.scores[0] = score_linear(linear, *shown[name], self.n_threads)
                watch.record()
                end.objective.append(float(objective))
                end.round, end.linear = end.round + 1, linear
                if self._is_best(end):
                    end.kept = linear
                stopped = [bool(callback(end)) for callback in called]
                if any(stopped) or watch.out_of_patience:
                    break
        except KeyboardInterrupt:
            if end.kept is None:
                raise
            end.interrupted = True
        finally:
            if bar:
                bar.close()
        return end

    def _is_best(self, end: Progress) -> bool:
        """Whether the newest round is the one to keep so far."""
        if end.watch.best_round is not None:
            return end.watch.best_round == end.round
        return not self.keeps_highest or int(np.argmax(end.objective)) + 1 == end.round

    # -- the trained ranker -----------------------------------------------------------------------

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its training, and its most important features."""
        self._check_is_fitted()
        lines = [
            f"{type(self).__name__} for {self.measure}: "
            f"{counted(self.linear_.weights.size, 'weight')}, {self.n_rounds_:,} {self.unit}"
        ]
        lines += history_lines(self.history_, self.best_round_, "round")
        return "\n".join(lines + self._feature_lines(n_features))

    # -- for the base class -----------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        return self._content(), self.linear_.to_arrays()

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self._take(content)
        self.linear_ = Linear.from_arrays(arrays)
