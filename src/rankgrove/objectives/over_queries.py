"""Running a gradient kernel over queries, in pieces on several threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankgrove.measures.base import QueryPieces
from rankgrove.parallel import thread_count


def over_queries(
    work: Callable[[np.ndarray], None],
    query_ptr: np.ndarray,
    queries: np.ndarray | None,
    n_threads: int | None,
) -> None:
    """Call ``work(piece)`` for pieces of `queries` (None: all) of about equal numbers of rows."""
    chosen = np.arange(query_ptr.size - 1) if queries is None else queries
    if thread_count(n_threads) == 1:
        work(chosen)
        return
    sizes = query_ptr[chosen + 1] - query_ptr[chosen]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    QueryPieces(ends, n_threads).run(lambda first, last: work(chosen[first:last]))
