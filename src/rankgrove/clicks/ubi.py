"""Reading OpenSearch's User Behavior Insights: searches, and what users did with their results.

A record of ``ubi_queries`` has the ids of its results in their order; records of ``ubi_events``
say which of them were shown and clicked::

    queries  query_id  user_query  query_response_hit_ids  timestamp  client_id
    events   query_id  action_name  event_attributes.object.object_id
                                    event_attributes.position.ordinal
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.clicks.columns import text_array
from rankgrove.clicks.log import ClickLog
from rankgrove.clicks.reading import check_first_position, check_sense
from rankgrove.clicks.ubi_records import Record, Records, shortened
from rankgrove.errors import DataError, DataWarning
from rankgrove.validation import check_choice, counted, nearest, warn

if TYPE_CHECKING:
    from rankgrove.clicks.ubi_records import Source

_OBJECT = ("event_attributes.object.object_id",)
_ORDINAL = ("event_attributes.position.ordinal", "event_attributes.position.index")
_HITS = ("query_response_hit_ids", "query_response_objects_ids", "query_response_object_ids")
_MILLISECONDS = 1e11  # times from there on are not seconds


@dataclass
class _Search:
    """A list of results: what is known of one query_id."""

    text: str | None = None
    time: float = np.nan
    client: str | None = None
    contexts: tuple[str, ...] = ()
    hits: dict[str, int] = field(default_factory=dict)
    shown: dict[str, int | None] = field(default_factory=dict)
    clicked: dict[str, int | None] = field(default_factory=dict)


def read_ubi(
    queries: Source | None,
    events: Source,
    *,
    clicks: Sequence[str] = ("click",),
    impressions: Sequence[str] = ("impression",),
    first_position: int = 1,
    positions: str = "events",
    unmatched: str = "error",
    context: Sequence[str] = (),
) -> ClickLog:
    """Read a click log from OpenSearch's User Behavior Insights (UBI).

    Files hold one JSON object per line (also ``.gz``), as exports of the indexes ``ubi_queries``
    and ``ubi_events`` do; lines of a bulk request, and objects under ``_source``, are understood.
    Tables and mappings have the same fields; nested ones may have names with dots, such as
    ``event_attributes.object.object_id``.

    A session of the log is a ``query_id``, a query a ``user_query``, a document an ``object_id``.
    If a search has impression events, these are the documents that were shown; otherwise, all of
    ``query_response_hit_ids`` are taken as shown.

    Parameters
    ----------
    queries : the ``ubi_queries``: a file; a pandas, polars or pyarrow table; or mappings, such as
        the hits of a search client. None: events have ``user_query``, and impressions are events
    events : the ``ubi_events``, likewise
    clicks, impressions : values of ``action_name``; upper and lower case do not matter. Other
        events are ignored
    first_position : 1, or 0 where ``event_attributes.position.ordinal`` counts from 0
    positions : ``"events"``: a document is where its event says, or else where it is among the
        hits; ``"hits"``: the other way round
    unmatched : what is done with clicks on documents that were not shown, and with events of
        searches that are not in `queries`: ``"error"``, or ``"drop"`` with a warning
    context : fields of queries or of the first event, such as ``"application"`` or
        ``"event_attributes.device"``, by which sessions differ

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "queries.ndjson").write_text('''
    ... {"query_id": "a", "user_query": "shoes", "query_response_hit_ids": ["d7", "d3"]}
    ... {"query_id": "b", "user_query": "hats", "query_response_hit_ids": ["d9", "d7"]}
    ... ''')
    >>> _ = (folder / "events.ndjson").write_text(
    ...     '{"query_id": "a", "action_name": "click", "event_attributes": '
    ...     '{"object": {"object_id": "d3"}, "position": {"ordinal": 2}}}'
    ... )
    >>> read_ubi(folder / "queries.ndjson", folder / "events.ndjson")
    ClickLog(2 sessions, 4 impressions, 1 click, 2 queries, 3 documents)
    """
    owner = "read_ubi"
    check_first_position(owner, first_position)
    check_choice("positions", owner, positions, ["events", "hits"])
    check_choice("unmatched", owner, unmatched, ["error", "drop"])
    searches: dict[str, _Search] = {}
    names = tuple(_listed(context))
    if queries is not None:
        _read_queries(Records(queries, "queries"), searches, names)
    actions = {name.lower(): True for name in _listed(clicks)}
    actions |= {name.lower(): False for name in _listed(impressions)}
    records = Records(events, "events")
    alone = queries is None
    lost = _read_events(records, searches, actions, names, first_position, alone, unmatched)
    _check_fields(records, searches, names, first_position)
    log, orphans = _log(records, searches, names, positions, unmatched)
    parts = [
        *([f"{counted(lost, 'event')} of searches that are not among the queries"] if lost else []),
        *([f"{counted(orphans, 'click')} on documents that were not shown"] if orphans else []),
    ]
    if parts:
        left_out = f"left out {' and '.join(parts)}"
        warn(f"{records.name}: {left_out}.", DataWarning)
        log = log._with_note(left_out)
    return log


def _listed(names: Sequence[str] | str) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _get(record: Record, path: str) -> Any:
    """Return a nested field, which may also be written with dots."""
    if path in record:
        return record[path]
    head, dot, rest = path.partition(".")
    inner = record.get(head)
    return _get(inner, rest) if dot and isinstance(inner, Mapping) else None


def _first(record: Record, paths: Sequence[str]) -> Any:
    for path in paths:
        value = _get(record, path)
        if value is not None:
            return value
    return None


def _id(value: Any) -> str | None:
    """Return an id as text; None: there is none."""
    if value is None or isinstance(value, bool | dict | list) or value == "":
        return None
    if isinstance(value, float) and value.is_integer():  # a column of a table with gaps
        value = int(value)
    return str(value)


def _read_queries(records: Records, searches: dict[str, _Search], names: tuple[str, ...]) -> None:
    for number, record in records:
        key = _id(record.get("query_id"))
        text = _id(record.get("user_query"))
        if key is None or text is None:
            raise _no_field(records, number, record, "query_id" if key is None else "user_query")
        search = searches.setdefault(key, _Search(text))
        if search.text != text:
            raise records.error(
                number,
                f"the query_id {key!r} has the user_query {shortened(text)}, and "
                f"{shortened(str(search.text))} in an earlier record: a query_id is one search.",
            )
        hits = _first(record, _HITS)
        if hits is not None and not isinstance(hits, list):
            raise records.error(
                number, f"{_HITS[0]} must be a list of ids. Got {shortened(str(hits))}."
            )
        for hit in hits or []:
            document = _id(hit)
            if document is not None:  # of several pages of one search, one after the other
                search.hits.setdefault(document, len(search.hits) + 1)
        _complete(records, number, record, search, names)
    if not searches:
        raise records.error(None, "there are no queries.")


def _complete(
    records: Records, number: int, record: Record, search: _Search, names: tuple[str, ...]
) -> None:
    """Add time, client and contexts of a record to a search that lacks them."""
    if np.isnan(search.time):
        search.time = _seconds(records, number, record.get("timestamp"))
    if search.client is None:
        search.client = _id(record.get("client_id"))
    if names:
        old = search.contexts or ("",) * len(names)
        new = (_id(_get(record, name)) or "" for name in names)
        search.contexts = tuple(a or b for a, b in zip(old, new, strict=True))


def _no_field(records: Records, number: int, record: Record, name: str) -> DataError:
    fields = ", ".join(repr(key) for key in list(record)[:12]) or "none"
    swapped = ""
    if name == "action_name" and _first(record, _HITS) is not None:
        swapped = " It looks like one of ubi_queries, where ubi_events should be."
    return records.error(
        number,
        f"the record has no {name}{nearest(name, list(record))}. Its fields are {fields}."
        + swapped,
    )


def _seconds(records: Records, number: int, value: Any) -> float:
    """Return a time, a number of (milli)seconds or a text as of ISO 8601, in seconds."""
    if value is None:
        return float(np.nan)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) / 1000 if abs(value) >= _MILLISECONDS else float(value)
    try:
        if str(value).isdigit():
            return _seconds(records, number, int(value))
        time = datetime.fromisoformat(str(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise records.error(
            number,
            f"timestamp must be a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970. "
            f"Got {shortened(str(value))}.",
        ) from None


def _read_events(
    records: Records,
    searches: dict[str, _Search],
    actions: Mapping[str, bool],
    names: tuple[str, ...],
    first_position: int,
    alone: bool,
    unmatched: str,
) -> int:
    """Add shown and clicked documents to their searches; return the number of events left out."""
    lost, n_used, n_clicks, seen = 0, 0, 0, set()
    for number, record in records:
        if "action_name" not in record:
            raise _no_field(records, number, record, "action_name")
        action = str(record["action_name"])
        seen.add(action)
        is_click = actions.get(action.lower())
        if is_click is None:
            continue
        key, document = _id(record.get("query_id")), _id(_first(record, _OBJECT))
        if key is None:
            continue  # not after a search
        if document is None:
            raise records.error(
                number,
                f"the event {action!r} has no {_OBJECT[0]}: it says which document was meant.",
            )
        n_used += 1
        n_clicks += is_click
        search = searches.get(key)
        if search is None and alone:
            text = _id(record.get("user_query"))
            if text is None:
                raise records.error(
                    number,
                    "the event has no user_query: give ubi_queries as well.",
                )
            search = searches[key] = _Search(text)
        if search is None:
            if unmatched == "error":
                raise records.error(
                    number,
                    f"the search {key!r} (query_id) is not among the queries: export both over "
                    "the same time, or leave such events out with unmatched='drop' "
                    "(--ubi-unmatched drop).",
                )
            lost += 1
            continue
        _complete(records, number, record, search, names)
        into = search.clicked if is_click else search.shown
        place = _place(records, number, _first(record, _ORDINAL), first_position)
        if into.get(document) is None:
            into[document] = place
    if not n_used or not n_clicks:
        wanted = [name for name, is_click in actions.items() if is_click or not n_used]
        there = ", ".join(map(repr, sorted(seen)[:12]))
        raise records.error(
            None,
            f"there is no event {' or '.join(map(repr, wanted))} of a search."
            + (f" The action_names are {there}: name those of clicks with clicks=[...] "
               "(--ubi-clicks)." if there else ""),
        )  # fmt: skip
    return lost


def _place(records: Records, number: int, value: Any, first_position: int) -> int | None:
    if value is None:
        return None
    try:
        place = int(value) + 1 - first_position
        if place != float(value) + 1 - first_position:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise records.error(
            number, f"{_ORDINAL[0]} must be a whole number. Got {shortened(str(value))}."
        ) from None
    if place < 1:
        remedy = (
            ": if positions start at 0, give first_position=0 (--first-position 0)"
            if value == 0
            else ""
        )
        raise records.error(
            number,
            f"{_ORDINAL[0]} must be at least {first_position}. Got {value}"
            f"{remedy if value == 0 else ''}.",
        )
    return place


def _check_fields(
    records: Records, searches: Mapping[str, _Search], names: tuple[str, ...], first_position: int
) -> None:
    """Refuse contexts that no record has, and a first position of 0 where it is 1."""
    for j, name in enumerate(names):
        if not any(search.contexts and search.contexts[j] for search in searches.values()):
            raise records.error(
                None,
                f"no query or event has a value in the field {name!r}, for a context: name a field "
                "as in 'application', or 'event_attributes.device' for an inner one.",
            )
    places = [place for search in searches.values() for place in search.shown.values() if place]
    if first_position == 0 and places and min(places) > 1:
        raise records.error(
            None,
            f"no document is at {_ORDINAL[0]} 0: the first is {min(places) - 1}. Leave "
            "first_position=0 (--first-position 0) out.",
        )


def _log(
    records: Records,
    searches: Mapping[str, _Search],
    names: tuple[str, ...],
    positions: str,
    unmatched: str,
) -> tuple[ClickLog, int]:
    """Return the log, and how many clicks on documents that were not shown were left out."""
    session: list[int] = []
    documents: list[str] = []
    places: list[int] = []
    clicked: list[bool] = []
    keys = list(searches)
    orphans = 0
    for k, (key, search) in enumerate(searches.items()):
        shown = search.shown or search.hits
        for document, place in search.clicked.items():
            if document in shown:
                continue
            if document in search.hits:  # shown, but without an event
                search.shown[document] = place
            elif unmatched == "error":
                raise records.error(
                    None,
                    f"a click without an impression: the document {document!r} was clicked in the "
                    f"search {key!r} (query_id), and is neither in its {_HITS[0]} nor in an "
                    "impression event. Leave such clicks out with unmatched='drop' "
                    "(--ubi-unmatched drop).",
                )
            else:
                orphans += 1
        for document in shown:
            by_event = search.shown.get(document) or search.clicked.get(document)
            by_hit = search.hits.get(document)
            place = (by_hit or by_event) if positions == "hits" else (by_event or by_hit)
            if place is None:
                raise records.error(
                    None,
                    f"the document {document!r} of the search {key!r} (query_id) has no position: "
                    f"events need {_ORDINAL[0]}, or the query {_HITS[0]}.",
                )
            session.append(k)
            documents.append(document)
            places.append(place)
            clicked.append(document in search.clicked)
    if not session:
        raise records.error(None, "no search has results: there is nothing to learn from.")
    of = np.array(session)
    found = list(searches.values())
    texts = text_array([str(search.text) for search in found])
    known = all(search.client is not None for search in found)
    times = np.array([search.time for search in found])
    contexts = {
        name: np.array([(s.contexts or ("",) * len(names))[j] for s in found])[of]
        for j, name in enumerate(names)
    }
    try:
        log = ClickLog(
            text_array(keys)[of],
            texts[of],
            text_array(documents),
            np.array(places),
            np.array(clicked),
            time=None if np.isnan(times).all() else times[of],
            client=text_array([str(s.client) for s in found])[of] if known else None,
            context=contexts or None,
        )
        check_sense(log)
    except DataError as error:
        hint = ""
        if "twice" in str(error) and positions == "events":
            hint = " positions='hits' (--ubi-positions hits) takes the places among the hits."
        raise records.error(None, f"{error}{hint}") from error
    return log, orphans
