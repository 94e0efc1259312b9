"""Categories of a column of texts that is read in parts: numbered as they appear, coded at the end.

The rules are those of `category_columns.py`, on the distinct values of all parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove.data.categories import MOST_CATEGORIES, by_frequency, code_table, coded, too_many
from rankgrove.data.category_columns import (
    CategoryColumn,
    NoCategoryError,
    distinct_values,
    is_category,
    is_word,
    kind_of,
    named_values,
    refuse_numbers,
)
from rankgrove.data.dataset_checks import is_null
from rankgrove.errors import DataError

_MOST_VALUES = 1 << 24  # float32 holds all whole numbers up to there


class TextCategories:
    """The distinct values of a column, numbered in the order in which they appear.

    Parameters
    ----------
    name : the column's name
    wanted : the names of its categories, where the caller or the training data has them
    by_request : whether the caller says that the column is categorical
    of_training : whether `wanted` comes from training data: then other texts are missing values
    """

    def __init__(
        self,
        name: str,
        wanted: tuple[str, ...] | None,
        *,
        by_request: bool,
        of_training: bool = False,
        empty_is_null: bool = False,
    ) -> None:
        self.name = name
        self._wanted = wanted
        self._by_request = by_request
        self._of_training = of_training
        self._empty_is_null = empty_is_null
        self._kind: Any = None
        self._place: dict[Any, int] = {}
        self._counts: list[int] = []
        self._first_row: list[int] = []

    def add(self, column: Any, first_row: int) -> np.ndarray:
        """Return the numbers of a part's values as float32, NaN for nulls."""
        self._kind = kind_of(column)
        codes, values = distinct_values(column)
        numbers = np.full(len(values) + 1, np.nan, np.float32)
        counts = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
        for i, value in enumerate(values):
            if is_null(value) or not counts[i]:
                continue
            place = self._place.setdefault(value, len(self._place))
            if place == len(self._counts):
                self._counts.append(0)
                self._first_row.append(first_row + int(np.argmax(codes == i)))
            self._counts[place] += counts[i]
            numbers[i] = place
        if len(self._place) > _MOST_VALUES:
            raise too_many(self.name, len(self._place))
        return numbers[codes]

    def names_and_codes(self, n_rows: int) -> tuple[tuple[str, ...], np.ndarray]:
        """Return the names of the categories, and the code of every number."""
        values = list(self._place)
        any_value = is_category(self._kind)
        every = np.arange(len(values))
        try:
            found = named_values(
                (every, values), any_value=any_value, empty_is_null=self._empty_is_null
            )
        except NoCategoryError as error:
            raise DataError(
                "A categorical feature holds texts or whole numbers. The column "
                f"{self.name!r} has {error.value!r}: round it, or leave it out of categorical."
            ) from None
        counts = np.zeros(len(found.names), np.int64)
        known = found.codes >= 0
        np.add.at(counts, found.codes[known], np.array(self._counts, np.int64)[known])
        if not (self._by_request or any_value):
            self._refuse_numbers(found, counts)
        wanted = self._wanted
        if wanted is None:
            wanted = by_frequency(found.names, counts)
            if len(wanted) > MOST_CATEGORIES:
                raise too_many(self.name, len(wanted))
        elif self._of_training:
            refuse_numbers(found.names, wanted, self.name, "open_binned")
        else:
            self._refuse_unknown(found, set(wanted))
        return wanted, coded(found.codes, code_table(found.names, wanted))

    def is_mostly_single(self, n_rows: int) -> bool:
        """Whether most rows have a text of their own, as titles and addresses have."""
        return n_rows >= 100 and 2 * self._counts.count(1) > n_rows

    @property
    def n_values(self) -> int:
        """Number of distinct values."""
        return len(self._place)

    def _refuse_numbers(self, found: CategoryColumn, counts: np.ndarray) -> None:
        """Refuse a column of texts of which half or more are numbers."""
        words = [is_word(name) for name in found.names]
        if 2 * counts[words].sum() > counts.sum():
            return
        for place, value in enumerate(self._place):
            if isinstance(value, str) and is_word(value):
                row = self._first_row[place]
                error = DataError(
                    f"Features must be numbers. The column {self.name!r} holds {self._kind}, such "
                    f"as {value[:40]!r} in row {row}: convert it to numbers, name it in "
                    "'categorical' (--categorical) if its values are categories, or leave it out "
                    "by naming the feature columns in 'features' (--features)."
                )
                error.row = row
                raise error
        raise DataError(
            f"Features must be numbers. The column {self.name!r} holds {self._kind}: convert it to "
            "numbers, or name it in 'categorical' (--categorical) if its values are categories."
        )

    def _refuse_unknown(self, found: CategoryColumn, wanted: set[str]) -> None:
        """Refuse a category that is not among those that the caller has listed."""
        for place, code in enumerate(found.codes.tolist()):
            if code < 0 or found.names[code] in wanted:
                continue
            row = self._first_row[place]
            error = DataError(
                f"The column {self.name!r} has {found.names[code]!r} in row {row}, which is none "
                f"of its {len(wanted)} categories: add it to them in 'categorical', or write a "
                "null there."
            )
            error.row = row
            raise error
