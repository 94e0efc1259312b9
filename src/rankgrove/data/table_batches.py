"""Tables on disk as a stream of small pyarrow tables: CSV, parquet, arrow (IPC and feather files).

CSV is read twice: first for the types of columns, which hold for all rows, as in `read_table`; see
`csv_kinds.py`. Where the types of blocks differ, it may have to be read once more.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rankgrove.data.csv_kinds import ColumnKinds
from rankgrove.data.csv_rows import row_blocks
from rankgrove.data.file_kinds import ARROW_ENDINGS
from rankgrove.data.table_files import (
    check_separator,
    line_of_row,
    open_arrow,
    separator_of,
    unreadable,
)
from rankgrove.data.text_stream import open_stream
from rankgrove.errors import MissingExtraError, MissingFileError, ParseError

Seen = Callable[[int, int], None]
_ROW = re.compile(r"Row #(\d+): ")
_MOST_ROWS = 1 << 16
_BUFFER_BYTES = 1 << 16  # of a column


class TableFile:
    """One table.

    Parameters
    ----------
    columns : the columns that are read; None: all
    texts : the columns of a CSV file that are read as text
    block_bytes : about the size of what is in memory at a time
    """

    def __init__(
        self, path: Path, columns: Sequence[str] | None, texts: Sequence[str], block_bytes: int
    ) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError("pyarrow", "tables", "Reading tables") from None
        self.path = path
        self._columns = columns
        self._texts = texts
        self._block_bytes = block_bytes

    @property
    def is_text(self) -> bool:
        """Whether the file is CSV or TSV."""
        return not self.path.name.lower().endswith((".parquet", *ARROW_ENDINGS))

    def tables(self, seen: Seen) -> Iterator[Any]:
        """Yield all rows; `seen` is called with the bytes that were read, and their total."""
        import pyarrow

        problems = (pyarrow.ArrowException, EOFError, MemoryError, OverflowError, OSError)
        try:
            if self.is_text:
                yield from self._of_csv(seen)
            elif self.path.name.lower().endswith(".parquet"):
                yield from self._of_parquet(seen)
            else:
                yield from self._of_arrow(seen)
        except (ParseError, MissingFileError):
            raise
        except FileNotFoundError:
            raise MissingFileError(self.path) from None
        except problems as error:
            raise unreadable(self.path, error) from error

    # -- parquet and arrow ------------------------------------------------------------------------

    def _of_parquet(self, seen: Seen) -> Iterator[Any]:
        import pyarrow
        import pyarrow.parquet

        # not ahead of time, and pages piece by piece: otherwise all that was read stays in memory
        with pyarrow.parquet.ParquetFile(
            self.path, pre_buffer=False, buffer_size=_BUFFER_BYTES
        ) as file:
            names = file.schema_arrow.names
            columns = self._present(names)
            total = file.metadata.num_rows
            height = self._height(len(names if columns is None else columns))
            done = 0
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(height, row_groups=[group], columns=columns):
                    done += batch.num_rows
                    yield pyarrow.Table.from_batches([batch])
                    seen(done, total)

    def _of_arrow(self, seen: Seen) -> Iterator[Any]:
        import pyarrow

        total = self.path.stat().st_size
        done = 0
        with open_arrow(self.path) as file:
            columns = self._present(file.schema.names)
            n_batches = getattr(file, "num_record_batches", None)
            batches = file if n_batches is None else map(file.get_batch, range(n_batches))
            for batch in batches:
                table = pyarrow.Table.from_batches([batch])
                table = table if columns is None else table.select(columns)
                height = self._height(table.num_columns)
                for start in range(0, table.num_rows, height):
                    yield table.slice(start, height)
                done += batch.nbytes
                seen(min(done, total), total)

    def _present(self, names: Sequence[str]) -> list[str] | None:
        """Return the columns to read; all of them where one is missing, to be refused by name."""
        if self._columns is None or not set(names).issuperset(self._columns):
            return None
        return [name for name in names if name in set(self._columns)]

    def _height(self, width: int) -> int:
        return min(max(self._block_bytes // (8 * max(width, 1)), 1), _MOST_ROWS)

    # -- CSV --------------------------------------------------------------------------------------

    def _of_csv(self, seen: Seen) -> Iterator[Any]:
        separator = separator_of(self.path)
        check_separator(self.path, separator)
        found = ColumnKinds()
        for text, table in self._parsed(separator, {}, lambda n, total: seen(n, 2 * total)):
            found.add(table.schema, text)
        kinds = self._narrowed(separator, found.candidates())
        for _, table in self._parsed(separator, kinds, lambda n, total: seen(total + n, 2 * total)):
            for start in range(0, table.num_rows, _MOST_ROWS):
                yield table.slice(start, _MOST_ROWS)

    def _narrowed(self, separator: str, candidates: dict[str, list[Any]]) -> dict[str, Any]:
        """Return by column the first of the candidates that fits all rows."""
        open_ = {
            name: kinds
            for name, kinds in candidates.items()
            if len(kinds) > 1 and name not in self._texts
        }
        names: list[str] | None = None
        for text in self._blocks(separator, lambda *_: None) if open_ else ():
            for name, kinds in open_.items():
                # the last one is text, which fits
                fitting = [kind for kind in kinds[:-1] if _fits(text, separator, names, name, kind)]
                open_[name] = [*fitting, kinds[-1]]
            if names is None:
                names = _read_csv(text, separator, None, {}).column_names
        return {name: kinds[0] for name, kinds in {**candidates, **open_}.items()}

    def _parsed(
        self, separator: str, kinds: dict[str, Any], seen: Seen
    ) -> Iterator[tuple[bytes, Any]]:
        """Yield every block and its rows; columns that `kinds` does not name have types of it."""
        import pyarrow

        names: list[str] | None = None
        types = {**kinds, **dict.fromkeys(self._texts, pyarrow.string())}
        n_rows = 0
        for text in self._blocks(separator, seen):
            try:
                table = _read_csv(text, separator, names, types)
            except pyarrow.ArrowInvalid as error:
                raise self._mistake(error, n_rows, names is None) from error
            names = table.column_names if names is None else names
            n_rows += table.num_rows
            yield text, table

    def _blocks(self, separator: str, seen: Seen) -> Iterator[bytes]:
        """Yield the text in whole rows; blocks without rows are left out, unless all are."""
        only = None
        with open_stream(self.path) as stream:
            for text in row_blocks(stream.pieces(), self._block_bytes, separator):
                if text.removeprefix(codecs.BOM_UTF8).strip(b"\r\n"):
                    only = b""
                    yield text
                elif only is None:
                    only = text
                seen(stream.n_read, stream.size)
            if only:
                yield only

    def _mistake(self, error: Exception, rows_before: int, has_header: bool) -> ParseError:
        """Return the error for a block, with the line in the file."""
        reason = str(error).strip().split("\n")[0].rstrip(".")
        line = None
        if match := _ROW.search(reason):  # counts from 1, with the header
            line = line_of_row(self.path, rows_before + int(match[1]) - (2 if has_header else 1))
            reason = reason.replace(match[0], "")
        return ParseError(self.path, line, f"the table cannot be read: {reason}.")


def _read_csv(text: bytes, separator: str, names: Any, types: dict[str, Any], **some: Any) -> Any:
    """Return the rows of a block; `names` None: its first row has the names of columns."""
    import pyarrow.csv

    if names is not None:
        types = {name: kind for name, kind in types.items() if name in names}
    return pyarrow.csv.read_csv(
        io.BytesIO(text),
        pyarrow.csv.ReadOptions(
            use_threads=False, column_names=names, block_size=max(len(text) + 1, 64)
        ),
        pyarrow.csv.ParseOptions(delimiter=separator),
        pyarrow.csv.ConvertOptions(column_types=types, **some),
    )


def _fits(text: bytes, separator: str, names: Any, name: str, kind: Any) -> bool:
    import pyarrow

    try:
        _read_csv(text, separator, names, {name: kind}, include_columns=[name])
    except pyarrow.ArrowInvalid:
        return False
    return True
