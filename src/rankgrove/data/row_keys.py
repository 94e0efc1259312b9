"""Keys of rows, computed from their content, so that random draws do not depend on file order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel
from rankgrove.random import mix64

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

_SERIAL_CELLS = 1 << 16  # fewer values are not worth a second thread


def hash_features(data: QueryDataset, n_threads: int | None = None) -> np.ndarray:
    """Return a uint64 hash of every row's features, in query order, equal for dense and sparse."""
    from rankgrove.data import _hash_kernels as kernels
    from rankgrove.data.arrays import frozen
    from rankgrove.data.binning import row_index
    from rankgrove.data.queries import query_order_rows

    features = data.features
    rows = row_index(features, query_order_rows(data))
    hashes = np.empty(rows.size, np.uint64)
    if isinstance(features, np.ndarray):
        bits = frozen(np.ascontiguousarray(features)).view(np.uint32)
        n_cells = rows.size * features.shape[1]

        def work(first: int, last: int) -> None:
            kernels.hash_dense(bits, rows, first, last, hashes)

    else:
        bits = frozen(features.data).view(np.uint32)
        indices, indptr = frozen(features.indices), frozen(features.indptr)
        n_cells = bits.size

        def work(first: int, last: int) -> None:
            kernels.hash_sparse(bits, indices, indptr, rows, first, last, hashes)

    if rows.size:
        n_used = 1 if n_cells < _SERIAL_CELLS else n_threads
        parallel.run_pieces(work, parallel.piece_bounds(np.arange(rows.size + 1), n_used), n_used)
    return hashes


def query_contents(data: QueryDataset) -> np.ndarray:
    """Return a uint64 key per query, computed from the features and labels of its documents.

    Neither its id nor the order of the documents matters.
    """
    labels = np.asarray(data.grouped(data.y), np.float64) + 0.0  # -0 becomes 0
    keys = mix64(mix64(data.feature_hashes) ^ labels.view(np.uint64))
    return np.add.reduceat(keys, data.query_ptr[:-1])


def content_keys(data: QueryDataset, hashes: np.ndarray) -> np.ndarray:
    """Return a uint64 key per row, in query order, computed from its query id and its features.

    Features are given by their `hashes`. Rows of a query with equal features are numbered by label,
    weight, base score, position and file order, and the number is part of the key. (The values
    themselves are not: scaling them, or leaving out weights of 1, changes no key.)
    """
    keys = mix64(hashes ^ np.repeat(data.query_keys, np.diff(data.query_ptr)))
    ordered = np.sort(keys)
    again = np.concatenate([[False], ordered[1:] == ordered[:-1]])
    if again.any():
        columns = (data.base_score, data.weight, data.y)
        others = [column for column in columns if column is not None]
        if data.positions is not None:  # the last that decides
            others = [data.positions.place, *others]
        order = np.lexsort((*(data.grouped(column) for column in others), keys))
        place = np.arange(keys.size)
        first = np.maximum.accumulate(np.where(again, 0, place))
        count = (place - first)[again].astype(np.uint64)
        keys[order[again]] = mix64(ordered[again] + count)
    return keys
