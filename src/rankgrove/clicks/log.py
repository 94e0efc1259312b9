"""The click log: sessions of documents that were shown, and which of them were clicked.

A session is one list of results, shown once for one query. Impressions are the documents in it::

    impression    0  1  2 | 3  4          position = 1 2 3 1 2
    session_ptr   0         3     5       click    = - x - x -
    session_query a         b
    pair          0  1  2   3  4          (query, document) of every impression

Sessions are in the caller's order of first appearance; impressions of a session are in the order of
their positions. A pair is a distinct (query, document): its number is looked up in ``pair_query``
and ``pair_document``, whose numbers are places in ``query_ids`` and ``document_ids``. So an
impression takes 7 bytes: 4 for its pair, 2 for its position, 1 for the click.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.clicks.columns import (
    Ids,
    check_lengths,
    clicks_of,
    dwell_of,
    id_at,
    ids_of,
    places_of,
    plain_texts,
    times_of,
)
from rankgrove.data.arrays import frozen
from rankgrove.data.positions import MOST_POSITION
from rankgrove.errors import DataError
from rankgrove.random import mix64, string_keys
from rankgrove.showing import html_table
from rankgrove.validation import check_choice, counted

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from rankgrove.clicks.summary import ClickSummary
    from rankgrove.clicks.suspects import Suspects

__all__ = ["MOST_POSITION", "ClickLog", "Context"]
MOST_VALUES = 1 << 15  # of a context


class Context(NamedTuple):
    """A property of sessions, such as the device.

    codes : one small whole number per session
    names : the value of every code
    """

    codes: np.ndarray
    names: tuple[str, ...]


class ClickLog:
    """Sessions of impressions and clicks.

    A log is frozen: its arrays cannot be written to.

    Parameters
    ----------
    session : array of n_impressions session ids. Impressions of the same session id and query are
        one session; rows of a session need not be adjacent
    query : array of n_impressions query ids, whole numbers or texts
    document : array of n_impressions document ids, whole numbers or texts
    position : array of n_impressions whole numbers, from 1: where the document was shown
    click : array of n_impressions booleans, or 0 and 1
    dwell : array of n_impressions numbers, seconds spent on the document; NaN: unknown. Optional
    time : array of n_impressions numbers, or times: that of the session in seconds. Optional
    context : mapping from names, such as ``"device"``, to arrays of n_impressions values, which are
        the same for all impressions of a session. A missing value is the empty text. Optional
    client : array of n_impressions ids of users, browsers or addresses, the same for all
        impressions of a session, by which bots are found. Optional
    duplicates : what is done with a document that a session has more than once: ``"error"``, or
        ``"merge"``: the first position is kept, with the click and dwell time of all of them

    Attributes
    ----------
    query_ids, document_ids : the distinct ids
    pair_query, pair_document : the query and document of every distinct pair
    session_ptr : where the impressions of every session begin; one more number than sessions
    session_query : the query of every session
    session_ids, session_time, contexts : of every session; None, or empty, where not known
    session_client, client_ids : a number per session, and the ids; None where not known
    notes : texts that say what was merged or removed on the way to this log
    pair, position, click, dwell : of every impression

    Examples
    --------
    >>> import rankgrove as rg
    >>> log = rg.ClickLog([1, 1, 2], ["a", "a", "a"], ["x", "y", "y"], [1, 2, 1], [0, 1, 1])
    >>> log
    ClickLog(2 sessions, 3 impressions, 2 clicks, 1 query, 2 documents)
    """

    query_ids: np.ndarray
    document_ids: np.ndarray
    pair_query: np.ndarray
    pair_document: np.ndarray
    session_ptr: np.ndarray
    session_query: np.ndarray
    session_ids: np.ndarray | None
    session_time: np.ndarray | None
    session_client: np.ndarray | None
    client_ids: np.ndarray | None
    contexts: Mapping[str, Context]
    notes: tuple[str, ...]
    pair: np.ndarray
    position: np.ndarray
    click: np.ndarray
    dwell: np.ndarray | None

    def __init__(
        self,
        session: ArrayLike,
        query: ArrayLike,
        document: ArrayLike,
        position: ArrayLike,
        click: ArrayLike,
        *,
        dwell: ArrayLike | None = None,
        time: ArrayLike | None = None,
        context: Mapping[str, ArrayLike] | None = None,
        client: ArrayLike | None = None,
        duplicates: str = "error",
    ) -> None:
        check_choice("duplicates", "ClickLog", duplicates, ["error", "merge"])
        given: dict[str, Any] = {
            "session": session,
            "query": query,
            "document": document,
            "position": position,
        }
        given |= {"click": click, "dwell": dwell, "time": time, "client": client}
        given |= {f"the context {name!r}": values for name, values in (context or {}).items()}
        check_lengths({name: column for name, column in given.items() if column is not None})
        place, clicked = places_of(position), clicks_of(click)
        queries, documents = ids_of(query, "query"), ids_of(document, "document")
        sessions = ids_of(session, "session")
        lists = _combined(sessions, queries)
        heads = lists.ids
        pair, pairs = _pairs(queries, documents)
        order, ptr = _order(lists, place)
        rows = slice(None) if order is None else order
        columns: dict[str, Any] = {
            "query_ids": queries.ids,
            "document_ids": documents.ids,
            "pair_query": (pairs // documents.ids.size).astype(np.int32),
            "pair_document": (pairs % documents.ids.size).astype(np.int32),
            "session_ptr": ptr,
            "session_query": queries.codes[heads],
            "session_ids": sessions.ids[sessions.codes[heads]],
            "session_time": None if time is None else times_of(time)[heads],
            "contexts": {
                name: _context(values, name, lists) for name, values in (context or {}).items()
            },
            "pair": pair[rows],
            "position": place[rows],
            "click": clicked[rows],
            "dwell": None if dwell is None else dwell_of(dwell)[rows],
        }
        if client is not None:
            clients = ids_of(client, "client")
            _check_constant("client", clients.codes, lists)
            columns |= {"session_client": clients.codes[heads], "client_ids": clients.ids}
        columns |= _without_repeats(columns, duplicates == "merge", order)
        _check_places(columns, order)
        self._assemble(**_OPTIONAL | columns)

    @classmethod
    def from_parts(cls, **parts: Any) -> ClickLog:
        """Build from attributes that are already in their final form, unchecked.

        Those that may be None, or empty, can be left out.
        """
        self = cls.__new__(cls)
        self._assemble(**_OPTIONAL | parts)
        return self

    def _assemble(self, **parts: Any) -> None:
        for name, value in parts.items():
            self.__dict__[name] = frozen(value) if isinstance(value, np.ndarray) else value
        self.__dict__["contexts"] = MappingProxyType(dict(parts["contexts"]))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A ClickLog is frozen: its attribute {name!r} cannot be set.")

    # -- sizes --------------------------------------------------------------------------------

    @property
    def n_sessions(self) -> int:
        """Number of sessions."""
        return int(self.session_query.size)

    @property
    def n_impressions(self) -> int:
        """Number of impressions."""
        return int(self.pair.size)

    @property
    def n_clicks(self) -> int:
        """Number of clicks."""
        return int(np.count_nonzero(self.click))

    @property
    def n_queries(self) -> int:
        """Number of distinct queries."""
        return int(self.query_ids.size)

    @property
    def n_pairs(self) -> int:
        """Number of distinct (query, document) pairs."""
        return int(self.pair_query.size)

    @cached_property
    def n_positions(self) -> int:
        """The highest position."""
        return int(self.position.max(initial=0))

    @cached_property
    def session_of(self) -> np.ndarray:
        """The session of every impression."""
        sizes = np.diff(self.session_ptr)
        return frozen(np.repeat(np.arange(self.n_sessions, dtype=np.int32), sizes))

    @cached_property
    def session_keys(self) -> np.ndarray:
        """A uint64 key per session, for random draws: from its id, or its number."""
        if self.session_ids is None:
            return frozen(mix64(np.arange(self.n_sessions, dtype=np.uint64)))
        if self.session_ids.dtype.kind in "iu":
            return frozen(mix64(self.session_ids.astype(np.uint64)))
        return frozen(string_keys(self.session_ids.tolist()))

    # -- subsets ------------------------------------------------------------------------------

    def select(self, sessions: ArrayLike) -> ClickLog:
        """Return the log of some sessions; queries, documents and pairs keep their numbers.

        Parameters
        ----------
        sessions : numbers of sessions in the desired order, or a mask of n_sessions booleans
        """
        chosen = _chosen(sessions, self.n_sessions)
        sizes = np.diff(self.session_ptr)[chosen]
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.arange(ptr[-1]) + np.repeat(self.session_ptr[chosen] - ptr[:-1], sizes)
        return ClickLog.from_parts(
            query_ids=self.query_ids,
            document_ids=self.document_ids,
            pair_query=self.pair_query,
            pair_document=self.pair_document,
            session_ptr=ptr,
            session_query=self.session_query[chosen],
            session_ids=None if self.session_ids is None else self.session_ids[chosen],
            session_time=None if self.session_time is None else self.session_time[chosen],
            session_client=None if self.session_client is None else self.session_client[chosen],
            client_ids=self.client_ids,
            contexts={
                name: Context(codes[chosen], names)
                for name, (codes, names) in self.contexts.items()
            },
            notes=self.notes,
            pair=self.pair[rows],
            position=self.position[rows],
            click=self.click[rows],
            dwell=None if self.dwell is None else self.dwell[rows],
        )

    def split(
        self, share: float = 0.2, seed: int = 0, *, by: str = "session"
    ) -> tuple[ClickLog, ClickLog]:
        """Return a log to learn from and one of about `share` of the sessions, to test on.

        Parameters
        ----------
        share : the share of the second log
        seed : seed of the draws
        by : ``"session"``: sessions of the same id stay together; ``"query"``: a query is in one
            of the logs only, for rankers that are to rank new queries; ``"time"``: the last
            sessions are the second log

        Examples
        --------
        >>> import rankgrove as rg
        >>> log = rg.ClickLog(range(10), ["a"] * 10, range(10), [1] * 10, [0, 1] * 5)
        >>> learn, test = log.split(0.3)
        >>> learn.n_sessions, test.n_sessions
        (7, 3)
        """
        from rankgrove.clicks.splitting import held_out

        test = held_out(self, share, seed, by)
        return self.select(~test), self.select(test)

    # -- quality ------------------------------------------------------------------------------

    def summary(self) -> ClickSummary:
        """Return sizes, click-through rates by position, and what may be wrong with the log."""
        from rankgrove.clicks.summary import summarise

        return summarise(self)

    def suspects(
        self, *, session_clicks: int = 20, full_list: int = 5, client_share: float = 0.01
    ) -> Suspects:
        """Return the sessions that bots may have made.

        Parameters
        ----------
        session_clicks : sessions with more clicks are suspected
        full_list : sessions are suspected where everything was clicked, and at least so many
            documents were shown
        client_share : all sessions of a client are suspected that made more than this share of all
            clicks, and at least 100
        """
        from rankgrove.clicks.suspects import suspected

        return suspected(self, session_clicks, full_list, client_share)

    def without_bots(
        self, *, session_clicks: int = 20, full_list: int = 5, client_share: float = 0.01
    ) -> ClickLog:
        """Return the log without the sessions of :meth:`suspects`; its `notes` say how many.

        Examples
        --------
        >>> import rankgrove as rg
        >>> log = rg.ClickLog([1] * 6 + [2], ["a"] * 7, [*range(7)], [*range(1, 7), 1], [1] * 7)
        >>> log.without_bots().notes
        ('removed 1 session of suspected bots',)
        """
        found = self.suspects(
            session_clicks=session_clicks, full_list=full_list, client_share=client_share
        )
        n = found.n_sessions
        if not n:
            return self
        if n == self.n_sessions:
            raise DataError(
                "All sessions of the log would be removed as those of bots: raise session_clicks, "
                "full_list or client_share."
            )
        note = f"removed {counted(n, 'session')} of suspected bots"
        return self.select(~found.sessions)._with_note(note)

    def _with_note(self, note: str) -> ClickLog:
        parts = {name: self.__dict__[name] for name in (*_REQUIRED, *_OPTIONAL)}
        return ClickLog.from_parts(**parts | {"notes": (*self.notes, note)})

    def write(self, path: str | Path) -> None:
        """Write the log as a CSV, TSV, parquet or arrow file, which :func:`read_clicks` reads.

        The columns are session, query, document, position and click, and where they are known
        dwell, time, client and the names of the contexts.
        """
        from rankgrove.clicks.writing import write_log

        write_log(self, path)

    # -- representation -----------------------------------------------------------------------

    def __len__(self) -> int:
        return self.n_sessions

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {name: self.__dict__[name] for name in (*_REQUIRED, *_OPTIONAL)}
        return _rebuilt, (parts | {"contexts": dict(self.contexts)},)

    def _seen(self) -> tuple[int, int]:
        """Return how many queries and documents occur, in a part of a log not all that it knows."""
        shown = np.zeros(self.n_pairs, np.bool_)
        shown[self.pair] = True
        return np.unique(self.session_query).size, np.unique(self.pair_document[shown]).size

    def _repr_html_(self) -> str:
        n_queries, n_documents = self._seen()
        rows = [
            ["sessions", f"{self.n_sessions:,}"],
            ["impressions", f"{self.n_impressions:,}"],
            ["clicks", f"{self.n_clicks:,}"],
            ["queries", f"{n_queries:,}"],
            ["documents", f"{n_documents:,}"],
            ["positions", f"1 to {self.n_positions:,}"],
        ]
        rows += [
            [f"context {name}", f"{len(c.names):,} values"] for name, c in self.contexts.items()
        ]
        return html_table("ClickLog", [], rows, "\n".join(self.notes))

    def __repr__(self) -> str:
        n_queries, n_documents = self._seen()
        return (
            f"ClickLog({counted(self.n_sessions, 'session')}, "
            f"{counted(self.n_impressions, 'impression')}, {counted(self.n_clicks, 'click')}, "
            f"{counted(n_queries, 'query', 'queries')}, {counted(n_documents, 'document')})"
        )


_REQUIRED = (
    *("query_ids", "document_ids", "pair_query", "pair_document", "session_ptr", "session_query"),
    *("pair", "position", "click"),
)
_OPTIONAL: dict[str, Any] = {
    "session_ids": None,
    "session_time": None,
    "session_client": None,
    "client_ids": None,
    "contexts": {},
    "notes": (),
    "dwell": None,
}


def _rebuilt(parts: dict[str, Any]) -> ClickLog:
    return ClickLog.from_parts(**parts)


def _chosen(sessions: ArrayLike, n_sessions: int) -> np.ndarray:
    """Return the numbers of chosen sessions."""
    chosen = np.asarray(sessions)
    if chosen.dtype == np.bool_:
        if chosen.shape != (n_sessions,):
            raise DataError(
                f"A mask of sessions must have {n_sessions:,} booleans. Got shape {chosen.shape}."
            )
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise DataError(
            f"Sessions must be chosen by their numbers or a mask. Got {chosen.dtype}, shape "
            f"{chosen.shape}."
        )
    if chosen.size == 0:
        raise DataError("A click log needs at least one session; the selection is empty.")
    chosen = chosen.astype(np.int64)
    if chosen.min() < 0 or chosen.max() >= n_sessions:
        raise DataError(
            f"Numbers of sessions must be between 0 and {n_sessions - 1:,}. Got {chosen.min():,} "
            f"to {chosen.max():,}."
        )
    return chosen


def _combined(sessions: Ids, queries: Ids) -> Ids:
    """Return the lists of results, of a session id and a query: first row, and number by row."""
    from rankgrove.clicks import _log_kernels as kernels

    keys = sessions.codes * np.int64(queries.ids.size) + queries.codes
    codes = np.empty(keys.size, np.int32)
    return Ids(kernels.number_codes(frozen(keys), codes), codes)


def _pairs(queries: Ids, documents: Ids) -> tuple[np.ndarray, np.ndarray]:
    """Return the pair of every row, and the sorted keys of pairs: query by query."""
    from rankgrove.clicks import _log_kernels as kernels

    keys = queries.codes * np.int64(documents.ids.size) + documents.codes
    codes = np.empty(keys.size, np.int32)
    found = keys[kernels.number_codes(frozen(keys), codes)]
    del keys
    by_key = np.argsort(found, kind="stable")
    number = np.empty(found.size, np.int32)
    number[by_key] = np.arange(found.size, dtype=np.int32)
    return number[codes], found[by_key]


def _order(lists: Ids, place: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the rows list by list and by position, None if they are; and where lists begin."""
    from rankgrove.clicks import _log_kernels as kernels

    sizes = np.bincount(lists.codes, minlength=lists.ids.size)
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if kernels.in_order(lists.codes, place):
        return None, ptr
    order, by_place = np.empty(place.size, np.int32), np.empty(place.size, np.int32)
    begin = np.zeros(MOST_POSITION + 2, np.int64)
    kernels.sort_rows(lists.codes, place, ptr, begin, by_place, order)
    return order, ptr


