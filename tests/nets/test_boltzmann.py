"""BoltzRank's updates: energies, expectations and gradients against all rankings written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.model.mlp import n_weights
from rankgrove.nets._boltzmann_kernels import (
    boltzmann_gradient,
    boltzmann_room,
    draw_rankings,
    normalise,
)
from rankgrove.nets.training_loop import drawn_network, epoch_order
from rankgrove.random import derive_seed, mix64
from tests.reference import boltzmann as naive
from tests.reference import measures as naive_measures
from tests.reference import nets as naive_nets

MEASURES = {
    "ndcg": naive_measures.ndcg,
    "ndcg@3": lambda labels: naive_measures.ndcg(labels, 3),
    "map": naive_measures.average_precision,
    "err": lambda labels: naive_measures.err(labels, max_grade=2),
    "mrr": naive_measures.reciprocal_rank,
}


def in_kernel(rankings, scores, labels, measure, alpha, share, temperature, longer=0):
    """Return the kernel's value and gradient; scratch is longer than it must be."""
    n = scores.size
    prepared = rg.measure(measure).prepare(labels, np.array([0, n]), 1)
    table = np.full((len(rankings), n + longer), -1)
    table[:, :n] = rankings
    room = boltzmann_room(n + longer, len(rankings))
    for scratch in room:
        scratch[:] = np.nan
    gradient = np.full(n, np.nan)
    value = boltzmann_gradient(
        prepared.measure.rule, alpha, share, temperature, scores, labels,
        prepared.gain, prepared.weight, table, room, gradient,
    )  # fmt: skip
    return value, gradient


def drawn(strength, key, n_draws):
    n = len(strength)
    rankings = np.full((n_draws, n + 2), -1)
    scratch = np.empty(n), np.empty(n), np.empty(n, np.int64)
    draw_rankings(np.asarray(strength, float), np.uint64(key), rankings, *scratch)
    assert (rankings[:, n:] == -1).all()
    return rankings[:, :n]


# -- the objective and its gradient ---------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_expectation_and_gradient_over_all_rankings(n, measure):
    rng = np.random.default_rng(n)
    labels = np.array([2.0, 0.0, 1.0, 0.0, 2.0])[:n]
    for alpha, share, temperature in [
        (1.0, 1.0, 1.0), (0.7, 0.0, 0.5), (3.0, 0.4, 2.0), (5.0, 0.8, 1.5),
    ]:  # fmt: skip
        scores = rng.normal(size=n) * 2
        rankings = naive.all_rankings(n)
        others = labels.tolist(), MEASURES[measure], alpha, share, temperature
        value, gradient = in_kernel(
            rankings, scores, labels, measure, alpha, share, temperature, longer=3
        )
        expected = naive.objective(rankings, scores.tolist(), *others)
        assert value == pytest.approx(expected, abs=1e-12)
        slopes = naive.gradient(rankings, scores.tolist(), *others)
        np.testing.assert_allclose(gradient, slopes, atol=1e-6)
        assert gradient.sum() == pytest.approx(0.0, abs=1e-12)


def test_a_sample_is_normalised_over_itself():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=6), np.array([0.0, 2.0, 1.0, 0.0, 0.0, 1.0])
    rankings = [list(rng.permutation(6)) for _ in range(9)]
    rankings.append(rankings[0])  # a ranking drawn twice counts twice
    value, gradient = in_kernel(rankings, scores, labels, "ndcg@3", 2.0, 0.6, 1.3)
    others = labels.tolist(), MEASURES["ndcg@3"], 2.0, 0.6, 1.3
    assert value == pytest.approx(naive.objective(rankings, scores.tolist(), *others), abs=1e-12)
    slopes = naive.gradient(rankings, scores.tolist(), *others)
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)


def test_scores_in_the_right_order_make_good_rankings_likely():
    labels = np.array([0.0, 1.0, 2.0, 0.0])
    rankings = naive.all_rankings(4)
    good = in_kernel(rankings, labels * 3, labels, "ndcg", 1.0, 1.0, 1.0)[0]
    flat = in_kernel(rankings, labels * 0, labels, "ndcg", 1.0, 1.0, 1.0)[0]
    bad = in_kernel(rankings, labels * -3, labels, "ndcg", 1.0, 1.0, 1.0)[0]
    assert good > flat + 0.1 > bad + 0.2
    tied = rg.measure("ndcg").query_value(labels, labels * 0)  # all orders equally likely
    assert flat == pytest.approx(tied, abs=1e-12)
    # the labels over the temperature are the target itself: no divergence, no gradient
    value, gradient = in_kernel(rankings, labels / 0.4, labels, "ndcg", 1.7, 0.0, 0.4)
    assert value == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


