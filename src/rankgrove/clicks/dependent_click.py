"""The dependent click model: after a click users go on with a probability of the position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rankgrove.clicks.chains import Chain, ChainEvidence, ChainModel, rates
from rankgrove.clicks.click_model import ClickModel
from rankgrove.clicks.learned import Learned, PseudoCounts
from rankgrove.clicks.log import ClickLog
from rankgrove.validation import check_choice

ONE = np.ones(1)
METHODS = ("em", "closed_form")


class DependentClick(ChainModel):
    """The dependent click model.

    Users examine documents from the top down. After a click they continue with a probability that
    depends on the position, otherwise always (Guo and others, 2009).

    Parameters
    ----------
    method : ``"em"``: what users did below the last click is inferred; ``"closed_form"``: they are
        taken to stop there, which is quick, but overestimates attractiveness and stops
    max_iterations : the number of steps of EM at most
    tolerance : EM ends when continuations, and attractivenesses in the mean over impressions,
        change by less in a step
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : the number of threads; None: all cores. Results do not depend on it

    Attributes
    ----------
    attractiveness_ : per pair of the log
    impressions_ : per pair of the log
    continuation_ : per position, from 1: the probability of continuing after a click
    prior_mean_, prior_strength_ : of the prior of pairs
    history_ : the log likelihood with the prior, after every step of EM that was kept
    n_iterations_, converged_ : of EM

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, seed=1)
    >>> log = rg.simulate_clicks(
    ...     data, data.column(1), model="dependent-click", continuation=0.6, sessions=20_000
    ... )
    >>> rg.DependentClick().fit(log).continuation_[:3].round(1)
    array([0.6, 0.6, 0.6])
    """

    continuation_: np.ndarray

    _parameters = ("method", "max_iterations", "tolerance", *ClickModel._parameters)

    def __init__(
        self,
        *,
        method: str = "em",
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

    def _evidence(self, log: ClickLog) -> ChainEvidence:
        return ChainEvidence(log, True, self.n_threads)

    def _learn(
        self,
        evidence: ChainEvidence,
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
        limits: tuple[int, float],
    ) -> Learned:
        ones = np.ones(evidence.n_stops)
        smooth = PseudoCounts(ones, ones) if start is None else PseudoCounts(*start.state[3:])
        if start is None or self.method == "closed_form":
            sums, stops = evidence.counts(weights, to_first=False)
            attraction, stop = rates(sums, prior), rates(stops, smooth)
            if self.method == "closed_form":
                exposures = np.concatenate([sums, sums[1:]])
                state = (attraction, stop, ONE, *smooth)
                return Learned(attraction, {"continuation": 1 - stop}, exposures, state)
            attraction = rates(sums, PseudoCounts(prior.hits + 0.5, prior.misses + 0.5))
            begin = Chain(attraction, stop, ONE)
        else:
            begin = Chain(*start.state[:3])
        reached, _, _ = evidence.learn(
            weights,
            prior,
            smooth,
            begin,
            going_fixed=True,
            max_iterations=limits[0],
            tolerance=limits[1],
        )
        return Learned(
            reached.parameters[0],
            {"continuation": 1 - reached.parameters[1]},
            evidence.exposures(weights, Chain(*reached.parameters)).pairs,
            (*reached.parameters, *smooth),
            reached.history,
            reached.n_iterations,
            reached.converged,
        )

    def _with_random_priors(
        self, learned: Learned, draw: Callable[[PseudoCounts, str], PseudoCounts], seed: int
    ) -> Learned:
        smooth = draw(PseudoCounts(*learned.state[3:]), "stops: ")
        return replace(learned, state=(*learned.state[:3], *smooth))

    def _chain(self, log: ClickLog, attractiveness: np.ndarray) -> tuple[Chain, bool]:
        last = self.continuation_.size - 1
        stop = 1 - self.continuation_[np.minimum(np.arange(log.n_positions), last)]
        return Chain(attractiveness, stop, ONE), True
