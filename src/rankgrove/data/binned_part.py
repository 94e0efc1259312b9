"""Some rows of bins that are in files: a view, or a copy that is in files as well."""

from __future__ import annotations

import os
import tempfile
from typing import BinaryIO, cast

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.columns_file import ColumnsFile, map_bytes, put_bytes, put_columns
from rankgrove.files import told_errors

IN_MEMORY = 32 << 20  # bytes; a smaller copy is made in memory
_ROWS_BYTES = 4 << 20


def part_of(binned: BinnedMatrix, rows: Rows) -> BinnedMatrix:
    """Return some rows of bins in files; None: all of them.

    Neighbouring rows are a view. Others are copied to files without a name, which are gone with the
    last use of them.
    """
    if rows is None:
        return binned
    assert binned.columns is not None
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(binned.n_rows)
        columns_of_rows = binned.columns.rows(start, max(stop - start, 0))
        return BinnedMatrix(binned.binner, binned.codes[rows], columns_of_rows)
    places = np.asarray(rows)
    n_rows, width = int(places.size), int(binned.codes.shape[1])
    if n_rows * width <= IN_MEMORY or os.name != "posix":
        return binned.some(places)
    folder = binned.columns.path.parent
    n_kept, height = binned.n_kept, max(_ROWS_BYTES // width, 1)
    with (
        told_errors(folder, "written"),
        _nameless(binned.columns) as codes,
        _nameless(binned.columns) as columns,
    ):
        os.truncate(columns.fileno(), n_rows * n_kept)
        for start in range(0, n_rows, height):
            block = np.ascontiguousarray(binned.codes[places[start : start + height]])
            put_bytes(codes.fileno(), block, start * width)
            put_columns(columns.fileno(), block, start, n_rows, n_kept)
        by_column = ColumnsFile.of_open(columns.fileno(), folder, n_rows, n_kept)
        mapped = map_bytes(codes.fileno(), 0, (n_rows, width))
    return BinnedMatrix(binned.binner, mapped, by_column)


def _nameless(columns: ColumnsFile) -> BinaryIO:
    """Return a file without a name: next to the others, or in the folder of temporary files."""
    try:
        return cast(BinaryIO, tempfile.TemporaryFile(dir=columns.path.parent, buffering=0))
    except OSError:
        return cast(BinaryIO, tempfile.TemporaryFile(buffering=0))
