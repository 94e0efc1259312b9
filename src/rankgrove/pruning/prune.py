"""Removing trees from a model, and re-weighting the others, as long as a measure does not fall.

The trees with the smallest effect on the order of documents are removed first, a twentieth of all
at a time. The weights of the others are changed so that they replace the lost scores best (in least
squares). If the measure then falls too far, an exact line search along the same direction finds the
size of the change; if that does not help either, half as many trees are tried.

Trees are not chosen by the measure itself: on a few hundred queries there are always some whose
removal raises it by chance, and a model pruned in this way is worse on other queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankgrove.measures.base import PreparedMeasure, exact_mean, rank
from rankgrove.pruning.tree_matrix import TreeMatrix
from rankgrove.sweep.sweep import sweep

SHARE = 0.05  # share of the remaining trees that are tried together
MOST_REFUSED = 20  # trees in a row that cannot be removed, after which the search ends


class Scale(Protocol):
    """Scales a model's scores within every query, before they are added to a bag's scores."""

    def __call__(self, scores: np.ndarray) -> np.ndarray: ...


@dataclass
class Part:
    """One sum of trees: a whole model, or a model of a bag.

    Attributes
    ----------
    trees : the values of the trees for the rows
    base : the rows' scores without any tree
    share : weight of the part in the total
    kept, weights : numbers of the remaining trees, and their weights
    spread : effect of every tree on the differences of documents, in the total's units
    """

    trees: TreeMatrix
    base: np.ndarray
    share: float
    kept: np.ndarray
    weights: np.ndarray
    spread: np.ndarray

    def scores(self) -> np.ndarray:
        """Return the rows' scores by the remaining trees."""
        return self.base + self.trees.sum(self.kept, self.weights)


@dataclass(frozen=True)
class Pass:
    """The result of a pass: the number of trees, and the mean of every measure."""

    n_trees: int
    values: dict[str, float]


