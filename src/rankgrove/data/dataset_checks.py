"""Checks of the values that a data set is made from; each returns the form that is kept."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankgrove.data.categories import Categories, categorical_columns
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import DataError
from rankgrove.parallel import piece_bounds, run_pieces, thread_count
from rankgrove.validation import check_choice, counted

if TYPE_CHECKING:
    import scipy.sparse

    from rankgrove.data.arrays import Matrix, Sparse
    from rankgrove.data.categories import Categorical


MOST_WEIGHT = 1e30
_NUMBERS_AT_ONCE = 1 << 15
_WORTH_THREADS = 1 << 19  # numbers to convert
# The advice about a column of a table of features that holds no numbers.
TABLE_REMEDY = (
    "drop it from the table, or convert it to numbers (codes or one column per category); for a "
    "whole table with labels and query ids, use rg.QueryDataset.from_frame."
)
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")


class _NoNumberError(DataError, TypeError):
    """An object that is not a number; also a TypeError, as Python itself raises."""


def has_missing(features: Matrix) -> bool:
    """Return whether a value of some features is missing (NaN)."""
    values = features if isinstance(features, np.ndarray) else features.data
    return bool(values.size) and bool(np.isnan(values.min()))  # min of anything with NaN is NaN


def check_features(
    X: object, n_rows: int, *, double: bool = False, n_threads: int | None = 1
) -> Matrix:
    """Return features as a float32 array or CSR matrix, without copying if they already are one.

    With `double`, features of any other type than float32 become float64.
    """
    if X is None:
        return np.zeros((n_rows, 0), np.float32)
    if hasattr(X, "tocsr"):
        return _sparse_features(cast("Sparse", X), n_rows, double)
    try:
        array = _plain_array(X, n_rows)
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if array.dtype.kind in "mM":
            raise TypeError(f"got an array of {array.dtype}")
        if array.dtype.kind not in "fiub":
            array = array.astype(np.float64)
    except DataError:
        raise
    except TypeError as error:
        raise _NoNumberError(f"Features must be numbers: {error}.") from None
    except (ValueError, OverflowError) as error:
        raise DataError(f"Features must be numbers: {error}.") from None
    if array.ndim != 2:
        raise DataError(
            f"X must have two dimensions, rows x features. Got shape {array.shape}. Reshape your "
            "data: X.reshape(1, -1) is one row, X.reshape(-1, 1) one feature."
        )
    _check_rows("X", array.shape[0], n_rows)
    kind = _kept_type(array, double)
    if array.dtype == kind:
        return np.ascontiguousarray(array)
    return _converted(array, kind, n_threads)


def _converted(
    array: np.ndarray, kind: type[np.floating[Any]], n_threads: int | None
) -> np.ndarray:
    """Return an array in C order with numbers of another type; refuse those that do not fit."""
    dense = np.empty(array.shape, kind)
    step = max(1, _NUMBERS_AT_ONCE // max(array.shape[1], 1))

    def convert(first: int, last: int) -> None:
        for start in range(first, last, step):  # checked while it is in the cache
            part = slice(start, min(start + step, last))
            with np.errstate(over="ignore"):
                dense[part] = array[part]
            if np.isinf(dense[part]).any():
                _check_overflow(array[part], dense[part])

    rows = array.shape[0]
    if array.size <= _WORTH_THREADS or thread_count(n_threads) == 1:
        convert(0, rows)
    else:
        try:
            run_pieces(convert, piece_bounds(np.arange(rows + 1), n_threads, 2), n_threads)
        except DataError:
            convert(0, rows)  # names the first value, whichever thread was the first to fail
            raise
    return dense


def table_or_features(
    X: object, n_rows: int, names: Sequence[str] | None, categorical: Categorical | None
) -> tuple[Matrix, Categories | None]:
    """Return features, and the categorical ones of a table that has any; None: not known yet."""
    if is_frame(X):
        from rankgrove.data.tabular import column_names, has_categories, table_features

        if categorical is not None or has_categories(X):
            columns = column_names(X)
            if names is not None:
                check_feature_names(names, len(columns))
            chosen = _by_number(categorical, columns if names is None else names)
            return table_features(X, columns, n_rows, chosen)
    return check_features(X, n_rows), None


def _by_number(categorical: Categorical | None, names: Sequence[object]) -> Categorical | None:
    """Return categorical features by number, because a table's columns may have other names."""
    if categorical is None:
        return None
    found = categorical_columns(categorical, [str(name) for name in names])
    return {j + 1: texts for j, texts in found.items()}


def is_frame(X: object) -> bool:
    """Whether an object is a pandas, polars or pyarrow table."""
    return not hasattr(X, "tocsr") and (hasattr(X, "columns") or hasattr(X, "column_names"))


