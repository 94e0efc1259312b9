"""Values by query, and how tables show them: means, intervals, p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankgrove import Evaluation
from rankgrove.evaluation.evaluate import confidence_interval
from rankgrove.evaluation.significance import paired_t
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import p_text


def mean_cell(values: Sequence[float]) -> str:
    """Return a mean in percent with the half width of its 95 % interval: ``79.6 (0.32)``."""
    array = np.asarray(values, np.float64)
    low, high = confidence_interval(array)
    return f"{100 * exact_mean(array):.2f} ({50 * (high - low):.2f})"


def mean_and_reach(folds: Sequence[Sequence[float]]) -> str:
    """Return a mean over folds, as in LETOR's tables, and the half width of its interval.

    The 95 % interval is that of the mean over all queries: ``0.4768 (0.0283)``.
    """
    mean = exact_mean(np.array([exact_mean(np.asarray(fold, np.float64)) for fold in folds]))
    low, high = confidence_interval(np.concatenate([np.asarray(f, np.float64) for f in folds]))
    return f"{mean:.4f} ({(high - low) / 2:.4f})"


def p_value(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the p-value of the paired t-test of two systems, as text."""
    return p_text(paired_t(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)))


def variant_of(ranker: Any) -> str:
    """Return the parameters of boosted trees that set their lambdas, splits and leaves."""
    shown = ("measure", "truncation", "beyond_cutoff", "normalise", "split", "l2")
    parameters = ranker.get_params(deep=False)
    return ", ".join(f"{name} {parameters[name]}" for name in shown if name in parameters)


def per_query(evaluation: Evaluation) -> dict[str, list[float]]:
    """Return the values of an evaluation as plain lists, without the queries it leaves out."""
    return {
        name: values[~np.isnan(values)].tolist() for name, values in evaluation.per_query.items()
    }


def pooled(parts: Sequence[Mapping[str, list[float]]]) -> dict[str, list[float]]:
    """Return the values by query of several parts (folds, seeds) as one list per measure."""
    return {name: [v for part in parts for v in part[name]] for name in parts[0]}


def first_round_at(curve: Sequence[float], level: float) -> int | None:
    """Return the first round (from 1) whose value reaches a level, or None."""
    reached = np.flatnonzero(np.asarray(curve) >= level)
    return int(reached[0]) + 1 if reached.size else None
