"""Categorical columns: category codes, their names, and how one numbering becomes another.

A categorical column holds codes: whole numbers from 0, NaN for a missing value. `Categories` says
which columns are categorical: column (from 0) -> the names of the codes, or None where the codes
are plain numbers without names, as in LETOR text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.validation import counted, nearest

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix, Rows

MOST_CATEGORIES = 1 << 20
SHOWN_NAMES = 5
Names = tuple[str, ...] | None
Categories = dict[int, Names]
# Categorical columns as a caller may give them.
Categorical = Iterable[int | str] | Mapping[Any, Sequence[object] | None]


def feature_place(feature: object, names: Sequence[str]) -> int:
    """Return the column of a feature given by 1-based number (as in LETOR files) or name."""
    if isinstance(feature, str) and feature in names:
        return list(names).index(feature)
    text = str(feature)
    if text.isdecimal() and 1 <= int(text) <= len(names):
        return int(text) - 1
    raise DataError(
        f"There is no feature {feature!r}: features are numbered 1 to {len(names)}, or "
        f"named {names[0]!r} to {names[-1]!r}{nearest(feature, names)}."
        if names
        else f"There is no feature {feature!r}: the data set has no features."
    )


def categorical_columns(categorical: object, names: Sequence[str]) -> Categories:
    """Return the categorical columns that a caller names, in ascending order.

    Parameters
    ----------
    categorical : features by 1-based number or name; or a mapping from feature to the names of its
        codes (None: no names)
    names : the names of all features
    """
    if categorical is None:
        return {}
    if isinstance(categorical, str | bytes | int) or not isinstance(categorical, Iterable):
        raise DataError(
            "categorical is a list of features by 1-based number or name, such as ['brand', 7], or "
            f"a mapping from feature to the names of its codes. Got {categorical!r}."
        )
    given = categorical if isinstance(categorical, Mapping) else dict.fromkeys(categorical)
    found: Categories = {}
    for feature, codes in given.items():
        column = feature_place(feature, names)
        if column in found:
            raise DataError(f"categorical names the feature {feature!r} twice: leave one out.")
        found[column] = None if codes is None else check_names(codes, feature)
    return dict(sorted(found.items()))


def check_names(names: object, feature: object) -> tuple[str, ...]:
    """Return the names of a feature's codes as a tuple of distinct texts."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise DataError(
            f"The categories of {feature!r} are a list of names, one per code. Got {names!r}."
        )
    texts = tuple(str(name) for name in names)
    if len(texts) > MOST_CATEGORIES:
        raise too_many(feature, len(texts))
    if len(set(texts)) < len(texts):
        ((twice, _),) = Counter(texts).most_common(1)
        raise DataError(f"The categories of {feature!r} must differ. {twice!r} appears twice.")
    return texts


def too_many(feature: object, n: int) -> DataError:
    """Return the error for a feature with too many categories."""
    return DataError(
        f"A feature has at most 2**20 = {MOST_CATEGORIES:,} categories. {feature!r} has {n:,}: "
        "leave it out, or pool rare categories first."
    )


def check_codes(features: Matrix, categories: Categories, names: Sequence[str]) -> None:
    """Refuse categorical columns that hold anything but codes and NaN."""
    for column, texts in categories.items():
        check_code_column(column_of(features, column), column, texts, names[column])


def check_code_column(
    codes: np.ndarray, column: int, texts: Names, name: str, first_row: int = 0
) -> None:
    """Refuse a categorical column, or a part of it, that holds anything but codes and NaN."""
    most = MOST_CATEGORIES if texts is None else len(texts)
    known = ~np.isnan(codes)
    with np.errstate(invalid="ignore"):
        bad = known & ~((codes >= 0) & (codes < most) & (codes == np.floor(codes)))
    if not bad.any():
        return
    row = int(np.flatnonzero(bad)[0])
    rule = "2**20" if texts is None else f"{most:,}, the number of its names"
    error = DataError(
        f"A categorical feature holds codes: whole numbers from 0 and below {rule}, or NaN. "
        f"The feature {name!r} (number {column + 1}) has {codes[row]:g} in row {first_row + row}: "
        "number its categories from 0, or leave it out of categorical."
    )
    error.row = first_row + row
    raise error


