"""AutoRanker: the best ranker for some data within a given time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.cluster.client import check_cluster
from rankgrove.data.concatenate import concatenate
from rankgrove.data.queries import QueryDataset
from rankgrove.data.row_keys import query_contents
from rankgrove.errors import DataError, ParameterError, RankgroveError
from rankgrove.evaluation.evaluate import confidence_interval
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import full_name, target_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.random import string_keys
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.auto.budget import Budget
from rankgrove.rankers.auto.crossfit import CrossFit, Shared
from rankgrove.rankers.auto.fit_folder import FitFolder
from rankgrove.rankers.auto.leaderboard import Entry, Leaderboard, share_text
from rankgrove.rankers.auto.limited import TIMED_DOCUMENTS, Limited, bag_of, microseconds
from rankgrove.rankers.auto.portfolio import presets
from rankgrove.rankers.auto.search import Search, Step
from rankgrove.rankers.auto.selection import spread_of
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker
from rankgrove.rankers.declaring import (
    declares_parameters,
    flag,
    integer,
    learned,
    optional,
    parameter,
    real,
)
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.estimator import clone
from rankgrove.rankers.fitting import Training, fingerprint
from rankgrove.rankers.given import with_queries
from rankgrove.rankers.inner_rankers import described, pack, unpack
from rankgrove.training.progress import TaskBar
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from rankgrove.rankers.given import Documents

MINUTES = 10.0  # where no limit is given
FOLDS = 5
FEW_QUERIES = 50  # below, there are more folds, so that each leaves out fewer queries
# Texts of the choice and of its page
INTERRUPTED = "The search was interrupted: this is the choice among what it had."
WAYS = (
    "Ways to combine candidates, by their value on queries that had no part in finding weights. "
    "The final weights are the mean of all of them, because a choice among ways is mostly luck"
)
WARM_QUERIES = 4  # on which kernels are compiled or loaded before the first fit is timed


@declares_parameters
class AutoRanker(Ranker):
    """Many rankers cross-fitted within a time limit, and the best combination of them.

    Every candidate is trained without each of some folds of the queries in turn, so that it has a
    score for every query from models that did not see it. Robust presets come first; then
    variations of the best ones; then the chosen ones once more, on other divisions. Members and
    weights are chosen by the out-of-fold scores, and the value of the choice is nested: weights
    are found without the fold that they are evaluated on. The final model is the weighted mean of
    the members' models.

    Attributes
    ----------
    model_ : the final model, a bag
    value_ : the nested mean of the measure: an estimate for new queries, a little too high where
        features hardly tell documents apart
    interval_ : its 95 % confidence interval
    optimism_ : by how much the mean on the data of the choice is higher than that
    leaderboard_ : every candidate: value, interval, weight, time, size
    search_ : the search over time, step by step
    compared_ : the nested value of every way to combine candidates; the model has the mean of their
        weights
    microseconds_ : time of scoring one document by ``predict``, on one thread of this machine, 100
        documents at a time; None: not known, as of a file of a search with `n_fits`
    failed_ : candidates that could not be trained on this data, with the error message
    interrupted_ : whether Ctrl-C ended the search
    n_features_in_, feature_names_ : of the training data

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=20, seed=1), rg.make_web(30, n_docs=20, seed=2)
    >>> best = rg.AutoRanker("ndcg@10", n_fits=15, random_state=1).fit(train)
    >>> len(best.leaderboard_)
    3
    """

    kind: ClassVar[str] = "auto"
    takes_categories: ClassVar[bool] = True
    fit_takes: ClassVar[frozenset[str]] = frozenset({"valid", "weight"})
    model_: BaggedRanker = learned()
    value_: float = learned()
    interval_: tuple[float, float] = learned()
    optimism_: float = learned()
    leaderboard_: Leaderboard = learned()
    search_: list[Step] = learned()
    compared_: dict[str, float] = learned()
    microseconds_: float | None = learned()
    failed_: dict[str, str] = learned()
    interrupted_: bool = learned()

    measure: str | Measure = parameter("ndcg@10", "what to maximise: a measure or its name")
    minutes: float | None = parameter(
        None,
        "time limit of ``fit``; None: 10 minutes, unless `n_fits` is given",
        optional(real(above=0.0)),
    )
    n_fits: int | None = parameter(
        None,
        "maximum number of fits, in place of a time limit: the result is then the same to the bit",
        optional(integer(low=1)),
    )
    max_trees: int | None = parameter(
        None,
        "maximum number of trees of the final model; None: no limit. Members are then trained once "
        "more on all queries, as one model each",
        optional(integer(low=1)),
    )
    max_microseconds: float | None = parameter(
        None,
        "maximum time of scoring one document by ``predict``, on one thread of this machine, 100 "
        "documents at a time; None: no limit",
        optional(real(above=0.0)),
    )
    exportable: bool = parameter(
        False, "keep to one sum of trees, which :func:`rankgrove.convert` can write", flag
    )
    group: Any = parameter(
        None,
        "one value per training query, in their order: queries of equal values (a user's, say) are "
        "never in two folds; None: every query by itself",
    )
    cluster: Any = parameter(
        None,
        'where models are trained: None: here, one after the other; ``"local"``: in parallel '
        'processes on this machine; ``"tcp://..."`` or a Dask client: on its workers',
        lambda _, owner, value: check_cluster(value, owner),
    )
    checkpoint: str | Path | None = parameter(
        None, "folder that keeps every fit; an interrupted search is resumed from it"
    )
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS

    # -- training ---------------------------------------------------------------------------------

    def fit(self, *arguments: Any, **named: Any) -> Self:
        """Search, and keep the best combination.

        A search that fails leaves the ranker unchanged. Ctrl-C raises KeyboardInterrupt and leaves
        the best choice so far (``interrupted_`` is True), if a candidate was cross-fitted.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : instead of `qid`, the number of rows of every query, in order, as in LightGBM. Which
            queries stay in one fold is said by ``AutoRanker(group=...)``
        valid : more judged data, a QueryDataset or (X, y, qid), or several in a dict or list. Its
            queries join those of the folds; it must not have queries of the training data
        eval_set, eval_group, eval_qid : instead of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids, as in LightGBM and XGBoost
        weight, query_weight : as in a QueryDataset, where `X` is not one. Rankers that cannot use
            weights of rows are not tried
        sample_weight : scikit-learn's name for `weight`
        valid_measures : without effect: the ranker's `measure` decides
        base_score, callbacks, start : refused
        """
        return super().fit(*arguments, **named)

    fit.__wrapped__ = Ranker.fit  # type: ignore[attr-defined]  # whose signature it has

    def _training_data(
        self,
        X: Documents,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        owner: str,
        **weights: Any,
    ) -> QueryDataset:
        try:
            return super()._training_data(X, y, qid, group, owner, **weights)
        except DataError as error:
            if group is None:
                raise
            hint = "To keep queries in one fold, as those of a user: AutoRanker(group=...)."
            raise DataError(f"{error} {hint}") from None

    def _check_together(self) -> None:
        owner = type(self).__name__
        target_measure(self.measure)
        if self.minutes is not None and self.n_fits is not None:
            raise ParameterError(
                f"{owner} has one limit: minutes or n_fits. Got minutes={self.minutes} and n_fits="
                f"{self.n_fits}: leave one out."
            )

    @property
    def _minutes(self) -> float | None:
        """The time limit; None: the limit is a number of fits."""
        return MINUTES if self.minutes is None and self.n_fits is None else self.minutes

    @property
    def _trees_only(self) -> bool:
        return self.exportable or self._is_limited

    @property
    def _is_limited(self) -> bool:
        return self.max_trees is not None or self.max_microseconds is not None

    def _fit(self, training: Training) -> Learned:
        budget = Budget(self._minutes, self.n_fits)
        data = self._all_data(training)
        measure = target_measure(self.measure).on_scale_of(data.y)
        groups = self._groups(training, data)
        prepared = measure.prepare(data.grouped(data.y), data.query_ptr, self.n_threads)
        usable = ~prepared.is_fixed
        n_folds = _n_folds(np.unique(groups[usable]).size)
        if self.n_fits is not None and self.n_fits < n_folds:
            raise ParameterError(
                f"AutoRanker: n_fits={self.n_fits} is too low: a candidate takes {n_folds} fits on "
                "this data, one per fold. Give several times as many."
            )
        listed = presets(str(self.measure), data, trees_only=self._trees_only)
        first = next(candidate for candidate in listed if candidate.is_boosted)
        bins = first.ranker.shared_bins(data)
        common = Shared(data, bins, groups, usable, n_folds, measure, self.random_state, None)
        bar = _Bar(budget, str(self.measure)) if self.progress else None
        closing = _Closing(self.max_trees, self.max_microseconds)

        def on_step(step: Step) -> None:
            closing.reserve()
            if bar is not None:
                bar(step)

        search = Search(
            common,
            budget,
            self.cluster,
            self.n_threads,
            stored=self._folder(common),
            on_step=on_step,
        )
        closing.follow(search, self.n_threads)
        try:
            if budget.seconds is not None:
                _warm(first.ranker, common, self.n_threads)
            search.run(listed)
        finally:
            if bar is not None:
                bar.close()
        if not search.fitted:
            why = next(iter(search.failed.values()))
            raise DataError(f"AutoRanker: no candidate could be trained: {why}")
        if closing.limited is not None:
            model, choice = closing.limited.model()
        else:
            choice = search.choice()
            model = _bag(search.fitted, choice.weights, data)
        return {
            "model_": model,
            "value_": choice.value,
            "interval_": confidence_interval(choice.values, bounds=measure.bounds),
            "optimism_": choice.optimism,
            "leaderboard_": self._leaderboard(search, choice.weights),
            "search_": search.steps,
            "compared_": choice.compared,
            "microseconds_": microseconds(model, data),
            "failed_": search.failed,
            "interrupted_": search.interrupted,
        }

    def _all_data(self, training: Training) -> QueryDataset:
        """Return training and validation data as one: all queries are validated by folds."""
        _refuse_shared({"training": training.train, **training.valid}, training.owner)
        parts, known = [training.train], set(map(str, training.train.query_ids))
        for name, data in training.valid.items():
            # The same id in two data sets is not the same query.
            shared_ids = not known.isdisjoint(map(str, data.query_ids))
            parts.append(_renamed(name, data) if shared_ids else data)
            known.update(map(str, parts[-1].query_ids))
        return concatenate(parts)

    def _groups(self, training: Training, data: QueryDataset) -> np.ndarray:
        """Return one key per query: queries of equal keys stay together."""
        if self.group is None:
            return data.query_keys
        values = np.asarray(self.group)
        n_queries = training.train.n_queries
        if values.shape != (n_queries,):
            refuse("group", type(self).__name__, f"one value per query ({n_queries:,})", values)
        keys = string_keys(values.tolist())
        return np.concatenate([keys, data.query_keys[n_queries:]])

    def _folder(self, common: Shared) -> FitFolder | None:
        if self.checkpoint is None:
            return None
        run = {
            "measure": str(common.measure),
            "random_state": self.random_state,
            "training data": fingerprint(common.data),
            "folds": common.n_folds,
            "groups": int(np.bitwise_xor.reduce(common.groups)),
        }
        return FitFolder(self.checkpoint, run)

    def _leaderboard(self, search: Search, weights: np.ndarray) -> Leaderboard:
        entries = []
        for fit, weight in zip(search.fitted, weights.tolist(), strict=True):
            values = search.values(fit)
            low, high = confidence_interval(values, bounds=search.shared.measure.bounds)
            entries.append(
                Entry(
                    fit.candidate.name,
                    described(fit.candidate.ranker),
                    float(np.nanmean(values)),
                    low,
                    high,
                    weight,
                    fit.n_fits,
                    fit.seconds,
                    _trees_per_model(fit),
                )
            )
        entries.sort(key=lambda entry: -entry.value)
        return Leaderboard(entries, full_name(self.measure))

    # -- the trained ranker -----------------------------------------------------------------------

    def predict(
        self, X: Documents, n_threads: int | None = None, *, qid: ArrayLike | None = None
    ) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the ranker's own `n_threads`
        qid : the query id of every row, where `X` is no data set; needed where a member normalises
            features within queries
        """
        self._check_is_fitted()
        X = with_queries(self, X, qid, "AutoRanker.predict")
        return self.model_.predict(X, self.n_threads if n_threads is None else n_threads)

    def members(self) -> list[Any]:
        """Return the final model."""
        return [self.model_]

    def averaged(self) -> tuple[list[Ranker], np.ndarray]:
        """Return the models whose scores are averaged, and what each counts."""
        return self.model_.averaged()

    def scaled_by_query(self) -> str | None:
        """Return what of the final model is scaled within every query."""
        return self.model_.scaled_by_query()

    def flat(self) -> Ensemble | None:
        """Return the trees whose sum is the score, or None where it is something else."""
        return self.model_.flat()

    def tree_count(self) -> int | None:
        """Return the number of trees of all models; None where one is not made of trees."""
        return self.model_.tree_count()

    def explain_choice(self) -> str:
        """Return in words what was tried, what was chosen, and what it is worth."""
        self._check_is_fitted()
        board = self.leaderboard_
        n_fits = sum(entry.fits for entry in board)
        lines = [
            f"{counted(len(board), 'candidate')} {'was' if len(board) == 1 else 'were'} "
            f"cross-fitted, {counted(n_fits, 'fit')} in all: every query was scored by models that "
            "were not trained on it.",
        ]
        if self.interrupted_:
            lines.append(INTERRUPTED)
        if len(board) > 1:
            best = board[0]
            value = f"{self.measure} {best.value:.4f}"
            lines.append(f"The best candidate alone is {best.name}: {value}.")
        if self._is_limited:
            lines.append(self._limit_text())
        elif len(board) > 1:
            lines += [
                f"{WAYS}:",
                *(f"  {value:.4f}  {name}" for name, value in self.ways()),
            ]
        lines += [
            "The model takes:",
            *(
                f"  {share_text(entry.weight):>7}  {entry.name}"
                for entry in board
                if entry.weight > 0.0
            ),
            self.estimate_text(),
        ]
        if self.failed_:
            lines.append("Candidates that could not be trained on this data:")
            lines += [f"  {name}: {error}" for name, error in self.failed_.items()]
        return "\n".join([*lines, *self._speed_lines()])

    def ways(self) -> list[tuple[str, float]]:
        """Return the ways to combine candidates and their nested values, the best first.

        Ways of the same value made the same choices, as of few candidates: they are one item.
        """
        same: dict[float, list[str]] = {}
        for name, value in sorted(self.compared_.items(), key=lambda item: -item[1]):
            same.setdefault(value, []).append(name)
        return [
            (first + (f" (the same: {'; '.join(others)})" if others else ""), value)
            for value, (first, *others) in same.items()
        ]

    def _limit_text(self) -> str:
        (way,) = self.compared_
        speed = self.max_microseconds
        also = "" if speed is None else f" and at most {speed:g} microseconds per document"
        return (
            f"The final model is limited: {way}{also}. Its members were trained once more, on all "
            "queries. The values of candidates are those of their models without the limit, and "
            "the estimate is that of models within it."
        )

    def _speed_lines(self) -> list[str]:
        if self.microseconds_ is None:
            return []
        speed = f"{self.microseconds_:,.{0 if self.microseconds_ >= 100 else 1}f}"
        return [
            f"Scoring takes {speed} microseconds per document (predict on one thread of the "
            f"machine of the search, {TIMED_DOCUMENTS} documents at a time)."
        ]

    def estimate_text(self) -> str:
        """Return in words what the model is worth."""
        low, high = self.interval_
        interval = "no interval" if math.isnan(low) else f"95 % interval {low:.4f} to {high:.4f}"
        name = full_name(self.measure)
        text = f"Nested estimate for new queries: {name} {self.value_:.4f} ({interval})."
        if len(self.leaderboard_) == 1:
            return text
        if abs(self.optimism_) < 0.00005:
            return f"{text} On the queries that the choice was made on it is the same."
        side = "higher" if self.optimism_ >= 0.0 else "lower"
        luck = ": that much is the luck of the winner" if self.optimism_ > 0.0 else ""
        return (
            f"{text} On the queries that the choice was made on it is "
            f"{self.value_ + self.optimism_:.4f}, {abs(self.optimism_):.4f} {side}{luck}."
        )

    def summary(self) -> str:
        """Return a text about the model and the search."""
        self._check_is_fitted()
        n_trees = self.tree_count()
        trees = "" if n_trees is None else f", {counted(n_trees, 'tree')} in all"
        n_chosen = sum(entry.weight > 0.0 for entry in self.leaderboard_)
        lines = [
            f"AutoRanker for {self.measure}: {counted(len(self.model_.models_), 'model')} of "
            f"{counted(n_chosen, 'candidate')}{trees}.",
            *([INTERRUPTED] if self.interrupted_ else []),
            self.estimate_text(),
            *self._speed_lines(),
            str(self.leaderboard_),
        ]
        return "\n".join(lines)

    def _state(self) -> tuple[Content, Arrays]:
        packed, arrays = pack(self.model_, "model")
        board, steps = self.leaderboard_.to_list(), [asdict(step) for step in self.search_]
        if self._minutes is None:  # the same search gives the same file, however long it took
            board, steps = ([{**item, "seconds": 0.0} for item in part] for part in (board, steps))
        return {
            "model": packed,
            "value": self.value_,
            "interval": list(self.interval_),
            "optimism": self.optimism_,
            "leaderboard": board,
            "search": steps,
            "compared": self.compared_,
            "microseconds": None if self._minutes is None else self.microseconds_,
            "failed": self.failed_,
            "interrupted": self.interrupted_,
        }, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        model = unpack(content["model"], arrays, "model")
        if not isinstance(model, BaggedRanker):
            raise ValueError("its model is not a bag")
        self.model_ = model
        self.value_, self.optimism_ = float(content["value"]), float(content["optimism"])
        low, high = content["interval"]
        self.interval_ = (float(low), float(high))
        entries = [Entry(**entry) for entry in content["leaderboard"]]
        self.leaderboard_ = Leaderboard(entries, full_name(self.measure))
        self.search_ = [Step(**step) for step in content["search"]]
        self.compared_ = {str(k): float(v) for k, v in content["compared"].items()}
        speed = content["microseconds"]
        self.microseconds_ = None if speed is None else float(speed)
        self.failed_ = {str(k): str(v) for k, v in content["failed"].items()}
        self.interrupted_ = bool(content["interrupted"])


