"""Passing the target's rows through the trees of an ensemble, one tree after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankgrove.adapt import _adapt_kernels as kernels
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
        self.n_threads = n_threads
        self.threshold = ensemble.threshold.copy()
        self.reached = np.zeros(n_places, np.int64)
        self.weight = np.zeros(n_places)
        self.response = np.zeros(n_places)
        most = int(np.diff(ensemble.leaf_ptr).max(initial=1)) * 2
        self._trees = kernels.Trees(
            node_ptr=ensemble.node_ptr,
            leaf_ptr=ensemble.leaf_ptr,
            slot=np.searchsorted(target.features, ensemble.feature),
            threshold=ensemble.threshold,
            left=ensemble.left,
            right=ensemble.right,
            missing_left=ensemble.missing_left,
            set_of=ensemble.set_of,
            set_ptr=ensemble.sets.ptr,
            set_words=ensemble.sets.words,
            count=source.count,
            response=source.response,
            rate=source.rate,
        )
        self._target = kernels.Target(
            target.columns, target.codes, target.code_of, target.tables, target.n_thresholds
        )
        self._mixing = kernels.Mixing(
            tune=rules.tune == "splits",
            level=_LEVELS[rules.level],
            beta=float(rules.beta),
            l2=float(rules.l2),
            min_leaf=rules.min_leaf,
        )
        self._results = kernels.Results(self.threshold, self.reached, self.weight, self.response)
        self._gradient, self._hessian = np.zeros(n), np.zeros(n)
        self._whole, self._packed, self._whole_h = np.empty((3, n), np.int64)
        self._work = kernels.Work(
            order=np.empty(n, np.int32),
            rights=np.empty(n, np.int32),
            histogram=np.empty((N_BINS, 2), np.int64),
            places=np.empty((most, 2), np.int64),
            sums=np.empty((most, 2), np.int64),
            change=np.empty(most),
            means=np.empty(most),
        )

    def step(self, t: int, objective: Objective, scores: np.ndarray) -> None:
        """Adapt tree `t` to the scores of the trees before it; add its values to them."""
        numbers = self._quantise(objective, scores)
        kernels.adapt_tree(
            t, self._trees, self._target, self._mixing, numbers, self._work, self._results, scores
        )

    def _quantise(self, objective: Objective, scores: np.ndarray) -> kernels.Numbers:
        """Return gradients and hessians as whole numbers.

        If all hessians are equal, none are filled, and their unit is that hessian.
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
        numbers = kernels.Numbers(
            whole=self._whole,
            packed=self._packed,
            whole_h=self._whole_h[: 0 if all_equal else None],
            unit=1.0 / scale,
            unit_h=most_h if all_equal else 1.0 / scale_h,
            shift=bits + 1,
        )
        kernels.to_whole(self._gradient, self._hessian, scale, scale_h, *numbers[:3], bits + 1)
        return numbers


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
