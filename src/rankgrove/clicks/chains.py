"""Evidence for models whose users read from the top down until they stop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.clicks.click_model import ClickModel
from rankgrove.clicks.em import Climb, climb
from rankgrove.clicks.learned import PseudoCounts
from rankgrove.clicks.log import ClickLog
from rankgrove.clicks.session_blocks import session_blocks
from rankgrove.parallel import run_pieces

TINY = 1e-12


class Chain(NamedTuple):
    """The parameters of a chain.

    attraction : per pair
    stop : probability of stopping after a click, per pair or per position
    going : 1 number, the probability of continuing otherwise
    """

    attraction: np.ndarray
    stop: np.ndarray
    going: np.ndarray


class ChainExposures(NamedTuple):
    """How much of attractiveness and of stops the clicks of a log show, given a chain.

    pairs : 3 x n_pairs: clicks, the sum of probabilities of examination given the clicks above,
        and of their squares
    stops : 3 x n_stops, of clicks that are not at the end: those with another click below, the sum
        of probabilities of another one where users do not stop, and of their squares
    last : per session, the pair or position of the last click; -1: there is none, or at the end
    again : per session, the probability of another click where users do not stop after the last
    """

    pairs: np.ndarray
    stops: np.ndarray
    last: np.ndarray
    again: np.ndarray


class ChainModel(ClickModel):
    """Click models whose users read from the top down until they stop."""

    def _chain(self, log: ClickLog, attractiveness: np.ndarray) -> tuple[Chain, bool]:
        """Return the chain for a log, and whether its stops belong to positions."""
        raise NotImplementedError

    def _probabilities(
        self, log: ClickLog, attractiveness: np.ndarray, *, conditional: bool
    ) -> np.ndarray:
        chain, by_position = self._chain(log, attractiveness)
        return chain_probabilities(
            log, chain, by_position=by_position, conditional=conditional, n_threads=self.n_threads
        )

    def _examined(self, log: ClickLog, attractiveness: np.ndarray) -> np.ndarray:
        chain, by_position = self._chain(log, attractiveness)
        return chain_examination(log, chain, by_position=by_position, n_threads=self.n_threads)


class ChainEvidence:
    """A click log in blocks of whole queries.

    Parameters
    ----------
    log : the click log
    by_position : whether stopping after a click belongs to positions, not to pairs
    n_threads : threads to use, or None
    """

    def __init__(self, log: ClickLog, by_position: bool, n_threads: int | None) -> None:
        from rankgrove.clicks import _chain_kernels as kernels

        self.kernels = kernels
        self.log = log
        self.by_position = by_position
        self.n_threads = n_threads
        self.blocks = session_blocks(log)
        self.n_stops = log.n_positions if by_position else log.n_pairs
        self.longest = int(np.diff(log.session_ptr).max(initial=0))

    def counts(self, weights: np.ndarray, to_first: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return, 2 x n_pairs, clicks and examinations; 2 x n_stops, last clicks and clicks."""
        a_sums, s_sums = self._sums()

        def work(b: int) -> None:
            self.kernels.chain_counts(
                *self._block(b), weights, to_first, self.by_position, a_sums, s_sums[self._at(b)]
            )

        self._over_blocks(work)
        return a_sums, s_sums.sum(axis=0)

    def exposures(self, weights: np.ndarray, chain: Chain) -> ChainExposures:
        """Return what priors are estimated from, and what last clicks say about stops."""
        a_sums, s_sums = self._sums(3)
        last, again = np.full(self.log.n_sessions, -1), np.zeros(self.log.n_sessions)

        def work(b: int) -> None:
            self.kernels.chain_exposures(
                *(*self._block(b), weights, chain.attraction, float(chain.going[0]), chain.stop),
                *(self.by_position, a_sums, s_sums[self._at(b)], last, again),
                np.empty(self.longest + 1),
            )

        self._over_blocks(work)
        return ChainExposures(a_sums, s_sums.sum(axis=0), last, again)

    def learn(
        self,
        weights: np.ndarray,
        pseudo: PseudoCounts,
        stop_pseudo: PseudoCounts,
        start: Chain,
        *,
        going_fixed: bool,
        last_stop: np.ndarray | None = None,
        max_iterations: int,
        tolerance: float,
        accelerate: bool = True,
    ) -> tuple[Climb, np.ndarray, np.ndarray]:
        """Return what EM reaches, and the sums of its last step: of pairs, and of stops.

        `last_stop`, the probabilities of stopping after the last clicks of sessions: then stops are
        not learned.
        """
        ends = np.zeros(0) if last_stop is None else last_stop
        n_blocks = self.blocks.n_blocks
        last: list[np.ndarray] = []

        def step(parameters: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
            attraction, stop, going = parameters
            a_sums, s_sums = self._sums()
            shared, values = np.zeros((n_blocks, 2)), np.zeros(n_blocks)

            def work(b: int) -> None:
                values[b] = self.kernels.chain_step(
                    *(*self._block(b), weights, attraction, stop, ends, float(going[0])),
                    *(self.by_position, a_sums, s_sums[self._at(b)], shared[b]),
                    np.empty(self.longest + 1),
                )

            self._over_blocks(work)
            stops = s_sums.sum(axis=0)
            last[:] = [a_sums, stops]
            went, chose = shared.sum(axis=0)
            on = going if going_fixed or chose <= 0 else np.array([went / chose])
            value = values.sum() + _log_prior(attraction, pseudo) + _log_prior(stop, stop_pseudo)
            stopping = stop if ends.size else _rates(stops, stop_pseudo, stop)
            return [_rates(a_sums, pseudo, attraction), stopping, on], float(value)

        seen = np.bincount(self.log.pair, minlength=self.log.n_pairs) / self.log.n_impressions
        clicked = np.bincount(
            self.log.position[self.log.click] - 1 if self.by_position else
            self.log.pair[self.log.click],
            minlength=self.n_stops,
        ) / max(self.log.n_clicks, 1)  # fmt: skip
        reached = climb(
            step,
            start,
            weights=(seen, clicked, None),
            max_iterations=max_iterations,
            tolerance=tolerance,
            accelerate=accelerate,
        )
        return reached, last[0], last[1]

    def _sums(self, n: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """Return zeros for n sums; blocks share no pair, but positions."""
        n_copies = self.blocks.n_blocks if self.by_position else 1
        return np.zeros((n, self.log.n_pairs)), np.zeros((n_copies, n, self.n_stops))

    def _at(self, block: int) -> int:
        return block if self.by_position else 0

    def _block(self, b: int) -> tuple[np.ndarray | int, ...]:
        """Return what kernels take first: the sessions of a block, and the log."""
        order, bounds = self.blocks
        log = self.log
        sessions = (order, int(bounds[b]), int(bounds[b + 1]), log.session_ptr)
        return (*sessions, log.pair, log.position, log.click)

    def _over_blocks(self, work: object) -> None:
        def several(first: int, last: int) -> None:
            for b in range(first, last):
                work(b)  # type: ignore[operator]

        run_pieces(several, np.arange(self.blocks.n_blocks + 1), self.n_threads)


def chain_probabilities(
    log: ClickLog, chain: Chain, *, by_position: bool, conditional: bool, n_threads: int | None
) -> np.ndarray:
    """Return the click probability of every impression."""
    from rankgrove.clicks._chain_kernels import chain_probabilities as kernel
    from rankgrove.parallel import piece_bounds

    out = np.empty(log.n_impressions)
    going = float(chain.going[0])

    def work(first: int, last: int) -> None:
        kernel(
            *(log.session_ptr, log.pair, log.position, log.click, chain.attraction, chain.stop),
            *(going, by_position, conditional, first, last, out),
        )

    run_pieces(work, piece_bounds(log.session_ptr, n_threads), n_threads)
    return out


def chain_examination(
    log: ClickLog, chain: Chain, *, by_position: bool, n_threads: int | None
) -> np.ndarray:
    """Return the probability that an impression was examined, given all clicks of its session."""
    from rankgrove.clicks._chain_kernels import chain_examination as kernel
    from rankgrove.parallel import piece_bounds

    out = np.empty(log.n_impressions)
    going = float(chain.going[0])
    longest = int(np.diff(log.session_ptr).max(initial=0))

    def work(first: int, last: int) -> None:
        kernel(
            *(log.session_ptr, log.pair, log.position, log.click, chain.attraction, chain.stop),
            *(going, by_position, first, last, np.empty(longest + 1), out),
        )

    run_pieces(work, piece_bounds(log.session_ptr, n_threads), n_threads)
    return out


def rates(sums: np.ndarray, pseudo: PseudoCounts) -> np.ndarray:
    """Return shares of counts with pseudo-counts; the half where there is nothing."""
    return _rates(sums, pseudo, np.full(sums.shape[1], 0.5))


def _rates(sums: np.ndarray, pseudo: PseudoCounts, otherwise: np.ndarray) -> np.ndarray:
    top, bottom = sums[0] + pseudo.hits, sums[1] + pseudo.hits + pseudo.misses
    share = np.divide(top, bottom, out=otherwise.copy(), where=bottom > 0)
    return np.minimum(share, 1.0)


def _log_prior(p: np.ndarray, pseudo: PseudoCounts) -> float:
    hits = pseudo.hits * np.log(np.maximum(p, TINY))
    return float((hits + pseudo.misses * np.log(np.maximum(1 - p, TINY))).sum())