def test_large_scores_do_not_overflow():
    labels = np.array([0.0, 1.0, 2.0])
    for scores in (np.array([1e8, 0.0, -1e8]), labels * 1e8):
        value, gradient = in_kernel(naive.all_rankings(3), scores, labels, "ndcg", 1.0, 0.5, 1.0)
        assert math.isfinite(value)
        assert np.isfinite(gradient).all()
    powers = np.array([1000.0, 1000.0])
    assert normalise(powers) == pytest.approx(1000.0 + math.log(2.0))
    np.testing.assert_allclose(powers, 0.5)


# -- drawing --------------------------------------------------------------------------------------


def test_rankings_come_with_their_probabilities():
    strength = np.array([0.0, 1.0, -0.5, 0.3])
    n_draws = 40_000
    rankings = [tuple(row) for row in drawn(strength, 12345, n_draws).tolist()]
    for ranking in itertools.permutations(range(4)):
        p, rest = 1.0, math.fsum(np.exp(strength))
        for document in ranking:
            p *= math.exp(strength[document]) / rest
            rest -= math.exp(strength[document])
        reach = 5 * math.sqrt(p * (1 - p) / n_draws)
        assert rankings.count(ranking) / n_draws == pytest.approx(p, abs=reach)


def test_a_draw_hangs_on_its_key_and_number_alone():
    strength = np.linspace(0.0, 1.0, 7)
    few, many = drawn(strength, 5, 3), drawn(strength, 5, 30)
    np.testing.assert_array_equal(few, many[:3])
    assert len({tuple(row) for row in many.tolist()}) > 25
    assert not np.array_equal(few, drawn(strength, 6, 3))
    np.testing.assert_array_equal(drawn([800.0, -800.0, 0.0], 5, 3), [[0, 2, 1]] * 3)


# -- whole epochs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("around", ["labels", "scores"])
@pytest.mark.parametrize("redraw", [True, False])
@pytest.mark.parametrize("hidden", [(), (3,)], ids=str)
def test_two_epochs_are_those_of_the_definition(hidden, redraw, around):
    data = rg.make_web(10, n_docs=5, n_features=4, seed=2)
    y = data.y.copy()
    y[data.qid == data.query_ids[3]] = 1.0  # labels all equal: no update
    weight = dict(zip(data.query_ids.tolist(), np.arange(0.0, 10.0), strict=True))
    data = rg.QueryDataset(data.X, y, data.qid, query_weight=weight)
    model = rg.BoltzRank(
        "ndcg@3", hidden, optimiser="sgd", learning_rate=0.05, schedule="constant", n_epochs=2,
        n_rankings=8, around=around, spread=0.7, redraw=redraw, alpha=2.5, measure_share=0.6,
        temperature=1.5, l2=0.1, random_state=4,
    )  # fmt: skip
    model.fit(data)
    X = data.grouped(np.asarray(data.X, np.float64))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels, ptr = data.grouped(data.y), data.query_ptr
    sizes = (4, *hidden)
    flat = drawn_network(4, hidden, "tanh", np.zeros(4), np.ones(4), 4).flat.copy()
    assert flat.size == n_weights(sizes)
    sgd = naive_nets.Sgd(sizes, 0.05, 0.1)
    for epoch in range(2):
        seed = derive_seed(4, "rankings", epoch if redraw else 0)
        keys = mix64(data.query_keys ^ np.uint64(seed))
        for q in epoch_order(data.query_keys, 4, epoch):
            own = slice(ptr[q], ptr[q + 1])
            if np.ptp(labels[own]) == 0 or data.query_weight[q] == 0:
                continue
            rows, scores = naive_nets.forward(sizes, flat, "tanh", X[own])
            strength = (labels[own] if around == "labels" else scores) / 0.7
            rankings = drawn(strength, keys[q], 8).tolist()
            pull = naive.gradient(
                rankings, scores.tolist(), labels[own].tolist(), MEASURES["ndcg@3"], 2.5, 0.6, 1.5
            )
            pull = np.array(pull) * data.query_weight[q]
            flat = sgd.step(flat, naive_nets.backward(sizes, flat, "tanh", rows, pull))
    np.testing.assert_allclose(model.network_.flat, flat, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_a_users_own_measure_is_trained_on():
    data = rg.make_web(15, n_docs=8, n_features=4, seed=2)
    rg.register_measure("boltz_good_top", lambda labels, k: (labels[:k] >= 2).mean())
    options = {"hidden": (), "n_epochs": 3, "optimiser": "sgd", "measure_share": 1.0}
    own = rg.BoltzRank("boltz_good_top@3", **options).fit(data)
    same = rg.BoltzRank(rg.measure("p@3", relevant=2, empty=0.0), **options).fit(data)
    np.testing.assert_allclose(own.predict(data), same.predict(data), atol=1e-9)
