"""Passing the target's rows through the trees of an ensemble, one tree after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankgrove.adapt import _tree_kernels as kernels
from rankgrove.adapt.target import TargetRows
from rankgrove.boosting.loop import Objective
from rankgrove.data.binning import N_BINS
from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble

_LEVELS = {"leaf": kernels.LEAF, "layer": kernels.LAYER, "observe": kernels.OBSERVE}


@dataclass(frozen=True)
class Rules:
    """How trees are adapted.

    Attributes
    ----------
    beta : weight of a target row relative to a source row (equation 3); may be infinite
    tune : "responses" (Algorithm 1), or "splits": thresholds too (Algorithm 2)
    level : "layer" (equation 4) or "leaf" (equation 2); "observe" only finds the target's own
        responses
    min_leaf : minimum number of target rows on both sides of the target's own split
    l2 : added to the sum of hessians of a node
    """

    beta: float = 0.0
    tune: str = "responses"
    level: str = "layer"
    min_leaf: int = 1
    l2: float = 0.0


@dataclass(frozen=True, eq=False)
class SourceStatistics:
    """Rows and responses of all places: a tree's nodes and then its leaves, tree after tree.

    Attributes
    ----------
    count : source rows of every place; -1 where unknown, which is enough for beta 0
    response : mean response of every place, times the rate of the tree: for a leaf, its value
    rate : learning rate (weight) of every tree; NaN where unknown, which is enough for beta 0
    """

    count: np.ndarray
    response: np.ndarray
    rate: np.ndarray


class Walker:
    """Passes the target's rows down tree after tree, and keeps the adapted values.

    Attributes
    ----------
    threshold : current threshold of every node
    reached : target rows of every place
    weight : sum of the hessians of these rows
    response : current response of every place (times the tree's rate)
    """

    def __init__(
        self,
        ensemble: Ensemble,
        source: SourceStatistics,
        target: TargetRows,
        rules: Rules,
        n_threads: int | None = None,
    ) -> None:
        n, n_places = target.n_rows, ensemble.feature.size + ensemble.n_leaves
        if n >= 1 << 31:
            raise DataError(f"Trees can be adapted to fewer than 2**31 rows. Got {n}.")
        self.rules = rules
        self.n_threads = n_threads
        self.threshold = ensemble.threshold.copy()
        self.reached = np.zeros(n_places, np.int64)
        self.weight = np.zeros(n_places)
        self.response = np.zeros(n_places)
        most = int(np.diff(ensemble.leaf_ptr).max(initial=1)) * 2
        self._pointers = ensemble.node_ptr, ensemble.leaf_ptr
        self._trees = (
            np.searchsorted(target.features, ensemble.feature),
            ensemble.threshold,
            ensemble.left,
            ensemble.right,
            ensemble.missing_left,
        )
        self._source = source.count, source.response, source.rate
        self._target = target.for_kernels()
        self._gradient, self._hessian = np.zeros(n), np.zeros(n)
        self._whole, self._packed, self._whole_h = np.empty((3, n), np.int64)
        self._work = (
            np.empty(n, np.int32),
            np.empty(n, np.int32),
            np.empty((N_BINS, 2), np.int64),
            np.empty((most, 2), np.int64),
            np.empty((most, 2), np.int64),
            np.empty(most),
            np.empty(most),
        )

    def step(self, t: int, objective: Objective, scores: np.ndarray) -> None:
        """Adapt tree `t` to the scores of the trees before it; add its values to them."""
        *units, all_equal = self._quantise(objective, scores)
        whole_h = self._whole_h[: 0 if all_equal else None]
        kernels.adapt_tree(
            t,
            self._pointers,
            self._trees,
            self._source,
            self._target,
            self.rules.tune == "splits",
            _LEVELS[self.rules.level],
            float(self.rules.beta),
            tuple(units),
            float(self.rules.l2),
            self.rules.min_leaf,
            (self._whole, self._packed, whole_h),
            self._work,
            (self.threshold, self.reached, self.weight, self.response),
            scores,
        )

    def _quantise(self, objective: Objective, scores: np.ndarray) -> tuple[float, float, int, bool]:
        """Fill whole gradients and hessians.

        Return their units, the bits of a count, and whether all hessians are the same: then none
        are filled, and the unit is that hessian.
        """
        objective.gradients(scores, self._gradient, self._hessian, None, self.n_threads)
        bits = int(scores.size).bit_length()
        least, most_h = kernels.least_and_largest(self._hessian)
        all_equal = least == most_h
        exponents = []
        for name, most in (("gradient", kernels.largest(self._gradient)), ("hessian", most_h)):
            if not math.isfinite(most):
                raise DataError(f"The {name} of a row is {most}: the scores have diverged.")
            # sums of all rows stay below 2**62
            exponent = 62 - bits - (math.frexp(most)[1] if most else 0)
            exponents.append(max(-1000, min(1000, exponent)))
        scale, scale_h = (math.ldexp(1.0, e) for e in exponents)
        shift = bits + 1
        kernels.to_whole(
            self._gradient,
            self._hessian,
            scale,
            scale_h,
            shift,
            self._whole,
            self._packed,
            self._whole_h[: 0 if all_equal else None],
        )
        return 1.0 / scale, most_h if all_equal else 1.0 / scale_h, shift, all_equal


def joined(ensemble: Ensemble, of_nodes: np.ndarray, of_leaves: np.ndarray) -> np.ndarray:
    """Return the arrays of nodes and of leaves as one: a tree's nodes and then its leaves."""
    is_node = _is_node(ensemble)
    whole = np.empty(is_node.size)
    whole[is_node], whole[~is_node] = of_nodes, of_leaves
    return whole


def parted(ensemble: Ensemble, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split an array of all places into that of nodes and that of leaves."""
    is_node = _is_node(ensemble)
    return places[is_node], places[~is_node]


def _is_node(ensemble: Ensemble) -> np.ndarray:
    n_nodes, n_leaves = np.diff(ensemble.node_ptr), np.diff(ensemble.leaf_ptr)
    lengths = np.stack([n_nodes, n_leaves], axis=1).ravel()
    return np.repeat(np.tile([True, False], ensemble.n_trees), lengths)
