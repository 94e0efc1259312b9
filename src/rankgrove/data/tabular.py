"""Tables: pandas, polars and pyarrow frames in memory, parquet and CSV files on disk.

Frames are recognised by their methods, not by their class, so that reading a frame imports none of
the three libraries. The feature matrix is filled column by column: at most one column at a time is
converted to float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.categories import Categorical, Categories, categorical_columns
from rankgrove.data.category_columns import (
    CategoryColumn,
    NoCategoryError,
    is_category,
    is_word,
    may_be_categorical,
    named_categories,
    own_categories,
    refuse_numbers,
)
from rankgrove.data.dataset_checks import is_null, plain_ids
from rankgrove.data.file_kinds import ARROW_ENDINGS
from rankgrove.data.queries import QueryDataset
from rankgrove.data.table_files import (
    DAMAGE,
    line_of_row,
    quoted,
    read_table_file,
    table_columns,
    unreadable,
)
from rankgrove.errors import (
    DataError,
    DataWarning,
    ParseError,
)
from rankgrove.validation import counted, nearest, warn

if TYPE_CHECKING:
    from rankgrove.data.arrays import Frame

DOCID = "docid"  # the column of document ids, unless another one is named


# The remedy for a feature column that holds neither numbers nor categories.
_REMEDY = (
    "convert it to numbers, name it in 'categorical' (--categorical) if its values are categories, "
    "or leave it out by naming the feature columns in 'features' (--features)."
)
_SHOWN_COLUMNS = 20  # in a message


def _cell_error(row: int, message: str) -> DataError:
    """Return an error about a cell; `row` counts from 0, without the header."""
    error = DataError(message)
    error.row = row
    return error


def dataset_from_frame(
    frame: Frame,
    *,
    label: str | None = "label",
    qid: str = "qid",
    features: Sequence[str] | None = None,
    weight: str | None = None,
    docid: str | None = None,
    base_score: str | None = None,
    categorical: Categorical | None = None,
    position: str | None = None,
    position_context: str | Sequence[str] | None = None,
    empty_is_null: bool = False,
) -> QueryDataset:
    """Return the data set of a pandas, polars or pyarrow table.

    Parameters
    ----------
    frame : the table; also a mapping from column name to array
    label, qid, weight, base_score, position, position_context : the columns with these roles;
        `position_context` may be several columns, which are one context together. `label` None:
        nothing is judged, and all labels are 0
    docid : the column of the document ids; None takes the column ``docid``, if there is one
        without another role
    features : the feature columns, in this order; None takes every column without another role.
        They must hold numbers, booleans or categories. Nulls become NaN, a missing value
    categorical : the features that are categorical, by name or by 1-based number among the
        features; or a mapping from them to the names of their categories (None: those that
        occur). Columns of text, and of the table's type for categories, are categorical by
        themselves. Categories that occur are numbered by decreasing frequency, equally frequent
        ones by text
    empty_is_null : whether an empty text is a missing value

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
    names = column_names(frame)
    if isinstance(features, str):
        features = [features]
    contexts = names_of_contexts(position_context)
    named = (label, qid, weight, base_score, position, *contexts, *(features or []))
    if docid is None and DOCID in names and DOCID not in named:
        docid = DOCID
    roles = {"label": label, "qid": qid, "weight": weight, "docid": docid, "base_score": base_score}
    roles |= {"position": position}
    taken = {name: role for role, name in roles.items() if name is not None}
    taken |= dict.fromkeys(contexts, "position_context")
    for name, role in taken.items():
        check_column(name, f"the {role}", names, role)
    if features is None:
        wanted = [name for name in names if name not in taken]
    else:
        wanted = list(features)
        for name in wanted:
            check_column(name, "a feature", names, "features")
    ids = tokens_of(frame, qid)
    labels = np.zeros(ids.size) if label is None else finite_labels(frame, label)
    matrix, categories = table_features(
        frame, wanted, labels.size, categorical, empty_is_null=empty_is_null
    )
    names = [str(name) for name in wanted]
    if docid is None:
        given = categorical_columns(categorical, names)
        for j, texts in categories.items():
            if texts is not None and j not in given:
                column = CategoryColumn(_codes(matrix[:, j]), list(texts))
                _warn_of_document_ids(names[j], column, ids)
    return QueryDataset(
        matrix,
        labels,
        qid=ids,
        weight=None if weight is None else numbers_of(frame, weight, "Weights"),
        docid=None if docid is None else tokens_of(frame, docid, nulls=True),
        feature_names=names,
        base_score=None if base_score is None else numbers_of(frame, base_score, "Base scores"),
        position=None if position is None else numbers_of(frame, position, "Positions"),
        position_context=[contexts_of(frame, name) for name in contexts] or None,
        categorical={j + 1: texts for j, texts in categories.items()},
    )


