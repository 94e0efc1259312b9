"""What a round sees: queries and rows, redrawn every round, without replacement.

A lot is a hash of the seed, the round and the query's or the row's own key; those with the lowest
lots are drawn. Neither the order of the file nor threads nor who holds the rows have a part in it.
"""

from __future__ import annotations

import numpy as np

from rankgrove.random import derive_seed, mix64


class Sample:
    """Queries and rows held here, of which a round's are drawn in steps.

    Parameters
    ----------
    query_keys, row_keys : uint64, one per query and one per row
    query_ptr : the borders of queries

    Attributes
    ----------
    queries, rows : what was drawn so far, ascending; None: all
    """

    def __init__(
        self, query_keys: np.ndarray, row_keys: np.ndarray, query_ptr: np.ndarray, seed: int
    ) -> None:
        self._query_keys = query_keys
        self._row_keys = row_keys
        self._ptr = query_ptr
        self._seed = seed
        self.queries: np.ndarray | None = None
        self.rows: np.ndarray | None = None

    @property
    def n_queries(self) -> int:
        """Number of all queries."""
        return int(self._query_keys.size)

    @property
    def n_rows(self) -> int:
        """Number of rows drawn so far."""
        return int(self._row_keys.size if self.rows is None else self.rows.size)

    def begin(self) -> None:
        """Forget the round before."""
        self.queries = self.rows = None

    def query_lots(self, round: int) -> np.ndarray:
        """Return the lots of all queries."""
        return self._lots("queries", round, self._query_keys)

    def keep_queries(self, lots: np.ndarray, bar: int) -> None:
        """Keep the queries whose lots are up to the bar, and their rows."""
        queries = np.flatnonzero(lots <= np.uint64(bar))
        sizes = self._ptr[queries + 1] - self._ptr[queries]
        starts = np.cumsum(sizes) - sizes
        rows = np.arange(sizes.sum()) + np.repeat(self._ptr[queries] - starts, sizes)
        self.queries, self.rows = queries, rows.astype(np.int32)

    def row_lots(self, round: int) -> np.ndarray:
        """Return the lots of the rows drawn so far."""
        keys = self._row_keys if self.rows is None else self._row_keys[self.rows]
        return self._lots("rows", round, keys)

    def keep_rows(self, lots: np.ndarray, bar: int) -> None:
        """Keep the rows whose lots are up to the bar."""
        chosen = np.flatnonzero(lots <= np.uint64(bar))
        self.rows = chosen.astype(np.int32) if self.rows is None else self.rows[chosen]

    def _lots(self, what: str, round: int, keys: np.ndarray) -> np.ndarray:
        return mix64(keys ^ np.uint64(derive_seed(self._seed, what, round)))


class Sampler:
    """Draws a share of the queries every round, and a share of the rows of those drawn.

    Parameters
    ----------
    query_keys, row_keys : uint64, one per query and one per row
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
        self._sample = Sample(query_keys, row_keys, query_ptr, seed)
        self._row_fraction = row_fraction
        self._n_queries = share(query_fraction, query_keys.size)

    @property
    def is_random(self) -> bool:
        """Whether rounds differ in what they see."""
        return self._n_queries < self._sample.n_queries or self._row_fraction < 1.0

    def draw(self, round: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return a round's queries and the rows to grow on, ascending; None where it is all."""
        sample = self._sample
        sample.begin()
        if self._n_queries < sample.n_queries:
            lots = sample.query_lots(round)
            sample.keep_queries(lots, _lowest(lots, self._n_queries))
        if self._row_fraction < 1.0:
            lots = sample.row_lots(round)
            sample.keep_rows(lots, _lowest(lots, share(self._row_fraction, lots.size)))
        return sample.queries, sample.rows


def share(fraction: float, n: int) -> int:
    """Return how many of n a share is: at least one."""
    return min(n, max(1, round(fraction * n)))


def _lowest(lots: np.ndarray, n: int) -> int:
    """Return the n-th lowest lot."""
    return int(np.partition(lots, n - 1)[n - 1])
