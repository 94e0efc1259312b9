"""A lock on a folder that is made and replaced: one process at a time, the others wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

TOLD_AFTER = 0.5  # seconds of waiting
_LOOK_AGAIN = 0.05


@contextmanager
def folder_lock(folder: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a folder, which need not exist; `waits` is called once if it has to wait.

    The lock ends with its process. Where files cannot be locked or written, nobody waits.
    """
    named = folder.absolute()
    path = named.with_name(f".{named.name}.lock")
    handle = _locked(path, waits)
    try:
        yield
    finally:
        if handle is not None:
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def _locked(path: Path, waits: Callable[[], None]) -> int | None:
    """Return the open lock file once it is locked; None if it cannot be."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    began, told = time.monotonic(), False
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return None
        try:
            if not lock_file(handle):
                os.close(handle)
            elif _is_named(handle, path):
                return handle
            else:  # its last holder has removed it
                os.close(handle)
                continue
        except OSError:
            os.close(handle)
            return None
        if not told and time.monotonic() - began >= TOLD_AFTER:
            told = True
            waits()
        time.sleep(_LOOK_AGAIN)


def lock_file(file: int | IO[str]) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it.

    OSError: it cannot be locked, as on Windows.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError("files cannot be locked here") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_named(handle: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
