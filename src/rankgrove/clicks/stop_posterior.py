"""How probable it is, pair by pair, that users stop after a click, given all clicks.

Of a pair with the stop s, a click with another one below has the likelihood 1 - s, and a last one
s + (1 - s) q, where q is the probability of no other click if users do not stop. The most probable
s, which EM finds, is far above the mean for pairs with few clicks: a last click takes its own stop
for evidence of stops. So means are computed. For pairs with at most `FEW` clicks they are sums over
a grid, with a prior of any form that is learned from all these pairs (Kiefer and Wolfowitz, 1956).
For others every last click is judged by the others, as in collapsed variational inference (Asuncion
and others, 2009), with an error that vanishes with the number of clicks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.clicks.chains import ChainExposures
from rankgrove.parallel import run_pieces

FEW = 256
CELLS = 64  # of the grid
BLOCKS = 64
PRIOR_STEPS = 5
STEPS, CLOSE = 200, 1e-7
WEAKEST = 1e-3
TINY = 1e-12


class StopPosterior(NamedTuple):
    """What is known of stops.

    stop : per pair, the mean, or a draw
    without : per session, the mean for the pair of its last click, without that click
    prior : the probabilities of the cells of the grid, learned from the clicks
    """

    stop: np.ndarray
    without: np.ndarray
    prior: np.ndarray


def grid() -> tuple[np.ndarray, np.ndarray]:
    """Return the middles and the edges of cells, about as wide as posterior distributions are."""
    places = np.sin(np.linspace(0, np.pi / 2, 2 * CELLS + 1)) ** 2
    return places[1::2], places[::2]


def beta_prior(mean: float, strength: float) -> np.ndarray:
    """Return the probabilities of cells of a beta distribution."""
    from scipy.special import betainc

    mean, strength = min(max(mean, 1e-6), 1 - 1e-6), max(strength, WEAKEST)
    edges = np.minimum(grid()[1], 1.0)
    mass = np.diff(betainc(strength * mean, strength * (1 - mean), edges))
    return np.asarray(mass / mass.sum())


def stop_posterior(
    exposures: ChainExposures,
    weights: np.ndarray,
    prior: np.ndarray,
    start: np.ndarray,
    n_threads: int | None,
    *,
    learns_prior: bool = False,
    seed: int | None = None,
) -> StopPosterior:
    """Return the stops of pairs given the clicks.

    Parameters
    ----------
    weights : of sessions
    prior : the probabilities of the cells of the grid
    start : stops to start from, for pairs with many clicks
    learns_prior : whether the prior is learned, by some steps of EM
    seed : None: means; otherwise stops are drawn for pairs with few clicks
    """
    from rankgrove.clicks._chain_kernels import stops_on_grid

    session = np.flatnonzero(exposures.last >= 0)
    session = session[np.argsort(exposures.last[session], kind="stable")]
    at, weight = exposures.last[session], weights[session]
    missing = 1 - exposures.again[session]
    seen = np.bincount(at, weight, start.size) + exposures.stops[0]
    many = seen > FEW
    stop, mean = np.array(start), start[at]
    some = many[at]
    stop[many], mean[some] = _by_the_others(
        at[some], weight[some], missing[some], seen, start, many
    )
    ptr = np.searchsorted(at, np.arange(start.size + 1))
    middles = grid()[0]
    bounds = np.linspace(0, start.size, BLOCKS + 1).astype(np.int64)
    key = np.uint64(0 if seed is None else seed)
    for _ in range(PRIOR_STEPS if learns_prior else 1):
        sums = np.zeros((BLOCKS, CELLS))

        def work(first: int, last: int, prior: np.ndarray = prior, sums: np.ndarray = sums) -> None:
            for b in range(first, last):
                stops_on_grid(
                    *(ptr, many, exposures.stops[0], weight, missing, middles, prior),
                    *(seed is not None, key, bounds[b], bounds[b + 1], stop, mean, sums[b]),
                )

        run_pieces(work, np.arange(BLOCKS + 1), n_threads)
        if learns_prior:
            prior = sums.sum(axis=0) + prior  # one more pair that nothing is known of
            prior /= prior.sum()
    without = np.zeros(weights.size)
    without[session] = mean
    return StopPosterior(stop, without, prior)


def _by_the_others(
    at: np.ndarray,
    weight: np.ndarray,
    missing: np.ndarray,
    seen: np.ndarray,
    start: np.ndarray,
    many: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of pairs with many clicks, and those without each last click.

    With m the mean without it, a last click was a stop with probability m / (m + (1 - m) q), which
    is exact; m is taken from the expected stops of the other clicks.
    """
    mean = start[at]
    sums = seen * start
    for _ in range(STEPS):
        stopped = mean / np.maximum(mean + (1 - mean) * missing, TINY)
        sums = np.bincount(at, weight * stopped, start.size)
        before = mean
        mean = np.clip((sums[at] - weight * stopped) / (seen[at] - weight), TINY, 1.0)
        if np.abs(mean - before).max(initial=0.0) < CLOSE:
            break
    return np.minimum(sums[many] / seen[many], 1.0), mean
