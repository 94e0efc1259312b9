"""Files of tables: parquet, CSV, TSV, arrow and feather, as pyarrow tables."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

from rankgrove.data.file_kinds import ARROW_ENDINGS, TABLE_ENDINGS
from rankgrove.errors import MissingExtraError, MissingFileError, ParseError
from rankgrove.files import why

_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_ROW_OF_ERROR = re.compile(r"Row #(\d+): ")
# The errors that a damaged table may raise besides pyarrow's own.
DAMAGE = (EOFError, MemoryError, OSError, OverflowError, UnicodeDecodeError)


def read_table_file(
    path: Path,
    texts: Sequence[str],
    columns: Sequence[str] | None = None,
    optional: Sequence[str] = (),
) -> Any:
    """Return a file as a pyarrow table.

    Parameters
    ----------
    path : the file
    texts : columns that are read as text from CSV and TSV files, though they may look like numbers
    columns : the columns to read of a parquet file, if it has all of them; None: all
    optional : columns to read in addition, if there are such
    """
    name = path.name.lower()
    if not name.endswith(TABLE_ENDINGS):
        raise ParseError(path, None, f"the name of a table must end in {', '.join(TABLE_ENDINGS)}.")
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "tables", "Reading parquet and CSV files") from None
    try:
        if name.endswith(".parquet"):
            file = pyarrow.parquet.ParquetFile(path)
            present = set(file.schema_arrow.names)
            if columns is None or not present.issuperset(columns):
                return file.read()
            return file.read(columns=[*columns, *(present.intersection(optional) - set(columns))])
        if name.endswith(ARROW_ENDINGS):
            with open_arrow(path) as file:
                return file.read_all()
        separator = separator_of(path)
        check_separator(path, separator)
        parse = pyarrow.csv.ParseOptions(delimiter=separator)
        kinds = {column: pyarrow.string() for column in texts}
        convert = pyarrow.csv.ConvertOptions(column_types=kinds)
        try:
            return pyarrow.csv.read_csv(str(path), parse_options=parse, convert_options=convert)
        except pyarrow.ArrowInvalid:
            serial = pyarrow.csv.ReadOptions(use_threads=False)  # errors then have a row number
            return pyarrow.csv.read_csv(str(path), serial, parse, convert)
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except (pyarrow.ArrowException, *DAMAGE) as error:
        raise unreadable(path, error) from error


@contextmanager
def open_arrow(path: Path) -> Iterator[Any]:
    """Open an arrow file or stream; both have a schema and can be read whole or in batches."""
    import pyarrow
    import pyarrow.ipc

    with pyarrow.OSFile(str(path)) as source:
        try:
            file = pyarrow.ipc.open_file(source)
        except pyarrow.ArrowInvalid:
            source.seek(0)
            file = pyarrow.ipc.open_stream(source)
        yield file


def table_columns(path: str | Path) -> list[str]:
    """Return the names of a file's columns; none if it cannot be read, which reading it explains.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "judged.csv"
    >>> _ = path.write_text("qid,label,bm25\\n1,0,3.5\\n")
    >>> table_columns(path)
    ['qid', 'label', 'bm25']
    """
    path = Path(path)
    try:
        if path.name.lower().endswith(".parquet"):
            import pyarrow
            import pyarrow.parquet

            try:
                return list(pyarrow.parquet.read_schema(path).names)
            except pyarrow.ArrowException:
                return []
        if path.name.lower().endswith(ARROW_ENDINGS):
            with open_arrow(path) as file:
                return list(file.schema.names)
        with _open_text(path) as file:
            return next(csv.reader(file, delimiter=separator_of(path)), [])
    except (ImportError, csv.Error, zlib.error, *DAMAGE):
        return []


def unreadable(path: Path, error: BaseException) -> ParseError:
    """Return the error for a table that pyarrow cannot read, with the line if pyarrow names it."""
    reason = why(error) if isinstance(error, OSError) and error.errno else str(error)
    reason = reason.strip().split("\n")[0].rstrip(".")
    line = None
    if match := _ROW_OF_ERROR.search(reason):  # counts from 1, with the header
        line = line_of_row(path, int(match[1]) - 2)
        reason = reason.replace(match[0], "")
    if "invalid UTF8" in reason:
        remedy = "save it as UTF-8, or convert it (iconv -f ISO-8859-1 -t UTF-8, or your encoding)"
        return ParseError(path, line, f"this is not UTF-8 text: {remedy}.")
    return ParseError(path, line, f"the table cannot be read: {reason}.")


# -- CSV and TSV ------------------------------------------------------------------------------


def separator_of(path: Path) -> str:
    """Return what is between the cells of a CSV or TSV file."""
    return "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","


def _open_text(path: Path) -> TextIO:
    packed = path.name.lower().endswith(".gz")
    opened = (gzip.open if packed else open)(
        path, "rt", newline="", encoding="utf-8-sig", errors="replace"
    )
    return cast(TextIO, opened)


def check_separator(path: Path, separator: str) -> None:
    """Refuse a header with another separator."""
    try:
        with _open_text(path) as file:
            head = file.buffer.peek(2)[:2]  # type: ignore[attr-defined]
            header = file.readline(1 << 16).strip("\r\n")
    except (OSError, EOFError, zlib.error):  # reading the table raises the error
        return
    if head in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise ParseError(
            path,
            1,
            "this is UTF-16 text. Expected UTF-8: save it as UTF-8, or convert it "
            "(iconv -f UTF-16 -t UTF-8).",
        )
    likeliest = max(_SEPARATORS, key=header.count)
    if separator not in header and likeliest in header:
        remedy = "rename it to .tsv" if likeliest == "\t" else "convert it"
        raise ParseError(
            path,
            1,
            f"the header {quoted(header)} has {_SEPARATORS[likeliest]} and no "
            f"{_SEPARATORS[separator]}. A .csv file is separated by commas, a .tsv file by tabs: "
            f"{remedy}, or read it with another tool, such as pandas, and pass its table.",
        )


def line_of_row(path: Path, row: int) -> int | None:
    """Return the line where a row of a CSV file begins; None for other files."""
    if path.name.lower().endswith((".parquet", *ARROW_ENDINGS)):
        return None
    try:
        with _open_text(path) as file:
            reader = csv.reader(file, delimiter=separator_of(path))
            left, begin = row + 1, 1
            for record in reader:
                if record and not left:
                    return begin
                left -= bool(record)
                begin = reader.line_num + 1
    except (OSError, EOFError, zlib.error, csv.Error):
        pass
    return None


def quoted(value: str | bytes, most: int = 40) -> str:
    """Return a text of a file as messages show it, cut if it is long."""
    return repr(value) if len(value) <= most else repr(value[:most]) + "..."
