"""AdaRank: boosting of single features, in which the worst-ranked queries have most weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from rankgrove.boosting.adarank_loop import UPDATES, Callback, Candidates, Progress, adarank
from rankgrove.data.dataset_checks import has_missing
from rankgrove.data.queries import QueryDataset
from rankgrove.data.scaling import mean_and_deviation
from rankgrove.errors import DataError, ModelFileError
from rankgrove.measures.base import Measure, PreparedMeasure, rank
from rankgrove.measures.parse import target_measure
from rankgrove.model.linear import Linear
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    integer,
    learned,
    optional,
    parameter,
    real,
)
from rankgrove.rankers.fitting import Training, history_lines, watch_of
from rankgrove.rankers.linear.data import scaled_rows
from rankgrove.rankers.linear.linear_predictor import LinearPredictor
from rankgrove.scoring.linear_scores import score_linear
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History, Watch
from rankgrove.validation import counted

DIRECTIONS = ("up", "both")


@declares_parameters
class AdaRank(LinearPredictor):
    """Boosting of features for any measure (Xu and Li 2007).

    Every query has a weight P. A round takes the feature whose ranking has the largest mean of the
    measure E, weighted by P, and adds it to the score with the weight
    1/2 ln(sum P (1 + E) / sum P (1 - E)). P becomes proportional to exp(-E) of the ranking by the
    whole score. The measures of all queries ranked by each feature alone are computed once.

    ``AdaRank(tolerance=0.002, scaling=None)`` is the paper's loop with RankLib's stopping rule. It
    often uses one or two features; by default every round must raise the training measure.

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights, summed over rounds
    rounds_ : feature (from 0), weight and training measure of every round
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.AdaRank("ndcg@10").fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.4
    True
    """

    kind: ClassVar[str] = "adarank"
    takes_row_weights: ClassVar[bool] = False
    trainable: ClassVar[bool] = True
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "best_round": "best_round_",
        "interrupted": "interrupted_",
    }

    history_: History = learned()
    best_round_: int | None = learned()
    interrupted_: bool = learned()
    rounds_: list[tuple[int, float, float]] = learned()

    measure: str | Measure = parameter(
        "ndcg@10",
        "measure to maximise, or its name; values must be between -1 and 1. Queries whose value "
        "does not depend on the order are left out",
    )
    n_rounds: int = parameter(500, "maximum number of rounds", integer(low=1))
    update: str = parameter(
        "latest",
        'update of P: ``"latest"``: proportional to exp(-E), as in the paper; ``"cumulative"``: '
        "multiplied by exp(-weight E) in every round, as in RankLib",
        choice(UPDATES),
    )
    tolerance: float | None = parameter(
        None,
        "None: every round must raise the training measure. The weight of its feature is halved up "
        "to six times until it does; then the next best feature is tried, and training ends when "
        "none is left. A number: no weight is halved, and training ends when a round lowers the "
        "training measure by this much; its feature is left out",
        optional(real(low=0.0)),
    )
    most_in_a_row: int = parameter(
        5,
        "with a tolerance, a feature is skipped after this many rounds in a row, in either "
        "direction",
        integer(low=1),
    )
    direction: str = parameter(
        "up",
        '``"up"``: higher values of a feature are better, as in the paper; ``"both"``: lower '
        "values may be better too",
        choice(DIRECTIONS),
    )
    scaling: str | None = shared.SCALING
    early_stopping: int | None = shared.EARLY_STOPPING
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS

    # -- training ---------------------------------------------------------------------------------

    def _target(self) -> Measure:
        return target_measure(self.measure)

    def _fit(self, training: Training) -> Learned:
        train = training.train
        if train.weight is not None:
            raise DataError(
                f"{training.owner}: weights of rows have no meaning for a measure of whole "
                "rankings. Give the data weights of queries (query_weight), or none."
            )
        blank = self._blank(train)
        valid = {name: _Rows(data, blank, self.n_threads) for name, data in training.valid.items()}
        watch = watch_of(training, self.early_stopping, self.n_threads)
        rows = _Rows(train, blank, self.n_threads)
        done = self._boost(rows, blank, watch, valid, training.callbacks)
        weights = done.weights(train.n_features, done.watch.best_round)
        return {
            "history_": done.watch.history,
            "best_round_": done.watch.best_round,
            "interrupted_": done.interrupted,
            "rounds_": list(zip(done.features, done.steps, done.values, strict=True)),
            "linear_": _linear(weights, blank.scaling, blank.shift, blank.scale),
            "saw_missing_": has_missing(train.features),
        }

    def _blank(self, train: QueryDataset) -> Linear:
        """Return the model before the first round: zero weights and the scaling of features."""
        n = train.n_features
        shift, scale = np.zeros(n), np.ones(n)
        if self.scaling == "standard":
            shift, scale = mean_and_deviation(train.features, train.rows)
            if not isinstance(train.features, np.ndarray):
                shift = np.zeros(n)  # zeros of a sparse matrix must stay 0
        return _linear(np.zeros(n), self.scaling or "none", shift, scale)

    def _boost(
        self,
        rows: _Rows,
        blank: Linear,
        watch: Watch,
        shown: dict[str, _Rows],
        callbacks: Sequence[Callback],
    ) -> Progress:
        train, target = rows.data, target_measure(self.measure)
        prepared = target.prepare(train.grouped(train.y), train.query_ptr, self.n_threads)
        used = _movable(train, prepared, type(self).__name__)
        candidates = self._candidates(rows, blank, prepared, used)
        weight = np.ones(train.n_queries) if train.query_weight is None else train.query_weight
        bar = ProgressBar(type(self).__name__, "rounds") if self.progress else None

        def measured(weights: np.ndarray) -> np.ndarray:
            return rows.values(rows.scores(blank, weights), prepared)[used]

        def show(weights: np.ndarray) -> None:
            for name, valid_rows in shown.items():
                watch.watched[name].scores[0] = valid_rows.scores(blank, weights)

        try:
            done = adarank(
                candidates,
                weight[used],
                measured,
                n_features=train.n_features,
                rounds=self.n_rounds,
                update=self.update,
                tolerance=self.tolerance,
                most_in_a_row=self.most_in_a_row,
                watch=watch,
                show=show,
                callbacks=[*([bar] if bar else []), *callbacks],
            )
        finally:
            if bar:
                bar.close()
        if done.interrupted and not done.features:
            raise KeyboardInterrupt
        return done

    def _candidates(
        self, rows: _Rows, blank: Linear, prepared: PreparedMeasure, used: np.ndarray
    ) -> Candidates:
        """Return all weak rankers, with the measures of their rankings."""
        features: list[int] = []
        signs: list[int] = []
        values = []
        for j in range(blank.n_features):
            column = rows.column(j, blank)
            if not _differs_within(column, rows.data.query_ptr):
                continue
            for sign in (1, -1) if self.direction == "both" else (1,):
                features.append(j)
                signs.append(sign)
                values.append(rows.values(sign * column, prepared)[used])
        if not features:
            raise DataError(
                "Every feature has the same value in all documents of a query: there is nothing to "
                "rank by."
            )
        return Candidates(np.column_stack(values), features, signs)

    # -- the trained ranker -----------------------------------------------------------------------

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its rounds, its validation, its weights."""
        self._check_is_fitted()
        kept = self.best_round_ or len(self.rounds_)
        lines = [
            f"{type(self).__name__} for {self.measure}: {counted(kept, 'round')}, "
            f"{counted(int(np.count_nonzero(self.coef_)), 'feature')} of {self.n_features_in_}, "
            f"training {self.measure} {self.rounds_[kept - 1][2]:.4f}"
        ]
        lines += history_lines(self.history_, kept, "round")
        return "\n".join([*lines, *self._feature_lines(n_features)])

    # -- for the base class -----------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        rounds = [list(step) for step in self.rounds_]
        return self._content() | {"rounds": rounds}, self.linear_.to_arrays()

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self._take(content)
        self.rounds_ = [(int(j), float(a), float(v)) for j, a, v in content["rounds"]]
        self.linear_ = Linear.from_arrays(arrays)
        if any(not 0 <= j < self.linear_.n_features for j, _, _ in self.rounds_):
            raise ModelFileError("A round of AdaRank took a feature that does not exist.")
        if (self.best_round_ or 0) > len(self.rounds_):
            raise ModelFileError("The best round of AdaRank does not exist.")


