"""Telling the user, once, that kernels are being compiled.

Kernels are compiled when they are first used on a machine and kept after that; the first training
would otherwise seem to hang.
"""

from __future__ import annotations

import logging
import os
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
