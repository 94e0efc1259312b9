"""The queries that a report shows with their documents, and their rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.reporting.systems import System
from rankgrove.validation import counted, nearest

MOST_DOCUMENTS = 100  # per query: those that some system ranks highest
# The other queries are shown in brief: with BRIEF_SHARE times as many documents in total, and
# between BRIEF_LEAST and BRIEF_MOST documents per query.
BRIEF_SHARE = 8
BRIEF_LEAST, BRIEF_MOST = 5, 20


@dataclass(frozen=True, eq=False)
class Ranking:
    """The documents of one query.

    Attributes
    ----------
    query : its position in ``query_ids``
    places : the shown documents, as positions within the query
    rows : their rows in the data
    n_documents : number of documents of the query
    ranks, scores : of shape (systems, rows); ranks start at 1, equal scores are in row order
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

    These are all queries if they have at most `n_documents` documents; otherwise those with the
    largest differences to the first system (for a single system: with the lowest values), up to
    `n_documents` documents. `wanted` queries are always shown.

    Parameters
    ----------
    values : the first measure, one array per system, NaN where a query was left out
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
    """Return the queries to show with only their first documents, and the number of these.

    These are all queries not in `shown` if ``BRIEF_SHARE`` times `n_documents` documents are
    enough for them; otherwise those with the largest differences.
    """
    rest = [q for q in dict.fromkeys(_by_interest(values)) if q not in set(shown)]
    room = BRIEF_SHARE * n_documents
    most = max(BRIEF_LEAST, min(BRIEF_MOST, room // max(1, len(rest))))
    needed = np.cumsum([min(int(sizes[q]), most) for q in rest])
    return sorted(rest[: int(np.searchsorted(needed, room, side="right"))]), most


def _by_interest(values: Sequence[np.ndarray]) -> list[int]:
    """Return the queries by size of their differences, taking every system's largest in turn."""
    if len(values) == 1:
        sizes = [-values[0]]
    else:
        sizes = [np.abs(other - values[0]) for other in values[1:]]
    orders = [np.argsort(-np.nan_to_num(size, nan=-np.inf), kind="stable") for size in sizes]
    return np.stack(orders, axis=1).ravel().tolist()


def ranking(
    query: int, data: QueryDataset, systems: Sequence[System], most: int = MOST_DOCUMENTS
) -> Ranking:
    """Return a query's documents with their ranks and scores in all systems."""
    rows = query_rows(data, query)
    scores = np.stack([system.scores[rows] for system in systems])
    ranks = np.empty(scores.shape, np.int64)
    for ranks_of_system, scores_of_system in zip(ranks, scores, strict=True):
        ranks_of_system[np.argsort(-scores_of_system, kind="stable")] = np.arange(1, rows.size + 1)
    keep = np.sort(np.argsort(ranks.min(axis=0), kind="stable")[:most])
    return Ranking(query, keep, rows[keep], rows.size, ranks[:, keep], scores[:, keep])


def query_rows(data: QueryDataset, query: int) -> np.ndarray:
    """Return the rows of the query at a position, in the caller's numbering."""
    rows = np.arange(data.query_ptr[query], data.query_ptr[query + 1])
    return rows if data.order is None else data.order[rows]


def query_places(data: QueryDataset, ids: Sequence[Any] | None) -> list[int]:
    """Return the positions of queries in the data, by their ids."""
    places = {str(qid): q for q, qid in enumerate(data.query_ids.tolist())}
    chosen = []
    for qid in ids or ():
        if str(qid) not in places:
            close = nearest(qid, places) if len(places) <= 10_000 else ""
            raise ParameterError(
                f"There is no query {str(qid)!r} among the "
                f"{counted(data.n_queries, 'query', 'queries')} of the data{close}."
            )
        chosen.append(places[str(qid)])
    return chosen
