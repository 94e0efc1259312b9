"""What a model's training record says: a measure on validation data, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """One measure on one data set during training.

    Attributes
    ----------
    model, data, measure : names
    unit : what is counted: ``"trees"``, ``"rounds"`` (of several trees), ``"epochs"``, or ``"C"``
        where every point is a training of its own
    x, y : the counts and the values
    best : the count that was kept, or None
    """

    model: str
    data: str
    measure: str
    unit: str
    x: np.ndarray
    y: np.ndarray
    best: float | None


def learning_curves(name: str, model: Any) -> list[LearningCurve]:
    """Return the curves of a model's training record; none where it has no record."""
    history = getattr(model, "history_", None) or {}
    unit, best = _unit(model)
    found = []
    for data, measures in history.items():
        for measure, values in measures.items():
            y = np.array(values, np.float64)
            x = np.arange(1.0, y.size + 1)
            if unit == "C":
                x = np.array([one["C"] for one in model.solutions_], np.float64)
            start = getattr(model, "start_values_", {}).get(data, {}).get(measure)
            if start is not None:  # what it went on from, before the first tree
                x, y = np.append(0.0, x), np.append(start, y)
            if y.size > 1:
                found.append(LearningCurve(name, data, measure, unit, x, y, best))
    return found


def _unit(model: Any) -> tuple[str, float | None]:
    """Return what a model's record counts, and the count that was kept."""
    if hasattr(model, "solutions_"):
        return "C", float(model.C_)
    if hasattr(model, "best_epoch_"):
        return "epochs", model.best_epoch_
    trees = getattr(model, "ensemble_", None)
    several = trees is not None and trees.n_columns > 1
    return "rounds" if several else "trees", getattr(model, "best_round_", None)
