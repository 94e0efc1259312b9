"""Keys of rows: of what they hold, whatever their order and form."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

import rankgrove as rg


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 5)) < 0.5, rng.integers(-2, 3, (60, 5)), 0).astype(np.float32)
    X[0, 0] = np.nan
    y = rng.integers(0, 3, 60).astype(float)
    return rg.QueryDataset(X, y, np.arange(60) % 7)


def by_row(data):
    """The keys in the caller's order."""
    return data.ungrouped(data.row_keys)


def test_the_order_of_rows_changes_no_key(data):
    rows = np.random.default_rng(1).permutation(data.n_rows)
    other = rg.QueryDataset(data.X[rows], data.y[rows], data.qid[rows])
    assert np.array_equal(np.sort(other.row_keys), np.sort(data.row_keys))
    alone = np.flatnonzero([_count_like(data, i) == 1 for i in rows])
    assert alone.size > 30
    assert np.array_equal(by_row(other)[alone], by_row(data)[rows[alone]])


def _count_like(data, i):
    same = (data.qid == data.qid[i]) & (data.y == data.y[i])
    return int((same & [np.array_equal(x, data.X[i], equal_nan=True) for x in data.X]).sum())


def test_dense_and_sparse_and_selected_data_have_the_same_keys(data):
    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(data.X), data.y, data.qid)
    assert np.array_equal(sparse.row_keys, data.row_keys)
    negative = np.where(data.X == 0, np.float32(-0.0), data.X)
    assert np.array_equal(rg.QueryDataset(negative, data.y, data.qid).row_keys, data.row_keys)
    chosen = np.array([5, 0, 3])
    expected = np.concatenate(
        [data.row_keys[data.query_ptr[q] : data.query_ptr[q + 1]] for q in chosen]
    )
    bare = data.without_features()
    for one in (data.select(chosen), sparse.select(chosen), bare.select(chosen)):
        assert np.array_equal(one.row_keys, expected)
    assert np.array_equal(bare.row_keys, data.row_keys)
    assert np.array_equal(pickle.loads(pickle.dumps(bare)).row_keys, data.row_keys)


@pytest.mark.parametrize("what", ["feature", "query"])
def test_query_and_features_have_a_part(data, what):
    X, y, qid = np.array(data.X), np.array(data.y), np.array(data.qid)
    before = by_row(rg.QueryDataset(X, y, qid))
    if what == "feature":
        X[7, 4] += 1
    else:
        qid[7] = 99
    after = by_row(rg.QueryDataset(X, y, qid))
    assert after[7] != before[7]
    assert np.count_nonzero(after != before) <= 3  # and its twins, which count on


@pytest.mark.parametrize("column", ["y", "weight", "base_score"])
def test_twins_are_told_apart_by_label_weight_and_base_score(column):
    X, values = np.ones((5, 2)), np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    qid, labels = [1, 1, 1, 2, 2], {"y": np.ones(5)}
    keys = rg.QueryDataset(X, qid=qid, **labels | {column: values}).row_keys
    turned = rg.QueryDataset(X, qid=qid[::-1], **labels | {column: 7 * values[::-1]})
    assert np.array_equal(by_row(turned)[::-1], keys)  # whatever the scale


def test_twins_have_keys_of_their_own():
    data = rg.QueryDataset(np.ones((6, 2)), np.ones(6), [1, 1, 1, 2, 2, 2])
    assert np.unique(data.row_keys).size == 6
