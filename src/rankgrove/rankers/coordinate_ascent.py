"""Coordinate ascent: the weights of features, one after the other, straight on a measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from rankgrove.combine.coordinate import SEARCHES, Coordinates, spread
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.random import generator
from rankgrove.rankers.linear_data import LinearData
from rankgrove.rankers.linear_rounds import LinearRoundsRanker, Round
from rankgrove.scoring.linear import score_linear
from rankgrove.validation import check_choice, check_integer, check_real


class CoordinateAscent(LinearRoundsRanker):
    """A linear ranker whose weights are set one after the other to what is best for a measure.

    Metzler and Croft (2007), with a line search that is exact: the measure along one weight is a
    step function, and the best of all its stretches is taken. The measure on the training data
    never falls within a restart; the best restart is kept. Weights' sizes add up to 1.

    Parameters
    ----------
    measure : what to maximise: any measure, also one of your own
    search : ``"exact"``, the best of all values of a weight; ``"steps"``, as RankLib: steps of
        0.001 that double, to either side, and 0
    n_restarts : how many times to begin: with even weights, then with random ones
    n_iterations : most passes over all features, for each of them
    tolerance : a restart ends with a pass that gains no more than this
    scaling : of features: ``"standard"`` (mean 0 and deviation 1 over the training data; sparse
        ones are only divided), ``"query"`` (to [0, 1] within every query), ``"percentile"`` (the
        share of the query's documents that are lower), or None
    random_state : seed of the first weights, and of the order of features in a pass
    n_threads : threads to use; None: all cores. The model does not depend on it
    progress : show a progress bar

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights. Of the best pass on validation data, or else on the
        training data
    objective_ : the measure on the training data after every pass, restart by restart
    history_ : validation data set -> measure -> its value after every pass
    best_round_ : the pass that is best on validation data, or None
    n_rounds_ : number of passes
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train = rg.make_web(50, n_docs=20, n_features=8, seed=1)
    >>> model = rg.CoordinateAscent("ndcg@5", n_restarts=2).fit(train)
    >>> rg.evaluate(model, train, "ndcg@5").mean["ndcg@5"] == max(model.objective_)
    True
    """

    kind: ClassVar[str] = "coordinate-ascent"
    keeps_highest: ClassVar[bool] = True
    unit: ClassVar[str] = "passes"

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        search: str = "exact",
        n_restarts: int = 5,
        n_iterations: int = 25,
        tolerance: float = 0.001,
        scaling: str | None = "standard",
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.search = search
        self.n_restarts = n_restarts
        self.n_iterations = n_iterations
        self.tolerance = tolerance
        self.scaling = scaling
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        check_choice("search", owner, self.search, SEARCHES)
        check_integer("n_restarts", owner, self.n_restarts, low=1)
        check_integer("n_iterations", owner, self.n_iterations, low=1)
        check_real("tolerance", owner, self.tolerance, low=0.0)
        check_integer("random_state", owner, self.random_state, low=0)

    def _most_rounds(self) -> int:
        return self.n_restarts * self.n_iterations

    def _rounds(self, data: LinearData) -> Iterator[Round]:
        line = self._coordinates(data)
        used = np.flatnonzero(line.spreads > 0.0)
        for restart in range(self.n_restarts):
            draw = generator(self.random_state, "coordinate ascent", restart)
            weights = np.zeros(line.spreads.size)
            weights[used] = 1.0 if restart == 0 else draw.uniform(-1.0, 1.0, used.size)
            weights /= np.abs(weights).sum()
            value = line.value(weights)
            for _ in range(self.n_iterations):
                before = value
                for j in draw.permutation(used).tolist():
                    weights, value = line.move(weights, value, j, self.search)
                yield Round(weights, value)
                if value - before <= self.tolerance:
                    break

    def _coordinates(self, data: LinearData) -> Coordinates:
        target = target_measure(self.measure)
        if data.query_weight is not None:
            raise DataError(
                f"{type(self).__name__} counts all queries alike: its exact search adds up changes "
                "of the measure over them. Leave query_weight out of the data, or take "
                "rg.SmoothRank or rg.AdaRank, which heed it."
            )
        prepared = target.prepare(data.labels, data.query_ptr, self.n_threads)
        if prepared.is_fixed.all():
            raise DataError(
                f"{type(self).__name__}: no order changes {target} of any query: there is nothing "
                "to learn. Check the labels (and 'relevant', for binary measures)."
            )
        columns = data.columns()
        n_columns = int(data.features.shape[1])
        spreads = np.array([spread(columns(j), data.query_ptr) for j in range(n_columns)])
        if not spreads.any():
            raise DataError(
                f"{type(self).__name__}: no feature tells any two documents of a query apart."
            )

        def scores(weights: np.ndarray) -> np.ndarray:
            return score_linear(data.linear(weights), data.features, data.rows, self.n_threads)

        return Coordinates(prepared, scores, columns, spreads, self.n_threads)
