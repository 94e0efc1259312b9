"""What every experiment shares: its scale, its results so far, and tables of systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.evaluation.evaluate import confidence_interval
from rankgrove.evaluation.significance import paired_t
from rankgrove.experiments.store import ResultStore
from rankgrove.measures.base import exact_mean


@dataclass(frozen=True)
class Study:
    """One run of an experiment.

    Attributes
    ----------
    scale : "small" (minutes at the most) or "full" (the paper's sizes)
    store : results by key, kept as they come
    n_threads : of every fit
    say : told what is being done
    """

    scale: str
    store: ResultStore
    n_threads: int | None = None
    say: Callable[[str], None] = lambda _: None

    def size(self, small: int, full: int) -> int:
        """Return the number of the scale."""
        return full if self.scale == "full" else small

    def cell(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return a result, computed unless it is known."""
        if key not in self.store:
            self.say(key)
        return self.store.cell(key, compute)


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


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper: a name, what it shows, and the function that runs it."""

    name: str
    paper: str
    shows: str
    run: Callable[[Study], Findings]


def mean_cell(values: Sequence[float]) -> str:
    """Return a mean in percent with the half width of its 95 % interval: ``79.6 (0.32)``."""
    array = np.asarray(values, np.float64)
    low, high = confidence_interval(array)
    return f"{100 * exact_mean(array):.2f} ({50 * (high - low):.2f})"


def p_value(one: Sequence[float], other: Sequence[float]) -> str:
    """Return the p-value of the paired t-test of two systems, as text."""
    p = paired_t(np.asarray(one, np.float64) - np.asarray(other, np.float64))
    return "< .0001" if p < 1e-4 else f"{p:.4f}".replace("0.", ".", 1)


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown, its columns lined up."""
    cells = [[str(c) for c in row] for row in [header, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


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
