"""What all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]


# The first example may compile a kernel: no deadline says anything about it.
settings.register_profile("rankgrove", deadline=None)
settings.load_profile("rankgrove")
# What a shell starts in the background ignores Ctrl-C, which some tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Before Numba is imported, and for the commands that tests start. Kernels are found by the content
# of their sources, so one folder serves all states of them.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".venv" / "kernels"))
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
