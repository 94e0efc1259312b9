"""Logs of scored documents, in the forms of the engines and as tables; mistakes are located."""

from __future__ import annotations

import gzip
import json
import time

import numpy as np
import pytest

import rankgrove as rg
from tests.parity import log_files

NAMES = ("bm25(title)", "age", "clicks")
VALUES = np.array([[1.5, np.nan, 0.0], [0.1, 3.0, 7.0], [2.25, 1e-7, np.nan]])
QUERY = ["rain", "rain", "7"]
SCORES = np.array([0.25, -1.5, 3.0])


def check(log, values=VALUES, documents=("d0", "d1", "d2")):
    assert log.features == NAMES
    np.testing.assert_array_equal(np.float32(log.values), np.float32(values))
    assert list(log.query) == QUERY
    assert list(log.document) == list(documents)
    np.testing.assert_array_equal(log.score, SCORES)


def test_elasticsearch_lines_lists_searches_and_gzip(tmp_path):
    text = log_files.elasticsearch(NAMES, VALUES, QUERY, SCORES)
    lines = [json.loads(line) for line in text.splitlines()]
    path = tmp_path / "log.json"
    for content in (text, json.dumps(lines, indent=1)):
        path.write_text(content)
        check(rg.read_feature_log(path))
    packed = tmp_path / "log.json.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    check(rg.read_feature_log(packed))
    # _msearch: no ids of queries but their numbers
    path.write_text(json.dumps({"responses": [line["response"] for line in lines]}))
    assert list(rg.read_feature_log(path).query) == ["1", "1", "2"]


def test_elasticsearch_hits_alone_and_old_objects(tmp_path):
    hit = {"_id": "x", "_score": 1.0, "fields": {"_ltrlog": [{"a": {"f": 2.0, "g": 3.0}}]}}
    path = tmp_path / "hits.json"
    path.write_text(json.dumps(hit | {"_source": {"q": "rain"}}))
    log = rg.read_feature_log(path, query="_source.q", document="_source.q")
    assert (log.query[0], log.document[0], log.values.tolist()) == ("rain", "rain", [[2.0, 3.0]])


def test_elasticsearch_scores_of_named_queries(tmp_path):
    path = tmp_path / "log.json"
    matched = [{"bm25": 2.5, "age": 3.0}, {"age": 1.0}, {}]
    hits = [{"_id": f"d{k}", "_score": 0.5, "matched_queries": m} for k, m in enumerate(matched)]
    path.write_text(json.dumps({"query_id": "q", "response": {"hits": {"hits": hits}}}))
    log = rg.read_feature_log(path)
    assert log.features == ("bm25", "age")
    nan = np.nan
    np.testing.assert_array_equal(log.values, [[2.5, 3.0], [nan, 1.0], [nan, nan]])
    hits[1]["matched_queries"] = ["age"]  # without their scores
    path.write_text(json.dumps({"hits": {"hits": hits}}))
    assert "1 hit without features left out" in rg.read_feature_log(path).notes


def test_solr_dense_and_sparse(tmp_path):
    values = np.nan_to_num(VALUES)
    path = tmp_path / "solr.json"
    path.write_text(log_files.solr(NAMES, values, QUERY, SCORES))
    check(rg.read_feature_log(path), values)
    path.write_text(log_files.solr(NAMES, values, QUERY, SCORES, sparse=True))
    log = rg.read_feature_log(path)
    np.testing.assert_array_equal(
        np.float32(np.stack([log.column(name) for name in NAMES]).T), np.float32(values)
    )
    assert np.isnan(rg.read_feature_log(path, absent="missing").column("age")[0])


def test_vespa_groups_tensors_and_nulls(tmp_path):
    path = tmp_path / "vespa.json"
    path.write_text(log_files.vespa(NAMES, VALUES, QUERY, SCORES))
    log = rg.read_feature_log(path)
    check(log, documents=[f"id:a:b::d{row}" for row in range(3)])
    assert log.notes == ("1 tensor among the features left out",)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_tables(tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(dict(zip(NAMES, VALUES.T, strict=True)))
    frame = frame.assign(qid=["rain", "rain", "7"], docid=["d0", "d1", "d2"], score=SCORES)
    frame = frame.assign(title="text", grade=1)
    path = tmp_path / f"log.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    log = rg.read_feature_log(path)
    check(log)
    assert "title" in log.notes[0]
    assert log.where(1).endswith(":3" if ending != "parquet" else ending)


ERRORS = {
    '{"took": 1': ":1: this is not JSON",
    "1 qid:1 1:2": "a log is JSON",
    '{"error": {"reason": "no such index"}}': "it is an error of the engine and no result: no such",
    '{"hits": {"hits": [{"_id": "a", "_score": 1, "fields": 7}]}}': "the log has no features",
    '{"took": 3}': "it is no response of Elasticsearch",
    '{"hits": {"hits": []}}': "the log has no hits: ask for the log",
    '{"hits": {"hits": [{"_id": "a", "_score": 1}]}}': '"rescore_index": 0',
    '\n\n{"hits": {"hits": [{"_score": 1, "fields": {"_ltrlog": [{"a": []}]}}]}}': (
        ":3: hit 1: it has no _id"
    ),
    '{"hits": {"hits": [{"_id": "a", "fields": {"_ltrlog": [{"a": [], "b": []}]}}]}}': (
        "hit 1: it has 2 log entries, a, b"
    ),
    '{"hits": {"hits": [{"_id": "a", "_score": "high", "fields": {"_ltrlog": [{"a": '
    '[{"name": "f", "value": 1}]}]}}]}}': "the score of document 'a' must be a number. Got 'high'",
    '{"hits": {"hits": [{"_id": "a", "_score": 1, "fields": {"_ltrlog": [{"a": '
    '[{"name": "f", "value": "much"}]}]}}]}}': "the feature 'f' of document 'a' must be a number",
    '{"response": {"docs": [{"id": "a", "score": 1, "[features]": "a=1,b"}]}}': (
        "must have the form name=value,name=value. Got 'b'"
    ),
    '{"response": {"docs": [{"id": "a", "[features]": "a=1"}]}} {"hits": {"hits": []}}': (
        "a response of elasticsearch among those of solr"
    ),
}


@pytest.mark.parametrize("text", ERRORS)
def test_mistakes_are_located(tmp_path, text):
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(rg.ParseError) as caught:
        rg.read_feature_log(path)
    assert ERRORS[text] in str(caught.value)
    assert str(path) in str(caught.value)


def test_large_logs_take_seconds(tmp_path):
    rng = np.random.default_rng(1)
    n, names = 5000, [f"f{j}" for j in range(30)]
    text = log_files.elasticsearch(names, rng.normal(size=(n, 30)), [1] * n, np.zeros(n))
    path = tmp_path / "log.json"
    path.write_text(text)
    start = time.process_time()
    assert len(rg.read_feature_log(path)) == n
    assert time.process_time() - start < 2.0  # 0.1 s; 100,000 documents in a few seconds


def test_a_table_without_numbers_tells_what_it_has(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("query,document,bm25,score\nq,d,np.float64(0.5),1\n")
    with pytest.raises(rg.ParseError, match=r"no numbers: bm25 \('np.float64\(0.5\)'\)"):
        rg.read_feature_log(path)
