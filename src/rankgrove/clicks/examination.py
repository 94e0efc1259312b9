"""How much positions are looked at, from the clicks of the same pair in several cells.

A cell is a position, or a context and a position. A pair p that was shown n_k times in cell k has
n_k theta_k alpha_p clicks there on average. If every pair had an attractiveness of its own to be
estimated, as in joint maximum likelihood, the estimate of theta would not become right with more
pairs of few impressions each (Neyman and Scott, 1948): attractivenesses follow the clicks of their
own pairs, and are cut off at 1. A pair that was shown once, and clicked, even pulls its cell to 1.
So attractivenesses are eliminated. The C_p clicks of a pair are shared out to cells as

    s_k = n_k theta_k / sum of n_j theta_j

and theta solves, for every cell, sum over p of (clicks of p in k - C_p s_k) = 0. Every term has
the mean alpha_p (n_k theta_k - s_k sum of n_j theta_j) = 0 at the true theta, whatever alpha_p is,
and for any distribution of clicks with that mean. So the estimate is consistent however few
impressions pairs have. The equations are those of the conditional likelihood of Poisson counts,
which is concave in log theta; a conditional likelihood of Bernoulli clicks does not exist, since
the number of clicks is not sufficient for alpha_p. Weights 1 / (1 - theta_k alpha), best for
Bernoulli clicks, took about a tenth of the error at most in simulations of click rates up to 0.98,
even with the true alpha, which is not known.

The negative second derivative is the Laplacian of a graph: positions are its nodes, and an edge
has the weight C s_j s_k. If clicks were Poisson's, the inverse would be the variance of log theta.
It grows along chains of weak edges, as electrical resistances do, and is infinite between
positions that nothing joins. Bernoulli clicks vary less: see :func:`_information`.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankgrove.clicks.em import Climb, climb
from rankgrove.parallel import piece_bounds, run_pieces

if TYPE_CHECKING:
    import scipy.sparse

    from rankgrove.clicks.log import ClickLog

STEPS, CLOSE = 5000, 1e-8
LEAST = 1e-4  # examination that is not known to be 0


class PairCells(NamedTuple):
    """Numbers of impressions and of clicks of every pair in every cell where it was shown.

    Attributes
    ----------
    starts : where the entries of every pair begin, and the number of entries
    cell, shown, clicked : of every entry; numbers may be weighted
    n_cells : the number of cells
    """

    starts: np.ndarray
    cell: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray
    n_cells: int

    @property
    def pair(self) -> np.ndarray:
        """The pair of every entry."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    def by_cell(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of values of entries per cell."""
        return np.bincount(self.cell, values, minlength=self.n_cells)


class NaivePrior(NamedTuple):
    """A gamma distribution of every examination: so many clicks at a rate taken for the truth.

    Attributes
    ----------
    clicks : the strength
    examination : of every cell, the mode
    """

    clicks: float
    examination: np.ndarray


def naive_examination(counts: PairCells, reference: np.ndarray, most: float = 1.0) -> np.ndarray:
    """Return click rates of cells relative to those of their reference cells.

    That would be examination if documents were equally attractive everywhere. Every cell has one
    more click, at the click rate of all.
    """
    shown, clicked = counts.by_cell(counts.shown), counts.by_cell(counts.clicked)
    rate = (clicked + 1.0) / (shown + shown.sum() / max(clicked.sum(), 1.0))
    base = rate[reference]
    return np.clip(np.divide(rate, base, out=np.ones(rate.size), where=base > 0), LEAST, most)


