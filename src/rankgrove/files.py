"""Files: reasons why they cannot be read or written, and atomic writes.

A file is first written under a temporary name, and then moved into place.
"""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import BinaryIO, cast

from rankgrove.errors import DataError, MissingFileError, RankgroveError

# Clearer words for some errors of the operating system.
_WORDS = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "it is a symbolic link that leads back to itself",
    errno.ENAMETOOLONG: "its name is too long",
    errno.EACCES: "permission denied; ask its owner for access, or copy it",
}


def why(error: OSError) -> str:
    """Return the reason why the operating system refused a file, in words."""
    return _WORDS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return a path with links resolved, broken and circular links as far as possible."""
    return Path(os.path.realpath(path))


@contextmanager
def told_errors(
    path: str | os.PathLike[str],
    done: str = "read",
    kind: type[RankgroveError] = DataError,
    remedy: str = "",
) -> Iterator[None]:
    """Turn the system's errors about a file into rankgrove's: ``PATH cannot be read: ...``."""
    try:
        yield
    except OSError as error:
        if isinstance(error, RankgroveError):
            raise
        if isinstance(error, FileNotFoundError) and done == "read":
            raise MissingFileError(Path(path)) from None
        reason = why(error)
        folder = real_path(path).parent
        if isinstance(error, FileNotFoundError) and not folder.is_dir():
            reason = f"the folder {Path(path).parent} does not exist; create it first"
        raise kind(f"{path} cannot be {done}: {reason}.{remedy and ' '}{remedy}") from None


@contextmanager
def atomic_output(path: str | os.PathLike[str], *, pack: bool | None = None) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` if the body succeeds, and is removed otherwise.

    `pack` compresses by gzip (None: if the name ends in ``.gz``), without name and time in the
    header, so that equal content gives equal bytes. If `path` is a link, its target is replaced,
    not the link; a pipe or a device, such as /dev/stdout, is written to directly.
    """
    named = Path(path)
    if named.is_dir():
        raise DataError(f"{named} is a folder: give the name of a file to write to.")
    packs = named.name.endswith(".gz") if pack is None else pack
    if named.exists() and not named.is_file():
        with _opened(named, named, "wb") as raw, _packed(raw, packs) as out:
            yield out
        return
    target = real_path(named)
    with told_errors(named, "written"):
        if target.is_symlink():  # a circular link
            os.stat(named)
    draft = target.with_name(f".rg-{secrets.token_hex(8)}.part")
    # Not tempfile: its files cannot be read by others, whatever the user's umask.
    raw = _opened(draft, named, "xb")
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


def _opened(path: Path, named: Path, mode: str) -> BinaryIO:
    with told_errors(named, "written"):
        return cast(BinaryIO, open(path, mode))


@contextmanager
def _packed(raw: BinaryIO, packs: bool) -> Iterator[BinaryIO]:
    if packs:
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    else:
        yield raw


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the body, which should be short."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # Ctrl-C comes to the main thread only
        return
    pressed: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *press: pressed.append(press))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            before(*pressed[0])


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, completely or not at all."""
    with atomic_output(path) as out:
        out.write(text.encode())
