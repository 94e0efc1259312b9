"""Binning: exact thresholds, exact look-up, whatever the values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data import binning
from rankgrove.data.binning import MISSING, Binner
from rankgrove.errors import DataError, ParameterError
from tests.reference.tree import midpoints

LARGEST = np.finfo(np.float32).max
floats = st.floats(width=32, allow_nan=True, allow_infinity=True)


def column(values: object) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def ascending(values: np.ndarray) -> bool:
    return bool((values[1:] > values[:-1]).all())


def check_agrees(binner: Binner, features: np.ndarray, codes: np.ndarray) -> None:
    """Bin <= b exactly where value <= threshold b; NaN in the last bin of the byte."""
    for c, j in enumerate(binner.columns):
        x = features[:, j]
        missing = np.isnan(x)
        assert (codes[missing, c] == MISSING).all()
        for b, threshold in enumerate(binner.thresholds[c]):
            assert ((codes[:, c] <= b) == (x <= threshold))[~missing].all()


def test_few_values_are_all_kept() -> None:
    X = column([3, 1, 2, 2, 10, -4])
    binner = Binner.fit(X)
    assert binner.thresholds[0].tolist() == [-1.5, 1.5, 2.5, 6.5] == midpoints(X[:, 0])
    assert binner.transform(X).codes[:, 0].tolist() == [3, 1, 2, 2, 4, 0]


def test_adjacent_floats_are_separated() -> None:
    for start in (1.0, -1.0, 1e-45, 3e38, -3e38, 0.0, 1e-40, 16777216.0):
        low = np.float32(start)
        values = [low]
        for _ in range(3):
            values.append(np.nextafter(values[-1], np.float32(np.inf)))
        X = column(values)
        binner = Binner.fit(X)
        codes = binner.transform(X).codes[:, 0]
        assert codes.tolist() == [0, 1, 2, 3]
        check_agrees(binner, X, binner.transform(X).codes)


def test_the_two_zeros_are_one_value() -> None:
    X = column([0.0, -0.0, 1.0])
    binner = Binner.fit(X)
    assert binner.thresholds[0].tolist() == [0.5]
    assert Binner.fit(column([0.0, -0.0])).columns.size == 0


@pytest.mark.parametrize(
    ("values", "thresholds"),
    [
        ([-np.inf, np.inf], [0.0]),
        ([-np.inf, 1.0, np.inf], [-LARGEST, LARGEST]),
        ([LARGEST, np.inf], [LARGEST]),
        ([-np.inf, -LARGEST, 0.0], [-LARGEST / 2]),  # no finite number between the first two
        ([-LARGEST, LARGEST], [0.0]),
    ],
)
def test_infinities(values: list[float], thresholds: list[float]) -> None:
    binner = Binner.fit(column(values))
    assert binner.thresholds[0].tolist() == np.array(thresholds, np.float32).tolist()
    assert np.isfinite(binner.thresholds[0]).all()


def test_infinities_stand_alone_among_many_values() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=5000).astype(np.float32)
    values[:3], values[3:5] = np.inf, -np.inf
    X = column(values)
    codes = Binner.fit(X, max_bins=20).transform(X).codes[:, 0]
    assert codes.max() <= 19
    assert np.bincount(codes)[0] == 2
    assert np.bincount(codes)[codes.max()] == 3


def test_constant_and_empty_columns_are_dropped() -> None:
    nan = np.nan
    X = np.array([[1, nan, 5, nan, 0], [1, nan, 5, 2, 1]], np.float32)
    binner = Binner.fit(X)
    assert binner.columns.tolist() == [3, 4]
    assert binner.thresholds[0].size == 0  # one value, or missing
    binned = binner.transform(X)
    assert binned.codes[:, :2].tolist() == [[MISSING, 0], [0, 1]]
    assert binned.codes.shape == (2, 8)
    assert not binned.codes[:, 2:].any()
    assert binned.words.shape == (2, 1)


def test_dominated_columns_stand_first() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 4)).astype(np.float32)
    X[:300, 2] = 0
    X[:400, 1] = np.nan
    X[:200, 0] = 5
    assert Binner.fit(X).columns.tolist() == [1, 2, 0, 3]


def test_all_columns_constant() -> None:
    X = np.ones((3, 2), np.float32)
    binned = Binner.fit(X).transform(X)
    assert binned.codes.shape == (3, 0)
    assert binned.n_kept == 0


@pytest.mark.parametrize("max_bins", [2, 16, 255])
def test_quantiles_are_even(max_bins: int) -> None:
    rng = np.random.default_rng(1)
    X = column(rng.normal(size=20_000))
    counts = np.bincount(Binner.fit(X, max_bins=max_bins).transform(X).codes[:, 0])
    assert counts.size == max_bins
    assert counts.min() > 0.8 * counts.mean()
    assert counts.max() < 1.2 * counts.mean()


@pytest.mark.parametrize("dominant", [-9.0, 0.0, 9.0])
def test_a_dominant_value_does_not_eat_the_bins(dominant: float) -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=30_000)
    values[:20_000] = dominant
    X = column(values)
    counts = np.bincount(Binner.fit(X, max_bins=100).transform(X).codes[:, 0])
    assert counts.max() < 20_200
    assert 97 <= counts.size <= 100
    assert np.sort(counts)[-2] < 3 * 10_000 / 99


def test_transform_of_unseen_values_agrees_with_the_thresholds() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 11)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    binner = Binner.fit(X)
    new = (3 * rng.normal(size=(2000, 11))).astype(np.float32)
    new[rng.random(new.shape) < 0.05] = np.nan
    new[rng.random(new.shape) < 0.02] = np.inf
    new[rng.random(new.shape) < 0.02] = -np.inf
    new[:200, binner.columns[1]] = binner.thresholds[1][:200]
    check_agrees(binner, new, binner.transform(new).codes)


@settings(max_examples=150, deadline=None)
@given(st.lists(floats, min_size=1, max_size=40), st.lists(floats, max_size=10))
def test_any_floats(values: list[float], others: list[float]) -> None:
    X = column(values)
    binner = Binner.fit(X)
    distinct = np.unique(X[~np.isnan(X)])
    lost = np.isin([-np.inf, -LARGEST], distinct).all()  # no finite number between these
    if binner.columns.size:
        assert binner.thresholds[0].size == distinct.size - 1 - lost
        assert np.isfinite(binner.thresholds[0]).all()
        assert ascending(binner.thresholds[0])
    for data in (X, column([*values, *others])):
        check_agrees(binner, data, binner.transform(data).codes)


@settings(max_examples=60, deadline=None)
@given(st.lists(floats, min_size=1, max_size=60), st.integers(2, 6))
def test_any_floats_in_few_bins(values: list[float], max_bins: int) -> None:
    X = column(values)
    binner = Binner.fit(X, max_bins=max_bins)
    for thresholds in binner.thresholds:
        assert thresholds.size <= max_bins - 1
        assert ascending(thresholds)
    check_agrees(binner, X, binner.transform(X).codes)


def test_rows_threads_and_order_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(4000, 9)) * 300).astype(np.float32)
    rows = rng.permutation(4000)[:3000]
    one = Binner.fit(X, rows=rows, n_threads=1)
    two = Binner.fit(np.ascontiguousarray(X[np.sort(rows)]), n_threads=2)
    assert all((a == b).all() for a, b in zip(one.thresholds, two.thresholds, strict=True))
    codes = one.transform(X, n_threads=2).codes
    assert (one.transform(X, rows=rows, n_threads=1).codes == codes[rows]).all()
    assert (one.transform(X, rows=slice(10, 500)).codes == codes[10:500]).all()
    assert (one.transform(X).by_column() == codes[:, :9].T).all()


def test_sparse_equals_dense() -> None:
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(9000, 20)) * 500).astype(np.float32)
    X[rng.random(X.shape) < 0.8] = 0
    X[rng.random(X.shape) < 0.01] = np.nan
    X[:, 4] = 0
    X[:, 5] = np.abs(X[:, 5])
    X[:, 6] = -np.abs(X[:, 6])
    sparse = scipy.sparse.csr_matrix(X)
    dense_binner, sparse_binner = Binner.fit(X), Binner.fit(sparse)
    assert dense_binner.columns.tolist() == sparse_binner.columns.tolist()
    for a, b in zip(dense_binner.thresholds, sparse_binner.thresholds, strict=True):
        assert (a == b).all()
    rows = rng.permutation(9000)[:8500]
    assert (dense_binner.transform(X).codes == sparse_binner.transform(sparse).codes).all()
    a = dense_binner.transform(X, rows=rows).codes
    assert (a == sparse_binner.transform(sparse, rows=rows).codes).all()
    c = Binner.fit(sparse, rows=rows).thresholds[0]
    assert (c == Binner.fit(X, rows=rows).thresholds[0]).all()


def test_bad_input_is_refused() -> None:
    X = np.zeros((3, 2), np.float32)
    with pytest.raises(ParameterError, match="max_bins"):
        Binner.fit(X, max_bins=256)
    with pytest.raises(DataError, match="3 features"):
        Binner.fit(X).transform(np.zeros((3, 3), np.float32))
    with pytest.raises(DataError, match="Rows"):
        Binner.fit(X, rows=np.array([3]))


def test_columns_that_store_nothing_cost_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    n_features = 1_000_000
    columns = np.sort(rng.choice(n_features, 30, replace=False))
    dense = np.where(rng.random((200, 30)) < 0.3, rng.integers(-2, 5, (200, 30)), 0).astype("f4")
    dense[0, :3] = np.nan
    small = scipy.sparse.csr_matrix(dense)
    wide = scipy.sparse.csr_matrix(
        (small.data, columns[small.indices].astype(np.int32), small.indptr), (200, n_features)
    )
    seen = []
    monkeypatch.setattr(binning, "_fit_by_groups", _counting(binning._fit_by_groups, seen))
    binner, expected = Binner.fit(wide), Binner.fit(dense)
    assert sum(seen) <= 2 * 30
    np.testing.assert_array_equal(binner.columns, columns[expected.columns])
    for one, other in zip(binner.thresholds, expected.thresholds, strict=True):
        np.testing.assert_array_equal(one, other)
    rows = rng.permutation(200)[:77]
    codes = binner.transform(wide, rows).codes
    np.testing.assert_array_equal(codes, expected.transform(dense, rows).codes)


def _counting(real, seen):
    def counting(*arguments):
        for first, thresholds, summary in real(*arguments):
            seen.append(len(summary))
            yield first, thresholds, summary

    return counting


def test_too_many_columns_are_refused_at_once(monkeypatch):
    monkeypatch.setattr(binning, "MOST_SPARSE_COLUMNS", 10)
    wide = scipy.sparse.csr_matrix(np.eye(11, 100_000, dtype=np.float32))
    with pytest.raises(rg.DataError, match=r"at most 10 features that are not 0.*has 11"):
        Binner.fit(wide)
    data = rg.QueryDataset(wide, np.arange(11) % 2, np.zeros(11))
    with pytest.raises(rg.DataError, match="Drop the rarest"):
        rg.LambdaMART(n_trees=1).fit(data)
