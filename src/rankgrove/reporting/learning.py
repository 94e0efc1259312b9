"""Learning curves from a model's training history: a measure on validation data, per round.

Bags and combinations have no history of their own; their curves are those of their members.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from rankgrove.rankers.base import Ranker
from rankgrove.reporting.systems import Model, kind_inside


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """One measure on one data set during training.

    Attributes
    ----------
    model, data, measure : names
    unit : what x counts: ``"trees"``, ``"rounds"``, ``"passes"``, ``"epochs"``, or ``"C"`` if
        every point is a separate training
    x, y : the counts and the values; for a bag the mean over its models, NaN after the end of the
        shortest
    best : the count that was kept, or None
    member : which ranker of a combination this is, or None
    of : for a bag, one row per model, NaN after its end; else None
    kept : for a bag, the count that every model kept, NaN if there is none
    """

    model: str
    data: str
    measure: str
    unit: str
    x: np.ndarray
    y: np.ndarray
    best: float | None
    member: str | None = None
    of: np.ndarray | None = None
    kept: np.ndarray | None = None

    @property
    def name(self) -> str:
        """The name of the line."""
        name = self.model if self.member is None else f"{self.model}: {self.member}"
        return name if self.of is None else f"{name}, mean of {len(self.of)}"

    def is_record_of(self, other: LearningCurve) -> bool:
        """Return whether two curves have the same history, of a model that is shown twice."""
        mine, others = (
            (curve.data, curve.measure, curve.unit, curve.best, curve.of is None)
            for curve in (self, other)
        )
        return mine == others and all(
            np.array_equal(a, b, equal_nan=True) for a, b in ((self.x, other.x), (self.y, other.y))
        )


def learning_curves(name: str, model: Model) -> list[LearningCurve]:
    """Return the curves of a model's training history; none if it has no history."""
    if not isinstance(model, Ranker):
        return _own(name, model)
    model = model.inside()
    if model.is_bag:
        return _of_bag(name, model)
    curves = _own(name, model)
    for member, ranker in _members(model):
        for curve in learning_curves(name, ranker):
            inside = member if curve.member is None else f"{member}: {curve.member}"
            curves.append(replace(curve, member=inside))
    return curves


def _members(model: Ranker) -> list[tuple[str, Model]]:
    """Return the rankers of a combination or a stack, named by class and weight."""
    names = [kind_inside(ranker) for ranker, _ in model.combined()]
    count: Counter[str] = Counter()
    members = []
    for name, (ranker, weight) in zip(names, model.combined(), strict=True):
        count[name] += 1
        text = f"{name} {count[name]}" if names.count(name) > 1 else name
        if weight is not None:
            text += f" × {weight:.3g}".replace("-", "−")
        members.append((text, ranker))
    return members


def _of_bag(name: str, bag: Ranker) -> list[LearningCurve]:
    """Return the curves of a bag's models, grouped by data and measure."""
    groups: dict[tuple[str, str, str], list[LearningCurve]] = {}
    for model in bag.members():
        for curve in _own(name, model):
            groups.setdefault((curve.data, curve.measure, curve.unit), []).append(curve)
    joined = []
    for (data, measure, unit), curves in groups.items():
        longest = max((curve.x for curve in curves), key=len)
        of = np.full((len(curves), longest.size), np.nan)
        for row, curve in zip(of, curves, strict=True):
            row[: curve.y.size] = curve.y
        kept = np.array([np.nan if curve.best is None else curve.best for curve in curves])
        mean = of.mean(axis=0)
        joined.append(
            LearningCurve(name, data, measure, unit, longest, mean, None, of=of, kept=kept)
        )
    return joined


def _own(name: str, model: Model) -> list[LearningCurve]:
    """Return the curves of a model's own history."""
    history = getattr(model, "history_", None) or {}
    unit, best = _unit(model)
    curves = []
    for data, measures in history.items():
        for measure, values in measures.items():
            y = np.array(values, np.float64)
            x = np.arange(1.0, y.size + 1)
            if hasattr(model, "solutions_"):
                x = np.array([solution["C"] for solution in model.solutions_], np.float64)
            start = getattr(model, "start_values_", {}).get(data, {}).get(measure)
            if start is not None:  # the value of the submodel, before the first tree
                x, y = np.append(0.0, x), np.append(start, y)
            if y.size > 1:
                curves.append(LearningCurve(name, data, measure, unit, x, y, best))
    return curves


def _unit(model: Model) -> tuple[str, float | None]:
    """Return the unit of a model's history, and the count that was kept."""
    if hasattr(model, "solutions_") and hasattr(model, "C_"):
        return "C", float(model.C_)
    if hasattr(model, "best_epoch_"):
        return "epochs", model.best_epoch_
    trees = getattr(model, "ensemble_", None)
    kept = getattr(model, "best_round_", None)
    if trees is None:
        return getattr(model, "unit", "rounds"), kept
    return "rounds" if trees.n_columns > 1 else "trees", kept
