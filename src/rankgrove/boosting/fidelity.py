"""Boosting stumps for the fidelity loss (FRank)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rankgrove import parallel
from rankgrove.boosting._fidelity_kernels import BINS, fidelity_losses, fidelity_sums
from rankgrove.boosting.step import Step
from rankgrove.data.binning import BinnedMatrix
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.stumps import StumpMaker
from rankgrove.model.tree import Tree
from rankgrove.objectives.label_pairs import LabelPairs
from rankgrove.training.watch import Watch

MOST_PULL = 0.385  # the largest (1 - P) sqrt(P), at P = 1/3
HALVINGS = 40
SERIAL_PAIRS = 1 << 14


class FidelityTraining:
    """Training rows for the boosting loop (see :class:`~rankgrove.boosting.loop.TrainingRows`).

    The loss of a pair is 1 - sqrt(P), P = 1 / (1 + exp(-gap)) (Tsai et al. 2007); its slope is
    half the pull W = (1 - P) sqrt(P). A stump tells some pairs apart in the right order (pulls add
    up to A) and some in the wrong one (B); its weight is alpha = 1/2 ln(A / B). The stump with the
    largest (sqrt A - sqrt B)^2 is taken: the fall of the loss under the same approximation that
    gives alpha, pulls that change by exp(-alpha). The true loss is then computed, and alpha halved
    until it falls.

    Parameters
    ----------
    pairs : the pairs; every query's are to have the same weight together
    binned : the rows
    scores : of shape (1, rows); brought up to date in place

    Attributes
    ----------
    loss : of the scores after the last round, over the weight of all pairs
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
        self.loss: float | None = None  # scores may yet be brought to where a checkpoint ends

    def follow(self, round: int) -> None:
        """Do nothing: every round sees everything."""

    def advance(self, column: int, number: int, step: Step, watch: Watch) -> tuple[Tree, float]:
        """Find a stump, weigh it and add it to the scores; return it and its weight."""
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
                tree, weight = step(tree, rows, self._scores, watch)
                add_leaf_values(
                    self._scores, tree.value, rows.view(np.uint8), n_threads=self._n_threads
                )
                self.loss = loss
                return tree, weight
            alpha /= 2.0
        return Tree.constant(0.0), 0.0

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B of every split, of shape (columns, where missing values go, bins)."""
        maker, found = self._maker, []

        def work(first: int, last: int) -> None:
            out = np.zeros((len(maker.columns), 2, 2, BINS), np.int64)
            fidelity_sums(
                first, last, self._scores, self._codes, maker.has_missing, self._unit, out,
                *self._pairs.arrays(),
            )  # fmt: skip
            found.append(out)

        self._run(work)
        told = np.cumsum(np.sum(found, axis=0), axis=-1)[..., 1:] / self._unit
        return told[:, 0], told[:, 1]

    def _loss(self, scores: np.ndarray) -> float:
        losses = np.empty(self._pairs.factor.size)
        arrays = self._pairs.arrays()
        self._run(lambda first, last: fidelity_losses(first, last, scores, losses, *arrays))
        return math.fsum(losses.tolist()) / self._pairs.total

    def _run(self, work: Callable[[int, int], None]) -> None:
        before = np.concatenate([[0], np.cumsum(self._pairs.counts)])
        few = 1 if before[-1] < SERIAL_PAIRS else self._n_threads
        parallel.run_pieces(work, parallel.piece_bounds(before, few, 2), few)
