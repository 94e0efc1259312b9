"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the public collections; a test that needs it is skipped where it is absent."""
    given = os.environ.get("RANKGROVE_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no research data in {folder}; set RANKGROVE_DATA to its folder")
    return folder
