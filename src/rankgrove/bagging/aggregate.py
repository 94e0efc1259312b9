"""Combining the scores of many models (BL-MART paper, section 3.5.1)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rankgrove.parallel import piece_bounds, run_pieces

COMBINE = ("minmax", "borda", "mean")


def aggregate(
    columns: Iterable[np.ndarray],
    query_ptr: np.ndarray,
    combine: str,
    weights: np.ndarray,
    n_threads: int | None = None,
) -> np.ndarray:
    """Return the weighted mean of all models' scores, scaled to a common range.

    Parameters
    ----------
    columns : every model's scores of all rows, in query order
    query_ptr : the borders of queries
    combine : ``"minmax"``: scaled to 0 ... 1 within a query; ``"borda"``: the number of documents
        of the query that the model ranks lower; ``"mean"``: unchanged
    weights : one per model
    """
    total = np.zeros(int(query_ptr[-1]))
    for scores, weight in zip(columns, weights.tolist(), strict=True):
        add_scores(total, scores, query_ptr, combine, weight, n_threads)
    return total / weights.sum()


def add_scores(
    total: np.ndarray,
    scores: np.ndarray,
    query_ptr: np.ndarray,
    combine: str,
    weight: float = 1.0,
    n_threads: int | None = None,
) -> None:
    """Add one model's scores, scaled to the common range, to a total."""
    from rankgrove.bagging._aggregate_kernels import add_borda, add_scaled

    if combine == "mean":
        total += weight * scores
        return
    kernel = add_scaled if combine == "minmax" else add_borda
    run_pieces(
        lambda first, last: kernel(scores, query_ptr, first, last, weight, total),
        piece_bounds(query_ptr, n_threads),
        n_threads,
    )
