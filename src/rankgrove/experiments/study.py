"""What every experiment shares: its scale, its results so far, tables of systems and grids."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankgrove.cluster.engine import run_tasks
from rankgrove.evaluation.evaluate import confidence_interval
from rankgrove.evaluation.significance import paired_t
from rankgrove.experiments.sources import Collection, Sources
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.result_store import ResultStore
from rankgrove.tuning.tables import markdown as markdown
from rankgrove.tuning.tables import p_text as p_text

Task = tuple[Any, ...]  # a function of a module, and its arguments after the study


@dataclass(frozen=True)
class Study:
    """One run of an experiment.

    Attributes
    ----------
    scale : "small" (minutes at the most) or "full" (the paper's sizes)
    store : results by key, kept as they come
    n_threads : of every fit
    say : told what is being done
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
        """Travel to a worker, which computes one cell and keeps nothing."""
        nothing = ResultStore(None, {})
        return type(self), (self.scale, nothing, self.n_threads, _be_quiet, self.data)

    def size(self, small: int, full: int) -> int:
        """Return the number of the scale."""
        return full if self.scale == "full" else small

    def cell(self, key: str, work: Callable[..., Any], *args: Any) -> Any:
        """Return a result, ``work(study, *args)``, computed unless it is known."""
        return self.cells({key: (work, *args)})[key]

    def cells(self, tasks: Mapping[str, Task]) -> dict[str, Any]:
        """Return results by key: every task's ``work(study, *args)``, unless it is known.

        On a cluster they are computed side by side; the results are the same.
        """
        missing = [key for key in tasks if key not in self.store]

        def keep(i: int, value: Any) -> None:
            self.store.put(missing[i], value)
            if self.cluster is not None:
                self.say(f"{missing[i]}: done")

        if self.cluster is None:
            for i, key in enumerate(missing):
                self.say(key)
                with interrupts() as came:
                    value = _work(self, tasks[key], self.n_threads)
                if came():  # a fit that Ctrl-C ended early is a model, but no result
                    raise KeyboardInterrupt
                keep(i, value)
        elif missing:
            self.say(f"{len(missing)} pieces of work to the workers")
            run_tasks(
                _work,
                self,
                [tasks[key] for key in missing],
                cluster=self.cluster,
                n_threads=self.n_threads,
                on_done=keep,
            )
        return {key: self.store[key] for key in tasks}

    def on_folds(
        self, collection: Collection, numbers: Sequence[int], names: Iterable[str], work: Any
    ) -> dict[str, list[Any]]:
        """Return every system's results, fold by fold: ``work(study, name, collection, k)``."""
        keys = {name: [f"{collection.name}, fold {k}, {name}" for k in numbers] for name in names}
        # fold by fold, since a process keeps the folds that it read last
        cells = self.cells(
            {
                keys[name][i]: (work, name, collection, k)
                for i, k in enumerate(numbers)
                for name in keys
            }
        )
        return {name: [cells[key] for key in own] for name, own in keys.items()}


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Yield what tells whether Ctrl-C was pressed meanwhile, whoever caught it."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # signals are the main thread's
        return
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def notice(number: int, frame: Any) -> None:
        pressed.append(number)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _work(study: Study, task: Task, n_threads: int | None) -> Any:
    work, *args = task
    return work(replace(study, n_threads=n_threads), *args)


def _be_quiet(_: str) -> None: ...


@dataclass(frozen=True)
class Curves:
    """Some lines to plot, each a name with its x and y."""

    lines: dict[str, tuple[np.ndarray, np.ndarray]]
    x_label: str
    y_label: str
    title: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Findings:
    """What an experiment found: its tables as Markdown, and figures by name."""

    text: str
    figures: dict[str, Curves]


# What many experiments run on.
ARTIFICIAL = "artificial, by the paper's recipe (rg.make_artificial)"
COLLECTIONS = "LETOR's MQ2008 and OHSUMED, folds as published"

# The lambdas for NDCG@10 that were LambdaMART's defaults when the tables of these experiments were
# made; they keep them, so that the tables stay those of their commands.
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
    name, paper, shows : what it is called, whose it is, and what one sees
    run : the function that runs it
    data : what it runs on, where the user gives nothing else
    measured : by which convention; empty where nothing is measured
    takes : what data of the user's own it can run on: "letor", "trec", or nothing
    """

    name: str
    paper: str
    shows: str
    run: Callable[[Study], Findings]
    data: str
    measured: str = "papers"
    takes: str = ""

    def about(self, own: str | None) -> str:
        """Return a line on data and measures; `own` names data of the user's."""
        line = f"Data: {own or self.data}."
        return f"{line} Measures: convention {self.measured}." if self.measured else line


def mean_cell(values: Sequence[float]) -> str:
    """Return a mean in percent with the half width of its 95 % interval: ``79.6 (0.32)``."""
    array = np.asarray(values, np.float64)
    low, high = confidence_interval(array)
    return f"{100 * exact_mean(array):.2f} ({50 * (high - low):.2f})"


def mean_and_reach(folds: Sequence[Sequence[float]]) -> str:
    """Return a mean over folds, as LETOR's tables have it, and the half width of its interval.

    The 95 % interval is that of the mean over all queries: ``0.4768 (0.0283)``.
    """
    mean = exact_mean(np.array([exact_mean(np.asarray(fold, np.float64)) for fold in folds]))
    low, high = confidence_interval(np.concatenate([np.asarray(f, np.float64) for f in folds]))
    return f"{mean:.4f} ({(high - low) / 2:.4f})"


def p_value(one: Sequence[float], other: Sequence[float]) -> str:
    """Return the p-value of the paired t-test of two systems, as text."""
    return p_text(paired_t(np.asarray(one, np.float64) - np.asarray(other, np.float64)))


def variant_of(ranker: Any) -> str:
    """Return which lambdas, splits and leaves a ranker of boosted trees has, by its parameters."""
    shown = ("measure", "truncation", "beyond_cutoff", "normalise", "split", "l2")
    parameters = ranker.get_params(deep=False)
    return ", ".join(f"{name} {parameters[name]}" for name in shown if name in parameters)


def per_query(evaluation: Any) -> dict[str, list[float]]:
    """Return an evaluation's values as plain lists, queries that are left out left out."""
    return {
        name: values[~np.isnan(values)].tolist() for name, values in evaluation.per_query.items()
    }


def pooled(parts: Sequence[Mapping[str, list[float]]]) -> dict[str, list[float]]:
    """Return the per-query values of several seeds as one long list a measure."""
    return {name: [v for part in parts for v in part[name]] for name in parts[0]}


def first_round_at(curve: Sequence[float], level: float) -> int | None:
    """Return the first round (from 1) whose value reaches a level, or None."""
    reached = np.flatnonzero(np.asarray(curve) >= level)
    return int(reached[0]) + 1 if reached.size else None


# -- how often the edge of a grid was chosen ------------------------------------------------------

OFTEN = 0.1  # an edge that is chosen in a larger share of the choices is warned of
FLAT = 1e-4  # values of the validation data that differ by no more are the same


@dataclass(frozen=True)
class Choices:
    """The values that were chosen from a grid, one per fold or trial.

    Attributes
    ----------
    values : what was chosen
    grid : what there was to choose from
    limits : values beyond which there are none, such as a share of 1: they are not an edge
    curves : of every choice the validation figures of the whole grid, in ascending order, where
        they are known. An edge is then not counted where the next value does as well: C so small
        that the ranking no longer depends on it has nothing beyond it
    """

    values: Sequence[float]
    grid: Sequence[float]
    limits: Sequence[float] = ()
    curves: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        odd = sorted(set(self.values) - set(self.grid))
        if odd or not self.values:
            shown = odd or "no values"
            raise ValueError(f"chosen values must be of the grid {list(self.grid)}, not {shown}")

    def share_at(self, edge: Callable[[Sequence[float]], float]) -> float:
        """Return the share of the choices at one edge of the grid: ``min`` or ``max``."""
        value = edge(self.grid)
        if len(set(self.grid)) == 1 or value in self.limits:
            return 0.0
        at_edge = [i for i, chosen in enumerate(self.values) if chosen == value]
        return sum(not self._is_flat(i) for i in at_edge) / len(self.values)

    def _is_flat(self, i: int) -> bool:
        """Whether the value next to the edge that choice `i` took does as well."""
        if self.curves is None:
            return False
        curve = list(self.curves[i])
        edge, next_to_it = curve[:2] if self.values[i] == min(self.grid) else curve[:-3:-1]
        return abs(edge - next_to_it) <= FLAT

    @property
    def at_edges(self) -> float:
        """The share of the choices at either edge."""
        return self.share_at(min) + self.share_at(max)

    @property
    def most_often(self) -> float:
        """The value that was chosen most often, the lowest of equals."""
        return max(sorted(set(self.grid)), key=list(self.values).count)


def edge_report(chosen: Mapping[str, Choices]) -> str:
    """Return a table of how often the edges of grids were chosen, and a warning in bold.

    The warning names what was chosen at an edge in more than 10 % of the choices.

    Parameters
    ----------
    chosen : what was chosen, by name: ``"SVM-map, C"``
    """
    rows = []
    for name, of_name in chosen.items():
        low, high = min(of_name.grid), max(of_name.grid)
        reach = f"{low:g} to {high:g}, {len(of_name.grid)} values"
        shares = [
            "no edge" if edge in of_name.limits else f"{of_name.share_at(which):.0%}"
            for edge, which in ((low, min), (high, max))
        ]
        rows.append([name, reach, f"{of_name.most_often:g}", *shares, len(of_name.values)])
    header = ["", "grid", "most often", "lowest chosen", "highest chosen", "choices"]
    text = f"How often the edge of a grid was chosen:\n\n{markdown(header, rows)}"
    if any(of_name.limits for of_name in chosen.values()):
        text += "\n\nNo edge: there are no values beyond it."
    if any(of_name.curves is not None for of_name in chosen.values()):
        text += (
            "\n\nNot counted: an edge whose neighbour in the grid does as well on the validation "
            f"data, to {FLAT:g}, so that nothing changes beyond it."
        )
    often = [
        f"{name} ({of_name.at_edges:.0%})"
        for name, of_name in chosen.items()
        if of_name.at_edges > OFTEN
    ]
    if often:
        text += (
            f"\n\n**At an edge in more than {OFTEN:.0%} of the choices: {', '.join(often)}. "
            "Values beyond the edge may be better.**"
        )
    return text
