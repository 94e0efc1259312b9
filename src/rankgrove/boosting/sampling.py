"""Which queries a round sees: drawn anew every round, whole queries, without replacement."""

from __future__ import annotations

import numpy as np

from rankgrove.random import derive_seed, mix64


class Sampler:
    """Draws a share of the queries every round.

    A query's lot is a hash of the seed, the round and the query's own key; those with the lowest
    lots are drawn. Neither the order of the file nor threads have a part in it.
    """

    def __init__(
        self, query_keys: np.ndarray, query_ptr: np.ndarray, query_fraction: float, seed: int
    ) -> None:
        self._keys = query_keys
        self._ptr = query_ptr
        self._seed = seed
        n = query_keys.size
        self._n_drawn = min(n, max(1, round(query_fraction * n)))

    @property
    def is_random(self) -> bool:
        """Whether rounds differ in what they see."""
        return self._n_drawn < self._keys.size

    def draw(self, round: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the queries of a round and their rows, both ascending; None where it is all."""
        if not self.is_random:
            return None, None
        stream = np.uint64(derive_seed(self._seed, "queries", round))
        lot = mix64(self._keys ^ stream)
        queries = np.sort(np.argpartition(lot, self._n_drawn - 1)[: self._n_drawn])
        sizes = self._ptr[queries + 1] - self._ptr[queries]
        starts = np.cumsum(sizes) - sizes
        rows = np.arange(sizes.sum()) + np.repeat(self._ptr[queries] - starts, sizes)
        return queries, rows.astype(np.int32)
