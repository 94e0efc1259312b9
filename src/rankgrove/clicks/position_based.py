"""The position-based model: a click needs a position that is looked at, and an attractive text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankgrove.clicks.click_model import ClickModel
from rankgrove.clicks.examined_cells import (
    Cells,
    cell_table,
    context_cells,
    context_references,
    reference_cells,
)
from rankgrove.clicks.learned import Learned, PseudoCounts
from rankgrove.clicks.log import ClickLog
from rankgrove.clicks.products import METHODS, ProductEvidence, ProductSettings, learn_in_two
from rankgrove.validation import check_choice, check_real


class PositionBased(ClickModel):
    """The position-based click model.

    P(click) = examination of the position x attractiveness of the document for the query. The
    product does not change if all examinations are doubled and all attractivenesses halved, so the
    scale is a convention: the examination of position 1 (the first position that occurs, in every
    context) is 1, and no other is higher. Attractiveness is then the probability of a click at
    position 1. Positions and documents can only be told apart if documents were shown at several
    positions; where nothing tells, examination is that of equally attractive documents.

    First examination is learned, from how the clicks of the same pair are shared out between
    positions (:mod:`rankgrove.clicks.examination`): that is right however few impressions pairs
    have. Then attractiveness is learned by EM, with the prior of pairs.

    Parameters
    ----------
    context : a name, or several, of contexts of the log, such as ``"device"``: positions are
        examined differently in each. None: in the same way everywhere
    method : ``"conditional"``: as said; ``"em"``: examination is learned by EM together with the
        attractiveness of every pair, as in the literature. That is biased where pairs have few
        impressions, and so are its intervals
    examination_strength : how much the prior of a position counts for: ``"conditional"``: so many
        clicks, at the rate of equally attractive documents; ``"em"``: so many impressions, half of
        which were examined
    max_iterations : the number of steps of EM at most
    tolerance : EM ends when examinations, and attractivenesses in the mean over impressions,
        change by less in a step
    prior_strength : the number of impressions that the prior of a pair counts for; None: estimated
    n_threads : the number of threads; None: all cores. Results do not depend on it

    Attributes
    ----------
    attractiveness_ : per pair of the log
    impressions_ : per pair of the log
    examination_ : per position, from 1; with `context`, per context and position
    context_names_ : the contexts, in the order of ``examination_``
    prior_mean_, prior_strength_ : of the prior of pairs
    history_ : the log likelihood while examinations were learnt, after every step that was kept
    n_iterations_, converged_ : of EM

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, seed=1)
    >>> log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=20_000, seed=1)
    >>> model = rg.PositionBased().fit(log)
    >>> model.examination_[:3].round(1)
    array([1. , 0.5, 0.3])
    """

    examination_: np.ndarray
    context_names_: tuple[str, ...]

    _parameters = (
        *("context", "method", "examination_strength", "max_iterations", "tolerance"),
        *ClickModel._parameters,
    )

    def __init__(
        self,
        *,
        context: str | Sequence[str] | None = None,
        method: str = "conditional",
        examination_strength: float = 1.0,
        max_iterations: int = 500,
        tolerance: float = 1e-7,
        prior_strength: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        check_choice("method", type(self).__name__, method, METHODS)
        check_real("examination_strength", type(self).__name__, examination_strength, low=0)
        self.context = context
        self.method = method
        self.examination_strength = examination_strength
        self._set_up(
            max_iterations=max_iterations,
            tolerance=tolerance,
            prior_strength=prior_strength,
            n_threads=n_threads,
        )

    def _evidence(self, log: ClickLog) -> tuple[Cells, ProductEvidence]:
        cells = context_cells(log, self.context, type(self).__name__)
        return cells, ProductEvidence(log, cells.of_impression, cells.size, self.n_threads)

    def _learn(
        self,
        evidence: tuple[Cells, ProductEvidence],
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
        limits: tuple[int, float],
    ) -> Learned:
        cells, counts = evidence
        settings = ProductSettings(self.method, self.examination_strength, *limits)
        learned, examination = learn_in_two(
            *(counts, weights, prior, start),
            *(reference_cells(cells), context_references(cells), settings),
        )
        table = cell_table(examination, cells)
        learned.shared["examination"] = table
        return learned

    def _keep(self, log: ClickLog, prior: Any, learned: Learned) -> None:
        super()._keep(log, prior, learned)
        self.context_names_ = context_cells(log, self.context, type(self).__name__).names

    def _probabilities(
        self, log: ClickLog, attractiveness: np.ndarray, *, conditional: bool
    ) -> np.ndarray:
        cells = context_cells(log, self.context, type(self).__name__)
        table = np.atleast_2d(self.examination_)
        known = dict(zip(self.context_names_, table, strict=True))
        rows = np.array([known.get(name, table.mean(axis=0)) for name in cells.names])
        place = np.minimum(log.position.astype(np.int64), table.shape[1]) - 1
        examination = rows[cells.of_session[log.session_of], place]
        return attractiveness[log.pair] * examination
