"""Columns of a click log: ids as small whole numbers, positions, clicks, checked.

Ids that are whole numbers, or texts of a fixed width, become codes in a kernel: no Python object is
made per row. Columns of pyarrow and polars are coded by pyarrow, categories of pandas by their own
codes.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np

from rankgrove.data.dataset_checks import is_null
from rankgrove.data.positions import MOST_POSITION, check_places
from rankgrove.errors import DataError

_WIDEST = 1 << 28  # bytes that texts of a fixed width may take


class Ids(NamedTuple):
    """The distinct ids of a column, in order of first appearance, and the code of every row."""

    ids: np.ndarray
    codes: np.ndarray


def length_of(column: Any, name: str) -> int:
    """Return the number of values of a column."""
    if isinstance(column, Ids):
        return int(column.codes.size)
    shape = getattr(column, "shape", None)
    if shape is not None and len(shape) != 1:
        raise DataError(f"{name} must have one value per impression. Got shape {tuple(shape)}.")
    try:
        return len(column)
    except TypeError:
        raise DataError(
            f"{name} must be a column with one value per impression. Got {column!r}."
        ) from None


def check_lengths(columns: dict[str, Any]) -> int:
    """Return the number of impressions; refuse columns of different lengths, and no impressions."""
    sizes = {name: length_of(column, name) for name, column in columns.items()}
    n = sizes["position"]
    for name, size in sizes.items():
        if size != n:
            raise DataError(
                f"{name} has {size:,} values and position has {n:,}: every column needs one value "
                "per impression."
            )
    if n == 0:
        raise DataError(
            "A click log needs at least one impression. Got none: a row is a document that was "
            "shown, clicked or not."
        )
    if n >= 1 << 31:
        raise DataError(f"A click log may have 2,147,483,647 impressions. Got {n:,}: split it.")
    return n


# -- ids --------------------------------------------------------------------------------------


def ids_of(column: Any, name: str) -> Ids:
    """Return the ids of a column; refuse missing values and what is neither number nor text."""
    if isinstance(column, Ids):
        return column
    if hasattr(column, "to_arrow") and hasattr(column, "rechunk"):  # polars
        column = column.to_arrow() if _has_pyarrow() else column.to_numpy()
    elif hasattr(column, "cat") and hasattr(getattr(column, "dtype", None), "categories"):
        return _of_pandas_categories(column, name)
    if hasattr(column, "dictionary_encode"):
        return _of_arrow(column, name)
    dtype = getattr(column, "dtype", None)
    if hasattr(dtype, "na_value") and hasattr(column, "factorize"):  # pandas' own types
        codes, uniques = column.factorize()
        return _renumbered(np.asarray(codes), np.asarray(uniques), name)
    array = np.asarray(column)
    if array.dtype.kind == "U" and isinstance(column, list | tuple):
        array = np.array(column, dtype=object)  # NumPy would turn a None into the text 'None'
    if array.ndim != 1:
        raise DataError(f"{name} must have one value per impression. Got shape {array.shape}.")
    return _of_array(array, name)


def _has_pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _of_array(array: np.ndarray, name: str) -> Ids:
    kind = array.dtype.kind
    if kind in "OT":
        return _of_objects(array.tolist(), name)
    if kind == "S":
        array, kind = np.char.decode(array, errors="surrogateescape"), "U"
    if kind == "U":
        return _of_texts(np.ascontiguousarray(array))
    if kind == "f":
        array = _whole_floats(array, name)
    elif kind not in "iu":
        raise DataError(f"{name} must have whole numbers or texts. Got {array.dtype}.")
    from rankgrove.clicks import _log_kernels as kernels

    codes = np.empty(array.size, np.int32)
    keys = array.view(np.int64) if array.dtype == np.uint64 else array.astype(np.int64, copy=False)
    first = kernels.number_codes(_readable(keys), codes)
    return Ids(array[first], codes)


def _readable(keys: np.ndarray) -> np.ndarray:
    """Return a contiguous view that cannot be written to: kernels are compiled for one kind."""
    view = np.ascontiguousarray(keys).view()
    view.flags.writeable = False
    return view


def _whole_floats(array: np.ndarray, name: str) -> np.ndarray:
    whole = (np.abs(array) <= 2.0**53) & (array == np.floor(array))  # neither NaN
    if not whole.all():
        row = int(np.argmin(whole))
        if np.isnan(array[row]):
            raise no_value(name, row)
        raise DataError(f"{name} must have whole numbers or texts. Got {array[row]} in row {row}.")
    return array.astype(np.int64)


def _of_texts(array: np.ndarray) -> Ids:
    from rankgrove.clicks import _log_kernels as kernels

    codes = np.empty(array.size, np.int32)
    if not array.dtype.itemsize or not array.size:
        codes[:] = 0
        return Ids(array[:1], codes)
    letters = array.view(np.uint32).reshape(array.size, -1)
    if not array.dtype.isnative:
        letters = letters.byteswap()
    first = kernels.text_codes(_readable(letters), codes)
    return Ids(array[first], codes)


def _of_objects(listed: list[Any], name: str) -> Ids:
    for row, value in enumerate(listed):
        if is_null(value):
            raise no_value(name, row)
        if not isinstance(value, str | bytes | numbers.Real):
            raise DataError(
                f"{name} must have whole numbers or texts. Got {type(value).__name__} in row {row}."
            )
    if all(isinstance(v, numbers.Integral) and not isinstance(v, bool) for v in listed):
        try:
            return _of_array(np.array(listed, np.int64), name)
        except OverflowError:
            pass  # too large for int64: kept as texts
    places: dict[str, int] = {}
    codes = np.fromiter(
        (places.setdefault(str(value), len(places)) for value in listed), np.int32, len(listed)
    )
    return Ids(text_array(list(places)), codes)


def _of_arrow(column: Any, name: str) -> Ids:
    import pyarrow
    import pyarrow.compute

    if column.null_count:
        raise no_value(
            name, int(pyarrow.compute.index(pyarrow.compute.is_null(column), True).as_py())
        )
    kind = column.type
    if not pyarrow.types.is_dictionary(kind):
        if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
            return _of_array(np.asarray(column), name)
        if not (
            pyarrow.types.is_string(kind)
            or pyarrow.types.is_large_string(kind)
            or pyarrow.types.is_binary(kind)
            or "view" in str(kind)
        ):
            raise DataError(f"{name} must have whole numbers or texts. Got {kind}.")
        column = column.dictionary_encode()
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):  # of older versions
            column = pyarrow.concat_arrays(column.chunks)
    return _renumbered(column.indices.to_numpy(), _plain(column.dictionary), name)


def _plain(values: Any) -> np.ndarray:
    """Return the values of a dictionary as numbers or texts."""
    array = np.asarray(values)
    return (
        text_array([_text(value) for value in array.tolist()]) if array.dtype == object else array
    )


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _of_pandas_categories(column: Any, name: str) -> Ids:
    return _renumbered(np.asarray(column.cat.codes), np.asarray(column.cat.categories), name)


def _renumbered(codes: np.ndarray, values: np.ndarray, name: str) -> Ids:
    """Return ids in order of first appearance, those that do not occur left out."""
    missing = codes < 0
    if missing.any():
        raise no_value(name, int(np.argmax(missing)))
    if codes.size and codes.max() >= values.size:
        raise DataError(
            f"{name} has codes of {values.size:,} values, and the code {int(codes.max()):,}: the "
            "column is damaged. Write the table again."
        )
    if values.dtype.kind == "O":
        if any(is_null(value) for value in values.tolist()):
            bad = [is_null(value) for value in values.tolist()]
            raise no_value(name, int(np.argmax(np.array(bad)[codes])))
        values = _of_objects(values.tolist(), name).ids
    number = _of_array(codes.astype(np.int64), name)
    return Ids(values[number.ids], number.codes)


def text_array(texts: list[str]) -> np.ndarray:
    """Return texts as an array; of one width, unless that takes much memory."""
    widest = max(map(len, texts), default=1)
    if 4 * widest * len(texts) <= _WIDEST:
        return np.array(texts, dtype=f"U{max(widest, 1)}")
    out = np.empty(len(texts), object)
    out[:] = texts
    return out


def id_at(ids: np.ndarray, i: int) -> Any:
    """Return an id as a plain number or text, for messages."""
    return ids[i : i + 1].tolist()[0]


def no_value(name: str, row: int) -> DataError:
    """Return the error about a missing value."""
    error = DataError(
        f"{name} is missing in row {row}: every impression needs one. Leave such rows out, or give "
        "them an id."
    )
    error.row = row
    return error


def plain_texts(column: Any) -> Any:
    """Return a column of a context with missing values as empty texts."""
    if hasattr(column, "fill_null") and hasattr(column, "type"):  # pyarrow
        return (
            column.fill_null("") if column.null_count and "string" in str(column.type) else column
        )
    if hasattr(column, "to_arrow") and hasattr(column, "rechunk"):  # polars
        return plain_texts(column.to_arrow()) if _has_pyarrow() else column.to_numpy()
    array = np.asarray(column)
    if array.dtype.kind == "b":
        return array.astype(str)
    if array.dtype.kind == "U" and not isinstance(column, list | tuple):
        return array
    if array.dtype.kind in "OU":
        values = column if isinstance(column, list | tuple) else array.tolist()
        return np.array(["" if is_null(value) else _text(value) for value in values])
    if array.dtype.kind == "f":
        texts, codes = np.unique(array, return_inverse=True)
        shown = ["" if np.isnan(value) else f"{value:g}" for value in texts.tolist()]
        return np.array(shown)[codes]
    return array


# -- numbers ----------------------------------------------------------------------------------


def plain_numbers(column: Any) -> np.ndarray:
    """Return a column as an array; missing values of data frames are NaN."""
    dtype = getattr(column, "dtype", None)
    is_numeric = getattr(dtype, "kind", "") in ("i", "u", "f", "b")
    if is_numeric and hasattr(dtype, "na_value") and hasattr(column, "hasnans"):  # pandas' own
        if column.hasnans:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(column.to_numpy())
    array = np.asarray(column)
    if array.dtype == object:
        listed = array.tolist()
        if all(is_null(value) or isinstance(value, numbers.Real) for value in listed):
            return np.array([np.nan if is_null(value) else float(value) for value in listed])
    return array


def places_of(column: Any, first: int = 1) -> np.ndarray:
    """Return positions as uint16, from 1; `first` is the first position of the column."""
    given = plain_numbers(column)
    if given.dtype.kind == "f" and np.isnan(given).any():
        row = int(np.argmax(np.isnan(given)))
        error = DataError(
            f"position is missing in row {row}: leave rows of documents out that were not shown."
        )
        error.row = row
        raise error
    if first == 0 and given.dtype.kind in "iuf":
        if given.min(initial=0) < 0:
            row = int(np.argmin(given))
            raise _at(row, f"Positions that start at 0 cannot be {given[row]:g}, as in row {row}.")
        if given.size and given.min() == 1:
            raise DataError(
                "No document is at position 0: the first position is 1. Leave first_position=0 "
                "(--first-position 0) out."
            )
        given = given.astype(np.float64 if given.dtype.kind == "f" else np.int64) + 1
    if given.dtype.kind in "iu":
        low, high = int(given.min(initial=1)), int(given.max(initial=1))
        if low >= 1 and high <= MOST_POSITION:
            return given.astype(np.uint16)
    text = _first_text(given)
    if text is not None:
        raise _at(
            text,
            f"Positions must be whole numbers from 1. Got {id_at(given, text)!r} in row {text}.",
        )
    if given.dtype.kind in "OUT" and given.size:
        raise _at(
            0,
            f"Positions must be whole numbers from 1. Got the text {id_at(given, 0)!r} in row 0: "
            "convert the column to numbers.",
        )
    try:
        return check_places(given, given.size)
    except DataError as error:
        if given.dtype.kind in "iuf":
            wrong = ~(given >= 1) | (given > MOST_POSITION) | (given != np.floor(given))
            if (given == 0).any() and not (given < 0).any() and given[wrong].max() == 0:
                row = int(np.argmax(given == 0))
                raise _at(
                    row,
                    f"Positions start at 1. Got 0 in row {row}: if they start at 0, add 1 to all "
                    "of them (read_clicks: first_position=0; --first-position 0).",
                ) from None
            error.row = int(np.argmax(wrong))
        raise


def _first_text(given: np.ndarray) -> int | None:
    """Return the first row of a column of texts that is not a number."""
    if given.dtype.kind not in "OUT":
        return None
    for row, value in enumerate(given.tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return row
    return None


def _at(row: int, message: str) -> DataError:
    error = DataError(message)
    error.row = row
    return error


def clicks_of(column: Any) -> np.ndarray:
    """Return clicks as booleans; refuse all but 0, 1, False and True."""
    given = plain_numbers(column)
    if given.dtype == np.bool_:
        return given
    if given.dtype.kind not in "iuf":
        text = _first_text(given)
        if text is not None:
            raise _at(
                text,
                f"Clicks must be booleans, or 0 and 1. Got {id_at(given, text)!r} in row {text}.",
            )
        shown = f", such as {given[0]!r}" if given.size else ""
        raise DataError(f"Clicks must be booleans, or 0 and 1. Got {given.dtype}{shown}.")
    clicked = given != 0
    wrong = clicked & (given != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        if np.isnan(given[row]):
            raise _at(row, f"click is missing in row {row}: write 0 where there was none.")
        raise _at(
            row,
            f"Clicks must be 0 or 1. Got {given[row]:g} in row {row}: if the column counts clicks, "
            "pass count > 0.",
        )
    return clicked


def _not_numbers(values: np.ndarray, rule: str, remedy: str = "") -> DataError:
    """Return the error about a column of other values than numbers, with the first text."""
    text = _first_text(values)
    shown = str(values.dtype) if text is None else f"{id_at(values, text)!r} in row {text}"
    error = DataError(f"{rule} Got {shown}{remedy}.")
    error.row = text
    return error


def dwell_of(column: Any) -> np.ndarray:
    """Return seconds as float32; NaN is unknown."""
    given = plain_numbers(column)
    if given.dtype.kind == "m":
        given = given / np.timedelta64(1, "s")
    if given.dtype.kind not in "iuf":
        raise _not_numbers(given, "dwell must have numbers of seconds.")
    wrong = (given < 0) | np.isinf(given)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise _at(row, f"dwell must have seconds from 0, or NaN. Got {given[row]:g} in row {row}.")
    return given.astype(np.float32)


def times_of(column: Any) -> np.ndarray:
    """Return times in seconds as float64; NaN is unknown."""
    given = np.asarray(column)
    if given.dtype.kind == "M":
        seconds = given.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(given), np.nan, seconds)
    given = plain_numbers(column)
    if given.dtype == object and given.size and hasattr(given[0], "timestamp"):  # with time zones
        given = np.array([np.nan if is_null(t) else t.timestamp() for t in given.tolist()])
    if given.dtype.kind not in "iuf":
        remedy = ": convert texts first, as with pandas.to_datetime"
        raise _not_numbers(given, "time must have numbers of seconds, or times.", remedy)
    times = given.astype(np.float64)
    if np.isinf(times).any():
        raise _at(int(np.argmax(np.isinf(times))), "time must have finite numbers, or NaN.")
    return times
