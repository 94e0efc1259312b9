"""The linear model: scores against NumPy, missing values, the file, damage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import rankgrove as rg
from rankgrove.model.linear import Linear
from rankgrove.scoring.linear_scores import score_linear

NONE = {"thresholds": np.empty(0), "threshold_ptr": np.empty(0, np.int64)}


def plain(**changes):
    values = {
        "n_features": 9,
        "weights": np.arange(9) - 4.0,
        "scaling": "standard",
        "shift": np.linspace(-1, 1, 9),
        "scale": np.array([1, 2, 0, 4, 1, 1, 3, 1, 1.0]),
        "intercept": 0.5,
        **NONE,
    }
    return Linear(**(values | changes))


def steps():
    return Linear(
        n_features=3,
        weights=np.array([1.0, 2.0, -4.0, 8.0]),
        scaling="none",
        shift=np.zeros(3),
        scale=np.ones(3),
        thresholds=np.array([-1.0, 0.5, 1.0, 0.0]),
        threshold_ptr=np.array([0, 3, 3, 4]),
    )


@pytest.mark.parametrize("n_rows", [0, 1, 30, 20_000])
def test_scores_of_scaled_features(n_rows):
    X = np.random.default_rng(1).normal(size=(n_rows, 9)).astype(np.float32)
    model = plain()
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(model.scale > 0, (X - model.shift) / model.scale, 0.0)
    expected = scaled @ model.weights + 0.5
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        one = score_linear(model, matrix, n_threads=1)
        np.testing.assert_allclose(one, expected, atol=1e-5)
        np.testing.assert_array_equal(one, score_linear(model, matrix, n_threads=2))
        rows = np.arange(n_rows)[::-3]
        np.testing.assert_array_equal(score_linear(model, matrix, rows), one[rows])


def test_a_missing_value_is_0_after_scaling():
    model = plain()
    X = np.random.default_rng(2).normal(size=(4, 9)).astype(np.float32)
    full = X.copy()
    X[1, 3] = X[3, 0] = X[3, 8] = np.nan
    for row, column in [(1, 3), (3, 0), (3, 8)]:
        full[row, column] = model.shift[column]
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        np.testing.assert_allclose(score_linear(model, matrix), score_linear(model, full))
    X[2, 4] = np.inf
    with pytest.raises(rg.DataError, match="infinite values, but feature 5 has inf"):
        score_linear(model, X)
    with pytest.raises(rg.DataError, match="feature 5 has inf"):
        score_linear(model, scipy.sparse.csr_matrix(X))


def test_steps_are_figure_2():
    # no weight below a, w_a from a on, w_a + w_b from b on, w_a + w_b + w_c from c on
    values = np.array([-5, -1, -0.9, 0.5, 0.6, 1, 1.1, np.inf, -np.inf, np.nan], np.float32)
    X = np.zeros((values.size, 3), np.float32)
    X[:, 0] = values
    X[:, 1] = 7.0
    expected = [0, 0, 1, 1, 3, 3, -1, -1, 0, 0]
    np.testing.assert_array_equal(score_linear(steps(), X), expected)
    np.testing.assert_array_equal(score_linear(steps(), scipy.sparse.csr_matrix(X)), expected)
    X[:, 2] = 0.1
    np.testing.assert_array_equal(score_linear(steps(), X), np.add(expected, 8))
    assert steps().influence().tolist() == [4.0, 0.0, 8.0]
    assert [w.tolist() for _, w in steps().by_feature()] == [[1, 2, -4], [], [8]]
    assert plain().influence().tolist() == [4, 3, 2, 1, 0, 1, 2, 3, 4]


def test_it_is_frozen_and_travels_as_arrays():
    for model in (plain(), steps()):
        with pytest.raises(ValueError, match="read-only"):
            model.weights[0] = 1.0
        back = Linear.from_arrays(model.to_arrays())
        for name, array in model.to_arrays().items():
            np.testing.assert_array_equal(array, back.to_arrays()[name])
        assert back.scaling == model.scaling


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones(8)}, "one weight per feature"),
        ({"weights": np.full(9, np.nan)}, "finite numbers"),
        ({"shift": np.ones(2)}, "one shift and one scale"),
        ({"scale": -np.ones(9)}, "negative scale"),
        ({"scaling": np.array(17)}, "do not fit"),
        ({"thresholds": np.ones(3)}, "one weight per feature"),
    ],
)
def test_damage_is_refused(change, message):
    with pytest.raises(rg.ModelFileError, match=message):
        Linear.from_arrays(plain().to_arrays() | change)


def test_damaged_thresholds_are_refused():
    for change, message in [
        ({"thresholds": np.array([1.0, 0.5, -1.0, 0.0])}, "do not ascend"),
        ({"threshold_ptr": np.array([0, 3, 4])}, "borders"),
        ({"threshold_ptr": np.array([0, 3, 2, 4])}, "borders"),
        ({"weights": np.ones(3)}, "one weight per threshold"),
    ]:
        with pytest.raises(ValueError, match=message):
            replace(steps(), **change).check()
    arrays = steps().to_arrays()
    del arrays["thresholds"]
    with pytest.raises(rg.ModelFileError, match="lacks the array 'thresholds'"):
        Linear.from_arrays(arrays)
