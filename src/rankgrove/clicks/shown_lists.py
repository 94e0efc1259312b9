"""The lists of results that simulated users see: documents in the order of rankers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.errors import DataError
from rankgrove.random import derive_seed, mix64
from rankgrove.validation import check_scores, refuse

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

OWNER = "simulate_clicks"


class RankedRows(NamedTuple):
    """Rows ranked by every ranker, query by query.

    rows : n_rankers x n_rows, in the caller's numbers
    scores : of these rows, in standard deviations of the query's scores
    """

    rows: np.ndarray
    scores: np.ndarray


def ranked_rows(data: QueryDataset, ranker: Any, seed: int) -> RankedRows:
    """Return the rows of every query, best first; ties are broken at random."""
    several = list(ranker) if _is_several(ranker) else [ranker]
    if not several:
        refuse("ranker", OWNER, "a ranker, an array of scores, or several of them", ranker)
    rows = np.empty((len(several), data.n_rows), np.int32)
    scores = np.empty(rows.shape)
    query = data.grouped(data.query_of_row)
    caller = data.grouped(np.arange(data.n_rows))
    ties = mix64(caller.astype(np.uint64) ^ np.uint64(derive_seed(seed, "ties")))
    for k, one in enumerate(several):
        values = data.grouped(_scores(one, data))
        order = np.lexsort((ties, -values, query))
        rows[k] = caller[order]
        scores[k] = _standardised(values[order], data.query_ptr)
    return RankedRows(rows, scores)


def document_ids(data: QueryDataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct document ids of a data set, and the number of every row's.

    They are the docids; without, the row number within the query, from 1, as a text.
    """
    if data.docid is not None:
        ids, numbers = np.unique(data.docid.astype(str), return_inverse=True)
        keys = data.query_of_row.astype(np.int64) * ids.size + numbers
        if np.unique(keys).size < keys.size:
            raise DataError(
                f"{OWNER}: a document occurs twice for a query. The docids of a query must be "
                "distinct, or all be left out."
            )
        return ids, numbers.astype(np.int32)
    sizes = np.diff(data.query_ptr)
    place = np.arange(data.n_rows) - np.repeat(data.query_ptr[:-1], sizes)
    ids = np.arange(1, int(sizes.max(initial=0)) + 1).astype(str)
    return ids, data.ungrouped(place).astype(np.int32)


def _is_several(ranker: Any) -> bool:
    return isinstance(ranker, list | tuple) and not all(np.isscalar(one) for one in ranker)


def _scores(ranker: Any, data: QueryDataset) -> np.ndarray:
    """Return scores in the caller's order."""
    values = ranker.predict(data) if hasattr(ranker, "predict") else ranker
    return check_scores(values, data.n_rows, OWNER)


def _standardised(scores: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Return scores divided by their standard deviation within queries."""
    sizes = np.diff(query_ptr)
    finite = np.where(np.isfinite(scores), scores, 0.0)
    mean = np.add.reduceat(finite, query_ptr[:-1]) / sizes
    centred = finite - np.repeat(mean, sizes)
    spread = np.sqrt(np.add.reduceat(centred**2, query_ptr[:-1]) / sizes)
    spread[spread == 0] = 1.0
    return np.asarray(scores / np.repeat(spread, sizes))
