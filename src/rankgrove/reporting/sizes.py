"""Quality and scoring time of models cut to fewer trees."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate, scores_of
from rankgrove.measures.base import Measure
from rankgrove.rankers.base import Ranker
from rankgrove.reporting.systems import Model, some_queries

N_SIZES = 12
TIMED_ROWS = 20_000  # maximum number of rows to score
TIMED_SECONDS = 0.1  # spent on a measurement, with at least two runs


@dataclass(frozen=True, eq=False)
class SizeCurve:
    """A model cut to its first trees, or a bag to its first models, at several sizes.

    Attributes
    ----------
    model : the model's name
    unit : ``"trees"``, or ``"rounds"`` of several trees
    sizes : numbers of trees or rounds
    values : data set -> the mean of the measure at every size
    micros : microseconds per document, at every size
    """

    model: str
    unit: str
    sizes: np.ndarray
    values: dict[str, np.ndarray]
    micros: np.ndarray


def size_curve(
    name: str,
    model: Model,
    datasets: Mapping[str, QueryDataset],
    measure: str | Measure,
    convention: str = "papers",
    n_threads: int | None = None,
) -> SizeCurve | None:
    """Evaluate a model cut to several sizes; None if it does not consist of several trees."""
    unit_and_cuts = _cuts(model)
    if unit_and_cuts is None:
        return None
    unit, cuts = unit_and_cuts
    first = next(iter(datasets.values()))
    values: dict[str, list[float]] = {data: [] for data in datasets}
    micros = []
    for cut in cuts.values():
        for data_name, data in datasets.items():
            measured = evaluate(cut, data, measure, convention, n_threads=n_threads)
            values[data_name].extend(measured.mean.values())
        micros.append(scoring_time(cut, first))
    arrays = {data_name: np.array(means) for data_name, means in values.items()}
    return SizeCurve(name, unit, np.array(list(cuts)), arrays, np.array(micros))


def _cuts(model: Model) -> tuple[str, dict[int, Model]] | None:
    """Return the unit of size, and the cut models by size."""
    if isinstance(model, Ranker) and model.is_bag:
        models, weights = model.averaged()
        n = len(models)
        ensembles = [member.ensemble_ for member in models if hasattr(member, "ensemble_")]
        if len(ensembles) < max(2, n) or any(trees.n_columns > 1 for trees in ensembles):
            return None
        sums = np.cumsum([trees.n_trees for trees in ensembles])
        cuts: dict[int, Model] = {
            int(sums[k - 1]): model.with_models(models[:k], weights[:k])
            for k in _sizes(n)
            if sums[k - 1]
        }
        return ("trees", cuts) if len(cuts) > 1 else None
    trees = getattr(model, "ensemble_", None)
    if trees is None or not hasattr(model, "truncated") or trees.n_rounds < 2:
        return None
    unit = "trees" if trees.n_columns == 1 else "rounds"
    return unit, {size: model.truncated(size) for size in _sizes(trees.n_rounds)}


def _sizes(n: int) -> list[int]:
    return np.unique(np.geomspace(1, n, N_SIZES).round().astype(np.int64)).tolist()


def scoring_time(model: Model, data: QueryDataset) -> float:
    """Return a model's scoring time in microseconds per document: the best of several runs."""
    sample = some_queries(data, TIMED_ROWS)
    best, spent, tries = np.inf, 0.0, 0
    while tries < 2 or (spent < TIMED_SECONDS and tries < 20):
        start = time.perf_counter()
        scores_of(model, sample, "scoring_time")
        took = time.perf_counter() - start
        best, spent, tries = min(best, took), spent + took, tries + 1
    return 1e6 * best / sample.n_rows
