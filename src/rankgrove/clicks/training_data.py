"""Training data from a click log: a row per impression, with the features of its document."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.clicks.columns import id_at
from rankgrove.data.arrays import frozen
from rankgrove.data.positions import NO_CONTEXT, Positions, context_codes
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, DataWarning, ParameterError
from rankgrove.validation import check_choice, counted, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankgrove.clicks.log import ClickLog


def click_data(
    log: ClickLog,
    data: QueryDataset,
    *,
    context: Sequence[str] | str = (),
    missing: str = "error",
    examined: Any = None,
) -> QueryDataset:
    """Return the impressions of a log as data to train a ranker on.

    Every impression is a row: its query is the session, its label the click (0 or 1), its features
    are those of the document in `data`, and its position is that of the log. Features are not
    copied. Rankers with ``position_bias`` learn from it. With a click model as `examined`, rows
    have weights, and rankers without ``position_bias`` learn from them.

    Parameters
    ----------
    log : the sessions
    data : the features of the documents, with the query ids of the log, and its document ids as
        ``docid`` (without: the number of the row within its query, from 1). Labels are not used
    context : contexts of the log in which positions are looked at differently, such as the device
    missing : what is done with impressions that are not in `data`: ``"error"``, or ``"drop"`` with
        a warning
    examined : a click model, fitted to the log or new, which gives the probability that an
        impression was examined, given all clicks of its session. That is the weight of the row; of
        clicked rows it is 1. So a document that was not clicked counts as worse only as far as it
        was seen. None: no weights

    Returns
    -------
    QueryDataset

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.QueryDataset([[0.5], [0.1]], [0, 0], qid=["a", "a"], docid=["x", "y"])
    >>> log = rg.ClickLog([7, 7, 8], ["a"] * 3, ["y", "x", "y"], [1, 2, 1], [1, 0, 0])
    >>> rows = rg.click_data(log, data)
    >>> rows.qid.tolist(), rows.X.ravel().tolist(), rows.y.tolist()
    ([7, 7, 8], [0.10000000149011612, 0.5, 0.10000000149011612], [1.0, 0.0, 0.0])
    """
    check_choice("missing", "click_data", missing, ["error", "drop"])
    names = [context] if isinstance(context, str) else list(context)
    for name in names:
        if name not in log.contexts:
            there = ", ".join(map(repr, log.contexts)) or "none"
            raise DataError(f"The log has no context {name!r}. It has: {there}.")
    weight = None if examined is None else _examination(log, examined)
    row_of_pair = rows_of_pairs(log, data)
    rows = row_of_pair[log.pair]
    known = rows >= 0
    if not known.all():
        _refuse(log, known, missing)
    sessions, of_row = np.unique(log.session_of[known], return_inverse=True)
    rows = rows[known]
    codes: np.ndarray | None = None
    shown: tuple[str, ...] = NO_CONTEXT
    if names:
        columns = [np.array(log.contexts[name].names)[log.contexts[name].codes] for name in names]
        of_session, shown = context_codes(columns, log.n_sessions)
        codes = frozen(of_session[log.session_of[known]])
    positions = Positions(frozen(log.position[known]), codes, shown, frozen(log.pair[known]))
    inside = rows if data.rows is None else np.arange(data.features.shape[0])[data.rows][rows]
    return QueryDataset.from_parts(
        data.features,
        log.click[known].astype(np.float64),
        _session_ids(log)[sessions],
        of_row,
        rows=inside,
        weight=None if weight is None else weight[known],
        docid=None if data.docid_column is None else data.docid_column.take(rows),
        feature_names=data.given_names,
        base_score=None if data.base_score is None else data.base_score[rows],
        positions=positions,
        absent=data.absent,
        categories=data.categories,
    )


def _examination(log: ClickLog, model: Any) -> np.ndarray:
    """Return how probably every impression was examined, by a click model."""
    if not hasattr(model, "fit") or not hasattr(model, "examination_probabilities"):
        raise ParameterError(
            "The 'examined' parameter of click_data must be a click model, such as rg.DBN(). Got "
            f"{type(model).__name__} instead."
        )
    if not hasattr(model, "attractiveness_"):
        model = copy.deepcopy(model).fit(log)
    return np.asarray(model.examination_probabilities(log), np.float64)


def rows_of_pairs(log: ClickLog, data: QueryDataset) -> np.ndarray:
    """Return the row of `data` of every pair of a log; -1: it has none.

    Ids are equal if their texts are. Without document ids, a document is the number of its row
    within its query, from 1.
    """
    number = {str(token): i for i, token in enumerate(log.query_ids.tolist())}
    query = np.array([number.get(str(token), -1) for token in data.query_ids.tolist()], np.int64)
    documents = {str(token): i for i, token in enumerate(log.document_ids.tolist())}
    of_row = query[data.query_of_row]
    wanted = np.flatnonzero(of_row >= 0)
    if data.docid_column is not None:
        column = data.docid_column
        texts = (column[i] for i in wanted.tolist())
    else:
        within = np.empty(data.n_rows, np.int64)
        order = np.arange(data.n_rows) if data.order is None else data.order
        within[order] = np.arange(data.n_rows) - np.repeat(
            data.query_ptr[:-1], np.diff(data.query_ptr)
        )
        texts = (str(i + 1) for i in within[wanted].tolist())
    document = np.fromiter((documents.get(text, -1) for text in texts), np.int64, wanted.size)
    there = document >= 0
    wanted, document = wanted[there], document[there]
    n = np.int64(log.document_ids.size)
    keys = of_row[wanted] * n + document
    order = np.argsort(keys, kind="stable")
    keys, wanted = keys[order], wanted[order]
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if twice.size:
        first, second = sorted(wanted[twice[0] : twice[0] + 2].tolist())
        key = int(keys[twice[0]])
        raise DataError(
            f"The data has the document {id_at(log.document_ids, key % int(n))!r} of the query "
            f"{id_at(log.query_ids, key // int(n))!r} twice, in the rows {first} and {second}: "
            "features must be those of one row."
        )
    pairs = log.pair_query * n + log.pair_document
    out = np.full(log.n_pairs, -1, np.int64)
    if keys.size:
        at = np.minimum(np.searchsorted(keys, pairs), keys.size - 1)
        found = keys[at] == pairs
        out[found] = wanted[at[found]]
    return out


def _refuse(log: ClickLog, known: np.ndarray, missing: str) -> None:
    n_bad = int((~known).sum())
    pair = log.pair[int(np.argmin(known))]
    query = id_at(log.query_ids, int(log.pair_query[pair]))
    document = id_at(log.document_ids, int(log.pair_document[pair]))
    what = f"{n_bad:,} of {counted(log.n_impressions, 'impression')}"
    first = f"the first is the document {document!r} of the query {query!r}"
    if missing == "error" or not known.any():
        raise DataError(
            f"The data has no features of {what}; {first}. Query ids and docid of the data must be "
            "those of the log"
            + (", or leave such impressions out with missing='drop'." if known.any() else ".")
        )
    warn(f"click_data: left out {what} without features; {first}.", DataWarning)


def _session_ids(log: ClickLog) -> np.ndarray:
    """Return an id per session: its own where they differ, otherwise its number."""
    ids = log.session_ids
    if ids is None or len(set(ids.tolist())) < ids.size:
        return np.arange(log.n_sessions)
    return ids


def log_of_rows(data: QueryDataset, owner: str) -> ClickLog:
    """Return the sessions of data with positions as a log.

    Rows that are the same pair are known by ``positions.pair``; without it every row is a pair of
    its own. Sessions that have pairs in common are of one query.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    from rankgrove.clicks.log import ClickLog, Context

    positions = data.positions
    if positions is None:
        raise DataError(
            f"{owner}: the data has no positions, by which clicks are shown. Give a ClickLog, or "
            "data with positions, such as rg.click_data(log, data)."
        )
    n, session = data.n_rows, data.query_of_row
    pair = np.arange(n) if positions.pair is None else positions.pair
    pair = np.unique(pair, return_inverse=True)[1]
    order = np.lexsort((positions.place, session))
    n_pairs, n_sessions = int(pair.max()) + 1, data.n_queries
    edges = coo_matrix((np.ones(n, np.int8), (session, n_sessions + pair)),
                       shape=(n_sessions + n_pairs,) * 2)  # fmt: skip
    n_queries, of_node = connected_components(edges, directed=False)
    contexts = {}
    if positions.context is not None:
        first = order[data.query_ptr[:-1]]
        contexts["context"] = Context(frozen(positions.context[first]), positions.names)
    return ClickLog.from_parts(
        query_ids=np.arange(n_queries),
        document_ids=np.arange(n_pairs),
        pair_query=of_node[n_sessions:].astype(np.int32),
        pair_document=np.arange(n_pairs, dtype=np.int32),
        session_ptr=data.query_ptr,
        session_query=of_node[:n_sessions].astype(np.int32),
        contexts=contexts,
        pair=pair[order].astype(np.int32),
        position=positions.place[order],
        click=data.y[order] > 0,
    )
