"""The queries and rows of a round, redrawn every round, without replacement.

A lot is a hash of the seed, the round and the key of a query or row; those with the lowest lots are
drawn. So the draw does not depend on the order of the file, on threads or on processes.
"""

from __future__ import annotations

import numpy as np

from rankgrove.random import derive_seed, mix64


class Sample:
    """The queries and rows of this process, from which a round's are drawn in two steps.

    Parameters
    ----------
    query_keys, row_keys : uint64, one per query and one per row
    query_ptr : the borders of queries

    Attributes
    ----------
    queries, rows : the queries and rows drawn so far, ascending; None: all
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
        """Forget the previous round."""
        self.queries = self.rows = None

    def query_lots(self, round: int) -> np.ndarray:
        """Return the lots of all queries."""
        return self._lots("queries", round, self._query_keys)

    def keep_queries(self, lots: np.ndarray, bar: int) -> None:
        """Keep the queries whose lots are at most `bar`, and their rows."""
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
        """Keep the rows whose lots are at most `bar`."""
        chosen = np.flatnonzero(lots <= np.uint64(bar))
        self.rows = chosen.astype(np.int32) if self.rows is None else self.rows[chosen]

    def _lots(self, unit: str, round: int, keys: np.ndarray) -> np.ndarray:
        return mix64(keys ^ np.uint64(derive_seed(self._seed, unit, round)))


class Sampler:
    """Draws a share of the queries every round, and a share of their rows.

    Parameters
    ----------
    query_keys, row_keys : uint64, one per query and one per row
    query_ptr : the borders of queries
    query_fraction : share of the queries; gradients are computed for all of their rows
    row_fraction : share of those queries' rows that a tree is grown on
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
        """Whether rounds see different queries or rows."""
        return self._n_queries < self._sample.n_queries or self._row_fraction < 1.0

    def draw(self, round: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return a round's queries, and the rows to grow on, ascending; None: all."""
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
    """Return the number of items in a share of n items, at least one."""
    return min(n, max(1, round(fraction * n)))


def _lowest(lots: np.ndarray, n: int) -> int:
    """Return the n-th lowest lot."""
    return int(np.partition(lots, n - 1)[n - 1])
