"""What linear rankers share that are trained round by round: validation, patience, what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rankgrove.data.inputs import has_missing
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.linear import Linear
from rankgrove.parallel import thread_count
from rankgrove.rankers.boosted_data import listed_callbacks, named_measures
from rankgrove.rankers.given import valid_datasets
from rankgrove.rankers.linear_data import LinearData, linear_data, scaled_rows
from rankgrove.rankers.linear_model import LinearPredictor
from rankgrove.rankers.watching import check_alike, check_defined, check_valid_given, history_lines
from rankgrove.scoring.linear import score_linear
from rankgrove.training import progress as training
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History, Watch, Watched
from rankgrove.validation import check_integer, counted

if TYPE_CHECKING:
    from typing import Self


class Round(NamedTuple):
    """What a round leaves: weights, the training objective there, and the intercept."""

    weights: np.ndarray
    objective: float
    intercept: float = 0.0


@dataclass(repr=False, kw_only=True)
class Progress(training.Progress):
    """Where training stands after a round; handed to every callback.

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

    A subclass names its parameters in ``__init__``, has a ``measure``, and gives ``_rounds`` (a
    generator of what every round leaves) and ``_most_rounds``.
    """

    trainable: ClassVar[bool] = True
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "best_round": "best_round_",
        "rounds": "n_rounds_",
        "objective": "objective_",
        "interrupted": "interrupted_",
    }
    # Without validation data: the round whose objective is highest, or simply the last one.
    keeps_highest: ClassVar[bool] = False
    unit: ClassVar[str] = "rounds"  # what a round is called, in the plural
    takes_row_weights: ClassVar[bool] = False

    measure: str | Measure
    progress: bool
    early_stopping: int | None = None

    # -- what a subclass defines ------------------------------------------------------------------

    def _rounds(self, data: LinearData) -> Iterator[Round]:
        raise NotImplementedError

    def _most_rounds(self) -> int:
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        parse_measure(self.measure)
        self._check_scaling()
        if self.early_stopping is not None:
            check_integer("early_stopping", type(self).__name__, self.early_stopping, low=1)
        thread_count(self.n_threads)

    def check_valid(self, given: bool) -> None:
        """Refuse training without validation data where a parameter asks for it."""
        asked = None if self.early_stopping is None else "early_stopping"
        check_valid_given(given, asked, type(self).__name__)

    # -- training ---------------------------------------------------------------------------------

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
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : in place of `qid`, the number of rows of every query in turn, as LightGBM has it
        valid : a QueryDataset or (X, y, qid), or several in a dict or list, looked at after every
            round; the model keeps the best round of the first
        eval_set, eval_group, eval_qid : in place of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids: as LightGBM and XGBoost have them
        valid_measures : what to measure there; the first decides. Default: the ranker's `measure`
        weight, query_weight : where `X` is not a data set
        sample_weight : scikit-learn's name of `weight`
        callbacks : one function or several, called after every round with a ``Progress``;
            returning True ends training
        """
        owner = type(self).__name__
        self.check_parameters()
        called = listed_callbacks(callbacks, f"{owner}.fit")
        weights = {"weight": weight, "sample_weight": sample_weight, "query_weight": query_weight}
        train = self._training_data(X, y, qid, group, f"{owner}.fit", **weights)
        watched = valid_datasets(valid, f"{owner}.fit", eval_set, eval_group, eval_qid)
        measures = named_measures(valid_measures, parse_measure(self.measure), bool(watched))
        self.check_valid(bool(watched))
        self.saw_missing_ = has_missing(train.features)
        watch, shown = self._watch(watched, measures, train)
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
        end = self._run(data, watch, shown, called)
        self._keep(train, end)
        return self

    def _watch(
        self, valid: dict[str, QueryDataset], measures: dict[str, Measure], train: QueryDataset
    ) -> tuple[Watch, dict[str, tuple[Any, np.ndarray]]]:
        """Return what to look at after every round, and its features by name."""
        owner, looked_at, shown = type(self).__name__, {}, {}
        names = train.given_names
        for name, data in valid.items():
            check_alike(data, name, train.n_features, names, owner)
            one = Watched(
                None,
                data.grouped(data.y),
                data.query_ptr,
                measures,
                np.zeros((1, data.n_rows)),
                n_threads=self.n_threads,
            )
            check_defined(one, name, owner)
            looked_at[name] = one
            shown[name] = scaled_rows(data, self.scaling or "none", self.n_threads)
        return Watch(looked_at, self.early_stopping), shown

    def _run(
        self,
        data: LinearData,
        watch: Watch,
        shown: dict[str, tuple[Any, np.ndarray]],
        callbacks: list[Callback],
    ) -> Progress:
        """Run rounds until there are no more, patience ends, or a callback returns True."""
        end = Progress(round=0, rounds=self._most_rounds(), watch=watch)
        bar = ProgressBar(type(self).__name__, self.unit) if self.progress else None
        called: list[Callback] = [*([bar] if bar else []), *callbacks]
        try:
            for weights, objective, intercept in self._rounds(data):
                linear = data.linear(weights, intercept)
                for name, one in watch.watched.items():
                    one.scores[0] = score_linear(linear, *shown[name], self.n_threads)
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

    def _keep(self, train: QueryDataset, end: Progress) -> None:
        """Put what was learned into the attributes."""
        assert end.kept is not None
        self.linear_ = end.kept
        self.history_: History = end.watch.history
        self.best_round_ = end.watch.best_round
        self.n_rounds_ = end.round
        self.objective_ = end.objective
        self.interrupted_ = end.interrupted
        self._keep_features(train)

    # -- what was learned -------------------------------------------------------------------------

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: how it was trained, and what moves its scores most."""
        self._check_is_fitted()
        lines = [
            f"{type(self).__name__} for {self.measure}: "
            f"{counted(self.linear_.weights.size, 'weight')}, {self.n_rounds_:,} {self.unit}"
        ]
        lines += history_lines(self.history_, self.best_round_, "round")
        return "\n".join(lines + self._feature_lines(n_features))

    # -- for the base class -----------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return self._content(), self.linear_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._take(content)
        self.linear_ = Linear.from_arrays(arrays)
