"""Features that share a byte of the rows: the same histograms, and the same trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.growth import shared_bytes
from rankgrove.growth.grower import Grower
from rankgrove.growth.shared_bytes import SharedBytes


def data_of_few_bins(rng: np.random.Generator, n: int) -> np.ndarray:
    """Features of few values, copies, features that are hardly ever set together, others."""
    few = rng.integers(0, rng.integers(2, 6, 8), (n, 8)).astype(np.float32)
    few[rng.random(few.shape) < 0.02] = np.nan
    alone = np.zeros((n, 12), np.float32)
    alone[np.arange(n), rng.integers(0, 12, n)] = rng.integers(1, 20, n)
    dense = rng.normal(size=(n, 3)).astype(np.float32)
    copies = np.stack([few[:, 0], -few[:, 1], np.exp(dense[:, 0]), dense[:, 1]], axis=1)
    X = np.hstack([few, alone, dense, copies])
    return np.asarray(X[:, rng.permutation(X.shape[1])])


def binned_of(X: np.ndarray) -> BinnedMatrix:
    return Binner.fit(X).transform(X)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_tables_give_back_the_bins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    binned = binned_of(data_of_few_bins(rng, int(rng.integers(30, 3000))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_bytes, "LEAST_ROWS", 0)
        shared = SharedBytes.of(binned, 1)
    codes = shared.words.view(np.uint8)
    byte_of, table_of, tables = shared.places
    for feature in range(binned.n_kept):
        byte = codes[:, byte_of[feature]]
        bins = byte if table_of[feature] < 0 else tables[table_of[feature]][byte]
        assert (bins == binned.codes[:, feature]).all()


def test_features_of_few_bins_copies_and_separate_ones_share_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_bytes, "LEAST_ROWS", 0)
    binned = binned_of(data_of_few_bins(np.random.default_rng(0), 3000))
    assert binned.n_kept == 27
    # 3 for the dense features, whose copies cost nothing; the others share a few bytes
    assert SharedBytes.of(binned).n_bytes <= 8


def test_too_many_combinations_are_found_in_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the sample two features are never set together, elsewhere always."""
    monkeypatch.setattr(shared_bytes, "LEAST_ROWS", 0)
    monkeypatch.setattr(shared_bytes, "SAMPLE_ROWS", 100)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, (4000, 9)).astype(np.float32)
    X[::40] = 0
    X[::40, 0] = rng.integers(0, 60, 100)
    binned = binned_of(X)
    shared = SharedBytes.of(binned)
    assert shared.n_bytes == 9
    assert shared.words is not None


def test_few_rows_are_not_searched() -> None:
    binned = binned_of(data_of_few_bins(np.random.default_rng(0), 500))
    assert SharedBytes.of(binned).words.ctypes.data == binned.words.ctypes.data


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("rules", [{"split": "newton"}, {"split": "mse", "growth": "symmetric"}])
def test_trees_do_not_depend_on_it(
    rules: dict[str, str], n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    binned = binned_of(data_of_few_bins(rng, 40_000))
    gradient, hessian = rng.normal(size=40_000), rng.random(40_000)
    made = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(shared_bytes, "LEAST_ROWS", least)
        grower = Grower(binned, n_leaves=16, n_threads=n_threads, **rules)
        assert (grower._rows._content.words.shape[1] < binned.words.shape[1]) == (least == 0)
        made.append(grower.grow(gradient, hessian))
    (first, leaves), (second, others) = made
    assert (leaves == others).all()
    for name in ("feature", "threshold", "missing_left", "left", "right", "value"):
        assert (getattr(first, name) == getattr(second, name)).all()
