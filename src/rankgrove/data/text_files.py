"""Whole text files, plain or gzip: read with errors that name the place, written at one stroke."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from rankgrove.errors import DataError, ParseError

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_text_bytes(path: str | Path) -> bytes:
    """Return the bytes of a text file, unpacked if they begin as gzip; refuse what is not text."""
    try:
        blob = Path(path).read_bytes()
    except OSError as error:
        raise ParseError(path, None, f"the file cannot be read: {error.strerror}.") from error
    if blob.startswith(_GZIP_MAGIC):
        try:
            blob = gzip.decompress(blob)
        except EOFError:
            raise ParseError(
                path, None, "the gzip data end too early: fetch or pack the file again."
            ) from None
        except (OSError, zlib.error) as error:
            raise ParseError(path, None, f"the gzip data are damaged: {error}.") from None
    blob = blob.removeprefix(_BYTE_ORDER_MARK)
    _check_text(path, blob)
    return blob


def _check_text(path: str | Path, blob: bytes) -> None:
    try:
        blob.decode()
        bad = blob.find(b"\0")
        what = "a byte 0"
    except UnicodeDecodeError as error:
        bad = error.start
        what = f"the byte 0x{blob[bad]:02x}, which is not UTF-8"
    if bad >= 0:
        line = blob.count(b"\n", 0, bad) + 1
        raise ParseError(path, line, f"this is not a text file: it has {what}.")


@contextmanager
def written_at_one_stroke(path: str | Path) -> Iterator[BinaryIO]:
    """Give a file to write to; it takes the name `path` only when the body has ended well.

    A name that ends in ``.gz`` packs. The packed bytes depend on the content alone, not on the
    clock, so that equal data give equal files.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        raw = open(draft, "wb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{target}: the file cannot be written: {error.strerror}.") from error
    try:
        with raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
