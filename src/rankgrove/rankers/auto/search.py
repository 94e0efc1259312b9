"""The search of an AutoRanker: presets, variations of the good ones, more divisions into folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.cluster.engine import run_tasks
from rankgrove.errors import RankgroveError
from rankgrove.random import generator
from rankgrove.rankers.auto.budget import Budget
from rankgrove.rankers.auto.crossfit import CrossFit, FoldFit, Shared, Task, fit_fold
from rankgrove.rankers.auto.portfolio import SMALL, Candidate, variation
from rankgrove.rankers.auto.selection import (
    Choice,
    Columns,
    Strategy,
    choose,
    few_strategies,
    mean_of,
    spread_of,
)

TUNED_UNTIL = 0.6  # share of the limit after which no more variations are tried
REPEATED = 12  # of the chosen candidates, this many are fitted on more divisions
FIRST_SHARE = 0.25  # of the time limit, at least, is for the first candidate
UNKNOWN = 3.0  # a candidate of a new kind may take this many times as long as the quickest one


class _OutOfTime(Exception):
    """The limit was reached before all folds of a candidate were fitted."""


@dataclass(frozen=True)
class Step:
    """A point of the search: time and fits so far, and the best value so far."""

    seconds: float
    fits: int
    name: str
    value: float
    best: float


class Search:
    """Cross-fits candidates until the limit is reached, and chooses among them.

    Parameters
    ----------
    shared : what all fits need
    budget : the limit
    cluster, n_threads : where fits run, as in a BaggedRanker
    stored : gives a fit that was kept before, or None; and keeps a fit
    on_step : called after every candidate
    """

    def __init__(
        self,
        shared: Shared,
        budget: Budget,
        cluster: Any = None,
        n_threads: int | None = None,
        *,
        stored: Any = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        self.shared = shared
        self.budget = budget
        self.fitted: list[CrossFit] = []
        self.failed: dict[str, str] = {}
        self.steps: list[Step] = []
        self.interrupted = False
        self._cluster, self._n_threads = cluster, n_threads
        # Threads do not make trees on few rows faster, and cost much on a busy machine.
        small = n_threads is None and shared.data.n_rows <= SMALL
        self.threads_of_fit = 1 if small else n_threads
        self._stored, self._on_step = stored, on_step
        self._known: set[str] = set()
        data = shared.data
        self._labels = data.grouped(data.y)
        self._prepared: dict[bytes, Any] = {}

    # -- the three phases -------------------------------------------------------------------------

    def run(self, presets: Sequence[Candidate]) -> None:
        """Fit presets, then variations of the best ones, then the chosen ones again."""
        try:
            for candidate in presets:
                if self.fitted and self.budget.is_over:
                    break
                self._fit(candidate)
            if not self.fitted:
                return
            self._vary()
            self._repeat()
        except KeyboardInterrupt:
            self.interrupted = True
            if not self.fitted:
                raise

    def _vary(self) -> None:
        """Fit variations of good candidates, until most of the limit is used.

        Every fold has its own lineage of variations, which it had no part in proposing: parents
        are presets and variations of the lineage, in the order of their values on the other folds.
        The value of the final choice on a fold is that of presets and of its lineage.
        """
        draw = generator(self.shared.seed, "auto")
        fold, blind = self.shared.folds(0), 0
        while self.budget.used < TUNED_UNTIL:
            seen = fold != blind
            known = [fit for fit in self.fitted if fit.candidate.blind in (None, blind)]
            known.sort(key=lambda fit: -self.value(fit, seen))
            child = variation([fit.candidate for fit in known], self._known, draw, blind)
            if child is None or not self._fit(child):
                return
            blind = (blind + 1) % self.shared.n_folds

    def _repeat(self) -> None:
        """Fit the chosen candidates on more divisions into folds, one after the other."""
        weights = self.choice().weights
        chosen = np.argsort(-weights, kind="stable")[:REPEATED]
        best = [self.fitted[j] for j in chosen if weights[j] > 0.0]
        while not self.budget.is_over:
            fewest = min(best, key=lambda fit: len(fit.repeats))  # the best one of those
            if not self._fit_again(fewest):
                return

    # -- fits -------------------------------------------------------------------------------------

    def _fit(self, candidate: Candidate) -> bool:
        """Cross-fit a candidate; return whether there was room for it within the limit."""
        self._known.add(candidate.key)
        is_first = not self.fitted and self.budget.seconds is not None  # it is always fitted
        if not is_first and not self.budget.allows(self.shared.n_folds, self._estimate(candidate)):
            return False
        try:
            fits = self._fold_fits(candidate, 0)
        except RankgroveError as error:
            self.failed[candidate.name] = str(error)
            return True
        if fits is None:
            return False
        crossfit = CrossFit(candidate)
        crossfit.add(fits, self.shared, self._n_threads)
        self.fitted.append(crossfit)
        self._record(crossfit)
        return True

    def _estimate(self, candidate: Candidate) -> float:
        """Return about how many seconds a candidate takes; 0 for the first one."""
        if not self.fitted:
            return 0.0
        kind, is_boosted = candidate.learner.kind, candidate.is_boosted
        alike = [
            fit.seconds / len(fit.repeats)
            for fit in self.fitted
            if fit.candidate.learner.kind == kind or (is_boosted and fit.candidate.is_boosted)
        ]
        if alike:
            return float(np.median(alike))
        return UNKNOWN * min(fit.seconds / len(fit.repeats) for fit in self.fitted)

    def _fit_again(self, crossfit: CrossFit) -> bool:
        estimate = crossfit.seconds / len(crossfit.repeats)
        if not self.budget.allows(self.shared.n_folds, estimate):
            return False
        fits = self._fold_fits(crossfit.candidate, len(crossfit.repeats))
        if fits is None:
            return False
        crossfit.add(fits, self.shared, self._n_threads)
        self._record(crossfit)
        return True

    def _fold_fits(self, candidate: Candidate, repeat: int) -> list[FoldFit] | None:
        """Return the fits of all folds; None: the time was up before they were complete."""
        tasks = [Task(candidate, repeat, fold) for fold in range(self.shared.n_folds)]
        fits: dict[int, FoldFit] = {}
        if self._stored is not None:
            fits = {k: fit for k, task in enumerate(tasks) if (fit := self._stored.read(task))}
        missing = [task for k, task in enumerate(tasks) if k not in fits]
        is_first = not self.fitted
        deadlines = self._deadlines([task.fold for task in missing], is_first)
        self.budget.fits += len(tasks)

        def on_done(i: int, fit: FoldFit) -> None:
            if deadlines is not None and time.monotonic() > deadlines[missing[i].fold]:
                if not is_first:
                    raise _OutOfTime  # it was stopped early, and so would be those after it
            elif self._stored is not None:
                self._stored.write(missing[i], fit)

        try:
            trained = run_tasks(
                fit_fold,
                self.shared._replace(deadlines=deadlines),
                missing,
                cluster=self._cluster,
                n_threads=self.threads_of_fit,
                on_done=on_done,
            )
        except _OutOfTime:
            return None
        fits |= {task.fold: fit for task, fit in zip(missing, trained, strict=True)}
        return [fits[k] for k in range(self.shared.n_folds)]

    def _deadlines(self, folds: list[int], is_first: bool) -> tuple[float, ...] | None:
        """Return the time at which the training of every fold ends; None: there is no limit.

        The first candidate is always taken, however short its training: its folds share the time,
        at least a quarter of the limit.
        """
        end, n_folds = self.budget.deadline, self.shared.n_folds
        if end is None or self.budget.seconds is None or (is_first and self._cluster is not None):
            return None
        if not is_first:
            return (end,) * n_folds
        now = time.monotonic()
        part = max(end - now, FIRST_SHARE * self.budget.seconds) / max(1, len(folds))
        ends = {fold: now + (i + 1) * part for i, fold in enumerate(folds)}
        return tuple(ends.get(fold, end) for fold in range(n_folds))

    # -- values -----------------------------------------------------------------------------------

    def values(self, crossfit: CrossFit) -> np.ndarray:
        """Return the measure of every query by a candidate's out-of-fold scores."""
        from rankgrove.measures.base import rank

        everything = np.ones(self.shared.data.n_queries, np.bool_)
        prepared = self.prepare(everything)
        ranking = rank(crossfit.scores, self.shared.data.query_ptr, self._n_threads)
        return np.asarray(prepared.values(ranking, self._n_threads))

    def value(self, crossfit: CrossFit, queries: np.ndarray | None = None) -> float:
        """Return the mean of the measure of out-of-fold scores, on all or on some queries."""
        values = self.values(crossfit)
        return mean_of(values if queries is None else values[queries])

    def prepare(self, queries: np.ndarray) -> Any:
        """Return the measure on the labels of some queries."""
        key = queries.tobytes()
        if key not in self._prepared:
            sizes = np.diff(self.shared.data.query_ptr)
            ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[queries])])
            labels = self._labels[np.repeat(queries, sizes)]
            self._prepared[key] = self.shared.measure.prepare(labels, ptr, self._n_threads)
        return self._prepared[key]

    def choice(self) -> Choice:
        """Choose among the candidates so far."""
        scores = [fit.scores for fit in self.fitted]
        return self.choose(scores, few_strategies(len(scores)))

    def choose(self, scores: Sequence[np.ndarray], strategies: dict[str, Strategy]) -> Choice:
        """Choose among the candidates by some out-of-fold scores of theirs."""
        ptr = self.shared.data.query_ptr
        scaled = np.array([column / spread_of(column, ptr) for column in scores])
        # Scores may be those of all candidates several times, by number of rounds.
        candidates = [fit.candidate for fit in self.fitted] * (len(scores) // len(self.fitted))

        def columns_of(queries: np.ndarray, members: np.ndarray) -> Columns:
            return Columns(
                scaled[np.ix_(members, np.repeat(queries, np.diff(ptr)))],
                self.prepare(queries),
                [candidates[j].family for j in members],
                [candidates[j].group for j in members],
                self._n_threads,
            )

        blind = [candidate.blind for candidate in candidates]
        return choose(columns_of, self.shared.folds(0), strategies, blind)

    def _record(self, crossfit: CrossFit) -> None:
        value = self.value(crossfit)
        best = max([value, *(step.best for step in self.steps[-1:])])
        name = crossfit.candidate.name
        step = Step(self.budget.elapsed, self.budget.fits, name, value, best)
        self.steps.append(step)
        if self._on_step is not None:
            self._on_step(step)
