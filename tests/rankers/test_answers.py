"""What rankers answer about themselves, so that nobody asks for their class."""

import numpy as np
import pytest

import rankgrove as rg


@pytest.fixture(scope="module")
def data():
    return rg.make_web(12, n_docs=15, n_features=6, seed=1)


@pytest.fixture(scope="module")
def trees(data):
    return rg.LambdaMART(n_trees=3, n_leaves=4, min_leaf=3).fit(data)


@pytest.fixture(scope="module")
def rankers(data, trees):
    few = {"n_trees": 3, "n_leaves": 4, "min_leaf": 3}
    linear = rg.SVMMap(C=1.0, scaling="query", relevant=2).fit(data)
    return {
        "trees": trees,
        "on a submodel": rg.LambdaMART(submodel=trees, **few).fit(data),
        "mcrank": rg.McRank(**few).fit(data),
        "adapted": rg.Trada(trees, extra_trees=2).fit(data),
        "linear": linear,
        "net": rg.LambdaRank(hidden=(), n_epochs=1).fit(data),
        "bag": rg.BaggedRanker(rg.LambdaMART(**few), n_models=2).fit(data),
        "mean bag": rg.BaggedRanker(rg.LambdaMART(**few), n_models=2, combine="mean").fit(data),
        "linear bag": rg.BaggedRanker(rg.SVMMap(C=1.0, relevant=2), n_models=2).fit(data),
        "combination": rg.CombinedRanker([trees, linear]).fit(data),
        "stack": rg.StackedRanker([trees, linear], n_epochs=1).fit(data),
        "prepared": rg.PreparedRanker(rg.LambdaMART(**few), features=[1, 3]).fit(data),
    }


def test_the_models_inside(rankers, trees):
    inside = {name: len(ranker.members()) for name, ranker in rankers.items()}
    assert {name: n for name, n in inside.items() if n} == {
        "on a submodel": 1, "bag": 2, "mean bag": 2, "linear bag": 2, "combination": 2, "stack": 2,
    }  # fmt: skip
    assert {name for name, ranker in rankers.items() if ranker.combined()} == {
        "combination",
        "stack",
    }
    weights = [weight for _, weight in rankers["combination"].combined()]
    assert weights == rankers["combination"].weights_.tolist()
    assert [weight for _, weight in rankers["stack"].combined()] == [None, None]
    assert {name for name, r in rankers.items() if r.adapted_from() is not None} == {"adapted"}


def test_only_bags_average_several_models(rankers):
    for ranker in rankers.values():
        models, weights = ranker.averaged()
        assert len(models) == len(weights) == (2 if ranker.is_bag else 1)
        assert ranker.is_bag or models[0] is ranker


def test_a_bag_of_other_models_leaves_the_bag_as_it_is(rankers, data):
    bag = rankers["bag"]
    before = bag.predict(data)
    models, weights = bag.averaged()
    first = bag.with_models(models[:1], weights[:1], "mean")
    assert np.array_equal(first.predict(data), models[0].predict(data))
    assert bag.combine == "minmax"
    assert np.array_equal(bag.predict(data), before)


def test_trees(rankers, trees):
    counts = {name: ranker.tree_count() for name, ranker in rankers.items()}
    several = 3 * rankers["mcrank"].ensemble_.n_columns
    assert counts == {
        "trees": 3, "on a submodel": 3, "mcrank": several, "adapted": 5, "linear": None,
        "net": None, "bag": 6, "mean bag": 6, "linear bag": None, "combination": None,
        "stack": None, "prepared": 3,
    }  # fmt: skip
    assert rankers["on a submodel"].all_trees().n_trees == 6
    assert trees.all_trees() is trees.ensemble_
    assert rankers["linear"].all_trees() is None
    with pytest.raises(AttributeError, match="n_trees_"):
        rankers["linear bag"].n_trees_  # noqa: B018


def test_what_is_scaled_within_queries(rankers):
    scaled = {name: r.scaled_by_query() for name, r in rankers.items() if r.scaled_by_query()}
    assert scaled == {
        "linear": "features (scaling='query')",
        "bag": "its models' scores (combine='minmax')",
        "linear bag": "its models' scores (combine='minmax')",
    }


def test_prepared_features(rankers, data):
    for name, ranker in rankers.items():
        assert (ranker.inside() is ranker) == (name != "prepared")
        assert ranker.widened(data) is ranker
        if name not in ("prepared", "stack"):
            assert ranker.prepared(data) is data
    prepared = rankers["prepared"]
    assert prepared.prepared(data).n_features == 2
    assert prepared.with_inside(prepared.ranker_).predict(data).shape == (data.n_rows,)
    assert rankers["stack"].prepared(data).n_features == 2
    assert rg.PreparedRanker(rg.LambdaMART()).inside().kind == "prepared"  # not trained yet
