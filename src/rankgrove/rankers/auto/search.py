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
    spread_of,
)

TUNED_UNTIL = 0.6  # share of the limit after which no more variations are tried
REPEATED = 6  # of the best candidates, this many are fitted on more divisions
VARIED = 6  # of the best boosted candidates, this many are varied
UNKNOWN = 3.0  # a candidate of a new kind may take this many times as long as the quickest one


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
        self._threads_of_fit = 1 if small else n_threads
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
            self._time_choice()
            self._vary()
            self._repeat()
        except KeyboardInterrupt:
            self.interrupted = True
            if not self.fitted:
                raise

    def _vary(self) -> None:
        draw = generator(self.shared.seed, "auto")
        while self.budget.used < TUNED_UNTIL:
            boosted = [fit.candidate for fit in self._ranked() if fit.candidate.is_boosted]
            child = variation(boosted[:VARIED], self._known, draw) if boosted else None
            if child is None or not self._fit(child):
                return

    def _repeat(self) -> None:
        """Fit the best candidates on more divisions into folds, one after the other."""
        best = self._ranked()[:REPEATED]
        while not self.budget.is_over:
            fewest = min(best, key=lambda fit: len(fit.repeats))  # the best one of those
            if not self._fit_again(fewest):
                return

    # -- fits -------------------------------------------------------------------------------------

    def _fit(self, candidate: Candidate) -> bool:
        """Cross-fit a candidate; return whether there was room for it within the limit."""
        self._known.add(candidate.key)
        if not self.budget.allows(self.shared.n_folds, self._estimate(candidate)):
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
        kind, is_boosted = candidate.ranker.kind, candidate.is_boosted
        alike = [
            fit.seconds / len(fit.repeats)
            for fit in self.fitted
            if fit.candidate.ranker.kind == kind or (is_boosted and fit.candidate.is_boosted)
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
        shared = self.shared._replace(deadline=None if is_first else self.budget.deadline)

        def on_done(i: int, fit: FoldFit) -> None:
            in_time = shared.deadline is None or time.monotonic() <= shared.deadline
            if self._stored is not None and in_time:
                self._stored.write(missing[i], fit)

        trained = run_tasks(
            fit_fold,
            shared,
            missing,
            cluster=self._cluster,
            n_threads=self._threads_of_fit,
            on_done=on_done,
        )
        self.budget.fits += len(tasks)
        if shared.deadline is not None and missing and time.monotonic() > shared.deadline:
            return None  # the last ones were stopped early
        fits |= {task.fold: fit for task, fit in zip(missing, trained, strict=True)}
        return [fits[k] for k in range(self.shared.n_folds)]

    # -- values -----------------------------------------------------------------------------------

    def values(self, crossfit: CrossFit) -> np.ndarray:
        """Return the measure of every query by a candidate's out-of-fold scores."""
        from rankgrove.measures.base import rank

        everything = np.ones(self.shared.data.n_queries, np.bool_)
        prepared = self.prepare(everything)
        ranking = rank(crossfit.scores, self.shared.data.query_ptr, self._n_threads)
        return np.asarray(prepared.values(ranking, self._n_threads))

    def value(self, crossfit: CrossFit) -> float:
        """Return the mean of the measure of a candidate's out-of-fold scores."""
        return float(np.nanmean(self.values(crossfit)))

    def _ranked(self) -> list[CrossFit]:
        return sorted(self.fitted, key=lambda fit: -self.value(fit))

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
        candidates = [fit.candidate for fit in self.fitted]

        def columns_of(queries: np.ndarray) -> Columns:
            return Columns(
                scaled[:, np.repeat(queries, np.diff(ptr))],
                self.prepare(queries),
                [candidate.family for candidate in candidates],
                [candidate.group for candidate in candidates],
                self._n_threads,
            )

        return choose(columns_of, self.shared.folds(0), strategies)

    def _time_choice(self) -> None:
        """Keep time for the last choice, which has more candidates than this one."""
        began = time.monotonic()
        self.choice()
        self.budget.reserve(2.0 * (time.monotonic() - began))

    def _record(self, crossfit: CrossFit) -> None:
        value = self.value(crossfit)
        best = max([value, *(step.best for step in self.steps[-1:])])
        name = crossfit.candidate.name
        step = Step(self.budget.elapsed, self.budget.fits, name, value, best)
        self.steps.append(step)
        if self._on_step is not None:
            self._on_step(step)