def _refuse_shared(sets: Mapping[str, QueryDataset], owner: str) -> None:
    """Refuse a query of several data sets: models would be evaluated on queries they have seen."""
    known: dict[int, tuple[str, object]] = {}
    for name, data in sets.items() if len(sets) > 1 else ():
        labels, starts = data.grouped(data.y), data.query_ptr[:-1]
        counts = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
        contents = query_contents(data)
        for i in np.flatnonzero(counts).tolist():
            query = (name, data.query_ids[i])
            other = known.setdefault(int(contents[i]), query)
            if other[0] != name:
                raise DataError(
                    f"{owner}: the query {query[1]} of the {name} data has the same documents and "
                    f"labels as the query {other[1]} of the {other[0]} data. Models would be "
                    "evaluated on queries that they were trained on: leave it out of one of them."
                )


def _renamed(name: str, data: QueryDataset) -> QueryDataset:
    """Return a data set with its name before the ids of its queries."""
    return QueryDataset(
        data.features if data.rows is None else data.X,
        data.y,
        qid=[f"{name} {query}" for query in data.qid],
        weight=data.weight,
        query_weight=data.query_weight,
        feature_names=data.given_names,
        absent=data.absent_given,
        categorical=data.categorical,
    )


def _n_folds(n_groups: int) -> int:
    if n_groups < 2:
        raise DataError(
            "AutoRanker needs at least 2 queries (or groups of them) whose documents differ in "
            "relevance, so that models can be evaluated on queries that they were not trained on."
        )
    return min(n_groups, 2 * FOLDS if n_groups < FEW_QUERIES else FOLDS)


