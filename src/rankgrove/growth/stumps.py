"""Stumps: trees with one split, for rankers that boost single thresholds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel
from rankgrove.data.arrays import Rows
from rankgrove.data.binning import MISSING, N_BINS, BinnedMatrix, Binner, ColumnBins
from rankgrove.data.thresholds import place_thresholds
from rankgrove.growth._stump_kernels import column_sums
from rankgrove.growth.splitting import SplitRules
from rankgrove.model.tree import Tree

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

SURE = 1.0 - 1e-6  # limit of |r|: the weight of a stump without mistakes would be infinite


def placed_bins(features: Matrix, rows: Rows, n_thresholds: int, spacing: str) -> Binner:
    """Return bins with `n_thresholds` thresholds per feature, evenly spaced or at quantiles."""
    thresholds, ptr = place_thresholds(features, n_thresholds, rows=rows, spacing=spacing)
    part = features if rows is None else features[rows]
    if isinstance(part, np.ndarray):
        missing = np.isnan(part).sum(axis=0)
    else:
        missing = np.bincount(part.indices[np.isnan(part.data)], minlength=part.shape[1])
    bins = [
        ColumnBins(j, thresholds[ptr[j] : ptr[j + 1]], n, part.shape[0] - n, 0)
        for j, n in enumerate(missing.tolist())
    ]
    return Binner.of(part.shape[1], bins)


class StumpMaker:
    """Makes trees with one split on binned rows.

    Attributes
    ----------
    columns : the bins, column by column
    has_missing : which columns have missing values
    allowed : of shape (columns, 2, bins): which splits are possible, with missing values on the
        right (0) or left (1). On the right, they may also be separated from all values
    """

    def __init__(self, binned: BinnedMatrix, n_threads: int | None = None) -> None:
        self.binner = binned.binner
        self.columns = binned.by_column(n_threads)
        self.has_missing = np.array(
            [np.any(column == MISSING) for column in self.columns], np.bool_
        )
        n_thresholds = np.array([column.size for column in self.binner.thresholds])
        bins = np.arange(N_BINS)
        self.allowed = np.zeros((n_thresholds.size, 2, N_BINS), np.bool_)
        self.allowed[:, 0] = bins < (n_thresholds + self.has_missing)[:, None]
        self.allowed[:, 1] = (bins < n_thresholds[:, None]) & self.has_missing[:, None]
        self._turn = np.argsort(self.binner.columns, kind="stable")

    def best(self, worth: np.ndarray) -> tuple[int, int, int]:
        """Return (column, side of missing values, bin) of the allowed split of the largest worth.

        Among equal splits, the lowest column is taken, then missing values on the right, then the
        lowest bin.
        """
        worth = np.where(self.allowed, worth, -1.0)[self._turn]
        c, where, bin = np.unravel_index(int(np.argmax(worth)), worth.shape)
        return int(self._turn[c]), int(where), int(bin)

    def goes_right(self, at: tuple[int, int, int]) -> np.ndarray:
        """Return which rows a split sends to the right."""
        c, where, bin = at
        codes = self.columns[c]
        right: np.ndarray = codes > bin
        if where:
            right &= codes != MISSING
        return right

    def tree(self, at: tuple[int, int, int], right: np.ndarray, value: float, gain: float) -> Tree:
        """Return the stump that gives `value` to the rows on the right, and 0 to the others."""
        c, where, bin = at
        thresholds = self.binner.thresholds[c]
        n, n_right = right.size, int(np.count_nonzero(right))
        missing_left = bool(where) if self.has_missing[c] else 2 * n_right <= n
        return Tree(
            feature=np.array([self.binner.columns[c]], np.int32),
            threshold=np.array([thresholds[bin] if bin < thresholds.size else np.inf], np.float32),
            left=np.array([~0], np.int32),
            right=np.array([~1], np.int32),
            missing_left=np.array([missing_left]),
            gain=np.array([gain]),
            value=np.array([0.0, value]),
            count=np.array([n, n - n_right, n_right]),
            weight=np.array([n, n - n_right, n_right], np.float64),
            mean=np.array([value * n_right / n, 0.0, value]),
        )


class PotentialStumps:
    """RankBoost's weak rankers: the threshold with the largest sum of potentials above it.

    With the potentials pi as gradients and the pairs' weights as hessians, r = sum of pi above the
    threshold / sum of the weights, and the rows above get alpha = 1/2 ln((1 + r) / (1 - r)). r may
    be below 0; a missing value is above or below, whichever is better (Freund et al. 2003, section
    3.2 and the third method for alpha). Whole numbers are summed, so the order of rows does not
    matter.

    Parameters
    ----------
    binned : the rows
    """

    def __init__(self, binned: BinnedMatrix, n_threads: int | None = None) -> None:
        self.rules = SplitRules()
        self._maker = StumpMaker(binned, n_threads)
        self._n_threads = n_threads
        self._sums = np.empty((len(self._maker.columns), N_BINS), np.int64)

    def grow(
        self,
        gradient: np.ndarray,
        hessian: np.ndarray | None = None,
        round: int = 0,
        rows: np.ndarray | None = None,
    ) -> tuple[Tree, np.ndarray]:
        """Return the best stump, or a constant tree if no split helps, and the leaves of rows."""
        assert hessian is not None
        assert rows is None
        maker, sums, n = self._maker, self._sums, gradient.size
        largest = max(float(np.abs(gradient).max()), float(hessian.max()))
        if largest == 0.0:
            return Tree.constant(0.0), np.zeros(n, np.uint8)
        unit = math.ldexp(1.0, 61 - n.bit_length() - math.frexp(largest)[1])
        units = np.rint(gradient * unit).astype(np.int64)
        total = int(np.rint(hessian * unit).astype(np.int64).sum())
        cuts = parallel.piece_bounds(np.arange(len(sums) + 1) * n, self._n_threads)
        parallel.run_pieces(
            lambda first, last: column_sums(maker.columns, units, first, last, sums),
            cuts,
            self._n_threads,
        )
        above = int(units.sum()) - np.cumsum(sums, axis=1)
        both = np.stack([above, above - sums[:, MISSING:]], axis=1)
        at = maker.best(np.abs(both).astype(np.float64))
        r = int(both[at]) / total
        if r == 0.0:
            return Tree.constant(0.0), np.zeros(n, np.uint8)
        r = min(max(r, -SURE), SURE)
        right = maker.goes_right(at)
        tree = maker.tree(at, right, math.atanh(r), -0.5 * math.log1p(-r * r))
        return tree, right.view(np.uint8)
