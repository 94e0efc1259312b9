"""Choosing members and weights by out-of-fold scores, and what the choice is worth.

A strategy turns the columns of out-of-fold scores into weights. Strategies are compared by nesting:
their weights are found on all folds but one, and valued on that one. The final weights are the
mean of those of all strategies within one standard error of the best. Their value is nested once
more, with this choice inside, so that no query has a part in choosing what it is used to value.
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
FAR_BEHIND = 0.02  # of the measure: candidates below the best by more are not averaged with it
BEST_OF_GROUP = 3

Strategy = Callable[["Columns"], np.ndarray]


@dataclass(frozen=True, eq=False)
class Columns:
    """Out-of-fold scores, one column per candidate, of the queries that may be looked at.

    Attributes
    ----------
    scores : of shape (candidates, rows), rows in query order, scaled to a spread of 1
    prepared : the measure on the labels of these rows
    families, groups : of every candidate: the preset it comes from, and the kind of model
    """

    scores: np.ndarray
    prepared: PreparedMeasure
    families: Sequence[str]
    groups: Sequence[str]
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


def best_of_families(columns: Columns) -> np.ndarray:
    """Give the best candidate of every family that is not far behind the same weight."""
    values = np.array([columns.mean(column) for column in columns.scores])
    best: dict[str, int] = {}
    for j in np.argsort(-values, kind="stable"):
        best.setdefault(columns.families[j], int(j))
    chosen = [j for j in best.values() if values[j] >= values.max() - FAR_BEHIND]
    weights = np.zeros(len(values))
    weights[chosen] = 1.0 / len(chosen)
    return weights


def balanced_groups(columns: Columns) -> np.ndarray:
    """Give every kind of model that is not far behind the same weight: its best candidates."""
    values = np.array([columns.mean(column) for column in columns.scores])
    members: dict[str, list[int]] = {}
    for j in np.argsort(-values, kind="stable"):
        members.setdefault(columns.groups[j], []).append(int(j))
    kept = [best for best in members.values() if values[best[0]] >= values.max() - FAR_BEHIND]
    weights = np.zeros(len(values))
    for best in kept:
        best = best[:BEST_OF_GROUP]
        weights[best] = 1.0 / (len(kept) * len(best))
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
    "the best of every family": best_of_families,
    "the same weight for every kind of model": balanced_groups,
    "greedy selection with equal steps": counted_greedy,
    "greedy selection with exact weights": exact_greedy,
}


# -- the choice ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """Which candidates were chosen, and what they are worth.

    Attributes
    ----------
    strategies : the names of the strategies whose weights were averaged, the best first
    weights : one per candidate, of scores with a spread of 1; they add up to 1
    values : the nested measure of every query: neither weights nor strategy saw it
    in_sample : the mean of the measure at the weights on the data that they were chosen on
    compared : the nested mean of every strategy
    """

    strategies: tuple[str, ...]
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
    columns_of: Callable[[np.ndarray], Columns],
    fold: np.ndarray,
    strategies: dict[str, Strategy],
) -> Choice:
    """Choose weights by nested cross-validation of out-of-fold scores.

    Parameters
    ----------
    columns_of : the out-of-fold scores of some queries, given as a mask
    fold : the fold of every query
    """
    # by strategy: the measure of every query, by weights that were found on the other folds
    nested = {name: np.full(fold.size, np.nan) for name in strategies}
    found: dict[int, dict[str, np.ndarray]] = {}  # weights by fold that was left out and strategy
    held_out = {int(k): columns_of(fold == k) for k in np.unique(fold)}
    for k, columns in held_out.items():
        learned = columns_of(fold != k)
        found[k] = {name: strategy(learned) for name, strategy in strategies.items()}
        for name, weights in found[k].items():
            nested[name][fold == k] = columns.values(weights @ columns.scores)
    values = np.full(fold.size, np.nan)
    for k, columns in held_out.items():
        names = _about_best(nested, fold != k)
        weights = np.mean([found[k][name] for name in names], axis=0)
        values[fold == k] = columns.values(weights @ columns.scores)
    everything = np.ones(fold.size, np.bool_)
    chosen = _about_best(nested, everything)
    columns = columns_of(everything)
    weights = np.mean([strategies[name](columns) for name in chosen], axis=0)
    return Choice(
        tuple(chosen),
        weights,
        values,
        columns.mean(weights @ columns.scores),
        {name: mean_of(nested[name]) for name in strategies},
    )


def _about_best(nested: dict[str, np.ndarray], queries: np.ndarray) -> list[str]:
    """Return the strategies within one standard error of the best on some queries, best first."""
    means = {name: mean_of(values[queries]) for name, values in nested.items()}
    order = sorted(means, key=lambda name: -means[name])
    best = nested[order[0]][queries]
    chosen = []
    for name in order:
        behind = best - nested[name][queries]
        behind = behind[~np.isnan(behind)]
        error = float(np.std(behind)) / max(1.0, float(behind.size)) ** 0.5
        if means[order[0]] - means[name] <= error:
            chosen.append(name)
    return chosen


def few_strategies(n_candidates: int) -> dict[str, Strategy]:
    """Return the strategies that differ for this number of candidates."""
    sizes: Sequence[tuple[str, int]] = (
        ("the mean of the 3 best", 2),
        ("the mean of the 5 best", 4),
        ("the mean of the 10 best", 6),
    )
    dropped = {name for name, least in sizes if n_candidates < least}
    if n_candidates == 1:
        dropped = set(STRATEGIES) - {"the best candidate alone"}
    return {name: strategy for name, strategy in STRATEGIES.items() if name not in dropped}
