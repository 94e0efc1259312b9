"""Concatenating data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.categories import Categories, Names, by_frequency, column_of
from rankgrove.data.positions import joined
from rankgrove.data.queries import QueryDataset
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import DataError

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix


def concatenate(
    datasets: Sequence[QueryDataset], *, allow_shared_queries: bool = False
) -> QueryDataset:
    """Return the rows of several data sets as one data set, in the given order.

    If only some have weights, the rows (or queries) of the others get weight 1; if only some have
    document ids, those of the others are empty. All of them must have base scores, or none; so too
    positions.

    The same columns must be categorical. Where the names of categories differ, those that occur
    are numbered anew, by decreasing frequency and then by text, as in one table of all rows.

    Parameters
    ----------
    datasets : one or more, with the same features
    allow_shared_queries : let a query id occur in several data sets; its rows then form one query.
        Otherwise that is an error

    Returns
    -------
    QueryDataset

    Examples
    --------
    >>> a = QueryDataset([[1.0]], [0], qid=["a"])
    >>> b = QueryDataset([[2.0], [3.0]], [1, 2], qid=["b", "b"])
    >>> concatenate([a, b])
    QueryDataset(3 rows, 2 queries, 1 feature; labels 0: 1, 1: 1, 2: 1)
    """
    parts = list(datasets)
    if not parts:
        raise DataError("concatenate needs at least one data set. Got none.")
    if len(parts) == 1:
        return parts[0]
    _check_features(parts)
    if any(data.categories != parts[0].categories for data in parts):
        owners = [f"data set {i} (counted from 0)" for i in range(len(parts))]
        counted = [counted_categories(data) for data in parts]
        common = merged_categories(counted, parts[0].feature_names, owners)
        parts = [data.recoded(common) for data in parts]
    if not allow_shared_queries:
        refuse_shared_queries(parts)
    whole = QueryDataset(
        _stacked(parts),
        np.concatenate([data.y for data in parts]),
        qid=_all_ids([data.qid for data in parts]),
        weight=_filled([data.weight for data in parts], [data.n_rows for data in parts]),
        docid=_docids(parts),
        feature_names=_names(parts),
        query_weight=_query_weights(parts),
        base_score=_base_scores(parts),
        absent=_absent(parts),
        categorical=parts[0].categorical,
    )
    return whole.with_positions(joined([data.positions for data in parts]))


# Categorical columns with the names of their codes and the number of rows of every code.
CountedCategories = dict[int, tuple[Names, np.ndarray]]


def counted_categories(data: QueryDataset) -> CountedCategories:
    """Return the categorical columns of a data set, and the number of rows of every category."""
    found: CountedCategories = {}
    for column, names in data.categories.items():
        codes = column_of(data.features, column, data.rows)
        known = codes[~np.isnan(codes)].astype(np.int64)
        found[column] = names, np.bincount(known, minlength=len(names or ()))
    return found


def merged_categories(
    parts: Sequence[CountedCategories], feature_names: Sequence[str], owners: Sequence[str]
) -> Categories:
    """Return the categorical columns of several data sets as one, with the names of all.

    `owners` are the names of the data sets for messages.
    """
    common: Categories = {}
    for column in sorted({column for part in parts for column in part}):
        first = next(i for i, part in enumerate(parts) if column in part)
        for i, part in enumerate(parts):
            wanted = parts[first][column][0]
            if column in part and (part[column][0] is None) == (wanted is None):
                continue
            difference = "it is not" if column not in part else "only one has names of categories"
            raise DataError(
                f"The feature {feature_names[column]!r} is categorical in {owners[first]}, and in "
                f"{owners[i]} {difference}: read both with the same 'categorical'."
            )
        common[column] = _merged_names([part[column] for part in parts])
    return common


def _merged_names(parts: Sequence[tuple[Names, np.ndarray]]) -> Names:
    """Return the names of a column's categories in all parts; equal ones stay as they are."""
    if all(names == parts[0][0] for names, _ in parts):
        return parts[0][0]
    total: dict[str, int] = {}
    for names, counts in parts:
        for name, count in zip(names or (), counts.tolist(), strict=True):
            total[name] = total.get(name, 0) + count
    return by_frequency(list(total), np.array(list(total.values()), np.int64))


