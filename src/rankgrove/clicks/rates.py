"""Naive rates: clicks per impression, and clicks over those expected at the positions."""

from __future__ import annotations

import numpy as np

from rankgrove.clicks.chains import rates
from rankgrove.clicks.click_model import ClickModel
from rankgrove.clicks.learned import EDGE, Learned, PseudoCounts
from rankgrove.clicks.log import ClickLog


class ClickThroughRate(ClickModel):
    """Clicks per impression of every pair, whatever the position.

    Parameters
    ----------
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : accepted as by other models; counting takes one thread

    Attributes
    ----------
    attractiveness_ : per pair of the log
    impressions_ : per pair of the log
    prior_mean_, prior_strength_ : of the prior of pairs

    Examples
    --------
    >>> import rankgrove as rg
    >>> log = rg.ClickLog([1, 1, 2, 2], ["a"] * 4, ["x", "y", "x", "y"], [1, 2, 1, 2], [0, 1, 1, 1])
    >>> rg.ClickThroughRate(prior_strength=0).fit(log).attractiveness_
    array([0.5, 1. ])
    """

    def _evidence(self, log: ClickLog) -> ClickLog:
        return log

    def _learn(
        self,
        evidence: ClickLog,
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
        limits: tuple[int, float],
    ) -> Learned:
        w = weights[evidence.session_of]
        shown = np.bincount(evidence.pair, w, evidence.n_pairs)
        clicks = np.bincount(evidence.pair, w * evidence.click, evidence.n_pairs)
        sums = np.stack([clicks, shown])
        return Learned(rates(sums, prior), {}, np.stack([clicks, shown, shown]))

    def _probabilities(
        self, log: ClickLog, attractiveness: np.ndarray, *, conditional: bool
    ) -> np.ndarray:
        return attractiveness[log.pair]


class ClicksOverExpected(ClickModel):
    """Clicks over expected clicks (COEC): those that the mean document would get at the positions.

    The click-through rates of positions are taken for their examination, as if all positions had
    documents of the same quality. They are too steep where the old ranker was good.

    Parameters
    ----------
    prior_strength : the number of impressions at position 1 that the prior of a pair counts for;
        None: estimated
    n_threads : accepted as by other models; counting takes one thread

    Attributes
    ----------
    ratios_ : per pair of the log, clicks over expected clicks, shrunk; 1: as expected
    attractiveness_ : ``ratios_`` times the click-through rate of position 1, at most 1
    examination_ : per position, from 1: click-through rates, relative to that of position 1
    impressions_ : per pair of the log
    prior_mean_, prior_strength_ : of the prior of pairs

    Examples
    --------
    >>> import rankgrove as rg
    >>> log = rg.ClickLog(
    ...     [1, 1, 2, 2, 3, 3], ["a"] * 6, ["x", "y", "y", "x", "x", "y"],
    ...     [1, 2] * 3, [1, 0, 1, 1, 0, 0],
    ... )
    >>> rg.ClicksOverExpected(prior_strength=0).fit(log).ratios_
    array([1.2 , 0.75])
    """  # fmt: skip

    examination_: np.ndarray
    ratios_: np.ndarray

    def _evidence(self, log: ClickLog) -> ClickLog:
        return log

    def _learn(
        self,
        evidence: ClickLog,
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
        limits: tuple[int, float],
    ) -> Learned:
        log = evidence
        w = weights[log.session_of]
        place = log.position.astype(np.int64) - 1
        shown = np.bincount(place, w)
        clicked = np.bincount(place, w * log.click)
        seen = shown > 0
        share = np.divide(clicked, shown, out=np.zeros(shown.size), where=seen)
        first = max(float(share[np.argmax(seen)]), EDGE)
        at = np.arange(share.size)
        examination = np.interp(at, at[seen], share[seen]) / first
        exposure = w * examination[place]
        clicks = np.bincount(log.pair, w * log.click, log.n_pairs)
        once = np.bincount(log.pair, exposure, log.n_pairs)
        twice = np.bincount(log.pair, exposure * examination[place], log.n_pairs)
        top, bottom = clicks + prior.hits, once + prior.hits + prior.misses
        rate = np.divide(top, bottom, out=np.full(top.size, first), where=bottom > 0)
        return Learned(
            np.minimum(rate, 1.0),
            {"examination": examination, "ratios": rate / first},
            np.stack([clicks, once, twice]),
        )

    def _probabilities(
        self, log: ClickLog, attractiveness: np.ndarray, *, conditional: bool
    ) -> np.ndarray:
        last = self.examination_.size - 1
        place = np.minimum(log.position.astype(np.int64) - 1, last)
        return np.minimum(attractiveness[log.pair] * self.examination_[place], 1.0)
