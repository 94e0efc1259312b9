"""SmoothRank: gradient ascent on a measure that is smoothed less and less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np

from rankgrove.combine.coordinate import spread
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.objectives.smooth import SmoothMeasure, check_smooth
from rankgrove.rankers.linear_data import LinearData
from rankgrove.rankers.linear_rounds import LinearRoundsRanker, Round
from rankgrove.svm.design import Design
from rankgrove.validation import check_integer, check_real, refuse

# Weights -> what to make small, and its derivatives
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
REGRESSION_STEPS = 200
RIDGE = 1e-6  # of the regression: only that features which say the same share their weight


def minimised(objective: Objective, start: np.ndarray, n_steps: int) -> np.ndarray:
    """Return weights that a quasi-Newton search finds: never with a higher value than `start`."""
    from scipy.optimize import minimize

    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": n_steps})
    return np.asarray(found.x)


def regression(
    design: Design, target: np.ndarray, weight: np.ndarray, n_threads: int | None = None
) -> np.ndarray:
    """Return the weights of the least-squares fit to a target; its intercept is left out."""
    share = weight / weight.sum()

    def objective(given: np.ndarray) -> tuple[float, np.ndarray]:
        w, intercept = given[:-1], given[-1]
        away = design.scores(w, n_threads) + intercept - target
        pull = share * away
        value = 0.5 * float(np.sum(pull * away)) + 0.5 * RIDGE * float(w @ w)
        slope = design.combine(pull, n_threads) + RIDGE * w
        return value, np.append(slope, np.sum(pull))

    return minimised(objective, np.zeros(design.n_columns + 1), REGRESSION_STEPS)[:-1]


class SmoothRank(LinearRoundsRanker):
    """A linear ranker that climbs a smoothed measure, smoothed less and less (Chapelle, Wu 2010).

    In the measure's sum over ranks, the gain at a rank becomes a mean over all documents, weighted
    by exp(-(s_i - s_rank)^2 / sigma). The weights begin at a least-squares fit to the gains, w0,
    scaled so that scores deviate by 1 from their queries' means; at every sigma a quasi-Newton
    search maximises the smoothed measure - l2 |w - w0|^2, and then sigma is halved.

    Parameters
    ----------
    measure : what to maximise: ``ndcg``, ``dcg``, ``meanndcg``, ``p``, ``recall`` or ``auc``, with
        a cutoff or without
    sigma : the first and the last smoothing; it is halved from round to round
    l2 : how strongly the weights are held at the regression's
    n_steps : most steps of the search at one sigma
    early_stopping : stop when so many rounds have not bettered the validation measure
    scaling : of features: ``"standard"`` (mean 0 and deviation 1 over the training data; sparse
        ones are only divided), ``"query"`` (to [0, 1] within every query), ``"percentile"`` (the
        share of the query's documents that are lower), or None
    n_threads : threads to use; None: all cores. The model does not depend on it
    progress : show a progress bar

    Attributes
    ----------
    linear_ : the model; ``coef_`` its weights. Of the best round on validation data, or the last
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

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        sigma: tuple[float, float] = (64.0, 1.0 / 64.0),
        l2: float = 0.01,
        n_steps: int = 20,
        early_stopping: int | None = None,
        scaling: str | None = "standard",
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.sigma = sigma
        self.l2 = l2
        self.n_steps = n_steps
        self.early_stopping = early_stopping
        self.scaling = scaling
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        check_smooth(target_measure(self.measure), owner)
        self._sigmas()
        check_real("l2", owner, self.l2, low=0.0)
        check_integer("n_steps", owner, self.n_steps, low=1)

    def _sigmas(self) -> list[float]:
        """Return the smoothing of every round."""
        owner = type(self).__name__
        if not isinstance(self.sigma, tuple | list) or len(self.sigma) != 2:
            refuse("sigma", owner, "two numbers, the first and the last smoothing", self.sigma)
        high, low = (check_real("sigma", owner, one, above=0.0) for one in self.sigma)
        if low > high:
            refuse("sigma", owner, "two numbers, the larger one first", self.sigma)
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
