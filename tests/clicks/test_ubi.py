"""OpenSearch's User Behavior Insights."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg

QUERIES = [
    {"query_id": "q1", "user_query": "shoes", "client_id": "c1", "timestamp": 1725541171702,
     "query_response_hit_ids": ["d1", "d2", "d3"]},
    {"query_id": "q2", "user_query": "hats", "client_id": "c2",
     "timestamp": "2024-09-05T13:00:00Z", "query_response_hit_ids": ["d4", "d1"]},
]  # fmt: skip


def event(query, action, document, ordinal=None, **more):
    attributes = {"object": {"object_id": document, "object_id_field": "sku"}}
    if ordinal is not None:
        attributes["position"] = {"ordinal": ordinal}
    return {"query_id": query, "action_name": action, "event_attributes": attributes} | more


EVENTS = [
    event("q1", "impression", "d1", 1),
    event("q1", "impression", "d2", 2),
    event("q1", "click", "d2", 2),
    event("q1", "CLICK", "d2"),
    event("q2", "click", "d1"),
    {"query_id": "q1", "action_name": "login"},
    event(None, "click", "d2"),
]


def write(path, records):
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    blob = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(blob) if path.name.endswith(".gz") else blob)
    return path


def read(folder, queries, events, ending="ndjson", **options):
    first = None if queries is None else write(folder / f"queries.{ending}", queries)
    return rg.read_ubi(first, write(folder / f"events.{ending}", events), **options)


def shown(log):
    return [
        (q, d, p, c)
        for q, d, p, c in zip(
            log.query_ids[log.session_query[log.session_of]].tolist(),
            log.document_ids[log.pair_document[log.pair]].tolist(),
            log.position.tolist(),
            log.click.tolist(),
            strict=True,
        )
    ]


WANTED = [
    ("shoes", "d1", 1, False), ("shoes", "d2", 2, True),
    ("hats", "d4", 1, False), ("hats", "d1", 2, True),
]  # fmt: skip


@pytest.mark.parametrize("ending", ["ndjson", "json.gz"])
def test_reading(tmp_path, ending):
    """Impressions are events where there are any, and hits otherwise."""
    log = read(tmp_path, QUERIES, EVENTS, ending)
    assert shown(log) == WANTED
    assert log.session_ids.tolist() == ["q1", "q2"]
    assert log.session_time.tolist() == [1725541171.702, 1725541200.0]
    assert log.client_ids.tolist() == ["c1", "c2"]


def test_other_forms(tmp_path):
    """Bulk requests, search hits, fields with dots, and older names."""
    flat = {"query_id": "q1", "action_name": "click",
            "event_attributes.object.object_id": "d2",
            "event_attributes.position.index": 2}  # fmt: skip
    queries = [{"index": {"_index": "ubi_queries"}}, *({"_source": q} for q in QUERIES)]
    log = read(tmp_path, queries, [*EVENTS[:2], flat, EVENTS[4]])
    assert shown(log) == WANTED
    old = [{("query_response_objects_ids" if k.endswith("hit_ids") else k): v for k, v in q.items()}
           for q in QUERIES]  # fmt: skip
    assert shown(read(tmp_path, old, EVENTS)) == WANTED


def test_without_queries_and_from_zero(tmp_path):
    events = [
        event("q1", "impression", "a", 0, user_query="shoes", application="shop"),
        event("q1", "impression", "b", 1, user_query="shoes"),
        event("q1", "buy", "b", user_query="shoes"),
        event("q2", "impression", "a", 1, user_query="shoes", application="app"),
    ]
    options = {"clicks": "buy", "first_position": 0, "context": ["application"]}
    log = read(tmp_path, None, events, **options)
    assert shown(log) == [
        ("shoes", "a", 1, False),
        ("shoes", "b", 2, True),
        ("shoes", "a", 2, False),
    ]
    assert log.contexts["application"].names == ("app", "shop")
    with pytest.raises(rg.ParseError, match=r"events.ndjson:1: .*Got 0: if positions start at 0"):
        read(tmp_path, None, events, clicks=["buy"])
    del events[0]["user_query"]
    with pytest.raises(rg.ParseError, match=r"events.ndjson:1: the event has no user_query"):
        read(tmp_path, None, events, **options)


def test_places_of_events_or_hits(tmp_path):
    events = [event("q1", "click", "d2", 3), event("q2", "click", "d1")]
    with pytest.raises(rg.ParseError, match=r"position 3 twice.* positions='hits'"):
        read(tmp_path, QUERIES, events)
    assert shown(read(tmp_path, QUERIES, events, positions="hits"))[1] == ("shoes", "d2", 2, True)


def test_unmatched(tmp_path):
    events = [*EVENTS, event("q9", "click", "d1"), event("q2", "click", "d9")]
    with pytest.raises(rg.ParseError, match=r"events.ndjson:8: the search 'q9' .*unmatched='drop'"):
        read(tmp_path, QUERIES, events)
    with pytest.raises(rg.ParseError, match="click without an impression: the document 'd9'"):
        read(tmp_path, QUERIES, [*EVENTS, events[-1]])
    with pytest.warns(rg.DataWarning, match="1 event of searches .* and 1 click on documents"):
        log = read(tmp_path, QUERIES, events, unmatched="drop")
    assert shown(log) == WANTED
    assert log.notes[0].startswith("left out 1 event")


def test_what_was_left_out_is_named_alone(tmp_path):
    with pytest.warns(rg.DataWarning, match=r"ndjson: left out 1 click on documents that were not"):
        read(tmp_path, QUERIES, [*EVENTS, event("q2", "click", "d9")], unmatched="drop")


def test_fields_that_nothing_has(tmp_path):
    with pytest.raises(rg.ParseError, match=r"no query or event has a value in the field 'devic'"):
        read(tmp_path, QUERIES, EVENTS, context="devic")
    with pytest.raises(rg.ParseError, match=r"no document is at .* 0: the first is 1. Leave"):
        read(tmp_path, QUERIES, EVENTS, first_position=0)


@pytest.mark.parametrize("kind", ["mappings", "pandas", "polars", "arrow", "dotted", "hits"])
def test_tables_and_mappings(kind):
    """Records of a client, and tables, are as good as files."""
    if kind == "mappings":
        queries, events = iter(QUERIES), iter(EVENTS)
    elif kind == "hits":
        queries, events = ([{"_source": r} for r in rows] for rows in (QUERIES, EVENTS))
    elif kind == "polars":
        frame = pytest.importorskip("polars").DataFrame
        queries, events = (frame(rows, strict=False) for rows in (_alike(QUERIES), EVENTS))
    elif kind == "arrow":
        table = pytest.importorskip("pyarrow").Table.from_pylist
        queries, events = table(_alike(QUERIES)), table(EVENTS)
    else:
        pandas = pytest.importorskip("pandas")
        queries = pandas.DataFrame(QUERIES)
        events = pandas.json_normalize(EVENTS) if kind == "dotted" else pandas.DataFrame(EVENTS)
    log = rg.read_ubi(queries, events)
    assert shown(log) == WANTED
    assert log.session_time.tolist() == [1725541171.702, 1725541200.0]


def _alike(queries):
    """Columns of a table are of one type."""
    return [query | {"timestamp": str(query["timestamp"])} for query in queries]


def test_numbers_as_ids_in_a_table_with_gaps():
    pandas = pytest.importorskip("pandas")
    queries = [{"query_id": k, "user_query": "shoes", "query_response_hit_ids": [7, 8]}
               for k in range(2)]  # fmt: skip
    events = pandas.DataFrame({"query_id": [1, None], "action_name": ["click", "login"],
                               "event_attributes.object.object_id": [8, None]})  # fmt: skip
    log = rg.read_ubi(queries, events)
    assert shown(log)[2:] == [("shoes", "7", 1, False), ("shoes", "8", 2, True)]


def test_bad_tables():
    with pytest.raises(rg.DataError, match=r"read_ubi, events: expected the name of a file.* dict"):
        rg.read_ubi(QUERIES, {"query_id": [1]})
    with pytest.raises(rg.DataError, match=r"read_ubi, events, row 0: expected a mapping.*Got 1\."):
        rg.read_ubi(QUERIES, [1])
    with pytest.raises(rg.DataError, match=r"read_ubi, queries, row 1: the record has no user_que"):
        rg.read_ubi([QUERIES[0], {"query_id": 2}], EVENTS)


BAD = {
    "no json": (QUERIES, ["{"], r"events.ndjson:1: the line has no JSON: '{'"),
    "list": (QUERIES, ["[1]"], r"events.ndjson:1: expected a JSON object"),
    "no action": (QUERIES, [{"action": 1}], r"events.ndjson:1: .*no action_name.*fields are 'acti"),
    "no object": (QUERIES, [{"query_id": "q1", "action_name": "click"}], r"has no event_attrib"),
    "no clicks": (QUERIES, [event("q1", "hover", "d1")], r"no event 'click'.*are 'hover': name th"),
    "other clicks": (QUERIES, [event("q1", "impression", "d1")], r"no event .click. .*impression"),
    "swapped": (QUERIES, QUERIES, r"It looks like one of ubi_queries"),
    "ordinal": (QUERIES, [event("q1", "click", "d1", "x")], r"must be a whole number. Got 'x'"),
    "no query": ([{"query_id": 1}], EVENTS, r"queries.ndjson:1: the record has no user_query"),
    "nothing": ([], EVENTS, r"queries.ndjson: there are no queries"),
    "hits": ([QUERIES[0] | {"query_response_hit_ids": "d1"}], EVENTS, r"must be a list of ids"),
    "time": ([QUERIES[0] | {"timestamp": "now"}], EVENTS, r"timestamp must be a time .* Got 'now'"),
    "two texts": ([QUERIES[0], QUERIES[0] | {"user_query": "x"}], EVENTS, r"a query_id is one sea"),
    "one": (QUERIES[:1], EVENTS[:3], r"All rows are of one session"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    queries, events, message = BAD[name]
    with pytest.raises(rg.ParseError, match=message):
        read(tmp_path, queries, events)
    with pytest.raises(rg.MissingFileError):
        rg.read_ubi(None, tmp_path / "no.ndjson")


json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(QUERIES[0], json_value)), max_size=3),
    st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(EVENTS[0], json_value)), max_size=3),
)
def test_any_json_is_read_or_refused(tmp_path_factory, queries, events):
    folder = tmp_path_factory.getbasetemp()
    try:
        message = repr(read(folder, [*QUERIES, *queries], [*EVENTS, *events]))
    except rg.DataError as error:
        message = str(error)
    assert ".ndjson" in message or message.startswith("ClickLog(")
