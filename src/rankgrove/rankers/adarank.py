"""AdaRank: single features, weighted so that the queries ranked worst count most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.boosting.adarank import UPDATES, Callback, Candidates, Progress, adarank
from rankgrove.data.inputs import has_missing
from rankgrove.data.queries import QueryDataset
from rankgrove.data.scaling import mean_and_deviation
from rankgrove.errors import DataError, ModelFileError
from rankgrove.measures.base import Measure, PreparedMeasure, rank
from rankgrove.measures.parse import target_measure
from rankgrove.model.linear import SCALINGS, Linear
from rankgrove.parallel import thread_count
from rankgrove.rankers.boosted_data import listed_callbacks, named_measures
from rankgrove.rankers.given import valid_datasets
from rankgrove.rankers.linear_data import scaled_rows
from rankgrove.rankers.linear_model import LinearPredictor
from rankgrove.rankers.watching import check_alike, check_defined, check_valid_given, history_lines
from rankgrove.scoring.linear import score_linear
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History, Watch, Watched
from rankgrove.validation import check_choice, check_integer, check_real, counted

if TYPE_CHECKING:
    from typing import Self

DIRECTIONS = ("up", "both")


class AdaRank(LinearPredictor):
    """Boosting of features for any measure (Xu and Li 2007).

    Every query has a weight P. A round takes the feature whose ranking has the largest mean of the
    measure E, weighted by P, and adds it to the score with the weight
    1/2 ln(sum P (1 + E) / sum P (1 - E)). P becomes proportional to exp(-E) of the ranking by the
    whole score. The measures of all queries ranked by each feature alone are computed once.

    ``AdaRank(tolerance=0.002, scaling=None)`` is the paper's loop with RankLib's end. It often has
    one or two features; by default every round must raise the training measure.

    Parameters
    ----------
    measure : what to maximise, between -1 and 1: a measure or its name. Queries whose value no
        order changes are left out
    n_rounds : number of rounds at the most
    update : of P: ``"latest"``: proportional to exp(-E), as in the paper; ``"cumulative"``:
        multiplied by exp(-weight E) in every round, as in RankLib
    tolerance : None: every round raises the training measure. The weight of its feature is halved,
        six times at the most, until it does; then the next best feature is tried, and training ends
        when none is left. A number: no weight is halved, and training ends when a round lowers the
        training measure by so much; its feature is left out
    most_in_a_row : with a tolerance, a feature is passed over after so many rounds in a row,
        whichever direction it was taken in
    direction : ``"up"``: higher values of a feature are better, as in the paper; ``"both"``: lower
        ones may be, too
    scaling : of features, which makes their weights comparable: ``"standard"`` (mean 0 and
        deviation 1 over the training data; sparse ones are only divided), ``"query"`` (to [0, 1]
        within every query), ``"percentile"`` (the share of the query's documents that are lower),
        or None, as in the paper
    early_stopping : stop when so many rounds have not bettered the validation measure
    n_threads : threads to use; None: all cores
    progress : show a progress bar

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights, the sums of the features' own
    rounds_ : feature (from 0), weight and training measure of every round done
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
    trainable: ClassVar[bool] = True
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "best_round": "best_round_",
        "interrupted": "interrupted_",
    }

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        n_rounds: int = 500,
        update: str = "latest",
        tolerance: float | None = None,
        most_in_a_row: int = 5,
        direction: str = "up",
        scaling: str | None = "standard",
        early_stopping: int | None = None,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.n_rounds = n_rounds
        self.update = update
        self.tolerance = tolerance
        self.most_in_a_row = most_in_a_row
        self.direction = direction
        self.scaling = scaling
        self.early_stopping = early_stopping
        self.n_threads = n_threads
        self.progress = progress

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
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : in place of `qid`, the number of rows of every query in turn, as LightGBM has it
        valid : a QueryDataset or (X, y, qid), or several in a dict or list, looked at every round;
            the model keeps the features up to the best round of the first
        eval_set, eval_group, eval_qid : in place of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids: as LightGBM and XGBoost have them
        valid_measures : what to measure there; the first decides. Default: the ranker's `measure`
        query_weight : as in a QueryDataset, where `X` is none
        weight, sample_weight : refused: a measure of whole rankings has no weights of rows
        callbacks : one function or several, called after every round with a ``Progress``;
            returning True ends training
        """
        owner = f"{type(self).__name__}.fit"
        self.check_parameters()
        called = listed_callbacks(callbacks, owner)
        weights = {"weight": weight, "sample_weight": sample_weight, "query_weight": query_weight}
        train = self._training_data(X, y, qid, group, owner, **weights)
        if train.weight is not None:
            raise DataError(
                f"{owner}: weights of rows have no meaning for a measure of whole rankings. Give "
                "the data weights of queries (query_weight), or none."
            )
        watched = valid_datasets(valid, owner, eval_set, eval_group, eval_qid)
        self.check_valid(bool(watched))
        measures = named_measures(valid_measures, target_measure(self.measure), bool(watched))
        blank = self._blank(train)
        self.saw_missing_ = has_missing(train.features)
        rows = {name: _Rows(one, blank, self.n_threads) for name, one in watched.items()}
        watch = self._watch(train, watched, measures)
        done = self._boost(_Rows(train, blank, self.n_threads), blank, watch, rows, called)
        self._keep(train, blank, done)
        return self

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        check_integer("n_rounds", owner, self.n_rounds, low=1)
        check_choice("update", owner, self.update, UPDATES)
        if self.tolerance is not None:
            check_real("tolerance", owner, self.tolerance, low=0.0)
        check_integer("most_in_a_row", owner, self.most_in_a_row, low=1)
        check_choice("direction", owner, self.direction, DIRECTIONS)
        if self.scaling is not None:
            check_choice("scaling", owner, self.scaling, SCALINGS)
        if self.early_stopping is not None:
            check_integer("early_stopping", owner, self.early_stopping, low=1)
        thread_count(self.n_threads)

    def check_valid(self, given: bool) -> None:
        """Refuse training without validation data where a parameter asks for it."""
        asked = None if self.early_stopping is None else "early_stopping"
        check_valid_given(given, asked, type(self).__name__)

    def _blank(self, train: QueryDataset) -> Linear:
        """Return the model before the first round, which knows how to scale features."""
        n = train.n_features
        shift, scale = np.zeros(n), np.ones(n)
        if self.scaling == "standard":
            shift, scale = mean_and_deviation(train.features, train.rows)
            if not isinstance(train.features, np.ndarray):
                shift = np.zeros(n)  # what is 0 must stay 0
        return _linear(np.zeros(n), self.scaling or "none", shift, scale)

    def _watch(
        self,
        train: QueryDataset,
        watched: dict[str, QueryDataset],
        measures: dict[str, Measure],
    ) -> Watch:
        owner = type(self).__name__
        names = train.given_names
        looked_at = {}
        for name, data in watched.items():
            check_alike(data, name, train.n_features, names, owner)
            scores = np.zeros((1, data.n_rows))
            labels = data.grouped(data.y)
            one = Watched(None, labels, data.query_ptr, measures, scores, n_threads=self.n_threads)
            check_defined(one, name, owner)
            looked_at[name] = one
        return Watch(looked_at, self.early_stopping)

    def _boost(
        self,
        rows: _Rows,
        blank: Linear,
        watch: Watch,
        shown: dict[str, _Rows],
        callbacks: list[Callback],
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
            for name, one in shown.items():
                watch.watched[name].scores[0] = one.scores(blank, weights)

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

    def _keep(self, train: QueryDataset, blank: Linear, done: Progress) -> None:
        """Put what was learned into the attributes."""
        self.history_: History = done.watch.history
        self.best_round_ = done.watch.best_round
        self.interrupted_ = done.interrupted
        self.rounds_: list[tuple[int, float, float]] = list(
            zip(done.features, done.steps, done.values, strict=True)
        )
        weights = done.weights(train.n_features, self.best_round_)
        self.linear_ = _linear(weights, blank.scaling, blank.shift, blank.scale)
        self._keep_features(train)

    # -- what was learned -------------------------------------------------------------------------

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

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        rounds = [list(one) for one in self.rounds_]
        return self._content() | {"rounds": rounds}, self.linear_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._take(content)
        self.rounds_ = [(int(j), float(a), float(v)) for j, a, v in content["rounds"]]
        self.linear_ = Linear.from_arrays(arrays)
        if any(not 0 <= j < self.linear_.n_features for j, _, _ in self.rounds_):
            raise ModelFileError("A round of AdaRank took a feature that does not exist.")


class _Rows:
    """Rows of a data set in query order, features scaled by query where the model asks for it."""

    def __init__(self, data: QueryDataset, blank: Linear, n_threads: int | None) -> None:
        self.data = data
        self.features, self.rows = scaled_rows(data, blank.scaling, n_threads)
        self.n_threads = n_threads

    def scores(self, blank: Linear, weights: np.ndarray) -> np.ndarray:
        model = _linear(weights, blank.scaling, blank.shift, blank.scale)
        return score_linear(model, self.features, self.rows, self.n_threads)

    def column(self, j: int, blank: Linear) -> np.ndarray:
        """Return the values of a feature, missing ones filled as a linear model does."""
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
    """Return the queries whose value hangs on their order, sorted by key.

    The order of sums hangs on queries' keys: another order of the file changes no bit.
    """
    gain, starts = prepared.gain, train.query_ptr[:-1]
    equal = np.maximum.reduceat(gain, starts) == np.minimum.reduceat(gain, starts)
    kept = ~(prepared.is_fixed | equal)
    if train.query_weight is not None:
        kept &= train.query_weight > 0.0
    if not kept.any():
        raise DataError(
            f"{owner}: no query (that has a weight) has a value of {prepared.measure} that hangs "
            "on the order of its documents. Check the labels (and 'relevant', for binary measures)."
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
