"""Rankers of symmetric trees: whatever is done with trees works, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.errors import ParameterError
from tests.command import run_here

FEW = {"n_trees": 4, "n_leaves": 8, "min_leaf": 5}
RANKERS = (rg.LambdaMART, rg.MART, rg.McRank, rg.GBRank)


@pytest.fixture(scope="module")
def data():
    train = rg.make_web(25, n_docs=20, n_features=8, seed=1)
    X = np.array(train.X, np.float32)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return rg.QueryDataset(X, train.y, train.qid)


@pytest.mark.parametrize("ranker", RANKERS)
def test_levels_have_one_split_and_files_keep_the_growth(ranker, data, tmp_path):
    model = ranker(**FEW, growth="symmetric", n_threads=1).fit(data)
    ensemble = model.ensemble_
    for t in range(ensemble.n_trees):
        tree = ensemble.tree(t)
        splits = set(zip(tree.feature, tree.threshold, tree.missing_left, strict=True))
        assert len(splits) <= 3
    assert ensemble.n_leaves > 4 * ensemble.n_trees
    scores = model.predict(data)
    threaded = ranker(**FEW, growth="symmetric", n_threads=2).fit(data)
    assert np.array_equal(threaded.predict(data), scores)
    assert not np.array_equal(ranker(**FEW, n_threads=1).fit(data).predict(data), scores)
    model.save(tmp_path / "model.rg")
    loaded = rg.load(tmp_path / "model.rg")
    assert loaded.growth == "symmetric"
    assert np.array_equal(loaded.predict(data), scores)


def test_trees_are_ordinary_trees(data):
    model = rg.LambdaMART(**FEW, growth="symmetric", n_threads=1).fit(data)
    explained = rg.explain(model, data)
    sums = explained.contributions.sum(axis=1) + explained.base
    assert sums == pytest.approx(model.predict(data))
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_leafwise_is_the_default(data):
    plain = rg.MART(**FEW, n_threads=1).fit(data)
    assert plain.growth == "leafwise"
    named = rg.MART(**FEW, growth="leafwise", n_threads=1).fit(data)
    assert np.array_equal(plain.predict(data), named.predict(data))


@pytest.mark.parametrize("ranker", RANKERS)
def test_other_words_are_refused(ranker, data):
    with pytest.raises(ParameterError, match=r"'growth'.*leafwise.*symmetric.*'levelwise'"):
        ranker(growth="levelwise").fit(data)


def test_the_command_line_knows_the_parameter():
    for kind in ("lambdamart", "mart", "mcrank", "gbrank"):
        assert 'growth = "leafwise"' in run_here("params", kind)[0]
