"""AutoRanker: the best ranker for some data within a given time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from rankgrove.cluster.client import check_cluster
from rankgrove.data.concatenate import concatenate
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.evaluate import confidence_interval
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.random import string_keys
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.auto.budget import Budget
from rankgrove.rankers.auto.crossfit import CrossFit, Shared, shortened
from rankgrove.rankers.auto.fit_folder import FitFolder
from rankgrove.rankers.auto.leaderboard import Entry, Leaderboard
from rankgrove.rankers.auto.portfolio import presets, settings
from rankgrove.rankers.auto.search import Search, Step
from rankgrove.rankers.auto.selection import Choice, mean_of_best, spread_of
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
from rankgrove.rankers.fitting import Training, fingerprint
from rankgrove.rankers.inner_rankers import pack, unpack
from rankgrove.training.progress import TaskBar
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents

FOLDS = 5
FEW_QUERIES = 50  # below, there are more folds, so that each leaves out fewer queries
MOST_PARTS = 3  # members of a model of limited size
TIMED_DOCUMENTS, TIMED_CALLS = 100, 50


@declares_parameters
class AutoRanker(Ranker):
    """Many rankers cross-fitted within a time limit, and the best combination of them.

    Every candidate is trained without each of some folds of the queries in turn, so that it has a
    score for every query from models that did not see it. Robust presets come first; then
    variations of the best ones; then the chosen ones once more, on other divisions. Members and
    weights are chosen by the out-of-fold scores, and the value of the choice is nested: weights
    are found without the fold that they are valued on. The final model is the weighted mean of the
    members' models.

    Attributes
    ----------
    model_ : the final model, a bag
    value_ : the nested mean of the measure: an estimate for new queries, a little too high where
        features hardly tell documents apart
    interval_ : its 95 % confidence interval
    optimism_ : by how much the mean on the data of the choice is higher than that
    leaderboard_ : every candidate: value, interval, weight, time, size
    search_ : the search over time, step by step
    strategies_ : how members and weights were found; the mean of several ways
    failed_ : candidates that could not be trained on this data, with the error message
    interrupted_ : whether Ctrl-C ended the search
    n_features_in_, feature_names_ : of the training data

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=20, seed=1), rg.make_web(30, n_docs=20, seed=2)
    >>> best = rg.AutoRanker("ndcg@10", minutes=None, n_fits=15, random_state=1).fit(train)
    >>> len(best.leaderboard_)
    3
    """

    kind: ClassVar[str] = "auto"
    fit_takes: ClassVar[frozenset[str]] = frozenset({"valid", "weight"})
    model_: BaggedRanker = learned()
    value_: float = learned()
    interval_: tuple[float, float] = learned()
    optimism_: float = learned()
    leaderboard_: Leaderboard = learned()
    search_: list[Step] = learned()
    strategies_: tuple[str, ...] = learned()
    compared_: dict[str, float] = learned()
    failed_: dict[str, str] = learned()
    interrupted_: bool = learned()

    measure: str | Measure = parameter("ndcg@10", "what to maximise: a measure or its name")
    minutes: float | None = parameter(
        10.0, "time limit of ``fit``; None: by `n_fits`", optional(real(above=0.0))
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
        "maximum time of scoring one document, on one thread of this machine, 100 documents at a "
        "time; None: no limit",
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

    def _check_together(self) -> None:
        owner = type(self).__name__
        target_measure(self.measure)
        if (self.minutes is None) == (self.n_fits is None):
            raise ParameterError(
                f"{owner} has one limit: minutes, or n_fits with minutes=None. Got minutes="
                f"{self.minutes} and n_fits={self.n_fits}."
            )

    @property
    def _trees_only(self) -> bool:
        return self.exportable or self._is_limited

    @property
    def _is_limited(self) -> bool:
        return self.max_trees is not None or self.max_microseconds is not None

    def _fit(self, training: Training) -> Learned:
        data = self._all_data(training)
        measure = target_measure(self.measure)
        groups = self._groups(training, data)
        prepared = measure.prepare(data.grouped(data.y), data.query_ptr, self.n_threads)
        usable = ~prepared.is_fixed
        n_folds = _n_folds(np.unique(groups[usable]).size)
        budget = Budget(self.minutes, self.n_fits)
        listed = presets(str(self.measure), data, trees_only=self._trees_only)
        first = next(candidate for candidate in listed if candidate.is_boosted)
        bins = first.ranker.shared_bins(data)
        common = Shared(data, bins, groups, usable, n_folds, measure, self.random_state, None)
        bar = _Bar(budget, str(self.measure)) if self.progress else None
        search = Search(
            common,
            budget,
            self.cluster,
            self.n_threads,
            stored=self._folder(common),
            on_step=bar,
        )
        try:
            search.run(listed)
        finally:
            if bar is not None:
                bar.close()
        if not search.fitted:
            why = next(iter(search.failed.values()), "the limit is too low for a single one")
            raise DataError(f"AutoRanker: no candidate could be trained: {why}")
        choice = search.choice()
        if self._is_limited:
            model, choice, weights = self._limited(search)
        else:
            model, weights = _bag(search.fitted, choice.weights, data), choice.weights
        return {
            "model_": model,
            "value_": choice.value,
            "interval_": confidence_interval(choice.values, bounds=measure.bounds),
            "optimism_": choice.optimism,
            "leaderboard_": self._leaderboard(search, weights),
            "search_": search.steps,
            "strategies_": choice.strategies,
            "compared_": choice.compared,
            "failed_": search.failed,
            "interrupted_": search.interrupted,
        }

    def _all_data(self, training: Training) -> QueryDataset:
        """Return training and validation data as one: all queries are validated by folds."""
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
                    fit.candidate.ranker.kind,
                    settings(fit.candidate.ranker),
                    float(np.nanmean(values)),
                    low,
                    high,
                    weight,
                    fit.n_fits,
                    fit.seconds,
                    fit.models()[0].tree_count(),
                )
            )
        entries.sort(key=lambda entry: -entry.value)
        return Leaderboard(entries, str(self.measure))

    # -- models of limited size -------------------------------------------------------------------

    def _limited(self, search: Search) -> tuple[BaggedRanker, Choice, np.ndarray]:
        """Return a model within the limits: some candidates, trained once more on all queries."""
        limit = self.max_trees or np.iinfo(np.int64).max
        if self.max_microseconds is not None:
            timed = _bag(search.fitted[:1], np.ones(1), search.shared.data)
            per_tree = microseconds(timed, search.shared.data) / max(1, timed.n_trees_)
            limit = min(limit, max(1, int(self.max_microseconds / per_tree)))
        while True:
            model, choice, weights = self._of_trees(search, limit)
            if self.max_microseconds is None or limit == 1:
                return model, choice, weights
            taken = microseconds(model, search.shared.data)
            if taken <= self.max_microseconds:
                return model, choice, weights
            limit = max(1, min(limit - 1, int(0.95 * limit * self.max_microseconds / taken)))

    def _of_trees(self, search: Search, limit: int) -> tuple[BaggedRanker, Choice, np.ndarray]:
        """Return the best model of at most so many trees."""
        data, ptr = search.shared.data, search.shared.data.query_ptr
        best: tuple[Choice, int] | None = None
        for n in range(1, min(MOST_PARTS, limit, len(search.fitted)) + 1):
            name = f"the mean of {counted(n, 'candidate')} of at most {limit // n:,} trees"
            scores = [
                fit.scores_within(limit // n, search.shared, self.n_threads)
                for fit in search.fitted
            ]
            choice = search.choose(scores, {name: mean_of_best(n)})
            if best is None or choice.value > best[0].value:
                best = (choice, n)
        assert best is not None
        choice, n = best
        models, weights = [], []
        for fit, weight in zip(search.fitted, choice.weights.tolist(), strict=True):
            if weight > 0.0:
                model = _trained_on_all(fit, limit // n, data, self.n_threads)
                fitted = data.grouped(model.predict(data, n_threads=self.n_threads))
                models.append(model)
                weights.append(weight / spread_of(fitted, ptr))
        return _bag_of(models, np.array(weights), data, choice.value), choice, choice.weights

    # -- the trained ranker -----------------------------------------------------------------------

    def predict(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better."""
        self._check_is_fitted()
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
        used = [entry for entry in board if entry.weight > 0.0]
        n_fits = sum(entry.fits for entry in board)
        best = board[0]
        low, high = self.interval_
        lines = [
            f"{counted(len(board), 'candidate')} were cross-fitted, {counted(n_fits, 'fit')} in "
            "all: every query was scored by models that were not trained on it.",
            f"The best candidate alone is {best.name}: {self.measure} {best.value:.4f}.",
            "Ways to combine them, by their value on queries that had no part in finding weights "
            "(*: within one standard error of the best; the mean of these is taken):",
            *(
                f"  {value:.4f} {'*' if name in self.strategies_ else ' '} {name}"
                for name, value in sorted(self.compared_.items(), key=lambda item: -item[1])
            ),
            "The model takes:",
            *(f"  {entry.weight:6.1%}  {entry.name}" for entry in used),
            f"Nested estimate for new queries: {self.measure} {self.value_:.4f} (95 % interval "
            f"{low:.4f} to {high:.4f}). On the queries that the choice was made on it is "
            f"{self.optimism_:+.4f} higher: that much is the luck of the winner.",
        ]
        if self.failed_:
            lines.append("Left out: " + "; ".join(f"{k}: {v}" for k, v in self.failed_.items()))
        return "\n".join(lines)

    def summary(self) -> str:
        """Return a text about the model and the search."""
        self._check_is_fitted()
        n_models = len(self.model_.models_)
        return (
            f"AutoRanker for {self.measure}: {counted(n_models, 'model')} of "
            f"{counted(sum(entry.weight > 0 for entry in self.leaderboard_), 'candidate')}; "
            f"nested estimate {self.value_:.4f}\n{self.leaderboard_}"
        )

    def _state(self) -> tuple[Content, Arrays]:
        packed, arrays = pack(self.model_, "model")
        board, steps = self.leaderboard_.to_list(), [asdict(step) for step in self.search_]
        if self.minutes is None:  # the same search gives the same file, however long it took
            board, steps = ([{**item, "seconds": 0.0} for item in part] for part in (board, steps))
        return {
            "model": packed,
            "value": self.value_,
            "interval": list(self.interval_),
            "optimism": self.optimism_,
            "leaderboard": board,
            "search": steps,
            "strategies": list(self.strategies_),
            "compared": self.compared_,
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
        self.leaderboard_ = Leaderboard(entries, str(self.measure))
        self.search_ = [Step(**step) for step in content["search"]]
        self.strategies_ = tuple(map(str, content["strategies"]))
        self.compared_ = {str(k): float(v) for k, v in content["compared"].items()}
        self.failed_ = {str(k): str(v) for k, v in content["failed"].items()}
        self.interrupted_ = bool(content["interrupted"])


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
    )


