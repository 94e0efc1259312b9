"""What a file of judged data holds, by the ending of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TABLE_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")


def is_table(paths: Sequence[Path]) -> bool:
    """Return whether the files are tables, by their ending."""
    return any(path.name.lower().endswith(TABLE_ENDINGS) for path in paths)
