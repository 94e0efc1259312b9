"""Coordinate ascent: the weights of features, optimised one after the other for a measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from rankgrove.combine.coordinate import SEARCHES, Coordinates, spread
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.random import generator
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import choice, declares_parameters, integer, parameter, real
from rankgrove.rankers.linear.data import LinearData
from rankgrove.rankers.linear.rounds import LinearRoundsRanker, Round
from rankgrove.scoring.linear_scores import score_linear


@declares_parameters
class CoordinateAscent(LinearRoundsRanker):
    """A linear ranker whose weights are set one after the other to the best value for a measure.

    Metzler and Croft (2007), with an exact line search: the measure along one weight is a step
    function, and the best of all its steps is taken. The measure on the training data never falls
    within a restart; the best restart is kept. The absolute weights add up to 1.

    Attributes
    ----------
    linear_ : the model of the best pass on validation data, or else on the training data; ``coef_``
        its weights
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

    measure: str | Measure = parameter(
        "ndcg@10", "measure to maximise, or its name; also a measure of your own"
    )
    search: str = parameter(
        "exact",
        '``"exact"``: the best of all values of a weight; ``"steps"``, as in RankLib: 0, and steps '
        "to either side that start at 0.001 and double",
        choice(SEARCHES),
    )
    n_restarts: int = parameter(
        5,
        "number of restarts: the first from equal weights, the others from random ones",
        integer(low=1),
    )
    n_iterations: int = parameter(
        25, "maximum number of passes over all features, for each restart", integer(low=1)
    )
    tolerance: float = parameter(
        0.001, "a restart ends with a pass that gains no more than this", real(low=0.0)
    )
    scaling: str | None = shared.SCALING
    random_state: int = shared.RANDOM_STATE(
        0, "seed of the first weights, and of the order of features in a pass"
    )
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS

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
                f"{type(self).__name__} gives all queries the same weight: its exact search adds "
                "up changes of the measure over them. Leave query_weight out of the data, or use "
                "rg.SmoothRank or rg.AdaRank, which support it."
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
