"""Columns of a click log: what is refused, what is merged, and ids of any kind."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg

GOOD = {
    "session": [1, 1, 2],
    "query": ["a", "a", "b"],
    "document": ["x", "y", "x"],
    "position": [1, 2, 1],
    "click": [0, 1, 0],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"document": ["x"]}, "document has 1 values and position has 3"),
        ({"document": [["x"], ["y"], ["z"]]}, "one value per impression"),
        ({"query": ["a", None, "b"]}, "query is missing in row 1"),
        ({"session": [1.0, 1.0, np.nan]}, "session is missing in row 2"),
        ({"session": [1.0, 1.5, 2.0]}, "whole numbers or texts. Got 1.5 in row 1"),
        ({"query": [object()] * 3}, "Got object in row 0"),
        ({"position": [0, 1, 0]}, "start at 1. Got 0 in row 0: if they start at 0, add 1"),
        ({"position": [1, 10_001, 1]}, "from 1 to 10,000. Got 10001 in row 1"),
        ({"position": [1, 1.5, 1]}, "whole numbers from 1 to 10,000. Got 1.5 in row 1"),
        ({"position": [1, -2, 1]}, "Got -2 in row 1"),
        ({"position": [1, None, 1]}, "position is missing in row 1"),
        ({"position": ["a", "b", "c"]}, "must be whole numbers from 1. Got"),
        ({"position": [1, 1, 1]}, "session 1 of the query 'a' has the position 1 twice, in"),
        ({"document": ["x", "x", "x"]}, "has the document 'x' twice, in the rows 0 and 1"),
        ({"click": [0, 2, 0]}, "must be 0 or 1. Got 2 in row 1: if the column counts"),
        ({"click": [0, np.nan, 0]}, "click is missing in row 1"),
        ({"click": ["yes", "no", "no"]}, "must be booleans, or 0 and 1"),
        ({"dwell": [1, -1, 2]}, "seconds from 0, or NaN. Got -1 in row 1"),
        ({"dwell": ["long", "1", "2"]}, "numbers of seconds. Got 'long' in row 0"),
        ({"time": ["a", "b", "c"]}, "numbers of seconds, or times"),
        ({"client": [1, 2, 1]}, "client must be the same .* the rows 0 and 1"),
        ({"context": {"device": ["tv", "pc", "tv"]}}, "context 'device' must be the same"),
        ({"context": {"device": ["tv"]}}, "the context 'device' has 1 values"),
        ({"duplicates": "ignore"}, "'duplicates' parameter of ClickLog must be one of"),
    ],
)  # fmt: skip
def test_refused(changed, message):
    with pytest.raises((rg.DataError, rg.ParameterError), match=message):
        rg.ClickLog(**GOOD | changed)


def test_no_impressions():
    with pytest.raises(rg.DataError, match="at least one impression"):
        rg.ClickLog([], [], [], [], [])


def test_repeated_documents_are_merged():
    log = rg.ClickLog(
        [1] * 4, ["a"] * 4, ["x", "y", "x", "z"], [3, 2, 1, 4], [1, 0, 0, 1],
        dwell=[5, np.nan, 2, np.nan], duplicates="merge",
    )  # fmt: skip
    assert log.position.tolist() == [1, 2, 4]
    assert log.click.tolist() == [True, False, True]
    np.testing.assert_array_equal(log.dwell, np.array([5, np.nan, np.nan], np.float32))
    assert log.notes == ("merged 1 repeated impression",)
    assert "merged 1 repeated impression" in str(log.summary())


def test_times_and_missing_contexts():
    times = np.array(["2026-01-01", "2026-01-01", "NaT"], "datetime64[s]")
    log = rg.ClickLog(**GOOD, time=times, context={"device": [None, None, "pc"]})
    assert log.session_time[0] == 1767225600
    assert np.isnan(log.session_time[1])
    assert log.contexts["device"].names == ("", "pc")


IDS = {
    "numbers": np.array([5, 3, 5, 9]),
    "floats": np.array([5.0, 3.0, 5.0, 9.0]),
    "unsigned": np.array([2**64 - 1, 3, 2**64 - 1, 9], np.uint64),
    "texts": np.array(["b", "", "b", "ccc"]),
    "bytes": np.array([b"b", b"a", b"b", b"ccc"]),
    "list": ["b", "a", "b", "ccc"],
    "large": [2**70, 1, 2**70, 5],
    "pandas": pandas.Series(["b", "a", "b", "ccc"]),
    "pandas numbers": pandas.Series([5, 3, 5, 9], dtype="Int64"),
    "pandas categories": pandas.Series(["b", "a", "b", "c"]).astype("category"),
    "polars": polars.Series(["b", "a", "b", "ccc"]),
    "polars categories": polars.Series(["b", "a", "b", "c"]).cast(polars.Categorical),
    "arrow": pyarrow.chunked_array([["b", "a"], ["b", "ccc"]]),
    "arrow numbers": pyarrow.array([5, 3, 5, 9]),
    "arrow dictionary": pyarrow.array(["b", "a", "b", "ccc"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_of_any_kind(name):
    log = rg.ClickLog(range(4), ["q"] * 4, IDS[name], [1] * 4, [0, 1, 0, 0])
    got = log.document_ids[log.pair_document[log.pair]].tolist()
    wanted = [x.decode() if isinstance(x, bytes) else x for x in np.asarray(IDS[name]).tolist()]
    assert got == ([str(x) for x in wanted] if name == "large" else wanted)
    assert log.document_ids.size == 3


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(["b", None]),
        pandas.Series([1, None], dtype="Int64"),
        pandas.Series(["b", None]).astype("category"),
        polars.Series(["b", None]),
        pyarrow.array(["b", None]),
        pyarrow.array(["b", None]).dictionary_encode(),
    ],
)
def test_missing_ids_of_any_kind(column):
    with pytest.raises(rg.DataError, match="document is missing in row 1"):
        rg.ClickLog([1, 2], ["q"] * 2, column, [1, 1], [0, 1])


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_order_of_rows_gives_the_same_sessions(data):
    """Against dictionaries."""
    n_sessions = data.draw(st.integers(1, 6))
    rows = []
    for session in range(n_sessions):
        query = data.draw(st.integers(0, 2))
        documents = data.draw(st.permutations(range(5)))[: data.draw(st.integers(1, 5))]
        places = sorted(data.draw(st.permutations(range(1, 9)))[: len(documents)])
        rows += [
            (session % 4, query + 10 * session, d, p, data.draw(st.booleans()))
            for d, p in zip(documents, places, strict=True)
        ]
    rows = data.draw(st.permutations(rows))
    texts = data.draw(st.booleans())
    columns = [list(column) for column in zip(*rows, strict=True)]
    if texts:
        columns[:3] = [np.array(column).astype(str) for column in columns[:3]]
    log = rg.ClickLog(*columns)
    wanted = {}
    for session, query, document, place, click in rows:
        wanted.setdefault((str(session), str(query)), []).append((place, str(document), click))
    for k, key in enumerate(wanted):  # in the order of appearance
        part = slice(log.session_ptr[k], log.session_ptr[k + 1])
        assert str(log.session_ids[k]) == key[0]
        assert str(log.query_ids[log.session_query[k]]) == key[1]
        documents = log.document_ids[log.pair_document[log.pair[part]]].astype(str).tolist()
        got = zip(log.position[part].tolist(), documents, log.click[part].tolist(), strict=True)
        assert list(got) == sorted(wanted[key])
        assert (log.pair_query[log.pair[part]] == log.session_query[k]).all()
    assert log.n_sessions == len(wanted)


@pytest.mark.parametrize("by", ["session", "query", "time"])
def test_splits(by):
    n = 60
    session = np.arange(n) // 2  # two lists of the same session id
    log = rg.ClickLog(session, np.arange(n) % 30, [1] * n, [1] * n, [0, 1] * 30, time=range(n))
    learn, test = log.split(0.25, seed=3, by=by)
    assert learn.n_sessions + test.n_sessions == n
    assert 8 <= test.n_sessions <= 24
    if by == "session":
        assert not set(learn.session_ids.tolist()) & set(test.session_ids.tolist())
        other = log.split(0.25, seed=4)[1]
        assert set(other.session_ids.tolist()) != set(test.session_ids.tolist())
    if by == "query":
        assert not set(learn.session_query.tolist()) & set(test.session_query.tolist())
    if by == "time":
        assert learn.session_time.max() < test.session_time.min()


def test_splits_that_cannot_be():
    log = rg.ClickLog([1, 2], ["a", "a"], ["x", "x"], [1, 1], [0, 1])
    with pytest.raises(rg.DataError, match="one query cannot be split by query"):
        log.split(by="query")
    with pytest.raises(rg.DataError, match="no times: it cannot be split by time"):
        log.split(by="time")
    with pytest.raises(rg.DataError, match="nothing would be left"):
        log.split(1.0)
    with pytest.raises(rg.ParameterError, match="'by' parameter"):
        log.split(by="day")
    with pytest.raises(rg.DataError, match="selection is empty"):
        log.select([])
    with pytest.raises(rg.DataError, match=r"between 0 and 1\. Got 2 to 2"):
        log.select([2])
    with pytest.raises(rg.DataError, match="mask of sessions must have 2"):
        log.select(np.ones(3, bool))


def test_bots():
    """Six clicks of six; 25 clicks; a client with most clicks; and a user."""
    sizes = [6, 30, *[2] * 400, *[2] * 20]
    clicks = [6, 25, *[1] * 400, *[0] * 20]
    session = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([np.arange(1, n + 1) for n in sizes])
    click = np.concatenate([np.arange(n) < c for n, c in zip(sizes, clicks, strict=True)])
    client = np.array(["one", "two", *["busy"] * 400, *["user"] * 20])[session]
    log = rg.ClickLog(session, session, place, place, click, client=client)
    found = log.suspects(client_share=0.5)
    assert (found.all_clicked, found.many_clicks) == (1, 1)
    assert (found.busy_clients, found.of_busy_clients, found.n_sessions) == (1, 400, 402)
    clean = log.without_bots(client_share=0.5)
    assert clean.n_sessions == 20
    assert clean.notes == ("removed 402 sessions of suspected bots",)
    assert "may be of bots" in str(log.summary())
    with pytest.raises(rg.DataError, match="All sessions of the log would be removed"):
        rg.ClickLog([1] * 5, [1] * 5, range(5), range(1, 6), [1] * 5).without_bots()


def test_summary():
    log = rg.ClickLog(
        [1, 1, 2, 2, 3], ["a", "a", "a", "a", "b"], ["x", "y", "y", "z", "x"], [1, 2, 1, 3, 1],
        [1, 1, 0, 0, 1],
    )  # fmt: skip
    found = log.summary()
    assert found.impressions.tolist() == [3, 1, 1]
    assert found.clicks.tolist() == [2, 1, 0]
    assert found.click_through_rate[0] == pytest.approx(2 / 3)
    assert (found.without_clicks, found.several_clicks, found.with_gaps) == (1, 1, 1)
    assert (found.seen_once, found.n_pairs, found.queries_once) == (3, 4, 1)
    assert "lack positions above the last one" in str(found)
    assert "CTR at position 1" in found._repr_html_()
    assert "ClickLog" in log._repr_html_()
    assert found.as_dict()["suspects"]["sessions"] == 0
