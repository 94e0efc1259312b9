"""What click models learn, and the pseudo-counts of the prior that shrinks sparse documents.

The prior of a pair is a beta distribution with a mean and a strength: so many impressions that
were never shown, of which the mean's share was clicked. A pair with few impressions stays near the
mean. The strength is estimated from how much more the rates of pairs differ than chance explains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

WEAKEST, STRONGEST = 0.1, 1e4
FIRST_STRENGTH = 2.0
EDGE = 1e-6


class PseudoCounts(NamedTuple):
    """Clicks and misses that every pair is given."""

    hits: np.ndarray
    misses: np.ndarray


@dataclass
class Learned:
    """What one run of learning has found.

    Attributes
    ----------
    attractiveness : per pair
    shared : other learned arrays by name, without the underscore
    exposures : 3 x n_pairs: clicks, expected examinations, the sum of their squares
    state : from which another run may start
    history : the objective after every step of EM, empty for closed forms
    seed : of draws from distributions of what EM does not learn; None: their means are taken
    priors_fixed : whether another run that starts here keeps the priors of `state`
    """

    attractiveness: np.ndarray
    shared: dict[str, np.ndarray]
    exposures: np.ndarray
    state: tuple[np.ndarray, ...] = ()
    history: list[float] = field(default_factory=list)
    n_iterations: int = 0
    converged: bool = True
    seed: int | None = None
    priors_fixed: bool = False


class PairPrior(NamedTuple):
    """The mean, a number or one per pair, and the strength of the prior."""

    mean: float | np.ndarray
    strength: float

    def counts(self, n_pairs: int) -> PseudoCounts:
        """Return the pseudo-counts of every pair."""
        mean = np.broadcast_to(np.asarray(self.mean, np.float64), (n_pairs,))
        return PseudoCounts(self.strength * mean, self.strength * (1 - mean))


def estimated_mean(exposures: np.ndarray) -> float:
    """Return clicks per examination of all pairs."""
    clicks, once, _ = exposures.sum(axis=1)
    return float(np.clip(clicks / once, EDGE, 1 - EDGE)) if once > 0 else 0.5


def estimated_strength(exposures: np.ndarray, mean: float | np.ndarray) -> float:
    """Return the strength by the method of moments.

    With examinations e of a pair and attractiveness of mean m and variance m (1 - m) / (s + 1),
    its clicks c vary about m E, E the sum of e, with variance sum of m e (1 - m e), plus
    m (1 - m) / (s + 1) (E^2 - sum of e^2).
    """
    clicks, once, squares = exposures
    m = np.broadcast_to(np.asarray(mean, np.float64), clicks.shape)
    chance = m * once - m * m * squares
    excess = float(((clicks - m * once) ** 2 - chance).sum())
    room = float((m * (1 - m) * np.maximum(once * once - squares, 0.0)).sum())
    if room <= 0 or excess <= room / (STRONGEST + 1):
        return STRONGEST if room > 0 else FIRST_STRENGTH
    return float(np.clip(room / excess - 1, WEAKEST, STRONGEST))
