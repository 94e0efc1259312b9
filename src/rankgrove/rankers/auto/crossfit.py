"""Cross-fitting a candidate: every query is scored by models that were not trained on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.random import derive_seed, mix64
from rankgrove.rankers.auto.portfolio import Candidate
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.prepared import PreparedRanker
from rankgrove.rankers.estimator import clone
from rankgrove.rankers.trees.lambdamart import LambdaMART

SMOOTHED_OVER = 11  # rounds: width of the moving average of a learning curve


class Task(NamedTuple):
    """One fit: a candidate without a fold of a division."""

    candidate: Candidate
    repeat: int
    fold: int


class FoldFit(NamedTuple):
    """A model trained without a fold, its validation curve there, and the time it took."""

    model: Ranker
    curve: np.ndarray
    seconds: float


class Shared(NamedTuple):
    """What all fits need.

    groups : one key per query; queries of one group are in one fold
    usable : whether the measure tells orders of a query apart
    deadlines : by fold, the time (of ``time.monotonic``) after which training stops; None: no limit
    """

    data: QueryDataset
    bins: tuple[QueryDataset, BinnedMatrix] | None
    groups: np.ndarray
    usable: np.ndarray
    n_folds: int
    measure: Measure
    seed: int
    deadlines: tuple[float, ...] | None

    def folds(self, repeat: int) -> np.ndarray:
        """Return the fold of every query in one of the divisions."""
        return divided(self.groups, self.usable, self.n_folds, self.seed, repeat)


def divided(
    groups: np.ndarray, usable: np.ndarray, n_folds: int, seed: int, repeat: int
) -> np.ndarray:
    """Return the fold of every query; folds have about equal numbers of usable queries.

    Parameters
    ----------
    groups : one key per query; queries of one group are in one fold
    usable : whether a query can be valued
    """
    keys, group_of = np.unique(groups, return_inverse=True)
    order = np.argsort(mix64(keys ^ np.uint64(derive_seed(seed, "folds", repeat))), kind="stable")
    n_usable = np.bincount(group_of, usable, minlength=keys.size)
    n_queries = np.bincount(group_of, minlength=keys.size)
    order = order[np.argsort(n_usable[order] == 0, kind="stable")]  # those that count first
    filled = np.zeros((n_folds, 2))
    fold_of_group = np.empty(keys.size, np.int64)
    for group in order.tolist():
        fold = min(range(n_folds), key=lambda k: (filled[k, 0], filled[k, 1], k))
        if n_usable[group] == 0:
            fold = int(np.argmin(filled[:, 1]))
        filled[fold] += n_usable[group], n_queries[group]
        fold_of_group[group] = fold
    return fold_of_group[group_of]


def fit_fold(shared: Shared, task: Task, n_threads: int | None) -> FoldFit:
    """Train a candidate without one fold of the queries."""
    started = time.monotonic()
    ranker: Ranker = clone(task.candidate.ranker)
    known = ranker.get_params()
    seed = derive_seed(shared.seed, "auto", task.repeat, task.fold) % (1 << 31)
    for name in known:
        if name.rpartition("__")[2] == "random_state":
            ranker.set_params(**{name: seed})
        elif name.rpartition("__")[2] == "n_threads" and n_threads is not None:
            ranker.set_params(**{name: n_threads})
    fold = shared.folds(task.repeat)
    seen = fold != task.fold
    valid = {"held out": shared.data.select(~seen)} if task.candidate.is_boosted else {}
    train, bins = shared.data.select(seen), None
    if shared.bins is not None and ranker.bins_depend_on == LambdaMART.bins_depend_on:
        slim, whole = shared.bins
        train = slim.select(seen)
        bins = whole.some(np.repeat(seen, np.diff(shared.data.query_ptr)))
    deadline = None if shared.deadlines is None else shared.deadlines[task.fold]
    ranker.fit_binned(
        train,
        bins,
        valid=valid,
        valid_measures=[shared.measure] if valid else None,
        callbacks=stop_at(deadline) if "callbacks" in ranker.fit_takes else (),
    )
    return FoldFit(ranker, curve_of(ranker), time.monotonic() - started)


def stop_at(deadline: float | None) -> tuple[Callable[[Any], bool], ...]:
    """Return the callbacks that end training after a deadline."""
    return () if deadline is None else (lambda _: time.monotonic() > deadline,)


def curve_of(ranker: Ranker) -> np.ndarray:
    """Return the values of the measure on the held-out fold, round by round."""
    history = getattr(ranker.inside(), "history_", None) or {}
    for measures in history.values():
        return np.array(next(iter(measures.values())), np.float64)
    return np.empty(0)


@dataclass
class CrossFit:
    """A candidate with all its fits.

    Attributes
    ----------
    candidate : what was fitted
    repeats : the fits of every division into folds, fold by fold
    rounds : number of rounds that all models keep; None: as trained
    scores : one out-of-fold score per row in query order, averaged over the divisions
    seconds : time of all fits
    """

    candidate: Candidate
    repeats: list[list[FoldFit]] = field(default_factory=list)
    rounds: int | None = None
    scores: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def seconds(self) -> float:
        """Time of all fits."""
        return sum(fit.seconds for fits in self.repeats for fit in fits)

    @property
    def n_fits(self) -> int:
        """Number of fits."""
        return sum(map(len, self.repeats))

    def add(self, fits: list[FoldFit], shared: Shared, n_threads: int | None) -> None:
        """Take in the fits of one more division, and score every query by the one without it."""
        repeat = len(self.repeats)
        self.repeats.append(fits)
        scores = self._out_of_fold(repeat, shared, n_threads)
        self.rounds = best_round([fit.curve for fits in self.repeats for fit in fits])
        self.scores = scores if repeat == 0 else self.scores + (scores - self.scores) / (repeat + 1)

    def scores_within(self, most_rounds: int, shared: Shared, n_threads: int | None) -> np.ndarray:
        """Return the out-of-fold scores of models with at most the given number of rounds.

        They are those of one division: a model of limited size is not the mean of several.
        """
        return self._out_of_fold(0, shared, n_threads, most_rounds)

    def _out_of_fold(
        self, repeat: int, shared: Shared, n_threads: int | None, most_rounds: int | None = None
    ) -> np.ndarray:
        """Return one score per row in query order, by the model of a division without its query."""
        data, fits = shared.data, self.repeats[repeat]
        fold = shared.folds(repeat)
        scores = np.empty(data.n_rows)
        for k, fit in enumerate(fits):
            held_out = fold == k
            part = data.select(held_out)
            # The number of rounds is chosen by the other folds: this one has no part in it.
            rounds = best_round([other.curve for j, other in enumerate(fits) if j != k])
            if rounds is not None and most_rounds is not None:
                rounds = min(rounds, most_rounds)
            rows = np.repeat(held_out, np.diff(data.query_ptr))
            model = shortened(fit.model, rounds)
            scores[rows] = part.grouped(model.predict(part, n_threads=n_threads))
        return scores

    def models(self) -> list[Ranker]:
        """Return all models, with the number of rounds that was chosen."""
        return [shortened(fit.model, self.rounds) for fits in self.repeats for fit in fits]


def best_round(curves: list[np.ndarray]) -> int | None:
    """Return the round at which the mean of smoothed curves is highest; None: no curves.

    A curve that ended earlier keeps its last value.
    """
    curves = [curve for curve in curves if curve.size]
    if not curves:
        return None
    longest = max(curve.size for curve in curves)
    filled = [np.pad(curve, (0, longest - curve.size), mode="edge") for curve in curves]
    mean = np.mean(filled, axis=0)
    width = min(SMOOTHED_OVER, 2 * ((longest - 1) // 2) + 1)
    smooth = np.convolve(np.pad(mean, width // 2, mode="edge"), np.ones(width) / width, "valid")
    return int(np.argmax(smooth)) + 1


def shortened(model: Ranker, rounds: int | None) -> Ranker:
    """Return a model with at most the given number of rounds."""
    if rounds is None:
        return model
    boosted: Any = model.inside()
    shorter = boosted.truncated(min(rounds, boosted.ensemble_.n_rounds))
    return model.with_inside(shorter) if isinstance(model, PreparedRanker) else shorter
