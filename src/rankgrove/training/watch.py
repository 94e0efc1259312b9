"""Validation during training: every round's measures, the best round, and patience."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rankgrove.data.binning import BinnedMatrix
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.partition import leaves_of
from rankgrove.measures.base import Measure, PreparedMeasure, exact_mean, rank
from rankgrove.model.tree import Tree

History = dict[str, dict[str, list[float]]]
MOST_EXTRA_ROUNDS = 250  # after the best one, where some overfitting is tolerated


def tolerated_rounds(values: Sequence[float], best: int, top: float, tolerance: float) -> int:
    """Return the last round before the value falls too far below the best.

    With a tolerance of 0.02, rounds after the best are kept until the value has dropped by more
    than 2 %, at most MOST_EXTRA_ROUNDS of them (BL-MART paper, section 3.5.2).

    Parameters
    ----------
    values : one per round
    best, top : the best round, counted from 1, and its value
    tolerance : share of `top`
    """
    after = values[best : best + MOST_EXTRA_ROUNDS]
    lowest = top - tolerance * abs(top)
    fallen = [k for k, value in enumerate(after) if value < lowest]
    return best + (fallen[0] if fallen else len(after))


class Watched:
    """One data set that is measured every round: rows in query order, and their scores.

    Parameters
    ----------
    binned : the features that trees see; None: scores do not come from trees
    labels, query_ptr : the rows
    measures : measures by name
    scores : the scores before training, of shape (columns, rows)
    ranked : function that combines the columns into the score that ranks; None: one column

    Attributes
    ----------
    offsets : function that returns what is added to the scores for the measures, one number per
        row; None: nothing
    """

    offsets: Callable[[], np.ndarray] | None = None
    _gains: Callable[[], np.ndarray] | None = None

    def __init__(
        self,
        binned: BinnedMatrix | None,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        measures: Mapping[str, Measure],
        scores: np.ndarray,
        ranked: Callable[[np.ndarray], np.ndarray] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.binned = binned
        self.labels = labels
        self.query_ptr = query_ptr
        self.scores = scores
        self.ranked = ranked
        self.measures: dict[str, PreparedMeasure] = {
            name: measure.prepare(labels, query_ptr, n_threads)
            for name, measure in measures.items()
        }
        self.n_threads = n_threads

    def add(self, tree: Tree, column: int = 0) -> None:
        """Add a tree's values to the scores."""
        assert self.binned is not None
        leaf_of = leaves_of(tree, self.binned, n_threads=self.n_threads)
        add_leaf_values(self.scores[column], tree.value, leaf_of, n_threads=self.n_threads)

    def weigh_gains(self, gains: Callable[[], np.ndarray]) -> None:
        """Give rows these gains, times that of a relevant document, whenever measures are taken."""
        starts, sizes = self.query_ptr[:-1], np.diff(self.query_ptr)
        self._gains = gains
        self._units = {
            name: np.repeat(np.maximum.reduceat(prepared.gain, starts), sizes)
            for name, prepared in self.measures.items()
        }

    def values(self) -> dict[str, float]:
        """Return the mean of every measure at the current scores."""
        scores = self.scores[0] if self.ranked is None else self.ranked(self.scores)
        if self.offsets is not None:
            scores = scores + self.offsets()
        if self._gains is not None:
            gains = self._gains()
            for name, unit in self._units.items():
                self.measures[name].gain = unit * gains
        ranking = rank(scores, self.query_ptr, self.n_threads)
        return {
            name: exact_mean(prepared.values(ranking, self.n_threads))
            for name, prepared in self.measures.items()
        }


class Watch:
    """All watched data sets, their history, the best round, and early stopping.

    The first measure of the first data set decides. Rounds are counted from 1. Where `start` holds
    the values before the first tree, 0 can be the best round: then no tree improved them.

    Parameters
    ----------
    watched : the data sets by name
    patience : number of rounds without a better value after which to stop; None: never
    history : history of the rounds already done
    start : data set -> measure -> its value before the first tree; None: at least one tree is kept
    """

    def __init__(
        self,
        watched: Mapping[str, Watched],
        patience: int | None = None,
        history: History | None = None,
        start: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self.watched = dict(watched)
        self.patience = patience
        self.start = start
        self.history: History = {
            name: {measure: [] for measure in watched.measures}
            for name, watched in self.watched.items()
        }
        if history is not None:
            self.history = {
                n: {m: list(v) for m, v in measures.items()} for n, measures in history.items()
            }

    def look(self, trees: Sequence[Tree]) -> None:
        """Add the values of a round's trees, one per column, and measure."""
        for watched in self.watched.values():
            for column, tree in enumerate(trees):
                watched.add(tree, column)
        self.record()

    def record(self) -> None:
        """Measure all current scores, as the values of one more round."""
        for name, watched in self.watched.items():
            for measure, value in watched.values().items():
                self.history[name][measure].append(value)

    def catch_up(self, trees: Sequence[Tree]) -> None:
        """Add the trees of rounds that are already in the history."""
        for watched in self.watched.values():
            for t, tree in enumerate(trees):
                watched.add(tree, t % len(watched.scores))

    def cut(self, rounds: int) -> None:
        """Remove all rounds after the first `rounds` rounds."""
        self.history = {
            name: {measure: values[:rounds] for measure, values in measures.items()}
            for name, measures in self.history.items()
        }

    @property
    def deciding(self) -> list[float] | None:
        """The values of the deciding measure, one per round, or None without validation data."""
        for measures in self.history.values():
            for values in measures.values():
                return values
        return None

    @property
    def best_round(self) -> int | None:
        """The earliest round with the best value."""
        before = self._before_the_first()
        values = [*before, *(self.deciding or [])]
        return int(np.argmax(values)) + 1 - len(before) if values else None

    @property
    def best_value(self) -> float | None:
        """The best value of the deciding measure."""
        return max([*self._before_the_first(), *(self.deciding or [])], default=None)

    def rounds_to_keep(self, tolerance: float) -> int | None:
        """Return the best round, or the last one before the value falls too far below the best."""
        best, top = self.best_round, self.best_value
        if best is None or top is None or tolerance == 0.0:
            return best
        return tolerated_rounds(self.deciding or [], best, top, tolerance)

    def _before_the_first(self) -> list[float]:
        for values in (self.start or {}).values():
            return [*values.values()][:1]
        return []

    @property
    def out_of_patience(self) -> bool:
        """Whether the best round lies `patience` rounds back."""
        best = self.best_round
        if self.patience is None or best is None or self.deciding is None:
            return False
        return len(self.deciding) - best >= self.patience
