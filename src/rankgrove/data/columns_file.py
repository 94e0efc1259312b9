"""A file of bins column by column, read one column at a time."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rankgrove.errors import DataError
from rankgrove.files import told_errors

_FIELDS = ("path", "offset", "n_rows", "n_columns", "step")


@dataclass(frozen=True, eq=False)
class ColumnsFile:
    """The bins of the kept features, feature by feature, after `offset`.

    A column has ``n_rows`` bytes; or more, `step`, of which these are some in the middle.

    A column that is read does not count as memory that is mapped. The file stays open, so that a
    file put in its place does not mix with it; pickled, it is opened again by its name.
    """

    path: Path
    offset: int
    n_rows: int
    n_columns: int
    step: int | None = None  # bytes from one column to the next; None: n_rows

    def rows(self, start: int, n_rows: int) -> ColumnsFile:
        """Return the columns of some rows next to each other."""
        step = self.n_rows if self.step is None else self.step
        part = ColumnsFile(self.path, self.offset + start, n_rows, self.n_columns, step)
        part.__dict__["_file"] = again = os.dup(self._file)
        weakref.finalize(part, os.close, again)
        return part

    @classmethod
    def of_open(cls, file: int, path: Path, n_rows: int, n_columns: int) -> ColumnsFile:
        """Return the columns of an open file; pickled, they are opened again by `path`."""
        self = cls(path, 0, n_rows, n_columns)
        self.__dict__["_file"] = again = os.dup(file)
        weakref.finalize(self, os.close, again)
        return self

    def read(self, feature: int, out: np.ndarray) -> None:
        """Fill `out`, uint8 of n_rows, with the bins of a kept feature."""
        view = bytes_of(out)
        place = self.offset + feature * (self.n_rows if self.step is None else self.step)
        while view:
            n = self._read_into(view, place)
            if n == 0:
                raise DataError(
                    f"{self.path} is shorter than it was: it was changed while it was in use."
                )
            view, place = view[n:], place + n

    def check(self) -> None:
        """Open the file, so that errors come early."""
        assert self._file >= 0

    def mapped(self) -> np.ndarray:
        """Return all columns as an array of shape (n_columns, n_rows) that maps the file."""
        if self.step is None:
            return map_bytes(self._file, self.offset, (self.n_columns, self.n_rows))
        columns = np.empty((self.n_columns, self.n_rows), np.uint8)
        for feature in range(self.n_columns):
            self.read(feature, columns[feature])
        return columns

    @cached_property
    def _file(self) -> int:
        """The open file, which is closed with the last use of this object."""
        with told_errors(self.path):
            file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, file)
        return file

    def _read_into(self, view: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file, [view], place)
        with open(self.path, "rb", buffering=0) as file:  # a place of its own for every thread
            file.seek(place)
            return file.readinto(view) or 0

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in _FIELDS}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


def bytes_of(array: np.ndarray) -> memoryview:
    """Return the memory of an array that is stored without gaps, as bytes."""
    return array.reshape(-1).view(np.uint8).data


def map_bytes(file: int, offset: int, shape: tuple[int, int]) -> np.ndarray:
    """Return bytes of a file as a uint8 array that maps it; what is written stays in memory.

    It can be written to only so that kernels see the same type of array as in memory: read-only
    arrays would be compiled for again.
    """
    import mmap

    size = shape[0] * shape[1]
    if size == 0:
        return np.empty(shape, np.uint8)
    if hasattr(mmap, "MAP_PRIVATE"):  # no room is set aside for pages that nobody writes to
        reserve = getattr(mmap, "MAP_NORESERVE", 0x4000 if os.uname().sysname == "Linux" else 0)
        flags = mmap.MAP_PRIVATE | reserve
        held = mmap.mmap(file, offset + size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    else:
        held = mmap.mmap(file, offset + size, access=mmap.ACCESS_COPY)
    return np.frombuffer(held, np.uint8, size, offset).reshape(shape)


def put_columns(file: int, codes: np.ndarray, start: int, n_rows: int, n_columns: int) -> None:
    """Write rows of bins, those from `start` on, into an open file of `n_columns` columns."""
    from rankgrove.data._binning_kernels import transpose

    turned = np.empty((n_columns, codes.shape[0]), np.uint8)
    transpose(codes, turned)
    for column in range(n_columns):
        put_bytes(file, turned[column], column * n_rows + start)


def put_bytes(file: int, content: np.ndarray, place: int) -> None:
    """Write the bytes of an array at a place of an open file."""
    view = bytes_of(content)
    while view:
        n = _write_at(file, view, place)
        view, place = view[n:], place + n


def _write_at(file: int, view: memoryview, place: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(file, view, place)
    os.lseek(file, place, os.SEEK_SET)
    return os.write(file, view)


def forget(array: np.ndarray) -> None:
    """Give back the memory of a mapped file, which nobody has written to: it is read again."""
    import mmap

    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def evenly_spaced(codes: np.ndarray, n_rows: int) -> np.ndarray:
    """Return a copy of about `n_rows` rows; of a mapped file only a part takes memory at a time."""
    places = np.arange(0, len(codes), max(1, len(codes) // n_rows))
    sample = np.empty((places.size, codes.shape[1]), codes.dtype)
    for some in np.array_split(np.arange(places.size), 8):
        sample[some] = codes[places[some]]
        forget(codes)
    return sample
