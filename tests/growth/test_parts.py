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
from rankgrove.growth._histogram_kernels import STRIDE, accumulate
from rankgrove.growth._splitting_kernels import OUT_FIELDS, SearchRules
from rankgrove.growth.constraints import NO_BOUNDS, NO_SIGNS
from rankgrove.growth.histogram import (
    BLOCK_BINS,
    CommonWords,
    HistogramPool,
    histogram,
    room_for_parts,
)
from rankgrove.growth.leaves import ExactSums, add_leaf_values, leaf_sums
from rankgrove.growth.quantise import GRADIENT_BITS, Layout, measure, quantise, scale_exponent
from rankgrove.growth.splitting import CategoryRules, FeatureDraw, Split, best_split
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
    packed = rng.integers(-(2**40), 2**40, n)
    rows = np.sort(rng.permutation(n)[: max(1, n // 2)]).astype(np.int32)
    got = histogram(codes, packed, rows)
    assert (got[0] == naive.histogram(codes, packed, rows)).all()


@pytest.mark.parametrize("n", [1, 1000, 140_000])
@pytest.mark.parametrize("large", ["count", "gradient", "hessian"])
def test_histogram_of_two_planes_has_room_for_all_rows(n: int, large: str) -> None:
    rng = np.random.default_rng(n)
    codes = random_codes(rng, n, 8)
    layout = Layout.of("newton", 1 << 21)
    assert layout.planes == 2
    assert layout.hessian is not None
    most = layout.gradient.most_of_row
    most_hessian = layout.hessian.most_of_row
    assert most is not None
    assert most_hessian is not None
    gradient = rng.choice([-most, most], n) if large == "gradient" else rng.integers(-9, 9, n)
    if large == "gradient" and n > 1000:
        gradient[: n // 2] = -most  # the sum of a field goes to its end
    hessian = np.full(n, most_hessian) if large == "hessian" else rng.integers(0, 9, n)
    packed = (gradient << layout.gradient.shift) + (hessian << layout.hessian.shift) + 1
    rows = np.arange(n, dtype=np.int32)
    got = histogram(codes, packed, rows, planes=2)
    assert (got[0] == naive.histogram(codes, (gradient << 32) + 1, rows)).all()
    assert (got[1] == naive.histogram(codes, hessian, rows)).all()


def test_sibling_by_subtraction_equals_direct() -> None:
    rng = np.random.default_rng(0)
    codes = random_codes(rng, 3000, 16)
    packed = (rng.integers(-1000, 1000, 3000) << 32) + 1
    left = rng.random(3000) < 0.3
    parts = [np.flatnonzero(side).astype(np.int32) for side in (left, ~left)]
    whole = histogram(codes, packed, np.arange(3000, dtype=np.int32))
    assert (whole - histogram(codes, packed, parts[0]) == histogram(codes, packed, parts[1])).all()


@pytest.mark.parametrize("n_features", range(9, 17))
def test_padding_is_not_counted(n_features: int) -> None:
    rng = np.random.default_rng(3)
    codes = random_codes(rng, 2000, 16)
    codes[:, n_features:] = 0
    words, common = codes.view(np.uint64), CommonWords.of(codes, n_features)
    packed = rng.integers(-(2**40), 2**40, 2000)
    rows = np.flatnonzero(rng.random(2000) < 0.6).astype(np.int32)
    parts, narrow = room_for_parts(1, 1, 2)
    parts[:] = 99
    accumulate(words, common.words, common.how, packed, rows, parts[0], narrow[0])
    got = parts[0].reshape(16, STRIDE)[:n_features, :256]
    assert (got == naive.histogram(codes, packed, rows)[:n_features]).all()


@pytest.mark.parametrize("share", [0.0, 0.35, 0.9, 1.0])
def test_passing_over_common_words_changes_nothing(share: float) -> None:
    rng = np.random.default_rng(2)
    codes = random_codes(rng, 3000, 24)
    codes[rng.random(3000) < share, :16] = 7
    packed = rng.integers(-(2**40), 2**40, 3000)
    common = -1 if share > 0.3 else 8
    assert CommonWords.of(codes, 24).how.tolist() == [common, common, 8]
    rows = np.flatnonzero(rng.random(3000) < 0.7).astype(np.int32)
    got = histogram(codes, packed, rows)
    assert (got[0] == naive.histogram(codes, packed, rows)).all()


def search(
    binner: Binner,
    X: np.ndarray,
    packed: np.ndarray,
    weight: int,
    *,
    l2: float = 0.0,
    min_leaf: int = 1,
    min_gain: float = 0.0,
    allowed: np.ndarray | None = None,
    layout: Layout | None = None,
    signs: np.ndarray = NO_SIGNS,
    bounds: tuple[float, float] | None = None,
) -> Split | None:
    """The best split of all rows."""
    layout = layout or Layout.of("mse", len(X))
    codes = binner.transform(X).codes
    n_blocks = codes.shape[1] // 8
    rows = np.arange(len(X), dtype=np.int32)
    hist = histogram(codes, packed, rows, layout.planes)
    hist = hist.reshape(layout.planes, n_blocks, BLOCK_BINS)
    n_bins = np.array([t.size + 1 for t in binner.thresholds])
    if allowed is None:
        allowed = np.ones(n_bins.size, np.bool_)
    gains, out = np.empty((1, n_blocks)), np.empty((1, n_blocks, OUT_FIELDS), np.int64)
    total, _ = layout.unpack([int(plane[0, :256].sum()) for plane in hist])
    rules = SearchRules(
        n_bins=n_bins,
        columns=binner.columns,
        allowed=np.stack([allowed]),
        totals=np.array([total]),
        weights=np.array([weight]),
        step=1.0,
        l2=l2,
        min_leaf=min_leaf,
        count_bits=layout.count_bits,
        hessian_bits=layout.hessian_bits,
        is_categorical=binner.splits_by_set,
        category=CategoryRules().numbers(0.0),
        signs=signs,
        bounds=NO_BOUNDS if bounds is None else np.array([bounds]),
    )
    _grower_kernels.search_leaf(hist, 0, rules, gains, out)
    return best_split(gains[0], out[0], binner.columns, len(X), 1.0, min_gain)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([("mse", 100), ("newton", 100), ("newton", 1 << 21)]),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.5, 8.0]),
    st.booleans(),
)
def test_best_split_equals_trying_all(
    seed: int, form: tuple[str, int], min_leaf: int, l2: float, missing: bool
) -> None:
    # few rows have three sums in one plane, many rows (as it is told) two planes
    split, layout = form[0], Layout.of(*form)
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
    packed = (g << layout.gradient.shift) + 1
    if layout.hessian is not None:
        packed += h << layout.hessian.shift
    found = search(binner, X, packed, int(h.sum()), l2=l2, min_leaf=min_leaf, layout=layout)
    thresholds: list[list[float]] = [[] for _ in range(d)]
    for column, values in zip(binner.columns, binner.thresholds, strict=True):
        thresholds[column] = values.tolist()
    expected = naive.best_split(
        X,
        thresholds,
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
    assert (binner.columns[found.feature], found.bin) == (feature, cut)
    if any_missing:
        assert found.missing_left == missing_left


def test_features_not_allowed_are_not_split() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 10)).astype(np.float32)
    binner = Binner.fit(X)
    packed = (np.round(X[:, 0] * 1000).astype(np.int64) << 32) + 1
    for feature in range(10):
        found = search(binner, X, packed, 0, allowed=np.arange(10) == feature)
        assert found is not None
        assert found.feature == feature


