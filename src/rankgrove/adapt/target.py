"""The target's rows in the form that adaptation uses: column by column, values and bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.arrays import frozen
from rankgrove.data.binning import N_BINS, BinnedMatrix

if TYPE_CHECKING:
    import scipy.sparse

    Matrix = np.ndarray | scipy.sparse.csr_matrix

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class TargetRows:
    """The columns of the data that an ensemble uses.

    Attributes
    ----------
    features : numbers of the columns, ascending
    columns : float32 (features, rows), their values
    codes : uint8 (binned features, rows); ``code_of`` is the row of every column in it, or -1
    tables, n_thresholds : the thresholds between bins
    """

    features: np.ndarray
    columns: np.ndarray
    codes: np.ndarray
    code_of: np.ndarray
    tables: np.ndarray
    n_thresholds: np.ndarray

    @classmethod
    def of(
        cls,
        features: Matrix,
        rows: np.ndarray | slice | None,
        used: np.ndarray,
        binned: BinnedMatrix | None = None,
        n_threads: int | None = None,
    ) -> TargetRows:
        """Return the columns `used` of the given rows; `binned`: their bins, to find splits."""
        columns = _columns(features, rows, used)
        code_of = np.full(used.size, -1, np.int64)
        tables = np.full((0, N_BINS), np.inf, np.float32)
        codes = np.empty((0, columns.shape[1]), np.uint8)
        n_thresholds = np.empty(0, np.int64)
        if binned is not None:
            codes = binned.by_column(n_threads)
            place = {int(column): at for at, column in enumerate(binned.binner.columns)}
            code_of[:] = [place.get(int(column), -1) for column in used]
            thresholds = binned.binner.thresholds
            tables = np.full((len(thresholds), N_BINS), np.inf, np.float32)
            n_thresholds = np.array([len(of_column) for of_column in thresholds], np.int64)
            for at, of_column in enumerate(thresholds):
                tables[at, : of_column.size] = of_column
        return cls(used, columns, codes, code_of, tables, n_thresholds)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.columns.shape[1])

    def spread(self) -> np.ndarray:
        """Return the standard deviation of every column, without missing and infinite values."""
        deviations = np.zeros(self.features.size)
        for at, column in enumerate(self.columns):
            finite = column[np.isfinite(column)]
            deviations[at] = finite.std(dtype=np.float64) if finite.size else 0.0
        return deviations


def _columns(features: Matrix, rows: np.ndarray | slice | None, used: np.ndarray) -> np.ndarray:
    index = np.arange(features.shape[0])
    if rows is not None:
        index = index[rows]
    columns = np.empty((used.size, index.size), np.float32)
    for start in range(0, index.size, _ROWS_AT_ONCE):
        part = features[index[start : start + _ROWS_AT_ONCE]]
        dense = part if isinstance(part, np.ndarray) else part.toarray()
        columns[:, start : start + _ROWS_AT_ONCE] = dense[:, used].T
    return frozen(columns)