def read_table(
    path: str | Path,
    *,
    label: str | None = "label",
    qid: str = "qid",
    features: Sequence[str] | None = None,
    weight: str | None = None,
    docid: str | None = None,
    base_score: str | None = None,
    categorical: Categorical | None = None,
    position: str | None = None,
    position_context: str | Sequence[str] | None = None,
) -> QueryDataset:
    """Read a data set from a parquet, CSV (also ``.csv.gz``), TSV, arrow or feather file.

    Needs the extra ``tables`` (pyarrow). The parameters are those of `QueryDataset.from_frame`;
    if `features` are named, the other columns of a parquet file are not read. In CSV and TSV files
    query ids are whole numbers if all of them are, else texts, as in LETOR files (007 and 7
    differ); document ids are texts. There a column of text is categorical, unless half of its
    values or more are numbers, and an empty cell is a missing value; a column of numbers is
    categorical if `categorical` names it (007 and 7 differ).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "judged.csv"
    >>> _ = path.write_text("qid,label,bm25\\n1,0,3.5\\n1,2,\\n")
    >>> read_table(path)
    QueryDataset(2 rows, 1 query, 1 feature; labels 0: 1, 2: 1)
    """
    path = Path(path)
    if isinstance(features, str):
        features = [features]
    others = (weight, docid, base_score, position, *names_of_contexts(position_context))
    used = [qid, *(name for name in (label, *others) if name), *(features or [])]
    document = docid if docid or DOCID in used else DOCID
    is_text = not path.name.lower().endswith((".parquet", *ARROW_ENDINGS))
    texts = columns_of_text(path, categorical, features, used) if is_text else []
    ids = [document] if document else []
    table = read_table_file(
        path, [qid, *texts, *ids], None if features is None else used, optional=ids
    )
    try:
        if is_text:
            table = _with_plain_ids(table, qid)
        return dataset_from_frame(
            table,
            label=label,
            qid=qid,
            features=features,
            weight=weight,
            docid=docid,
            base_score=base_score,
            categorical=categorical,
            position=position,
            position_context=position_context,
            empty_is_null=is_text,
        )
    except DataError as error:
        line = None if error.row is None else line_of_row(path, error.row)
        raise ParseError(path, line, str(error)) from error
    except Exception as error:
        import pyarrow

        if isinstance(error, (pyarrow.ArrowException, *DAMAGE)):  # found while columns were read
            raise unreadable(path, error) from error
        raise


def finite_labels(frame: Frame, label: str) -> np.ndarray:
    """Return the labels of a table; refuse those that are not finite."""
    labels = numbers_of(frame, label, "Labels")
    bad = np.flatnonzero(~np.isfinite(labels))
    if bad.size:
        raise _cell_error(
            int(bad[0]),
            f"Labels must be finite numbers. Got {labels[bad[0]]} at row {bad[0]} of the column "
            f"{label!r}: leave unjudged documents out, or give them the label 0.",
        )
    return labels


def columns_of_text(
    path: Path, categorical: Categorical | None, features: Sequence[str] | None, used: list[str]
) -> list[str]:
    """Return the columns of a CSV file that are categorical, though they may look like numbers."""
    if categorical is None:
        return []
    columns = table_columns(path)
    names = list(features) if features is not None else [c for c in columns if c not in used]
    if features is None and DOCID not in used:
        names = [name for name in names if name != DOCID]
    try:
        return [names[j] for j in categorical_columns(categorical, names)]
    except DataError:
        return []  # refused when the columns are read


def _with_plain_ids(table: Any, qid: str) -> Any:
    """Return the table with query ids as whole numbers, if all of them are."""
    if table.column_names.count(qid) != 1:  # refused later, with a list of the columns
        return table
    import pyarrow
    import pyarrow.compute

    column = pyarrow.compute.utf8_trim_whitespace(table.column(qid)).combine_chunks()
    encoded = column.dictionary_encode()
    tokens = encoded.dictionary.to_pylist()
    which = encoded.indices.to_numpy()
    if "" in tokens:
        row = int(np.flatnonzero(which == tokens.index(""))[0])
        raise _cell_error(row, no_query_id(qid, row))
    ids = pyarrow.array(plain_ids(tokens)[which])
    return table.set_column(table.column_names.index(qid), qid, ids)


# -- columns of any kind of frame -------------------------------------------------------------


