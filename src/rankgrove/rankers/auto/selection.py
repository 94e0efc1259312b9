"""Choosing members and weights by out-of-fold scores, and what the choice is worth.

A strategy turns the columns of out-of-fold scores into weights. Which strategy is best is decided
by nesting: its weights are found on all folds but one, and valued on that one. The winner's value
is nested once more, with the choice of the strategy inside, so that no query has a part in choosing
what it is used to value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankgrove.measures.base import PreparedMeasure, rank
from rankgrove.sweep.sweep import sweep

MOST_MEMBERS = 8
LEAST_GAIN = 1e-5  # by which another member must raise the measure
MOST_TRIED = 12  # columns, the best ones, that a greedy step looks at

Strategy = Callable[["Columns"], np.ndarray]


@dataclass(frozen=True, eq=False)
class Columns:
    """Out-of-fold scores, one column per candidate, of the queries that may be looked at.

    Attributes
    ----------
    scores : of shape (candidates, rows), rows in query order, scaled to a spread of 1
    prepared : the measure on the labels of these rows
    """

    scores: np.ndarray
    prepared: PreparedMeasure
    n_threads: int | None

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Return the measure of every query; NaN where it leaves a query out."""
        ranking = rank(scores, self.prepared.query_ptr, self.n_threads)
        return self.prepared.values(ranking, self.n_threads)

    def mean(self, scores: np.ndarray) -> float:
        """Return the mean of the measure."""
        return mean_of(self.values(scores))

    def order(self) -> np.ndarray:
        """Return the candidates, the best first."""
        return np.argsort([-self.mean(column) for column in self.scores], kind="stable")


def mean_of(values: np.ndarray) -> float:
    """Return the mean of the queries that count; -inf where none does."""
    known = values[~np.isnan(values)]
    return float(np.mean(known)) if known.size else -np.inf


def spread_of(scores: np.ndarray, query_ptr: np.ndarray) -> float:
    """Return the standard deviation of scores within queries; 1 where they are all equal."""
    sizes = np.diff(query_ptr)
    means = np.add.reduceat(scores, query_ptr[:-1]) / sizes
    deviation = float(np.std(scores - np.repeat(means, sizes)))
    return deviation if deviation > 0.0 else 1.0


# -- strategies ------------------------------------------------------------------------------------


def mean_of_best(n: int) -> Strategy:
    """Return the strategy that gives the n best candidates equal weights."""

    def weights(columns: Columns) -> np.ndarray:
        chosen = columns.order()[:n]
        weights = np.zeros(len(columns.scores))
        weights[chosen] = 1.0 / chosen.size
        return weights

    return weights


def exact_greedy(columns: Columns) -> np.ndarray:
    """Add one candidate after the other, each with the weight that is exactly the best.

    As a function of one weight the measure is a step function, whose best step a sweep finds
    (LambdaMART paper, section 4).
    """
    order = columns.order()[:MOST_TRIED]
    weights = np.zeros(len(columns.scores))
    weights[order[0]] = 1.0
    scores = columns.scores[order[0]].copy()
    value = columns.mean(scores)
    for _ in range(MOST_MEMBERS - 1):
        best = None
        for j in order:
            point = sweep(
                columns.prepared,
                scores,
                columns.scores[j],
                points=False,
                keep_curve=False,
                n_threads=columns.n_threads,
            )
            if point.value > value + LEAST_GAIN and (best is None or point.value > best[0]):
                best = (point.value, point.alpha, j)
        if best is None:
            break
        value, alpha, j = best
        weights *= 1.0 - alpha
        weights[j] += alpha
        scores = (1.0 - alpha) * scores + alpha * columns.scores[j]
    return weights