def _plain_array(X: object, n_rows: int) -> np.ndarray:
    """Return `X` as an array; a table that is not all plain numbers is converted by column."""
    array = np.asarray(X)
    if array.dtype.kind in "fiub" or not is_frame(X):
        return array
    from rankgrove.data.tabular import column_names, table_features

    return table_features(
        X, column_names(X), n_rows, kind=np.float64, known={}, remedy=TABLE_REMEDY
    )[0]


def _kept_type(array: np.ndarray, double: bool) -> type[np.floating[Any]]:
    return np.float64 if double and array.dtype != np.float32 else np.float32


def _sparse_features(X: Sparse, n_rows: int, double: bool) -> scipy.sparse.csr_matrix:
    import scipy.sparse

    _check_rows("X", X.shape[0], n_rows)
    matrix = X.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # duplicates are summed in place: leave the caller's matrix alone
        matrix.sum_duplicates()
    with np.errstate(over="ignore"):
        kept = matrix.data.astype(_kept_type(matrix.data, double), copy=False)
    _check_overflow(matrix.data, kept)
    sparse = scipy.sparse.csr_matrix((kept, matrix.indices, matrix.indptr), shape=matrix.shape)
    sparse.has_canonical_format = True
    return sparse


def resized(features: Matrix, n_features: int, absent: str) -> Matrix:
    """Return the features with `n_features` columns: the last ones cut off, or absent ones added.

    A column that is added is 0 or missing everywhere, as `absent` says.
    """
    n_more = n_features - features.shape[1]
    if n_more <= 0:
        return features[:, :n_features]
    fill = np.nan if absent == "missing" else 0.0
    if isinstance(features, np.ndarray):
        return np.pad(features, ((0, 0), (0, n_more)), constant_values=fill)
    import scipy.sparse

    if absent == "missing":
        more = scipy.sparse.csr_matrix(np.full((features.shape[0], n_more), np.nan, np.float32))
        return scipy.sparse.hstack([features, more]).tocsr()
    arrays = (features.data, features.indices, features.indptr)
    return scipy.sparse.csr_matrix(arrays, shape=(features.shape[0], n_features), copy=False)


def _check_overflow(values: np.ndarray, kept: np.ndarray) -> None:
    lost = np.isinf(kept) & np.isfinite(values)
    if lost.any():
        value = values[lost].flat[0]
        most = "3.4e38" if kept.dtype == np.float32 else "1.8e308"
        shown = f"{value:g}" if np.isfinite(float(value)) else str(value)  # a long double
        raise DataError(
            f"Features are kept as {kept.dtype}, whose maximum is {most}. Got {shown}: scale the "
            "column."
        )


def check_labels(y: object) -> np.ndarray:
    """Return a float64 copy of the labels."""
    try:
        if np.iscomplexobj(np.asarray(y)):
            raise ValueError("Complex data not supported")
        labels = np.array(y, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"Labels must be numbers: {error}.") from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"y must have one label per row. Got shape {labels.shape}.")
    if labels.size == 0:
        raise DataError("A data set needs at least one row. Got none.")
    bad = np.flatnonzero(~np.isfinite(labels))
    if bad.size:
        raise DataError(
            f"Labels must be finite numbers. Got {labels[bad[0]]} at row {bad[0]}: "
            "leave unjudged documents out, or give them the label 0."
        )
    return labels


