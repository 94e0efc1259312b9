"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data sets; without it the test is skipped."""
    path = Path(os.environ.get("RANKGROVE_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip("real data sets are absent: set RANKGROVE_DATA to their folder")
    return path
