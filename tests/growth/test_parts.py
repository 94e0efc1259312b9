"""The parts of growth, each against its naive version."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankgrove.data.binning import Binner
from rankgrove.growth import _grower_kernels
from rankgrove.growth._splitting_kernels import OUT_FIELDS
from rankgrove.growth.histogram import BLOCK_BINS, HistogramPool, histogram
from rankgrove.growth.leaves import exact_sums
from rankgrove.growth.quantise import GRADIENT, GRADIENT_BITS, measure, quantise, scale_exponent
from rankgrove.growth.splitting import FeatureDraw, best_split
from tests.reference import tree as naive


def random_codes(rng: np.random.Generator, n: int, width: int) -> np.ndarray:
    codes = rng.integers(0, 256, (n, width)).astype(np.uint8)
    codes[:, : width // 2] %= 3
    return codes


@pytest.mark.parametrize("n", [1, 511, 512, 513, 2000])
@pytest.mark.parametrize("width", [8, 136])
def test_histogram_equals_adding_one_by_one(n: int, width: int) -> None:
    rng = np.random.default_rng(n)
    codes = random_codes(rng, n, width)
    packed = rng.integers(-(2**40), 2**40, (2, n))
    rows = np.sort(rng.permutation(n)[: max(1, n // 2)]).astype(np.int32)
    got = histogram(codes.view(np.uint64), packed, rows)
    for plane in range(2):
        assert (got[plane] == naive.histogram(codes, packed[plane], rows)).all()


def test_sibling_by_subtraction_equals_direct() -> None:
    rng = np.random.default_rng(0)
    codes = random_codes(rng, 3000, 16)
    packed = (rng.integers(-1000, 1000, (1, 3000)) << 32) + 1
    words = codes.view(np.uint64)
    left = rng.random(3000) < 0.3
    parts = [np.flatnonzero(side).astype(np.int32) for side in (left, ~left)]
    whole = histogram(words, packed, np.arange(3000, dtype=np.int32))
    assert (whole - histogram(words, packed, parts[0]) == histogram(words, packed, parts[1])).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["mse", "newton"]),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.5, 8.0]),
    st.booleans(),
)
def test_best_split_equals_trying_all(
    seed: int, split: str, min_leaf: int, l2: float, missing: bool
) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 11))
    X = rng.integers(0, 5, (n, d)).astype(np.float32)
    X[:, 0] += 0.25 * rng.random(n).astype(np.float32)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    g = rng.integers(-1000, 1000, n)
    h = rng.integers(0, 50, n)
    binner = Binner.fit(X)
    if binner.columns.size == 0:
        return
    packed = np.stack([(g << 32) + 1, h] if split == "newton" else [(g << 32) + 1])
    words = binner.transform(X).words
    hist = histogram(words, packed, np.arange(n, dtype=np.int32)).reshape(
        len(packed), words.shape[1], BLOCK_BINS
    )
    n_bins = np.array([t.size + 1 for t in binner.thresholds])
    gains, out = np.empty(words.shape[1]), np.empty((words.shape[1], OUT_FIELDS), np.int64)
    allowed = np.ones(n_bins.size, np.bool_)
    total, weight = int(packed[0].sum()), int(h.sum())
    _grower_kernels.search(hist, n_bins, allowed, total, weight, 1.0, l2, min_leaf, gains, out)
    found = best_split(gains, out, n, 1.0, 0.0)
    expected = naive.best_split(
        X[:, binner.columns],
        [t.tolist() for t in binner.thresholds],
        [Fraction(int(v)) for v in g],
        [Fraction(int(v)) for v in h],
        np.arange(n),
        split=split,
        min_leaf=min_leaf,
        l2=Fraction(l2),
    )
    if expected is None:
        assert found is None
        return
    assert found is not None
    gain, feature, cut, missing_left, any_missing = expected
    assert found.gain == pytest.approx(float(gain), rel=1e-9)
    assert (found.feature, found.bin) == (feature, cut)
    if any_missing:
        assert found.missing_left == missing_left


def test_features_not_allowed_are_not_split() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 10)).astype(np.float32)
    binner = Binner.fit(X)
    words = binner.transform(X).words
    packed = (np.round(X[:, :1].T * 1000).astype(np.int64) << 32) + 1
    hist = histogram(words, packed, np.arange(50, dtype=np.int32)).reshape(1, -1, BLOCK_BINS)
    n_bins = np.array([t.size + 1 for t in binner.thresholds])
    gains, out = np.empty(2), np.empty((2, OUT_FIELDS), np.int64)
    for feature in range(10):
        allowed = np.arange(10) == feature
        _grower_kernels.search(hist, n_bins, allowed, int(packed.sum()), 0, 1.0, 0.0, 1, gains, out)
        found = best_split(gains, out, 50, 1.0, 0.0)
        assert found is not None
        assert found.feature == feature


def test_equal_gradients_gain_exactly_nothing() -> None:
    X = np.arange(97, dtype=np.float32)[:, None]
    binner = Binner.fit(X)
    packed = np.full((1, 97), (12345677 << 32) + 1)
    hist = histogram(binner.transform(X).words, packed, np.arange(97, dtype=np.int32))
    gains, out = np.empty(1), np.empty((1, OUT_FIELDS), np.int64)
    _grower_kernels.search(
        hist.reshape(1, 1, BLOCK_BINS), np.array([97]), np.ones(1, np.bool_),
        int(packed.sum()), 0, 1.0, 0.0, 1, gains, out,
    )  # fmt: skip
    assert gains[0] == 0.0


# -- quantising --------------------------------------------------------------------------------


def quantised(values: np.ndarray, keys: np.ndarray, exponent: int, n_parts: int = 2) -> np.ndarray:
    """Round in steps of ``2**-exponent``."""
    rows = np.arange(values.size, dtype=np.int32)
    out = np.empty(values.size, np.int64)
    total = math.ldexp(2.0**GRADIENT_BITS - 1 - values.size, -exponent)
    assert quantise(GRADIENT, values, total, rows, keys, (7, 3), out, n_parts) == exponent
    return out


def test_whole_multiples_of_the_step_are_exact() -> None:
    values = np.arange(-500, 500) / 8.0
    packed = quantised(values, np.arange(1000, dtype=np.uint64), 3)
    assert (packed >> 32 == values * 8).all()
    assert (packed & 0xFFFFFFFF == 1).all()


def test_rounding_is_fair_and_hangs_on_the_key_alone() -> None:
    n = 200_000
    rng = np.random.default_rng(0)
    values = np.full(n, -2.3)
    keys = rng.permutation(n).astype(np.uint64)
    rounded = quantised(values, keys, 0) >> 32
    assert set(np.unique(rounded)) == {-3, -2}
    assert rounded.mean() == pytest.approx(-2.3, abs=0.005)
    order = rng.permutation(n)
    assert (quantised(values, keys[order], 0, n_parts=1) >> 32 == rounded[order]).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e30, 1e30, allow_subnormal=False), min_size=1, max_size=50))
def test_no_sum_leaves_its_field_and_few_bits_are_wasted(numbers: list[float]) -> None:
    values = np.array(numbers)
    rows = np.arange(values.size, dtype=np.int32)
    found = measure("gradient", values, rows, 2)
    assert found.largest == np.abs(values).max()
    total = float(sum(Fraction(abs(v)) for v in numbers))
    assert found.total >= total
    exponent = scale_exponent(found.total, values.size, GRADIENT_BITS)
    worst = math.ldexp(found.total, exponent) + values.size
    assert worst < 2**GRADIENT_BITS
    if total > 1e-250:
        assert worst > 2 ** (GRADIENT_BITS - 1) * 0.99


# -- leaf sums ---------------------------------------------------------------------------------


def test_leaf_sums_are_exact_in_any_order() -> None:
    rng = np.random.default_rng(1)
    n, n_leaves = 5000, 7
    values = rng.normal(size=n) * 10.0 ** rng.integers(-8, 4, n)
    leaf_of = rng.integers(0, n_leaves, n).astype(np.uint8)
    rows = np.arange(n, dtype=np.int32)
    largest = float(np.abs(values).max())
    one = exact_sums(values, rows, leaf_of, n_leaves, largest, 1)
    order = rng.permutation(n)
    two = exact_sums(values[order], rows, leaf_of[order], n_leaves, largest, 3)
    assert one.units == two.units
    assert one.counts == two.counts == np.bincount(leaf_of).tolist()
    for leaf in range(n_leaves):
        assert one.real(one.units[leaf]) == math.fsum(values[leaf_of == leaf])


def test_leaf_sums_of_huge_tiny_and_no_values() -> None:
    rows = np.arange(3, dtype=np.int32)
    leaf_of = np.zeros(3, np.uint8)
    for values in ([1e300, -1e300, 1e290], [1e-300, 2e-300, 0], [0, 0, 0], [-1, -2, -4.5]):
        array = np.array(values, np.float64)
        sums = exact_sums(array, rows, leaf_of, 1, float(np.abs(array).max()), 2)
        assert sums.real(sums.units[0]) == pytest.approx(math.fsum(values), rel=1e-15)


# -- small things ------------------------------------------------------------------------------


def test_the_pool_is_bounded() -> None:
    pool = HistogramPool(n_blocks=2, planes=1, n_leaves=1000, most_bytes=5 * 2 * 2048 * 8)
    slots = [pool.take() for _ in range(6)]
    assert slots == [0, 1, 2, 3, 4, -1]
    pool.give_back(3)
    assert pool.take() == 3


def test_drawn_features() -> None:
    columns = np.arange(0, 300, 3, dtype=np.int32)
    draw = FeatureDraw(columns, 0.3, seed=5)
    masks = np.array([draw(0, leaf) for leaf in range(200)])
    assert (masks.sum(axis=1) == 30).all()
    assert (masks.mean(axis=0) > 0.15).all()
    assert (masks.mean(axis=0) < 0.45).all()
    assert (draw(0, 3) == masks[3]).all()
    assert (draw(1, 3) != masks[3]).any()
    assert FeatureDraw(columns, 0.001, 0)(0, 0).sum() == 1
