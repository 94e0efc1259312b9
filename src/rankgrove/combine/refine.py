"""Re-optimising the weight of every tree of a trained ensemble, with the others held fixed.

LambdaMART paper, end of section 4: at every step the weight of one tree is the exact optimum of a
combination of two rankers, the tree and all others, so the measure never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.measures.base import PreparedMeasure, exact_mean, rank
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring.score import score
from rankgrove.sweep.sweep import sweep

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

LEAF_MEMORY = 1 << 30  # bytes for the leaves of all rows in all trees, computed once


@dataclass(frozen=True, eq=False)
class Refinement:
    """The weights of the trees, and how they were found.

    Attributes
    ----------
    weights : one per tree, by which its values are multiplied
    values : the mean of the measure before, and after every step
    rounds : number of passes over all trees
    """

    weights: np.ndarray
    values: list[float]
    rounds: int


class TreeScores:
    """The value of every tree for every row; leaves are computed once, if memory allows."""

    def __init__(
        self,
        ensemble: Ensemble,
        features: Matrix,
        rows: np.ndarray | slice | None,
        n_rows: int,
        memory: int,
        n_threads: int | None,
    ) -> None:
        self.ensemble = ensemble
        self._place = features, rows, n_threads
        widest = int(np.diff(ensemble.leaf_ptr).max(initial=1))
        kind = np.min_scalar_type(widest - 1)
        fits = n_rows * ensemble.n_trees * kind.itemsize <= memory
        self._leaves = (
            [self._leaf_numbers(t).astype(kind) for t in range(ensemble.n_trees)] if fits else None
        )

    def _leaf_numbers(self, t: int) -> np.ndarray:
        tree = self.ensemble.tree(t)
        numbers = replace(tree, value=np.arange(tree.value.size, dtype=np.float64))
        features, rows, n_threads = self._place
        single = Ensemble.from_trees([numbers], self.ensemble.n_features)
        return score(single, features, rows, n_threads)

    def __getitem__(self, t: int) -> np.ndarray:
        leaves = self._leaves[t] if self._leaves is not None else self._leaf_numbers(t).astype(int)
        first, last = self.ensemble.leaf_ptr[t : t + 2]
        return np.asarray(self.ensemble.value[first:last][leaves])


def refine(
    prepared: PreparedMeasure,
    ensemble: Ensemble,
    trees: TreeScores,
    base: np.ndarray,
    *,
    rounds: int,
    bounds: tuple[float, float],
    n_threads: int | None = None,
    callback: Callable[[int, int, float], None] | None = None,
) -> Refinement:
    """Set the weight of one tree after the other to its optimum, until the measure rises no more.

    Parameters
    ----------
    prepared : the measure on the data
    trees : the values of the trees of `ensemble` for the rows in query order
    base : the scores of the rows without any tree
    rounds : maximum number of passes over all trees
    bounds : the lowest and the highest weight
    callback : called after every tree with the round, the tree and the value
    """
    weights = np.ones(ensemble.n_trees)

    def mean(scores: np.ndarray) -> float:
        return exact_mean(prepared.values(rank(scores, prepared.query_ptr, n_threads), n_threads))

    def scores_of(weights: np.ndarray) -> np.ndarray:
        total = base.copy()
        for t, weight in enumerate(weights.tolist()):
            total += weight * trees[t]
        return total

    scores = scores_of(weights)
    values = [mean(scores)]
    done = 0
    for done in range(1, rounds + 1):
        before, kept = values[-1], weights.copy()
        for t in range(weights.size):
            tree = trees[t]
            rest = scores - weights[t] * tree
            optimum = sweep(
                prepared,
                rest,
                tree,
                form="additive",
                low=bounds[0],
                high=bounds[1],
                points=False,
                keep_curve=False,
                n_threads=n_threads,
            )
            if optimum.value > values[-1]:
                weights[t] = optimum.alpha
                scores = rest + optimum.alpha * tree
            values.append(max(optimum.value, values[-1]))
            if callback is not None:
                callback(done, t, values[-1])
        # The model adds its trees in order; subtracting and adding a tree rounds differently.
        scores = scores_of(weights)
        values[-1] = mean(scores)
        if values[-1] <= before:
            if values[-1] < before:
                weights, values[-1] = kept, before
            break
    return Refinement(weights, values, done)
