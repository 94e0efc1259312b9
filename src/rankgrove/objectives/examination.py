"""Propensities of positions from the clicks on documents that were shown at several positions.

Sums over pairs are sums of whole numbers, so that they do not depend on how pairs are numbered.
"""

from __future__ import annotations

import numpy as np

from rankgrove.clicks.examination import (
    LEAST,
    NaivePrior,
    PairCells,
    conditional_examination,
    naive_examination,
)
from rankgrove.objectives.position_bias import Cells

MOST_ROUNDS = 500
TOLERANCE = 1e-6
PRIOR = 1.0  # a pair's relevance is shrunk as if it had this many more impressions of the mean
PRIOR_CLICKS = 1.0  # strength of the prior of a cell's examination
SCALE = float(1 << 30)  # sums over pairs are in units of 1 / SCALE
_LOW, _HIGH = 1e-4, 1.0 - 1e-4


def pair_cells(pair: np.ndarray, cell: np.ndarray, clicked: np.ndarray, cells: Cells) -> PairCells:
    """Count rows; those of a pair below 0 are left out."""
    known = pair >= 0
    places = pair[known].astype(np.int64) * cells.size + cell[known]
    entries, of_row = np.unique(places, return_inverse=True)
    pairs, of_pair = np.unique(entries // cells.size, return_inverse=True)
    return PairCells(
        np.searchsorted(of_pair, np.arange(pairs.size + 1)),
        entries % cells.size,
        np.bincount(of_row, minlength=entries.size).astype(np.float64),
        np.bincount(of_row[clicked[known]], minlength=entries.size).astype(np.float64),
        cells.size,
    )


def n_linking(counts: PairCells) -> int:
    """Return the number of pairs that were shown in several cells: only they tell cells apart."""
    return int(np.count_nonzero(np.diff(counts.starts) > 1))


def position_based(counts: PairCells) -> np.ndarray:
    """Return the examination of every cell: P(click) = examination * relevance of the pair.

    The relevance of pairs is eliminated (:mod:`rankgrove.clicks.examination`). The most examined
    cell has 1, and cells without impressions that of the least examined one.
    """
    shown = counts.by_cell(counts.shown)
    there = shown > 0
    reference = int(np.argmax(counts.by_cell(counts.clicked)))
    naive = naive_examination(counts, np.full(shown.size, reference), np.inf)
    examined, _ = conditional_examination(
        counts,
        np.arange(shown.size) == reference,
        start=naive,
        prior=NaivePrior(PRIOR_CLICKS, naive),
    )
    examined = np.maximum(examined / examined[there].max(initial=0.0), LEAST)
    return np.where(there, examined, examined[there].min(initial=1.0))


def trust_based(counts: PairCells) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha and beta of every cell: P(click) = alpha * relevance of the pair + beta.

    A document is relevant in a session with the pair's probability. Relevant and other documents
    have click probabilities by cell, alpha + beta and beta. Clicks determine them up to a linear
    change of relevance, which does not change the order of documents.

    Relevance is estimated pair by pair along with alpha and beta, so they are wrong where pairs
    have few impressions: in a simulation of five positions, ratios of alphas were up to three times
    too high with 20 impressions per pair or fewer, 1.2 times with 100, and right with 1,000.
    """
    pair = counts.pair
    shown, clicked = counts.by_cell(counts.shown), counts.by_cell(counts.clicked)
    there = shown > 0
    rate = np.divide(clicked, shown, out=np.full(shown.size, _LOW), where=there)
    high, low = np.clip(1.5 * rate, _LOW, 0.95), np.clip(0.3 * rate, _LOW, 0.9)
    relevance = np.full(counts.starts.size - 1, 0.5)
    of_pair = np.bincount(pair, counts.shown)
    skipped = counts.shown - counts.clicked
    for _ in range(MOST_ROUNDS):
        good, h, m = relevance[pair], high[counts.cell], low[counts.cell]
        if_clicked = good * h / (good * h + (1.0 - good) * m)
        if_skipped = good * (1.0 - h) / (good * (1.0 - h) + (1.0 - good) * (1.0 - m))
        relevant_clicks = counts.clicked * if_clicked
        relevant = relevant_clicks + skipped * if_skipped
        total, total_clicks = _by_cell(counts, relevant), _by_cell(counts, relevant_clicks)
        before = high, low
        high = np.divide(total_clicks, total, out=high.copy(), where=total > 1e-9)
        rest = shown - total
        low = np.divide(clicked - total_clicks, rest, out=low.copy(), where=rest > 1e-9)
        high, low = np.clip(high, _LOW, _HIGH), np.clip(low, 0.1 * _LOW, _HIGH)
        low = np.minimum(low, high)
        mean = total.sum() / shown.sum()
        relevance = (np.bincount(pair, relevant) + PRIOR * mean) / (of_pair + PRIOR)
        relevance = np.clip(relevance, _LOW, _HIGH)
        if max(np.abs(high - before[0]).max(), np.abs(low - before[1]).max()) < TOLERANCE:
            break
    return high - low, low


def _by_cell(counts: PairCells, values: np.ndarray) -> np.ndarray:
    """Return the sum of values over the entries of every cell, the same in any order."""
    total = np.zeros(counts.n_cells, np.int64)
    np.add.at(total, counts.cell, np.rint(values * SCALE).astype(np.int64))
    return total / SCALE
