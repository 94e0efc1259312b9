"""A model of limited size: a few candidates of an AutoRanker, each trained once on all queries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.rankers.auto.crossfit import CrossFit, shortened, stop_at
from rankgrove.rankers.auto.search import Search
from rankgrove.rankers.auto.selection import LEAST_GAIN, Choice, Columns, Strategy, spread_of
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.estimator import clone
from rankgrove.validation import counted

MOST_PARTS = 3  # members of a model of limited size
TIMED_DOCUMENTS, TIMED_CALLS, TIMED_SECONDS = 100, 50, 0.2
FIRST_SHARE = 0.2  # of the time: kept for the final training until a candidate has been timed
SPARE = 1.25  # times the estimated time of the final training is kept for it
LEAST_PER_TREE = 1e-3  # a tree takes at least this share of the time of a call
MOST_LIMITS = 8  # sizes that are tried, until scoring takes no more than allowed


class Part(NamedTuple):
    """A candidate of the final model, its number of rounds, and its weight."""

    fit: CrossFit
    rounds: int
    weight: float


class Limited:
    """Chooses and trains a model of limited size.

    Parameters
    ----------
    search : the search whose candidates are chosen from
    max_trees, max_microseconds : the limits; None: no limit
    """

    def __init__(
        self,
        search: Search,
        max_trees: int | None,
        max_microseconds: float | None,
        n_threads: int | None,
    ) -> None:
        self._search, self._n_threads = search, n_threads
        self._max_trees, self._max_microseconds = max_trees, max_microseconds
        self._limit: int | None = None
        self._call = 0.0  # microseconds per document of a model of one tree: those of a call
        self._scores: dict[tuple[str, int], np.ndarray] = {}
        if search.budget.seconds is not None:
            search.budget.reserve(FIRST_SHARE * search.budget.seconds, "training")

    # -- during the search ------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse a limit that no model can keep, as soon as a candidate can be timed."""
        _ = self.limit

    def reserve(self) -> None:
        """Keep time for the final training, by the time of the fits so far."""
        limit = self.limit
        sizes = range(1, min(MOST_PARTS, limit) + 1)
        slowest = max(
            n * max(self._seconds(fit, limit // n) for fit in self._fitted) for n in sizes
        )
        if slowest > 0.0:
            self._search.budget.reserve(SPARE * slowest, "training")

    @property
    def limit(self) -> int:
        """The most trees that the model may have, by the speed of the first candidate."""
        if self._limit is None:
            self._limit = self._max_trees or np.iinfo(np.int64).max
            if self._max_microseconds is not None:
                self._limit = min(self._limit, self._trees_in_time(self._max_microseconds))
        return self._limit

    def _trees_in_time(self, most: float) -> int:
        """Return about how many trees score a document in time; refuse a limit that none keeps."""
        model, rounds = self._fitted[0].repeats[0][0].model, self._fitted[0].rounds
        self._call = self._time([shortened(model, 1)], np.ones(1))
        if self._call > most:
            raise ParameterError(
                f"AutoRanker cannot keep max_microseconds={most:g}: a model of one tree takes "
                f"{self._call:.3f} microseconds per document on this machine, "
                f"{TIMED_DOCUMENTS} documents at a time. Give a higher limit."
            )
        whole = shortened(model, rounds)
        more = self._time([whole], np.ones(1)) - self._call
        per_tree = max(more / max(1, _n_rounds(whole) - 1), LEAST_PER_TREE * self._call)
        return 1 + int((most - self._call) / per_tree)

    def _seconds(self, fit: CrossFit, most_rounds: int) -> float:
        """Return about how long a candidate trains on all queries; 0: not known."""
        times = [f.seconds / f.curve.size for f in fit.repeats[0] if f.curve.size]
        n_folds = len(fit.repeats[0])
        rounds = min(most_rounds, fit.rounds or most_rounds)
        return float(np.mean(times)) * rounds * n_folds / (n_folds - 1) if times else 0.0

    # -- the choice -------------------------------------------------------------------------------

    def choose(self) -> tuple[Choice, list[Part]]:
        """Choose members for the limit; the number of members is part of the nested choice."""
        limit, n_fitted = self.limit, len(self._fitted)
        sizes = range(1, min(MOST_PARTS, limit, n_fitted) + 1)
        scores = [self._scores_within(fit, limit // n) for n in sizes for fit in self._fitted]
        best = "the best candidate" if sizes[-1] == 1 else f"the {sizes[-1]} best or fewer"
        name = f"{best}, with at most {counted(limit, 'tree')} in all"
        choice = self._search.choose(scores, {name: best_size(sizes)})
        by_size = choice.weights.reshape(len(sizes), n_fitted)
        parts = [
            Part(fit, self._rounds(fit, limit // n), float(weight))
            for n, row in zip(sizes, by_size, strict=True)
            for fit, weight in zip(self._fitted, row, strict=True)
            if weight > 0.0
        ]
        return replace(choice, weights=by_size.sum(axis=0)), parts

    def _scores_within(self, fit: CrossFit, most_rounds: int) -> np.ndarray:
        key = (fit.candidate.key, most_rounds)
        if key not in self._scores:
            shared = self._search.shared
            self._scores[key] = fit.scores_within(most_rounds, shared, self._n_threads)
        return self._scores[key]

    @staticmethod
    def _rounds(fit: CrossFit, most_rounds: int) -> int:
        return min(most_rounds, fit.rounds or most_rounds)

    # -- the model --------------------------------------------------------------------------------

    def model(self) -> tuple[BaggedRanker, Choice]:
        """Return the model within the limits, and the choice that it follows."""
        for _ in range(MOST_LIMITS):
            choice, parts = self.choose()
            cross_fitted = [shortened(part.fit.repeats[0][0].model, part.rounds) for part in parts]
            if self._max_microseconds is None or self.limit == 1:
                break
            taken = self._time(cross_fitted, weights_of(parts))
            if taken <= self._max_microseconds:
                break
            share = (self._max_microseconds - self._call) / (taken - self._call)
            smaller = int(0.95 * self.limit * share)
            self._limit = max(1, min(self.limit - 1, smaller))
        models = self._trained(parts)
        while self._max_microseconds is not None and max(map(_n_rounds, models)) > 1:
            if self._time(models, weights_of(parts)) <= self._max_microseconds:
                break
            models = [shortened(model, max(1, int(0.95 * _n_rounds(model)))) for model in models]
        return self._bag(models, parts, choice.value), choice

    def _time(self, models: list[Ranker], weights: np.ndarray) -> float:
        return microseconds(bag_of(models, weights, self._data, None), self._data)

    def _trained(self, parts: Sequence[Part]) -> list[Ranker]:
        """Return the members, trained on all queries; none goes on after its share of the time."""
        budget, models = self._search.budget, []
        for done, part in enumerate(parts):
            deadline = None
            if budget.seconds is not None:
                left = max(0.0, budget.started + budget.seconds - time.monotonic())
                deadline = time.monotonic() + left / (len(parts) - done)
            ranker: Ranker = clone(part.fit.candidate.ranker)
            ranker.set_params(
                n_trees=part.rounds,
                early_stopping=None,
                overfitting_tolerance=0.0,
                n_threads=self._search.threads_of_fit,
            )
            ranker.fit(self._data, callbacks=stop_at(deadline))
            models.append(shortened(ranker, part.rounds))
        return models

    def _bag(self, models: list[Ranker], parts: Sequence[Part], value: float) -> BaggedRanker:
        data, weights = self._data, []
        for model, part in zip(models, parts, strict=True):
            scores = data.grouped(model.predict(data, n_threads=self._n_threads))
            weights.append(part.weight / spread_of(scores, data.query_ptr))
        return bag_of(models, np.array(weights), data, value)

    @property
    def _fitted(self) -> list[CrossFit]:
        return self._search.fitted

    @property
    def _data(self) -> QueryDataset:
        return self._search.shared.data


def weights_of(parts: Sequence[Part]) -> np.ndarray:
    """Return the weights of the members."""
    return np.array([part.weight for part in parts])


def best_size(sizes: Sequence[int]) -> Strategy:
    """Return the strategy that takes the mean of the n best candidates, for the best n.

    It wants one block of columns per n: all candidates, as large as n of them may be.
    """

    def weights(columns: Columns) -> np.ndarray:
        values = np.array([columns.mean(column) for column in columns.scores])
        weights, best = np.zeros(values.size), -np.inf
        for n, block in zip(sizes, np.split(np.arange(values.size), len(sizes)), strict=True):
            chosen = block[np.argsort(-values[block], kind="stable")[:n]]
            value = columns.mean(columns.scores[chosen].mean(axis=0))
            if value > best + LEAST_GAIN:
                best = value
                weights[:] = 0.0
                weights[chosen] = 1.0 / chosen.size
        return weights

    return weights


def bag_of(
    models: list[Ranker], weights: np.ndarray, data: QueryDataset, value: float | None
) -> BaggedRanker:
    """Return the weighted mean of some models."""
    bag = BaggedRanker(clone(models[0]), n_models=len(models), combine="mean")
    learned = {
        "models_": models,
        "weights_": weights,
        "out_of_bag_": value,
        "out_of_bag_scores_": None,
    }
    return bag._keep(learned, data)


def microseconds(model: Ranker, data: QueryDataset) -> float:
    """Return the time of scoring a document by ``predict``, on one thread, 100 at a time."""
    first = data.select(np.arange(data.n_queries) < 1)
    query = QueryDataset(
        first.X[np.arange(TIMED_DOCUMENTS) % first.n_rows],
        np.zeros(TIMED_DOCUMENTS),
        qid=np.zeros(TIMED_DOCUMENTS, np.int64),
        feature_names=data.given_names,
        absent=data.absent_given,
    ).with_codes_of(data.categories)
    best, end = np.inf, time.perf_counter() + TIMED_SECONDS
    for call in range(TIMED_CALLS):
        began = time.perf_counter()
        if call > 1 and began > end:
            break
        model.predict(query, n_threads=1)
        best = min(best, time.perf_counter() - began)
    return float(1e6 * best / TIMED_DOCUMENTS)


def _n_rounds(model: Ranker) -> int:
    return int(model.ensemble_.n_rounds)
