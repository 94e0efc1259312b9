"""The public collections, where they are at hand: counts, missing values, both forms of queries."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg

PARTS = [f"S{i}.txt.gz" for i in range(1, 6)]


@pytest.mark.parametrize(
    ("name", "rows", "queries", "features"),
    [("mq2008", 15_211, 784, 46), ("ohsumed", 16_140, 106, 45)],
)
def test_letor(data_dir, name, rows, queries, features):
    data = rg.read_letor([data_dir / name / part for part in PARTS])
    assert (data.n_rows, data.n_queries, data.n_features) == (rows, queries, features)
    assert set(data.y.tolist()) == {0, 1, 2}
    assert not np.isnan(data.X).any()
    assert data.query_ids.dtype == np.int64
    assert all(data.docid)
    if name == "mq2008":
        assert data.docid[0] == "GX008-86-4444840"
        assert data.X[0, 0] == np.float32(0.007477)


def test_null_is_missing(data_dir):
    data = rg.read_letor(data_dir / "ohsumed-null" / "S1.txt.gz")
    assert (data.n_rows, data.n_queries, data.n_features) == (2_570, 21, 45)
    assert np.isnan(data.X).sum() == 10_315


@pytest.mark.parametrize(
    ("name", "rows", "queries", "features"),
    [("rank.train.gz", 3_005, 201, 300), ("rank.test.gz", 768, 50, 300)],
)
def test_lightgbm(data_dir, name, rows, queries, features):
    data = rg.read_letor(data_dir / "lightgbm-lambdarank" / name)
    assert (data.n_rows, data.n_queries, data.n_features) == (rows, queries, features)
    assert set(data.y.tolist()) == {0, 1, 2, 3, 4}
    sparse = rg.read_letor(data_dir / "lightgbm-lambdarank" / name, sparse=True)
    assert np.array_equal(sparse.X.toarray(), data.X)


def test_round_trip(data_dir, tmp_path):
    data = rg.read_letor(data_dir / "ohsumed-null" / "S1.txt.gz")
    rg.write_letor(data, tmp_path / "again.gz")
    again = rg.read_letor(tmp_path / "again.gz")
    assert np.array_equal(again.X, data.X, equal_nan=True)
    assert np.array_equal(again.y, data.y)
    assert np.array_equal(again.qid, data.qid)
    assert np.array_equal(again.docid, data.docid)
