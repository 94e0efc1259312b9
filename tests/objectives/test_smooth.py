"""Smoothed measures: the definition, their gradient, and what they become without smoothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.objectives.smooth import SmoothMeasure
from tests.reference import linear as naive

MEASURES = ["ndcg", "ndcg@3", "dcg@4", "meanndcg", "p@2", "recall@3", "auc"]
PTR = np.array([0, 5, 6, 12, 15])


def drawn(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, PTR[-1]).astype(np.float64)
    labels[PTR[:-1]] = 2.0
    labels[-3:] = 1.0  # all equal: no order changes anything
    return labels, rng.normal(size=PTR[-1])


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("sigma", [30.0, 1.0, 0.05])
def test_value_is_the_definition_and_the_gradient_its_derivative(measure, sigma):
    labels, scores = drawn(1)
    weight = np.array([1.0, 5.0, 3.0, 2.0])
    smooth = SmoothMeasure(rg.measure(measure), labels, PTR, weight)
    value, gradient = smooth.value_and_gradient(scores, sigma)
    own = smooth.prepared
    free = ~own.is_fixed
    expected = [
        naive.smooth_value(own.gain[a:b], own.weight[a:b], scores[a:b], sigma)
        for a, b in itertools.pairwise(PTR.tolist())
    ]
    assert value == pytest.approx(np.average(np.array(expected)[free], weights=weight[free]))
    for i, unit in enumerate(np.eye(scores.size)):
        up, down = (smooth.value_and_gradient(scores + e * unit, sigma)[0] for e in (1e-6, -1e-6))
        assert gradient[i] == pytest.approx((up - down) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("measure", MEASURES)
def test_without_smoothing_it_is_the_measure(measure):
    labels, scores = drawn(2)
    smooth = SmoothMeasure(rg.measure(measure), labels, PTR)
    values = np.array([
        rg.measure(measure).query_value(labels[a:b], scores[a:b])
        for a, b in itertools.pairwise(PTR.tolist())
    ])  # fmt: skip
    expected = values[~smooth.prepared.is_fixed].mean()
    assert smooth.value_and_gradient(scores, 1e-12)[0] == pytest.approx(expected)


def test_ties_do_not_matter_and_threads_do_not():
    labels, scores = drawn(3)
    scores = np.round(scores)
    smooth = SmoothMeasure(rg.measure("ndcg"), labels, PTR)
    a = smooth.value_and_gradient(scores, 0.5)[0]
    b = smooth.value_and_gradient(scores + 1e-9 * np.arange(scores.size), 0.5)[0]
    assert a == pytest.approx(b, abs=1e-7)
    data = rg.make_web(900, n_docs=20, n_features=2, seed=1)
    given = (rg.measure("ndcg@5"), data.grouped(data.y), data.query_ptr)
    scores = np.random.default_rng(0).normal(size=data.n_rows)
    one, two = (SmoothMeasure(*given, n_threads=n).value_and_gradient(scores, 1.0) for n in (1, 2))
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


def test_what_cannot_be_smoothed_or_learned_is_refused():
    with pytest.raises(rg.ParameterError, match=r"smooths measures that add up gains.*map is none"):
        rg.SmoothRank("map").check_parameters()
    with pytest.raises(rg.DataError, match=r"No order changes ndcg of any query"):
        SmoothMeasure(rg.measure("ndcg"), np.ones(15), PTR)