def _check_constant(name: str, codes: np.ndarray, lists: Ids) -> None:
    """Refuse a property of sessions that differs within one."""
    wrong = codes != codes[lists.ids][lists.codes]
    if wrong.any():
        row = int(np.argmax(wrong))
        first = int(lists.ids[lists.codes[row]])
        error = DataError(
            f"{name} must be the same for all impressions of a session. It differs between the "
            f"rows {first} and {row}, which have the same session and query."
        )
        error.row = row
        raise error


def _context(values: ArrayLike, name: str, lists: Ids) -> Context:
    """Return a property of sessions from its values, one per impression."""
    ids, codes = ids_of(plain_texts(values), f"the context {name!r}")
    if ids.size > MOST_VALUES:
        raise DataError(
            f"A context may have {MOST_VALUES:,} values. {name!r} has {ids.size:,}: group them, or "
            "leave it out."
        )
    _check_constant(f"the context {name!r}", codes, lists)
    texts = [str(value) for value in ids.tolist()]
    names = sorted(set(texts))
    number = {text: code for code, text in enumerate(names)}
    table = np.array([number[text] for text in texts], np.int16)
    return Context(table[codes[lists.ids]], tuple(names))


def _shown(columns: dict[str, Any], i: int) -> str:
    """Return the session and query of an impression, for messages."""
    k = int(np.searchsorted(columns["session_ptr"], i, "right")) - 1
    query = id_at(columns["query_ids"], int(columns["session_query"][k]))
    ids = columns["session_ids"]
    return f"The session {id_at(ids, k)!r} of the query {query!r}" if ids is not None else ""


