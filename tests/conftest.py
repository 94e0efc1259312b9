"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of research data: $RANKGROVE_DATA, else ../shared/data beside the repository."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("RANKGROVE_DATA") or root.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no research data at {folder}; set RANKGROVE_DATA to the folder that has it")
    return folder