def column_names(frame: object) -> list[Any]:
    """Return the names of a table's columns, or refuse an object that is not a table."""
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


def check_column(name: str, role: str, names: list[Any], parameter: str | None = None) -> None:
    """Refuse a column that the table does not have; `parameter` is what names it."""
    if name not in names:
        texts = [str(column) for column in names]
        listed, left_out = ", ".join(map(repr, names[:_SHOWN_COLUMNS])), names[_SHOWN_COLUMNS:]
        more = f" and {len(left_out):,} more" if left_out else ""
        remedy = ""
        if parameter is not None:
            remedy = f" Name the right one in '{parameter}' (--{parameter.replace('_', '-')})."
        raise DataError(
            f"The table has no column {name!r} for {role}{nearest(name, texts)}. "
            f"Its columns are {listed}{more}.{remedy}"
        )


def _column(frame: Any, name: Any) -> Any:
    """Return a column in the table's own type; a pyarrow dictionary column as its values."""
    column = frame[name] if not hasattr(frame, "column_names") else frame.column(name)
    kind: Any = getattr(column, "type", None)
    if str(kind).startswith("dictionary<"):
        return column.cast(kind.value_type)
    return column


def table_features(
    frame: Any,
    names: list[Any],
    n_rows: int,
    categorical: Categorical | None = None,
    kind: type[np.floating[Any]] = np.float32,
    *,
    known: Categories | None = None,
    remedy: str = _REMEDY,
    empty_is_null: bool = False,
) -> tuple[np.ndarray, Categories]:
    """Return columns as a matrix of one type, nulls as NaN, and the categorical ones.

    Columns that hold neither numbers nor categories are refused; `remedy` is the advice about such
    a column in the message.

    Parameters
    ----------
    categorical : as in `dataset_from_frame`
    known : the categories of a model, by which the columns are coded: unknown ones are missing, and
        text in other columns is refused. None: they are found in the columns
    """
    given = categorical_columns(categorical, [str(name) for name in names])
    found: Categories = {}
    matrix = np.empty((n_rows, len(names)), kind)
    for j, name in enumerate(names):
        column = frame[name] if not hasattr(frame, "column_names") else frame.column(name)
        texts = None
        if known is not None:
            if known.get(j) is not None:
                texts = named_categories(column, name, empty_is_null=empty_is_null)
                refuse_numbers(texts.names, known[j] or (), name, "predict")
                found[j] = known[j]
        elif j in given:
            texts = named_categories(column, name, empty_is_null=empty_is_null)
            found[j] = given[j] or texts.by_frequency(name)
            _refuse_unknown(texts, given[j], name)
        else:
            texts = _own_categories(column, name, empty_is_null)
            if texts is not None:
                found[j] = texts.by_frequency(name)
        wanted = found.get(j)
        if texts is None or wanted is None:
            values = numbers_of(frame, name, "Features", remedy)
        else:
            values = texts.coded(wanted)
        if values.size != n_rows:
            raise DataError(
                f"The column {name!r} has {counted(values.size, 'row')}, the label {n_rows:,}."
            )
        with np.errstate(over="ignore"):
            kept = values.astype(kind)
        lost = np.isinf(kept) & np.isfinite(values)
        matrix[:, j] = kept
        if lost.any():
            row = int(np.flatnonzero(lost)[0])
            raise _cell_error(
                row,
                f"Features are kept as float32, whose maximum is 3.4e38. The column {name!r} has "
                f"{values[row]:g} in row {row}: scale it.",
            )
    return matrix, found


def _own_categories(column: Any, name: object, empty_is_null: bool) -> CategoryColumn | None:
    """Return the categories of a column that is categorical by itself; None: it is not."""
    try:
        texts = own_categories(column, empty_is_null=empty_is_null)
    except NoCategoryError:
        return None  # refused as no number
    if texts is not None and texts.unlike_categories():
        warn(
            f"The text column {name!r} is taken as categorical, and most rows have a text of "
            f"their own ({len(texts.names):,} in {counted(texts.codes.size, 'row')}): if it names "
            "the documents, name it in 'docid' (--docid); if it is no category, leave it out by "
            "naming the feature columns in 'features' (--features).",
            DataWarning,
        )
    return texts


def _warn_of_document_ids(name: str, column: CategoryColumn, ids: np.ndarray) -> None:
    """Warn of a text column in which no query has a text twice: it may name the documents."""
    if column.names_documents(ids) and not column.unlike_categories():  # that has been said
        warn(
            f"The text column {name!r} is taken as categorical, and no query has a value of it "
            "twice. If it names the documents, name it in 'docid' (--docid); if it is no category, "
            "leave it out by naming the feature columns in 'features' (--features).",
            DataWarning,
        )


