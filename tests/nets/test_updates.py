"""The backward pass, the optimisers and whole epochs against the textbook."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.model._mlp_kernels import forward as forward_kernel
from rankgrove.model.mlp import (
    ACTIVATIONS,
    Network,
    factors,
    filled_widths,
    gathered,
    n_weights,
    spread,
)
from rankgrove.nets import _net_kernels as kernels
from rankgrove.nets.tasks import GroupTask, Inputs, QueryTask, Step, moments
from rankgrove.nets.training_loop import OPTIMISERS, Trained, epoch_order
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.objectives.preference_pairs import check_preferences, pair_cost, pair_groups
from rankgrove.random import row_keys
from tests.reference import lambdas as naive_lambdas
from tests.reference import measures as naive_measures
from tests.reference import nets as naive

SIZES = [(1,), (5,), (9, 4), (6, 10), (7, 3, 9), (5, 17, 6, 2)]


def kernel_gradient(sizes, flat, activation, inputs, lambdas):
    """Return the kernels' scores, and their flat sum of lambda_i ds_i/dw."""
    n = inputs.shape[0]
    widths, parameters = filled_widths(sizes), spread(flat, sizes)
    rows, deltas, turned, change = kernels.net_room(n, widths)
    rows[:], deltas[:], turned[:], change[:] = np.nan, np.nan, np.nan, np.nan  # scratch is scratch
    n_filled = -(-n // 4) * 4
    block = np.zeros((n_filled, widths[0]))
    block[:n, : sizes[0]] = inputs
    rows[: block.size] = block.ravel()
    code = ACTIVATIONS.index(activation)
    scores = np.empty(n)
    forward_kernel(n, widths, code, parameters, rows, scores)
    kernels.backward(n, widths, code, parameters, rows, lambdas, deltas, turned, change)
    outside = np.ones(change.size, bool)
    outside[spread(np.ones(flat.size), sizes) > 0] = False
    assert not change[outside].any()
    return scores, gathered(change, sizes)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("n", [1, 4, 11])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_backward_pass(sizes, n, activation):
    rng = np.random.default_rng(0)
    flat = rng.normal(size=n_weights(sizes)) * 0.7
    inputs, lambdas = rng.normal(size=(n, sizes[0])), rng.normal(size=n)
    scores, gradient = kernel_gradient(sizes, flat, activation, inputs, lambdas)
    rows, expected = naive.forward(sizes, flat, activation, inputs)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-13)
    by_hand = naive.backward(sizes, flat, activation, rows, lambdas)
    np.testing.assert_allclose(gradient, by_hand, rtol=1e-11, atol=1e-12)
    # finite differences of sum lambda_i s_i
    step = 1e-6
    slopes = np.empty(flat.size)
    for k in range(flat.size):
        up, down = flat.copy(), flat.copy()
        up[k] += step
        down[k] -= step
        change = (
            naive.forward(sizes, up, activation, inputs)[1]
            - naive.forward(sizes, down, activation, inputs)[1]
        )
        slopes[k] = change @ lambdas / (2 * step)
    np.testing.assert_allclose(gradient, slopes, rtol=2e-6, atol=2e-8)


@pytest.mark.parametrize("sizes", [(5,), (7, 3, 9)], ids=str)
def test_backward_pass_of_ranknets_cost(sizes):
    """The derivative of C itself, through the lambdas of pairs, by finite differences."""
    rng = np.random.default_rng(1)
    flat = rng.normal(size=n_weights(sizes)) * 0.7
    inputs = rng.normal(size=(6, sizes[0]))
    first, second = np.array([0, 2, 5, 1, 0]), np.array([1, 1, 3, 0, 4])
    target, sigma = np.array([1.0, 0.3, 0.0, 0.5, 0.9]), 1.7

    def cost(flat):
        s = naive.forward(sizes, flat, "tanh", inputs)[1]
        return pair_cost(s[first], s[second], target, sigma).sum()

    lambdas = np.zeros(6)
    s = naive.forward(sizes, flat, "tanh", inputs)[1]
    for i, j, p in zip(first, second, target, strict=True):
        up, _ = kernels.preference(sigma, s[i] - s[j], p, 1.0)
        lambdas[i] += up
        lambdas[j] -= up
    _, gradient = kernel_gradient(sizes, flat, "tanh", inputs, lambdas)
    step = 1e-6
    for k in range(flat.size):
        up, down = flat.copy(), flat.copy()
        up[k] += step
        down[k] -= step
        slope = (cost(up) - cost(down)) / (2 * step)
        assert -gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("sizes", [(5,), (6, 3, 5)], ids=str)
