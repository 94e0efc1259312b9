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
    inside, so that equal content gives equal bytes.
    """
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{target} is a folder: give the name of a file to write to.")
    draft = target.with_name(f".rg-{secrets.token_hex(8)}.part")
    try:
        # Not tempfile: its files are closed to others, whatever the user's umask says.
        raw = open(draft, "xb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}.") from None
    try:
        with raw:
            if target.name.endswith(".gz") if pack is None else pack:
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with atomic_output(path) as out:
        out.write(text.encode())