def _trees_per_model(fit: CrossFit) -> int | None:
    counts = [model.inside().tree_count() for model in fit.models()]
    known = [count for count in counts if count is not None]
    return round(sum(known) / len(known)) if known else None


def _bag(fitted: Sequence[CrossFit], weights: np.ndarray, data: QueryDataset) -> BaggedRanker:
    """Return the weighted mean of the models of some candidates."""
    models: list[Ranker] = []
    shares: list[float] = []
    for fit, weight in zip(fitted, weights.tolist(), strict=True):
        if weight > 0.0:
            members = fit.models()
            spread = spread_of(fit.scores, data.query_ptr)
            models += members
            shares += [weight / spread / len(members)] * len(members)
    return bag_of(models, np.array(shares), data, None)


def _warm(ranker: Ranker, common: Shared, n_threads: int | None) -> None:
    """Compile or load the kernels of a ranker, so that its first fit takes as long as others."""
    few = np.flatnonzero(common.usable)[:WARM_QUERIES]
    data = common.data.select(np.isin(np.arange(common.data.n_queries), few))
    quick = clone(ranker).set_params(
        n_trees=2, min_leaf=1, n_threads=1 if n_threads is None else n_threads
    )
    with suppress(RankgroveError):  # the search says what is wrong
        quick.fit(data, valid=data, valid_measures=[common.measure]).predict(data)


