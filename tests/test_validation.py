"""Checks and words that all messages share."""

from __future__ import annotations

import os
import pickle

import pytest

import rankgrove as rg
from rankgrove.validation import check_output_file, counted


def test_numbers_with_their_nouns():
    assert counted(1, "tree") == "1 tree"
    assert [counted(n, "tree") for n in (0, 2, 2000)] == ["0 trees", "2 trees", "2,000 trees"]
    assert counted(1, "query", "queries") == "1 query"
    assert counted(3, "query", "queries") == "3 queries"


def test_messages_and_texts_use_the_singular():
    assert repr(rg.Run({"1": {"a": 2.0}}, name="x")) == "Run('x', 1 query, 1 document)"
    assert repr(rg.Qrels({"1": {"a": 2, "b": 0}})) == "Qrels(1 query, 2 judgements)"
    data = rg.QueryDataset([[1.0], [2.0]], [0, 1], qid=[1, 1])
    assert "1 query, 1 feature;" in repr(data)
    with pytest.raises(rg.DataError, match="1 query cannot be divided into 2 parts"):
        rg.k_fold(data, 2)
    equal = rg.QueryDataset([[1.0], [2.0]], [1, 1], qid=[1, 1])
    assert "left out of 1 query: 1 with" in str(rg.evaluate([1, 2], equal, "ndcg@10"))


def test_files_to_write(tmp_path, monkeypatch):
    for good in (tmp_path / "new", str(tmp_path / "new")):
        assert check_output_file("out", "f", good) == tmp_path / "new"
    os.symlink("far/away", tmp_path / "link")
    for bad, why in [
        (3, "the path of a file. Got 3"),
        ("", "the path of a file. Got ''"),
        (tmp_path, "not of a folder"),
        (tmp_path / "far" / "new", "a folder that exists"),
        (tmp_path / "link", "a folder that exists"),
    ]:
        with pytest.raises(rg.ParameterError, match=f"The 'out' parameter of f must be .*{why}"):
            check_output_file("out", "f", bad)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(rg.ParameterError, match="a folder that may be written to"):
        check_output_file("out", "f", tmp_path / "new")


@pytest.mark.parametrize(
    "read", [rg.read_letor, rg.read_table, rg.read_run, rg.read_qrels, rg.load]
)
def test_a_missing_file_is_a_file_not_found_error_too(read):
    with pytest.raises(FileNotFoundError, match=r"^gone\.csv: there is no such file\.$") as caught:
        read("gone.csv")
    again = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, again):
        assert isinstance(error, rg.ModelFileError if read is rg.load else rg.ParseError)
        assert (error.errno, error.filename, str(error.path)) == (2, "gone.csv", "gone.csv")