class _Rows:
    """Rows of a data set in query order, with features scaled by query where the model does so."""

    def __init__(self, data: QueryDataset, blank: Linear, n_threads: int | None) -> None:
        self.data = data
        self.features, self.rows = scaled_rows(data, blank.scaling, n_threads)
        self.n_threads = n_threads

    def scores(self, blank: Linear, weights: np.ndarray) -> np.ndarray:
        model = _linear(weights, blank.scaling, blank.shift, blank.scale)
        return score_linear(model, self.features, self.rows, self.n_threads)

    def column(self, j: int, blank: Linear) -> np.ndarray:
        """Return the values of a feature, with missing values filled as in a linear model."""
        if isinstance(self.features, np.ndarray):
            column = self.features[self.rows, j].astype(np.float64)
        else:
            column = self.features[:, [j]].toarray()[self.rows, 0].astype(np.float64)
        column[np.isnan(column)] = blank.shift[j]
        return np.asarray(column)

    def values(self, scores: np.ndarray, prepared: PreparedMeasure) -> np.ndarray:
        ranking = rank(scores, self.data.query_ptr, self.n_threads)
        return prepared.values(ranking, self.n_threads)


def _movable(train: QueryDataset, prepared: PreparedMeasure, owner: str) -> np.ndarray:
    """Return the queries whose value depends on their order, sorted by key.

    So the order of sums depends on the queries' keys, not on the order of the file.
    """
    gain, starts = prepared.gain, train.query_ptr[:-1]
    equal = np.maximum.reduceat(gain, starts) == np.minimum.reduceat(gain, starts)
    kept = ~(prepared.is_fixed | equal)
    if train.query_weight is not None:
        kept &= train.query_weight > 0.0
    if not kept.any():
        raise DataError(
            f"{owner}: no query with a weight above 0 has a value of {prepared.measure} that "
            "depends on the order of its documents. Check the labels (and 'relevant', for binary "
            "measures)."
        )
    by_key = np.argsort(train.query_keys, kind="stable")
    return by_key[kept[by_key]]


def _differs_within(column: np.ndarray, query_ptr: np.ndarray) -> bool:
    starts = query_ptr[:-1]
    return bool(np.any(np.maximum.reduceat(column, starts) > np.minimum.reduceat(column, starts)))


def _linear(weights: np.ndarray, scaling: str, shift: np.ndarray, scale: np.ndarray) -> Linear:
    return Linear(
        n_features=weights.size,
        weights=weights,
        scaling=scaling,
        shift=shift,
        scale=scale,
        thresholds=np.empty(0, np.float32),
        threshold_ptr=np.empty(0, np.int64),
    )
