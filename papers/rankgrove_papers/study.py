"""A run of an experiment: its scale, its data, and its results, each stored when it is computed."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import numpy as np

from rankgrove.cli.reproduce import run_on_worker
from rankgrove.cluster.engine import run_tasks
from rankgrove.tuning.result_store import ResultStore
from rankgrove.tuning.survey_rankers import size_at
from rankgrove_papers.sources import Collection, Sources

Task = tuple[Any, ...]  # a function of a module, and its arguments after the study


@dataclass(frozen=True)
class Study:
    """One run of an experiment.

    Attributes
    ----------
    scale : "small" (at most minutes) or "full" (the sizes of the paper)
    store : results by key
    n_threads : threads of every fit
    say : called with a line about the current task
    data : where judged data is
    cluster : where cells are computed, as in ``run_tasks``
    """

    scale: str
    store: ResultStore
    n_threads: int | None = None
    say: Callable[[str], None] = lambda _: None
    data: Sources = field(default_factory=Sources)
    cluster: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for a worker, which computes a cell and stores no results."""
        empty_store = ResultStore(None, {})
        return type(self), (self.scale, empty_store, self.n_threads, _be_quiet, self.data)

    def size(self, small: int, full: int) -> int:
        """Return the number that belongs to the scale."""
        return size_at(self.scale)(small, full)

    def cell(self, key: str, work: Callable[..., Any], *args: Any) -> Any:
        """Return the result ``work(study, *args)``; it is computed if it is not in the store."""
        return self.cells({key: (work, *args)})[key]

    def cells(self, tasks: Mapping[str, Task]) -> dict[str, Any]:
        """Return the result of every task by key; only those not in the store are computed.

        On a cluster they are computed in parallel, with the same results.
        """
        missing = [key for key in tasks if key not in self.store]

        def keep(i: int, value: Any) -> None:
            self.store.put(missing[i], value)
            if self.cluster is not None:
                self.say(f"{missing[i]}: done")

        if self.cluster is None:
            for i, key in enumerate(missing):
                self.say(key)
                with interrupts() as was_interrupted:
                    value = work_on(self, tasks[key], self.n_threads)
                if was_interrupted():  # a model whose fit Ctrl-C ended early is not a result
                    raise KeyboardInterrupt
                keep(i, value)
        elif missing:
            self.say(f"{len(missing)} tasks sent to the workers")
            run_tasks(
                run_on_worker,
                pickle.dumps(self),
                [pickle.dumps(tasks[key]) for key in missing],
                cluster=self.cluster,
                n_threads=self.n_threads,
                on_done=keep,
            )
        return {key: self.store[key] for key in tasks}

    def on_folds(
        self,
        collection: Collection,
        numbers: Sequence[int],
        names: Iterable[str],
        work: Callable[..., Any],
    ) -> dict[str, list[Any]]:
        """Return the results of every system by fold: ``work(study, name, collection, k)``."""
        keys = {name: [f"{collection.name}, fold {k}, {name}" for k in numbers] for name in names}
        # fold by fold, because a process keeps only the folds that it read last
        cells = self.cells(
            {
                keys[name][i]: (work, name, collection, k)
                for i, k in enumerate(numbers)
                for name in keys
            }
        )
        return {name: [cells[key] for key in of_name] for name, of_name in keys.items()}


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed, even if it was caught."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread gets signals
        return
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def notice(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def work_on(study: Study, task: Task, n_threads: int | None) -> Any:
    """Return the result of one task."""
    work, *args = task
    return work(replace(study, n_threads=n_threads), *args)


def _be_quiet(_: str) -> None: ...


@dataclass(frozen=True)
class Curves:
    """Lines to plot; each has a name, x and y."""

    lines: dict[str, tuple[np.ndarray, np.ndarray]]
    x_label: str
    y_label: str
    title: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Findings:
    """The results of an experiment: its tables as Markdown, and figures by name."""

    text: str
    figures: dict[str, Curves]


# Data that many experiments run on.
ARTIFICIAL = "artificial, by the paper's recipe (rg.make_artificial)"
COLLECTIONS = "LETOR's MQ2008 and OHSUMED, folds as published"

# The lambdas for NDCG@10 that were the defaults of LambdaMART when the tables of these experiments
# were made. They stay, so that a command still prints the published table.
NARROW: dict[str, Any] = {"truncation": 15, "l2": 0.1}
NARROW_TEXT = (
    "Where lambdas are not the paper's: NDCG@10, normalised, truncation 15, rank weights that "
    "continue below the cutoff; trees with Newton splits and l2 0.1."
)


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Attributes
    ----------
    name, paper, shows : its name, its paper, and what it shows
    run : the function that runs it
    data : the data it runs on, unless the user gives other data
    measured : the convention of its measures; empty if nothing is measured
    takes : the form of user data that it can run on: "letor", "trec", or empty
    """

    name: str
    paper: str
    shows: str
    run: Callable[[Study], Findings]
    data: str
    measured: str = "papers"
    takes: str = ""

    def about(self, user_data: str | None) -> str:
        """Return a line on data and measures; `user_data` is the name of the user's data."""
        line = f"Data: {user_data or self.data}."
        return f"{line} Measures: convention {self.measured}." if self.measured else line
