"""The kind of a file of judged data, known by the ending of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rankgrove.errors import ParameterError

HEADER = "header.json"  # of a folder of bins
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
TABLE_ENDINGS = (".parquet", *TEXT_ENDINGS, *ARROW_ENDINGS)


def is_table(paths: Sequence[Path]) -> bool:
    """Return whether the files are tables, judged by the endings of their names."""
    return any(path.name.lower().endswith(TABLE_ENDINGS) for path in paths)


def is_folder_of_bins(path: Path) -> bool:
    """Return whether a folder holds bins."""
    return (path / HEADER).is_file()


def packed_table(path: Path) -> str | None:
    """Return the ending of a table that is packed in a way that is not read."""
    name = path.name.lower()
    for packing in (".gz", ".zst", ".bz2", ".xz", ".zip"):
        inner = name.removesuffix(packing)
        if inner != name and not is_table([path]) and is_table([Path(inner)]):
            return "".join(Path(inner).suffixes[-1:]) + packing
    return None


def refuse_packed_tables(paths: Sequence[Path]) -> None:
    """Refuse tables that would be taken for LETOR text."""
    for path in paths:
        ending = packed_table(path)
        if ending is not None:
            raise ParameterError(
                f"{path}: tables packed as {ending} are not read. Unpack it, or give CSV packed by "
                "gzip, or parquet."
            )


def is_text_table(path: Path) -> bool:
    """Return whether a file is a table of text."""
    return path.name.lower().endswith(TEXT_ENDINGS)
