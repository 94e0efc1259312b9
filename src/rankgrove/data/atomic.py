"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """Give a file that takes the name `target` when the body ends well, and vanishes otherwise.

    It is written under another name in the same folder; readers of an old `target` keep it. Raises
    OSError where that cannot be done.
    """
    name = target.with_name(f".rg-{secrets.token_hex(8)}.tmp")
    # Not tempfile: its files are closed to others, whatever the user's umask says.
    file = open(name, "xb")  # noqa: SIM115
    try:
        with file:
            yield file
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