def column_of(features: Matrix, column: int, rows: Rows = None) -> np.ndarray:
    """Return a column of a dense or sparse matrix as a dense array."""
    if isinstance(features, np.ndarray):
        values = features[:, column]
    else:
        values = features[:, [column]].toarray()[:, 0]
    return np.asarray(values if rows is None else values[rows])


# -- from one numbering to another -----------------------------------------------------------------


def by_frequency(names: Sequence[str], counts: np.ndarray) -> tuple[str, ...]:
    """Return the names that occur, the most frequent first; equally frequent ones by text.

    So the codes of a column depend neither on the order of rows nor on that of its categories.

    Examples
    --------
    >>> by_frequency(["bolt", "acme", "core", "none"], np.array([1, 1, 2, 0]))
    ('core', 'acme', 'bolt')
    """
    pairs = zip(counts.tolist(), names, strict=True)
    return tuple(name for _, name in sorted((-count, name) for count, name in pairs if count))


def code_table(names: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Return the new code of every old one, NaN where its name is not among those wanted."""
    code = {name: float(i) for i, name in enumerate(wanted)}
    return np.array([code.get(name, np.nan) for name in names], np.float32)


def coded(codes: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return codes by a table of new ones; all that are not in it become missing values."""
    known = (codes >= 0) & (codes < table.size)  # False for NaN
    places = np.where(known, codes, 0).astype(np.int64)
    if not table.size:
        return np.full(codes.size, np.nan, np.float32)
    return np.where(known, table[places], np.float32(np.nan)).astype(np.float32)


def recoded(features: Matrix, tables: Mapping[int, np.ndarray]) -> Matrix:
    """Return a copy of the features in which some columns have new codes."""
    changed = {j: coded(column_of(features, j), table) for j, table in tables.items()}
    if isinstance(features, np.ndarray):
        copied = np.array(features)
        for j, values in changed.items():
            copied[:, j] = values
        return copied
    import scipy.sparse

    others = np.ones(features.shape[1], np.float32)
    others[list(changed)] = 0.0
    kept = features.tocsc(copy=True)
    in_changed = np.repeat(others == 0.0, np.diff(kept.indptr))
    kept.data[in_changed] = 0.0
    kept.eliminate_zeros()
    row = [np.flatnonzero(values) for values in changed.values()]  # NaN is not zero
    values = np.concatenate([v[r] for v, r in zip(changed.values(), row, strict=True)])
    column = np.repeat(list(changed), [r.size for r in row])
    added = scipy.sparse.csr_matrix((values, (np.concatenate(row), column)), features.shape)
    return (kept.tocsr() + added).tocsr().astype(np.float32)


def without_unknown(features: Matrix, categories: Mapping[int, Names]) -> Matrix:
    """Return features whose codes all have names; other codes become missing values."""
    tables = {}
    for column, names in categories.items():
        if names is not None:
            codes = column_of(features, column)
            if (codes >= len(names)).any() or (codes < 0).any():
                tables[column] = np.arange(len(names), dtype=np.float32)
    return recoded(features, tables) if tables else features


def extended(first: Names, second: Names) -> Names:
    """Return the names of `first`, whose codes stay, and after them the others of `second`."""
    if first is None or second is None:
        return None
    known = set(first)
    return first + tuple(name for name in second if name not in known)


def names_text(names: Names, most: int = SHOWN_NAMES) -> str:
    """Return the number of categories and the first names, for people to read."""
    if names is None:
        return "codes without names"
    more = ", ..." if len(names) > most else ""
    return f"{counted(len(names), 'category', 'categories')} ({', '.join(names[:most])}{more})"
