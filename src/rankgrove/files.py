"""Writing files so that nothing is lost: to a temporary name first, then moved into place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rankgrove.errors import DataError


@contextmanager
def atomic_output(path: str | Path, mode: str = "wb") -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` when the body ends well, and vanishes otherwise."""
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{target} is a folder: give the name of a file to write to.")
    try:
        handle, temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(handle, mode) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_atomically(path: str | Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with atomic_output(path) as out:
        out.write(text.encode())