def check_queries(qid: object, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct ids in order of first appearance, and every row's position in them."""
    tokens = np.asarray(qid)
    if tokens.ndim != 1:
        raise DataError(f"qid must have one query id per row. Got shape {tokens.shape}.")
    _check_rows("qid", tokens.size, n_rows)
    if tokens.dtype.kind == "U" and isinstance(qid, list | tuple):
        tokens = np.array(qid, dtype=object)  # NumPy would have turned a NaN into the text 'nan'
    tokens = _plain_tokens(tokens)
    # Adjacent rows mostly share a query: look up the id of each run of rows, not of each row.
    heads = np.flatnonzero(np.concatenate([[True], tokens[1:] != tokens[:-1]]))
    position: dict[int | str, int] = {}
    of_run = np.fromiter(
        (position.setdefault(token, len(position)) for token in tokens[heads].tolist()),
        np.int64,
        heads.size,
    )
    lengths = np.diff(np.append(heads, tokens.size))
    ids = np.array(list(position), dtype=tokens.dtype)
    return ids, np.repeat(of_run, lengths)


def _plain_tokens(tokens: np.ndarray) -> np.ndarray:
    """Return the ids as whole numbers or as texts."""
    kind = tokens.dtype.kind
    if kind == "f":
        # Beyond 2^53 neighbouring whole numbers are the same float: different ids would be equal.
        whole = (np.abs(tokens) <= 2.0**53) & (tokens == np.floor(tokens))
        if not whole.all():
            bad = int(np.flatnonzero(~whole)[0])
            raise DataError(
                f"Query ids must be whole numbers or texts. Got {tokens[bad]} at row {bad}."
            )
        return tokens.astype(np.int64)
    if kind == "S":
        return np.char.decode(tokens, errors="surrogateescape")
    if kind in "OT":
        return _object_tokens(tokens)
    if kind not in "iuU":
        raise DataError(f"Query ids must be whole numbers or texts. Got {tokens.dtype}.")
    return tokens


def _object_tokens(tokens: np.ndarray) -> np.ndarray:
    listed = tokens.tolist()
    for row, token in enumerate(listed):
        if is_null(token):
            raise DataError(f"Every row needs a query id. Row {row} has {token!r}.")
    if all(isinstance(token, numbers.Integral) for token in listed):
        try:
            return np.array(listed, dtype=np.int64)
        except OverflowError:
            pass  # too large for int64: kept as texts
    return np.array([str(token) for token in listed])


def plain_ids(tokens: list[str]) -> np.ndarray:
    """Return the ids of a text file as whole numbers if all of them are, else as texts.

    007 is kept as a text: as a number it would be equal to 7.
    """
    if all(_CANONICAL.fullmatch(token) for token in tokens):
        numbers = [int(token) for token in tokens]
        if all(-(2**63) <= number < 2**63 for number in numbers):
            return np.array(numbers, np.int64)
    return np.array(tokens)


def is_null(value: object) -> bool:
    """Return whether a value is None, NaN or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _check_rows(name: str, got: int, n_rows: int) -> None:
    if got != n_rows:
        raise DataError(
            f"{name} has {counted(got, 'row')} and y has {n_rows:,}: they must be equal."
        )


def check_weights(name: str, weight: object, n: int, unit: str) -> np.ndarray | None:
    """Return a float64 copy of `n` weights."""
    if weight is None:
        return None
    array = _numbers(name, weight, n, unit)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise DataError(
            f"{name} must be finite and not negative. Got {array[bad[0]]} at {unit} {bad[0]}."
        )
    if array.max() > MOST_WEIGHT:
        place = int(array.argmax())
        raise DataError(
            f"{name} must be at most {MOST_WEIGHT:g}: a pair of rows weighs their product. Got "
            f"{array[place]:g} at {unit} {place}: divide all of them by the largest."
        )
    if not array.any():
        raise DataError(f"{name} must not be 0 everywhere.")
    return array


def check_base_score(scores: object, n_rows: int) -> np.ndarray | None:
    """Return a float64 copy of `n_rows` scores."""
    if scores is None:
        return None
    array = _numbers("base_score", scores, n_rows, "row")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise DataError(
            f"base_score must be finite numbers. Got {array[bad[0]]} at row {bad[0]}: give "
            "documents without a score a value below all others."
        )
    return array


def _numbers(name: str, values: object, n: int, unit: str) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"{name} must be numbers: {error}.") from None
    if array.shape != (n,):
        raise DataError(f"{name} must have one number per {unit} ({n}). Got shape {array.shape}.")
    return array


def check_query_weights(weight: object, query_ids: np.ndarray) -> np.ndarray | None:
    """Return one weight per query, from an array or a mapping."""
    if isinstance(weight, Mapping):
        missing = [token for token in query_ids.tolist() if token not in weight]
        if missing:
            raise DataError(f"query_weight has no weight for the query {missing[0]!r}.")
        weight = [weight[token] for token in query_ids.tolist()]
    return check_weights("query_weight", weight, query_ids.size, "query")


def check_absent(absent: object, owner: str) -> str:
    """Return ``"zero"`` or ``"missing"``: the value of a feature that a row does not mention."""
    return check_choice("absent", owner, absent, ["zero", "missing"])


def check_docids(docid: TextColumn | Iterable[object] | None, n_rows: int) -> TextColumn | None:
    """Return document ids as a column of texts."""
    if docid is None:
        return None
    column = docid if isinstance(docid, TextColumn) else TextColumn.from_texts(docid)
    _check_rows("docid", len(column), n_rows)
    return column


def check_feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Return the names as a tuple of distinct texts."""
    if names is None:
        return None
    texts = tuple(str(name) for name in names)
    if len(texts) != n_features:
        raise DataError(
            f"feature_names has {counted(len(texts), 'name')} for {counted(n_features, 'feature')}."
        )
    if len(set(texts)) != len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise DataError(f"Feature names must differ. {twice!r} appears twice.")
    return texts
