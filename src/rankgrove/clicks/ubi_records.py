"""Records of User Behavior Insights: lines of a file, rows of a table, or mappings."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rankgrove.data.tabular import column_names
from rankgrove.data.text_files import BYTE_ORDER_MARK, GZIP_MAGIC
from rankgrove.errors import DataError, MissingFileError, ParseError
from rankgrove.files import why

if TYPE_CHECKING:
    from rankgrove.data.arrays import Frame

    Source: TypeAlias = "str | Path | Frame | Iterable[Mapping[str, Any]]"

Record: TypeAlias = Mapping[str, Any]


class Records:
    """The records of one source, numbered: lines of a file from 1, rows and mappings from 0.

    Parameters
    ----------
    source : a file with one JSON object per line; a table; or mappings
    name : what the source is called in messages if it is not a file
    """

    def __init__(self, source: Source, name: str) -> None:
        self._source = source
        self.path = Path(source) if isinstance(source, str | Path) else None
        self.name = name if self.path is None else str(source)

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        rows = self._rows() if self.path is None else self._lines(self.path)
        for number, record in rows:
            inner = record.get("_source")
            if isinstance(inner, Mapping):
                yield number, inner
            elif set(record) not in ({"index"}, {"create"}):  # what a bulk request does
                yield number, record

    def error(self, number: int | None, message: str) -> DataError:
        """Return an error that says where: in which file or table, and which line or row."""
        if self.path is not None:
            return ParseError(self.path, number, message)
        row = "" if number is None else f", row {number}"
        return DataError(f"read_ubi, {self.name}{row}: {message}")

    def _rows(self) -> Iterator[tuple[int, Record]]:
        source: Any = self._source
        if hasattr(source, "columns") or hasattr(source, "collect"):
            column_names(source)
            source = _mappings(source)
        elif isinstance(source, Mapping) or not isinstance(source, Iterable):
            raise self.error(
                None,
                "expected the name of a file, a pandas, polars or pyarrow table, or mappings, such "
                f"as a list of dicts. Got {type(source).__name__}.",
            )
        for number, record in enumerate(source):
            if not isinstance(record, Mapping):
                raise self.error(number, f"expected a mapping, such as a dict. Got {record!r:.40}.")
            yield number, {name: _plain(value) for name, value in record.items()}

    def _lines(self, path: Path) -> Iterator[tuple[int, Record]]:
        try:
            with open(path, "rb") as raw:
                packed = raw.read(2) == GZIP_MAGIC
            with gzip.open(path, "rb") if packed else open(path, "rb") as file:
                for number, line in enumerate(file, 1):
                    text = line.removeprefix(BYTE_ORDER_MARK).strip()
                    if text:
                        yield number, self._parsed(number, text)
        except FileNotFoundError:
            raise MissingFileError(path) from None
        except EOFError:
            raise self.error(
                None, "the gzip data end too early: download or compress the file again."
            ) from None
        except zlib.error as error:
            raise self.error(None, f"the gzip data are damaged: {error}.") from None
        except OSError as error:
            if isinstance(error, ParseError):
                raise
            raise self.error(None, f"the file cannot be read: {why(error)}.") from None

    def _parsed(self, number: int, text: bytes) -> Record:
        """Return the object of a line."""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            bad = isinstance(error, UnicodeDecodeError)
            raise self.error(
                number,
                f"the line has {'bytes that are not UTF-8' if bad else 'no JSON'}: "
                f"{shortened(text.decode(errors='replace'))}. Write one JSON object per line, as "
                "in an export of the index (NDJSON).",
            ) from None
        if not isinstance(record, dict):
            raise self.error(
                number,
                f"expected a JSON object. Got {shortened(text.decode(errors='replace'))}: write "
                "one object per line, not a list of them.",
            )
        return record


def shortened(text: str, most: int = 40) -> str:
    """Return the beginning of a text, in quotes."""
    return repr(text) if len(text) <= most else repr(text[:most]) + "..."


def _mappings(table: Any) -> Iterable[Record]:
    """Return the rows of a table of pandas, polars or pyarrow."""
    if hasattr(table, "to_pylist"):
        return table.to_pylist()
    if hasattr(table, "iter_rows"):
        return table.iter_rows(named=True)
    return table.to_dict("records")


def _plain(value: Any) -> Any:
    """Return a value as JSON would have it: lists for arrays, None for what is missing."""
    if isinstance(value, np.ndarray | tuple):
        return list(value)
    if isinstance(value, str | Mapping | list):
        return value
    return None if str(value) in ("None", "nan", "NaT", "<NA>") else value
