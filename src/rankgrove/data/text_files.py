"""Reading whole text files, plain or gzip, with errors that name the line."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from rankgrove.errors import MissingFileError, ParseError
from rankgrove.files import why

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_text_bytes(path: str | Path) -> bytes:
    """Return the bytes of a text file, decompressed if it is gzip; refuse binary files."""
    try:
        blob = Path(path).read_bytes()
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except OSError as error:
        raise ParseError(path, None, f"the file cannot be read: {why(error)}.") from error
    if blob.startswith(GZIP_MAGIC):
        try:
            blob = gzip.decompress(blob)
        except EOFError:
            raise ParseError(
                path, None, "the gzip data end too early: download or compress the file again."
            ) from None
        except (OSError, zlib.error) as error:
            raise ParseError(path, None, f"the gzip data are damaged: {error}.") from None
    blob = blob.removeprefix(BYTE_ORDER_MARK)
    _check_text(path, blob)
    return blob


def _check_text(path: str | Path, blob: bytes) -> None:
    try:
        blob.decode()
        bad = blob.find(b"\0")
        reason = "a byte 0"
    except UnicodeDecodeError as error:
        bad = error.start
        reason = f"the byte 0x{blob[bad]:02x}, which is not UTF-8"
    if bad >= 0:
        line = blob.count(b"\n", 0, bad) + 1
        raise ParseError(path, line, f"this is not a text file: it has {reason}.")
