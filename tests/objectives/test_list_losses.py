"""Losses of whole queries: XE-NDCG and the squared error within queries."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.errors import DataError, ParameterError
from rankgrove.objectives.list_losses import QuerySquaredError, SoftmaxCrossEntropy
from rankgrove.random import derive_seed
from tests.objectives.test_lambdas import SIZES, make_queries
from tests.reference.noise import mix


def filled(objective, scores, queries=None, n_threads=1, round=0):
    gradient, hessian = np.full((2, scores.size), np.nan)
    objective.gradients(scores, gradient, hessian, queries, n_threads, round)
    return gradient, hessian


def naive_cross_entropy(labels, scores, gammas, weights):
    """Return loss, gradient upwards and second derivative of one query, by the definition."""
    e = [math.exp(s) for s in scores]
    rho = [x / sum(e) for x in e]
    phi = [w * (2**label - g) for label, g, w in zip(labels, gammas, weights, strict=True)]
    phi = [x / sum(phi) for x in phi]
    loss = -sum(p * math.log(r) for p, r in zip(phi, rho, strict=True))
    return loss, [p - r for p, r in zip(phi, rho, strict=True)], [r * (1 - r) for r in rho]


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_follows_its_definition(weighted):
    queries = make_queries(SIZES, seed=1)
    rng = np.random.default_rng(2)
    weight = rng.random(queries.labels.size) + 0.5 if weighted else None
    query_weight = rng.random(len(SIZES)) + 0.5 if weighted else None
    objective = SoftmaxCrossEntropy(
        queries.labels,
        queries.ptr,
        row_keys=queries.keys,
        seed=7,
        weight=weight,
        query_weight=query_weight,
    )
    gradient, hessian = filled(objective, queries.scores, round=4)
    seed = derive_seed(7, "softmax", 4)
    for q in range(len(SIZES)):
        part = queries.part(q)
        if SIZES[q] == 1:
            assert gradient[part] == 0
            assert hessian[part] == 0
            continue
        gammas = [(mix(int(key) ^ seed) >> 11) / 2**53 for key in queries.keys[part]]
        weights = weight[part] if weighted else np.ones(SIZES[q])
        _, expected, curvature = naive_cross_entropy(
            queries.labels[part], queries.scores[part], gammas, weights
        )
        scale = query_weight[q] if weighted else 1.0
        np.testing.assert_allclose(gradient[part], scale * np.array(expected), atol=1e-13)
        np.testing.assert_allclose(hessian[part], scale * np.array(curvature), rtol=1e-11)


def test_cross_entropy_is_the_gradient_of_its_loss():
    labels, scores = [2.0, 0.0, 1.0, 0.0], [0.3, -0.2, 0.9, 0.1]
    gammas, ones, step = [0.2, 0.7, 0.1, 0.9], [1.0] * 4, 1e-6
    _, gradient, _ = naive_cross_entropy(labels, scores, gammas, ones)
    for i in range(4):
        up, down = list(scores), list(scores)
        up[i] += step
        down[i] -= step
        change = [naive_cross_entropy(labels, s, gammas, ones)[0] for s in (up, down)]
        assert (change[1] - change[0]) / (2 * step) == pytest.approx(gradient[i], abs=1e-8)


def test_cross_entropy_redraws_gamma_every_round():
    queries = make_queries(SIZES, seed=1)
    objective = SoftmaxCrossEntropy(queries.labels, queries.ptr, row_keys=queries.keys)
    first = filled(objective, queries.scores)[0]
    np.testing.assert_array_equal(first, filled(objective, queries.scores, n_threads=2)[0])
    assert not np.array_equal(first, filled(objective, queries.scores, round=1)[0])


def test_far_scores_do_not_overflow():
    objective = SoftmaxCrossEntropy(
        np.array([1.0, 0.0, 0.0]), np.array([0, 3]), row_keys=np.arange(3, dtype=np.uint64)
    )
    gradient, hessian = filled(objective, np.array([-5000.0, 5000.0, 0.0]))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert gradient[0] > 0 > gradient[1]


@pytest.mark.parametrize("weighted", [False, True])
def test_query_squared_error_takes_out_the_mean(weighted):
    queries = make_queries(SIZES, seed=3)
    weight = np.random.default_rng(4).random(queries.labels.size) if weighted else None
    objective = QuerySquaredError(queries.labels, queries.ptr, weight)
    gradient, hessian = filled(objective, queries.scores)
    for q in range(len(SIZES)):
        part = queries.part(q)
        w = weight[part] if weighted else np.ones(SIZES[q])
        residual = queries.labels[part] - queries.scores[part]
        residual = residual - (w * residual).sum() / w.sum()
        np.testing.assert_allclose(gradient[part], w * residual, atol=1e-13)
        np.testing.assert_allclose(hessian[part], w)
        shifted = queries.scores.copy()
        shifted[part] += 3.0
        np.testing.assert_allclose(filled(objective, shifted)[0][part], w * residual, atol=1e-12)


@pytest.mark.parametrize("loss", ["softmax", "query_squared"])
def test_mart_learns_an_order(loss):
    train, test = rg.make_web(80, n_docs=20, seed=1), rg.make_web(60, n_docs=20, seed=2)
    model = rg.MART(loss, n_trees=40, n_leaves=8, n_threads=1).fit(train)
    again = rg.MART(loss, n_trees=40, n_leaves=8, n_threads=2).fit(train)
    np.testing.assert_array_equal(model.predict(test), again.predict(test))
    by_chance = rg.evaluate(np.zeros(test.n_rows), test, "ndcg@10").mean["ndcg@10"]
    assert rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > by_chance + 0.15
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("loss", ["softmax", "query_squared"])
def test_labels_equal_within_every_query_are_refused(loss):
    data = rg.QueryDataset(np.arange(6.0)[:, None], [1, 1, 1, 0, 0, 0], qid=[1, 1, 1, 2, 2, 2])
    with pytest.raises(DataError, match="different labels"):
        rg.MART(loss).fit(data)


@pytest.mark.parametrize("loss", ["softmax", "query_squared"])
def test_losses_of_queries_need_query_ids(loss):
    with pytest.raises(DataError, match=r"needs query ids \(qid=\)"):
        rg.MART(loss).fit(np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(("name", "ours"), [("QueryRMSE", "query_squared"), ("xendcg", "softmax")])
def test_other_names_of_losses(name, ours):
    with pytest.raises(ParameterError, match=f"did you mean '{ours}'"):
        rg.MART(name).check_parameters()


def test_labels_whose_powers_overflow_are_refused():
    X, qid = np.arange(8.0)[:, None], [1] * 4 + [2] * 4
    model = rg.MART("softmax", n_trees=2, min_leaf=1)
    with pytest.raises(DataError, match=r"at most 800\. Got 1024: give documents grades"):
        model.fit(X, [0, 1, 2, 1024] * 2, qid=qid)
    with pytest.raises(DataError, match=r"at least -800 .* Got -2000"):
        model.fit(X, [-2000, -1999, -1998, -1997] * 2, qid=qid)
    weight = np.full(8, 1e30)
    model.fit(X, [0, 800, 800, 800] * 2, qid=qid, sample_weight=weight)
    assert np.isfinite(model.predict(X)).all()
