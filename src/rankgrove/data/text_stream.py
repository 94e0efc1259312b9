"""A file of text as a stream of pieces, decompressed if it is gzip or zstd, in little memory."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from rankgrove.data.text_files import GZIP_MAGIC
from rankgrove.errors import MissingExtraError, MissingFileError, ParseError
from rankgrove.files import why
from rankgrove.validation import counted

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_PIECE = 1 << 20
Read = Callable[[int], bytes]


class TextStream:
    """The text of an open file.

    Attributes
    ----------
    size : the bytes of the file; 0 for a pipe
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        status = os.fstat(file.fileno())
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
            raise ParseError(path, None, "this is a device. Expected a file.")
        self.is_pipe = stat.S_ISFIFO(status.st_mode)
        self.size = 0 if self.is_pipe else status.st_size
        head = cast(Any, file).peek(4)[:4]
        if not head:
            raise empty(path)
        self.is_packed = head[:2] == GZIP_MAGIC or head == ZSTD_MAGIC
        self._pieces = _pieces(path, file, head)

    @property
    def n_read(self) -> int:
        """The bytes of the file that were read."""
        if self._file.closed:  # zstd's reader closes it after the last byte
            return self.size
        return 0 if self.is_pipe else self._file.tell()

    def fileno(self) -> int:
        """Return the number of the open file."""
        return self._file.fileno()

    def pieces(self) -> Iterator[bytes]:
        """Yield the text, about a megabyte at a time."""
        n_bytes = 0
        for piece in self._pieces:
            n_bytes += len(piece)
            yield piece
        if not n_bytes:
            raise empty(self.path)

    def blocks(self, n_bytes: int) -> Iterator[bytes]:
        """Yield pieces of at least `n_bytes` that end in a line feed, but for the last one."""
        held: list[bytes] = []
        size = 0
        for piece in self.pieces():
            end = piece.rfind(b"\n") + 1 if size + len(piece) >= n_bytes else 0
            if not end:
                held.append(piece)
                size += len(piece)
                continue
            yield b"".join([*held, piece[:end]])
            held = [piece[end:]]
            size = len(held[0])
        if size:
            yield b"".join(held)


@contextmanager
def open_stream(path: Path) -> Iterator[TextStream]:
    """Open a file of text; errors name the file."""
    try:
        with open(path, "rb") as file:
            yield TextStream(path, cast(BinaryIO, file))
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except IsADirectoryError:
        raise ParseError(path, None, "this is a folder. Expected a file: name one in it.") from None
    except OSError as problem:
        raise ParseError(path, None, f"the file cannot be read: {why(problem)}.") from None
    except ValueError as problem:  # a name with a byte 0
        if isinstance(problem, ParseError):
            raise
        raise ParseError(path, None, f"the file cannot be read: {problem}.") from None


def empty(path: Path) -> ParseError:
    """Return the error for a file without any text."""
    return ParseError(path, None, "the file is empty. Expected rows of text in it.")


def _pieces(path: Path, file: BinaryIO, head: bytes) -> Iterator[bytes]:
    if head[:2] == GZIP_MAGIC:
        return _unzipped(path, file.read)
    if head == ZSTD_MAGIC:
        return _of_zstd(path, file)
    return iter(lambda: file.read(_PIECE), b"")


def _unzipped(path: Path, read: Read) -> Iterator[bytes]:
    """Yield the text of a gzip file, which may have several members."""
    n_bytes = 0
    piece = read(_PIECE)
    while piece:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if not piece:
                raise ParseError(
                    path,
                    None,
                    f"the gzip file is truncated: it ends after {counted(n_bytes, 'byte')} of "
                    "text, without its closing checksum. Copy or download it again.",
                )
            try:
                text = member.decompress(piece, _PIECE)
            except zlib.error as problem:
                raise _corrupt(path, "gzip", n_bytes, problem) from None
            n_bytes += len(text)
            if text:
                yield text
            piece = member.unused_data if member.eof else member.unconsumed_tail
            if not (piece or member.eof):
                piece = read(_PIECE)
        if not piece.strip(b"\0"):  # padding, which tapes and some copying tools add
            piece = piece[:0]
        piece = piece or read(_PIECE).lstrip(b"\0")


def _of_zstd(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield the text of a zstd file, which may have several frames."""
    n_bytes = 0
    problems: tuple[type[BaseException], ...] = (OSError, EOFError, ValueError)
    if sys.version_info >= (3, 14):
        from compression import zstd

        stream: Any = zstd.ZstdFile(file)
        problems = (*problems, zstd.ZstdError)
    else:
        try:
            import pyarrow
        except ImportError:
            raise MissingExtraError("pyarrow", "tables", "Reading zstd files") from None
        stream = pyarrow.CompressedInputStream(cast(IO[bytes], file), "zstd")
    while True:
        try:
            piece = bytes(stream.read(_PIECE))
        except problems as problem:
            raise _corrupt(path, "zstd", n_bytes, problem) from None
        if not piece:
            return
        n_bytes += len(piece)
        yield piece


def _corrupt(path: Path, kind: str, n_bytes: int, problem: BaseException) -> ParseError:
    return ParseError(
        path,
        None,
        f"the {kind} file is corrupt after {counted(n_bytes, 'byte')} of text "
        f"({problem}). Copy or download it again.",
    )
