"""Files: why one cannot be read or written, and writing so that nothing is lost.

What is written goes to a temporary name first, and is then moved into place.
"""

from __future__ import annotations

import errno
import gzip
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from rankgrove.errors import DataError, MissingFileError, RankgroveError

# What the system's own words leave open.
_WORDS = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "it is a symbolic link that leads back to itself",
    errno.ENAMETOOLONG: "its name is too long",
    errno.EACCES: "permission denied; ask who owns it for the right, or copy it",
}


def why(error: OSError) -> str:
    """Return in words why the system refused a file."""
    return _WORDS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return where a path leads; one that leads nowhere, or in a circle, as far as it does."""
    return Path(os.path.realpath(path))


@contextmanager
def told_errors(
    path: str | os.PathLike[str],
    done: str = "read",
    kind: type[RankgroveError] = DataError,
) -> Iterator[None]:
    """Turn the system's errors about a file into ours: ``PATH cannot be read: ...``."""
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
            reason = f"the folder {Path(path).parent} does not exist; make it first"
        raise kind(f"{path} cannot be {done}: {reason}.") from None


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
    target = real_path(given)
    with told_errors(given, "written"):
        if target.is_symlink():  # only one that leads in a circle is left
            os.stat(given)
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
    with told_errors(given, "written"):
        return cast(BinaryIO, open(path, mode))


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
