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

from rankgrove.data.arrays import frozen
from rankgrove.data.dataset_checks import check_queries
from rankgrove.errors import DataError
from rankgrove.random import string_keys
from rankgrove.validation import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_POSITION = 10_000


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
    time : array of n_impressions numbers, the time of the session in seconds. Optional
    context : mapping from names, such as ``"device"``, to arrays of n_impressions values, which are
        the same for all impressions of a session. Optional

    Attributes
    ----------
    query_ids, document_ids : the distinct ids
    pair_query, pair_document : the query and document of every distinct pair
    session_ptr : where the impressions of every session begin; one more number than sessions
    session_query : the query of every session
    session_ids, session_time, contexts : of every session; None, or empty, where not known
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
    contexts: Mapping[str, Context]
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
    ) -> None:
        n = np.shape(np.asarray(position))[0]
        session_ids, of_session = check_queries(session, n)
        query_ids, of_query = check_queries(query, n)
        document_ids, of_document = check_queries(document, n)
        places = np.asarray(position, np.int64)
        # one list of results: a session id and a query
        lists, first, of_list = np.unique(
            of_session * np.int64(query_ids.size) + of_query, return_index=True, return_inverse=True
        )
        by_appearance = np.argsort(first, kind="stable")
        number = np.empty(lists.size, np.int64)
        number[by_appearance] = np.arange(lists.size)
        of_list = number[of_list]
        order = np.lexsort((places, of_list))
        pairs, of_pair = np.unique(
            of_query * np.int64(document_ids.size) + of_document, return_inverse=True
        )
        heads = first[by_appearance]
        columns = {name: _context(values, heads) for name, values in (context or {}).items()}
        self._assemble(
            query_ids=query_ids,
            document_ids=document_ids,
            pair_query=(pairs // document_ids.size).astype(np.int32),
            pair_document=(pairs % document_ids.size).astype(np.int32),
            session_ptr=np.concatenate(
                [np.zeros(1, np.int64), np.cumsum(np.bincount(of_list, minlength=lists.size))]
            ),
            session_query=of_query[heads].astype(np.int32),
            session_ids=session_ids[of_session[heads]],
            session_time=None if time is None else np.asarray(time, np.float64)[heads],
            contexts=columns,
            pair=of_pair[order].astype(np.int32),
            position=places[order].astype(np.uint16),
            click=np.asarray(click)[order].astype(np.bool_),
            dwell=None if dwell is None else np.asarray(dwell, np.float32)[order],
        )

    @classmethod
    def from_parts(cls, **parts: Any) -> ClickLog:
        """Build from attributes that are already in their final form, unchecked.

        Those that may be None, or empty, can be left out.
        """
        self = cls.__new__(cls)
        optional: dict[str, Any] = {
            "session_ids": None,
            "session_time": None,
            "contexts": {},
            "dwell": None,
        }
        self._assemble(**optional | parts)
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
        ids = range(self.n_sessions) if self.session_ids is None else self.session_ids.tolist()
        return frozen(string_keys(ids))

    # -- subsets ------------------------------------------------------------------------------

    def select(self, sessions: ArrayLike) -> ClickLog:
        """Return the log of some sessions; queries, documents and pairs keep their numbers.

        Parameters
        ----------
        sessions : numbers of sessions in the desired order, or a mask of n_sessions booleans
        """
        chosen = np.asarray(sessions)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
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
            contexts={
                name: Context(codes[chosen], names)
                for name, (codes, names) in self.contexts.items()
            },
            pair=self.pair[rows],
            position=self.position[rows],
            click=self.click[rows],
            dwell=None if self.dwell is None else self.dwell[rows],
        )

    def __len__(self) -> int:
        return self.n_sessions

    def __repr__(self) -> str:
        return (
            f"ClickLog({counted(self.n_sessions, 'session')}, "
            f"{counted(self.n_impressions, 'impression')}, {counted(self.n_clicks, 'click')}, "
            f"{counted(self.n_queries, 'query', 'queries')}, "
            f"{counted(int(self.document_ids.size), 'document')})"
        )


def _context(values: ArrayLike, heads: np.ndarray) -> Context:
    """Return a property of sessions from its values, one per impression."""
    texts, codes = np.unique(np.asarray(values)[heads].astype(str), return_inverse=True)
    if texts.size > 1 << 15:
        raise DataError(f"A context may have 32,768 values. Got {texts.size:,}.")
    return Context(codes.astype(np.int16), tuple(texts.tolist()))
