"""Dynamic Bayesian models: a document attracts a click, and satisfies, or does not, after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rankgrove.clicks.chains import Chain, ChainEvidence, ChainModel, rates
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
from rankgrove.clicks.stop_posterior import beta_prior, stop_posterior
from rankgrove.validation import check_choice, check_real

METHODS = ("closed_form", "em")
TURNS = 30  # EM, and the posterior of satisfaction, at most so many times
SETTLED = 5e-4  # mean change of probabilities of stopping that ends them

NO_COUNTS = PseudoCounts(np.zeros(1), np.zeros(1))


class SatisfyingModel(ChainModel):
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
        if self.method == "closed_form":
            return self._closed_form(evidence, weights, prior, start)
        if start is None:
            chain, stop_prior, seed, fixed = *self._begin(evidence, weights, prior), None, False
        else:
            chain, stop_prior = Chain(*start.state[:3]), start.state[3]
            seed, fixed = start.seed, start.priors_fixed
        known = weights if seed is None else np.ones(weights.size)  # draws need no weights
        exposures = evidence.exposures(known, chain)
        stops = stop_posterior(exposures, known, stop_prior, chain.stop, self.n_threads)
        n_iterations, settled = 0, False
        for _ in range(TURNS):
            before = stops.without
            reached, _, _ = evidence.learn(
                *(weights, prior, NO_COUNTS, chain._replace(stop=stops.stop)),
                going_fixed=self.continuation is not None,
                last_stop=stops.without,
                max_iterations=limits[0],
                tolerance=limits[1],
            )
            chain = Chain(*reached.parameters)
            exposures = evidence.exposures(known, chain)
            stops = stop_posterior(
                *(exposures, known, stops.prior, chain.stop, self.n_threads),
                learns_prior=self.prior_strength is None and not fixed,
            )
            n_iterations += reached.n_iterations
            settled = bool(np.abs(stops.without - before).mean() < max(limits[1], SETTLED))
            if settled:
                break
        chain = chain._replace(stop=stops.stop)
        if seed is not None:
            stops = stop_posterior(
                *(exposures, known, stops.prior, chain.stop, self.n_threads), seed=seed
            )
        shared = {"satisfaction": stops.stop}
        if self.continuation is None:
            shared["continuation"] = chain.going[0]
        return Learned(
            chain.attraction,
            shared,
            exposures.pairs,
            (*chain, stops.prior),
            reached.history,
            n_iterations,
            reached.converged and settled,
        )

    def _closed_form(
        self,
        evidence: ChainEvidence,
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
    ) -> Learned:
        """Return attractiveness from clicks per examination, satisfaction from last clicks."""
        sums, stops = evidence.counts(weights, to_first=False)
        if start is None:
            last_clicks = np.concatenate([stops, stops[1:]])
            mean, strength = estimated_mean(last_clicks), self.prior_strength
            if strength is None:
                strength = estimated_strength(last_clicks, mean)
            stop_prior = PairPrior(mean, strength).counts(evidence.n_stops)
        else:
            stop_prior = PseudoCounts(*start.state[3:])
        chain = Chain(rates(sums, prior), rates(stops, stop_prior), np.ones(1))
        exposures = np.concatenate([sums, sums[1:]])
        shared = {"satisfaction": chain.stop}
        return Learned(chain.attraction, shared, exposures, (*chain, *stop_prior))

    def _with_random_priors(
        self, learned: Learned, draw: Callable[[PseudoCounts, str], PseudoCounts], seed: int
    ) -> Learned:
        if self.method == "em":
            return replace(learned, seed=seed)
        stop_prior = draw(PseudoCounts(*learned.state[3:]), "stops: ")
        return replace(learned, state=(*learned.state[:3], *stop_prior))

    def _begin(
        self, evidence: ChainEvidence, weights: np.ndarray, prior: PseudoCounts
    ) -> tuple[Chain, np.ndarray]:
        """Return where EM starts, and the prior of satisfaction as it looks from there.

        A click with another one below did not satisfy. That one may be missing for other reasons,
        so last clicks do not show satisfaction; but their opposite has the form of a click in the
        position-based model: (1 - satisfaction) x the probability of another click.
        """
        sums, _ = evidence.counts(weights, to_first=False)
        chain = Chain(
            rates(sums, PseudoCounts(prior.hits + 0.5, prior.misses + 0.5)),
            np.full(evidence.n_stops, 0.5),
            np.array([0.9 if self.continuation is None else self.continuation]),
        )
        mean = 1 - estimated_mean(evidence.exposures(weights, chain).stops)
        strength = FIRST_STRENGTH if self.prior_strength is None else self.prior_strength
        return chain, beta_prior(mean, strength)

    def _chain(self, log: ClickLog, attractiveness: np.ndarray) -> tuple[Chain, bool]:
        going = getattr(self, "continuation_", self.continuation)
        return Chain(attractiveness, self.satisfaction(log), np.array([going], np.float64)), False


class SimplifiedDBN(SatisfyingModel):
    """The simplified dynamic Bayesian model.

    Users examine documents from the top down, click on attractive ones, and stop when a clicked one
    satisfies them, never otherwise (Chapelle and Zhang, 2009).

    Parameters
    ----------
    method : ``"closed_form"``: attractiveness is clicks per impression up to the last click,
        satisfaction is last clicks per click, as published, which is too high: a last click need
        not have satisfied, and its intervals do not know that; ``"em"``: what happened below the
        last click is inferred, which is slower and has no such bias
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
    history_ : the log likelihood with the prior, after every step of the last turn of EM
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

    As the simplified one, but a user who is not satisfied continues with the probability
    ``continuation_``; learned by EM, with what users did below the last click inferred
    exactly. EM takes turns with satisfaction, which is the mean given all clicks, with a prior that
    is learned from all pairs (:mod:`rankgrove.clicks.stop_posterior`).

    Parameters
    ----------
    continuation : the probability of continuing; None: it is learned
    max_iterations : the number of steps of EM at most
    tolerance : EM ends when the continuation, and attractiveness and satisfaction in the mean over
        impressions and clicks, change by less in a step
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : the number of threads; None: all cores. Results do not depend on it

    Attributes
    ----------
    attractiveness_, satisfaction_ : per pair of the log
    relevance_ : their product
    continuation_ : the probability of continuing
    impressions_ : per pair of the log
    prior_mean_, prior_strength_ : of the prior of attractiveness
    history_ : the log likelihood with the prior, after every step of the last turn of EM
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
