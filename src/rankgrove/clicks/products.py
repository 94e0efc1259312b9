"""Evidence for models where a click has the probability attractiveness x examination."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.clicks.em import Climb, climb
from rankgrove.clicks.examination import (
    LEAST,
    NaivePrior,
    PairCells,
    conditional_examination,
    naive_examination,
)
from rankgrove.clicks.learned import Learned, PseudoCounts
from rankgrove.clicks.log import ClickLog
from rankgrove.parallel import piece_bounds, run_pieces

BLOCKS = 64
METHODS = ("conditional", "em")


class ProductSettings(NamedTuple):
    """How examination is learned.

    method : of :data:`METHODS`
    strength : of the prior of examinations
    max_iterations, tolerance : limits of every climb
    """

    method: str
    strength: float
    max_iterations: int
    tolerance: float


class ProductEvidence:
    """Counts of impressions and clicks, by pair and cell.

    Parameters
    ----------
    log : the click log
    cell : the cell of every impression
    n_cells : the number of cells
    n_threads : threads to use, or None
    """

    def __init__(
        self, log: ClickLog, cell: np.ndarray, n_cells: int, n_threads: int | None
    ) -> None:
        from rankgrove.clicks import _product_kernels as kernels

        self.kernels = kernels
        self.n_cells = n_cells
        self.n_threads = n_threads
        self.click = log.click
        self.session_of = log.session_of
        self.ptr = np.zeros(log.n_pairs + 1, np.int64)
        self.order = np.empty(log.n_impressions, np.int64)
        kernels.sort_by_pair(log.pair, self.ptr, self.order)
        entry_ptr = np.empty(log.n_pairs + 1, np.int64)
        entry_cell = np.empty(log.n_impressions, np.int32)
        self.entry_of = np.empty(log.n_impressions, np.int64)
        last_seen = np.full(n_cells, -1, np.int64)
        n = kernels.collapse(
            self.ptr, self.order, cell, last_seen, entry_ptr, entry_cell, self.entry_of
        )
        self.entry_ptr = entry_ptr
        self.entry_cell = entry_cell[:n].copy()
        # Blocks depend on the data alone, so that sums over them have the same bits always.
        goals = np.linspace(0, n, BLOCKS + 1)
        self.blocks = np.unique(np.searchsorted(entry_ptr, goals).clip(0, log.n_pairs))
        self.blocks[-1] = log.n_pairs
        if self.blocks[0] != 0 or self.blocks.size < 2:
            self.blocks = np.unique(np.concatenate([[0], self.blocks, [log.n_pairs]]))

    def weighted(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return impressions and clicks of every entry, where sessions have weights."""
        shown, clicked = np.zeros((2, self.entry_cell.size))

        def work(first: int, last: int) -> None:
            self.kernels.count(
                *(self.ptr, self.order, self.entry_of, self.click, self.session_of, weights),
                *(first, last, shown, clicked),
            )

        run_pieces(work, piece_bounds(self.ptr, self.n_threads), self.n_threads)
        return shown, clicked

    def cell_counts(self, shown: np.ndarray) -> np.ndarray:
        """Return the sum of counts of entries per cell."""
        return np.bincount(self.entry_cell, shown, minlength=self.n_cells)

    def learn(
        self,
        counts: tuple[np.ndarray, np.ndarray],
        pseudo: PseudoCounts,
        start: tuple[np.ndarray, np.ndarray],
        *,
        fixed: np.ndarray,
        cell_strength: float,
        max_iterations: int,
        tolerance: float,
        accelerate: bool = True,
    ) -> tuple[Climb, np.ndarray]:
        """Return what EM reaches from attractiveness and examination `start`, and exposures.

        Parameters
        ----------
        counts : impressions and clicks of every entry
        fixed : the cells whose examination is not learnt
        cell_strength : pseudo-impressions of every cell, half of which were examined
        """
        shown, clicked = counts
        n_blocks = self.blocks.size - 1
        block_of = {int(first): b for b, first in enumerate(self.blocks[:-1])}
        hits, misses = pseudo

        def step(parameters: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
            attraction, examination = parameters
            new = np.empty_like(attraction)
            sums = np.zeros((n_blocks, 2, self.n_cells))
            values = np.zeros(n_blocks)

            def work(first: int, last: int) -> None:
                b = block_of[first]
                while first < last:
                    end = int(self.blocks[b + 1])
                    values[b] = self.kernels.product_step(
                        *(self.entry_ptr, self.entry_cell, shown, clicked, attraction),
                        *(examination, hits, misses, first, end, new, sums[b]),
                    )
                    first, b = end, b + 1

            run_pieces(work, self.blocks, self.n_threads)
            examined, seen = sums.sum(axis=0)
            examined += cell_strength / 2
            seen += cell_strength
            learnt = np.divide(examined, seen, out=examination.copy(), where=seen > 0)
            moved = np.where(fixed, examination, np.minimum(learnt, 1.0))
            prior = cell_strength / 2 * _log_odds_sum(examination[~fixed]) if cell_strength else 0.0
            return [new, moved], float(values.sum() + prior)

        before = np.concatenate([np.zeros(1), np.cumsum(shown)])[self.entry_ptr]
        share = np.diff(before) / max(before[-1], 1.0)
        reached = climb(
            step,
            start,
            weights=(share, None),
            max_iterations=max_iterations,
            tolerance=tolerance,
            accelerate=accelerate,
        )
        return reached, self.exposures(shown, clicked, reached.parameters[1])

    def exposures(
        self, shown: np.ndarray, clicked: np.ndarray, examination: np.ndarray
    ) -> np.ndarray:
        """Return, per pair: clicks, the sum of examinations, and of their squares."""
        out = np.empty((3, self.entry_ptr.size - 1))
        self.kernels.exposures(self.entry_ptr, self.entry_cell, shown, clicked, examination, out)
        return out


def learn_in_two(
    evidence: ProductEvidence,
    weights: np.ndarray,
    prior: PseudoCounts,
    start: Learned | None,
    fixed: np.ndarray,
    reference: np.ndarray,
    settings: ProductSettings,
) -> tuple[Learned, np.ndarray]:
    """Return what is learned, and the examination of cells.

    First examination, without a prior of pairs: rankers show better documents higher up, so that
    one mean for all documents would be ascribed to positions. Then attractiveness given
    examination, with the prior.

    Parameters
    ----------
    start : what was learned from other weights
    fixed : the cells whose examination is 1
    reference : the fixed cell that every cell is compared with, where nothing else is known
    """
    shown, clicked = evidence.weighted(weights)
    counts = PairCells(evidence.entry_ptr, evidence.entry_cell, shown, clicked, evidence.n_cells)
    naive = np.where(fixed, 1.0, naive_examination(counts, reference))
    max_iterations, tolerance = settings.max_iterations, settings.tolerance
    examination, climbed = conditional_examination(
        counts,
        fixed,
        start=naive if start is None else start.state[1],
        prior=NaivePrior(settings.strength, naive) if settings.strength else None,
        most=1.0,
        n_threads=evidence.n_threads,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )
    examination = np.maximum(examination, LEAST)
    attraction = clicks_per_examination(counts, examination) if start is None else start.state[0]
    if settings.method == "em":
        none = PseudoCounts(np.zeros_like(prior.hits), np.zeros_like(prior.misses))
        if start is not None:
            examination = start.state[1]
        climbed, _ = evidence.learn(
            (shown, clicked),
            none,
            (attraction, examination),
            fixed=fixed,
            cell_strength=settings.strength,
            max_iterations=max_iterations,
            tolerance=tolerance,
        )
        attraction, examination = climbed.parameters
    shrunk, exposures = evidence.learn(
        (shown, clicked),
        prior,
        (attraction, examination),
        fixed=np.ones_like(fixed),
        cell_strength=0.0,
        max_iterations=max_iterations,
        tolerance=tolerance,
    )
    learned = Learned(
        shrunk.parameters[0],
        {},
        exposures,
        (attraction, examination),
        climbed.history,
        climbed.n_iterations + shrunk.n_iterations,
        climbed.converged and shrunk.converged,
    )
    return learned, examination


def clicks_per_examination(counts: PairCells, examination: np.ndarray) -> np.ndarray:
    """Return clicks of pairs per examination: attractiveness, where clicks are rare."""
    pair, n = counts.pair, counts.starts.size - 1
    clicks = np.bincount(pair, counts.clicked, minlength=n)
    exposure = np.bincount(pair, counts.shown * examination[counts.cell], minlength=n)
    rate = np.divide(clicks, exposure, out=np.full(n, 0.5), where=exposure > 0)
    return np.asarray(np.clip(rate, LEAST, 1 - LEAST))


def _log_odds_sum(p: np.ndarray) -> float:
    tiny = 1e-12
    return float(np.log(np.maximum(p, tiny)).sum() + np.log(np.maximum(1 - p, tiny)).sum())
