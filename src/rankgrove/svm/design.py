"""The rows as a linear learner uses them: X w and X' c, for any form of X.

Rows are in query order, and all sums run in an order that does not depend on threads. X is never
copied to be scaled: the scale is applied to w and to X' c.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove import parallel
from rankgrove.scoring.linear_scores import over_rows, step_table, weighted_sums

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

# X' c is summed in this number of blocks of rows, and the blocks in their order.
_BLOCKS = 64
_MOST_CELLS = 1 << 24  # of all blocks' sums together


class Design(ABC):
    """Rows of features for a learner."""

    n_rows: int
    n_columns: int

    @abstractmethod
    def scores(self, w: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        """Return X w."""

    @abstractmethod
    def between(self, first: int, last: int) -> Design:
        """Return the rows `first` to `last` - 1, as a view."""

    def combine(self, coefficient: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        """Return X' c."""
        n_blocks = max(1, min(_BLOCKS, self.n_rows // 256, _MOST_CELLS // max(1, self._width)))
        bounds = np.linspace(0, self.n_rows, n_blocks + 1).astype(np.int64)
        sums = np.zeros((n_blocks, self._width))

        def work(first: int, last: int) -> None:
            for block in range(first, last):
                self._add(coefficient, bounds[block], bounds[block + 1], sums[block])

        parallel.run_pieces(work, np.arange(n_blocks + 1), n_threads)
        total = sums[0]
        for other in sums[1:]:
            total += other
        return self._finish(total)

    _width: int  # numbers that a block sums up

    @abstractmethod
    def _add(self, coefficient: np.ndarray, first: int, last: int, out: np.ndarray) -> None: ...

    def _finish(self, total: np.ndarray) -> np.ndarray:
        return total


class MatrixDesign(Design):
    """Rows of a dense or CSR float32 matrix, each column multiplied by a factor.

    Parameters
    ----------
    features : the matrix
    rows : which of its rows, in query order; None: all
    factor : one per column
    """

    def __init__(
        self,
        features: Matrix,
        rows: np.ndarray | None = None,
        factor: np.ndarray | None = None,
    ) -> None:
        self._features = features
        self._rows = np.arange(features.shape[0]) if rows is None else rows
        self._factor = np.ones(features.shape[1]) if factor is None else factor
        self.n_rows = int(self._rows.size)
        self.n_columns = self._width = int(features.shape[1])
        self._parts: tuple[np.ndarray, ...] = (
            (features,)
            if isinstance(features, np.ndarray)
            else (features.data, features.indices, features.indptr)
        )

    def scores(self, w: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        return weighted_sums(self._features, self._rows, w * self._factor, n_threads)

    def between(self, first: int, last: int) -> MatrixDesign:
        return MatrixDesign(self._features, self._rows[first:last], self._factor)

    def _add(self, coefficient: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
        from rankgrove.svm._design_kernels import add_dense, add_sparse

        kernel: Any = add_dense if len(self._parts) == 1 else add_sparse
        kernel(*self._parts, self._rows, first, last, coefficient, out)

    def _finish(self, total: np.ndarray) -> np.ndarray:
        return np.asarray(total * self._factor)


class StepDesign(Design):
    """Threshold features of dense rows, stored as one small number per value: its step.

    The indicators 1[f > k] would take one number per threshold below the value.
    """

    def __init__(self, codes: np.ndarray, threshold_ptr: np.ndarray) -> None:
        self._codes = codes
        self._ptr = threshold_ptr
        self.n_rows = int(codes.shape[0])
        self.n_columns = int(threshold_ptr[-1])
        self._width = self.n_columns + codes.shape[1]

    def scores(self, w: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        from rankgrove.scoring._linear_kernels import score_codes

        value, scores = step_table(self._ptr, w), np.empty(self.n_rows)
        over_rows(
            lambda a, b: score_codes(self._codes, a, b, self._ptr, value, scores),
            self.n_rows,
            self._codes.shape[1],
            n_threads,
        )
        return scores

    def between(self, first: int, last: int) -> StepDesign:
        return StepDesign(self._codes[first:last], self._ptr)

    def _add(self, coefficient: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
        from rankgrove.svm._design_kernels import add_codes

        add_codes(self._codes, self._ptr, first, last, coefficient, out)

    def _finish(self, total: np.ndarray) -> np.ndarray:
        from rankgrove.svm._design_kernels import steps_to_thresholds

        out = np.empty(self.n_columns)
        steps_to_thresholds(self._ptr, total, out)
        return out
