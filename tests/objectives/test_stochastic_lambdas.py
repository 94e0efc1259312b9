"""Stochastic lambdas: the mean of plain lambdas at noisy scores, and what must hold of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rankgrove as rg
from rankgrove.errors import ParameterError
from rankgrove.objectives.lambdas import LambdaObjective
from tests.objectives.test_lambdas import CASES, SIZES, assert_close, make_queries, oracle
from tests.reference.noise import gumbel


def smoothed(queries, measure, round=0, n_threads=1, chosen=None, **parameters):
    objective = LambdaObjective(
        rg.measure(measure), queries.labels, queries.ptr, row_keys=queries.keys, **parameters
    )
    gradient, hessian = np.full((2, queries.labels.size), np.nan)
    objective.gradients(queries.scores, gradient, hessian, chosen, n_threads, round)
    return gradient, hessian


@pytest.mark.parametrize("spec", ["ndcg@3", "map", "err[max_grade=4]", "pairs"])
@pytest.mark.parametrize("draws", [1, 7])
def test_the_mean_of_the_lambdas_at_noisy_scores(spec, draws):
    queries = make_queries(SIZES, seed=3)
    sigma, smoothing, seed, round = 1.7, 0.8, 5, 12
    got = smoothed(
        queries, spec, round, sigma=sigma, smoothing=smoothing, draws=draws, seed=seed, truncation=6
    )
    for q in range(len(SIZES)):
        part = queries.part(q)
        total = np.zeros((2, SIZES[q]))
        for draw in range(draws):
            noise = [gumbel(key, seed, round, draw) for key in queries.keys[part]]
            scores = queries.scores[part] + smoothing / sigma * np.array(noise)
            # equal scores have equal chances: the oracle has the order of the keys too
            total += oracle(CASES[spec], queries.labels[part], scores, queries.keys[part], 6, sigma)
        assert_close([array[part] for array in got], total / draws, rtol=1e-9)


def test_no_smoothing_is_the_papers_own():
    queries = make_queries(SIZES, seed=4)
    plain = smoothed(queries, "ndcg@10", normalise=True)
    for array, other in zip(
        plain, smoothed(queries, "ndcg@10", 9, normalise=True, smoothing=0.0, draws=5), strict=True
    ):
        np.testing.assert_array_equal(array, other)


def test_rounds_and_seeds_differ_threads_and_choices_of_queries_do_not():
    queries = make_queries(SIZES * 5, seed=5)
    settings = {"smoothing": 1.0, "draws": 3, "normalise": True}
    gradient, hessian = smoothed(queries, "ndcg@10", 3, **settings)
    for array, other in zip(
        (gradient, hessian), smoothed(queries, "ndcg@10", 3, n_threads=2, **settings), strict=True
    ):
        np.testing.assert_array_equal(array, other)
    some = np.array([0, 3, 17, 40])
    partial, _ = smoothed(queries, "ndcg@10", 3, chosen=some, **settings)
    for q in some:
        np.testing.assert_array_equal(partial[queries.part(q)], gradient[queries.part(q)])
    for other in (
        smoothed(queries, "ndcg@10", 4, **settings)[0],
        smoothed(queries, "ndcg@10", 3, seed=1, **settings)[0],
    ):
        assert not np.array_equal(gradient, other)


def test_pairs_push_in_opposite_directions():
    queries = make_queries(SIZES, seed=6)
    gradient, hessian = smoothed(queries, "ndcg@10", smoothing=1.0, draws=4)
    for q in range(len(SIZES)):
        assert abs(gradient[queries.part(q)].sum()) < 1e-12
    assert (hessian >= 0).all()


def test_the_noise_is_gumbels_and_independent():
    rows, draws = 4000, 12
    keys = rg.random.row_keys(rg.random.string_keys(["a"]), np.array([0, rows]))
    noise = np.array([[gumbel(key, 0, 0, draw) for key in keys] for draw in range(draws)])
    for column in noise:
        assert stats.kstest(column, stats.gumbel_r.cdf).pvalue > 1e-3
    correlation = np.corrcoef(noise) - np.eye(draws)
    assert np.abs(correlation).max() < 5 / np.sqrt(rows)


@pytest.fixture(scope="module")
def data():
    return rg.make_web(60, n_docs=20, n_features=10, seed=1)


def test_models_do_not_depend_on_threads_or_on_the_order_of_queries(data):
    settings = {"n_trees": 8, "smoothing": 1.0, "draws": 2, "random_state": 3}
    first = rg.LambdaMART(n_threads=1, **settings).fit(data)
    second = rg.LambdaMART(n_threads=2, **settings).fit(data)
    turned = data.select(np.arange(data.n_queries)[::-1])
    third = rg.LambdaMART(**settings).fit(turned)
    for other in (second, third):
        np.testing.assert_array_equal(first.predict(data), other.predict(data))
    plain = rg.LambdaMART(n_trees=8).fit(data)
    assert not np.array_equal(plain.predict(data), first.predict(data))


def test_training_continues_from_a_submodel_as_if_it_had_not_stopped(data):
    settings = {"smoothing": 1.0, "query_fraction": 0.5}
    whole = rg.LambdaMART(n_trees=10, **settings).fit(data)
    begun = rg.LambdaMART(n_trees=4, **settings).fit(data)
    continued = rg.LambdaMART(n_trees=6, submodel=begun, **settings).fit(data)
    np.testing.assert_array_equal(whole.predict(data), continued.predict(data))


def test_sigma_changes_the_scale_of_scores_alone(data):
    one = rg.LambdaMART(n_trees=6, smoothing=1.0, sigma=1.0).fit(data).predict(data)
    two = rg.LambdaMART(n_trees=6, smoothing=1.0, sigma=2.0).fit(data).predict(data)
    np.testing.assert_allclose(one, 2.0 * two, rtol=1e-6)


def test_a_net_takes_smoothing_too(data):
    settings = {"n_epochs": 3, "random_state": 2}
    plain = rg.LambdaRank("ndcg@10", **settings).fit(data)
    noisy = rg.LambdaRank("ndcg@10", smoothing=1.0, draws=2, **settings).fit(data)
    again = rg.LambdaRank("ndcg@10", smoothing=1.0, draws=2, **settings).fit(data)
    np.testing.assert_array_equal(noisy.predict(data), again.predict(data))
    assert not np.array_equal(plain.predict(data), noisy.predict(data))


def test_bad_values_are_refused(data):
    with pytest.raises(ParameterError, match="smoothing"):
        rg.LambdaMART(smoothing=-1.0).fit(data)
    with pytest.raises(ParameterError, match="draws"):
        rg.LambdaRank(draws=0).fit(data)
