"""Values on disk are those of the matrix, and their bins those of `Binner`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from rankgrove.data.binning import Binner
from rankgrove.data.category_bins import Target
from rankgrove.data.queries import QueryDataset
from rankgrove.data.row_blocks import RowFacts
from rankgrove.data.spill import Spill
from rankgrove.data.spill_bins import SpilledRows

VALUES = np.array([0, -0.0, 1, 2, 3.5, -7, np.nan, np.inf, -np.inf, 1e-40], np.float32)


def matrix(seed: int, n_rows: int, n_features: int, hole: float) -> np.ndarray:
    """Columns of every kind: full, mostly holes, constant, missing."""
    rng = np.random.default_rng(seed)
    X = rng.choice(VALUES, (n_rows, n_features))
    X[:, ::3] = rng.normal(size=X[:, ::3].shape).astype(np.float32)
    X[:, 1::4] = np.where(rng.random(X[:, 1::4].shape) < 0.9, np.float32(hole), X[:, 1::4])
    X[:, 2::7] = np.float32(hole)
    X[:, 3::7] = np.nan
    return X


def add(spill: Spill, X: np.ndarray, borders: list[int], is_sparse: list[bool]) -> None:
    for (start, end), sparse in zip(itertools.pairwise(borders), is_sparse, strict=False):
        block = X[start:end]
        spill.add(scipy.sparse.csr_matrix(block) if sparse and spill.hole == 0.0 else block)


@settings(max_examples=40)
@given(
    st.integers(0, 1 << 20),
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.integers(1, 23),
    st.sampled_from([0.0, float("nan")]),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.sampled_from([2, 5, 255]),
    st.sampled_from([1 << 10, 1 << 20]),
)
def test_columns_thresholds_and_bins(
    tmp_path_factory, seed, sizes, n_features, hole, is_sparse, max_bins, memory
):
    folder = tmp_path_factory.mktemp("spill")
    borders = np.cumsum([0, *sizes]).tolist()
    X = matrix(seed, borders[-1], n_features, hole)
    with Spill(folder / "values", hole) as spill:
        add(spill, X, borders, is_sparse)
        check(folder, spill, X, seed, max_bins, memory)
    assert not (folder / "values").exists()


def check(folder, spill: Spill, X: np.ndarray, seed: int, max_bins: int, memory: int) -> None:
    n_features = X.shape[1]
    for column in range(n_features):
        found = spill.column(column)
        # a CSR matrix keeps no zero's sign
        assert np.array_equal(found, X[:, column], equal_nan=True)
    n = len(X)
    queries = np.random.default_rng(seed).integers(0, 3, n)
    ids, query_of_row = np.unique(queries, return_inverse=True)
    y = np.arange(n) % 3.0
    bare = QueryDataset.from_parts(np.empty((0, n_features), np.float32), y, ids, query_of_row)
    rows = SpilledRows(spill, RowFacts(n_features, ids), bare)
    binner, has_nan = rows.fit(max_bins, memory, lambda done, total: None)
    expected = Binner.fit(X, None, max_bins)
    assert has_nan == np.isnan(X).any()
    assert binner.columns.tolist() == expected.columns.tolist()
    for one, other in zip(binner.thresholds, expected.thresholds, strict=True):
        assert one.tobytes() == other.tobytes()
    if not binner.columns.size:
        return
    codes, columns = folder / "codes", folder / "columns"
    _, _, missing = rows.write_bins(binner, codes, columns, lambda *_: None, of_training=True)
    wanted = expected.transform(X, bare.order)
    assert codes.read_bytes() == wanted.codes.tobytes()
    assert columns.read_bytes() == wanted.by_column().tobytes()
    assert missing == wanted.has_missing


@pytest.mark.parametrize("n_codes", [5, 900])
def test_categories(tmp_path, n_codes):
    rng = np.random.default_rng(n_codes)
    n = 4000
    X = np.column_stack([rng.integers(0, n_codes, n), rng.normal(size=n)]).astype(np.float32)
    X[::50, 0] = np.nan
    data = QueryDataset(X, X[:, 1] > 0, rng.integers(0, 100, n), categorical=[1])
    with Spill(tmp_path / "values", 0.0) as spill:
        add(spill, X, [0, 1500, 1501, n], [False, True, True])
        rows = SpilledRows(spill, RowFacts(2, data.query_ids), data.without_features())
        check_categories(tmp_path, rows, data, n_codes > 254)


def check_categories(folder, rows: SpilledRows, data: QueryDataset, has_ordered: bool) -> None:
    binner, _ = rows.fit(255, 1 << 20, lambda *_: None)
    target = Target.of(data)
    expected = Binner.fit(data.X, data.order, categorical=data.categories, target=target)
    assert binner.has_ordered == expected.has_ordered == has_ordered
    assert [a.tobytes() for a in binner.content()] == [a.tobytes() for a in expected.content()]
    for of_training in (True, False):
        codes, columns = folder / f"codes{of_training}", folder / f"columns{of_training}"
        rows.write_bins(binner, codes, columns, lambda *_: None, of_training=of_training)
        wanted = expected.transform(data.X, data.order)
        if of_training:
            wanted = expected.transform_training(data)
        assert codes.read_bytes() == wanted.codes.tobytes()
