"""Trees taken out of models, and the weights of the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.pruning.tree_matrix import TreeMatrix


@pytest.fixture(scope="module")
def sets():
    return [rg.make_web(n, n_docs=12, n_features=6, seed=s) for n, s in ((60, 1), (40, 2))]


@pytest.fixture(scope="module")
def model(sets):
    return rg.LambdaMART("ndcg@10", n_trees=40, n_leaves=6, min_leaf=3).fit(sets[0])


@pytest.fixture(scope="module")
def matrix(sets, model):
    data = sets[1]
    return TreeMatrix(model.ensemble_, data.features, None, data.query_ptr, 2)


def test_columns_are_the_trees(sets, model, matrix):
    data = sets[1]
    trees = [model.ensemble_.tree(t).predict(data.X) for t in range(40)]
    chosen, weights = np.array([3, 7, 30]), np.array([1.0, -2.0, 0.5])
    expected = trees[3] - 2 * trees[7] + 0.5 * trees[30]
    np.testing.assert_allclose(matrix.sum(chosen, weights), expected)
    x = np.random.default_rng(0).normal(size=data.n_rows)
    np.testing.assert_allclose(matrix.dots(chosen, x), [trees[t] @ x for t in chosen])
    scale = np.random.default_rng(1).random(data.n_queries)
    by_hand = [
        sum(
            scale[q] ** 2 * tree[a:b].var() * (b - a)
            for q, (a, b) in enumerate(zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True))
        )
        for tree in trees
    ]
    np.testing.assert_allclose(matrix.spread(scale), by_hand)


def test_the_stand_in_is_near_least_squares(sets, matrix):
    data = sets[1]
    query = data.query_of_row

    def centred(x):
        return x - (np.bincount(query, x) / np.bincount(query))[query]

    kept, lost = np.arange(1, 6), matrix.sum(np.array([0]), np.ones(1))
    columns = np.stack([centred(matrix.sum(np.array([t]), np.ones(1))) for t in kept], axis=1)
    best, *_ = np.linalg.lstsq(columns, centred(lost), rcond=None)
    found = matrix.stand_in(kept, np.ones(5), lost)  # five trees: five steps are exact
    np.testing.assert_allclose(found, best, rtol=1e-6, atol=1e-9)


def test_trees_go_and_the_measures_hold(sets, model):
    data = sets[1]
    found = rg.prune(model, data, ["ndcg@10", "map[relevant=2]"], 0.002)
    many, few = found.n_trees
    assert many == 40
    assert few == found.ranker.ensemble_.n_trees < 24  # two fifths and more are gone
    before, after = found.values
    for name, value in rg.evaluate(found.ranker, data, found.measures).mean.items():
        assert value == pytest.approx(after[name], abs=1e-12)
        assert value >= before[name] - 0.002
    assert [one.n_trees for one in found.passes] == sorted(
        (one.n_trees for one in found.passes), reverse=True
    )
    assert model.ensemble_.n_trees == 40
    assert "40 ->" in repr(found)


def test_more_tolerance_leaves_fewer_trees_and_a_margin_more(sets, model):
    left = [rg.prune(model, sets[0], "ndcg@10", t).n_trees[1] for t in (0.0, 0.2)]
    assert left[0] > left[1]
    careful = rg.prune(model, sets[0], "ndcg@10", 0.01, margin=3.0)
    assert careful.n_trees[1] > rg.prune(model, sets[0], "ndcg@10", 0.01).n_trees[1]


@pytest.mark.parametrize("combine", ["minmax", "borda", "mean"])
def test_bags(sets, combine, tmp_path):
    train, data = sets
    base = rg.LambdaMART(n_trees=15, n_leaves=4, min_leaf=3)
    bag = rg.BaggedRanker(base, 3, combine=combine).fit(train)
    found = rg.prune(bag, data, "ndcg@10", 0.01)
    assert found.n_trees[0] == 45
    assert found.n_trees[1] == found.ranker.n_trees_ < 27
    value = rg.evaluate(found.ranker, data, "ndcg@10").mean["ndcg@10"]
    assert value == pytest.approx(found.values[1]["ndcg@10"], abs=1e-9)
    found.ranker.save(tmp_path / "small.rg")
    np.testing.assert_array_equal(
        rg.load(tmp_path / "small.rg").predict(data), found.ranker.predict(data)
    )


def test_same_bits_for_any_number_of_threads(sets, model):
    one, two = (rg.prune(model, sets[1], "map", 0.01, n_threads=n) for n in (1, 2))
    assert [p.values for p in one.passes] == [p.values for p in two.passes]
    np.testing.assert_array_equal(one.ranker.predict(sets[1]), two.ranker.predict(sets[1]))


def test_the_search_can_be_ended(sets, model):
    found = rg.prune(model, sets[1], "ndcg@10", 0.1, callback=lambda one: one.n_trees <= 30)
    assert 20 < found.n_trees[1] <= 30


def test_the_table(sets, model, tmp_path):
    found = rg.prune(model, sets[1], ["ndcg@10", "map"], 0.1)
    found.to_csv(tmp_path / "passes.csv")
    lines = (tmp_path / "passes.csv").read_text().splitlines()
    assert lines[0] == "trees,ndcg@10,map"
    assert len(lines) == len(found.passes) + 1


def test_the_model_of_a_file(sets, model, tmp_path):
    model.save(tmp_path / "model.rg")
    expected = rg.prune(model, sets[1], None, 0.1)
    for path in (tmp_path / "model.rg", str(tmp_path / "model.rg")):
        found = rg.prune(path, sets[1], None, 0.1)
        assert [p.values for p in found.passes] == [p.values for p in expected.passes]
    with pytest.raises(rg.ParameterError, match=r"model file, and there is no such file. Got 'a'"):
        rg.prune("a", sets[1])


def test_mistakes(sets, model):
    with pytest.raises(rg.ParameterError, match="'tolerance' parameter of prune"):
        rg.prune(model, sets[1], "map", -1.0)
    with pytest.raises(rg.DataError, match="needs a QueryDataset"):
        rg.prune(model, sets[1].X)
    with pytest.raises(rg.ParameterError, match="made of trees"):
        rg.prune(rg.SVMMap(relevant=2).fit(sets[0]), sets[1])
    with pytest.raises(rg.ParameterError, match="not the sum of its trees"):
        rg.prune(rg.McRank(n_trees=2, min_leaf=3).fit(sets[0]), sets[1])
    with pytest.raises(rg.DataError, match="leaves out every query"):
        rg.prune(model, sets[1], "map[relevant=9]")
    with pytest.raises(rg.ParameterError, match="one measure or several"):
        rg.prune(model, sets[1], [])


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.5, 1.0])
def test_a_share_of_the_trees_stays(sets, model, keep):
    # any fall is tolerated: only `keep` ends it
    before, after = rg.prune(model, sets[0], "ndcg@10", 1.0, keep=keep).n_trees
    assert after == max(1, math.ceil(keep * before))


def test_a_share_that_is_none_is_refused(sets, model):
    with pytest.raises(rg.ParameterError, match=r"keep.*1\.5"):
        rg.prune(model, sets[0], "ndcg@10", keep=1.5)
