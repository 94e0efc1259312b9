"""From spilled values to bins: the thresholds of `Binner.fit`, and the files of bins."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankgrove.data.binning import (
    MOST_SPARSE_COLUMNS,
    MOST_VALUE_BINS,
    Binner,
    ColumnBins,
    too_many_columns,
)
from rankgrove.data.categories import coded
from rankgrove.data.category_bins import Target, fold_of_rows, places_of
from rankgrove.data.category_means import CategorySums
from rankgrove.data.columns_file import bytes_of, put_bytes, put_columns
from rankgrove.data.counting import category_bins, count_columns
from rankgrove.data.queries import QueryDataset
from rankgrove.data.row_blocks import RowFacts
from rankgrove.data.spill import Spill, told_writing
from rankgrove.errors import DataError
from rankgrove.files import told_errors
from rankgrove.parallel import thread_count

MEMORY = 64 << 20  # bytes of columns that are sorted at once
_BYTES_PER_VALUE = 9  # keys, room to sort them, a mark
_MOST_COLUMNS_AT_ONCE = 1024

Done = Callable[[int, int], None]  # called with the work done so far, and its total


@dataclass(frozen=True)
class SpilledRows:
    """All rows: their spilled features, in the order of the files, and everything else.

    Attributes
    ----------
    bare : the data set without features
    """

    spill: Spill
    facts: RowFacts
    bare: QueryDataset

    def column(self, column: int) -> np.ndarray:
        """Return a column, with its final codes if it has texts, in the order of the files."""
        return np.concatenate([part for _, part in self.parts_of(column)])

    def parts_of(self, column: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, values) of a column, block by block."""
        codes = self.facts.codes.get(column)
        for row, part in self.spill.parts_of(column):
            yield row, part if codes is None else coded(part, codes)

    # -- thresholds -------------------------------------------------------------------------------

    def fit(self, max_bins: int, memory: int, done: Done) -> tuple[Binner, bool]:
        """Return the bins that :meth:`Binner.fit` would make, and whether any value is NaN.

        About `memory` bytes of columns are sorted at once, at least one column for each thread.
        """
        n_features = self.facts.n_features
        stored = self.spill.stored(n_features)
        categorical = set(self.bare.categories)
        columns = np.flatnonzero(stored)
        if columns.size > MOST_SPARSE_COLUMNS:
            raise too_many_columns(columns.size)
        bins: list[ColumnBins] = []
        n_nan = 0
        n_done = 0
        for first, last in _groups(stored, memory, thread_count(None)):
            some = self._fit_some(first, last, stored, max_bins)
            n_nan += sum(of.n_missing for of in some)
            bins += [of for of in some if of.column not in categorical]
            n_done += int(stored[first:last].sum())
            done(n_done, int(stored.sum()))
        for column in sorted(categorical):
            of_codes, n_missing = self._fit_categories(column, max_bins)
            bins.append(of_codes)
            n_nan += n_missing  # of_codes.n_missing has the rows of rare categories too
        n_nan += int(self.spill.hole != 0.0 and bool((stored < self.bare.n_rows).any()))
        return Binner.of(n_features, bins), n_nan > 0

    def _fit_some(
        self, first: int, last: int, stored: np.ndarray, max_bins: int
    ) -> list[ColumnBins]:
        from rankgrove.data._binning_kernels import fit_columns

        width = last - first
        keys = np.empty((width, int(stored[first:last].max()) + 1), np.uint32)
        sizes = np.zeros(width, np.int64)
        self.spill.keys(first, last, keys, sizes)
        hidden = self.bare.n_rows - sizes
        of_zero = self.spill.hole == 0.0
        zeros = hidden if of_zero else np.zeros(width, np.int64)
        thresholds = np.empty((width, MOST_VALUE_BINS), np.float32)
        summary = np.empty((width, 4), np.int64)
        alone = np.empty(keys.shape, np.bool_)
        fit_columns(keys, sizes, zeros, max_bins, np.empty_like(keys), alone, thresholds, summary)
        if not of_zero:
            summary[:, 1] += hidden
        return [
            ColumnBins(first + c, thresholds[c, :n].copy(), n_missing, n_values, fullest)
            for c, (n, n_missing, n_values, fullest) in enumerate(summary.tolist())
            if stored[first + c]
        ]

    def has_nan(self) -> bool:
        """Return whether any value is NaN; texts that training data does not have are."""
        return any(
            bool(np.isnan(part).any())
            for column in range(self.facts.n_features)
            for _, part in self.parts_of(column)
        )

    def _fit_categories(self, column: int, max_bins: int) -> tuple[ColumnBins, int]:
        """Return the bins of a column of codes, and how many rows have none."""
        values = self.bare.grouped(self.column(column))
        (counts,) = count_columns(values[:, None], 0, 1)

        def sums_of(_: int, codes: np.ndarray) -> CategorySums:
            target = Target.of(self.bare)
            return CategorySums.of(places_of(values, codes), codes.size, target.fold, target.value)

        return category_bins(column, counts, max_bins, sums_of), counts.n_missing

    # -- bins -------------------------------------------------------------------------------------

    def write_bins(
        self, binner: Binner, codes: Path, columns: Path, done: Done, *, of_training: bool
    ) -> tuple[int, int, bool]:
        """Write the bins in query order, row by row and column by column.

        Return the checksums of the two files, and whether values are missing.
        """
        n_rows, n_kept = self.bare.n_rows, int(binner.columns.size)
        width = -(-n_kept // 8) * 8
        written, missing, place = 0, False, self._place
        with told_writing(codes), open(codes, "xb", buffering=0) as file:
            os.truncate(file.fileno(), n_rows * width)
            for start, bins in self._bins(binner, of_training):
                missing = missing or bool((bins == MOST_VALUE_BINS).any())
                _put_rows(file.fileno(), start, bins, width, place)
                written += bins.shape[1]
                done(written, 2 * n_rows)
        with told_writing(columns), open(columns, "xb", buffering=0) as file:
            os.truncate(file.fileno(), n_rows * n_kept)
            crc = _put_columns(codes, file.fileno(), n_rows, n_kept, width, done)
        return crc, checksum(columns), missing

    @property
    def _place(self) -> np.ndarray | None:
        """The place in query order of every row of the files; None: the same."""
        order = self.bare.order
        if order is None:
            return None
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        return place

    def _bins(self, binner: Binner, of_training: bool) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, bins by column) of every block."""
        named = {
            at: (of, self.parts_of(int(binner.columns[at])))
            for at, of in enumerate(binner.categories)
            if of is not None
        }
        ordered = of_training and binner.has_ordered
        fold = self.bare.ungrouped(fold_of_rows(self.bare)) if ordered else np.empty(0, np.int64)
        start = 0
        for bins in self.spill.bins(binner.columns, *binner.tables()):
            for at, (categories, parts) in named.items():
                _, values = next(parts)
                if of_training and categories.ordered:
                    here = fold[start : start + values.size]
                    bins[at] = categories.of_training(values, here)
                else:
                    bins[at] = categories.of_values(values)
            yield start, bins
            start += bins.shape[1]


def _groups(stored: np.ndarray, memory: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of columns that can be sorted at once, at least one for each thread."""
    first = 0
    while first < stored.size:
        if stored[first] == 0:
            first += 1
            continue
        last, longest = first, 0
        while last < stored.size and last - first < _MOST_COLUMNS_AT_ONCE:
            longest = max(longest, int(stored[last]))
            if last - first >= least and _BYTES_PER_VALUE * longest * (last + 1 - first) > memory:
                break
            last += 1
        yield first, last
        first = last