def _codes(values: np.ndarray) -> np.ndarray:
    """Return a column of codes as whole numbers, -1 where it is missing."""
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _refuse_unknown(column: CategoryColumn, given: Sequence[str] | None, name: object) -> None:
    """Refuse a category that is not among those that the caller has listed."""
    if given is None:
        return
    missing = np.array([text not in set(given) for text in column.names] + [False])
    bad = np.flatnonzero(missing[column.codes])
    if bad.size:
        row, listed = int(bad[0]), set(given)
        text = column.names[column.codes[row]]
        raise _cell_error(
            row,
            f"The column {name!r} has {text!r} in row {row}, which is none of its "
            f"{counted(len(listed), 'category', 'categories')}: add it to them in 'categorical', "
            "or write a null there.",
        )


def has_categories(frame: Any) -> bool:
    """Whether a table may have columns that are categorical by themselves."""
    for name in column_names(frame):
        column = frame[name] if not hasattr(frame, "column_names") else frame.column(name)
        if may_be_categorical(column):
            return True
    return False


def numbers_of(
    frame: Any,
    name: Any,
    role: str,
    remedy: str = "write numbers there, or name another column.",
) -> np.ndarray:
    """Return a column of numbers, nulls as NaN; the error for other columns has the `remedy`."""
    column = _column(frame, name)
    kind = getattr(column, "type", getattr(column, "dtype", None))
    values = _plain(column)
    if values.dtype.kind in "fiub" and not is_category(kind):
        return values
    if values.dtype.kind == "O" and not is_category(kind):
        numbers = _from_objects(values)
        if numbers is not None:
            return numbers
    shown = kind if kind is not None else values.dtype
    begin = f"{role} must be numbers. The column {name!r} holds {shown}"
    bad = _first_word(values)
    if bad is None:
        raise DataError(f"{begin}: {remedy}")
    raise _cell_error(bad[0], f"{begin}, such as {quoted(bad[1])} in row {bad[0]}: {remedy}")


def _first_word(values: np.ndarray) -> tuple[int, str | bytes] | None:
    """Return row and value of the first text that is neither a number nor a word for null."""
    for row, value in enumerate(values.tolist()):
        if not isinstance(value, str | bytes):
            continue
        if is_word(value if isinstance(value, str) else value.decode(errors="replace")):
            return row, value
    return None


def _plain(column: Any) -> np.ndarray:
    """Return the column as a NumPy array; nulls of pandas' nullable types and of pyarrow as NaN."""
    dtype: Any = getattr(column, "dtype", None)
    numeric = getattr(dtype, "kind", None) in ("i", "u", "f", "b")
    if numeric and hasattr(dtype, "na_value") and column.hasnans:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if numeric and hasattr(dtype, "numpy_dtype"):
        return np.asarray(column.to_numpy(dtype=dtype.numpy_dtype))
    return np.asarray(column)


def _from_objects(values: np.ndarray) -> np.ndarray | None:
    """Return numbers, booleans, decimals and nulls as float64; None if there are other objects."""
    listed = values.tolist()
    if any(isinstance(value, str | bytes) for value in listed):
        return None
    try:
        return np.array([np.nan if is_null(value) else float(value) for value in listed])
    except (TypeError, ValueError):
        return None


def tokens_of(frame: Any, name: Any, nulls: bool = False) -> np.ndarray:
    """Return a column of ids; a null is refused unless `nulls` is set."""
    values = np.asarray(_column(frame, name))
    if nulls:
        listed = [None if is_null(value) else value for value in values.tolist()]
        return np.array(listed, dtype=object)
    if values.dtype.kind in "fO":
        missing = [row for row, value in enumerate(values.tolist()) if is_null(value)]
        if missing:
            raise _cell_error(missing[0], no_query_id(name, missing[0]))
    return values


def names_of_contexts(position_context: str | Sequence[str] | None) -> list[str]:
    """Return the columns of contexts: none, one or several, which are one context together."""
    if position_context is None:
        return []
    return [position_context] if isinstance(position_context, str) else list(position_context)


def contexts_of(frame: Any, name: Any) -> np.ndarray:
    """Return a column of contexts of positions as text; a null is the context without a name."""
    return np.array(["" if x is None else str(x) for x in tokens_of(frame, name, True).tolist()])


def no_query_id(name: object, row: int) -> str:
    """Return the message for a row without a query id."""
    return f"Every row needs a query id. The column {name!r} has none in row {row}."
