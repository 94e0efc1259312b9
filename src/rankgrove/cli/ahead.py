"""Kernels compiled by a second process while ``rankgrove train`` reads its data."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys

from rankgrove.parallel import available_threads

FEW = ":few"  # after the name of a ranker: only what training on few rows of numbers uses
SWITCH = "RANKGROVE_COMPILE_AHEAD"  # 0: no second process
# A kernel that training needs, by which a cache that was never filled is recognised.
_SIGN = ("growth/_grower_kernels.py", "search_leaf")


def compile_ahead(kind: str) -> subprocess.Popen[bytes] | None:
    """Start compiling what a kind of ranker needs for training, if nothing has been compiled.

    It begins with what this process needs last. Each process waits for a kernel that the other is
    compiling. Without a second core it would be no gain.
    """
    from rankgrove.kernel_cache import has_kernel
    from rankgrove.rankers.load import trainable

    frozen = getattr(sys, "frozen", False)
    if frozen or os.environ.get(SWITCH) == "0" or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return None
    if kind not in trainable() or available_threads() < 2 or has_kernel(*_SIGN):
        return None
    what = ["grow"] if kind == "lambdamart" else []
    what.append(f"{kind}{FEW}")
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "rankgrove", "compile", "--quiet", *what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # no memory or no processes left: this process compiles by itself
        return None
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    process.wait()
    from rankgrove.kernel_cache import remove_old_locks

    remove_old_locks()
