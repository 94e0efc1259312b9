"""Positions as columns of tables, and in the keys of rows."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg

FRAME = {
    "qid": [1, 1, 2, 2],
    "label": [0, 1, 1, 0],
    "rank": [1, 2, 2, 1],
    "device": ["phone", "phone", None, None],
    "bm25": [3.5, 3.5, 1.0, 2.0],
}


def test_columns_of_a_frame():
    data = rg.QueryDataset.from_frame(FRAME, position="rank", position_context="device")
    assert data.feature_names == ("bm25",)
    assert data.positions.place.tolist() == [1, 2, 2, 1]
    assert data.positions.names == ("", "phone")
    assert data.positions.context.tolist() == [1, 1, 0, 0]


def test_columns_of_a_csv_file(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "clicks.csv"
    rows = zip(*FRAME.values(), strict=True)
    lines = [",".join("" if x is None else str(x) for x in row) for row in rows]
    path.write_text("\n".join([",".join(FRAME), *lines]))
    data = rg.read_table(path, position="rank", position_context="device")
    assert data.feature_names == ("bm25",)
    assert data.positions.place.tolist() == [1, 2, 2, 1]
    assert data.positions.context.tolist() == [1, 1, 0, 0]
    path.write_text("qid,label,rank,bm25\n1,0,0,2.5\n")
    with pytest.raises(rg.DataError, match="Add 1 to all"):
        rg.read_table(path, position="rank")


def test_rows_that_are_equal_are_told_apart_by_position():
    X, y = np.ones((3, 2)), np.ones(3)
    keys = [
        rg.QueryDataset(X, y, np.zeros(3), position=position).row_keys[np.argsort(position)]
        for position in ([1, 2, 3], [3, 1, 2])
    ]
    np.testing.assert_array_equal(*keys)


def test_several_columns_are_one_context(tmp_path):
    pytest.importorskip("pyarrow")
    frame = FRAME | {"page": ["b", "a", "a", "a"]}
    path = tmp_path / "clicks.csv"
    rows = zip(*frame.values(), strict=True)
    lines = [",".join("" if x is None else str(x) for x in row) for row in rows]
    path.write_text("\n".join([",".join(frame), *lines]))
    names = ["device", "page"]
    for data in (
        rg.QueryDataset.from_frame(frame, position="rank", position_context=names),
        rg.read_table(path, position="rank", position_context=names),
    ):
        assert data.feature_names == ("bm25",)
        assert data.positions.names == ("a", "phone, a", "phone, b")
        assert data.positions.context.tolist() == [2, 1, 0, 0]
    with pytest.raises(rg.DataError, match="no column 'site' for the position_context"):
        rg.QueryDataset.from_frame(frame, position="rank", position_context=["device", "site"])


def test_contexts_are_sorted_by_their_whole_names():
    data = rg.QueryDataset(
        np.ones((2, 1)), [0, 1], [1, 1], position=[1, 2], position_context=[["a", "a!"], ["x", "x"]]
    )
    assert data.positions.names == ("a!, x", "a, x")
    assert data.positions.context.tolist() == [1, 0]