def conditional_examination(
    counts: PairCells,
    fixed: np.ndarray,
    *,
    start: np.ndarray,
    prior: NaivePrior | None = None,
    most: float = math.inf,
    max_iterations: int = STEPS,
    tolerance: float = CLOSE,
    n_threads: int | None = None,
) -> tuple[np.ndarray, Climb]:
    """Return the examination of cells, relative to the fixed ones, and how it was reached.

    A step shares out clicks by examination, and multiplies examination with the ratio of clicks to
    shares; it never lowers the conditional likelihood.

    Parameters
    ----------
    fixed : the cells whose examination is 1
    start : examination to start from
    prior : None: cells without clicks of pairs seen in several cells get 0, and cells that no pair
        joins to a fixed cell depend on the start
    most : no examination is higher
    """
    from rankgrove.clicks._product_kernels import share_clicks

    several = np.diff(counts.starts) > 1
    useful = np.repeat(several, np.diff(counts.starts))
    got = np.bincount(counts.cell[useful], counts.clicked[useful], minlength=counts.n_cells)
    n_clicks = 0.0 if prior is None else prior.clicks
    free = ~fixed & (got + n_clicks > 0)
    whole = np.where(fixed, 1.0, 0.0)
    unit = 2.0 ** (60 - math.ceil(math.log2(counts.clicked.sum() + 2)))
    pieces = piece_bounds(counts.starts, n_threads)
    rate = n_clicks / prior.examination[free] if prior is not None else 0.0

    def step(parameters: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
        (here,) = parameters
        theta = whole.copy()
        theta[free] = np.exp(here)
        shares, value = np.zeros(counts.n_cells, np.int64), np.zeros(1, np.int64)
        lock = threading.Lock()

        def work(first: int, last: int) -> None:
            mine, total = np.zeros_like(shares), np.zeros_like(value)
            share_clicks(*counts[:4], theta, unit, first, last, mine, total)
            with lock:
                np.add(shares, mine, out=shares)
                np.add(value, total, out=value)

        run_pieces(work, pieces, n_threads)
        expected = shares[free] / unit + rate * theta[free]
        ratio = np.divide(
            got[free] + n_clicks, expected, out=np.ones(here.size), where=expected > 0
        )
        gained = ((got[free] + n_clicks) * here - rate * theta[free]).sum()
        new = np.minimum(here + np.log(ratio), math.log(most))
        return [new], float(gained - value[0] / (unit / 64))

    begin = np.log(np.clip(start[free], LEAST, most))
    reached = climb(
        step,
        [begin],
        weights=(None,),
        max_iterations=max_iterations,
        tolerance=tolerance,
        bounded=False,
    )
    theta = whole
    theta[free] = np.exp(np.minimum(reached.parameters[0], math.log(most)))
    return theta, reached


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
    excess : what Bernoulli clicks vary less than Poisson's, in the same form
    """

    reference: int
    linked: np.ndarray
    log_examination: np.ndarray
    standard_error: np.ndarray
    adjacent_error: np.ndarray
    information: np.ndarray
    excess: np.ndarray


def pair_counts(log: ClickLog) -> PairCells:
    """Return the counts of a log, where cells are positions."""
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
    starts = np.searchsorted(cells, np.arange(log.n_pairs + 1) * np.int64(n_places))
    place = (cells % n_places).astype(np.int32)
    return PairCells(
        starts, place, shown[order].astype(np.float64), clicked[order].astype(np.float64), n_places
    )


def estimate(counts: PairCells) -> Examination:
    """Return the examination that the clicks of the same pairs at several positions show."""
    n = counts.n_cells
    impressions = counts.by_cell(counts.shown)
    several = np.repeat(np.diff(counts.starts) > 1, np.diff(counts.starts))
    got = np.bincount(counts.cell[several], counts.clicked[several], minlength=n)
    # Components by what is joined: a position without clicks is joined to nothing.
    component = _components(_information(counts, (got > 0).astype(np.float64))[0])
    # The reference is the first position of the component that has most impressions.
    first = np.unique(component, return_index=True)[1]
    most = int(np.argmax(np.bincount(component, impressions)))
    reference = int(first[most])
    linked = component == most
    fixed = np.isin(np.arange(n), first) & (got > 0)
    theta, _ = conditional_examination(
        counts, fixed, start=naive_examination(counts, first[component], math.inf)
    )
    information, excess = _information(counts, theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_theta = np.where(linked, np.log(theta) - np.log(theta[reference]), np.nan)
    variance = np.zeros(information.shape)
    free = np.flatnonzero(linked & (np.arange(n) != reference))
    if free.size:
        variance[np.ix_(free, free)] = sandwich(information, excess, free)
    diagonal = np.diag(variance)
    error = np.where(linked, np.sqrt(np.maximum(diagonal, 0.0)), np.inf)
    adjacent = np.full(n, np.inf)
    both = linked[1:] & linked[:-1]
    between = diagonal[1:] + diagonal[:-1] - 2 * np.diag(variance, 1)
    adjacent[1:][both] = np.sqrt(np.maximum(between[both], 0.0))
    return Examination(reference, linked, log_theta, error, adjacent, information, excess)


def sandwich(information: np.ndarray, excess: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the covariance of log examination of some positions, from both matrices."""
    part = np.ix_(rows, rows)
    inverse = np.linalg.pinv(information[part], hermitian=True)
    return np.asarray(inverse - inverse @ excess[part] @ inverse)


def squared_attraction(clicks: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return an estimate of the squared attractiveness of pairs, at most 1.

    clicks : of pairs
    total, squares : sums of examinations of their impressions, and of their squares
    """
    room = total**2 - squares
    known = np.divide(
        clicks**2 - clicks, room, out=np.zeros(total.size), where=room > 1e-9 * total**2
    )
    return np.minimum(known, 1.0)


def _information(counts: PairCells, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Laplacian, and what is to be taken from it for Bernoulli clicks.

    The first is the sum over pairs of C (diag(s) - s s'), the second that of A times the sum over
    impressions of theta^2 (e - s)(e - s)'. A = (C^2 - C) / (N^2 - sum of theta^2), N the sum of
    theta over impressions, has the mean alpha^2 (:func:`squared_attraction`).
    """
    import scipy.sparse

    n = counts.n_cells
    mass = counts.shown * theta[counts.cell]
    used = (mass > 0) & np.repeat(np.diff(counts.starts) > 1, np.diff(counts.starts))
    if not used.any():
        return np.zeros((n, n)), np.zeros((n, n))
    _, pair = np.unique(counts.pair[used], return_inverse=True)
    place, mass = counts.cell[used], mass[used]
    clicks, total = np.bincount(pair, counts.clicked[used]), np.bincount(pair, mass)
    square = mass * theta[place]
    squares = np.bincount(pair, square)
    attraction = squared_attraction(clicks, total, squares)

    def of_pairs(values: np.ndarray) -> scipy.sparse.csr_matrix:
        return scipy.sparse.csr_matrix((values, (pair, place)), shape=(total.size, n))

    share = mass / total[pair]
    shares = of_pairs(share)
    outer = (of_pairs(clicks[pair] * share).T @ shares).toarray()
    np.fill_diagonal(outer, 0.0)
    cross = (of_pairs(attraction[pair] * square).T @ shares).toarray()
    rest = (of_pairs((attraction * squares)[pair] * share).T @ shares).toarray()
    own = np.bincount(place, attraction[pair] * square, minlength=n)
    excess = np.diag(own) - cross - cross.T + rest
    return np.diag(outer.sum(axis=1)) - outer, np.asarray(excess)


def _components(information: np.ndarray) -> np.ndarray:
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(information < 0, directed=False)[1])
