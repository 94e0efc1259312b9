"""How several models' scores follow the features that matter most to them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import RankgroveError
from rankgrove.evaluation.evaluate import scores_of
from rankgrove.explaining.dependence import partial_dependence
from rankgrove.model.linear import BY_QUERY
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.ensembles.combination import CombinedRanker
from rankgrove.rankers.ensembles.stacking import StackedRanker
from rankgrove.rankers.linear.model import LinearPredictor
from rankgrove.reporting.importance import Importance, overall
from rankgrove.reporting.reasons import spread_of
from rankgrove.reporting.systems import System, some_queries

N_FEATURES = 6
N_POINTS = 20
N_ROWS = 1000  # every point costs a scoring of them


@dataclass(frozen=True, eq=False)
class Dependence:
    """One feature.

    Attributes
    ----------
    feature : its name
    tenths : the values that cut the documents into tenths
    grid : the values it was set to
    lines : model -> the mean score at every value, less the mean of all scores, in their deviations
    """

    feature: str
    tenths: np.ndarray
    grid: np.ndarray
    lines: dict[str, np.ndarray]


def dependences(
    systems: Sequence[System],
    data: QueryDataset,
    importances: Sequence[Importance | None],
    n_threads: int | None,
) -> list[Dependence]:
    """Return the features of the largest share in all models' importance, and how scores follow."""
    sample = some_queries(data, N_ROWS)
    asked = {one.name: _asked(one, sample, n_threads) for one in systems}
    found = []
    for j in overall(importances, N_FEATURES):
        values = data.column(j + 1)
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        levels = np.quantile(values, np.linspace(0.01, 0.99, N_POINTS), method="inverted_cdf")
        grid = np.unique(levels.astype(np.float32))
        lines = {}
        for name, of in asked.items():
            if of is None:
                continue
            model, mean, spread = of
            try:
                line = partial_dependence(model, sample, j + 1, grid, n_threads=n_threads).mean
            except RankgroveError:
                continue  # it scales by query, or is not one of ours
            lines[name] = (line - mean) / spread
        if lines and grid.size > 1:
            tenths = np.quantile(values, np.linspace(0.1, 0.9, 9))
            tenths = np.unique(tenths.clip(grid[0], grid[-1]))
            found.append(Dependence(data.feature_names[j], tenths, grid, lines))
    return found


def _asked(
    system: System, data: QueryDataset, n_threads: int | None
) -> tuple[Any, float, float] | None:
    """Return a model to ask, the mean of its scores and their deviation; None where there is none.

    Both are of the rows that are asked about: a feature that does nothing lies at 0.
    """
    model = system.model
    if model is None:
        return None
    plain = _plain(model, data, n_threads)
    if isinstance(plain, _InUnits):
        return plain.bag, plain.mean, plain.spread
    if plain is None:
        return None
    scores = scores_of(plain, data, "report")[1]
    finite = scores[np.isfinite(scores)]
    spread = spread_of(finite)
    return (plain, float(finite.mean()), spread) if spread > 0.0 else None


@dataclass(frozen=True, eq=False)
class _InUnits:
    """A bag of plain scores, brought to the mean and the deviation of the bag that it stands for.

    ``mean`` and ``spread`` are its own, `centre` and `reach` the other's.
    """

    bag: BaggedRanker
    mean: float
    spread: float
    centre: float
    reach: float

    takes_datasets: ClassVar[bool] = True

    def predict(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        scores = self.bag.predict(X, n_threads=n_threads)
        return self.centre + self.reach * (scores - self.mean) / self.spread


def _plain(model: Any, data: QueryDataset, n_threads: int | None) -> Any:
    """Return a model that scales nothing by query; None where there is no such model.

    A value that all documents of a query have says nothing once it is scaled within the query.
    Of a bag that brings its models' scores to one scale in this way, the models are asked, each in
    deviations of its own scores: their mean is that of a bag of plain scores whose weights are
    divided by the deviations. Inside a combination it takes the bag's place.
    """
    if isinstance(model, LinearPredictor):
        return None if model.linear_.scaling in BY_QUERY else model
    if isinstance(model, BaggedRanker):
        if any(_plain(one, data, n_threads) is None for one in model.models_):
            return None
        return model if model.combine == "mean" else _plain_bag(model, data, n_threads)
    if isinstance(model, CombinedRanker | StackedRanker):
        inside = [_plain(one, data, n_threads) for one in model.rankers_]
        if any(one is None for one in inside):
            return None
        made = copy.copy(model)
        made.rankers_ = tuple(inside)
        return made
    return model


def _plain_bag(bag: BaggedRanker, data: QueryDataset, n_threads: int | None) -> _InUnits | None:
    spreads = np.array([spread_of(one) for one in bag.submodel_scores(data, n_threads)])
    used = np.flatnonzero(spreads > 0.0)
    if not used.size:
        return None
    plain = copy.copy(bag)
    plain.combine = "mean"
    plain.models_ = [bag.models_[m] for m in used]
    plain.weights_ = bag.weights_[used] / spreads[used]
    mean = float(plain.predict(data, n_threads=n_threads).mean())
    spread = float(bag.weights_[used].sum() / plain.weights_.sum())
    scores = bag.predict(data, n_threads=n_threads)
    return _InUnits(plain, mean, spread, float(scores.mean()), spread_of(scores))
