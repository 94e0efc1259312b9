"""The net as a value: its scores, its weights as one vector, its arrays in a model file."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import rankgrove as rg
from rankgrove.model._mlp_kernels import activate
from rankgrove.model.mlp import Network, factors, filled_widths, gathered, n_weights, spread
from tests.reference import nets as naive

SIZES = [(1,), (5,), (50, 10), (4, 4), (7, 3, 9), (46, 17, 13, 8), (3, 40)]


def make(sizes, activation="tanh", seed=0):
    rng = np.random.default_rng(seed)
    return Network(
        sizes,
        rng.normal(size=n_weights(sizes)) * 0.5,
        rng.normal(size=sizes[0]),
        rng.uniform(0.5, 2, sizes[0]),
        activation,
    )


def features(n, n_features, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    X[rng.random(X.shape) < 0.3] = 0
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_scores_are_those_of_the_textbook(sizes, activation):
    net, X = make(sizes, activation), features(301, sizes[0])
    _, expected = naive.forward(
        sizes, net.flat, activation, naive.standardised(X, net.mean, net.scale)
    )
    np.testing.assert_allclose(net.scores(X), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_documents_score_does_not_depend_on_the_others(sizes):
    net, X = make(sizes), features(150, sizes[0])
    scores = net.scores(X, n_threads=1)
    for rows in (slice(3, 40), np.array([7, 7, 149, 0]), slice(100, 101), slice(0, 0)):
        np.testing.assert_array_equal(net.scores(X, rows), scores[rows])
    many = np.tile(X, (400, 1))
    np.testing.assert_array_equal(net.scores(many), np.tile(scores, 400))
    np.testing.assert_array_equal(net.scores(many, n_threads=1), np.tile(scores, 400))


def test_sparse_features_give_the_same_scores():
    net, X = make((20, 6)), features(200, 20)
    sparse = scipy.sparse.csr_matrix(X)
    np.testing.assert_array_equal(net.scores(sparse), net.scores(X))
    np.testing.assert_array_equal(net.scores(sparse, slice(5, 9)), net.scores(X)[5:9])


def test_tanh_is_tanh():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [np.linspace(-25, 25, 20_001), rng.normal(size=20_000), rng.normal(size=2000) * 1e-9]
    )
    y = x.copy()
    activate(0, y)
    np.testing.assert_allclose(y, np.tanh(x), rtol=1e-15, atol=0)
    odd = np.array([0.0, np.inf, -np.inf, 1e300, -1e300, np.nan])
    activate(0, odd)
    np.testing.assert_array_equal(odd, [0, 1, -1, 1, -1, np.nan])


def test_relu_keeps_what_is_not_a_number():
    z = np.array([-1.0, 0.0, 2.0, np.nan])
    activate(1, z)
    np.testing.assert_array_equal(z, [0, 0, 2, np.nan])


def test_missing_values_and_constant_features_count_as_the_mean():
    net = Network((2, 3), np.linspace(-1, 1, 12), [5.0, 1.0], [2.0, 0.0])
    a = net.scores(np.array([[np.nan, 1.0], [5.0, 9.0], [5.0, np.nan]], np.float32))
    assert a[0] == a[1] == a[2]


def test_the_flat_vector_and_its_parts():
    net = make((7, 3, 9))
    (w1, b1), (w2, b2) = net.layers
    assert (w1.shape, b1.shape, w2.shape, b2.shape) == ((7, 3), (3,), (3, 9), (9,))
    parts = [w1.ravel(), b1, w2.ravel(), b2, net.output]
    np.testing.assert_array_equal(np.concatenate(parts), net.flat)
    other = net.with_flat(2 * net.flat)
    np.testing.assert_array_equal(other.output, 2 * net.output)
    assert (other.hidden, other.n_features, other.activation) == ((3, 9), 7, "tanh")
    with pytest.raises(rg.DataError, match=r"7 x 3 x 9 units has 69 numbers in 'flat'\. Got .*\(3"):
        net.with_flat([1, 2, 3])
    with pytest.raises(rg.DataError, match="must be finite; some of 'flat'"):
        net.with_flat(np.full(69, np.nan))
    with pytest.raises(ValueError, match="read-only"):
        net.flat[0] = 1
    with pytest.raises(AttributeError):
        net.activation = "relu"


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_filled_up_form(sizes):
    flat = np.arange(1.0, n_weights(sizes) + 1)
    parameters = spread(flat, sizes)
    np.testing.assert_array_equal(gathered(parameters, sizes), flat)
    assert (parameters != 0).sum() == flat.size
    assert (filled_widths(sizes) % 4 == 0).all()
    np.testing.assert_array_equal(gathered(factors(sizes), sizes), naive.is_factor(sizes))


def test_infinite_values_are_refused_with_their_place():
    net, X = make((4, 2)), features(300, 4)
    X[201, 2] = -np.inf
    message = r"row 201 has -inf for feature 3\. Replace it by a finite number, or by NaN"
    for given in (X, scipy.sparse.csr_matrix(X)):
        with pytest.raises(rg.DataError, match=message):
            net.scores(given)
    constant = Network((4,), np.ones(4), np.zeros(4), np.zeros(4))
    with pytest.raises(rg.DataError, match="row 201 has -inf"):
        constant.scores(X)
    assert np.isfinite(net.scores(X, slice(0, 200))).all()
    with pytest.raises(rg.DataError, match="needs 4 features; the data has 3"):
        net.scores(X[:, :3])


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_arrays_and_back(activation):
    net, X = make((6, 5, 2), activation), features(40, 6)
    again = Network.from_arrays({k: v.copy() for k, v in net.to_arrays().items()})
    assert (again.sizes, again.activation) == (net.sizes, net.activation)
    np.testing.assert_array_equal(again.scores(X), net.scores(X))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("flat", None, "no array 'flat'"),
        ("mean", None, "no array 'mean'"),
        ("sizes", np.array([6, 0]), "at least 1"),
        ("sizes", np.array([6.0, 5.0]), "whole numbers"),
        ("sizes", np.empty(0, np.int64), "at least 1"),
        ("sizes", np.array([6, 5, 3]), "numbers in 'flat'"),
        ("flat", np.zeros(3), "numbers in 'flat'"),
        ("flat", np.full(49, np.inf), "must be finite"),
        ("flat", np.zeros(49, np.float32), "float64"),
        ("mean", np.zeros(5), "numbers in 'mean'"),
        ("scale", np.full(6, np.nan), "must be finite"),
        ("activation", np.array([7]), "activation"),
        ("activation", np.array(0), "activation"),
    ],
)
def test_damaged_arrays_are_refused(name, value, message):
    arrays = make((6, 5, 2)).to_arrays()
    arrays[name] = value
    if value is None:
        del arrays[name]
    with pytest.raises(rg.ModelFileError, match=message):
        Network.from_arrays(arrays)