def refuse_shared_queries(
    datasets: Sequence[QueryDataset], files: Sequence[object] | None = None
) -> None:
    """Raise DataError if a query id occurs in two of the data sets; `files` are their names."""
    home: dict[str, int] = {}
    for i, data in enumerate(datasets):
        for token in map(str, data.query_ids.tolist()):
            if home.setdefault(token, i) == i:
                continue
            if files is None:
                raise DataError(
                    f"The query {token!r} is in the data sets {home[token]} and {i} (counted from "
                    "0). Rename it in one of them, or pass allow_shared_queries=True if it is the "
                    "same query."
                )
            raise DataError(
                f"{files[i]}: the query {token!r} is in {files[home[token]]} too. Use other "
                "query ids in one of the files."
            )


def _check_features(parts: list[QueryDataset]) -> None:
    first = parts[0]
    for i, data in enumerate(parts):
        if data.n_features != first.n_features:
            raise DataError(
                f"Data sets must have the same features. Number 0 has {first.n_features}, "
                f"number {i} has {data.n_features}: read them with the same number of features."
            )
    named = [data.feature_names for data in parts if data.has_feature_names]
    if any(names != named[0] for names in named):
        raise DataError("Data sets must have the same feature names in the same order.")


def _names(parts: list[QueryDataset]) -> tuple[str, ...] | None:
    return next((data.feature_names for data in parts if data.has_feature_names), None)


def _stacked(parts: list[QueryDataset]) -> Matrix:
    if any(data.is_sparse for data in parts):
        import scipy.sparse

        return scipy.sparse.vstack([scipy.sparse.csr_matrix(data.X) for data in parts]).tocsr()
    out = np.empty((sum(data.n_rows for data in parts), parts[0].n_features), np.float32)
    start = 0
    for data in parts:
        data.copy_features(out[start : start + data.n_rows])
        start += data.n_rows
    return out


def _all_ids(ids: list[np.ndarray]) -> np.ndarray:
    """Return all ids: as whole numbers if all of them are, otherwise as texts."""
    if all(tokens.dtype.kind in "iu" for tokens in ids):
        if len({tokens.dtype.kind for tokens in ids}) == 1:
            return np.concatenate(ids)
        return np.concatenate([tokens.astype(object) for tokens in ids])
    return np.concatenate([tokens.astype(str) for tokens in ids])


def _filled(weights: list[np.ndarray | None], sizes: list[int]) -> np.ndarray | None:
    if all(weight is None for weight in weights):
        return None
    pairs = zip(weights, sizes, strict=True)
    return np.concatenate([np.ones(n) if weight is None else weight for weight, n in pairs])


def _query_weights(parts: list[QueryDataset]) -> np.ndarray | None:
    """Return one weight per query of the result, in order of first appearance."""
    sizes = [data.n_queries for data in parts]
    weights = _filled([data.query_weight for data in parts], sizes)
    if weights is None:
        return None
    tokens = np.concatenate([data.query_ids.astype(str) for data in parts]).tolist()
    of_query: dict[str, float] = {}
    for token, weight in zip(tokens, weights.tolist(), strict=True):
        if of_query.setdefault(token, weight) != weight:
            raise DataError(
                f"The query {token!r} has the weight {of_query[token]:g} in one data set and "
                f"{weight:g} in another."
            )
    return np.array(list(of_query.values()))


def _base_scores(parts: list[QueryDataset]) -> np.ndarray | None:
    scores = [data.base_score for data in parts]
    present = [column for column in scores if column is not None]
    if present and len(present) < len(parts):
        i = next(i for i, column in enumerate(scores) if column is None)
        raise DataError(
            f"Data set {i} (counted from 0) has no base scores, but another one has: add them to "
            "all (with_base_score), or remove them with with_base_score(None)."
        )
    return np.concatenate(present) if present else None


def _absent(parts: list[QueryDataset]) -> str | None:
    """Return the `absent` of the data sets if all were given the same one, else None."""
    values = {data.absent_given for data in parts}
    return values.pop() if len(values) == 1 else None


def _docids(parts: list[QueryDataset]) -> TextColumn | None:
    if all(data.docid_column is None for data in parts):
        return None
    blobs, starts, ends = [], [], []
    offset = 0
    for data in parts:
        if data.docid_column is None:
            starts.append(np.zeros(data.n_rows, np.int64))
            ends.append(np.zeros(data.n_rows, np.int64))
            continue
        column = data.docid_column.compact()
        blobs.append(column.blob)
        starts.append(column.start + offset)
        ends.append(column.end + offset)
        offset += column.blob.size
    return TextColumn(np.concatenate(blobs), np.concatenate(starts), np.concatenate(ends))
