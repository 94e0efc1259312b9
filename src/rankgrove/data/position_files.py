"""Files of positions: where the rows of a LETOR file were shown, one line per row.

A line is a position. With a header, of which ``position`` is the first name, there are two or three
columns, separated by tabs: ``pair`` is equal where the same document was shown for the same
query, ``context`` is the context, such as the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from rankgrove.data.arrays import frozen
from rankgrove.data.positions import NO_CONTEXT, Positions, check_positions
from rankgrove.data.text_files import read_text_bytes
from rankgrove.errors import DataError, ParseError
from rankgrove.files import write_atomically
from rankgrove.validation import counted

COLUMNS = ("position", "pair", "context")


def read_positions(path: str | Path, n_rows: int) -> Positions:
    """Read the positions of `n_rows` rows."""
    text = read_text_bytes(path).decode()
    lines = text.rstrip("\r\n").split("\n") if text.strip() else []
    names: tuple[str, ...] = ("position",)
    first = 1
    if lines and not lines[0][:1].isdigit():
        names, first = _header(Path(path), lines.pop(0)), 2
    if len(lines) != n_rows:
        raise ParseError(
            path,
            None,
            f"{counted(len(lines), 'position')} for {counted(n_rows, 'row')}: write one line for "
            "each row of the data, in its row order.",
        )
    rows = [line.rstrip("\r").split("\t") for line in lines]
    place = np.empty(n_rows, np.float64)
    for i, row in enumerate(rows):
        if len(row) != len(names):
            raise ParseError(
                path,
                first + i,
                f"the line has {counted(len(row), 'column')}, and the file {len(names)}: "
                f"{', '.join(names)}, separated by tabs.",
            )
        try:
            place[i] = int(row[0])
        except (ValueError, OverflowError):
            raise ParseError(
                path, first + i, f"a position is a whole number from 1. Got {row[0][:40]!r}."
            ) from None
    column = {name: np.array([row[k] for row in rows]) for k, name in enumerate(names) if k}
    try:
        positions = check_positions(place, column.get("context"), n_rows)
    except DataError as error:
        raise ParseError(path, None, str(error)) from error
    assert positions is not None
    if "pair" not in column:
        return positions
    codes = np.unique(column["pair"], return_inverse=True)[1]
    return replace(positions, pair=frozen(codes.astype(np.int32)))


def _header(path: Path, line: str) -> tuple[str, ...]:
    names = tuple(line.strip().split("\t"))
    if names[0] != "position" or not set(names) <= set(COLUMNS) or len(set(names)) < len(names):
        raise ParseError(
            path,
            1,
            "write one position per line; or a header of the columns position, pair and context, "
            f"separated by tabs, of which the last two are optional. Got {line[:40]!r}.",
        )
    return names


def write_positions(path: str | Path, positions: Positions) -> None:
    """Write positions, with pairs and contexts where they are known."""
    columns: dict[str, Iterator[str]] = {"position": map(str, positions.place.tolist())}
    if positions.pair is not None:
        columns["pair"] = map(str, positions.pair.tolist())
    if positions.names != NO_CONTEXT:
        columns["context"] = _contexts(positions)
    lines = ("\t".join(parts) for parts in zip(*columns.values(), strict=True))
    head = ["\t".join(columns)] if len(columns) > 1 else []
    write_atomically(path, "".join(f"{line}\n" for line in chain(head, lines)))


def _contexts(positions: Positions) -> Iterator[str]:
    """Return the context of every row, on one line and without tabs."""
    names = [" ".join(name.split()) for name in positions.names]
    codes = positions.context
    return (names[code] for code in ([0] * positions.place.size if codes is None else codes))
