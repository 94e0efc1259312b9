"""Runs and judgements to and from ranx and ir_measures."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rankgrove as rg

pd = pytest.importorskip("pandas")

RUN = rg.Run({"1": {"a": 2.5, "b": 1, "c": 0.5}, "2": {"a": 1.0}, "3": {}}, name="bm25")
QRELS = rg.Qrels({"1": {"b": 2, "c": 1}, "2": {"a": 1, "d": 1}, "3": {}})


def full(table):
    return {qid: dict(documents) for qid, documents in table.items() if documents}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # its kernels, compiled by Numba
def test_ranx_and_back():
    ranx = pytest.importorskip("ranx")
    run, qrels = RUN.to_ranx(), QRELS.to_ranx()
    assert isinstance(run, ranx.Run)
    assert run.name == "bm25"
    assert (rg.Run.from_ranx(run), rg.Run.from_ranx(run).name) == (full(RUN), "bm25")
    again = rg.Qrels.from_ranx(qrels)
    assert again == full(QRELS)
    assert {type(grade) for documents in again.values() for grade in documents.values()} == {int}
    ours = rg.evaluate(rg.Run(full(RUN)), rg.Qrels(full(QRELS)), "map").mean["map"]
    assert ranx.evaluate(qrels, run, "map") == pytest.approx(ours)


def test_ir_measures_takes_tables_and_dicts():
    ir_measures = pytest.importorskip("ir_measures")
    judged = rg.Qrels(full(QRELS))  # ir_measures counts queries without judgements as 0
    ours = rg.evaluate(RUN, judged, "map").mean["map"]
    for run, qrels in ((RUN, judged), (RUN.to_pandas(), QRELS.to_pandas())):
        found = ir_measures.calc_aggregate([ir_measures.AP], qrels, run)
        assert found[ir_measures.AP] == pytest.approx(ours)


@pytest.mark.parametrize("method", ["to_pandas", "to_polars", "to_arrow", "table_columns"])
def test_tables_and_back(method):
    run, qrels = getattr(RUN, method)(), getattr(QRELS, method)()
    assert rg.Run.from_frame(run, "bm25") == full(RUN)
    assert rg.Qrels.from_frame(qrels) == full(QRELS)
    assert type(rg.Qrels.from_frame(qrels)["1"]["b"]) is int
    if method != "table_columns":  # evaluate takes the other tables as they are
        assert rg.evaluate(run, qrels, "map").mean == rg.evaluate(RUN, QRELS, "map").mean


def test_pyterriers_names_and_whole_number_ids():
    frame = pd.DataFrame({"qid": [1, 1], "docno": [10, 11], "score": [0.5, 1.5], "rank": [1, 0]})
    assert rg.Run.from_frame(frame, name="pl2") == {"1": {"10": 0.5, "11": 1.5}}
    assert rg.Run.from_frame(frame, name="pl2").name == "pl2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qid": [None, "1"]}, "The column 'qid' has none in row 0"),
        ({"docno": ["a", None]}, "The column 'docno' has none in row 1"),
        ({"docno": ["a", "a"]}, "'a' appears twice in query '1'"),
        ({"score": ["high", "low"]}, "The values of the run must be numbers.*'high' in row 0"),
        ({"score": [1.0, np.nan]}, "has the score nan"),
    ],
)
def test_bad_tables(change, message):
    frame = {"qid": ["1", "1"], "docno": ["a", "b"], "score": [0.5, 1.5]} | change
    with pytest.raises(rg.DataError, match=message):
        rg.Run.from_frame(pd.DataFrame(frame))


def test_columns_that_are_missing():
    with pytest.raises(rg.DataError, match="must have one of the columns relevance, label, rel"):
        rg.Qrels.from_frame({"qid": ["1"], "docno": ["a"], "score": [1.0]})


def test_what_is_no_ranx_run():
    with pytest.raises(rg.DataError, match=r"takes a ranx Run. Got dict.*rg\.Run\(\.\.\.\)"):
        rg.Run.from_ranx({"1": {"a": 1.0}})


def test_without_ranx(monkeypatch):
    monkeypatch.setitem(sys.modules, "ranx", None)
    for table in (RUN, QRELS):
        with pytest.raises(rg.MissingExtraError, match=r"to_ranx needs.*rankgrove\[ranx\]"):
            table.to_ranx()
