"""Files to be parsed: their bytes (mapped, or decompressed), and the lines of mistakes in them."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data._letor_kernels import END, N_STATE, START
from rankgrove.data.text_files import BYTE_ORDER_MARK
from rankgrove.data.text_stream import open_stream
from rankgrove.errors import ParameterError, ParseError

_TOKEN_END = re.compile(rb"[ \t\r\n\v\f#]")
_PIECE = 1 << 22


class Segment:
    """Bytes that end in a line feed, cut into chunks at line ends.

    Attributes
    ----------
    data : uint8 array
    base : offset of ``data[0]`` in the source's text
    state : int64 array (n_chunks, N_STATE), for the kernels
    first_row : number of rows in all segments before this one; set once rows are counted
    n_rows : number of data lines; set once rows are counted
    """

    def __init__(self, buffer: memoryview, base: int, cuts: Sequence[int]) -> None:
        self.data = np.frombuffer(buffer.toreadonly(), np.uint8)  # one type for the kernels
        self.base = base
        self.state = np.zeros((len(cuts) - 1, N_STATE), np.int64)
        self.state[:, START] = cuts[:-1]
        self.state[:, END] = cuts[1:]
        self.first_row = 0
        self.n_rows = 0


class Source:
    """One file of text, or a block of its lines.

    Parameters
    ----------
    path : the file
    chunk_bytes : the size of the chunks that are parsed side by side
    text : the block's lines; None: all of the file
    lines_before : number of lines before the block

    Attributes
    ----------
    text : the bytes, decompressed
    segments : the same text, for the kernels; a last line without line feed is a segment by itself
    """

    def __init__(
        self, path: Path, chunk_bytes: int, text: bytes | None = None, lines_before: int = 0
    ) -> None:
        self.path = path
        self.text = read_bytes(path) if text is None else text
        self.lines_before = lines_before
        self.segments: list[Segment] = []
        is_marked = lines_before == 0 and self.text[:3] == BYTE_ORDER_MARK
        start = len(BYTE_ORDER_MARK) if is_marked else 0
        end = self.text.rfind(b"\n") + 1
        if end > start:
            view = memoryview(self.text)
            self.segments.append(Segment(view, 0, self._cuts(start, end, chunk_bytes)))
        rest = max(start, end)
        if rest < len(self.text):
            last = bytes(self.text[rest:]) + b"\n"
            self.segments.append(Segment(memoryview(last), rest, [0, len(last)]))

    def _cuts(self, start: int, end: int, chunk_bytes: int) -> list[int]:
        cuts = [start]
        while end - cuts[-1] > chunk_bytes:
            cuts.append(self.text.find(b"\n", cuts[-1] + chunk_bytes) + 1)
        if cuts[-1] < end:
            cuts.append(end)
        return cuts

    def line(self, offset: int) -> tuple[int, bytes]:
        """Return the 1-based number of the line at `offset`, and its text."""
        start = self.text.rfind(b"\n", 0, offset) + 1
        end = self.text.find(b"\n", offset)
        number = self.lines_before + 1
        for piece in range(0, start, _PIECE):
            number += bytes(self.text[piece : min(piece + _PIECE, start)]).count(b"\n")
        return number, bytes(self.text[start : end if end >= 0 else len(self.text)])

    def token(self, offset: int) -> bytes:
        """Return the token at `offset`, to the next white space or ``#``."""
        end = _TOKEN_END.search(self.text, offset)
        return bytes(self.text[offset : end.start() if end else len(self.text)])

    def error(self, offset: int, message: str) -> ParseError:
        """Return the error for a mistake at `offset`."""
        return ParseError(self.path, self.line(offset)[0], message)


def read_bytes(path: Path) -> mmap.mmap | bytearray:
    """Return the content of a file: mapped into memory, or decompressed if it is gzip or zstd."""
    with open_stream(path) as stream:
        if stream.is_packed or stream.is_pipe:
            text = bytearray()
            for piece in stream.pieces():
                text += piece
            return text
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def as_paths(name: str, value: object) -> list[Path]:
    """Return a path or a list of paths as a list."""
    several: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
    if any(path == "" for path in several):
        raise ParameterError(
            f"The '{name}' parameter of read_letor must be a path or a list of paths. "
            "Got '' instead, which is not the name of a file."
        )
    if several and all(isinstance(path, str | os.PathLike) for path in several):
        return [Path(path) for path in several]
    raise ParameterError(
        f"The '{name}' parameter of read_letor must be a path or a list of paths. "
        f"Got {value!r} instead."
    )


def group_sizes(path: Path, data: Path, n_rows: int) -> np.ndarray:
    """Return the group sizes of a LightGBM side file, one per line; `data` has `n_rows` rows."""
    sizes = []
    for number, line in enumerate(bytes(read_bytes(path)).split(b"\n"), start=1):
        token = line.strip()
        if not token:
            continue
        digits = token.lstrip(b"0")
        if token.isdigit() and (len(digits) > 18 or int(digits or b"0") > n_rows):
            raise ParseError(
                path,
                number,
                f"the group size {excerpt(token)} is larger than the number of rows of {data}, "
                f"which is {n_rows}. Expected sizes that add up to it: is it the side file of "
                "that data file?",
            )
        if not (token.isdigit() and digits):
            raise ParseError(
                path,
                number,
                f"the size of a group must be a whole number of at least 1. "
                f"Got {excerpt(token)}: write one size per line, in the order of the rows.",
            )
        sizes.append(int(digits))
    if not sizes:
        raise ParseError(path, None, "there are no group sizes in the file. Expected one per line.")
    return np.array(sizes, np.int64)


def side_file(path: Path) -> Path | None:
    """Return the side file of group sizes next to `path`, known by its name, if there is one."""
    if not path.name:  # a folder, such as "." or "/": reading it will fail
        return None
    bare = path.name.removesuffix(".gz").removesuffix(".zst")
    names = [f"{bare}.query{ending}" for ending in ("", ".gz", ".zst")]
    if path.name.endswith(".gz"):
        names = [names[1], names[0], names[2]]
    for name in names:
        if path.with_name(name).is_file():
            return path.with_name(name)
    return None


def excerpt(token: bytes | str) -> str:
    """Return a piece of the file for a message: quoted, and truncated."""
    most = 40
    text = token if isinstance(token, str) else token[: 4 * most].decode(errors="replace")
    return repr(text) if len(text) <= most else repr(text[:most]) + "..."
