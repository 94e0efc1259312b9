"""When lambdas are a gradient: the overview paper's section 4.3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg

LABELS = [2, 1, 0, 1, 0]
APART = [0.3, -0.2, 1.0, 0.6, -1.1]
CLOSE = [0.3, -0.2, 1.0, 0.60001, 0.6]  # two change places within a step


def test_the_papers_example():
    found = rg.is_gradient(lambda s: [1.0, s[0]], [0.5, 0.7])
    assert not found
    assert found.where == (0, 1)
    np.testing.assert_allclose(found.derivatives, [[0.0, 0.0], [1.0, 0.0]], atol=1e-9)
    assert found.asymmetry == pytest.approx(1.0)
    assert repr(found).startswith("no gradient: d lambda_0 / d s_1 is 0")


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=5), st.integers(0, 2**32 - 1))
def test_gradients_pass_and_turned_ones_fail(scores, seed):
    """The gradient of s'As/2 is As, A symmetric; a field that turns has an antisymmetric part."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(len(scores), len(scores)))
    assert rg.is_gradient(lambda s: (a + a.T) @ s, scores)
    found = rg.is_gradient(lambda s: (a - a.T) @ s, scores)
    assert not found
    i, j = found.where
    assert abs(a - a.T)[i, j] == pytest.approx(abs(a - a.T).max(), rel=1e-6)
    assert found.asymmetry == pytest.approx(2.0, rel=1e-6)


def test_ranknets_lambdas_are_a_gradient_everywhere():
    for scores in (APART, CLOSE, [0.0] * 5):
        for sigma in (1.0, 3.0):
            found = rg.is_gradient("pairs", scores, LABELS, sigma=sigma)
            assert found, found
            assert found.asymmetry < 1e-6
    assert str(found).startswith("a gradient")


@pytest.mark.parametrize("measure", ["ndcg", "map", "err", "mrr"])
def test_lambdas_of_a_measure_are_one_only_at_fixed_ranks(measure):
    # for one sorting the cost is RankNet's times |dZ|; where documents change places, there is none
    assert rg.is_gradient(measure, APART, LABELS)
    found = rg.is_gradient(measure, CLOSE, LABELS)
    assert not found
    assert 3 in found.where or 4 in found.where
    assert rg.is_gradient(measure, CLOSE, LABELS, step=1e-6, tolerance=1e-4)
    # several places: the worst counts
    both = rg.is_gradient(measure, [APART, CLOSE], LABELS)
    assert both.asymmetry == found.asymmetry
    np.testing.assert_array_equal(both.scores, CLOSE)


def test_evened_out_lambdas_are_no_gradient():
    # a query's lambdas are scaled by a function of all of them
    assert not rg.is_gradient("ndcg", APART, LABELS, normalise=True)


def test_refusals():
    with pytest.raises(rg.ParameterError, match=r"'labels'.*given with a measure"):
        rg.is_gradient("ndcg", APART)
    with pytest.raises(rg.DataError, match="one label per score"):
        rg.is_gradient("ndcg", APART, [1, 0])
    with pytest.raises(rg.DataError, match="5 finite lambdas"):
        rg.is_gradient(lambda s: [1.0], APART)
    with pytest.raises(rg.ParameterError, match="a function of scores, or a measure"):
        rg.is_gradient(3, APART)
    for bad in ([], [np.nan, 1.0], ["a"], [[[1.0]]]):
        with pytest.raises(rg.ParameterError, match="'scores' parameter of is_gradient"):
            rg.is_gradient("pairs", bad, [1])
    with pytest.raises(rg.ParameterError, match="'step'"):
        rg.is_gradient("pairs", APART, LABELS, step=0)
