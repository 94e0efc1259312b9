"""The kind of a file of judged data, known by the ending of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
TABLE_ENDINGS = (".parquet", *TEXT_ENDINGS, *ARROW_ENDINGS)


def is_table(paths: Sequence[Path]) -> bool:
    """Return whether the files are tables, judged by the endings of their names."""
    return any(path.name.lower().endswith(TABLE_ENDINGS) for path in paths)


def is_text_table(path: Path) -> bool:
    """Return whether a file is a table of text."""
    return path.name.lower().endswith(TEXT_ENDINGS)
