"""RankNet's cost of pairs (overview paper, section 2), and its gradients on given preferences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.objectives.preference_pairs import (
    PairObjective,
    Preferences,
    check_preferences,
    components,
    pair_cost,
    pair_groups,
)
from rankgrove.random import string_keys

REAL = st.floats(-50, 50)
SHARE = st.floats(0, 1)


# -- the cost -----------------------------------------------------------------------------------


@given(REAL, REAL, SHARE, st.sampled_from([0.5, 1.0, 3.0]))
def test_the_cost_is_the_cross_entropy(a, b, target, sigma):
    p, rest = 1 / (1 + math.exp(-sigma * (a - b))), 1 / (1 + math.exp(sigma * (a - b)))
    expected = 0.0
    expected -= target * math.log(p) if target else 0.0
    expected -= (1 - target) * math.log(rest) if target < 1 else 0.0
    assert pair_cost(a, b, target, sigma) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(REAL, REAL, SHARE)
def test_the_cost_is_symmetric(a, b, target):
    assert pair_cost(a, b, target) == pytest.approx(pair_cost(b, a, 1 - target), abs=1e-12)


def test_equal_scores_cost_log_2():
    for target in (0.0, 0.3, 1.0):
        assert pair_cost(4.2, 4.2, target) == pytest.approx(math.log(2))


def test_the_cost_is_linear_far_out():
    # wrong order: sigma times the distance; right order: nothing
    np.testing.assert_allclose(pair_cost(0.0, [50.0, 100.0, 1e6], 1.0, 2.0), [100, 200, 2e6])
    assert pair_cost(1000.0, 0.0) == 0.0
    np.testing.assert_allclose(pair_cost(500.0, 0.0, 0.25), 375.0)


@given(REAL, REAL, SHARE, st.sampled_from([0.5, 1.0, 3.0]))
def test_lambdas_are_the_slope_of_the_cost(a, b, target, sigma):
    from rankgrove.objectives._preference_kernels import preference

    up, curve = preference(sigma, a - b, target, 1.0)
    step = 1e-4
    costs = [float(pair_cost(a + d, b, target, sigma)) for d in (-step, 0.0, step)]
    assert -up == pytest.approx((costs[2] - costs[0]) / (2 * step), abs=1e-6)
    bend = (costs[2] - 2 * costs[1] + costs[0]) / step**2
    assert curve == pytest.approx(bend, abs=2e-5)
    # the probability that minimises the cost is the target
    learned = 1 / (1 + math.exp(-sigma * (a - b)))
    assert np.sign(up) == np.sign(target - learned) or abs(target - learned) < 1e-12


# -- gradients on many pairs --------------------------------------------------------------------


def random_preferences(n_rows, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_rows, n_pairs)
    second = (first + rng.integers(1, n_rows, n_pairs)) % n_rows
    return Preferences(first, second, rng.random(n_pairs), rng.uniform(0, 2, n_pairs))


def naive_gradients(preferences, scores, sigma):
    gradient, hessian = np.zeros(scores.size), np.zeros(scores.size)
    for i, j, target, weight in zip(*preferences, strict=True):
        p = 1 / (1 + np.exp(-sigma * (scores[i] - scores[j])))
        gradient[i] += weight * sigma * (target - p)
        gradient[j] -= weight * sigma * (target - p)
        hessian[[i, j]] += weight * sigma**2 * p * (1 - p)
    return gradient, hessian


def test_gradients_add_up_over_pairs():
    preferences = random_preferences(40, 500)
    scores = np.random.default_rng(1).normal(size=41) * 3
    objective = PairObjective(preferences, np.array([0, 41]), sigma=1.5)
    got = np.full((2, 41), np.nan)
    objective.gradients(scores, *got)
    np.testing.assert_allclose(got, naive_gradients(preferences, scores, 1.5), atol=1e-11)
    assert got[0, 40] == got[1, 40] == 0.0  # a row without a pair
    first, second, target, weight = preferences
    costs = [
        pair_cost(scores[i], scores[j], p, 1.5)
        for i, j, p in zip(first, second, target, strict=True)
    ]
    assert objective.cost(scores) == pytest.approx(np.average(costs, weights=weight))


def test_threads_change_no_bit():
    preferences = random_preferences(5000, 60_000)
    scores = np.random.default_rng(1).normal(size=5000)
    objective = PairObjective(preferences, np.array([0, 5000]))
    one, two = np.empty((2, 5000)), np.empty((2, 5000))
    objective.gradients(scores, *one, n_threads=1)
    objective.gradients(scores, *two, n_threads=2)
    np.testing.assert_array_equal(one, two)


def test_some_queries():
    ptr = np.array([0, 4, 9, 12])
    pairs = Preferences(np.array([0, 5, 10]), np.array([1, 6, 11]), np.ones(3), np.ones(3))
    objective = PairObjective(pairs, ptr)
    scores, got, every = np.zeros(12), np.full((2, 12), np.nan), np.empty((2, 12))
    objective.gradients(scores, *every)
    objective.gradients(scores, *got, queries=np.array([0, 2]))
    assert np.isnan(got[:, 4:9]).all()
    np.testing.assert_array_equal(np.delete(got, range(4, 9), 1), np.delete(every, range(4, 9), 1))


def test_pairs_of_labels_give_the_lambdas_of_labels():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 4, 30).astype(float), rng.normal(size=30) * 5
    ptr = np.array([0, 12, 30])
    by_labels, by_pairs = np.empty((2, 30)), np.empty((2, 30))
    objective = LambdaObjective(rg.measure("pairs"), labels, ptr, row_keys=np.arange(30), sigma=1.4)
    objective.gradients(scores, *by_labels)
    pairs = [
        (i, j)
        for a, b in ((0, 12), (12, 30))
        for i in range(a, b)
        for j in range(a, b)
        if labels[i] > labels[j]
    ]
    given = check_preferences(pairs, 30, "test")
    PairObjective(given, ptr, sigma=1.4).gradients(scores, *by_pairs)
    np.testing.assert_allclose(by_pairs, by_labels, rtol=1e-11)
    # the other way round with the complementary probability: the same
    turned = check_preferences(np.array(pairs)[:, ::-1], 30, "test", 0.0)
    PairObjective(turned, ptr, sigma=1.4).gradients(scores, *by_pairs)
    np.testing.assert_allclose(by_pairs, by_labels, rtol=1e-11)


# -- groups -------------------------------------------------------------------------------------


def test_components():
    first, second = np.array([0, 3, 5]), np.array([2, 2, 6])
    found = components(first, second, 8)
    assert found[0] == found[2] == found[3]
    assert found[5] == found[6]
    assert len({found[0], found[1], found[4], found[5], found[7]}) == 5


@pytest.mark.parametrize("most", [None, 1, 7, 100])
def test_groups_hold_every_pair_once(most):
    given = random_preferences(60, 300)
    group = np.repeat([0, 1, 2], [30, 25, 5])
    same = group[given.first] == group[given.second]
    given = given.taken(np.flatnonzero(same))
    keys = string_keys(["a", "b", "c"])
    found = pair_groups(given, group, keys, most)
    assert found.keys.size == found.ptr.size - 1 == found.pair_ptr.size - 1
    assert len(set(found.keys.tolist())) == found.keys.size
    seen = []
    for u in range(found.keys.size):
        rows = found.rows[found.ptr[u] : found.ptr[u + 1]]
        pairs = slice(found.pair_ptr[u], found.pair_ptr[u + 1])
        i, j = rows[found.first[pairs]], rows[found.second[pairs]]
        assert set(rows.tolist()) == set(i.tolist()) | set(j.tolist())
        assert rows.size == len(set(rows.tolist()))
        assert len(set(group[rows].tolist())) == 1
        assert most is None or 1 <= i.size <= most
        seen += zip(i, j, found.probability[pairs], found.weight[pairs], strict=True)
    assert sorted(seen) == sorted(zip(*given, strict=True))
    assert set(keys[np.unique(group[given.first])].tolist()) <= set(found.keys.tolist())
    if most is None:
        assert found.keys.size == len(set(group[given.first].tolist()))


# -- checks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        ([[0, 1, 2]], {}, "two columns"),
        ([0, 1], {}, "two columns"),
        ([[0.0, 1.0]], {}, "whole numbers"),
        (np.empty((0, 2), int), {}, "at least one pair"),
        ([[0, 1], [2, 5]], {}, r"pair 1 is \(2, 5\), and rows are numbered from 0 to 4"),
        ([[0, -1]], {}, r"pair 0 is \(0, -1\)"),
        ([[0, 1], [3, 3]], {}, "pair 1 compares row 3 with itself"),
        (
            [[0, 1]],
            {"probability": 1.2},
            r"probability must be between 0 and 1\. Got 1\.2 at pair 0",
        ),
        ([[0, 1]], {"probability": [0.5, 0.5]}, r"one per pair \(1\)"),
        ([[0, 1]], {"probability": np.nan}, "between 0 and 1"),
        ([[0, 1]], {"probability": "often"}, "probability must be numbers"),
        ([[0, 1]], {"weight": [-1.0]}, "finite and not negative"),
        ([[0, 1]], {"weight": 0}, "must not be 0 everywhere"),
    ],
)
def test_bad_pairs(pairs, options, message):
    with pytest.raises(rg.DataError, match=f"^somebody.*{message}"):
        check_preferences(pairs, 5, "somebody", **options)