# -- the files -------------------------------------------------------------------------------------


def _put_rows(
    file: int, start: int, bins: np.ndarray, width: int, place: np.ndarray | None
) -> None:
    """Write the bins of a block row by row, to the places of its rows in query order."""
    from rankgrove.data._spill_kernels import to_rows

    n = bins.shape[1]
    rows = np.empty((n, width), np.uint8)
    to_rows(bins, rows)
    if place is None:
        put_bytes(file, rows, start * width)
        return
    places = place[start : start + n]
    heads = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1] + 1]))
    for first, last in zip(heads, [*heads[1:], n], strict=True):
        put_bytes(file, rows[first:last], int(places[first]) * width)


def _put_columns(codes: Path, file: int, n_rows: int, n_kept: int, width: int, done: Done) -> int:
    """Write the bins column by column, from the file of rows; return the checksum of that one."""
    height = max(min((8 << 20) // max(width, 1), n_rows), 1)
    crc = 0
    with told_errors(codes), open(codes, "rb", buffering=0) as source:
        for start in range(0, n_rows, height):
            n = min(height, n_rows - start)
            rows = np.empty((n, width), np.uint8)
            if source.readinto(bytes_of(rows)) != rows.size:
                raise DataError(f"{codes} was changed while it was in use.")
            crc = zlib.crc32(bytes_of(rows), crc)
            put_columns(file, rows, start, n_rows, n_kept)
            done(n_rows + start + n, 2 * n_rows)
    return crc


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    crc = 0
    with told_errors(path), open(path, "rb", buffering=0) as file:
        while piece := file.read(1 << 22):
            crc = zlib.crc32(piece, crc)
    return crc
