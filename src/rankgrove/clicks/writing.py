"""Click logs as tables in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.file_kinds import TABLE_ENDINGS
from rankgrove.errors import DataError, MissingExtraError
from rankgrove.frames import write_arrow

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog


def table_of(log: ClickLog) -> Any:
    """Return the log as a pyarrow table; ids are dictionaries, so that texts are there once."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "tables", "Writing click logs") from None
    of = log.session_of

    def coded(codes: np.ndarray, values: Any) -> Any:
        plain = pyarrow.array(values.tolist() if isinstance(values, np.ndarray) else values)
        return pyarrow.DictionaryArray.from_arrays(codes.astype(np.int32), plain)

    ids = np.arange(log.n_sessions) if log.session_ids is None else log.session_ids
    columns: dict[str, Any] = {
        "session": coded(of, ids),
        "query": coded(log.session_query[of], log.query_ids),
        "document": coded(log.pair_document[log.pair], log.document_ids),
        "position": pyarrow.array(log.position),
        "click": pyarrow.array(log.click.astype(np.uint8)),
    }
    if log.dwell is not None:
        columns["dwell"] = pyarrow.array(log.dwell, from_pandas=True)
    if log.session_time is not None:
        columns["time"] = pyarrow.array(log.session_time[of], from_pandas=True)
    if log.session_client is not None:
        columns["client"] = coded(log.session_client[of], log.client_ids)
    for name, (codes, names) in log.contexts.items():
        if name in columns:
            raise DataError(f"A context cannot be written under the name {name!r}: rename it.")
        columns[name] = coded(codes[of], list(names))
    return pyarrow.table(columns)


def write_log(log: ClickLog, path: str | Path) -> None:
    """Write a log as CSV or TSV (also .gz), parquet or arrow, by the ending of the name."""
    name = Path(path).name.lower()
    if not name.endswith(TABLE_ENDINGS):
        raise DataError(
            f"The name of a click log must end in {', '.join(TABLE_ENDINGS)}. Got {path}."
        )
    write_arrow(table_of(log), path)
