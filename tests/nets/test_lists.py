"""ListNet's updates: the definition, written out; the gradient is that of the cross entropy."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.nets._list_kernels import list_gradient
from rankgrove.nets.training_loop import drawn_network, epoch_order


def softmax(values):
    powers = np.exp(values - values.max())
    return powers / powers.sum()


def test_the_gradient_is_that_of_the_cross_entropy():
    rng = np.random.default_rng(0)
    scores, target = rng.normal(size=6) * 3, softmax(rng.integers(0, 3, 6).astype(float))
    gradient = np.empty(6)
    list_gradient(scores, target, 2.5, gradient)
    for i, unit in enumerate(np.eye(6)):
        up, down = (-2.5 * target @ np.log(softmax(scores + e * unit)) for e in (1e-6, -1e-6))
        assert gradient[i] == pytest.approx(-(up - down) / 2e-6, abs=1e-7)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-12)
    list_gradient(scores + 1000.0, target, 2.5, gradient)  # no overflow
    assert np.isfinite(gradient).all()


def test_two_epochs_of_a_linear_function_are_those_of_the_definition():
    data = rg.make_web(12, n_docs=7, n_features=4, seed=2)
    y = data.y.copy()
    y[data.qid == data.query_ids[3]] = 1.0  # labels all equal: no update
    weight = dict(zip(data.query_ids.tolist(), np.arange(1.0, 13.0), strict=True))
    data = rg.QueryDataset(data.X, y, data.qid, query_weight=weight)
    model = rg.ListNet(
        optimiser="sgd", learning_rate=0.05, schedule="constant", n_epochs=2, l2=0.1, random_state=4
    )
    model.fit(data)
    X = data.grouped(np.asarray(data.X, np.float64))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels, ptr = data.grouped(data.y), data.query_ptr
    w = drawn_network(4, (), "tanh", np.zeros(4), np.ones(4), 4).flat.copy()
    for epoch in range(2):
        for q in epoch_order(data.query_keys, 4, epoch):
            own = slice(ptr[q], ptr[q + 1])
            if np.ptp(labels[own]) == 0:
                continue
            pull = (softmax(labels[own]) - softmax(X[own] @ w)) * data.query_weight[q]
            w = w * (1.0 - 0.05 * 0.1) + 0.05 * pull @ X[own]
    np.testing.assert_allclose(model.network_.flat, w, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("hidden", [(), (8,), (8, 4)], ids=str)
def test_learning_lowers_the_cross_entropy(hidden):
    data = rg.make_artificial(60, n_docs=12, n_features=6, seed=1)

    def entropy(model):
        scores = model.predict(data)
        return np.mean([
            -softmax(data.y[own].astype(float)) @ np.log(softmax(scores[own]))
            for own in (data.qid == q for q in data.query_ids)
        ])  # fmt: skip

    first, last = (rg.ListNet(hidden=hidden, n_epochs=n).fit(data) for n in (1, 60))
    assert entropy(last) < entropy(first) - 0.01
    assert last.network_.hidden == hidden
