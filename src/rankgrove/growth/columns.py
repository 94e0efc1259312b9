"""Bins on disk while trees are grown: columns are read, rows are mapped.

The rows of leaves are divided by columns, and counted row by row. Mapped rows are left to the
system, which takes their memory when others need it. To give them back after every leaf was tried:
mapping them again takes so long that a tree took three times as long.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.columns_file import ColumnsFile

KEPT_BYTES = 16 << 20  # of the columns that were read last


class Columns(Protocol):
    """Returns the bins of a feature."""

    def __getitem__(self, feature: int) -> np.ndarray:
        """Return one byte per row."""


class ReadColumns:
    """Columns of a file, of which those that were used last are kept in memory."""

    def __init__(self, file: ColumnsFile) -> None:
        self._file = file
        self._most = max(2, KEPT_BYTES // max(1, file.n_rows))
        self._kept: dict[int, np.ndarray] = {}  # in the order of use

    def __getitem__(self, feature: int) -> np.ndarray:
        column = self._kept.pop(feature, None)
        if column is None:
            if len(self._kept) < self._most:
                column = np.empty(self._file.n_rows, np.uint8)
            else:
                column = self._kept.pop(next(iter(self._kept)))
            self._file.read(feature, column)
        self._kept[feature] = column
        return column


def columns_of(binned: BinnedMatrix, n_threads: int | None = None) -> Columns:
    """Return the columns of a matrix: a copy of its bins, or those of its file."""
    if binned.columns is not None:
        return ReadColumns(binned.columns)
    return binned.by_column(n_threads)
