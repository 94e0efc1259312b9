"""Weights of the scores of several rankers: by exact steps, or by Powell's search.

LambdaMART paper, section 4 (the optimum is guaranteed for two rankers; several are weighted one
after the other) and section 5.5 (Powell search, the baseline).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankgrove.measures.base import PreparedMeasure, exact_mean, rank
from rankgrove.sweep.sweep import check_scores_fit, sweep


@dataclass(frozen=True, eq=False)
class Weighted:
    """Weights that add up to 1, and the mean of the measure after every step."""

    weights: np.ndarray
    values: list[float]

    @property
    def value(self) -> float:
        """The mean of the measure for the weights."""
        return self.values[-1]


def weighted_sum(columns: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the scores of a combination, added up in the order of the rankers.

    A ranker with weight 0 is left out.
    """
    total = np.zeros(columns[0].size)
    for column, weight in zip(columns, weights.tolist(), strict=True):
        if weight != 0.0:
            total += weight * column
    return total


class Searcher:
    """The scores of several rankers in query order, and the measure of their combinations."""

    def __init__(
        self,
        prepared: PreparedMeasure,
        columns: Sequence[np.ndarray],
        n_threads: int | None = None,
    ) -> None:
        self.prepared = prepared
        self.columns = [check_scores_fit(prepared, column) for column in columns]
        self.n_threads = n_threads

    def value(self, weights: np.ndarray) -> float:
        """Return the mean of the measure for the given weights."""
        scores = weighted_sum(self.columns, weights)
        ranking = rank(scores, self.prepared.query_ptr, self.n_threads)
        return exact_mean(self.prepared.values(ranking, self.n_threads))

    def single_values(self) -> list[float]:
        """Return the mean of the measure of every ranker alone."""
        return [self.value(weights) for weights in np.eye(len(self.columns))]

    def even_weights(self) -> np.ndarray:
        """Return weights with which all rankers' scores have the same standard deviation."""
        ptr = self.prepared.query_ptr
        sizes = np.diff(ptr)
        spreads = []
        for column in self.columns:
            means = np.add.reduceat(column, ptr[:-1]) / sizes
            spreads.append(float(np.std(column - np.repeat(means, sizes))))
        weights = np.array([1.0 / spread if spread > 0.0 else 0.0 for spread in spreads])
        return weights / weights.sum() if weights.any() else np.eye(len(spreads))[0]

    # -- exact steps ------------------------------------------------------------------------------

    def cyclic(self, rounds: int) -> Weighted:
        """Set one weight after the other to its exact optimum, until the measure rises no more.

        Starts from the best single ranker and from even weights; the better result counts.
        """
        best = np.eye(len(self.columns))[int(np.argmax(self.single_values()))]
        ends = [self._climb(start, rounds) for start in (best, self.even_weights())]
        return max(ends, key=lambda weighted: weighted.value)

    def _climb(self, weights: np.ndarray, rounds: int) -> Weighted:
        values = [self.value(weights)]
        for _ in range(rounds):
            before = values[-1]
            for i in range(weights.size):
                weights, value = self._set_one(weights, values[-1], i)
                values.append(value)
            if values[-1] <= before:
                break
        return Weighted(weights, values)

    def _set_one(self, weights: np.ndarray, value: float, i: int) -> tuple[np.ndarray, float]:
        """Return the weights with the i-th at its optimum; the others keep their proportions."""
        others = weights.copy()
        others[i] = 0.0
        if not others.any():
            return weights, value
        others /= others.sum()
        optimum = sweep(
            self.prepared,
            weighted_sum(self.columns, others),
            self.columns[i],
            points=False,
            keep_curve=False,
            n_threads=self.n_threads,
        )
        if optimum.value <= value:
            return weights, value
        trial = (1.0 - optimum.alpha) * others
        trial[i] = optimum.alpha
        reached = self.value(trial)  # rounded as in the weighted sum
        return (trial, reached) if reached > value else (weights, value)

    # -- Powell's search --------------------------------------------------------------------------

    def powell(self, rounds: int) -> Weighted:
        """Search by Powell's method, from even weights; the best weights seen are returned.

        The weights of every single ranker are tried too.
        """
        from scipy.optimize import minimize

        even = self.even_weights()
        best, values = even, [self.value(even)]

        def loss(factors: np.ndarray) -> float:
            nonlocal best
            weights = even * np.clip(factors, 0.0, None)
            if not weights.any():
                return -values[0]
            weights = weights / weights.sum()
            value = self.value(weights)
            if value > values[-1]:
                best = weights
                values.append(value)
            return -value

        n = len(self.columns)
        for alone in np.eye(n):
            loss(alone)
        minimize(
            loss,
            np.ones(n),
            method="Powell",
            bounds=[(0.0, 10.0)] * n,
            options={"maxiter": rounds, "xtol": 1e-4, "ftol": 1e-9},
        )
        return Weighted(best, values)