def test_of_equal_features_the_lowest_column_wins() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    high = x > np.median(x)
    X = np.repeat(x[:, None], 30, axis=1).astype(np.float32)
    X[~high, 20:] = -9.0  # these stand first in the binned matrix, and divide the rows as well
    packed = np.where(high, 1000 << 32, 0) + 1
    binner = Binner.fit(X)
    found = search(binner, X, packed, 0)
    assert found is not None
    assert binner.columns[0] == 20
    assert binner.columns[found.feature] == 0


def test_equal_gradients_gain_exactly_nothing() -> None:
    X = np.arange(97, dtype=np.float32)[:, None]
    packed = np.full(97, (12345677 << 32) + 1)
    assert search(Binner.fit(X), X, packed, 0, min_gain=-1e-300).gain == 0.0  # type: ignore[union-attr]
    assert search(Binner.fit(X), X, packed, 0) is None


# -- quantising --------------------------------------------------------------------------------


def quantised(values: np.ndarray, keys: np.ndarray, exponent: int, n_parts: int = 2) -> np.ndarray:
    """Round in steps of ``2**-exponent``."""
    rows = np.arange(values.size, dtype=np.int32)
    out = np.empty(values.size, np.int64)
    quantise(Layout.of("mse", 9).gradient, values, exponent, rows, keys, (7, 3), out, n_parts)
    return out


