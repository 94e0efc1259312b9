"""Where compiled kernels are kept, and telling the user, once, that they are being compiled.

Kernels are compiled when they are first used on a machine and kept after that; the first training
would otherwise seem to hang.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Any

_log = logging.getLogger("rankgrove")
_told = False


def announce(*kernels: Any) -> None:
    """Log, once a process, that `kernels` will be compiled, where they are not kept already."""
    global _told
    if not _told and not all(map(_is_kept, kernels)):
        _told = True
        _log.warning("Compiling kernels: this happens once, and takes up to a minute ...")


def _is_kept(kernel: Any) -> bool:
    """Whether Numba has an index of compiled versions of a kernel on disk."""
    try:
        return os.path.exists(kernel._cache._cache_file._index_path)
    except AttributeError:  # Numba keeps this to itself; without it there is just no message
        return True


def find_cache_folder() -> None:
    """Have Numba keep kernels in a folder for the time being where no usual one can be written.

    It looks beside the sources and in the user's cache folder, and refuses to compile where both
    are closed, as for a user who shares another one's install and has no home.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    beside = Path(__file__).parent / "measures" / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not (_takes_files(beside) or _takes_files(Path(home, "numba"))):
        os.environ["NUMBA_CACHE_DIR"] = str(_own_folder())


def _takes_files(folder: Path) -> bool:
    """Whether files can be made in a folder, or it can be made itself."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)


def _own_folder() -> Path:
    """Return a folder that this user alone can write to: compiled kernels are run."""
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"rankgrove-kernels-{user}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
            return folder
    except OSError:  # somebody else's, or there is no room
        pass
    return Path(tempfile.mkdtemp(prefix="rankgrove-kernels-"))
