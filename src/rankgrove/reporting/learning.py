"""What a model's training record says: a measure on validation data, round by round.

A bag and a combination have no record of their own: theirs are the records of what they hold.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankgrove.rankers.bagged import BaggedRanker
from rankgrove.rankers.combination import CombinedRanker
from rankgrove.rankers.prepared import PreparedRanker
from rankgrove.rankers.stacking import StackedRanker


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """One measure on one data set during training.

    Attributes
    ----------
    model, data, measure : names
    unit : what is counted: ``"trees"``, ``"rounds"``, ``"passes"``, ``"epochs"``, or ``"C"``
        where every point is a training of its own
    x, y : the counts and the values; of a bag the mean of its models, NaN from where one of them
        ended
    best : the count that was kept, or None
    member : which ranker of a combination this is, or None
    of : of a bag, one row a model, NaN after its end; else None
    kept : of a bag, the count that every model kept, NaN where it has none
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
        """What the line is called."""
        name = self.model if self.member is None else f"{self.model}: {self.member}"
        return name if self.of is None else f"{name}, mean of {len(self.of)}"

    def is_record_of(self, other: LearningCurve) -> bool:
        """Return whether two curves are the same record, of a model that is shown twice."""
        mine, others = (
            (one.data, one.measure, one.unit, one.best, one.of is None) for one in (self, other)
        )
        return mine == others and all(
            np.array_equal(a, b, equal_nan=True) for a, b in ((self.x, other.x), (self.y, other.y))
        )


def learning_curves(name: str, model: Any) -> list[LearningCurve]:
    """Return the curves of a model's training record; none where it has no record."""
    if isinstance(model, PreparedRanker):
        return learning_curves(name, model.ranker_)
    if isinstance(model, BaggedRanker):
        return _of_bag(name, model)
    found = _own(name, model)
    for member, ranker in _members(model):
        for one in learning_curves(name, ranker):
            inside = member if one.member is None else f"{member}: {one.member}"
            found.append(replace(one, member=inside))
    return found


def _members(model: Any) -> list[tuple[str, Any]]:
    """Return the rankers of a combination, named by their kinds and weights, or of a stack."""
    if not isinstance(model, CombinedRanker | StackedRanker):
        return []
    names = [type(one).__name__ for one in model.rankers_]
    count: Counter[str] = Counter()
    made = []
    for k, (name, ranker) in enumerate(zip(names, model.rankers_, strict=True)):
        count[name] += 1
        text = f"{name} {count[name]}" if names.count(name) > 1 else name
        if isinstance(model, CombinedRanker):
            text += f" × {model.weights_[k]:.3g}".replace("-", "−")
        made.append((text, ranker))
    return made


def _of_bag(name: str, bag: BaggedRanker) -> list[LearningCurve]:
    """Return the curves of a bag's models, put together by data and measure."""
    groups: dict[tuple[str, str, str], list[LearningCurve]] = {}
    for model in bag.models_:
        for one in _own(name, model):
            groups.setdefault((one.data, one.measure, one.unit), []).append(one)
    found = []
    for (data, measure, unit), curves in groups.items():
        longest = max((one.x for one in curves), key=len)
        of = np.full((len(curves), longest.size), np.nan)
        for row, one in zip(of, curves, strict=True):
            row[: one.y.size] = one.y
        kept = np.array([np.nan if one.best is None else one.best for one in curves])
        mean = of.mean(axis=0)
        found.append(
            LearningCurve(name, data, measure, unit, longest, mean, None, of=of, kept=kept)
        )
    return found


def _own(name: str, model: Any) -> list[LearningCurve]:
    """Return what is on a model's own record."""
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
    kept = getattr(model, "best_round_", None)
    if trees is None:
        return getattr(model, "unit", "rounds"), kept
    return "rounds" if trees.n_columns > 1 else "trees", kept
