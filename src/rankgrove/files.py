"""Writing files so that nothing is lost: to a temporary name first, then moved into place."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from rankgrove.errors import DataError


@contextmanager
def atomic_output(path: str | os.PathLike[str], *, pack: bool | None = None) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` when the body ends well, and vanishes otherwise.

    `pack` compresses by gzip (None: where the name ends in ``.gz``), with no name and no time
    inside, so that equal content gives equal bytes. What `path` links to is replaced, not the
    link; a pipe or a device, such as /dev/stdout, is written to and stays what it is.
    """
    given = Path(path)
    if given.is_dir():
        raise DataError(f"{given} is a folder: give the name of a file to write to.")
    packs = given.name.endswith(".gz") if pack is None else pack
    if given.exists() and not given.is_file():
        with _opened(given, given, "wb") as raw, _packed(raw, packs) as out:
            yield out
        return
    target = Path(os.path.realpath(given))
    draft = target.with_name(f".rg-{secrets.token_hex(8)}.part")
    # Not tempfile: its files are closed to others, whatever the user's umask says.
    raw = _opened(draft, given, "xb")
    try:
        with raw:
            with _packed(raw, packs) as out:
                yield out
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _opened(path: Path, given: Path, mode: str) -> BinaryIO:
    try:
        return cast(BinaryIO, open(path, mode))
    except OSError as error:
        raise DataError(f"{given} cannot be written: {error.strerror}.") from None


@contextmanager
def _packed(raw: BinaryIO, packs: bool) -> Iterator[BinaryIO]:
    if packs:
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    else:
        yield raw


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with atomic_output(path) as out:
        out.write(text.encode())
