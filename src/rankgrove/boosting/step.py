"""The weight of a tree: the learning rate, or the best weight for a measure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from rankgrove.growth.partition import leaves_of
from rankgrove.measures.base import PreparedMeasure
from rankgrove.model.tree import Tree
from rankgrove.training.watch import Watched


class Grown(NamedTuple):
    """A new tree, before it is added to the scores.

    ``leaf_of`` is the leaf of every training row and ``scores`` are the rows' scores before the
    tree; both are empty where the rows are in other processes.
    """

    tree: Tree
    leaf_of: np.ndarray
    scores: np.ndarray


class Step(Protocol):
    """Weights the values of a tree, which are then added to the scores."""

    def __call__(self, grown: Grown) -> tuple[Grown, float]:
        """Return the tree with its values weighted, and the weight."""


class ConstantStep:
    """Every leaf's own (Newton) value, times the learning rate."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def __call__(self, grown: Grown) -> tuple[Grown, float]:
        """Return the tree with its values times the learning rate."""
        tree = replace(grown.tree, value=self.learning_rate * grown.tree.value)
        return grown._replace(tree=tree), self.learning_rate


class OptimalStep:
    """One weight per tree: the one at which a measure is highest, times the learning rate.

    LambdaMART paper, sections 4 and 5.6: of all weights alpha between two bounds, the one that
    maximises the measure of scores + alpha * tree is found exactly. Newton's weight is taken if it
    is among the best, else the middle of the best interval. Single weights at which documents are
    tied are ignored: the next tree breaks the tie.

    A ranking does not depend on the scale of its scores, so a weight only has a meaning relative to
    the scores so far. In the first round all scores are equal and all weights are equally good: the
    tree gets the full Newton weight, since the learning rate would only change the scale of the
    scores, and of every later step.

    Parameters
    ----------
    prepared : the measure, on the data that the weight is found on
    bounds : lowest and highest alpha
    learning_rate : factor of alpha
    watched : data that the weight is found on; None: the training data
    mean_response : give every leaf the mean gradient of its rows (the least-squares tree of the
        paper) instead of its own Newton step
    l2 : value that was added to the weight of a leaf
    """

    def __init__(
        self,
        prepared: PreparedMeasure,
        bounds: tuple[float, float],
        learning_rate: float,
        *,
        watched: Watched | None = None,
        mean_response: bool = True,
        l2: float = 0.0,
        n_threads: int | None = None,
    ) -> None:
        self.prepared = prepared
        self.bounds = bounds
        self.learning_rate = learning_rate
        self.watched = watched
        self.mean_response = mean_response
        self.l2 = l2
        self.n_threads = n_threads

    def __call__(self, grown: Grown) -> tuple[Grown, float]:
        """Return the tree with its values times the best weight."""
        value, newton = self.direction(grown.tree)
        leaf_of, scores = self._searched_on(grown)
        alpha, is_free = self._best(scores, value[leaf_of], newton)
        weight = alpha if is_free else self.learning_rate * alpha
        return grown._replace(tree=replace(grown.tree, value=weight * value)), weight

    def weight_of_scores(self, grown: Grown, spread: float) -> float:
        """Return the weight at which the measure of weight * scores / spread + tree is highest."""
        leaf_of, scores = self._searched_on(grown)
        return self._best(grown.tree.value[leaf_of], scores / spread, 1.0)[0]

    def direction(self, tree: Tree) -> tuple[np.ndarray, float]:
        """Return the leaves' values before they are weighted, and Newton's weight of the tree.

        Newton's step along values v is sum G v / sum H v^2, over leaves with the sums G and H of
        their rows' gradients and hessians; it is 1 where v = G / H.
        """
        curvature = tree.weight[tree.n_nodes :] + self.l2
        gradient = tree.mean[tree.n_nodes :] * curvature  # values may be clipped to bounds
        value = gradient / tree.count[tree.n_nodes :] if self.mean_response else tree.value
        along = float(curvature @ value**2)
        return value, float(gradient @ value) / along if along > 0.0 else 1.0

    def _searched_on(self, grown: Grown) -> tuple[np.ndarray, np.ndarray]:
        """Return the leaves and scores of the data that weights are found on."""
        if self.watched is None:
            return grown.leaf_of, grown.scores
        assert self.watched.binned is not None
        leaf_of = leaves_of(grown.tree, self.watched.binned, n_threads=self.n_threads)
        return leaf_of, self.watched.scores[0]

    def _best(self, start: np.ndarray, other: np.ndarray, usual: float) -> tuple[float, bool]:
        """Return the best weight of `other`, and whether all weights are equally good.

        If `usual` is among the best weights, it is returned.
        """
        from rankgrove.sweep.sweep import sweep

        low, high = self.bounds
        usual = min(max(usual, low), high)
        best = sweep(
            self.prepared,
            start,
            other,
            form="additive",
            low=low,
            high=high,
            points=False,
            keep_curve=False,
            n_threads=self.n_threads,
        )
        is_free = best.n_changes == 0
        is_best = best.stretch[0] < usual < best.stretch[1]
        return usual if is_free or is_best else best.alpha, is_free
