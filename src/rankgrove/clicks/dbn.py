"""Dynamic Bayesian models: a document attracts a click, and satisfies, or does not, after it."""

from __future__ import annotations

import numpy as np

from rankgrove.clicks.chains import Chain, ChainEvidence, chain_probabilities, rates
from rankgrove.clicks.click_model import ClickModel
from rankgrove.clicks.learned import (
    FIRST_STRENGTH,
    Learned,
    PairPrior,
    PseudoCounts,
    estimated_mean,
    estimated_strength,
)
from rankgrove.clicks.log import ClickLog
from rankgrove.validation import check_choice, check_real

METHODS = ("closed_form", "em")


class SatisfyingModel(ClickModel):
    """Models where a user who has clicked is satisfied with a probability of the pair."""

    method: str
    continuation: float | None
    satisfaction_: np.ndarray

    @property
    def relevance_(self) -> np.ndarray:
        """The probability, per pair, that a user who examines the document is satisfied by it."""
        return self.attractiveness_ * self.satisfaction_

    def satisfaction(self, log: ClickLog) -> np.ndarray:
        """Return the satisfaction of the pairs of a log; the mean for pairs that are new."""
        return self._looked_up(log, self.satisfaction_, float(self.satisfaction_.mean()))

    def _evidence(self, log: ClickLog) -> ChainEvidence:
        return ChainEvidence(log, False, self.n_threads)

    def _learn(
        self,
        evidence: ChainEvidence,
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
        limits: tuple[int, float],
    ) -> Learned:
        sums, stops = evidence.counts(weights, to_first=False)
        last_clicks = np.concatenate([stops, stops[1:]])
        mean = estimated_mean(last_clicks)
        strength = self.prior_strength
        if strength is None:
            strength = estimated_strength(last_clicks, mean)
        if self.method == "closed_form":
            attraction = rates(sums, prior)
            stop = rates(stops, PairPrior(mean, strength).counts(evidence.n_stops))
            exposures = np.concatenate([sums, sums[1:]])
            return Learned(attraction, {"satisfaction": stop}, exposures)
        if start is None:
            begin = Chain(
                rates(sums, PseudoCounts(prior.hits + 0.5, prior.misses + 0.5)),
                rates(stops, PairPrior(mean / 2, FIRST_STRENGTH).counts(evidence.n_stops)),
                np.array([0.9 if self.continuation is None else self.continuation]),
            )
            mean /= 2
        else:
            begin = Chain(*start.state[:3])
            mean = float(start.state[3])
        reached, sums, stops = evidence.learn(
            weights,
            prior,
            PairPrior(mean, strength).counts(evidence.n_stops),
            begin,
            going_fixed=self.continuation is not None,
            max_iterations=limits[0],
            tolerance=limits[1],
        )
        attraction, stop, going = reached.parameters
        shared: dict[str, np.ndarray] = {"satisfaction": stop}
        if self.continuation is None:
            shared["continuation"] = going[0]
        new_mean = estimated_mean(np.concatenate([stops, stops[1:]]))
        return Learned(
            attraction,
            shared,
            np.concatenate([sums, sums[1:]]),
            (attraction, stop, going, np.array(new_mean)),
            reached.history,
            reached.n_iterations,
            reached.converged,
        )

    def _probabilities(
        self, log: ClickLog, attractiveness: np.ndarray, *, conditional: bool
    ) -> np.ndarray:
        going = getattr(self, "continuation_", self.continuation)
        return chain_probabilities(
            log,
            Chain(attractiveness, self.satisfaction(log), np.array([going], np.float64)),
            by_position=False,
            conditional=conditional,
            n_threads=self.n_threads,
        )


class SimplifiedDBN(SatisfyingModel):
    """The simplified dynamic Bayesian model.

    Users examine documents from the top down, click on attractive ones, and stop when a clicked one
    satisfies them, never otherwise (Chapelle and Zhang, 2009).

    Parameters
    ----------
    method : ``"closed_form"``: attractiveness is clicks per impression up to the last click,
        satisfaction is last clicks per click, as published; ``"em"``: what happened below the
        last click is inferred, which is slower, and right where sessions end without satisfaction
    max_iterations : the number of steps of EM at most
    tolerance : EM ends when attractiveness and satisfaction change by less in a step, in the mean
        over impressions and clicks
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : the number of threads; None: all cores. Results do not depend on it

    Attributes
    ----------
    attractiveness_, satisfaction_ : per pair of the log
    relevance_ : their product
    impressions_ : per pair of the log
    prior_mean_, prior_strength_ : of the prior of attractiveness
    history_ : the log likelihood with the prior, after every step of EM that was kept
    n_iterations_, converged_ : of EM

    Examples
    --------
    >>> import rankgrove as rg
    >>> log = rg.ClickLog([1, 1, 2, 2], ["a"] * 4, ["x", "y", "x", "y"], [1, 2, 1, 2], [1, 1, 1, 0])
    >>> model = rg.SimplifiedDBN(prior_strength=0).fit(log)
    >>> model.satisfaction_
    array([0.5, 1. ])
    """

    continuation = 1.0

    _parameters = ("method", "max_iterations", "tolerance", *ClickModel._parameters)

    def __init__(
        self,
        *,
        method: str = "closed_form",
        max_iterations: int = 500,
        tolerance: float = 1e-6,
        prior_strength: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.method = check_choice("method", type(self).__name__, method, METHODS)
        self._set_up(
            max_iterations=max_iterations,
            tolerance=tolerance,
            prior_strength=prior_strength,
            n_threads=n_threads,
        )


class DBN(SatisfyingModel):
    """The dynamic Bayesian model.

    As the simplified one, but a user who is not satisfied goes on with a probability of
    ``continuation_`` only; learned by EM, with what users did below the last click inferred
    exactly.

    Parameters
    ----------
    continuation : the probability of going on; None: it is learned
    max_iterations : the number of steps of EM at most
    tolerance : EM ends when the continuation, and attractiveness and satisfaction in the mean over
        impressions and clicks, change by less in a step
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : the number of threads; None: all cores. Results do not depend on it

    Attributes
    ----------
    attractiveness_, satisfaction_ : per pair of the log
    relevance_ : their product
    continuation_ : the probability of going on
    impressions_ : per pair of the log
    prior_mean_, prior_strength_ : of the prior of attractiveness
    history_ : the log likelihood with the prior, after every step of EM that was kept
    n_iterations_, converged_ : of EM

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, seed=1)
    >>> log = rg.simulate_clicks(
    ...     data, data.column(1), model="dbn", continuation=0.8, sessions=20_000, noise=1.0
    ... )
    >>> round(rg.DBN().fit(log).continuation_, 1)
    0.8
    """

    method = "em"
    continuation_: float

    _parameters = ("continuation", "max_iterations", "tolerance", *ClickModel._parameters)

    def __init__(
        self,
        *,
        continuation: float | None = None,
        max_iterations: int = 500,
        tolerance: float = 1e-6,
        prior_strength: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        if continuation is not None:
            check_real("continuation", type(self).__name__, continuation, above=0, high=1)
        self.continuation = continuation
        self._set_up(
            max_iterations=max_iterations,
            tolerance=tolerance,
            prior_strength=prior_strength,
            n_threads=n_threads,
        )
