"""Shapley values of trees against their definition, and against LightGBM's."""

from __future__ import annotations

import json
import math

import lightgbm
import numpy as np
import pytest
import xgboost
from benchmarks.categories_scoring import lightgbm_trees
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.explaining.tree_shap import leaf_cover, tree_contributions
from rankgrove.model.category_sets import CategorySets
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.scoring.score import score
from tests.reference import shapley as naive

THRESHOLDS = [-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf]
VALUES = [math.nan, -math.inf, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, math.inf]


def random_tree(rng, n_leaves, n_features, zero_counts=False, categorical=()):
    """Return a tree of any shape: leaves are split one after the other."""
    nodes, leaves = [], [None]  # a leaf knows the child entry that names it
    for _ in range(n_leaves - 1):
        at = int(rng.integers(len(leaves)))
        parent = leaves[at]
        if parent is not None:
            nodes[parent[0]][parent[1]] = len(nodes)
        nodes.append([~at, ~len(leaves)])
        leaves[at] = (len(nodes) - 1, 0)
        leaves.append((len(nodes) - 1, 1))
    n = len(nodes)
    counts = rng.integers(0 if zero_counts else 1, 9, n_leaves)
    feature = rng.integers(0, n_features, n).astype(np.int32)
    set_of = np.where(np.isin(feature, categorical), np.arange(n), -1).astype(np.int32)
    sets = CategorySets.of([rng.choice(4, rng.integers(0, 4), replace=False) for _ in range(n)])
    return Tree(
        feature=feature,
        set_of=set_of,
        sets=sets,
        threshold=rng.choice(THRESHOLDS, n).astype(np.float32),
        left=np.array([one[0] for one in nodes], np.int32),
        right=np.array([one[1] for one in nodes], np.int32),
        missing_left=rng.random(n) < 0.5,
        gain=np.zeros(n),
        value=rng.normal(size=n_leaves),
        count=np.concatenate([np.full(n, -1), counts]),
        weight=np.full(n + n_leaves, np.nan),
        mean=np.full(n + n_leaves, np.nan),
    )


@settings(max_examples=80)
@given(
    st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 6), st.booleans(), st.integers(0, 3)
)
def test_the_definition(seed, n_leaves, n_features, zero_counts, n_categorical):
    rng = np.random.default_rng(seed)
    categorical = range(n_categorical)
    trees = [random_tree(rng, n_leaves, n_features, zero_counts, categorical) for _ in range(3)]
    own = Ensemble.from_trees(trees, n_features, base=0.25)
    own.check()
    x = rng.choice(VALUES, (5, n_features)).astype(np.float32)
    for j in categorical[:n_features]:
        x[:, j] = rng.choice([math.nan, -1.0, 0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 99.0], 5)
    base, found = tree_contributions(own, x, leaf_cover(own, None))
    wanted = [np.sum([naive.shapley(tree, row, n_features) for tree in trees], axis=0) for row in x]
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    assert base == pytest.approx(0.25 + sum(naive.expectation(t, x[0], set()) for t in trees))
    np.testing.assert_allclose(base + found.sum(axis=1), score(own, x), atol=1e-12)


def test_deep_chains_stay_exact():
    """A path of 60 different features, and of one feature 60 times."""
    n = 60
    rng = np.random.default_rng(0)
    for feature in (np.arange(n), np.zeros(n)):
        chain = Tree(
            feature=feature.astype(np.int32),
            threshold=np.linspace(1.0, 0.0, n, dtype=np.float32),
            left=np.array([*range(1, n), ~0], np.int32),
            right=np.array([~k for k in range(1, n + 1)], np.int32),
            missing_left=np.zeros(n, bool),
            gain=np.zeros(n),
            value=rng.normal(size=n + 1),
            count=np.concatenate([np.full(n, -1), rng.integers(1, 1000, n + 1)]),
            weight=np.full(2 * n + 1, np.nan),
            mean=np.full(2 * n + 1, np.nan),
        )
        own = Ensemble.from_trees([chain], n)
        x = rng.random((20, n)).astype(np.float32)
        base, found = tree_contributions(own, x, leaf_cover(own, None))
        np.testing.assert_allclose(base + found.sum(axis=1), score(own, x), atol=1e-11)


