"""Choosing members and weights by out-of-fold scores, and what the choice is worth.

A strategy turns the columns of out-of-fold scores into weights. The final weights are the mean of
those of all strategies, without shares under half a percent: on small data a choice among
strategies is mostly luck, and it would have to be nested once more. Their value is nested: the
weights are found on all folds but one, and evaluated on that one, so that no query has a part in
finding the weights that it is used to value.
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
LEAST_SHARE = 0.005  # of the weights: below it a member costs time and changes next to nothing

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
    # Equal scores of a query differ from their mean by rounding.
    return deviation if deviation > 1e-12 * float(np.abs(scores).max(initial=0.0)) else 1.0


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


def balanced_mean(columns: Columns) -> np.ndarray:
    """Give every kind of model the same weight: all its candidates that are not far behind."""
    values = np.array([columns.mean(column) for column in columns.scores])
    kept = values >= values.max() - FAR_BEHIND
    groups = np.array(columns.groups)
    weights = np.zeros(len(values))
    for group in np.unique(groups[kept]):
        of_group = kept & (groups == group)
        weights[of_group] = 1.0 / np.count_nonzero(of_group)
    return weights / weights.sum()


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


ALONE = "the best candidate alone"
MEANS = (10, 5, 3)
STRATEGIES: dict[str, Strategy] = {
    "all candidates, the same weight for every kind of model": balanced_mean,
    "the 3 best of every kind of model": balanced_groups,
    "the best of every family": best_of_families,
    **{f"the mean of the {n} best": mean_of_best(n) for n in MEANS},
    "greedy selection with equal steps": counted_greedy,
    "greedy selection with exact weights": exact_greedy,
    ALONE: mean_of_best(1),
}
LEAST_CANDIDATES = {f"the mean of the {n} best": n for n in MEANS}


# -- the choice ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """Which candidates were chosen, and what they are worth.

    Attributes
    ----------
    weights : one per candidate, of scores with a spread of 1; they add up to 1
    values : the nested measure of every query, by weights that it had no part in
    in_sample : the mean of the measure at the weights on the data that they were chosen on
    compared : the nested mean of every strategy
    """

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
    columns_of: Callable[[np.ndarray, np.ndarray], Columns],
    fold: np.ndarray,
    strategies: dict[str, Strategy],
    blind: Sequence[int | None],
) -> Choice:
    """Choose weights by nested cross-validation of out-of-fold scores.

    Parameters
    ----------
    columns_of : the out-of-fold scores of some queries, given as a mask, by some candidates, given
        by number
    fold : the fold of every query
    blind : of every candidate the fold that had no part in proposing it; None: no fold had. A fold
        is valued without the candidates that it may have had a part in
    """
    # by strategy, and for the mean of all: the measure of every query, by weights that were found
    # on the other folds
    nested = {name: np.full(fold.size, np.nan) for name in strategies}
    values = np.full(fold.size, np.nan)
    for k in np.unique(fold).tolist():
        members = np.array([j for j, b in enumerate(blind) if b is None or b == k])
        learned, held_out = columns_of(fold != k, members), columns_of(fold == k, members)
        found = {name: strategy(learned) for name, strategy in strategies.items()}
        for name, weights in found.items():
            nested[name][fold == k] = held_out.values(weights @ held_out.scores)
        weights = mean_of_ways(list(found.values()))
        values[fold == k] = held_out.values(weights @ held_out.scores)
    columns = columns_of(np.ones(fold.size, np.bool_), np.arange(len(blind)))
    weights = mean_of_ways([strategy(columns) for strategy in strategies.values()])
    return Choice(
        weights,
        values,
        columns.mean(weights @ columns.scores),
        {name: mean_of(nested[name]) for name in strategies},
    )


def mean_of_ways(weights: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of the weights of all strategies, without the smallest shares."""
    mean = np.mean(weights, axis=0)
    kept = np.where(mean < min(LEAST_SHARE, mean.max()), 0.0, mean)
    return np.asarray(kept / kept.sum())


def few_strategies(n_candidates: int) -> dict[str, Strategy]:
    """Return the strategies for this number of candidates."""
    if n_candidates == 1:
        return {ALONE: STRATEGIES[ALONE]}
    return {
        name: strategy
        for name, strategy in STRATEGIES.items()
        if LEAST_CANDIDATES.get(name, 1) <= n_candidates
    }
