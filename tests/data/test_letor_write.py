"""What is written reads back the same."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rankgrove as rg
from rankgrove.data import letor_write
from tests.data.test_letor import dense, same_bits

blank = " \t\v\f"
words = st.text(
    st.characters(codec="utf-8", exclude_characters="#", exclude_categories=["Cc", "Zs", "Cs"]),
    min_size=1,
    max_size=6,
)
# A document id with blanks is written as the whole comment; it may even hold '#'.
docids = st.one_of(
    st.just(""), words, st.sampled_from(["docid", "docid=x", "=", "# 7", "a#b", "x docid y", "a b"])
)


@st.composite
def datasets(draw) -> rg.QueryDataset:
    n = draw(st.integers(1, 12))
    width = draw(st.integers(0, 5))
    X = draw(hnp.arrays(np.float32, (n, width), elements=st.floats(width=32)))
    if draw(st.booleans()):
        X = np.where(draw(hnp.arrays(bool, (n, width))), X, np.float32(0))
    y = draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=n, max_size=n))
    if draw(st.booleans()):
        qid = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n))
    else:
        qid = ["q" + draw(words) for _ in range(n)]
    docid = [draw(docids) for _ in range(n)] if draw(st.booleans()) else None
    given = scipy.sparse.csr_matrix(X) if draw(st.booleans()) else X
    return rg.QueryDataset(given, y, np.array(qid), docid=docid)


def assert_same(a: rg.QueryDataset, b: rg.QueryDataset) -> None:
    assert same_bits(dense(a), dense(b))
    assert a.y.tolist() == b.y.tolist()
    assert a.query_ids.tolist() == b.query_ids.tolist()
    assert a.query_of_row.tolist() == b.query_of_row.tolist()
    documents = None if a.docid is None or not any(a.docid) else a.docid.tolist()
    assert documents == (None if b.docid is None else b.docid.tolist())


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=datasets(), zeros=st.booleans(), name=st.sampled_from(["d.txt", "d.gz"]))
def test_round_trip(tmp_path, data, zeros, name):
    rg.write_letor(data, tmp_path / name, zeros=zeros)
    assert_same(data, rg.read_letor(tmp_path / name, sparse=data.is_sparse))
    assert os.listdir(tmp_path) in (["d.txt"], ["d.gz"], ["d.txt", "d.gz"], ["d.gz", "d.txt"])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_blocks_parts_and_views(tmp_path, monkeypatch, sparse, zeros):
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 4, (5000, 30)) * rng.random((5000, 30))).astype(np.float32)
    qid = rng.integers(0, 40, 5000)
    data = rg.QueryDataset(scipy.sparse.csr_matrix(X) if sparse else X, qid % 3, qid)
    path = tmp_path / "d.txt"
    rg.write_letor(data, path, zeros=zeros)
    whole = path.read_bytes()
    assert_same(data, rg.read_letor(path, sparse=sparse))
    monkeypatch.setattr(letor_write, "_BLOCK_BYTES", 50_000)
    rg.write_letor(data, path, zeros=zeros, n_threads=1)
    assert path.read_bytes() == whole
    for part in (data.select([3, 1, 7]), data.select([0, 1, 2])):
        rg.write_letor(part, path, zeros=zeros)
        assert_same(part, rg.read_letor(path, sparse=sparse))


def test_adjacent_view(tmp_path):
    data = rg.QueryDataset(np.arange(12.0).reshape(6, 2), np.zeros(6), [1, 1, 2, 2, 3, 3])
    rg.write_letor(data.select([1, 2]), tmp_path / "d")
    assert rg.read_letor(tmp_path / "d").X.tolist() == [[4, 5], [6, 7], [8, 9], [10, 11]]


def test_text_as_promised(tmp_path):
    X = [[0, 0.25, 0], [1, 0, np.nan]]
    data = rg.QueryDataset(X, [0, 2.5], [7, 7], docid=["a", "b c"], weight=[1, 2])
    rg.write_letor(data, tmp_path / "d", zeros=False)
    text = "0 qid:7 2:0.25 3:0 #docid = a\n2.5 qid:7 1:1 3:nan #b c\n"
    assert (tmp_path / "d").read_text() == text
    rg.write_letor(data, tmp_path / "d.gz", zeros=True)
    first = (tmp_path / "d.gz").read_bytes()
    rg.write_letor(data, tmp_path / "d.gz", zeros=True)
    assert (tmp_path / "d.gz").read_bytes() == first
    assert gzip.decompress(first).startswith(b"0 qid:7 1:0 2:0.25 3:0 #docid = a\n")


@pytest.mark.parametrize("docid", ["a\nb", " a", "a\r", "a\0", "x docid = y"])
def test_impossible_docids(tmp_path, docid):
    data = rg.QueryDataset([[1]], [1], [1], docid=[docid])
    with pytest.raises(rg.DataError, match="cannot be written to a LETOR file"):
        rg.write_letor(data, tmp_path / "d")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("qid", ["a b", "", "a#", "\n", "a\0b"])
def test_impossible_qids(tmp_path, qid):
    data = rg.QueryDataset([[1]], [1], np.array([qid], object))
    with pytest.raises(rg.DataError, match="cannot be written to a LETOR file"):
        rg.write_letor(data, tmp_path / "d")


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    data = rg.QueryDataset([[1]], [1], [1])
    path = tmp_path / "d.txt"
    path.write_text("old")

    def fails(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(letor_write.kernels, "write_part", fails)
    with pytest.raises(KeyboardInterrupt):
        rg.write_letor(data, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["d.txt"]


def test_where_and_what_is_checked(tmp_path):
    data = rg.QueryDataset([[1]], [1], [1])
    with pytest.raises(rg.DataError, match="cannot be written"):
        rg.write_letor(data, tmp_path / "no" / "d")
    with pytest.raises(rg.DataError, match="is a folder"):
        rg.write_letor(data, tmp_path)
    with pytest.raises(rg.ParameterError, match="'dataset' parameter"):
        rg.write_letor([[1]], tmp_path / "d")


def test_peers_read_what_is_written(tmp_path):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 7)).astype(np.float32)
    X[X < -0.5] = 0
    data = rg.QueryDataset(X, rng.integers(0, 3, 50), np.repeat([5, 3], 25), docid=range(50))
    rg.write_letor(data, tmp_path / "d")
    theirs, y, qid = load_svmlight_file(str(tmp_path / "d"), query_id=True, zero_based=False)
    assert np.array_equal(theirs.toarray().astype(np.float32), X)
    assert np.array_equal(y, data.y)
    assert np.array_equal(qid, data.qid)