def test_updates(sizes, name, l2):
    rng = np.random.default_rng(0)
    flat = rng.normal(size=n_weights(sizes))
    state = Trained.from_network(Network(sizes, flat, np.zeros(sizes[0]), np.ones(sizes[0])))
    expected = {"sgd": naive.Sgd, "adam": naive.Adam}[name](sizes, 0.05, l2)
    for _ in range(30):
        gradient = rng.normal(size=flat.size) * 10.0 ** rng.integers(-6, 3, flat.size)
        flat = expected.step(flat, gradient)
        kernels.update(
            OPTIMISERS.index(name),
            0.05,
            l2,
            state.parameters,
            factors(sizes),
            spread(gradient, sizes),
            state.mean,
            state.square,
            state.powers,
        )
    np.testing.assert_allclose(gathered(state.parameters, sizes), flat, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(
        spread(gathered(state.parameters, sizes), sizes), state.parameters
    )


# -- whole epochs -------------------------------------------------------------------------------


def queries(seed=0, n_features=6):
    """Return data of unequal queries: one document, equal labels, 13 documents, ..."""
    rng = np.random.default_rng(seed)
    sizes = [5, 1, 13, 4, 8, 2, 20]
    n = sum(sizes)
    X = rng.normal(size=(n, n_features)).astype(np.float32) * 3 + 1
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 2] = 7
    y = rng.integers(0, 4, n).astype(float)
    y[19:23] = 1.0  # the query of 4
    return rg.QueryDataset(X, y, np.repeat(np.arange(len(sizes)), sizes))


def naive_pairs(spec, labels, scores, keys, truncation):
    if spec == "pairs":
        return naive_lambdas.pairs(None, labels, scores, keys, None, change=lambda *_: 1.0)
    value = {"ndcg": naive_measures.ndcg, "map": naive_measures.average_precision}[spec]
    return naive_lambdas.pairs(value, labels, scores, keys, truncation)


def step_of(net, name, rate, l2):
    activation = ACTIVATIONS.index(net.activation)
    return Step(filled_widths(net.sizes), activation, OPTIMISERS.index(name), rate, l2)


def run(task, net, name, rate, l2, orders):
    state = Trained.from_network(net)
    arrays = (state.parameters, factors(net.sizes), state.mean, state.square, state.powers)
    for order in orders:
        assert task.run(order, step_of(net, name, rate, l2), arrays, np.empty(0)) == -1
    return gathered(state.parameters, net.sizes)


def first_net(data, hidden, activation):
    mean, scale = moments(data.features, np.arange(data.n_rows))
    sizes = (data.n_features, *hidden)
    flat = np.random.default_rng(3).normal(size=n_weights(sizes)) * 0.4
    return Network(sizes, flat, mean, scale, activation)


