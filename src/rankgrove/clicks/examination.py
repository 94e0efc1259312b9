"""How well examination can be told from relevance: clicks of the same pair at several positions.

The clicks of a pair that was shown at several positions are shared out between them as examination
and numbers of impressions say, whatever its relevance is. So the pair says something about ratios
of examination, and nothing about anything else (the conditional likelihood of Poisson counts with
an effect per pair). The information is the Laplacian of a graph: positions are its nodes, and an
edge has the weight C p q, with C the clicks of a pair, and p and q the shares of them expected at
the two positions. The inverse has the variances of log examination: as electrical resistances do,
they grow along chains of weak edges, and are infinite between positions that nothing joins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

STEPS, CLOSE = 500, 1e-7


@dataclass(frozen=True)
class PairCounts:
    """Impressions and clicks of every pair at every position where it was shown.

    Attributes
    ----------
    pair, place : of every cell, sorted by pair and place; places from 0
    shown, clicked : the counts
    """

    pair: np.ndarray
    place: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray
    n_pairs: int
    n_places: int


@dataclass(frozen=True)
class Examination:
    """Examination relative to a reference position, and its standard errors.

    Attributes
    ----------
    reference : the position, from 0, whose examination is 1
    linked : which positions are joined to it
    log_examination : NaN where not linked, minus infinity without clicks
    standard_error : of the logarithm; infinite where not linked
    adjacent_error : of log examination of a position relative to the one above it
    information : the Laplacian
    """

    reference: int
    linked: np.ndarray
    log_examination: np.ndarray
    standard_error: np.ndarray
    adjacent_error: np.ndarray
    information: np.ndarray


def pair_counts(log: ClickLog) -> PairCounts:
    """Return the counts of a log."""
    n_places = log.n_positions
    keys = log.pair * np.int64(n_places)
    keys += log.position
    keys -= 1
    from rankgrove.clicks import _log_kernels as kernels

    codes = np.empty(keys.size, np.int32)
    keys.flags.writeable = False
    cells = keys[kernels.number_codes(keys.view(), codes)]
    shown = np.bincount(codes)
    clicked = np.bincount(codes[log.click], minlength=cells.size)
    order = np.argsort(cells)
    cells = cells[order]
    return PairCounts(
        (cells // n_places).astype(np.int32),
        (cells % n_places).astype(np.int32),
        shown[order],
        clicked[order],
        log.n_pairs,
        n_places,
    )


def estimate(counts: PairCounts) -> Examination:
    """Return the examination that the clicks of the same pairs at several positions show."""
    n = counts.n_places
    n_places = np.bincount(counts.pair, minlength=counts.n_pairs)
    clicks = np.bincount(counts.pair, counts.clicked, minlength=counts.n_pairs)
    useful = (n_places[counts.pair] > 1) & (clicks[counts.pair] > 0)
    _, pair = np.unique(counts.pair[useful], return_inverse=True)
    place, shown = counts.place[useful], counts.shown[useful].astype(np.float64)
    of_pair = np.bincount(pair, counts.clicked[useful]) if pair.size else np.zeros(0)
    got = np.bincount(place, counts.clicked[useful], minlength=n)
    theta = np.where(got > 0, 1.0, 0.0)
    for _ in range(STEPS if pair.size else 0):
        total = np.bincount(pair, shown * theta[place])
        rate = np.divide(of_pair, total, out=np.zeros_like(total), where=total > 0)
        expected = np.bincount(place, shown * rate[pair], minlength=n)
        new = np.divide(got, expected, out=np.zeros(n), where=expected > 0)
        if new.max() > 0:
            new /= new.max()
        moved = np.abs(new - theta).max()
        theta = new
        if moved < CLOSE:
            break
    information = _laplacian(pair, place, shown * theta[place], of_pair, n)
    # Components by what is joined: a position without clicks is joined to nothing.
    component = _components(information)
    impressions = np.bincount(counts.place, counts.shown, minlength=n)
    sizes = np.bincount(component, impressions)
    # The reference is the first position of the component that has most impressions.
    most = int(np.argmax(sizes))
    reference = int(np.argmax(component == most))
    linked = component == most
    with np.errstate(divide="ignore", invalid="ignore"):
        log_theta = np.where(linked, np.log(theta) - np.log(theta[reference]), np.nan)
    variance = _variance(information, linked, reference)
    diagonal = np.diag(variance)
    error = np.where(linked, np.sqrt(np.maximum(diagonal, 0.0)), np.inf)
    adjacent = np.full(n, np.inf)
    both = linked[1:] & linked[:-1]
    between = diagonal[1:] + diagonal[:-1] - 2 * np.diag(variance, 1)
    adjacent[1:][both] = np.sqrt(np.maximum(between[both], 0.0))
    return Examination(reference, linked, log_theta, error, adjacent, information)


def _laplacian(
    pair: np.ndarray, place: np.ndarray, mass: np.ndarray, of_pair: np.ndarray, n: int
) -> np.ndarray:
    """Return the sum over pairs of clicks x (diag(share) - share share')."""
    import scipy.sparse

    if not pair.size:
        return np.zeros((n, n))
    total = np.bincount(pair, mass)
    share = mass / np.maximum(total, 1e-300)[pair]
    root = np.sqrt(of_pair)[pair] * share
    matrix = scipy.sparse.csr_matrix((root, (pair, place)), shape=(of_pair.size, n))
    outer = (matrix.T @ matrix).toarray()
    np.fill_diagonal(outer, 0.0)
    return np.asarray(np.diag(outer.sum(axis=1)) - outer)


def _components(information: np.ndarray) -> np.ndarray:
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(information < 0, directed=False)[1])


def _variance(information: np.ndarray, linked: np.ndarray, reference: int) -> np.ndarray:
    """Return the covariance of log examination, which is 0 at the reference."""
    out = np.zeros(information.shape)
    free = np.flatnonzero(linked & (np.arange(linked.size) != reference))
    if free.size:
        out[np.ix_(free, free)] = np.linalg.inv(information[np.ix_(free, free)])
    return out
