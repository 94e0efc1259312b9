"""Tables: pandas, polars and pyarrow frames in memory, parquet and CSV files on disk.

Frames are known by what they can do, not by their class, so none of the three is imported to read
a frame. The feature matrix is filled column by column: nothing but one column is ever in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data.inputs import is_null
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, MissingExtraError, ParseError
from rankgrove.validation import nearest

_TABLE_SUFFIXES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")


def dataset_from_frame(
    frame: Any,
    *,
    label: str = "label",
    qid: str = "qid",
    features: Sequence[str] | None = None,
    weight: str | None = None,
    docid: str | None = None,
) -> QueryDataset:
    """Return the data set of a pandas, polars or pyarrow table.

    Parameters
    ----------
    frame : the table; also a mapping from column name to array
    label, qid, weight, docid : the columns with these roles
    features : the feature columns, in this order; None takes every column without another role.
        They must hold numbers or truth values. Nulls become NaN, a missing value

    Returns
    -------
    QueryDataset

    Examples
    --------
    >>> frame = {"qid": [1, 1], "label": [0, 2], "bm25": [3.5, None], "clicks": [1, 0]}
    >>> data = dataset_from_frame(frame)
    >>> data.feature_names
    ('bm25', 'clicks')
    >>> data.X
    array([[3.5, 1. ],
           [nan, 0. ]], dtype=float32)
    """
    names = _column_names(frame)
    roles = {"label": label, "qid": qid, "weight": weight, "docid": docid}
    taken = {name: role for role, name in roles.items() if name is not None}
    for name, role in taken.items():
        _check_column(name, f"the {role}", names)
    if features is None:
        wanted = [name for name in names if name not in taken]
    else:
        wanted = [features] if isinstance(features, str) else list(features)
        for name in wanted:
            _check_column(name, "a feature", names)
    labels = _numbers(frame, label, "Labels")
    return QueryDataset(
        _matrix(frame, wanted, labels.size),
        labels,
        qid=_tokens(frame, qid),
        weight=None if weight is None else _numbers(frame, weight, "Weights"),
        docid=None if docid is None else _tokens(frame, docid, nulls=True),
        feature_names=[str(name) for name in wanted],
    )


def read_table(
    path: str | Path,
    *,
    label: str = "label",
    qid: str = "qid",
    features: Sequence[str] | None = None,
    weight: str | None = None,
    docid: str | None = None,
) -> QueryDataset:
    """Read a data set from a ``.parquet``, ``.csv``, ``.csv.gz`` or ``.tsv`` file.

    Needs the extra ``tables`` (pyarrow). The parameters are those of `QueryDataset.from_frame`;
    where `features` are named, a parquet file's other columns are not read. In a CSV file what
    looks like a number is one: the query ids 07 and 7 are the same.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "judged.csv"
    >>> _ = path.write_text("qid,label,bm25\\n1,0,3.5\\n1,2,\\n")
    >>> read_table(path)
    QueryDataset(2 rows, 1 query, 1 feature; labels 0: 1, 2: 1)
    """
    roles = [label, qid, *([weight] if weight else []), *([docid] if docid else [])]
    columns = None if features is None else [*roles, *features]
    table = _load(Path(path), columns)
    try:
        return dataset_from_frame(
            table, label=label, qid=qid, features=features, weight=weight, docid=docid
        )
    except DataError as error:
        raise ParseError(path, None, str(error)) from error


def _load(path: Path, columns: list[str] | None) -> Any:
    name = path.name.lower()
    if not name.endswith(_TABLE_SUFFIXES):
        raise ParseError(
            path, None, f"the name of a table must end in {', '.join(_TABLE_SUFFIXES)}."
        )
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "tables", "Reading parquet and CSV files") from None
    try:
        if name.endswith(".parquet"):
            file = pyarrow.parquet.ParquetFile(path)
            there = set(file.schema_arrow.names)
            return file.read(columns=columns if columns and there.issuperset(columns) else None)
        parse = pyarrow.csv.ParseOptions(
            delimiter="\t" if name.endswith((".tsv", ".tsv.gz")) else ","
        )
        return pyarrow.csv.read_csv(str(path), parse_options=parse)
    except FileNotFoundError:
        raise ParseError(path, None, "there is no such file.") from None
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ParseError(path, None, f"the table cannot be read: {reason}.") from error


# -- columns of any kind of frame -------------------------------------------------------------


def _column_names(frame: Any) -> list[Any]:
    if hasattr(frame, "collect") and not hasattr(frame, "to_numpy"):
        raise DataError("A lazy table has no values yet: call its collect() first.")
    if hasattr(frame, "column_names"):  # pyarrow
        names = list(frame.column_names)
    elif hasattr(frame, "columns"):  # pandas, polars
        names = list(frame.columns)
    elif isinstance(frame, Mapping):
        names = list(frame)
    else:
        raise DataError(
            "A table must be a pandas, polars or pyarrow table, or a mapping from column name to "
            f"array. Got {type(frame).__name__}."
        )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"The table has two columns named {twice!r}: rename one.")
    return names


def _check_column(name: Any, role: str, names: list[Any]) -> None:
    if name not in names:
        texts = [str(one) for one in names]
        shown = ", ".join(repr(one) for one in names[:8]) + (", ..." if len(names) > 8 else "")
        raise DataError(
            f"The table has no column {name!r} for {role}{nearest(name, texts)}. "
            f"Its columns are {shown}."
        )


def _column(frame: Any, name: Any) -> Any:
    """One column as its table gives it; a pyarrow dictionary column as the values it stands for."""
    column = frame[name] if not hasattr(frame, "column_names") else frame.column(name)
    kind: Any = getattr(column, "type", None)
    if str(kind).startswith("dictionary<"):
        return column.cast(kind.value_type)
    return column


def _matrix(frame: Any, names: list[Any], n_rows: int) -> np.ndarray:
    matrix = np.empty((n_rows, len(names)), np.float32)
    for j, name in enumerate(names):
        values = _numbers(frame, name, "Features")
        if values.size != n_rows:
            raise DataError(f"The column {name!r} has {values.size} rows, the label {n_rows}.")
        with np.errstate(over="ignore"):
            kept = values.astype(np.float32)
        lost = np.isinf(kept) & np.isfinite(values)
        matrix[:, j] = kept
        if lost.any():
            raise DataError(
                f"Features are kept as float32, which ends at 3.4e38. The column {name!r} has "
                f"{values[lost][0]:g}: scale it."
            )
    return matrix


def _numbers(frame: Any, name: Any, what: str) -> np.ndarray:
    """One column of numbers, nulls as NaN, or a refusal that says how to make it one."""
    column = _column(frame, name)
    kind = getattr(column, "type", getattr(column, "dtype", None))
    values = _plain(column)
    if values.dtype.kind in "fiub" and not _is_category(kind):
        return values
    if values.dtype.kind == "O" and not _is_category(kind):
        numbers = _from_objects(values)
        if numbers is not None:
            return numbers
    shown = kind if kind is not None else values.dtype
    raise DataError(
        f"{what} must be numbers. The column {name!r} holds {shown}: convert it to numbers (codes "
        "or one column a category), or leave it out by naming the feature columns in 'features'."
    )


def _plain(column: Any) -> np.ndarray:
    """The column's values as a NumPy array; pandas' nullable kinds and pyarrow nulls as NaN."""
    dtype: Any = getattr(column, "dtype", None)
    numeric = getattr(dtype, "kind", None) in ("i", "u", "f", "b")
    if numeric and hasattr(dtype, "na_value") and column.hasnans:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if numeric and hasattr(dtype, "numpy_dtype"):
        return np.asarray(column.to_numpy(dtype=dtype.numpy_dtype))
    return np.asarray(column)


def _is_category(kind: Any) -> bool:
    return any(word in str(kind).lower() for word in ("categor", "enum", "dictionary"))


def _from_objects(values: np.ndarray) -> np.ndarray | None:
    """Numbers, truth values and decimals among nulls as float64; None where there is more."""
    listed = values.tolist()
    if any(isinstance(value, str | bytes) for value in listed):
        return None
    try:
        return np.array([np.nan if value is None else float(value) for value in listed])
    except (TypeError, ValueError):
        return None


def _tokens(frame: Any, name: Any, nulls: bool = False) -> np.ndarray:
    """One column of ids; a null is refused by name unless `nulls`."""
    values = np.asarray(_column(frame, name))
    if nulls:
        listed = [None if is_null(value) else value for value in values.tolist()]
        return np.array(listed, dtype=object)
    if values.dtype.kind in "fO":
        missing = [row for row, value in enumerate(values.tolist()) if is_null(value)]
        if missing:
            raise DataError(
                f"Every row needs a query id. The column {name!r} has none in row {missing[0]}."
            )
    return values
