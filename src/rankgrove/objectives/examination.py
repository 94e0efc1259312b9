"""Propensities of positions from the clicks on documents that were shown at several positions.

Both models are fitted by expectation maximisation on the numbers of impressions and clicks of
every pair of query and document in every cell. Sums over pairs are sums of whole numbers, so that
they do not depend on how pairs are numbered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.objectives.position_bias import Cells

MOST_ROUNDS = 500
TOLERANCE = 1e-6
PRIOR = 1.0  # a pair's relevance is shrunk as if it had this many more impressions of the mean
SCALE = float(1 << 30)  # sums over pairs are in units of 1 / SCALE
_LOW, _HIGH = 1e-4, 1.0 - 1e-4


class Counts(NamedTuple):
    """Impressions and clicks of pairs of query and document in cells, by pair.

    Attributes
    ----------
    starts : where the entries of every pair begin
    of_pair : the pair of every entry
    cell, shown, clicked : of every entry
    n_cells : number of cells
    """

    starts: np.ndarray
    of_pair: np.ndarray
    cell: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray
    n_cells: int

    @classmethod
    def of(cls, pair: np.ndarray, cell: np.ndarray, clicked: np.ndarray, cells: Cells) -> Counts:
        """Count rows; those of a pair below 0 are left out."""
        known = pair >= 0
        places = pair[known].astype(np.int64) * cells.size + cell[known]
        entries, of_row = np.unique(places, return_inverse=True)
        pairs, of_pair = np.unique(entries // cells.size, return_inverse=True)
        starts = np.searchsorted(of_pair, np.arange(pairs.size))
        return cls(
            starts,
            of_pair,
            entries % cells.size,
            np.bincount(of_row, minlength=entries.size).astype(np.float64),
            np.bincount(of_row[clicked[known]], minlength=entries.size).astype(np.float64),
            cells.size,
        )

    @property
    def n_linking(self) -> int:
        """Number of pairs that were shown in several cells: only they tell cells apart."""
        return int(np.count_nonzero(np.bincount(self.of_pair) > 1))

    def by_pair(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of values over the entries of every pair."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def by_cell(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of values over the entries of every cell, the same in any order."""
        whole = np.rint(values * SCALE).astype(np.int64)
        total = np.zeros(self.n_cells, np.int64)
        np.add.at(total, self.cell, whole)
        return total / SCALE


def position_based(counts: Counts) -> np.ndarray:
    """Return the examination of every cell: P(click) = examination * relevance of the pair.

    Cells without impressions get that of the least examined cell.
    """
    shown, clicked = counts.by_cell(counts.shown), counts.by_cell(counts.clicked)
    there = shown > 0
    rate = np.divide(clicked, shown, out=np.zeros(shown.size), where=there)
    examined = np.clip(rate / max(rate.max(initial=0.0), _LOW), 0.05, 1.0)
    relevance = np.full(counts.starts.size, 0.5)
    of_pair = counts.by_pair(counts.shown)
    skipped = counts.shown - counts.clicked
    for _ in range(MOST_ROUNDS):
        here, attracted = examined[counts.cell], relevance[counts.of_pair]
        missed = np.maximum(1.0 - here * attracted, 1e-12)
        # of a document that was not clicked: it was examined, and it was relevant
        seen = counts.clicked + skipped * here * (1.0 - attracted) / missed
        good = counts.clicked + skipped * attracted * (1.0 - here) / missed
        before = examined
        examined = np.divide(counts.by_cell(seen), shown, out=before.copy(), where=there)
        examined = np.clip(examined, _LOW, 1.0)
        mean = counts.by_cell(good).sum() / shown.sum()
        relevance = (counts.by_pair(good) + PRIOR * mean) / (of_pair + PRIOR)
        if np.abs(examined - before).max() < TOLERANCE:
            break
    return np.where(there, examined, examined[there].min(initial=1.0))


def trust_based(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha and beta of every cell: P(click) = alpha * relevance of the pair + beta.

    A document is relevant in a session with the pair's probability. Relevant and other documents
    have click probabilities by cell, alpha + beta and beta. Clicks determine them up to a linear
    change of relevance, which does not change the order of documents.
    """
    shown, clicked = counts.by_cell(counts.shown), counts.by_cell(counts.clicked)
    there = shown > 0
    rate = np.divide(clicked, shown, out=np.full(shown.size, _LOW), where=there)
    high, low = np.clip(1.5 * rate, _LOW, 0.95), np.clip(0.3 * rate, _LOW, 0.9)
    relevance = np.full(counts.starts.size, 0.5)
    of_pair = counts.by_pair(counts.shown)
    skipped = counts.shown - counts.clicked
    for _ in range(MOST_ROUNDS):
        good, h, m = relevance[counts.of_pair], high[counts.cell], low[counts.cell]
        if_clicked = good * h / (good * h + (1.0 - good) * m)
        if_skipped = good * (1.0 - h) / (good * (1.0 - h) + (1.0 - good) * (1.0 - m))
        relevant_clicks = counts.clicked * if_clicked
        relevant = relevant_clicks + skipped * if_skipped
        total, total_clicks = counts.by_cell(relevant), counts.by_cell(relevant_clicks)
        before = high, low
        high = np.divide(total_clicks, total, out=high.copy(), where=total > 1e-9)
        rest = shown - total
        low = np.divide(clicked - total_clicks, rest, out=low.copy(), where=rest > 1e-9)
        high, low = np.clip(high, _LOW, _HIGH), np.clip(low, 0.1 * _LOW, _HIGH)
        low = np.minimum(low, high)
        mean = total.sum() / shown.sum()
        relevance = (counts.by_pair(relevant) + PRIOR * mean) / (of_pair + PRIOR)
        relevance = np.clip(relevance, _LOW, _HIGH)
        if max(np.abs(high - before[0]).max(), np.abs(low - before[1]).max()) < TOLERANCE:
            break
    return high - low, low
