"""Trees against quality against scoring time."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate, scores_of
from rankgrove.measures.base import Measure
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.reporting.systems import some_queries

N_SIZES = 12
TIMED_ROWS = 20_000  # are scored, at the most
TIMED_SECONDS = 0.1  # spent on a measurement, at the least two scorings


@dataclass(frozen=True, eq=False)
class SizeCurve:
    """A model's first trees alone, or a bag's first models, at several sizes.

    Attributes
    ----------
    model : its name
    unit : ``"trees"``, or ``"rounds"`` of several trees
    sizes : how many of them
    values : data set -> the mean of the measure at every size
    micros : microseconds to score a document, at every size
    """

    model: str
    unit: str
    sizes: np.ndarray
    values: dict[str, np.ndarray]
    micros: np.ndarray


def size_curve(
    name: str,
    model: Any,
    datasets: Mapping[str, QueryDataset],
    measure: str | Measure,
    convention: str = "papers",
    n_threads: int | None = None,
) -> SizeCurve | None:
    """Measure a model cut to several sizes; None where it is not made of trees, or of one alone."""
    found = _cuts(model)
    if found is None:
        return None
    unit, cuts = found
    first = next(iter(datasets.values()))
    values: dict[str, list[float]] = {data: [] for data in datasets}
    micros = []
    for cut in cuts.values():
        for data_name, data in datasets.items():
            measured = evaluate(cut, data, measure, convention, n_threads=n_threads)
            values[data_name].extend(measured.mean.values())
        micros.append(scoring_time(cut, first))
    arrays = {data_name: np.array(one) for data_name, one in values.items()}
    return SizeCurve(name, unit, np.array(list(cuts)), arrays, np.array(micros))


def _cuts(model: Any) -> tuple[str, dict[int, Any]] | None:
    """Return what is counted, and the cut models by size."""
    trees = getattr(model, "ensemble_", None)
    if isinstance(model, BaggedRanker):
        of: list[Any] = [one.ensemble_ for one in model.models_ if hasattr(one, "ensemble_")]
        if len(of) < max(2, len(model.models_)) or any(one.n_columns > 1 for one in of):
            return None
        sums = np.cumsum([one.n_trees for one in of])
        cuts = {int(sums[k - 1]): _first_models(model, k) for k in _sizes(len(of)) if sums[k - 1]}
        return ("trees", cuts) if len(cuts) > 1 else None
    if trees is None or not hasattr(model, "truncated") or trees.n_rounds < 2:
        return None
    unit = "trees" if trees.n_columns == 1 else "rounds"
    return unit, {size: model.truncated(size) for size in _sizes(trees.n_rounds)}


def _sizes(n: int) -> list[int]:
    return np.unique(np.geomspace(1, n, N_SIZES).round().astype(np.int64)).tolist()


def _first_models(bag: BaggedRanker, n: int) -> BaggedRanker:
    made = copy.copy(bag)
    made.models_, made.weights_ = bag.models_[:n], bag.weights_[:n]
    return made


def scoring_time(model: Any, data: QueryDataset) -> float:
    """Return the microseconds that a model takes to score a document: the best of several tries."""
    sample = some_queries(data, TIMED_ROWS)
    best, spent, tries = np.inf, 0.0, 0
    while tries < 2 or (spent < TIMED_SECONDS and tries < 20):
        start = time.perf_counter()
        scores_of(model, sample, "scoring_time")
        took = time.perf_counter() - start
        best, spent, tries = min(best, took), spent + took, tries + 1
    return 1e6 * best / sample.n_rows
