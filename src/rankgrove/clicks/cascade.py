"""The cascade model: users read from the top down, and the first click ends the session."""

from __future__ import annotations

import numpy as np

from rankgrove.clicks.chains import Chain, ChainEvidence, ChainModel, rates
from rankgrove.clicks.learned import Learned, PseudoCounts
from rankgrove.clicks.log import ClickLog

ONE = np.ones(1)


class Cascade(ChainModel):
    """The cascade model.

    Users examine documents from the top down and stop at the first click. Attractiveness is clicks
    per impression up to the first click (Craswell and others, 2008), a closed form; clicks after
    the first are not used, and the model holds them for nearly impossible.

    Parameters
    ----------
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : the number of threads; None: all cores. Results do not depend on it

    Attributes
    ----------
    attractiveness_ : per pair of the log
    impressions_ : per pair of the log
    prior_mean_, prior_strength_ : of the prior of pairs

    Examples
    --------
    >>> import rankgrove as rg
    >>> log = rg.ClickLog([1, 1, 2, 2], ["a"] * 4, ["x", "y", "x", "y"], [1, 2, 1, 2], [0, 1, 1, 0])
    >>> rg.Cascade(prior_strength=0).fit(log).attractiveness_
    array([0.5, 1. ])
    """

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
        sums, _ = evidence.counts(weights, to_first=True)
        return Learned(rates(sums, prior), {}, np.concatenate([sums, sums[1:]]))

    def _chain(self, log: ClickLog, attractiveness: np.ndarray) -> tuple[Chain, bool]:
        return Chain(attractiveness, np.ones(log.n_positions), ONE), True
