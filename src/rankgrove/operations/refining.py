"""``rg.refine_weights``: the weights of a ranker's trees, optimised again one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankgrove.combine.refine import LEAF_MEMORY, TreeScores, refine
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.operations.combining import checked_dataset, weight_bounds
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.given import features_of
from rankgrove.rankers.inner_rankers import loaded
from rankgrove.validation import check_integer, refuse


@dataclass(frozen=True, eq=False)
class RefinedWeights:
    """The result of :func:`refine_weights`.

    Attributes
    ----------
    ranker : the ranker with its trees' values multiplied by the weights
    weights : one per tree
    history : the mean of the measure at the start, and after every tree
    value : the mean at the end
    rounds : number of passes over all trees
    """

    ranker: Ranker
    weights: np.ndarray
    history: list[float]
    rounds: int

    @property
    def value(self) -> float:
        """The mean of the measure at the weights."""
        return self.history[-1]


def refine_weights(
    model: Any,
    data: QueryDataset,
    measure: str | Measure,
    rounds: int = 3,
    *,
    bounds: tuple[float, float] = (0.0, 10.0),
    convention: str = "papers",
    memory: int = LEAF_MEMORY,
    n_threads: int | None = None,
    callback: Callable[[int, int, float], None] | None = None,
) -> RefinedWeights:
    """Re-optimise the weights of a ranker's trees one after the other, all others held fixed.

    Each step is exact, so the measure never falls. The search ends when a round through all trees
    does not raise it, or after `rounds` rounds (LambdaMART paper, end of section 4). Without
    shrinkage or other data for validation this may overfit: give validation data, or few rounds.

    Parameters
    ----------
    model : a trained ranker whose score is a sum of trees, such as LambdaMART, or the path of its
        model file
    data : the judged data to find the weights on
    measure : the measure to maximise
    rounds : maximum number of passes over all trees
    bounds : the least and the largest weight of a tree; 1 is its present weight
    convention : how measures are defined where their names do not say it
    memory : bytes for storing which leaf every row reaches; with less, rows pass through trees
        again
    n_threads : threads to use, None for all cores; the result does not depend on it
    callback : called with the round, the tree and the mean after each tree

    Returns
    -------
    a new ranker with the weights and the record; `model` does not change
    """
    owner = "refine_weights"
    check_integer("rounds", owner, rounds, low=1)
    limits = weight_bounds("additive", bounds, owner)
    if not limits[0] <= 1.0 <= limits[1]:
        refuse("bounds", owner, "around 1, which is the weight that every tree has now", bounds)
    chosen = target_measure(measure, convention)
    checked_dataset(data, owner)
    model = loaded(model, "model", owner, "a trained ranker or the path of a model file")
    if not hasattr(model, "ensemble_") or not hasattr(model, "truncated"):
        raise ParameterError(
            f"{owner} needs a trained ranker made of trees. Got {type(model).__name__}."
        )
    model = model.widened(data)
    data = model.recoded(data, owner)
    ensemble = model.ensemble_
    prepared = chosen.prepare(data.grouped(data.y), data.query_ptr, n_threads)
    base = data.grouped(model.truncated(0).predict(data, n_threads=n_threads))
    trees = TreeScores(
        ensemble,
        features_of(data, owner)[0],
        query_order_rows(data),
        data.n_rows,
        memory,
        n_threads,
    )
    whole = sum((trees[t] for t in range(ensemble.n_trees)), base)
    near = 1e-5 * float(np.abs(whole).max()) if ensemble.single else 1e-8  # float32 rounds more
    if not np.allclose(whole, data.grouped(model.predict(data, n_threads=n_threads)), atol=near):
        raise ParameterError(
            f"{owner}: the score of this {type(model).__name__} is not the sum of its trees, so "
            "they have no weights."
        )
    refinement = refine(
        prepared,
        ensemble,
        trees,
        base,
        rounds=rounds,
        bounds=limits,
        n_threads=n_threads,
        callback=callback,
    )
    refined = model.truncated(ensemble.n_trees)
    of_leaves = np.repeat(refinement.weights, np.diff(ensemble.leaf_ptr))
    refined.ensemble_ = replace(ensemble, value=of_leaves * ensemble.value)
    refined.steps_ = (refinement.weights * np.array(refined.steps_)).tolist()
    refined.history_, refined.best_round_ = {}, None  # they belong to the old weights
    return RefinedWeights(refined, refinement.weights, refinement.values, refinement.rounds)
