"""Which queries a report shows with all their documents, and the rankings of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.reporting.systems import System
from rankgrove.validation import counted, nearest

MOST_DOCUMENTS = 100  # of one query: those that some system ranks highest
# Of queries that are not shown with all of these: so many documents in all for every one that is
# shown so, and of a query between so many.
BRIEF_SHARE = 8
BRIEF_LEAST, BRIEF_MOST = 5, 20


@dataclass(frozen=True, eq=False)
class Ranking:
    """The documents of one query.

    Attributes
    ----------
    query : its place in ``query_ids``
    places : the documents that are shown, as places among the query's
    rows : their rows in the data
    n_documents : how many the query has
    ranks, scores : of shape (systems, rows); ranks count from 1, equal scores in row order
    """

    query: int
    places: np.ndarray
    rows: np.ndarray
    n_documents: int
    ranks: np.ndarray
    scores: np.ndarray


def shown_queries(
    values: Sequence[np.ndarray],
    sizes: np.ndarray,
    n_documents: int,
    wanted: Sequence[int] = (),
) -> list[int]:
    """Return the queries to show with their documents, in the data's order.

    All of them where they have at most `n_documents` documents; otherwise those with the largest
    differences to the first system (of a single one: the lowest values) until so many documents
    are reached. `wanted` queries are shown in any case.

    Parameters
    ----------
    values : of the first measure, one array a system, NaN where a query was left out
    sizes : number of documents of every query
    """
    chosen = dict.fromkeys(wanted)
    room = n_documents - int(np.minimum(sizes[list(chosen)], MOST_DOCUMENTS).sum())
    for q in _by_interest(values):
        shown = min(int(sizes[q]), MOST_DOCUMENTS)
        if q in chosen or shown > room:
            continue
        chosen[q] = None
        room -= shown
    return sorted(chosen)


def brief_queries(
    values: Sequence[np.ndarray], sizes: np.ndarray, n_documents: int, shown: Sequence[int]
) -> tuple[list[int], int]:
    """Return the queries to show with their first documents alone, and how many of these.

    All that are not among `shown`, where ``BRIEF_SHARE`` times `n_documents` documents are enough
    for that; otherwise those with the largest differences.
    """
    rest = [q for q in dict.fromkeys(_by_interest(values)) if q not in set(shown)]
    room = BRIEF_SHARE * n_documents
    most = max(BRIEF_LEAST, min(BRIEF_MOST, room // max(1, len(rest))))
    needed = np.cumsum([min(int(sizes[q]), most) for q in rest])
    return sorted(rest[: int(np.searchsorted(needed, room, side="right"))]), most


def _by_interest(values: Sequence[np.ndarray]) -> list[int]:
    """Return the queries by the size of their differences, every system's largest in turn."""
    if len(values) == 1:
        sizes = [-values[0]]
    else:
        sizes = [np.abs(other - values[0]) for other in values[1:]]
    orders = [np.argsort(-np.nan_to_num(one, nan=-np.inf), kind="stable") for one in sizes]
    return np.stack(orders, axis=1).ravel().tolist()


def ranking(
    query: int, data: QueryDataset, systems: Sequence[System], most: int = MOST_DOCUMENTS
) -> Ranking:
    """Return a query's documents with their ranks and scores in all systems."""
    first, end = int(data.query_ptr[query]), int(data.query_ptr[query + 1])
    rows = np.arange(first, end) if data.order is None else data.order[first:end]
    scores = np.stack([one.scores[rows] for one in systems])
    ranks = np.empty(scores.shape, np.int64)
    for own, of in zip(ranks, scores, strict=True):
        own[np.argsort(-of, kind="stable")] = np.arange(1, rows.size + 1)
    keep = np.sort(np.argsort(ranks.min(axis=0), kind="stable")[:most])
    return Ranking(query, keep, rows[keep], rows.size, ranks[:, keep], scores[:, keep])


def query_places(data: QueryDataset, ids: Sequence[Any] | None) -> list[int]:
    """Return where queries stand in the data, given by their ids."""
    places = {str(qid): q for q, qid in enumerate(data.query_ids.tolist())}
    found = []
    for qid in ids or ():
        if str(qid) not in places:
            close = nearest(qid, places) if len(places) <= 10_000 else ""
            raise ParameterError(
                f"There is no query {str(qid)!r} among the "
                f"{counted(data.n_queries, 'query', 'queries')} of the data{close}."
            )
        found.append(places[str(qid)])
    return found