@pytest.mark.parametrize(
    ("spec", "hidden", "activation", "name", "rate", "l2", "truncation"),
    [
        ("pairs", (4,), "tanh", "sgd", 0.02, 0.0, None),
        ("pairs", (), "tanh", "adam", 0.01, 0.1, None),
        ("ndcg", (5,), "tanh", "sgd", 0.3, 0.1, 3),
        ("ndcg", (6, 3), "relu", "adam", 0.01, 0.0, None),
        ("map", (3, 5, 2), "tanh", "adam", 0.02, 0.0, None),
    ],
)
def test_epochs_equal_the_naive_ones(spec, hidden, activation, name, rate, l2, truncation):
    data = queries()
    net = first_net(data, hidden, activation)
    keys = row_keys(data.query_keys, data.query_ptr)
    sigma = 1.3
    weight = np.random.default_rng(5).uniform(0.5, 2, data.n_rows)
    of_query = np.linspace(0.5, 2, data.n_queries)
    objective = LambdaObjective(
        rg.measure(spec),
        data.y,
        data.query_ptr,
        row_keys=keys,
        truncation=truncation,
        sigma=sigma,
        row_weight=weight,
        query_weight=of_query,
    )
    inputs = Inputs(data.features, np.arange(data.n_rows), net.mean, net.scale)
    orders = [epoch_order(data.query_keys, 0, epoch) for epoch in range(2)]
    got = run(QueryTask(inputs, objective, data.query_keys), net, name, rate, l2, orders)

    flat, optimiser = net.flat, {"sgd": naive.Sgd, "adam": naive.Adam}[name](net.sizes, rate, l2)
    Z = naive.standardised(data.X, net.mean, net.scale)
    for q in np.concatenate(orders):
        part = slice(data.query_ptr[q], data.query_ptr[q + 1])
        labels = data.y[part].tolist()
        if len({label > 0 if spec == "map" else label for label in labels}) == 1:
            continue  # no pair, no update
        rows, s = naive.forward(net.sizes, flat, activation, Z[part])
        pairs = naive_pairs(spec, labels, s.tolist(), keys[part].tolist(), truncation)
        pairs = naive_lambdas.weighed(pairs, weight[part].tolist(), of_query[q])
        up, _ = naive_lambdas.lambdas(pairs, s.tolist(), sigma)
        flat = optimiser.step(flat, naive.backward(net.sizes, flat, activation, rows, np.array(up)))
    assert np.abs(flat - net.flat).max() > 0.01
    np.testing.assert_allclose(got, flat, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_a_users_own_measure_makes_the_same_updates():
    data = queries()
    net = first_net(data, (4,), "tanh")
    keys = row_keys(data.query_keys, data.query_ptr)
    rg.register_measure("net_top", lambda labels, k: (labels[:k] >= 2).mean())
    orders = [epoch_order(data.query_keys, 0, 0)]
    inputs = Inputs(data.features, np.arange(data.n_rows), net.mean, net.scale)
    found = []
    for spec in ("net_top@3", "p@3[relevant=2]"):
        objective = LambdaObjective(rg.measure(spec), data.y, data.query_ptr, row_keys=keys)
        task = QueryTask(inputs, objective, data.query_keys)
        found.append(run(task, net, "sgd", 0.1, 0.0, orders))
    assert np.abs(found[0] - net.flat).max() > 0.001
    # the built-in one knows more queries without a pair: those that change nothing
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.parametrize("hidden", [(), (4,), (5, 3)], ids=str)
def test_factorised_and_per_pair_lambdas_are_equal(hidden):
    """Section 2.1: with weights held fixed, single pairs add up to the query's one update."""
    data = queries()
    net = first_net(data, hidden, "tanh")
    keys = row_keys(data.query_keys, data.query_ptr)
    objective = LambdaObjective(rg.measure("pairs"), data.y, data.query_ptr, row_keys=keys)
    inputs = Inputs(data.features, np.arange(data.n_rows), net.mean, net.scale)
    rate = 1e-9  # so little that one pair's update does not change the next one's lambda
    order = np.arange(data.n_queries)
    moved = []
    for form in ("factorised", "pairs"):
        task = QueryTask(inputs, objective, data.query_keys, form)
        moved.append((run(task, net, "sgd", rate, 0.0, [order]) - net.flat) / rate)
    assert np.abs(moved[0]).max() > 1
    np.testing.assert_allclose(moved[1], moved[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("form", ["factorised", "pairs"])
def test_preferences_equal_the_pairs_that_labels_make(form, name):
    data = queries()
    net = first_net(data, (4,), "tanh")
    keys = row_keys(data.query_keys, data.query_ptr)
    objective = LambdaObjective(
        rg.measure("pairs"), data.y, data.query_ptr, row_keys=keys, sigma=1.5
    )
    inputs = Inputs(data.features, np.arange(data.n_rows), net.mean, net.scale)
    orders = [epoch_order(data.query_keys, 0, e) for e in range(3)]
    by_labels = run(
        QueryTask(inputs, objective, data.query_keys, form), net, name, 0.01, 0.0, orders
    )
    # in the order in which the per-pair form comes by them
    pairs = [
        (i, j)
        for q in range(data.n_queries)
        for i in objective.shuffle[data.query_ptr[q] : data.query_ptr[q + 1]]
        for j in objective.shuffle[data.query_ptr[q] : data.query_ptr[q + 1]]
        if data.y[i] > data.y[j]
    ]
    given = check_preferences(pairs, data.n_rows, "test")
    groups = pair_groups(given, data.query_of_row, data.query_keys)
    task = GroupTask(inputs._replace(rows=groups.rows), groups, 1.5, form)
    has_pairs = np.flatnonzero(objective.has_pairs)
    assert task.keys.size == has_pairs.size
    number = {q: k for k, q in enumerate(has_pairs.tolist())}
    orders = [np.array([number[q] for q in order.tolist() if q in number]) for order in orders]
    by_pairs = run(task, net, name, 0.01, 0.0, orders)
    np.testing.assert_allclose(by_pairs, by_labels, rtol=1e-7, atol=1e-9)


def test_a_net_that_comes_apart_is_told_of_before_it_harms():
    data = queries()
    net = first_net(data, (4,), "relu")
    keys = row_keys(data.query_keys, data.query_ptr)
    objective = LambdaObjective(rg.measure("ndcg"), data.y, data.query_ptr, row_keys=keys)
    inputs = Inputs(data.features, np.arange(data.n_rows), net.mean, net.scale)
    for bad in (np.nan, np.inf, 1e200):
        for form in ("factorised", "pairs"):
            task = QueryTask(inputs, objective, data.query_keys, form)
            state = Trained.from_network(net)
            state.parameters[-4:] = bad
            arrays = (state.parameters, factors(net.sizes), state.mean, state.square, state.powers)
            assert (
                task.run(np.array([2, 0]), step_of(net, "sgd", 0.1, 0.0), arrays, np.empty(0)) == 2
            )


# -- standardising ------------------------------------------------------------------------------


def test_moments():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(1000, 7)) * [1, 10, 1e-6, 1, 1e6, 1, 1]).astype(np.float32)
    X[:, 0] += 1e5
    X[:, 3] = 0.1  # not a sum of powers of two
    X[:, 5] = np.nan
    X[rng.random(1000) < 0.3, 6] = np.nan
    X[0, 6] = np.nan
    mean, scale = moments(X, np.arange(1000))
    x = X.astype(np.float64)
    full = [0, 1, 2, 4, 6]
    np.testing.assert_allclose(mean[full], np.nanmean(x[:, full], axis=0), rtol=1e-12, atol=1e-18)
    np.testing.assert_allclose(scale[full], 1 / np.nanstd(x[:, full], axis=0), rtol=1e-10)
    assert scale[3] == scale[5] == 0.0
    assert mean[3] == np.float32(0.1)
    some = np.array([5, 9, 4])
    np.testing.assert_allclose(moments(X, some)[0][1], x[some, 1].mean())
    X[7, 1] = np.inf
    with pytest.raises(rg.DataError, match="row 7 has inf for feature 2"):
        moments(X, np.arange(1000))
