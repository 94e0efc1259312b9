"""The user browsing model: examination depends on the position and on the last click above."""

from __future__ import annotations

import numpy as np

from rankgrove.clicks.click_model import ClickModel
from rankgrove.clicks.learned import Learned, PseudoCounts
from rankgrove.clicks.log import ClickLog
from rankgrove.clicks.products import METHODS, ProductEvidence, ProductSettings, learn_in_two
from rankgrove.parallel import piece_bounds, run_pieces
from rankgrove.validation import check_choice, check_integer, check_real


class UserBrowsing(ClickModel):
    """The user browsing model.

    P(click) = attractiveness x examination, where the examination depends on the position and on
    the distance to the last click above it (Dupret and Piwowarski, 2008); learned as in the
    position-based model. As there the scale is a convention: the examination of the first position
    is 1.

    Parameters
    ----------
    last_position : positions further down have the examination of this one, and longer distances
        that of this distance
    method : ``"conditional"`` or ``"em"``, as of the position-based model
    examination_strength : how much the prior of a position and distance counts for:
        ``"conditional"``: so many clicks, at the rate of equally attractive documents; ``"em"``: so
        many impressions, half of which were examined
    max_iterations : the number of steps of EM at most
    tolerance : EM ends when examinations, and attractivenesses in the mean over impressions,
        change by less in a step
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : the number of threads; None: all cores. Results do not depend on it

    Attributes
    ----------
    attractiveness_ : per pair of the log
    impressions_ : per pair of the log
    examination_ : row: position, from 1; column: distance to the last click above, 0: there is none
    prior_mean_, prior_strength_ : of the prior of pairs
    history_ : the log likelihood while examinations were learnt, after every step that was kept
    n_iterations_, converged_ : of EM

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, seed=1)
    >>> log = rg.simulate_clicks(
    ...     data, data.column(1), model="user-browsing", noise=1.0, sessions=20_000, seed=1
    ... )
    >>> model = rg.UserBrowsing().fit(log)
    >>> bool(model.examination_[4, 1] > model.examination_[4, 0])
    True
    """

    examination_: np.ndarray

    _parameters = (
        *("last_position", "method", "examination_strength", "max_iterations", "tolerance"),
        *ClickModel._parameters,
    )

    def __init__(
        self,
        *,
        last_position: int = 50,
        method: str = "conditional",
        examination_strength: float = 1.0,
        max_iterations: int = 500,
        tolerance: float = 1e-7,
        prior_strength: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        check_integer("last_position", type(self).__name__, last_position, low=1, high=1000)
        check_choice("method", type(self).__name__, method, METHODS)
        check_real("examination_strength", type(self).__name__, examination_strength, low=0)
        self.last_position = last_position
        self.method = method
        self.examination_strength = examination_strength
        self._set_up(
            max_iterations=max_iterations,
            tolerance=tolerance,
            prior_strength=prior_strength,
            n_threads=n_threads,
        )

    def _evidence(self, log: ClickLog) -> tuple[ProductEvidence, np.ndarray, int]:
        most = min(self.last_position, log.n_positions)
        cell = browsing_cells(log, most, self.n_threads)
        n_cells = most * (most + 1)
        seen = np.bincount(cell, minlength=n_cells) > 0
        return ProductEvidence(log, cell, n_cells, self.n_threads), seen, most

    def _learn(
        self,
        evidence: tuple[ProductEvidence, np.ndarray, int],
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
        limits: tuple[int, float],
    ) -> Learned:
        counts, seen, most = evidence
        fixed = np.zeros(seen.size, bool)
        first = int(np.flatnonzero(seen)[0])
        fixed[first] = True
        settings = ProductSettings(self.method, self.examination_strength, *limits)
        reference = np.full(seen.size, first)
        learned, examination = learn_in_two(
            counts, weights, prior, start, fixed, reference, settings
        )
        table = _filled(examination.reshape(most, most + 1), seen.reshape(most, most + 1))
        learned.shared["examination"] = table
        return learned

    def _probabilities(
        self, log: ClickLog, attractiveness: np.ndarray, *, conditional: bool
    ) -> np.ndarray:
        most = self.examination_.shape[0]
        table = self.examination_.ravel()
        if conditional:
            cell = browsing_cells(log, most, self.n_threads)
            return attractiveness[log.pair] * table[cell]
        from rankgrove.clicks._product_kernels import browsing_probabilities

        out = np.empty(log.n_impressions)
        longest = int(np.diff(log.session_ptr).max(initial=0))

        def work(first: int, last: int) -> None:
            browsing_probabilities(
                *(log.session_ptr, log.pair, log.position, attractiveness, table, most),
                *(first, last, np.empty(longest + 1), out),
            )

        run_pieces(work, piece_bounds(log.session_ptr, self.n_threads), self.n_threads)
        return out


def browsing_cells(log: ClickLog, most: int, n_threads: int | None) -> np.ndarray:
    """Return the cell of every impression: its position, and the distance to the last click."""
    from rankgrove.clicks._product_kernels import browsing_cells as kernel

    cell = np.empty(log.n_impressions, np.int64)

    def work(first: int, last: int) -> None:
        kernel(log.session_ptr, log.position, log.click, first, last, most, cell)

    run_pieces(work, piece_bounds(log.session_ptr, n_threads), n_threads)
    return cell


def _filled(table: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the table where cells that do not occur have the mean of those of their distance.

    If no cell of that distance occurs either: the mean of all.
    """
    total = np.where(seen, table, 0.0).sum(axis=0)
    n = seen.sum(axis=0)
    overall = table[seen].mean()
    by_distance = np.divide(total, n, out=np.full(n.size, overall), where=n > 0)
    return np.where(seen, table, by_distance[None, :])
