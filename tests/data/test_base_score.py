"""Base scores: a column of the data set that goes wherever its rows go."""

from __future__ import annotations

import pickle

import numpy as np
import pandas
import pytest

import rankgrove as rg
from rankgrove.data.concatenate import concatenate


@pytest.fixture
def data():
    """Five rows of two queries, not adjacent; the score of row i is i + 0.5."""
    return rg.QueryDataset(
        np.arange(10).reshape(5, 2),
        [0, 1, 2, 0, 1],
        qid=["a", "b", "a", "b", "b"],
        weight=[1, 2, 3, 4, 5],
        docid=list("vwxyz"),
        base_score=np.arange(5) + 0.5,
    )


def test_it_goes_where_the_rows_go(data):
    assert data.grouped(data.base_score).tolist() == [0.5, 2.5, 1.5, 3.5, 4.5]
    assert data.select([1]).base_score.tolist() == [1.5, 3.5, 4.5]
    assert data.select([1, 0]).select([1]).base_score.tolist() == [0.5, 2.5]
    for train, test in rg.k_fold(data, 2, seed=None):
        for part in (train, test):
            assert (part.base_score == part.X[:, 0] / 2 + 0.5).all()
    again = pickle.loads(pickle.dumps(data.select([1])))
    assert again.base_score.tolist() == [1.5, 3.5, 4.5]
    assert again.docid.tolist() == ["w", "y", "z"]
    assert again.weight.tolist() == [2, 4, 5]
    assert not data.base_score.flags.writeable
    assert "base scores" in repr(data)


def test_with_base_score(data):
    changed = data.with_base_score([5, 4, 3, 2, 1])
    assert changed.base_score.tolist() == [5, 4, 3, 2, 1]
    assert data.base_score.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert changed.weight is not None
    assert changed.docid.tolist() == list("vwxyz")
    assert changed.features.base is not None  # shared, not copied
    view = data.select([1]).with_base_score([7, 8, 9])
    assert view.base_score.tolist() == [7, 8, 9]
    np.testing.assert_array_equal(view.X, data.select([1]).X)
    assert data.with_base_score(None).base_score is None
    given = np.zeros(5)
    kept = data.with_base_score(given)
    given[0] = 3
    assert kept.base_score[0] == 0


def test_concatenate(data):
    other = rg.QueryDataset([[1, 2]], [0], qid=["c"], base_score=[9])
    joined = concatenate([data, other])
    assert joined.base_score.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 9]
    with pytest.raises(rg.DataError, match=r"Data set 1 .* has no base scores"):
        concatenate([data, other.with_base_score(None)])
    none = concatenate([data.with_base_score(None), other.with_base_score(None)])
    assert none.base_score is None


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1, 2], r"one number per row \(5\)\. Got shape \(2,\)"),
        ([1, 2, 3, 4, np.nan], r"finite numbers\. Got nan at row 4"),
        ([1, -np.inf, 3, 4, 5], r"finite numbers\. Got -inf at row 1: give documents without"),
        (["a"] * 5, "base_score must be numbers"),
    ],
)
def test_bad_scores(data, scores, message):
    with pytest.raises(rg.DataError, match=message):
        data.with_base_score(scores)


def test_tables(tmp_path):
    frame = pandas.DataFrame(
        {"qid": [1, 1], "label": [0, 1], "bm25": [1.0, 2.0], "old": [0.25, 0.75]}
    )
    data = rg.QueryDataset.from_frame(frame, base_score="old")
    assert data.feature_names == ("bm25",)
    assert data.base_score.tolist() == [0.25, 0.75]
    assert rg.QueryDataset.from_frame(frame).feature_names == ("bm25", "old")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        data = rg.read_table(tmp_path / name, base_score="old", features=["bm25"])
        assert data.base_score.tolist() == [0.25, 0.75]
    with pytest.raises(rg.DataError, match=r"no column 'odl' for the base_score.*'old'"):
        rg.read_table(tmp_path / "a.csv", base_score="odl")
    (tmp_path / "b.csv").write_text("qid,label,old\n1,0,x\n1,1,2\n")
    with pytest.raises(rg.ParseError, match=r"b\.csv:2: Base scores must be numbers"):
        rg.read_table(tmp_path / "b.csv", base_score="old")
