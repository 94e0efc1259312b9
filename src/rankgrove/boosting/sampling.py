"""What a round sees: queries and rows drawn anew every round, without replacement."""

from __future__ import annotations

import numpy as np

from rankgrove.random import derive_seed, mix64


class Sampler:
    """Draws a share of the queries every round, and a share of the rows of those drawn.

    A lot is a hash of the seed, the round and the query's or the row's own key; those with the
    lowest lots are drawn. Neither the order of the file nor threads have a part in it.

    Parameters
    ----------
    query_keys, row_keys : uint64, one a query and one a row
    query_ptr : the borders of queries
    query_fraction : share of the queries; gradients are computed for all of their rows
    row_fraction : share of those queries' rows: the ones that a tree is grown on
    """

    def __init__(
        self,
        query_keys: np.ndarray,
        row_keys: np.ndarray,
        query_ptr: np.ndarray,
        *,
        query_fraction: float = 1.0,
        row_fraction: float = 1.0,
        seed: int = 0,
    ) -> None:
        self._query_keys = query_keys
        self._row_keys = row_keys
        self._ptr = query_ptr
        self._row_fraction = row_fraction
        self._seed = seed
        self._n_queries = _share(query_fraction, query_keys.size)

    @property
    def is_random(self) -> bool:
        """Whether rounds differ in what they see."""
        return self._n_queries < self._query_keys.size or self._row_fraction < 1.0

    def draw(self, round: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return a round's queries and the rows to grow on, ascending; None where it is all."""
        queries = rows = None
        if self._n_queries < self._query_keys.size:
            queries = self._lowest("queries", round, self._query_keys, self._n_queries)
            sizes = self._ptr[queries + 1] - self._ptr[queries]
            starts = np.cumsum(sizes) - sizes
            rows = np.arange(sizes.sum()) + np.repeat(self._ptr[queries] - starts, sizes)
        if self._row_fraction < 1.0:
            keys = self._row_keys if rows is None else self._row_keys[rows]
            chosen = self._lowest("rows", round, keys, _share(self._row_fraction, keys.size))
            rows = chosen if rows is None else rows[chosen]
        return queries, None if rows is None else rows.astype(np.int32)

    def _lowest(self, what: str, round: int, keys: np.ndarray, n: int) -> np.ndarray:
        """Return the positions of the `n` keys with the lowest lots, ascending."""
        lot = mix64(keys ^ np.uint64(derive_seed(self._seed, what, round)))
        return np.flatnonzero(lot <= np.partition(lot, n - 1)[n - 1])


def _share(fraction: float, n: int) -> int:
    return min(n, max(1, round(fraction * n)))
