"""The kind of a file of judged data, known by the ending of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TABLE_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")


def is_table(paths: Sequence[Path]) -> bool:
    """Return whether the files are tables, judged by the endings of their names."""
    return any(path.name.lower().endswith(TABLE_ENDINGS) for path in paths)
