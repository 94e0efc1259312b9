"""Threshold features: the paper's indicators, where thresholds lie, dense and sparse alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import rankgrove as rg
from rankgrove.data.thresholds import indicators, place_thresholds, step_codes

VALUES = st.sampled_from([-3.0, -0.5, 0.0, 0.0, 0.5, 1.0, 2.5, np.nan, np.inf, -np.inf])
MATRICES = arrays(np.float32, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=VALUES)


@given(MATRICES, MATRICES, st.integers(1, 5), st.sampled_from(["even", "quantile"]))
def test_indicators_are_their_definition(train, other, n, spacing):
    thresholds, ptr = place_thresholds(train, n, spacing=spacing)
    assert np.all(np.diff(ptr) <= n)
    X = np.resize(other, (other.shape[0], train.shape[1]))
    own = [thresholds[a:b] for a, b in itertools.pairwise(ptr)]
    assert all(np.all(np.diff(k) > 0) for k in own)
    expected = np.concatenate(
        [X[:, [j]] > own[j][None, :] for j in range(X.shape[1])], axis=1
    ).astype(float)
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        found = indicators(matrix, thresholds, ptr)
        assert found.format == "csr"
        assert found.dtype == np.float32
        assert np.all(found.data == 1)
        np.testing.assert_array_equal(found.toarray(), expected)
    codes = step_codes(X, np.arange(X.shape[0]), thresholds, ptr)
    sums = [expected[:, a:b].sum(axis=1) for a, b in itertools.pairwise(ptr)]
    np.testing.assert_array_equal(codes, np.stack(sums, axis=1))


def test_where_thresholds_lie():
    X = np.linspace(0, 10, 101, dtype=np.float32)[:, None]
    assert place_thresholds(X, 5)[0].tolist() == [0, 2, 4, 6, 8]
    middle = place_thresholds(X, 4, region=(0.1, 0.9))[0]
    np.testing.assert_allclose(middle, [1, 3, 5, 7], atol=1e-6)
    limits = place_thresholds(X, 4, limits=(0.0, 1.0))[0]
    np.testing.assert_allclose(limits, [0, 0.25, 0.5, 0.75])
    skewed = np.repeat(np.float32([0, 1, 100]), [90, 9, 1])[:, None]
    assert place_thresholds(skewed, 10, spacing="quantile")[0].tolist() == [0]
    shares = place_thresholds(X**3, 4, spacing="quantile")[0]
    np.testing.assert_allclose(shares, np.array([0, 2.5, 5, 7.5]) ** 3, rtol=1e-5)
    # a constant feature has none; the others keep their places
    both = np.concatenate([np.ones_like(X), X], axis=1)
    thresholds, ptr = place_thresholds(both, 5)
    assert ptr.tolist() == [0, 0, 5]
    assert thresholds.tolist() == [0, 2, 4, 6, 8]


def test_as_a_transformer():
    data = rg.make_web(20, n_docs=15, n_features=6, seed=1)
    steps = rg.ThresholdFeatures(n_thresholds=10)
    with pytest.raises(NotFittedError, match="call fit first"):
        steps.transform(data.X)
    made = steps.fit_transform(data.X)
    assert made.shape == (data.n_rows, sum(k.size for k in steps.thresholds_))
    np.testing.assert_array_equal(made.toarray(), steps.transform(data).toarray())
    names = steps.get_feature_names_out()
    assert names.size == made.shape[1]
    assert names[0] == f"x0>{steps.thresholds_[0][0]}"
    assert steps.fit(data).get_feature_names_out()[0].startswith(data.feature_names[0] + ">")
    copy = clone(steps.set_params(n_thresholds=3))
    assert copy.get_params() == {"n_thresholds": 3, "spacing": "even", "region": (0.0, 1.0)}
    piped = make_pipeline(rg.ThresholdFeatures(5), LinearSVC()).fit(data.X, data.y > 1)
    assert piped.decision_function(data.X).shape == (data.n_rows,)
    # rows of a view
    some = data.select([3, 1])
    np.testing.assert_array_equal(
        steps.transform(some).toarray(), steps.transform(some.X).toarray()
    )


def test_of_a_data_set():
    data = rg.make_web(5, n_docs=8, n_features=3, seed=1)
    weighted = rg.QueryDataset(data.X, data.y, data.qid, query_weight=np.arange(1, 6))
    steps = rg.ThresholdFeatures(4).fit(weighted)
    made = steps.transform_dataset(weighted)
    assert made.is_sparse
    assert made.feature_names == tuple(steps.get_feature_names_out())
    np.testing.assert_array_equal(made.y, weighted.y)
    np.testing.assert_array_equal(made.query_weight, weighted.query_weight)


def test_bad_parameters():
    X = np.ones((3, 2), np.float32)
    for bad, message in [
        ({"n_thresholds": 0}, "n_thresholds.*at least|between 1"),
        ({"spacing": "evn"}, "did you mean 'even'"),
        ({"region": (0.9, 0.1)}, "two shares"),
        ({"region": 3}, "two shares"),
    ]:
        with pytest.raises(rg.ParameterError, match=message):
            rg.ThresholdFeatures(**bad).fit(X)
    fitted = rg.ThresholdFeatures().fit(X)
    with pytest.raises(rg.DataError, match="fitted on 2 features; the data has 5"):
        fitted.transform(np.ones((3, 5)))
    assert fitted.transform(X).shape == (3, 0)