def test_the_scale_is_the_largest_that_has_room() -> None:
    total = math.ldexp(2.0**GRADIENT_BITS - 1 - 1000, -3)
    assert scale_exponent(total, 1000, GRADIENT_BITS) == 3
    assert scale_exponent(math.nextafter(total, math.inf), 1000, GRADIENT_BITS) == 2


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
    if total > 1e-130:
        assert worst > 2 ** (GRADIENT_BITS - 1) * 0.99


# -- leaf sums ---------------------------------------------------------------------------------


def exact_sums(values, leaf_of, n_leaves, n_parts) -> ExactSums:
    """Return the sums of all values by leaf."""
    rows, largest = np.arange(values.size, dtype=np.int32), float(np.abs(values).max())
    sums = leaf_sums(values, rows, leaf_of, n_leaves, rows.size, largest, n_parts)
    return ExactSums.of(sums, rows.size, largest)


def test_leaf_sums_are_exact_in_any_order() -> None:
    rng = np.random.default_rng(1)
    n, n_leaves = 5000, 7
    values = rng.normal(size=n) * 10.0 ** rng.integers(-8, 4, n)
    leaf_of = rng.integers(0, n_leaves, n).astype(np.uint8)
    one = exact_sums(values, leaf_of, n_leaves, 1)
    order = rng.permutation(n)
    two = exact_sums(values[order], leaf_of[order], n_leaves, 3)
    assert one.units == two.units
    assert one.counts == two.counts == np.bincount(leaf_of).tolist()
    for leaf in range(n_leaves):
        assert one.real(one.units[leaf]) == math.fsum(values[leaf_of == leaf])


def test_leaf_sums_of_huge_tiny_and_no_values() -> None:
    leaf_of = np.zeros(3, np.uint8)
    for values in ([1e300, -1e300, 1e290], [1e-300, 2e-300, 0], [0, 0, 0], [-1, -2, -4.5]):
        array = np.array(values, np.float64)
        sums = exact_sums(array, leaf_of, 1, 2)
        assert sums.real(sums.units[0]) == pytest.approx(math.fsum(values), rel=1e-15)


@pytest.mark.parametrize("n", [0, 3, 50_000])
def test_leaf_values_are_added_in_place(n: int) -> None:
    rng = np.random.default_rng(3)
    scores, values = rng.normal(size=n), rng.normal(size=300)
    leaf_of = rng.integers(0, 300, n).astype(np.uint16)
    expected = scores + values[leaf_of]
    add_leaf_values(scores, values, leaf_of)
    assert np.array_equal(scores, expected)


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


@pytest.mark.parametrize("n_rows", [100, 1 << 21])
def test_sums_of_all_layouts_are_unpacked(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    g, h = rng.integers(-500, 500, 1000), rng.integers(0, 90, 1000)
    for split in ("mse", "newton"):
        layout = Layout.of(split, n_rows)
        packed = (g << layout.gradient.shift) + 1
        if layout.hessian is not None:
            packed += h << layout.hessian.shift
        codes = np.zeros((1000, 8), np.uint8)
        hist = histogram(codes, packed, np.arange(1000, dtype=np.int32), layout.planes)
        total, weight = layout.unpack([int(plane[0].sum()) for plane in hist])
        assert total == (int(g.sum()) << 32) + 1000
        assert weight == (int(h.sum()) if split == "newton" else 0)
