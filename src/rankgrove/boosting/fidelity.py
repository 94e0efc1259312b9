"""Boosting stumps for the fidelity loss (FRank)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rankgrove import parallel
from rankgrove.boosting._fidelity_kernels import BINS, fidelity_losses, fidelity_sums
from rankgrove.boosting.step import Grown
from rankgrove.data.binning import BinnedMatrix
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.stumps import StumpMaker
from rankgrove.model.tree import Tree
from rankgrove.objectives.label_pairs import LabelPairs

MOST_PULL = 0.385  # the largest (1 - P) sqrt(P), at P = 1/3
HALVINGS = 40
SERIAL_PAIRS = 1 << 14


class FidelityRows:
    """Training rows for the boosting loop (see :class:`~rankgrove.boosting.loop.TrainingRows`).

    The loss of a pair is 1 - sqrt(P), P = 1 / (1 + exp(-gap)) (Tsai et al. 2007); its slope is
    half the pull W = (1 - P) sqrt(P). A stump puts some pairs in the right order (the sum of their
    pulls is A) and some in the wrong order (B); its weight is alpha = 1/2 ln(A / B). The stump with
    the largest (sqrt A - sqrt B)^2 is taken: the decrease of the loss under the approximation that
    gives alpha, pulls that change by exp(-alpha). Then the true loss is computed, and alpha is
    halved until the loss decreases.

    Parameters
    ----------
    pairs : the pairs; in the paper every query's pairs have the same total weight
    binned : the rows
    scores : scores of shape (1, rows), updated in place

    Attributes
    ----------
    loss : loss of the scores after the last round, divided by the weight of all pairs
    """

    n_columns = 1
    grows_alike = True

    def __init__(
        self,
        pairs: LabelPairs,
        binned: BinnedMatrix,
        scores: np.ndarray,
        n_threads: int | None = None,
    ) -> None:
        self._pairs = pairs
        self._codes = binned.codes
        self._maker = StumpMaker(binned, n_threads)
        self._scores = scores[0]
        self._n_threads = n_threads
        self._unit = math.ldexp(1.0, 60 - math.frexp(MOST_PULL * pairs.total)[1])
        self.loss: float | None = None  # a checkpoint may still change the scores

    def gradients(self, round: int) -> None:
        """Do nothing: slopes belong to pairs, and are summed in the search for stumps."""

    def grow(self, column: int, number: int) -> Grown:
        """Return the best stump with its weight, or no split if no stump lowers the loss."""
        if self.loss is None:
            self.loss = self._loss(self._scores)
        right, wrong = self._sums()
        at = self._maker.best((np.sqrt(right) - np.sqrt(wrong)) ** 2)
        # about one pair's pull: keeps alpha finite where no pair is in the wrong order
        little = (right[at] + wrong[at]) / int(self._pairs.counts.sum())
        alpha = 0.5 * math.log((right[at] + little) / (wrong[at] + little)) if little else 0.0
        rows = self._maker.goes_right(at)
        for _ in range(HALVINGS if alpha else 0):
            loss = self._loss(self._scores + alpha * rows)
            if loss < self.loss:
                tree = self._maker.tree(at, rows, alpha, self.loss - loss)
                self.loss = loss
                return Grown(tree, rows.view(np.uint8), self._scores)
            alpha /= 2.0
        return Grown(Tree.constant(0.0), np.zeros(rows.size, np.uint8), self._scores)

    def add(self, column: int, grown: Grown) -> None:
        """Add a stump to the scores."""
        add_leaf_values(self._scores, grown.tree.value, grown.leaf_of, n_threads=self._n_threads)

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B of every split, of shape (columns, where missing values go, bins)."""
        maker, sums = self._maker, []

        def work(first: int, last: int) -> None:
            out = np.zeros((len(maker.columns), 2, 2, BINS), np.int64)
            fidelity_sums(
                first, last, self._scores, self._codes, maker.has_missing, self._unit, out,
                *self._pairs.arrays(),
            )  # fmt: skip
            sums.append(out)

        self._run(work)
        totals = np.cumsum(np.sum(sums, axis=0), axis=-1)[..., 1:] / self._unit
        return totals[:, 0], totals[:, 1]

    def _loss(self, scores: np.ndarray) -> float:
        losses = np.empty(self._pairs.factor.size)
        arrays = self._pairs.arrays()
        self._run(lambda first, last: fidelity_losses(first, last, scores, losses, *arrays))
        return math.fsum(losses.tolist()) / self._pairs.total

    def _run(self, work: Callable[[int, int], None]) -> None:
        before = np.concatenate([[0], np.cumsum(self._pairs.counts)])
        few = 1 if before[-1] < SERIAL_PAIRS else self._n_threads
        parallel.run_pieces(work, parallel.piece_bounds(before, few, 2), few)