def _row(order: np.ndarray | None, i: int) -> int:
    return i if order is None else int(order[i])


def _without_repeats(
    columns: dict[str, Any], merges: bool, order: np.ndarray | None
) -> dict[str, Any]:
    """Return columns without repeated documents of a session; refuse them unless it `merges`."""
    from rankgrove.clicks import _log_kernels as kernels

    pair, ptr = columns["pair"], columns["session_ptr"]
    n_pairs = columns["pair_query"].size
    first = np.empty(pair.size, np.int32)
    before, row_of_pair = np.full(n_pairs, -1, np.int32), np.empty(n_pairs, np.int32)
    n = kernels.first_shown(frozen(ptr), frozen(pair), before, row_of_pair, first)
    if not n:
        return {}
    kept = first == np.arange(pair.size, dtype=np.int32)
    if not merges:
        i = int(np.argmin(kept))
        document = id_at(columns["document_ids"], int(columns["pair_document"][pair[i]]))
        rows = sorted((_row(order, int(first[i])), _row(order, i)))
        error = DataError(
            f"{_shown(columns, i)} has the document {document!r} twice, in the rows {rows[0]} and "
            f"{rows[1]} ({counted(n, 'repeated impression')} in all): merge them with "
            "duplicates='merge' (--merge), or give every list of results a session id of its own."
        )
        error.row = rows[1]
        raise error
    click = columns["click"].copy()
    np.logical_or.at(click, first[~kept], columns["click"][~kept])
    merged = {
        "pair": pair[kept],
        "position": columns["position"][kept],
        "click": click[kept],
        "session_ptr": np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[ptr],
        "notes": (f"merged {counted(n, 'repeated impression')}",),
    }
    if columns["dwell"] is not None:
        dwell = columns["dwell"].copy()
        np.fmax.at(dwell, first[~kept], columns["dwell"][~kept])
        merged["dwell"] = dwell[kept]
    return merged


def _check_places(columns: dict[str, Any], order: np.ndarray | None) -> None:
    """Refuse two documents at the same position of a session."""
    from rankgrove.clicks import _log_kernels as kernels

    i = kernels.same_place(frozen(columns["session_ptr"]), frozen(columns["position"]))
    if i < 0:
        return
    where, row = "", None
    if order is None and not columns.get("notes"):
        where, row = f", in the rows {i - 1} and {i}", i
    elif not columns.get("notes") and order is not None:
        rows = sorted((int(order[i - 1]), int(order[i])))
        where, row = f", in the rows {rows[0]} and {rows[1]}", rows[1]
    error = DataError(
        f"{_shown(columns, i)} has the position {columns['position'][i]} twice{where}: give every "
        "list of results a session id of its own (a visit in which a query was sent twice is two "
        "lists), and every document of a list its position."
    )
    error.row = row
    raise error
