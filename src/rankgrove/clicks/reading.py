"""Reading click logs from tables: CSV and TSV, parquet, arrow, and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.clicks.columns import Ids, ids_of, places_of, text_array
from rankgrove.clicks.log import ClickLog
from rankgrove.data.dataset_checks import plain_ids
from rankgrove.data.file_kinds import ARROW_ENDINGS, TABLE_ENDINGS, is_text_table
from rankgrove.data.table_files import (
    DAMAGE,
    check_separator,
    line_of_row,
    open_arrow,
    separator_of,
    table_columns,
    unreadable,
)
from rankgrove.data.tabular import check_column, column_names
from rankgrove.errors import DataError, MissingExtraError, MissingFileError, ParseError
from rankgrove.validation import check_choice, refuse

if TYPE_CHECKING:
    from rankgrove.data.arrays import Frame


def read_clicks(
    source: str | Path | Frame,
    *,
    session: str = "session",
    query: str = "query",
    document: str = "document",
    position: str = "position",
    click: str = "click",
    dwell: str | None = None,
    time: str | None = None,
    client: str | None = None,
    context: Sequence[str] | str = (),
    first_position: int = 1,
    duplicates: str = "error",
) -> ClickLog:
    """Read a click log from a table with one row per impression.

    Every document that was shown is a row, clicked or not. Reading files needs the extra ``tables``
    (pyarrow). In CSV and TSV files ids of sessions and queries are whole numbers if all of them
    are, else texts (007 and 7 differ), and ids of documents are texts.

    Parameters
    ----------
    source : a parquet, CSV, TSV (also ``.gz``), arrow or feather file; a pandas, polars or pyarrow
        table; or a mapping from column name to array
    session : the column of session ids: one id for every list of results
    query, document, position, click : the columns of query, document, position and click (0 or 1)
    dwell, time, client : columns of seconds, times, and ids of users, see :class:`ClickLog`. None:
        the columns of these names, if they are there
    context : columns of properties of sessions, such as the device
    first_position : 1, or 0 where positions are counted from 0
    duplicates : ``"error"`` or ``"merge"``, as in :class:`ClickLog`

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.csv"
    >>> _ = path.write_text('''session,query,document,position,click
    ... 1,shoes,d7,1,0
    ... 1,shoes,d3,2,1
    ... 2,shoes,d3,1,1
    ... 2,shoes,d7,2,0
    ... ''')
    >>> read_clicks(path)
    ClickLog(2 sessions, 4 impressions, 2 clicks, 1 query, 2 documents)
    """
    check_first_position("read_clicks", first_position)
    check_choice("duplicates", "read_clicks", duplicates, ["error", "merge"])
    contexts = [context] if isinstance(context, str) else list(context)
    named = {"session": session, "query": query, "document": document, "position": position}
    named |= {"click": click}
    optional = {"dwell": dwell, "time": time, "client": client}
    path = Path(source) if isinstance(source, str | Path) else None
    try:
        roles, table = _table(source, path, named, optional, contexts)
        return _log(table, roles, contexts, path, first_position, duplicates)
    except DataError as error:
        if path is None or isinstance(error, ParseError):
            raise
        line = None if error.row is None else line_of_row(path, error.row)
        raise ParseError(path, line, str(error)) from error


def check_first_position(owner: str, first: object) -> None:
    """Refuse a first position other than 0 and 1."""
    if isinstance(first, bool) or first not in (0, 1):
        refuse("first_position", owner, "0 or 1", first)


def _roles(
    names: list[Any],
    named: Mapping[str, str],
    optional: Mapping[str, str | None],
    contexts: Sequence[str],
) -> dict[str, str]:
    """Return the columns by role; refuse those that are not there."""
    roles = dict(named)
    taken = {*roles.values(), *contexts, *(name for name in optional.values() if name)}
    for role, name in optional.items():
        if name is not None:
            roles[role] = name
        elif role in names and role not in taken:
            roles[role] = role
    _check_columns(roles, names)
    for name in contexts:
        check_column(name, "a context", names)
    return roles


def _check_columns(roles: Mapping[str, str], names: list[Any]) -> None:
    """Refuse a table that lacks columns; the message names all of them."""
    lacking = {role: name for role, name in roles.items() if name not in names}
    remedy = (
        f"If they have other names, give them: {', '.join(f'{role}=...' for role in lacking)} "
        f"(rankgrove clicks: --columns {','.join(f'{role}=NAME' for role in lacking)})."
    )
    if len(lacking) > 1:
        shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise DataError(
            f"The table has no columns {', '.join(map(repr, lacking.values()))}. Its columns are "
            f"{shown}. {remedy}"
        )
    for role, name in lacking.items():
        try:
            check_column(name, f"the {role}", names)
        except DataError as error:
            one = remedy.replace("they have other names, give them", "it has another name, give it")
            raise DataError(f"{error} {one}") from None


def _table(
    source: Any,
    path: Path | None,
    named: Mapping[str, str],
    optional: Mapping[str, str | None],
    contexts: Sequence[str],
) -> tuple[dict[str, str], Any]:
    """Return the columns by role, and the table."""
    if path is None:
        return _roles(column_names(source), named, optional, contexts), source
    name = path.name.lower()
    if not name.endswith(TABLE_ENDINGS):
        is_json = any(end in name for end in (".json", ".ndjson", ".jsonl"))
        raise ParseError(
            path,
            None,
            f"the name of a click log must end in {', '.join(TABLE_ENDINGS)}."
            + (" OpenSearch's UBI is read by read_ubi (--ubi QUERIES)." if is_json else ""),
        )
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "tables", "Reading click logs") from None
    try:
        if name.endswith(".parquet"):
            file = pyarrow.parquet.ParquetFile(path)
            roles = _roles(list(file.schema_arrow.names), named, optional, contexts)
            return roles, file.read(columns=list(dict.fromkeys([*roles.values(), *contexts])))
        if name.endswith(ARROW_ENDINGS):
            with open_arrow(path) as file:
                roles = _roles(list(file.schema.names), named, optional, contexts)
                return roles, file.read_all()
        return _text_table(path, named, optional, contexts)
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except (pyarrow.ArrowException, *DAMAGE) as error:
        raise unreadable(path, error) from error


def _text_table(
    path: Path,
    named: Mapping[str, str],
    optional: Mapping[str, str | None],
    contexts: Sequence[str],
) -> tuple[dict[str, str], Any]:
    import pyarrow
    import pyarrow.csv

    separator = separator_of(path)
    check_separator(path, separator)
    parse = pyarrow.csv.ParseOptions(delimiter=separator)
    header = table_columns(path)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataError(f"The table has two columns named {twice!r}: rename one.")
    roles = _roles(header, named, optional, contexts) if header else dict(named)
    kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    ids = [roles[role] for role in ("session", "query", "document", "client") if role in roles]
    wanted = list(dict.fromkeys([*roles.values(), *contexts]))
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys([*ids, *contexts], kind), include_columns=wanted
    )
    try:
        return roles, pyarrow.csv.read_csv(str(path), parse_options=parse, convert_options=convert)
    except pyarrow.ArrowInvalid:
        serial = pyarrow.csv.ReadOptions(use_threads=False)  # errors then have a row number
        return roles, pyarrow.csv.read_csv(str(path), serial, parse, convert)


def _log(
    table: Any,
    roles: Mapping[str, str],
    contexts: Sequence[str],
    path: Path | None,
    first_position: int,
    duplicates: str,
) -> ClickLog:
    is_text = path is not None and is_text_table(path)
    columns = {role: _column(table, name) for role, name in roles.items()}
    for role in ("session", "query", "document", "client"):
        if role in columns:
            ids = ids_of(columns[role], role)
            columns[role] = _cleaned(ids, role) if is_text else ids
            if role != "query":  # of users who browse, the query may be empty in a frame
                _refuse_empty(columns[role], role)
    columns["position"] = places_of(columns["position"], first_position)
    log = ClickLog(
        **columns,
        context={name: _column(table, name) for name in contexts} or None,
        duplicates=duplicates,
    )
    check_sense(log)
    return log


def _column(table: Any, name: str) -> Any:
    return table.column(name) if hasattr(table, "column_names") else table[name]


def _cleaned(ids: Ids, role: str) -> Ids:
    """Return ids of a text file without spaces around them; numbers as numbers, if all are."""
    texts = [str(token).strip() for token in ids.ids.tolist()]
    _refuse_empty(Ids(np.array(texts, object), ids.codes), role)
    cleaned = ids_of(text_array(texts) if role == "document" else plain_ids(texts), role)
    return Ids(cleaned.ids, cleaned.codes[ids.codes])


def _refuse_empty(ids: Ids, role: str) -> None:
    if ids.ids.dtype.kind not in "UO":
        return
    empty = np.flatnonzero(ids.ids == "")
    if empty.size:
        row = int(np.argmax(np.isin(ids.codes, empty)))
        error = DataError(f"{role} is empty in row {row}: every impression needs one.")
        error.row = row
        raise error


def check_sense(log: ClickLog) -> None:
    """Refuse a log from which nothing can be learned because of how it was written."""
    if log.n_sessions == 1:
        raise DataError(
            "All rows are of one session. A session is one list of results, and a log needs "
            "many of them: name the column with an id per list (session=...)."
        )
    if log.n_clicks == log.n_impressions:
        raise DataError(
            f"All {log.n_impressions:,} rows are clicks: the documents that were shown and not "
            "clicked are missing. Add a row with click 0 for every one of them."
        )
    if not log.n_clicks:
        raise DataError(
            f"None of the {log.n_impressions:,} rows is a click: nothing can be learned from them. "
            "If another column has the clicks, name it (click=...)."
        )
