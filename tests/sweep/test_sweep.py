"""The sweep against brute force, and what it promises: bits, threads, parts, ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.sweep.ordering import sort_changes
from rankgrove.sweep.sweep import combine_scores, sweep
from tests.reference.sweep import brute_force, mean_at

rg.register_measure(
    "sweep_custom", lambda labels, k: 37.5 * (labels[:k] / (1 + np.arange(labels[:k].size))).sum()
)
MEASURES = (
    "ndcg ndcg@3 dcg@2 meanndcg map map@2 err err@2 mrr mrr@2 p@2 recall@3 auc pairs accuracy "
    "sweep_custom@2"
).split()
RANGES = {
    "convex": [(0.0, 1.0), (0.3, 0.7)],
    "additive": [(0.1, 100.0), (0.0, 5.0), (-2.0, 3.0)],
}


def random_case(rng, most=8):
    """Return labels, two scores and query_ptr: ties, duplicates, crossings at one point."""
    sizes = rng.integers(1, most + 1, rng.integers(1, 5))
    n = sizes.sum()
    labels = rng.integers(0, rng.integers(2, 5), n).astype(float)
    scores = [
        rng.normal(size=(2, n)),
        rng.integers(-3, 4, (2, n)).astype(float),
        np.stack([rng.normal(size=n), rng.integers(0, 3, n) / 7]),
        np.stack([rng.integers(0, 2, n) * 1.0, rng.integers(0, 9, n) / 3]),
        np.stack([np.zeros(n), rng.integers(0, 3, n) * 1.0]),
    ][rng.integers(5)]
    return labels, scores[0], scores[1], np.concatenate([[0], np.cumsum(sizes)])


def prepare(name, labels, ptr, ties="expected"):
    prepared = rg.measure(name, ties=ties).prepare(labels, ptr, 1)
    return (
        None
        if np.isnan(prepared.fixed_value[prepared.is_fixed]).sum() == ptr.size - 1
        else prepared
    )


def same(one, two):
    return (
        (one.alpha, one.value, one.stretch, one.n_changes, one.n_crossings)
        == (two.alpha, two.value, two.stretch, two.n_changes, two.n_crossings)
    ) and all(
        np.array_equal(getattr(one.curve, name), getattr(two.curve, name))
        for name in ("alpha", "value", "at_low", "at_high", "point_alpha", "point_value")
    )


def check_points(found, means, cuts, tied, rounded, message):
    """Check the single weights: their values by the rule for ties, and that the best is taken."""
    higher = tied > np.maximum(means[:-1], means[1:]) + 1e-11
    curve = found.curve
    np.testing.assert_allclose(curve.point_alpha, cuts[higher], rtol=1e-10, err_msg=message)
    np.testing.assert_allclose(curve.point_value, tied[higher], rtol=1e-11, err_msg=message)
    best = max(*means, found.at_low, found.at_high)
    assert found.value >= best - 1e-11, message
    # Where rounding leaves the tie as it is, no point is better than what was found.
    assert found.value >= max([best, *tied[np.abs(tied - rounded) < 1e-11]]) - 1e-11, message


@pytest.mark.slow
@pytest.mark.parametrize("ties", ["expected", "stable", "worst"])
@pytest.mark.parametrize("form", ["convex", "additive"])
@pytest.mark.parametrize("name", MEASURES)
def test_is_what_brute_force_finds(name, form, ties):
    rng = np.random.default_rng([len(name), *name.encode(), len(form), len(ties)])
    for case in range(40 if ties == "expected" else 12):
        labels, start, other, ptr = random_case(rng)
        prepared = prepare(name, labels, ptr, ties)
        if prepared is None:
            continue
        low, high = RANGES[form][rng.integers(len(RANGES[form]))]
        found = sweep(prepared, start, other, form=form, low=low, high=high)
        middles, means, cuts, tied, rounded = brute_force(prepared, start, other, form, low, high)
        curve = found.curve
        close = {"rtol": 1e-11, "atol": 1e-11}
        ours = curve.value[np.searchsorted(curve.alpha, middles) - 1]
        np.testing.assert_allclose(ours, means, err_msg=f"case {case}", **close)
        ends = [mean_at(prepared, start, other, alpha, form) for alpha in (low, high)]
        assert [found.at_low, found.at_high] == [curve.at_low, curve.at_high] == ends
        check_points(found, means, cuts, tied, rounded, f"case {case}")
        assert found.value == mean_at(prepared, start, other, found.alpha, form)
        assert curve.alpha[0] == low
        assert curve.alpha[-1] == high
        assert np.all(np.diff(curve.alpha) > 0)
        assert np.all(np.diff(curve.value) != 0)
        assert curve.value.size == curve.alpha.size - 1 == found.n_changes + 1
        only = sweep(prepared, start, other, form=form, low=low, high=high, points=False)
        np.testing.assert_allclose(only.value, max(*means, *ends), **close)
        assert only.stretch[0] < only.stretch[1] or only.alpha in (low, high)
        assert only.curve.point_alpha.size == 0
        left, right = found.stretch
        if left < right:  # the widest of the best, its middle unless lines cross just there
            best = np.abs(curve.value - curve.value.max()) < 1e-12
            assert right - left == np.diff(curve.alpha)[best].max()
            assert left < found.alpha < right


@pytest.mark.parametrize(
    ("form", "low", "i", "j"),
    [
        ("additive", 0.1, (-1.1, 0.1), (-0.9, -1.9)),
        ("additive", 0.3, (-0.3, -1.9), (-1.5, 2.1)),
        ("convex", 0.1, (0.1, 2.5), (0.4, -0.2)),
        ("convex", 0.7, (1.9, -2.9), (-1.6, -1.4)),
    ],
)
def test_lines_that_cross_where_the_range_begins(form, low, i, j):
    # By rounding, the scores at `low` say another order than the point of crossing does.
    start, other = np.array([i, j, (-9.0, -9.0)]).T.copy()
    for labels in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]):
        prepared = rg.measure("mrr").prepare(np.array(labels), np.array([0, 3]))
        found = sweep(prepared, start, other, form=form, low=low, high=0.9)
        assert found.curve.value.tolist() == [mean_at(prepared, start, other, 0.85, form)]
        assert found.n_changes == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ndcg@3", "map", "err", "pairs", "accuracy", "sweep_custom@2"])
def test_parts_of_the_range_give_the_same_bits(name):
    rng = np.random.default_rng(5)
    for _ in range(15):
        labels, start, other, ptr = random_case(rng, 12)
        prepared = prepare(name, labels, ptr)
        if prepared is not None:
            whole = sweep(prepared, start, other)
            for most in (1, 3, 20):
                assert same(whole, sweep(prepared, start, other, max_crossings=most))
            bare = sweep(prepared, start, other, max_crossings=2, keep_curve=False)
            assert bare.curve is None
            assert (bare.alpha, bare.value) == (whole.alpha, whole.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ndcg@10", "map", "err", "pairs", "accuracy"])
def test_threads_and_order_of_rows_do_not_matter(name):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 60, 200)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    labels = rng.integers(0, 3, ptr[-1]).astype(float)
    start, other = np.round(rng.normal(size=(2, ptr[-1])), 1)
    prepared = rg.measure(name).prepare(labels, ptr)
    one = sweep(prepared, start, other, n_threads=1)
    assert same(one, sweep(prepared, start, other, n_threads=2))
    assert same(one, sweep(prepared, start, other, n_threads=2, max_crossings=5000))
    mixed = np.lexsort([rng.random(ptr[-1]), np.repeat(np.arange(200), sizes)])
    again = rg.measure(name).prepare(labels[mixed], ptr)
    assert same(one, sweep(again, start[mixed], other[mixed]))


def test_a_long_query_takes_the_other_ways_to_sort():
    rng = np.random.default_rng(2)
    n = 700
    labels = rng.integers(0, 3, n).astype(float)
    start = np.round(rng.normal(size=n), 2)
    other = start + 0.001 * rng.standard_cauchy(n)  # crossings crowd at one end
    for name in ("ndcg@10", "map"):
        prepared = rg.measure(name).prepare(labels, np.array([0, n]))
        found = sweep(prepared, start, other, form="additive", low=0.1, high=50.0)
        for alpha in rng.uniform(0.1, 50, 50).tolist():
            at = np.searchsorted(found.curve.alpha, alpha) - 1
            value = mean_at(prepared, start, other, alpha, "additive")
            assert found.curve.value[at] == pytest.approx(value, abs=1e-11)


@given(st.data())
def test_any_floats(data):
    n = data.draw(st.integers(1, 6))
    scores = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.0, 1e-300, 1 / 3, 2 / 3])
    start, other = (np.array(data.draw(st.lists(scores, min_size=n, max_size=n))) for _ in "ab")
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), float)
    prepared = prepare("ndcg@2", labels, np.array([0, n]))
    if prepared is not None:
        found = sweep(prepared, start, other)
        assert found.value >= max(found.at_low, found.at_high)
        assert found.value == mean_at(prepared, start, other, found.alpha, "convex")
        assert same(found, sweep(prepared, start, other, max_crossings=1))


def test_the_best_may_be_an_end():
    # At 0 the two documents are tied with value 0.5 (expectation), everywhere else wrong.
    prepared = rg.measure("auc").prepare(np.array([1.0, 0.0]), np.array([0, 2]))
    found = sweep(prepared, np.zeros(2), np.array([0.0, 1.0]))
    assert (found.alpha, found.value, found.stretch) == (0.0, 0.5, (0.0, 0.0))
    assert (found.curve.value.tolist(), found.at_high) == ([0.0], 0.0)


def test_equal_rankers_have_no_crossing():
    prepared = rg.measure("ndcg").prepare(np.array([1.0, 0.0, 2.0]), np.array([0, 3]))
    scores = np.array([3.0, 2.0, 1.0])
    found = sweep(prepared, scores, scores)
    assert (found.alpha, found.n_crossings, found.n_changes) == (0.5, 0, 0)
    assert found.value == found.at_low == found.at_high


def test_many_lines_through_one_point():
    n = 30
    labels = np.arange(n) % 3.0
    slope = np.arange(n, dtype=float)
    prepared = rg.measure("err").prepare(labels, np.array([0, n]))
    found = sweep(prepared, -0.5 * slope, slope, form="additive", low=0.0, high=1.0)
    assert found.curve.alpha.tolist() == [0.0, 0.5, 1.0]
    assert found.n_crossings == n * (n - 1) // 2
    assert found.curve.value[-1] == pytest.approx(found.at_high, abs=1e-14)


def test_fixed_queries_count_as_in_evaluation():
    labels = np.array([0.0, 0.0, 1.0, 0.0])
    ptr = np.array([0, 2, 4])
    start, other = np.array([1.0, 2.0, 1.0, 2.0]), np.array([1.0, 2.0, 2.0, 1.0])
    kept = sweep(rg.measure("map", empty=0.25).prepare(labels, ptr), start, other)
    assert (kept.at_low, kept.at_high, kept.value) == (0.375, 0.625, 0.625)
    assert kept.curve.value.tolist() == [0.375, 0.625]
    dropped = sweep(rg.measure("map").prepare(labels, ptr), start, other)
    assert dropped.curve.value.tolist() == [0.5, 1.0]


def test_combined_scores_at_the_ends_are_the_scores():
    rng = np.random.default_rng(0)
    start, other = rng.normal(size=(2, 100)) * 1e9
    assert np.array_equal(combine_scores(start, other, 0.0, "convex"), start)
    assert np.array_equal(combine_scores(start, other, 1.0, "convex"), other)


def test_refusals():
    prepared = rg.measure("ndcg").prepare(np.array([1.0, 0.0]), np.array([0, 2]))
    fine = np.array([1.0, 2.0])
    for bad in (np.inf, -np.inf, np.nan, 1e200):
        with pytest.raises(rg.DataError, match="must be finite"):
            sweep(prepared, fine, np.array([1.0, bad]))
    with pytest.raises(rg.DataError, match="one number per row"):
        sweep(prepared, fine, np.ones(3))
    with pytest.raises(rg.ParameterError, match="'low' parameter"):
        sweep(prepared, fine, fine, low=-1.0)
    with pytest.raises(rg.ParameterError, match="above the lowest weight"):
        sweep(prepared, fine, fine, form="additive", low=2.0, high=2.0)
    with pytest.raises(rg.ParameterError, match="did you mean 'convex'"):
        sweep(prepared, fine, fine, form="convx")
    with pytest.raises(rg.DataError, match="No query has a value"):
        sweep(rg.measure("ndcg").prepare(np.zeros(2), np.array([0, 2])), fine, fine)
    rg.register_measure("sweep_nan", lambda labels: labels[0] / (labels[0] + labels[1] - 1))
    wrong = rg.measure("sweep_nan").prepare(np.array([1.0, 0.0, 2.0]), np.array([0, 3]))
    with pytest.raises(rg.ParameterError, match="must be a finite number"):
        sweep(wrong, np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("case", ["even", "crowded", "equal", "two points", "tiny", "negative"])
def test_changes_are_sorted(case):
    rng = np.random.default_rng(3)
    n = 30_000
    alphas = {
        "even": rng.random(n),
        "crowded": 100.0 ** rng.normal(size=n),
        "equal": np.full(n, 0.25),
        "two points": rng.integers(0, 2, n) / 3,
        "tiny": rng.random(n) * 1e-300,
        "negative": rng.standard_cauchy(n),
    }[case]
    changes = rng.integers(-9, 9, n)
    parts = [(-alphas[own], changes[own]) for own in np.split(np.arange(n), [0, 100, 20_000])]
    keys, ordered = sort_changes(parts, 2)
    assert np.array_equal(keys, -np.sort(alphas))
    assert np.array_equal(
        ordered[np.lexsort([ordered, -keys])], changes[np.lexsort([changes, alphas])]
    )
