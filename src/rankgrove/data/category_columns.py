"""Columns of tables that hold categories: pandas, polars, pyarrow, text, whole numbers.

Columns are recognised by their methods, not by their class: see `tabular`.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rankgrove.data.categories import (
    MOST_CATEGORIES,
    by_frequency,
    code_table,
    coded,
    names_text,
    too_many,
)
from rankgrove.data.dataset_checks import is_null
from rankgrove.errors import DataError

NULL_WORDS = frozenset({"", "na", "n/a", "#n/a", "#na", "null", "nan", "-nan"})
# The beginnings of the names of types that may hold text, in small letters.
_TEXT_TYPES = ("string", "str[", "str", "utf8", "object", "large_string", "<u", ">u")
_FEW_ROWS = 100  # in fewer rows, many different texts are no sign of a mistake
_FEW_DOCUMENTS = 5  # of fewer per query, different texts are no sign that they name them


class CategoryColumn(NamedTuple):
    """A column of categories.

    Attributes
    ----------
    codes : of every row, -1 for a missing value
    names : of the codes
    """

    codes: np.ndarray
    names: list[str]

    def by_frequency(self, feature: object) -> tuple[str, ...]:
        """Return the names that occur, the most frequent first; equally frequent ones by text."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))
        wanted = by_frequency(self.names, counts)
        if len(wanted) > MOST_CATEGORIES:
            raise too_many(feature, len(wanted))
        return wanted

    def coded(self, wanted: tuple[str, ...]) -> np.ndarray:
        """Return float32 codes of the rows by given names; NaN where a name is not among them."""
        return coded(self.codes, code_table(self.names, wanted))

    def unlike_categories(self) -> bool:
        """Whether most rows have a text of their own, as titles and addresses have."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))
        return bool(self.codes.size >= _FEW_ROWS and 2 * (counts == 1).sum() > self.codes.size)

    def names_documents(self, ids: np.ndarray) -> bool:
        """Whether no query has a text twice, as with names of documents; `ids` are the queries."""
        rows = self.codes >= 0
        distinct, queries = np.unique(ids[rows], return_inverse=True)
        if queries.size < max(_FEW_ROWS, _FEW_DOCUMENTS * distinct.size):
            return False
        pairs = queries.astype(np.int64) * len(self.names) + self.codes[rows]
        return bool(np.unique(pairs).size == queries.size)


def is_category(kind: object) -> bool:
    """Whether a column's type is the table's own type for categories."""
    return any(word in str(kind).lower() for word in ("categor", "enum", "dictionary"))


def kind_of(column: Any) -> Any:
    """Return the type of a column, as its table names it."""
    return getattr(column, "type", getattr(column, "dtype", None))


def may_be_categorical(column: Any) -> bool:
    """Whether a column's type is one for categories, or may hold text; objects may be anything.

    A dictionary of numbers, as pyarrow has it, is only a shorter way to store them.
    """
    kind = kind_of(column)
    if kind is None:
        return isinstance(column, list | tuple)
    name = str(kind).lower()
    if name.startswith("dictionary<"):
        return "str" in str(getattr(kind, "value_type", name))
    return is_category(kind) or name.startswith(_TEXT_TYPES)


def own_categories(column: Any, *, empty_is_null: bool = False) -> CategoryColumn | None:
    """Return the categories of a column that is categorical by itself; None: it is not.

    That is a column of the table's type for categories, or one of text. Text of which half or more
    are numbers is a column of numbers with mistakes in it, or numbers that were read as text.
    """
    if not may_be_categorical(column):
        return None
    if is_category(kind_of(column)):
        return named_values(distinct_values(column), any_value=True)
    codes, values = distinct_values(column)
    if any(not isinstance(value, str) and not is_null(value) for value in values):
        return None
    found = named_values((codes, values), empty_is_null=empty_is_null)
    counts = np.bincount(found.codes[found.codes >= 0], minlength=len(found.names))
    words = [n for n, name in zip(counts.tolist(), found.names, strict=True) if is_word(name)]
    return found if 2 * sum(words) > counts.sum() else None


def named_categories(
    column: Any, feature: object, *, empty_is_null: bool = False
) -> CategoryColumn:
    """Return the categories of a column that the caller, or a model, takes as categorical.

    Besides text it may hold whole numbers and booleans; their texts are the names.
    """
    any_value = is_category(kind_of(column))
    try:
        return named_values(
            distinct_values(column), any_value=any_value, empty_is_null=empty_is_null
        )
    except NoCategoryError as error:
        raise DataError(
            f"A categorical feature holds texts or whole numbers. The column {feature!r} has "
            f"{error.value!r}: round it, or leave it out of categorical."
        ) from None


def refuse_numbers(texts: Sequence[str], names: Sequence[str], feature: object, owner: str) -> None:
    """Refuse a column of numbers where a model has words, all of which would be unknown."""
    if not texts or any(is_word(text) for text in texts) or not any(map(is_word, names)):
        return
    if set(texts).isdisjoint(names):
        raise DataError(
            f"{owner}: the feature {feature!r} is categorical for the model, with "
            f"{names_text(tuple(names))}, and the data has numbers there "
            f"({', '.join(texts[:3])}, ...): give the texts."
        )


def is_word(text: str) -> bool:
    """Whether a text is neither a number nor a word for null."""
    if text.strip().lower() in NULL_WORDS:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


class NoCategoryError(Exception):
    """A value that cannot be a category."""

    def __init__(self, value: object) -> None:
        self.value = value


def named_values(
    distinct: tuple[np.ndarray, list[Any]], *, any_value: bool = False, empty_is_null: bool = False
) -> CategoryColumn:
    """Return the categories of distinct values; values with the same text are one category."""
    codes, values = distinct
    place: dict[str, int] = {}
    table = np.full(len(values) + 1, -1, np.int64)  # the last entry is for code -1
    for i, value in enumerate(values):
        if is_null(value) or (empty_is_null and value == ""):
            continue
        table[i] = place.setdefault(_name_of(value, any_value), len(place))
    return CategoryColumn(table[codes], list(place))


def _name_of(value: Any, any_value: bool) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real) and float(value).is_integer():
        return str(int(float(value)))
    if any_value:
        return str(value)
    raise NoCategoryError(value)


# -- distinct values -------------------------------------------------------------------------------


def distinct_values(column: Any) -> tuple[np.ndarray, list[Any]]:
    """Return every row's place among the distinct values (or -1), and these values."""
    if hasattr(getattr(column, "cat", None), "codes"):  # pandas
        return column.cat.codes.to_numpy().astype(np.int64), column.cat.categories.tolist()
    if hasattr(column, "dictionary_encode"):  # pyarrow
        return _arrow_distinct(column)
    values = np.asarray(column)
    if values.dtype.kind in "iub":
        unique, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), unique.tolist()
    place: dict[Any, int] = {}
    listed = values.tolist()
    try:
        found = (place.setdefault(value, len(place)) for value in listed)
        codes = np.fromiter(found, np.int64, len(listed))
    except TypeError:  # a list or another value that cannot be a key
        unhashable = next(value for value in listed if getattr(value, "__hash__", None) is None)
        raise NoCategoryError(unhashable) from None
    return codes, list(place)


def _arrow_distinct(column: Any) -> tuple[np.ndarray, list[Any]]:
    if hasattr(column, "combine_chunks"):
        if is_category(column.type):
            column = column.unify_dictionaries()
        column = column.combine_chunks()
    if hasattr(column, "chunks"):  # a table without rows, in some versions
        column = column.chunk(0)
    encoded = column if is_category(column.type) else column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), encoded.dictionary.to_pylist()
