"""Subsets of the queries of a data set, as views: their rows of features are not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.errors import DataError
from rankgrove.validation import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.queries import QueryDataset


def chosen_queries(queries: ArrayLike, n_queries: int) -> np.ndarray:
    """Return the positions of queries, given as a list of positions or a mask of booleans."""
    chosen = np.asarray(queries)
    if chosen.dtype == bool:
        if chosen.shape != (n_queries,):
            raise DataError(
                "A mask of queries must have "
                f"{counted(n_queries, 'entry', 'entries')}. Got {chosen.shape}."
            )
        chosen = np.flatnonzero(chosen)
    if chosen.size == 0:
        raise DataError("A data set needs at least one query; the selection is empty.")
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise DataError(
            "Queries must be chosen by a list of positions or a mask. "
            f"Got an array of {chosen.dtype}, shape {chosen.shape}."
        )
    chosen = chosen.astype(np.int64)
    if chosen.min() < 0 or chosen.max() >= n_queries:
        raise DataError(
            f"Query positions must be between 0 and {n_queries - 1}. "
            f"Got {chosen.min()} to {chosen.max()}."
        )
    if np.unique(chosen).size != chosen.size:
        raise DataError("A selection must not name a query twice.")
    return chosen


def subset(data: QueryDataset, chosen: np.ndarray) -> QueryDataset:
    """Return the data set of the queries at these positions, in their order."""
    caller_rows, inside, columns = columns_of_subset(data, chosen)
    picked: np.ndarray | slice = caller_rows
    if data.order is None and np.all(np.diff(chosen) == 1):
        picked = slice(int(inside[0]), int(inside[-1]) + 1)
    hashes = vars(data).get("feature_hashes")
    return data.from_parts(
        data.features,
        data.y[caller_rows],
        data.query_ids[chosen],
        rows=_compose(data.rows, picked),
        feature_hashes=None if hashes is None else hashes[inside],
        **columns,
    )


def columns_of_subset(
    data: QueryDataset, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return the caller's rows of some queries, their places in query order, and other columns."""
    start, end = data.query_ptr[chosen], data.query_ptr[chosen + 1]
    sizes = end - start
    offsets = np.cumsum(sizes) - sizes
    inside = np.arange(sizes.sum()) + np.repeat(start - offsets, sizes)
    caller_rows = inside if data.order is None else data.order[inside]
    columns = {
        "query_of_row": np.repeat(np.arange(chosen.size), sizes),
        "weight": None if data.weight is None else data.weight[caller_rows],
        "docid": None if data.docid_column is None else data.docid_column.take(caller_rows),
        "feature_names": data.given_names,
        "query_weight": None if data.query_weight is None else data.query_weight[chosen],
        "base_score": None if data.base_score is None else data.base_score[caller_rows],
        "positions": None if data.positions is None else data.positions.take(caller_rows),
        "absent": data.absent_given,
        "categories": data.categories,
    }
    return caller_rows, inside, columns


def _compose(outer: Rows, inner: np.ndarray | slice) -> np.ndarray | slice:
    """Return the rows `inner` of the rows `outer` of the base matrix."""
    if outer is None:
        return inner
    if isinstance(outer, slice):
        first = int(outer.start)
        if isinstance(inner, slice):
            return slice(first + int(inner.start), first + int(inner.stop))
        return inner + first
    return outer[inner]
