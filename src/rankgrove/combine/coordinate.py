"""Coordinate ascent: one weight of a linear function at a time, by an exact sweep or by steps.

As a function of one weight every score is a straight line, so the mean of a measure is a step
function whose best interval a sweep finds exactly (LambdaMART paper, section 4). The line is
(1 - alpha) rest + alpha (+-column): weights of either sign, up to the column alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankgrove.measures.base import PreparedMeasure, exact_mean, rank
from rankgrove.sweep.sweep import sweep

SEARCHES = ("exact", "steps")
FIRST_STEP = 0.001  # as in RankLib; it doubles
MOST_STEPS = 25

Column = Callable[[int], np.ndarray]
Scores = Callable[[np.ndarray], np.ndarray]


def spread(scores: np.ndarray, query_ptr: np.ndarray) -> float:
    """Return the deviation of scores from the means of their queries; 0 if all are equal there."""
    sizes = np.diff(query_ptr)
    starts = query_ptr[:-1]
    if np.all(np.maximum.reduceat(scores, starts) == np.minimum.reduceat(scores, starts)):
        return 0.0
    means = np.add.reduceat(scores, starts) / sizes
    return float(np.std(scores - np.repeat(means, sizes)))


class Coordinates:
    """A linear function of columns, and the measure of its rankings.

    Parameters
    ----------
    prepared : the measure on the labels
    scores : function from weights to one score per row, in query order, rounded as in the model
    column : function from the number of a weight to its column
    spreads : the spread of every column; weights of columns with spread 0 are not changed
    """

    def __init__(
        self,
        prepared: PreparedMeasure,
        scores: Scores,
        column: Column,
        spreads: np.ndarray,
        n_threads: int | None = None,
    ) -> None:
        self.prepared = prepared
        self.scores = scores
        self.column = column
        self.spreads = spreads
        self.n_threads = n_threads

    def value(self, weights: np.ndarray) -> float:
        """Return the mean of the measure for the given weights."""
        return self._mean(self.scores(weights))

    def _mean(self, scores: np.ndarray) -> float:
        ranking = rank(scores, self.prepared.query_ptr, self.n_threads)
        return exact_mean(self.prepared.values(ranking, self.n_threads))

    def move(
        self, weights: np.ndarray, value: float, j: int, search: str
    ) -> tuple[np.ndarray, float]:
        """Return weights with the j-th at its best, and the value there, which is never lower.

        The absolute values of the weights add up to 1.
        """
        if self.spreads[j] == 0.0:
            return weights, value
        tried = self._swept(weights, value, j) if search == "exact" else self._stepped(weights, j)
        if tried is None or not tried.any():
            return weights, value
        tried = tried / np.abs(tried).sum()
        reached = self.value(tried)  # rounded as in the model
        return (tried, reached) if reached > value else (weights, value)

    def _swept(self, weights: np.ndarray, value: float, j: int) -> np.ndarray | None:
        """Return the best weights of the whole line, or None if none is better than `value`."""
        others = weights.copy()
        others[j] = 0.0
        rest = self.scores(others)
        width = spread(rest, self.prepared.query_ptr)
        along, column = np.zeros(weights.size), self.column(j)
        if width == 0.0:  # only this column orders documents
            along[j] = 1.0
            return max(along, -along, key=self.value)
        best = None
        for sign in (1.0, -1.0):
            # Both on the same scale, so that the best intervals are not all at one end.
            best_point = sweep(
                self.prepared,
                rest / width,
                column * (sign / self.spreads[j]),
                points=False,
                keep_curve=False,
                n_threads=self.n_threads,
            )
            if best_point.value > value:
                along[j] = sign * best_point.alpha / self.spreads[j]
                best, value = (1.0 - best_point.alpha) / width * others + along, best_point.value
        return best

    def _stepped(self, weights: np.ndarray, j: int) -> np.ndarray:
        """Return the best of the weights reached by doubling steps to either side, and of 0."""
        scores, column = self.scores(weights), self.column(j)
        size = abs(weights[j])
        first = FIRST_STEP if size == 0.0 or 0.5 * size >= FIRST_STEP else FIRST_STEP * size
        reach = first * (2.0 ** np.arange(1, MOST_STEPS + 1) - 1.0)  # 1, 1 + 2, 1 + 2 + 4, ...
        moves = np.concatenate([reach, -reach, [-weights[j]]])
        values = [self._mean(scores + move * column) for move in moves.tolist()]
        tried = weights.copy()
        tried[j] += moves[int(np.argmax(values))]
        return tried