def counted_greedy(columns: Columns) -> np.ndarray:
    """Add candidates of equal weight, the same one again if that helps most (Caruana 2004)."""
    order = columns.order()[:MOST_TRIED]
    counts, best_counts = np.zeros(len(columns.scores)), None
    total = np.zeros(columns.scores.shape[1])
    best = -np.inf
    for _ in range(2 * MOST_MEMBERS):
        values = [columns.mean(total + columns.scores[j]) for j in order]
        j = order[int(np.argmax(values))]
        total += columns.scores[j]
        counts[j] += 1.0
        if max(values) > best + LEAST_GAIN:
            best, best_counts = max(values), counts.copy()
    assert best_counts is not None
    return best_counts / best_counts.sum()


STRATEGIES: dict[str, Strategy] = {
    "the best candidate alone": mean_of_best(1),
    "the mean of the 3 best": mean_of_best(3),
    "the mean of the 5 best": mean_of_best(5),
    "the mean of the 10 best": mean_of_best(10),
    "greedy selection with equal steps": counted_greedy,
    "greedy selection with exact weights": exact_greedy,
}


# -- the choice ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """Which candidates were chosen, and what they are worth.

    Attributes
    ----------
    strategy : the name of the strategy
    weights : one per candidate, of scores with a spread of 1; they add up to 1
    values : the nested measure of every query: neither weights nor strategy saw it
    in_sample : the mean of the measure at the weights on the data that they were chosen on
    compared : the nested mean of every strategy
    """

    strategy: str
    weights: np.ndarray
    values: np.ndarray
    in_sample: float
    compared: dict[str, float]

    @property
    def value(self) -> float:
        """The nested mean of the measure."""
        return mean_of(self.values)

    @property
    def optimism(self) -> float:
        """By how much the mean on the data of the choice is too high: the winner's curse."""
        return self.in_sample - self.value


def choose(
    scores: np.ndarray,
    prepare: Callable[[np.ndarray], PreparedMeasure],
    query_ptr: np.ndarray,
    fold: np.ndarray,
    strategies: dict[str, Strategy],
    n_threads: int | None,
) -> Choice:
    """Choose strategy and weights by nested cross-validation of out-of-fold scores.

    Parameters
    ----------
    scores : of shape (candidates, rows), rows in query order
    prepare : the measure on the labels of some queries, given as a mask
    fold : the fold of every query
    """
    folds = np.unique(fold)
    everything = np.ones(fold.size, np.bool_)

    def columns_of(queries: np.ndarray) -> Columns:
        rows = np.repeat(queries, np.diff(query_ptr))
        return Columns(scores[:, rows], prepare(queries), n_threads)

    # nested[name][q]: the measure of query q, by weights of the strategy on the other folds
    nested = {name: np.full(fold.size, np.nan) for name in strategies}
    for k in folds:
        learned, valued = columns_of(fold != k), columns_of(fold == k)
        for name, strategy in strategies.items():
            weights = strategy(learned)
            nested[name][fold == k] = valued.values(weights @ valued.scores)

    def best(queries: np.ndarray) -> str:
        return max(strategies, key=lambda name: mean_of(nested[name][queries]))

    # The strategy that values fold k is the best one on the other folds.
    values = np.full(fold.size, np.nan)
    for k in folds:
        values[fold == k] = nested[best(fold != k)][fold == k]
    chosen = best(everything)
    columns = columns_of(everything)
    weights = strategies[chosen](columns)
    return Choice(
        chosen,
        weights,
        values,
        columns.mean(weights @ columns.scores),
        {name: mean_of(nested[name]) for name in strategies},
    )


def few_strategies(n_candidates: int) -> dict[str, Strategy]:
    """Return the strategies that differ for this number of candidates."""
    sizes: Sequence[tuple[str, int]] = (
        ("the mean of the 3 best", 2),
        ("the mean of the 5 best", 4),
        ("the mean of the 10 best", 6),
    )
    dropped = {name for name, least in sizes if n_candidates < least}
    if n_candidates == 1:
        dropped |= {name for name in STRATEGIES if name.startswith("greedy")}
    return {name: strategy for name, strategy in STRATEGIES.items() if name not in dropped}
