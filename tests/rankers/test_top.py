"""predict_top and scorer() of rankers: what they give is what predict gives."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.scoring import scorer
from tests.command import run_here as run


@pytest.fixture(autouse=True, scope="module")
def no_query_is_too_short():
    with mock.patch.object(scorer, "FEW", 0):
        yield


@pytest.fixture(scope="module")
def data():
    return rg.make_web(40, n_features=12, seed=1)


@pytest.fixture(scope="module")
def model(data):
    return rg.LambdaMART(n_trees=80, n_leaves=8, learning_rate=0.3).fit(data)


def expected_top(scores: np.ndarray, data: rg.QueryDataset, k: int) -> np.ndarray:
    wanted = np.full(data.n_rows, -np.inf)
    for query in range(data.n_queries):
        rows = np.flatnonzero(data.query_of_row == query)
        least = np.sort(scores[rows])[::-1][:k].min()
        kept = rows[scores[rows] >= least]
        wanted[kept] = scores[kept]
    return wanted


@pytest.mark.parametrize("k", [1, 3, 1000])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_top_of_every_query(data, model, k, n_threads):
    shuffled = np.random.default_rng(0).permutation(data.n_rows)
    mixed = rg.QueryDataset(data.X[shuffled], data.y[shuffled], data.qid[shuffled])
    for one in (data, mixed, mixed.select(np.arange(5, 20))):
        found = model.predict_top(one, k, n_threads)
        np.testing.assert_array_equal(found.scores, expected_top(model.predict(one), one, k))
        assert 0.0 <= found.saved < 1.0


def test_sparse_features(data, model):
    import scipy.sparse

    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(data.X), data.y, data.qid)
    np.testing.assert_array_equal(
        model.predict_top(sparse, 5).scores, model.predict_top(data, 5).scores
    )


def test_rankers_that_are_sums_of_trees_have_a_scorer(data, model):
    going_on = rg.LambdaMART(n_trees=5, submodel=model).fit(data)
    bag = rg.BaggedRanker(rg.LambdaMART(n_trees=4), n_models=3, combine="mean").fit(data)
    for one in (model, going_on, bag, rg.MART(n_trees=3).fit(data)):
        np.testing.assert_array_equal(one.scorer().predict(data.X), one.predict(data.X))
        top = one.scorer().top(data.X[:50], 7)
        expected = np.argsort(-one.predict(data.X[:50]), kind="stable")[:7]
        np.testing.assert_array_equal(top.rows, expected)


def test_others_have_none_and_are_scored_in_full(data):
    two_labels = rg.QueryDataset(data.X, np.minimum(data.y, 1), data.qid)
    classes = rg.McRank(form="ordinal", n_trees=3).fit(two_labels)
    outside = rg.LambdaMART(n_trees=2, submodel=classes).fit(two_labels)
    for one in (classes, outside):
        with pytest.raises(rg.ParameterError, match="is not one sum of trees"):
            one.scorer()
        found = one.predict_top(two_labels, 3)
        expected = expected_top(one.predict(two_labels), two_labels, 3)
        np.testing.assert_array_equal(found.scores, expected)
        assert found.saved == 0.0
    # a bag of such models is no sum of trees either
    bag = rg.BaggedRanker(classes, n_models=2, combine="mean").fit(two_labels)
    np.testing.assert_allclose(
        bag.predict(two_labels), np.mean([m.predict(two_labels) for m in bag.models_], axis=0)
    )


def test_mistakes_are_named(data, model):
    with pytest.raises(rg.DataError, match="needs the queries"):
        model.predict_top(data.X, 3)
    with pytest.raises(rg.ParameterError, match="'k' parameter"):
        model.predict_top(data, 0)


def test_rank_top_writes_the_first_lines_of_every_query(tmp_path, data, model):
    # equal documents at every place: ties are broken as in the whole run
    doubled = rg.QueryDataset(
        np.repeat(data.X, 2, axis=0), np.repeat(data.y, 2), np.repeat(data.qid, 2)
    )
    rg.write_letor(doubled, tmp_path / "test.txt")
    model.save(tmp_path / "web.rg")
    words = ["rank", "test.txt", "--model", "web.rg", "--format", "trec"]
    whole, _ = run(*words, cwd=tmp_path)
    cut, told = run(*words, "--top", "3", cwd=tmp_path)
    assert cut.splitlines() == [one for one in whole.splitlines() if int(one.split()[3]) <= 3]
    saved = model.predict_top(doubled, 3).saved
    assert told == (f"{saved:.1%} of the documents' trees were skipped.\n" if saved else "")
    _, told = run(*words[:-2], "--top", "3", cwd=tmp_path, status=2)
    assert "--format trec" in told
