"""Partial dependence against scores of changed copies, to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rankgrove as rg

DATA = rg.make_web(25, n_docs=12, n_features=6, seed=3)


def by_copies(model, data, settings):
    """Return the scores of all rows with some columns set."""
    x = np.array(data.X)
    for j, value in settings.items():
        x[:, j] = value
    changed = rg.QueryDataset(
        x, data.y, data.qid, feature_names=data.feature_names, base_score=data.base_score
    )
    return model.predict(changed)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    trees = rg.LambdaMART(n_trees=12, min_leaf=5).fit(DATA)
    file = tmp_path_factory.mktemp("models") / "lightgbm.txt"
    rg.convert(trees, file)
    return {
        "trees": trees,
        "mart": rg.MART(n_trees=5).fit(DATA),
        "submodel": rg.LambdaMART(n_trees=3, submodel=trees).fit(DATA),
        "classes": rg.McRank(n_trees=2).fit(DATA),
        "net": rg.RankNet(hidden=(4,), n_epochs=1).fit(DATA),
        "svm": rg.SVMMap().fit(DATA),
        "bag": rg.BaggedRanker(rg.MART(n_trees=3), n_models=2, combine="mean").fit(DATA),
        "foreign": rg.load(file),
    }


@pytest.mark.parametrize("kind", ["trees", "mart", "submodel", "classes", "net", "svm", "bag"])
def test_means_of_changed_copies(models, kind):
    model = models[kind]
    found = rg.partial_dependence(model, DATA, 3, grid=[2.0, -1.0, 0.0, np.nan, 0.0])
    np.testing.assert_array_equal(found.grid, [-1.0, 0.0, 2.0, np.nan])
    for g, value in enumerate(found.grid):
        scores = by_copies(model, DATA, {2: value})
        assert found.mean[g] == math.fsum(scores) / scores.size
        np.testing.assert_array_equal(found.quantiles[:, g], np.quantile(scores, found.levels))


@pytest.mark.parametrize("kind", ["trees", "submodel", "bag", "foreign"])
@pytest.mark.parametrize("feature", range(1, 7))
def test_means_and_quantiles_are_exact(models, kind, feature):
    model = models[kind]
    for grid in (None, 7, "thresholds"):
        if grid == "thresholds" and feature - 1 not in model.flat().feature:
            with pytest.raises(rg.DataError, match="no tree uses"):
                rg.partial_dependence(model, DATA, feature, grid)
            continue
        found = rg.partial_dependence(model, DATA, feature, grid, n_threads=2)
        for g, value in enumerate(found.grid.tolist()):
            scores = by_copies(model, DATA, {feature - 1: value})
            assert found.mean[g] == math.fsum(scores) / scores.size


def test_thresholds_show_every_step(models):
    model = models["trees"]
    feature = int(np.bincount(model.ensemble_.feature).argmax())
    steps = rg.partial_dependence(model, DATA, feature + 1, "thresholds")
    fine = np.linspace(steps.grid[0] - 1, steps.grid[-1] + 1, 300)
    every = rg.partial_dependence(model, DATA, feature + 1, fine)
    step = np.minimum(np.searchsorted(steps.grid, every.grid), steps.grid.size - 1)
    np.testing.assert_array_equal(every.mean, steps.mean[step])


def test_two_features(models):
    found = rg.partial_dependence(
        models["trees"], DATA, (3, DATA.feature_names[0]), ([0.0, 1.0], [2.0, 3.0, 4.0])
    )
    assert found.mean.shape == (2, 3)
    assert found.quantiles.shape == (5, 2, 3)
    scores = by_copies(models["trees"], DATA, {2: 1.0, 0: 3.0})
    assert found.mean[1, 1] == math.fsum(scores) / scores.size
    assert found.to_pandas().shape == (6, 6)
    assert rg.partial_dependence(models["svm"], DATA, (1, 2), 3).mean.ndim == 2


def test_parts_of_the_grid_at_a_time(models, monkeypatch):
    whole = rg.partial_dependence(models["trees"], DATA, 1)
    monkeypatch.setattr("rankgrove.explaining.partial_dependence.MOST_CELLS", 1000)
    monkeypatch.setattr("rankgrove.explaining.tree_shap.ROWS_AT_ONCE", 17)
    parts = rg.partial_dependence(models["trees"], DATA, 1)
    np.testing.assert_array_equal(whole.mean, parts.mean)
    np.testing.assert_array_equal(whole.quantiles, parts.quantiles)


def test_mistakes(models):
    trees = models["trees"]
    for feature, grid, error, words in [
        (99, None, rg.DataError, "no feature 99"),
        ((1, 2, 3), None, rg.ParameterError, "a pair"),
        ((1, 1), None, rg.ParameterError, "two different"),
        (1, "steps", rg.ParameterError, "thresholds"),
        (1, [], rg.ParameterError, "at least one"),
        (1, ["x"], rg.ParameterError, "list of numbers"),
        (1, 1, rg.ParameterError, "at least 2"),
    ]:
        with pytest.raises(error, match=words):
            rg.partial_dependence(trees, DATA, feature, grid)
    with pytest.raises(rg.ParameterError, match="thresholds"):
        rg.partial_dependence(models["net"], DATA, 1, "thresholds")
    bag = rg.BaggedRanker(rg.MART(n_trees=2), n_models=2).fit(DATA)
    for model in (
        rg.SVMMap(scaling="query").fit(DATA),
        bag,
        rg.CombinedRanker([bag, trees]).fit(DATA),
        rg.LambdaMART(n_trees=2, submodel=bag).fit(DATA),
    ):
        with pytest.raises(rg.DataError, match="within every query"):
            rg.partial_dependence(model, DATA, 1)
    empty = rg.QueryDataset(
        np.full((4, 6), np.nan), [0, 1, 0, 1], [1, 1, 2, 2], feature_names=DATA.feature_names
    )
    with pytest.raises(rg.DataError, match="has no values"):
        rg.partial_dependence(trees, empty, 1)
