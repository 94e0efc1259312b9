"""Keys of rows, made of what they hold: random draws and ties hang on them, not on file order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel
from rankgrove.random import mix64

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

_SERIAL_CELLS = 1 << 16  # fewer values are not worth a second thread


def hash_features(data: QueryDataset, n_threads: int | None = None) -> np.ndarray:
    """Return a uint64 hash of every row's features, in query order; dense and sparse ones agree."""
    from rankgrove.data import _hash_kernels as kernels
    from rankgrove.data.binning import read_only, row_index
    from rankgrove.data.queries import query_order_rows

    features = data.features
    rows = row_index(features, query_order_rows(data))
    hashes = np.empty(rows.size, np.uint64)
    if isinstance(features, np.ndarray):
        bits = read_only(np.ascontiguousarray(features)).view(np.uint32)
        n_cells = rows.size * features.shape[1]

        def work(first: int, last: int) -> None:
            kernels.hash_dense(bits, rows, first, last, hashes)

    else:
        bits = read_only(features.data).view(np.uint32)
        indices, indptr = read_only(features.indices), read_only(features.indptr)
        n_cells = bits.size

        def work(first: int, last: int) -> None:
            kernels.hash_sparse(bits, indices, indptr, rows, first, last, hashes)

    if rows.size:
        few = 1 if n_cells < _SERIAL_CELLS else n_threads
        parallel.run_pieces(work, parallel.piece_bounds(np.arange(rows.size + 1), few), few)
    return hashes


def content_keys(data: QueryDataset, hashes: np.ndarray) -> np.ndarray:
    """Return a uint64 key a row, in query order, of its query's id and its features.

    Features are given by their `hashes`. Rows of one query that are equal in all of them count on:
    by label, by weight, by base score, and then as they stand. (These are not part of the key
    itself: another scale of them, or leaving out weights of 1, changes nothing.)
    """
    keys = mix64(hashes ^ np.repeat(data.query_keys, np.diff(data.query_ptr)))
    ordered = np.sort(keys)
    again = np.concatenate([[False], ordered[1:] == ordered[:-1]])
    if again.any():
        others = [one for one in (data.base_score, data.weight, data.y) if one is not None]
        order = np.lexsort((*(data.grouped(one) for one in others), keys))
        place = np.arange(keys.size)
        first = np.maximum.accumulate(np.where(again, 0, place))
        count = (place - first)[again].astype(np.uint64)
        keys[order[again]] = mix64(ordered[again] + count)
    return keys
