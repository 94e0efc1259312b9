"""Running a gradient kernel over queries, in pieces on several threads; a base of objectives."""

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


class WeightedObjective:
    """Base of objectives of weighted rows, whose kernels fill the derivatives query by query.

    Parameters
    ----------
    query_ptr : the borders of queries
    weight : one per row; None: all 1
    """

    n_columns: int = 1
    varies_by_round: bool = False

    def __init__(self, query_ptr: np.ndarray, weight: np.ndarray | None) -> None:
        self.query_ptr = query_ptr
        self.weight = np.empty(0) if weight is None else np.array(weight, np.float64)

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill `gradient` and `hessian`, (columns, rows), of all rows or those of some queries."""

        def work(piece: np.ndarray) -> None:
            self._fill(piece, round, scores, gradient, hessian)

        over_queries(work, self.query_ptr, queries, n_threads)

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        """Fill the derivatives of the rows of the given queries."""
        raise NotImplementedError