class _Closing:
    """Keeps time for what comes after the search: the choice, and training on all queries."""

    def __init__(self, max_trees: int | None, max_microseconds: float | None) -> None:
        self.limited: Limited | None = None
        self._limits = (max_trees, max_microseconds)
        self._next = 2  # number of candidates at which the choice is timed

    def follow(self, search: Search, n_threads: int | None) -> None:
        """Take the search whose end it is."""
        self._search = search
        if self._limits != (None, None):
            self.limited = Limited(search, *self._limits, n_threads)

    def reserve(self) -> None:
        """Keep time by what was done so far; with a number of fits there is no need to."""
        budget, n_fitted = self._search.budget, len(self._search.fitted)
        if self.limited is not None:
            self.limited.check()
        if budget.seconds is None:
            return
        if self.limited is not None:
            self.limited.reserve()
        if n_fitted < self._next:
            return
        self._choose()  # kernels are loaded: not to be counted twice
        began = time.monotonic()
        self._choose()
        budget.reserve(2.0 * (time.monotonic() - began))
        self._next = 2 * n_fitted

    def _choose(self) -> None:
        if self.limited is not None:
            self.limited.choose()
        else:
            self._search.choice()


class _Bar:
    """The progress bar of a search: time or fits used, and the best value so far."""

    def __init__(self, budget: Budget, measure: str) -> None:
        self._budget, self._measure, self._shown = budget, measure, 0
        self._unit = "% of the time" if budget.seconds else "% of the fits"
        self._bar = TaskBar("AutoRanker", 100, self._unit)

    def __call__(self, step: Step) -> None:
        percent = min(100, int(100 * self._budget.used))
        note = (
            f"{self._unit}; {step.fits} fits; {self._measure} of the latest candidate "
            f"{step.value:.4f}, of the best {step.best:.4f}"
        )
        self._bar.advance(percent - self._shown, note)
        self._shown = percent

    def close(self) -> None:
        self._bar.close()
