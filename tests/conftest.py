"""What all tests share."""

from __future__ import annotations

import hashlib
import os
import signal
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]


def _kernel_cache() -> Path:
    """Return a folder for compiled kernels that belongs to exactly these sources and packages.

    Numba recompiles a function when its own file changes, not when a function that it calls does;
    of two environments with different versions of Numba each would overwrite the other's kernels.
    """
    digest = hashlib.blake2b(digest_size=8)
    for package in ("numba", "numpy"):
        digest.update(f"{package} {version(package)}\n".encode())
    for path in sorted((ROOT / "src").rglob("_*.py")):
        digest.update(path.read_bytes())
    return ROOT / ".venv" / "kernels" / digest.hexdigest()


# The first example may compile a kernel: no deadline says anything about it.
settings.register_profile("rankgrove", deadline=None)
settings.load_profile("rankgrove")
# What a shell starts in the background ignores Ctrl-C, which some tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Before Numba is imported, and for the commands that tests start.
os.environ.setdefault("NUMBA_CACHE_DIR", str(_kernel_cache()))
# A first `train` starts no second process: the tests share a cache.
os.environ.setdefault("RANKGROVE_COMPILE_AHEAD", "0")
# Several processes share the cores: threads of peers that wait for one another must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data sets; without it the test is skipped."""
    path = Path(os.environ.get("RANKGROVE_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip("real data sets are absent: set RANKGROVE_DATA to their folder")
    return path
