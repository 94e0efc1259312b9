"""Float32 values on disk, block by block of rows and column by column in a block.

Rows are written as they are read; columns are read as memory allows::

    block 0    column 0 | column 1 | ...        each packed: see `_spill_kernels.py`
    block 1    column 0 | column 1 | ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from rankgrove.data.arrays import frozen
from rankgrove.data.columns_file import bytes_of
from rankgrove.files import told_errors

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

NOTHING_STORED = -2  # of a column that a block does not have: every value is the hole


@dataclass(frozen=True)
class PackedColumns:
    """Where the columns of a block are: `columns` ascending, ends in words of 32 bits."""

    n_rows: int
    offset: int
    columns: np.ndarray
    counts: np.ndarray
    ends: np.ndarray

    def span(self, first: int, last: int) -> tuple[slice, int, int]:
        """Return which packed columns are in first..last-1, and their first and last word."""
        begin, end = np.searchsorted(self.columns, [first, last]).tolist()
        words = [0 if at == 0 else int(self.ends[at - 1]) for at in (begin, end)]
        return slice(begin, end), words[0], words[1]


# Errors of writing bins.
told_writing = partial(
    told_errors,
    done="written",
    remedy="Put the bins elsewhere: --bins FOLDER on the command line, folder= of open_binned, "
    "bins= of fit_files.",
)


class Spill:
    """A temporary file of values, written once.

    Parameters
    ----------
    path : the file, which must not exist
    hole : 0.0 or NaN, the value that is not stored where it is frequent
    """

    def __init__(self, path: Path, hole: float) -> None:
        with told_writing(path):
            self._file = cast(BinaryIO, open(path, "xb+", buffering=0))  # noqa: SIM115
        self._path = path
        self.hole = np.float32(hole)
        self._hole = self.hole.view(np.uint32)
        self._blocks: list[PackedColumns] = []
        self._end = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(block.n_rows for block in self._blocks)

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    # -- writing ----------------------------------------------------------------------------------

    def add(self, features: Matrix) -> None:
        """Append a block of rows: float32, dense or CSR."""
        if isinstance(features, np.ndarray):
            columns, counts, words = self._packed(features)
        else:
            columns, counts, words = self._packed_sparse(features)
        n_rows = int(features.shape[0])
        size = np.where(counts < 0, n_rows, counts + (counts + 1) // 2)
        self._blocks.append(PackedColumns(n_rows, self._end, columns, counts, np.cumsum(size)))
        with told_writing(self._path):
            view = bytes_of(words)
            while view:
                view = view[self._file.write(view) :]
        self._end += words.nbytes

    def _packed(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from rankgrove.data import _spill_kernels as kernels

        n_rows, width = features.shape
        bits = frozen(np.ascontiguousarray(features)).view(np.uint32)
        turned = np.empty((width, n_rows), np.uint32)
        kernels.turn(bits, turned)
        counts = np.empty(width, np.int64)
        kernels.count_stored(turned, self._hole, counts)
        size = np.where(counts < 0, n_rows, counts + (counts + 1) // 2)
        ends = np.cumsum(size)
        words = np.empty(int(ends[-1]) if width else 0, np.uint32)
        kernels.pack(turned, self._hole, counts, ends - size, words)
        return np.arange(width), counts, words

    def _packed_sparse(self, features: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from rankgrove.data._spill_kernels import pack_sparse

        by_column = features.tocsc()  # type: ignore[union-attr]
        stored = np.diff(by_column.indptr)
        columns = np.flatnonzero(stored)
        counts = stored[columns].astype(np.int64)
        size = counts + (counts + 1) // 2
        ends = np.cumsum(size)
        words = np.empty(int(ends[-1]) if columns.size else 0, np.uint32)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        bits = by_column.data.astype(np.float32, copy=False).view(np.uint32)
        pack_sparse(bits, by_column.indices, pointers, ends - size, words)
        return columns, counts, words

    # -- reading ----------------------------------------------------------------------------------

    def stored(self, n_columns: int) -> np.ndarray:
        """Return how many values are stored of every column."""
        total = np.zeros(n_columns, np.int64)
        for block in self._blocks:
            total[block.columns] += np.where(block.counts < 0, block.n_rows, block.counts)
        return total

    def keys(self, first: int, last: int, keys: np.ndarray, sizes: np.ndarray) -> None:
        """Fill ``keys[c, :sizes[c]]`` with the keys of the stored values of column first + c."""
        from rankgrove.data._spill_kernels import add_keys

        sizes[:] = 0
        for block in self._blocks:
            chosen, begin, end = block.span(first, last)
            if chosen.start == chosen.stop:
                continue
            words = self._words(block, begin, end)
            places = block.columns[chosen] - first
            counts = block.counts[chosen]
            starts = np.concatenate([[0], block.ends[chosen][:-1] - begin])
            add_keys(words, places, starts, counts, block.n_rows, keys, sizes)

    def column(self, column: int) -> np.ndarray:
        """Return the values of a column, all rows."""
        return np.concatenate([part for _, part in self.parts_of(column)])

    def parts_of(self, column: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, values) of a column, block by block."""
        from rankgrove.data._spill_kernels import unpack

        row = 0
        for block in self._blocks:
            out = np.full(block.n_rows, self._hole, np.uint32)
            chosen, begin, end = block.span(column, column + 1)
            if chosen.start < chosen.stop:
                words = self._words(block, begin, end)
                unpack(words, 0, int(block.counts[chosen.start]), out)
            yield row, out.view(np.float32)
            row += block.n_rows

    def bins(
        self, columns: np.ndarray, tables: np.ndarray, steps: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the bins of every block, uint8 (columns, rows), from tables of thresholds."""
        from rankgrove.data._spill_kernels import bin_packed

        hole = np.array([self.hole])
        for block in self._blocks:
            words = self._words(block, 0, int(block.ends[-1]) if block.ends.size else 0)
            at = np.minimum(np.searchsorted(block.columns, columns), max(block.columns.size - 1, 0))
            counts = np.full(columns.size, NOTHING_STORED)
            starts = np.zeros(columns.size, np.int64)
            if block.columns.size:
                there = block.columns[at] == columns
                counts[there] = block.counts[at[there]]
                begins = np.concatenate([[0], block.ends[:-1]])
                starts[there] = begins[at[there]]
            bins = np.empty((columns.size, block.n_rows), np.uint8)
            bin_packed(words, starts, counts, hole, tables, steps, bins)
            yield bins

    @property
    def block_sizes(self) -> Sequence[int]:
        """The number of rows of every block."""
        return [block.n_rows for block in self._blocks]

    def _words(self, block: PackedColumns, begin: int, end: int) -> np.ndarray:
        words = np.empty(end - begin, np.uint32)
        view = bytes_of(words)
        place = block.offset + 4 * begin
        with told_errors(self._path):
            self._file.seek(place)
            while view:
                n = cast(int, self._file.readinto(view))  # type: ignore[attr-defined]
                if n == 0:
                    raise OSError(f"{self._path.name} is shorter than it was")
                view = view[n:]
        return words
