"""Partial dependence of several models on the features that are most important to them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import RankgroveError
from rankgrove.evaluation.evaluate import scores_of
from rankgrove.explaining.partial_dependence import partial_dependence
from rankgrove.rankers.base import Ranker
from rankgrove.reporting.importance import Importance, overall
from rankgrove.reporting.reasons import spread_of
from rankgrove.reporting.systems import Model, System, some_queries

N_FEATURES = 6
N_POINTS = 20
N_ROWS = 1000  # all of them are scored for every point


@dataclass(frozen=True, eq=False)
class Dependence:
    """The partial dependence of several models on one feature.

    Attributes
    ----------
    feature : the feature's name
    tenths : the deciles of its values; none for a categorical feature
    grid : the values that it was set to; for a categorical feature, the places of `names`
    names : of a categorical feature, the most frequent categories, else None
    lines : model -> standardised mean score at every value of the grid: minus the mean of the
        model's scores, divided by their standard deviation
    """

    feature: str
    tenths: np.ndarray
    grid: np.ndarray
    lines: dict[str, np.ndarray]
    names: tuple[str, ...] | None = None


def dependences(
    systems: Sequence[System],
    data: QueryDataset,
    importances: Sequence[Importance | None],
    n_threads: int | None,
) -> list[Dependence]:
    """Return the partial dependence on the features most important to all models together."""
    sample = some_queries(data, N_ROWS)
    usable = {system.name: _usable_model(system, sample, n_threads) for system in systems}
    shown = []
    for j in overall(importances, N_FEATURES):
        values = data.column(j + 1)
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        models = [model[0] for model in usable.values() if model is not None]
        names = _categories(data, j, values, models)
        if names is None:
            levels = np.quantile(values, np.linspace(0.01, 0.99, N_POINTS), method="inverted_cdf")
            grid: Any = np.unique(levels.astype(np.float32))
        else:
            grid = names
        lines = {}
        for name, standardised in usable.items():
            if standardised is None:
                continue
            model, mean, spread = standardised
            try:
                found = partial_dependence(model, sample, j + 1, grid, n_threads=n_threads)
            except RankgroveError:
                continue  # it scales by query, or is not a rankgrove ranker
            line = found.mean
            if names is not None:  # models may have the categories in another order
                at = {text: k for k, text in enumerate(found.texts(0))}
                line = line[[at[str(one)] for one in names]]
            lines[name] = (line - mean) / spread
        if lines and len(grid) > 1:
            feature = data.feature_names[j]
            if names is not None:
                texts = tuple(str(one) for one in names)
                places = np.arange(len(texts), dtype=np.float64)
                shown.append(Dependence(feature, np.empty(0), places, lines, texts))
                continue
            tenths = np.quantile(values, np.linspace(0.1, 0.9, 9))
            tenths = np.unique(tenths.clip(grid[0], grid[-1]))
            shown.append(Dependence(feature, tenths, grid, lines))
    return shown


def _categories(
    data: QueryDataset, column: int, values: np.ndarray, models: Sequence[Model]
) -> list[str | int] | None:
    """Return the names of a feature's most frequent categories, or their codes; None: numbers.

    Of names, those that all models know: the others are missing values to them.
    """
    if column not in data.categories:
        return None
    codes, counts = np.unique(values.astype(np.int64), return_counts=True)
    texts = data.categories[column]
    for model in models:
        known = getattr(model, "categories_", {}).get(column)
        if texts is not None and known is not None:
            kept = np.array([texts[code] in set(known) for code in codes.tolist()], np.bool_)
            codes, counts = codes[kept], counts[kept]
    codes = np.sort(codes[np.argsort(-counts, kind="stable")[:N_POINTS]])
    names = data.categories[column]
    return codes.tolist() if names is None else [names[code] for code in codes.tolist()]


def _usable_model(
    system: System, data: QueryDataset, n_threads: int | None
) -> tuple[Model, float, float] | None:
    """Return a model without scaling by query, and the mean and deviation of its scores, or None.

    Both are taken over `data`, so that a feature without effect has a line at 0.
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
    """A bag of plain scores, rescaled to the mean and deviation of the bag that it replaces.

    ``mean`` and ``spread`` are those of the plain scores, ``centre`` and ``reach`` those of the
    replaced bag.
    """

    bag: Ranker
    mean: float
    spread: float
    centre: float
    reach: float

    takes_datasets: ClassVar[bool] = True

    def predict(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        scores = self.bag.predict(X, n_threads=n_threads)
        return self.centre + self.reach * (scores - self.mean) / self.spread


def _plain(model: Model, data: QueryDataset, n_threads: int | None) -> Model | None:
    """Return the model in a form that scales nothing by query; None if it has no such form.

    Partial dependence gives all documents of a query the same value, which scaling within the
    query would remove. A bag that scales its models' scores by query is therefore replaced, also
    inside a combination, by a bag of plain scores: its weights are divided by the deviations of
    the models' scores.
    """
    if not isinstance(model, Ranker):
        return model
    members = [_plain(member, data, n_threads) for member in model.members()]
    if any(member is None for member in members):
        return None
    if model.scaled_by_query() is not None:
        return _plain_bag(model, data, n_threads) if model.is_bag else None
    if not model.combined():
        return model
    combination = copy.copy(model)
    combination.rankers_ = tuple(members)
    return combination


def _plain_bag(bag: Ranker, data: QueryDataset, n_threads: int | None) -> _InUnits | None:
    spreads = np.array([spread_of(scores) for scores in bag.submodel_scores(data, n_threads)])
    used = np.flatnonzero(spreads > 0.0)
    if not used.size:
        return None
    models, weights = bag.averaged()
    plain = bag.with_models([models[m] for m in used], weights[used] / spreads[used], "mean")
    mean = float(plain.predict(data, n_threads=n_threads).mean())
    spread = float(weights[used].sum() / plain.weights_.sum())
    scores = bag.predict(data, n_threads=n_threads)
    return _InUnits(plain, mean, spread, float(scores.mean()), spread_of(scores))
