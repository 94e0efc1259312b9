"""All of LambdaMART against a naive version of it: lambdas, trees, leaves, shrinkage, submodel."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import rankgrove as rg
from tests.reference import lambdamart as naive
from tests.reference import measures

MEASURES = {
    "ndcg": measures.ndcg,
    "map": measures.average_precision,
    "err[max_grade=4]": partial(measures.err, max_grade=4),
    "mrr": measures.reciprocal_rank,
}
SIZES = [9, 4, 1, 12, 7, 3, 10, 2, 8]
PAPERS = {"surrogate": None, "split": "mse", "normalise": False, "truncation": None, "l2": 0.0}
SHAPE = {"n_trees": 6, "n_leaves": 5, "min_leaf": 3}


def make_data(seed, sizes=SIZES):
    """Return a data set with base scores; a feature has few values, so that bins are exact."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = rng.integers(-40, 40, (n, 4)) / 8
    X[:, 3] = rng.integers(0, 3, n)
    y = np.clip(np.round(X[:, 0] / 3 + X[:, 3] / 2 + rng.normal(size=n)), 0, 4)
    qid = np.repeat([f"query {q}" for q in range(len(sizes))], sizes)
    return rg.QueryDataset(X, y, qid, base_score=rng.normal(size=n))


def trained(measure, train, **parameters):
    return rg.LambdaMART(measure, **PAPERS, **SHAPE, n_threads=1, **parameters).fit(train)


def expected(measure, train, rate, start=None, sigma=1.0):
    return naive.lambdamart(
        MEASURES[measure],
        train.X.tolist(),
        train.y.tolist(),
        train.query_ptr.tolist(),
        train.row_keys.tolist(),
        rate=rate,
        start=start,
        sigma=sigma,
        **SHAPE,
    )


# Splits are chosen by sums of gradients rounded to 2**-31 of their total, leaves are exact sums:
# where two splits gain the same to nine digits, another one may be taken than the naive tree's.
# On these draws no two do.
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("measure", MEASURES)
def test_the_whole_loop(measure, seed):
    train, test = make_data(seed), make_data(100 + seed, [30])
    model = trained(measure, train, learning_rate=0.3)
    scores, added = expected(measure, train, 0.3)
    assert model.ensemble_.n_trees == SHAPE["n_trees"]
    assert np.ptp(scores) > 0.5
    np.testing.assert_allclose(model.predict(train), scores, rtol=1e-12, atol=1e-12)
    of_others = [added(x) for x in test.X.tolist()]
    np.testing.assert_allclose(model.predict(test), of_others, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weight", [1.0, 0.7])
@pytest.mark.parametrize("measure", MEASURES)
def test_the_whole_loop_from_base_scores(measure, weight):
    train, test = make_data(5), make_data(105, [30])
    model = trained(
        measure, train, submodel="base_score", submodel_weight=weight, learning_rate=0.2
    )
    scores, added = expected(measure, train, 0.2, start=(weight * train.base_score).tolist())
    np.testing.assert_allclose(model.predict(train), scores, rtol=1e-12, atol=1e-12)
    of_others = weight * test.base_score + [added(x) for x in test.X.tolist()]
    np.testing.assert_allclose(model.predict(test), of_others, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_whole_loop_from_a_trained_submodel(measure):
    train = make_data(6)
    below = trained(measure, make_data(7), learning_rate=0.5)
    model = trained(measure, train, submodel=below, learning_rate=0.1, sigma=1.5)
    start = below.predict(train).tolist()
    scores, _ = expected(measure, train, 0.1, start=start, sigma=1.5)
    assert np.abs(np.array(scores) - start).max() > 0.1
    np.testing.assert_allclose(model.predict(train), scores, rtol=1e-12, atol=1e-12)
