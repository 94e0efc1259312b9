"""Logged features joined with judgements."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here as run
from tests.parity import log_files

NAMES = ("bm25(title)", "age")
VALUES = np.array([[1.5, np.nan], [0.5, 3.0], [2.0, 0.0], [1.0, 1.0]])
LOG = rg.FeatureLog(
    "table", NAMES, VALUES, np.array(["a", "a", "b", "c"]), np.array(["d1", "d2", "d1", "d9"]),
    np.zeros(4),
)  # fmt: skip
GRADES = {"a": {"d1": 2, "d7": 1}, "b": {"d1": 0}, "z": {"d1": 1}}


def test_joined_rows_and_counts(tmp_path):
    joined = rg.join_log(LOG, GRADES, tmp_path / "train.txt")
    data = joined.dataset
    assert (data.y.tolist(), list(data.qid), list(data.docid)) == ([2, 0], ["a", "b"], ["d1", "d1"])
    assert data.feature_names == NAMES
    assert data.absent == "missing"
    assert (joined.n_logged, joined.n_unjudged, joined.n_judged, joined.n_unlogged) == (4, 2, 4, 2)
    assert (joined.n_queries_unlogged, joined.n_queries_unjudged) == (1, 1)
    text = (tmp_path / "train.txt").read_text()
    assert text.startswith("# feature 1: bm25(title)\n# feature 2: age\n2 qid:a 1:1.5")
    again = rg.read_letor(tmp_path / "train.txt", absent="missing")
    np.testing.assert_array_equal(again.X, data.X)
    zeros = rg.read_letor(tmp_path / "train.txt")  # written so that both readings are the same
    np.testing.assert_array_equal(zeros.X, data.X)


def test_unjudged_documents_and_absent_values():
    data = rg.join_log(LOG, GRADES, unjudged=0, absent="zero").dataset
    assert data.y.tolist() == [2, 0, 0]  # of judged queries only
    assert data.X.tolist() == [[1.5, 0], [0.5, 3], [2, 0]]


def test_repeated_documents_count_once():
    log = rg.FeatureLog(
        "table", ("f",), np.array([[1.0], [2.0]]), np.array(["a", "a"]), np.array(["d", "d"]),
        np.zeros(2),
    )  # fmt: skip
    joined = rg.join_log(log, {"a": {"d": 1}})
    assert joined.dataset.X.tolist() == [[2.0]]
    assert "1 document logged more than once" in str(joined)


def test_nothing_matches():
    with pytest.raises(rg.DataError, match=r"Nothing matches.*'d1' of query 'a'"):
        rg.join_log(LOG, {"A": {"d1": 1}})


def test_clicks():
    data = rg.make_web(30, n_docs=8, n_features=3, seed=1)
    ids = [f"d{row}" for row in range(data.n_rows)]
    data = rg.QueryDataset(data.X, data.y, data.qid, docid=ids)
    clicks = rg.simulate_clicks(data, data.column(1), sessions=3000, seed=1)
    judged = rg.judgements(clicks, samples=0)
    values = np.float64(data.X)
    log = rg.FeatureLog("table", data.feature_names, values, data.qid, np.array(ids), values[:, 0])
    joined = rg.join_log(log, judged)
    assert joined.n_judged == joined.dataset.n_rows == len(judged)
    assert joined.dataset.y.max() == judged.label.max()


def test_command(tmp_path):
    (tmp_path / "log.json").write_text(
        log_files.elasticsearch(NAMES, VALUES, ["a", "a", "b", "c"], np.zeros(4))
    )
    (tmp_path / "qrels.txt").write_text("a 0 d0 2\na 0 d1 0\nb 0 d2 1\n")
    (tmp_path / "grades.csv").write_text("query,document,grade\na,d0,2\na,d1,0\nb,d2,1\n")
    words = ("--out", "train.txt", "--names-out", "names.txt")
    out, _ = run("join", "log.json", "qrels.txt", *words, cwd=tmp_path)
    assert "3 documents of 2 queries, 2 features" in out
    assert "written to train.txt" in out
    assert (tmp_path / "names.txt").read_text() == "bm25(title)\nage\n"
    first = (tmp_path / "train.txt").read_text()
    run("join", "log.json", "grades.csv", "-o", "train.txt", cwd=tmp_path)
    assert (tmp_path / "train.txt").read_text() == first
    (tmp_path / "two.csv").write_text("query,document,grade\na,d0,2\na,d0,1\n")
    _, complaints = run("join", "log.json", "two.csv", "-o", "t.txt", cwd=tmp_path, status=2)
    assert "has two grades, 2 and 1" in complaints
