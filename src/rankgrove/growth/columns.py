"""Bins on disk while trees are grown: columns are read, rows are mapped for a while.

The rows of leaves are divided by columns, and counted row by row.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.columns_file import ColumnsFile, forget

KEPT_BYTES = 16 << 20  # of the columns that were read last
MAPPED_BYTES = 96 << 20  # of the rows
_AROUND = 1 << 16  # bytes that the system maps where one is read


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


class MappedRows:
    """Keeps the memory small that rows of a mapped file take; rows in memory are left alone.

    A mapped page counts as memory of this process once it was read. It is given back after
    MAPPED_BYTES; the system still has it while it has room, and maps it again.
    """

    def __init__(self, words: np.ndarray, is_file: bool) -> None:
        self._words = words
        self._is_file = is_file
        self._bytes = 0

    def stretches(self, n_rows: int) -> int:
        """Return the number of parts to count rows in, one after the other."""
        return max(1, -(-self._touched(n_rows) // MAPPED_BYTES)) if self._is_file else 1

    def read(self, n_rows: int) -> None:
        """Note that rows were, or will be, read."""
        if not self._is_file:
            return
        self._bytes += self._touched(n_rows)
        if self._bytes > MAPPED_BYTES:
            forget(self._words)
            self._bytes = 0

    def _touched(self, n_rows: int) -> int:
        """Return the most bytes that are mapped for some rows, which may be far apart."""
        return min(int(self._words.nbytes), n_rows * _AROUND)


def columns_of(binned: BinnedMatrix, n_threads: int | None = None) -> Columns:
    """Return the columns of a matrix: a copy of its bins, or those of its file."""
    if binned.columns is not None:
        return ReadColumns(binned.columns)
    return binned.by_column(n_threads)
