"""The first documents of every query, without scoring the others to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankgrove import parallel
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError
from rankgrove.validation import check_integer

if TYPE_CHECKING:
    from rankgrove.rankers.base import Ranker
    from rankgrove.scoring.scorer import Scorer


class TopScores(NamedTuple):
    """The result of :meth:`Ranker.predict_top`.

    Attributes
    ----------
    scores : one per row, in the caller's order; minus infinity for documents not in the top
    saved : the share of (document, tree) pairs that were not evaluated
    """

    scores: np.ndarray
    saved: float


def predict_top(
    ranker: Ranker, data: QueryDataset, k: int, n_threads: int | None = None
) -> TopScores:
    """Return the scores of every query's first `k` documents, and of those that tie with them."""
    owner = f"{type(ranker).__name__}.predict_top"
    check_integer("k", owner, k, low=1)
    if not isinstance(data, QueryDataset):
        raise DataError(
            f"{owner} needs the queries: give it a QueryDataset. Got {type(data).__name__}. "
            "(One query's features alone: ranker.scorer().top.)"
        )
    ranker._check_is_fitted()
    data = ranker._aligned(data, owner)
    threads = ranker._checked_input(data, "predict_top", n_threads, is_aligned=True)[2]
    if ranker.flat() is None:
        grouped = data.grouped(ranker.predict(data, n_threads=threads)).copy()
        saved = 0.0
    else:
        grouped, saved = contenders(ranker.scorer(), data, k, threads)
    for first, last in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        scores = grouped[first:last]
        if scores.size > k:
            scores[scores < np.partition(scores, -k)[-k]] = -np.inf
    return TopScores(data.ungrouped(grouped), saved)


def contenders(
    scorer: Scorer, data: QueryDataset, k: int, n_threads: int | None
) -> tuple[np.ndarray, float]:
    """Return scores in query order (minus infinity if not computed) and the share of saved work.

    Queries are spread over threads, each of which scores one query at a time.
    """
    best, looked_at = np.full(data.n_rows, -np.inf), np.zeros(data.n_queries, np.int64)
    chosen, places = query_order_rows(data), np.arange(data.features.shape[0])
    rows = places if chosen is None else places[chosen]

    def work(first: int, last: int) -> None:
        for query in range(first, last):
            place = slice(data.query_ptr[query], data.query_ptr[query + 1])
            part = data.features[rows[place]][:, : scorer.n_features]
            dense = part if isinstance(part, np.ndarray) else part.toarray()
            documents, scores, looked_at[query] = scorer.contenders(dense, k)
            best[place][documents] = scores

    parallel.run_pieces(work, parallel.piece_bounds(data.query_ptr, n_threads), n_threads)
    pairs = data.n_rows * scorer.n_trees
    return best, 1.0 - float(looked_at.sum()) / pairs if pairs else 0.0
