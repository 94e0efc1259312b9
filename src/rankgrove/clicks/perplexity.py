"""Perplexity: how surprised a click model is by clicks, 1 (never) to 2 (as a coin) and beyond."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rankgrove.clicks.log import ClickLog

LEAST = 1e-6  # probabilities count as at least that and at most 1 minus that


@dataclass(frozen=True)
class Perplexity:
    """The perplexity of click probabilities.

    Attributes
    ----------
    value : the mean over positions, as is usual in the literature
    by_position : 2 to the power of the mean of -log2 of the probability of what happened, click or
        no click, per position from 1; NaN at positions without impressions
    impressions : the number of impressions per position
    """

    value: float
    by_position: np.ndarray = field(repr=False)
    impressions: np.ndarray = field(repr=False)


def perplexity(log: ClickLog, probabilities: np.ndarray) -> Perplexity:
    """Return the perplexity of the click probability of every impression."""
    place = log.position.astype(np.int64) - 1
    bits = np.bincount(place, -np.log2(outcome_probabilities(log.click, probabilities)))
    seen = np.bincount(place)
    mean = np.divide(bits, seen, out=np.full(seen.size, np.nan), where=seen > 0)
    return Perplexity(float(np.nanmean(2**mean)), 2**mean, seen)


def outcome_probabilities(click: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return the probability of what happened, click or no click."""
    p = np.clip(probabilities, LEAST, 1 - LEAST)
    return np.where(click, p, 1 - p)