def some_data(n_features=12):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, n_features)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    filled = np.nan_to_num(x)
    y = filled[:, 0] * filled[:, 1] + filled[:, 2] + rng.normal(size=1500)
    return x, y, rg.QueryDataset(x, (y > 0).astype(int), np.arange(1500) // 30)


def test_lightgbm_has_the_same_numbers(tmp_path):
    x, y, data = some_data()
    settings = {"num_leaves": 31, "verbose": -1, "num_threads": 1}
    model = lightgbm.train(settings, lightgbm.Dataset(x.astype(float), y), 40)
    model.save_model(tmp_path / "lightgbm.txt")
    own = rg.load(tmp_path / "lightgbm.txt")
    wanted = model.predict(x.astype(float), pred_contrib=True)
    for n_threads in (1, 2):
        found = rg.explain(own, data, n_threads=n_threads)
        np.testing.assert_allclose(found.contributions, wanted[:, :-1], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(found.base, wanted[:, -1], rtol=1e-10, atol=1e-15)


def test_lightgbm_has_the_same_numbers_for_sets_of_categories():
    x, y, _ = some_data()
    rng = np.random.default_rng(2)
    x[:, 3] = rng.integers(0, 40, 1500)
    x[rng.random(1500) < 0.1, 3] = np.nan
    y += np.nan_to_num(rng.normal(size=40)[np.nan_to_num(x[:, 3]).astype(int)])
    given = lightgbm.Dataset(x.astype(float), y, categorical_feature=[3])
    settings = {"num_leaves": 31, "min_data_per_group": 5, "verbose": -1, "num_threads": 1}
    model = lightgbm.train(settings, given, 30)
    own = lightgbm_trees(model, 12)
    assert np.count_nonzero(own.set_of >= 0) > 50
    x[:20, 3] = [-1.0, 40.0, 77.0, 1000.0] * 5
    x64 = x.astype(float)
    np.testing.assert_array_equal(score(own, x64), model.predict(x64))
    base, found = tree_contributions(own, x, leaf_cover(own, None))
    wanted = model.predict(x64, pred_contrib=True)
    np.testing.assert_allclose(found, wanted[:, :-1], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(base, wanted[0, -1], rtol=1e-10)


@pytest.mark.parametrize("objective", ["regression", "lambdarank"])
@pytest.mark.parametrize("form", ["txt", "json"])
def test_lightgbm_has_the_same_numbers_where_zero_is_missing(tmp_path, objective, form):
    """Splits that become several in a row keep the shares of rows on either side."""
    x, y, data = some_data()
    x = np.where(np.isnan(x), 0.0, x).astype(float) + 0.3 * (x > 1.0)
    data = rg.QueryDataset(x, data.y, data.qid)
    settings = {"objective": objective, "num_leaves": 12, "zero_as_missing": True, "verbose": -1}
    labels = y if objective == "regression" else data.y
    given = lightgbm.Dataset(x, labels, group=[30] * 50)
    model = lightgbm.train({**settings, "num_threads": 1}, given, 20)
    path = tmp_path / "m"
    if form == "txt":
        model.save_model(path)
    else:
        path.write_text(json.dumps(model.dump_model()))
    own = rg.load(path)
    assert own.ensemble_.n_leaves > 240  # some became larger
    found = rg.explain(own, data)
    wanted = model.predict(np.asarray(data.X, float), pred_contrib=True)
    np.testing.assert_allclose(found.contributions, wanted[:, :-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.base, wanted[:, -1], rtol=1e-9, atol=1e-12)
    gain = model.feature_importance("gain")
    np.testing.assert_allclose(own.feature_importance("gain"), gain / gain.sum(), rtol=1e-5)


def test_of_a_random_forest_they_sum_to_the_mean_of_its_trees(tmp_path):
    """LightGBM's sum to the sum of the trees, which its `predict` divides by their number."""
    x, y, data = some_data()
    settings = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7, "verbose": -1}
    model = lightgbm.train(settings, lightgbm.Dataset(x.astype(float), y), 8)
    model.save_model(tmp_path / "forest.txt")
    own = rg.load(tmp_path / "forest.txt")
    found = rg.explain(own, data)
    theirs = model.predict(x.astype(float), pred_contrib=True)
    np.testing.assert_allclose(8 * found.contributions, theirs[:, :-1], rtol=1e-9, atol=1e-12)
    total = found.contributions.sum(axis=1) + found.base
    np.testing.assert_allclose(total, model.predict(x.astype(float)), rtol=1e-9)
    np.testing.assert_allclose(total, own.predict(data), rtol=1e-9)


@pytest.mark.parametrize("objective", ["reg:squarederror", "rank:ndcg"])
def test_xgboost_has_the_same_numbers(tmp_path, objective):
    x, y, data = some_data()
    given = xgboost.DMatrix(x, data.y if "rank" in objective else y, qid=np.arange(1500) // 30)
    model = xgboost.train({"objective": objective, "max_depth": 5, "nthread": 1}, given, 20)
    model.save_model(tmp_path / "xgboost.json")
    found = rg.explain(rg.load(tmp_path / "xgboost.json"), data)
    wanted = model.predict(given, pred_contribs=True)
    np.testing.assert_allclose(found.contributions, wanted[:, :-1], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found.base, wanted[:, -1], rtol=1e-5, atol=1e-5)


def test_threads_and_neighbours_do_not_matter():
    data = rg.make_web(40, n_docs=30, n_features=10, seed=1)
    own = rg.LambdaMART(n_trees=30).fit(data).ensemble_
    x = np.array(data.X)
    whole = [tree_contributions(own, x, leaf_cover(own, None), n)[1] for n in (1, 2)]
    np.testing.assert_array_equal(*whole)
    some = tree_contributions(own, x[7:8], leaf_cover(own, None))[1]
    np.testing.assert_array_equal(some[0], whole[0][7])


def test_rows_of_the_background_are_counted():
    data = rg.make_web(30, n_docs=30, n_features=10, seed=1)
    own = rg.LambdaMART(n_trees=20).fit(data).ensemble_
    np.testing.assert_array_equal(leaf_cover(own, data), own.leaf_count)
    np.testing.assert_array_equal(leaf_cover(own, data, 1), leaf_cover(own, data, 2))


def test_rows_of_the_background_are_counted_by_sets_of_categories():
    rng = np.random.default_rng(3)
    own = Ensemble.from_trees([random_tree(rng, 9, 3, categorical=(0, 2)) for _ in range(4)], 3)
    x = rng.choice([math.nan, -1.0, 0.0, 1.0, 2.0, 3.0, 7.0], (60, 3)).astype(np.float32)
    data = rg.QueryDataset(x, np.zeros(60), np.arange(60) // 10)
    reached = [own.tree(t).apply(x) + own.leaf_ptr[t] for t in range(4)]
    expected = np.bincount(np.concatenate(reached), minlength=own.n_leaves)
    np.testing.assert_array_equal(leaf_cover(own, data), expected)
