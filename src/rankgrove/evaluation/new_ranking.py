"""A ranking that is given by documents, scores or a ranker, on the pairs of a click log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.clicks.training_data import rows_of_pairs
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.evaluation.interleaving import ranked_documents
from rankgrove.validation import check_scores

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog


class NewRanking(NamedTuple):
    """The new ranking on the log's pairs and queries.

    place : the new place of every pair, from 0; -1 where it is not among those that count
    mass : of every query, the weight of all documents of its new ranking
    ranked : whether a query has a new ranking
    """

    place: np.ndarray
    mass: np.ndarray
    ranked: np.ndarray


def new_ranking(
    log: ClickLog, ranking: Any, data: QueryDataset | None, weights: np.ndarray
) -> NewRanking:
    """Return the new ranking of :func:`estimate_from_log`; `weights` are those of its places."""
    if data is not None:
        return _of_data(log, ranking, data, weights)
    if isinstance(ranking, Mapping):
        return _of_mapping(log, ranking, weights)
    if hasattr(ranking, "predict"):
        raise DataError(
            "estimate_from_log: a ranker needs data=, the documents of the log's queries."
        )
    scores = check_scores(ranking, log.n_pairs, "estimate_from_log: the pairs of the log")
    retrieved = np.flatnonzero(scores > -np.inf)
    return _placed(
        log, log.pair_query[retrieved], retrieved.astype(np.int64), scores[retrieved], weights
    )


def _of_data(log: ClickLog, ranking: Any, data: QueryDataset, weights: np.ndarray) -> NewRanking:
    """Return the ranking of a data set's rows."""
    scores = ranking
    if hasattr(ranking, "predict"):
        scores = ranking.predict(data if getattr(ranking, "takes_datasets", False) else data.X)
    scores = check_scores(scores, data.n_rows, "estimate_from_log")
    number = _numbers(log.query_ids)
    query = np.array([number.get(str(qid), -1) for qid in data.query_ids.tolist()], np.int64)
    of_row = query[data.query_of_row]
    row_of_pair = rows_of_pairs(log, data)
    pair = np.full(data.n_rows, -1, np.int64)
    there = np.flatnonzero(row_of_pair >= 0)
    pair[row_of_pair[there]] = there
    kept = data.grouped(np.arange(data.n_rows))
    kept = kept[(of_row[kept] >= 0) & (scores[kept] > -np.inf)]
    return _placed(log, of_row[kept], pair[kept], scores[kept], weights)


def _of_mapping(log: ClickLog, ranking: Mapping[Any, Any], weights: np.ndarray) -> NewRanking:
    queries, documents = _numbers(log.query_ids), _numbers(log.document_ids)
    query: list[int] = []
    document: list[int] = []
    score: list[float] = []
    for qid, listed in ranking.items():
        number = queries.get(str(qid))
        if number is None:
            continue
        names: Sequence[Any] = (
            ranked_documents(listed) if isinstance(listed, Mapping) else list(listed)
        )
        if len(set(names)) < len(names):
            raise DataError(f"estimate_from_log: query {qid!r} has a document twice.")
        query += [number] * len(names)
        document += [documents.get(str(name), -1) for name in names]
        score += range(0, -len(names), -1)
    of_row = np.array(query, np.int64)
    pairs = _pairs(log, of_row, np.array(document, np.int64))
    return _placed(log, of_row, pairs, np.array(score, np.float64), weights)


def _numbers(ids: np.ndarray) -> dict[str, int]:
    return {str(name): number for number, name in enumerate(ids.tolist())}


def _pairs(log: ClickLog, query: np.ndarray, document: np.ndarray) -> np.ndarray:
    """Return the number of every pair of query and document numbers; -1 for one not in the log."""
    n = np.int64(max(log.document_ids.size, 1))
    known = log.pair_query * n + log.pair_document
    order = np.argsort(known, kind="stable")
    wanted = np.where(document >= 0, query * n + document, np.int64(-1))
    at = np.minimum(np.searchsorted(known[order], wanted), max(known.size - 1, 0))
    return np.where(known[order][at] == wanted, order[at], -1)


def _placed(
    log: ClickLog, query: np.ndarray, pair: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> NewRanking:
    """Rank the documents of every query by descending score, equal scores in the given order."""
    if query.size == 0:
        raise DataError(
            "estimate_from_log: no query of the log has a new ranking. Query ids are compared as "
            f"texts; the log has {', '.join(map(repr, log.query_ids[:3].tolist()))}, ..."
        )
    order = np.lexsort((-scores, query))
    query, pair = query[order], pair[order]
    counts = np.bincount(query, minlength=log.n_queries)
    starts = np.cumsum(counts) - counts
    place = np.arange(query.size) - starts[query]
    counting = place < weights.size
    mass = np.bincount(query[counting], weights[place[counting]], minlength=log.n_queries)
    there = counting & (pair >= 0)
    of_pair = np.full(log.n_pairs, -1, np.int64)
    of_pair[pair[there]] = place[there]
    return NewRanking(of_pair, mass, counts > 0)