class Pruner:
    """The search for trees to remove.

    Parameters
    ----------
    prepared : the measures on the data, by name; line searches use the first
    parts : the sums of trees
    scale : scaling of a part's scores in the total; None: unchanged (then line searches are exact)
    n_threads : threads to use; the result does not depend on it
    """

    def __init__(
        self,
        prepared: Mapping[str, PreparedMeasure],
        parts: Sequence[Part],
        scale: Scale | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.prepared = dict(prepared)
        self.parts = list(parts)
        self._scale = scale
        self._n_threads = n_threads
        self._first = next(iter(self.prepared.values()))
        # the term of every part in the total: removing a few trees changes only some of them
        self._terms = {p: self._term(p, part.scores()) for p, part in enumerate(self.parts)}
        self._before = self._values()
        self.passes = [self._now()]

    @property
    def n_trees(self) -> int:
        """Number of remaining trees."""
        return sum(part.kept.size for part in self.parts)

    def run(
        self,
        tolerance: float,
        margin: float = 0.0,
        keep: float = 0.0,
        callback: Callable[[Pass], Any] | None = None,
    ) -> None:
        """Remove trees until the mean of any measure would fall by more than `tolerance`.

        margin : number of standard errors that are added to the fall
        keep : share of the trees that are always kept
        """
        refused = 0
        least = max(1, math.ceil(keep * self.n_trees))
        while self.n_trees > least and refused < MOST_REFUSED:
            order = self._by_cost()[refused:]
            n = max(1, int(SHARE * self.n_trees)) if not refused else 1
            n = min(n, self.n_trees - least)
            if not len(order):
                return
            while n and not self._take_out(order[:n], tolerance, margin):
                n //= 2
            if not n:
                refused += 1
                continue
            refused = 0
            self.passes.append(self._now())
            if callback is not None and callback(self.passes[-1]):
                return

    # -- a pass -----------------------------------------------------------------------------------

    def _by_cost(self) -> np.ndarray:
        """Return (part, index in its kept trees) of all trees, those of smallest effect first."""
        trees, cost = [], []
        for p, part in enumerate(self.parts):
            trees += [(p, k) for k in range(part.kept.size)]
            cost.append((part.share * part.weights) ** 2 * part.spread[part.kept])
        return np.array(trees)[np.argsort(np.concatenate(cost), kind="stable")]

    def _take_out(self, chosen: np.ndarray, tolerance: float, margin: float) -> bool:
        """Remove trees and re-weight the others; undo it if the mean of a measure falls too far."""
        touched = np.unique(chosen[:, 0]).tolist()
        before = {p: (self.parts[p].kept, self.parts[p].weights) for p in touched}
        rest, make_up = {}, {}
        for p in touched:
            part = self.parts[p]
            out = np.zeros(part.kept.size, np.bool_)
            out[chosen[chosen[:, 0] == p, 1]] = True
            lost = part.trees.sum(part.kept[out], part.weights[out])
            part.kept, part.weights = part.kept[~out], part.weights[~out]
            rest[p] = part.scores()
            make_up[p] = np.zeros(part.kept.size)
            if part.kept.size:
                make_up[p] = part.trees.stand_in(part.kept, part.weights, lost)
        stayed = {p: self.parts[p].weights for p in touched}
        for searched in (False, True):
            alpha = self._how_far(rest, make_up) if searched else 1.0
            for p in touched:
                self.parts[p].weights = stayed[p] + alpha * make_up[p]
            fresh = {p: self._term(p, self.parts[p].scores()) for p in touched}
            if self._fall(fresh, margin) <= tolerance:
                self._terms |= fresh
                return True
        for p, (kept, weights) in before.items():
            self.parts[p].kept, self.parts[p].weights = kept, weights
        return False

    def _now(self) -> Pass:
        means = {name: exact_mean(values) for name, values in self._values().items()}
        return Pass(self.n_trees, means)

    def _fall(self, fresh: Mapping[int, np.ndarray], margin: float) -> float:
        """Return the largest fall of a mean, plus `margin` standard errors.

        With a margin a rise counts as 0: of the many ways to remove trees some raise a mean by
        chance, which must not compensate for queries that changed.
        """
        largest = -np.inf
        for name, now in self._values(fresh).items():
            falls = (self._before[name] - now)[~np.isnan(now)]
            error = float(np.std(falls, ddof=1)) / np.sqrt(falls.size) if falls.size > 1 else 0.0
            fall = exact_mean(self._before[name]) - exact_mean(now)
            largest = max(largest, max(fall, 0.0) + margin * error if margin else fall)
        return float(largest)

    def _how_far(self, rest: dict[int, np.ndarray], make_up: dict[int, np.ndarray]) -> float:
        """Return the factor of the changes of weights, 0 to 2, at which the measure is highest."""
        along = {p: self.parts[p].trees.sum(self.parts[p].kept, make_up[p]) for p in rest}
        if self._scale is None:
            start = self._total({p: self._term(p, scores) for p, scores in rest.items()})
            other = np.sum([self.parts[p].share * x for p, x in along.items()], axis=0)
            best = sweep(
                self._first,
                start,
                other,
                form="additive",
                low=0.0,
                high=2.0,
                points=False,
                keep_curve=False,
                n_threads=self._n_threads,
            )
            return float(best.alpha)
        # With scaling within queries the total is not linear in the weights: try a few factors.
        tried = [0.0, 0.5, 1.0, 1.5]
        values = []
        for a in tried:
            fresh = {p: self._term(p, rest[p] + a * along[p]) for p in rest}
            ranking = rank(self._total(fresh), self._first.query_ptr, self._n_threads)
            values.append(exact_mean(self._first.values(ranking, self._n_threads)))
        return tried[int(np.argmax(values))]

    # -- scores -----------------------------------------------------------------------------------

    def _term(self, p: int, scores: np.ndarray) -> np.ndarray:
        """Return the term of a part's scores in the total."""
        return self.parts[p].share * (scores if self._scale is None else self._scale(scores))

    def _total(self, fresh: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return the rows' scores; `fresh` holds the new terms of changed parts."""
        terms = self._terms | dict(fresh)
        return np.asarray(np.sum([terms[p] for p in range(len(self.parts))], axis=0))

    def _values(self, fresh: Mapping[int, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Return every query's value of every measure for the current parts."""
        ranking = rank(self._total(fresh or {}), self._first.query_ptr, self._n_threads)
        return {
            n: prepared.values(ranking, self._n_threads) for n, prepared in self.prepared.items()
        }