def _n_folds(n_groups: int) -> int:
    if n_groups < 2:
        raise DataError(
            "AutoRanker needs at least 2 queries (or groups of them) whose documents differ in "
            "relevance, so that models can be valued on queries that they were not trained on."
        )
    return min(n_groups, 2 * FOLDS if n_groups < FEW_QUERIES else FOLDS)


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
    return _bag_of(models, np.array(shares), data, None)


def _bag_of(
    models: list[Ranker], weights: np.ndarray, data: QueryDataset, value: float | None
) -> BaggedRanker:
    bag = BaggedRanker(clone(models[0]), n_models=len(models), combine="mean")
    learned = {
        "models_": models,
        "weights_": weights,
        "out_of_bag_": value,
        "out_of_bag_scores_": None,
    }
    return bag._keep(learned, data)


def _trained_on_all(
    fit: CrossFit, most_rounds: int, data: QueryDataset, n_threads: int | None
) -> Ranker:
    """Return a candidate trained on all queries, for the rounds that were chosen."""
    rounds = min(most_rounds, fit.rounds or most_rounds)
    ranker: Ranker = clone(fit.candidate.ranker)
    ranker.set_params(
        n_trees=rounds, early_stopping=None, overfitting_tolerance=0.0, n_threads=n_threads
    )
    return shortened(ranker.fit(data), rounds)


def microseconds(bag: BaggedRanker, data: QueryDataset) -> float:
    """Return the time of scoring a document on one thread, some documents at a time."""
    scorer = bag.scorer()
    few = data.select(np.arange(data.n_queries) < 1)
    features = np.asarray(few.X)[np.arange(TIMED_DOCUMENTS) % few.n_rows]
    best = np.inf
    for _ in range(TIMED_CALLS):
        began = time.perf_counter()
        scorer.predict(features)
        best = min(best, time.perf_counter() - began)
    return float(1e6 * best / TIMED_DOCUMENTS)


class _Bar:
    """The progress bar of a search: time or fits used, and the best value so far."""

    def __init__(self, budget: Budget, measure: str) -> None:
        self._budget, self._measure, self._shown = budget, measure, 0
        unit = "percent of the time" if budget.seconds else "percent of the fits"
        self._bar = TaskBar("AutoRanker", 100, unit)

    def __call__(self, step: Step) -> None:
        percent = min(100, int(100 * self._budget.used))
        note = f"{step.fits} fits, {self._measure} {step.value:.4f}, best {step.best:.4f}"
        self._bar.advance(percent - self._shown, note)
        self._shown = percent

    def close(self) -> None:
        self._bar.close()
