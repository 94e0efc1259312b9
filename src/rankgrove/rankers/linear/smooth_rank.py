"""SmoothRank: gradient ascent on a measure whose smoothing is reduced step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np

from rankgrove.combine.coordinate import spread
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.objectives.smooth import SmoothMeasure, check_smooth
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import declares_parameters, integer, parameter, real
from rankgrove.rankers.linear.data import LinearData
from rankgrove.rankers.linear.rounds import LinearRoundsRanker, Round
from rankgrove.svm.design import Design
from rankgrove.validation import check_real, refuse

# Weights -> the value to minimise, and its derivatives
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
REGRESSION_STEPS = 200
RIDGE = 1e-6  # of the regression: equal features get equal weights


def _two_sigmas(name: str, owner: str, value: object) -> tuple[float, float]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        refuse(name, owner, "two numbers, the first and the last smoothing", value)
    high, low = (check_real(name, owner, number, above=0.0) for number in value)
    if low > high:
        refuse(name, owner, "two numbers, the larger one first", value)
    return high, low


def minimised(objective: Objective, start: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the weights of a quasi-Newton search; their value is at most that of `start`."""
    from scipy.optimize import minimize

    optimum = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": n_steps})
    return np.asarray(optimum.x)


def regression(
    design: Design, target: np.ndarray, weight: np.ndarray, n_threads: int | None = None
) -> np.ndarray:
    """Return the weights of the least-squares fit to a target, without its intercept."""
    share = weight / weight.sum()

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        w, intercept = weights[:-1], weights[-1]
        away = design.scores(w, n_threads) + intercept - target
        pull = share * away
        value = 0.5 * float(np.sum(pull * away)) + 0.5 * RIDGE * float(w @ w)
        slope = design.combine(pull, n_threads) + RIDGE * w
        return value, np.append(slope, np.sum(pull))

    return minimised(objective, np.zeros(design.n_columns + 1), REGRESSION_STEPS)[:-1]


@declares_parameters
class SmoothRank(LinearRoundsRanker):
    """A linear ranker that maximises a measure with less and less smoothing (Chapelle, Wu 2010).

    In the measure's sum over ranks, the gain at a rank becomes a mean over all documents, weighted
    by exp(-(s_i - s_rank)^2 / sigma). The weights start from a least-squares fit to the gains, w0,
    scaled so that scores have a standard deviation of 1 within queries; at every sigma a
    quasi-Newton search maximises the smoothed measure - l2 |w - w0|^2, and then sigma is halved.

    Attributes
    ----------
    linear_ : the model of the best round on validation data, or of the last; ``coef_`` its weights
    objective_ : the smoothed measure on the training data after every round
    history_ : validation data set -> measure -> its value after every round
    best_round_ : the round that is best on validation data, or None; the first is the regression
    n_rounds_ : number of rounds
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.SmoothRank("ndcg@5").fit(train)
    >>> rg.evaluate(model, test, "ndcg@5").mean["ndcg@5"] > 0.4
    True
    """

    kind: ClassVar[str] = "smoothrank"

    measure: str | Measure = parameter(
        "ndcg@10",
        "measure to maximise: ``ndcg``, ``dcg``, ``meanndcg``, ``p``, ``recall`` or ``auc``, with "
        "or without a cutoff",
    )
    sigma: tuple[float, float] = parameter(
        (64.0, 1.0 / 64.0),
        "the first and the last smoothing; it is halved in every round",
        _two_sigmas,
    )
    l2: float = parameter(
        0.01, "weight of the squared distance from the regression's weights", real(low=0.0)
    )
    n_steps: int = parameter(
        20, "maximum number of steps of the search at one sigma", integer(low=1)
    )
    early_stopping: int | None = shared.EARLY_STOPPING
    scaling: str | None = shared.SCALING
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS

    def _check_together(self) -> None:
        super()._check_together()
        check_smooth(target_measure(self.measure), type(self).__name__)

    def _sigmas(self) -> list[float]:
        """Return the smoothing of every round."""
        high, low = _two_sigmas("sigma", type(self).__name__, self.sigma)
        return [high / 2.0**k for k in range(int(np.floor(np.log2(high / low))) + 1)]

    def _most_rounds(self) -> int:
        return 1 + len(self._sigmas())

    def _rounds(self, data: LinearData) -> Iterator[Round]:
        threads, design = self.n_threads, data.design()
        smooth = SmoothMeasure(
            target_measure(self.measure), data.labels, data.query_ptr, data.query_weight, threads
        )
        weight = np.ones(data.labels.size)
        if data.query_weight is not None:
            weight *= np.repeat(data.query_weight, np.diff(data.query_ptr))
        w = w0 = self._first(design, smooth.prepared.gain, weight, data.query_ptr)
        sigmas = self._sigmas()
        yield Round(w, smooth.value_and_gradient(design.scores(w, threads), sigmas[0])[0])
        for sigma in sigmas:

            def objective(w: np.ndarray, sigma: float = sigma) -> tuple[float, np.ndarray]:
                value, slope = smooth.value_and_gradient(design.scores(w, threads), sigma)
                away = w - w0
                cost = -value + self.l2 * float(away @ away)
                return cost, 2.0 * self.l2 * away - design.combine(slope, threads)

            w = minimised(objective, w, self.n_steps)
            yield Round(w, smooth.value_and_gradient(design.scores(w, threads), sigma)[0])

    def _first(
        self, design: Design, gain: np.ndarray, weight: np.ndarray, query_ptr: np.ndarray
    ) -> np.ndarray:
        """Return the regression's weights, scaled so that scores have spread 1 within queries."""
        w = regression(design, gain, weight, self.n_threads)
        width = spread(design.scores(w, self.n_threads), query_ptr)
        if width == 0.0:
            raise DataError(
                f"{type(self).__name__}: no feature tells any two documents of a query apart."
            )
        return w / width
