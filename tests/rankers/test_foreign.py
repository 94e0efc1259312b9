"""Models of other libraries as rankers: evaluated, combined, adapted, pruned, saved."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone

import rankgrove as rg
from rankgrove.formats.write import Labels, encode


@pytest.fixture(scope="module")
def sets():
    return [rg.make_web(40, n_docs=15, n_features=6, seed=seed) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def models(sets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    train = sets[0]
    X, y, sizes = np.asarray(train.X), train.y, np.diff(train.query_ptr)
    params = {"objective": "lambdarank", "verbose": -1, "num_leaves": 8, "min_data_in_leaf": 5}
    booster = lgb.train(params, lgb.Dataset(X, y, group=sizes), 25)
    booster.save_model(folder / "lgb.txt")
    matrix = xgb.DMatrix(X, y)
    matrix.set_group(sizes)
    other = xgb.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 25)
    other.save_model(folder / "xgb.ubj")
    trees = rg.LambdaMART(n_trees=10, n_leaves=6, min_leaf=3).fit(train).ensemble_
    agreeing = replace(trees, missing_left=trees.threshold >= 0)
    (folder / "rank.xml").write_bytes(encode(agreeing, "ranklib", Labels("m", [], False))[0])
    return {name: folder / name for name in ("lgb.txt", "xgb.ubj", "rank.xml")}


NAMES = ["lgb.txt", "xgb.ubj", "rank.xml"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_ranker_like_others(name, models, sets, tmp_path):
    model, (_, vali, test) = rg.load(models[name]), sets
    scores = model.predict(test)
    assert rg.evaluate(model, test, "ndcg@10").mean == rg.evaluate(scores, test, "ndcg@10").mean
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    assert repr(again) == repr(model)
    assert again.summary() == model.summary()
    for one in (again, pickle.loads(pickle.dumps(model)), copy.copy(model)):
        np.testing.assert_array_equal(one.predict(test), scores)
    again.save(tmp_path / "n.rg")
    assert (tmp_path / "n.rg").read_bytes() == (tmp_path / "m.rg").read_bytes()
    own = rg.MART(n_trees=5, min_leaf=3).fit(sets[0])
    best = rg.optimal_combination(model, own, vali, "ndcg@10")
    best.save(tmp_path / "both.rg")
    np.testing.assert_array_equal(rg.load(tmp_path / "both.rg").predict(test), best.predict(test))
    assert model.truncated(3).ensemble_.n_trees == 3
    assert model.feature_importance("split").sum() == pytest.approx(1.0)
    assert np.isfinite(model.feature_importances_).all()
    assert not hasattr(clone(model), "ensemble_")
    assert repr(rg.TreeRanker()) == "TreeRanker()"
    assert model.n_threads is None
    with pytest.raises(Exception, match="not trained yet"):
        rg.TreeRanker().predict(test)


def fitted_objects(train, valid):
    """Return models of other libraries as they are after training, some stopped early."""
    X, y, sizes = np.asarray(train.X), train.y.astype(int), np.diff(train.query_ptr)
    params = {"objective": "lambdarank", "verbose": -1, "num_leaves": 8, "min_data_in_leaf": 5}
    matrix = xgb.DMatrix(X, y)
    matrix.set_group(sizes)
    held = [(np.asarray(valid.X), valid.y.astype(int))]
    more = np.diff(valid.query_ptr)
    own = {"min_child_samples": 5, "verbose": -1, "n_estimators": 60, "learning_rate": 0.5}
    stop = [lgb.early_stopping(2, verbose=False)]
    qids = [np.repeat(np.arange(more.size), more)]
    yield "Booster", lgb.train(params, lgb.Dataset(X, y, group=sizes), 10)
    yield (
        "LGBMRanker",
        lgb.LGBMRanker(**own).fit(
            X, y, group=sizes, eval_set=held, eval_group=[more], callbacks=stop
        ),
    )
    yield "xgb.Booster", xgb.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 10)
    yield (
        "XGBRanker",
        xgb.XGBRanker(n_estimators=60, learning_rate=0.9, early_stopping_rounds=2).fit(
            X,
            y,
            qid=np.repeat(np.arange(sizes.size), sizes),
            eval_set=held,
            eval_qid=qids,
            verbose=False,
        ),
    )


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_models_in_memory_are_taken(sets, tmp_path):
    """As their `predict` has them: by the best round, where training stopped early."""
    train, valid, test = sets
    X = np.asarray(test.X)
    for name, model in fitted_objects(train, valid):
        theirs = model.predict(xgb.DMatrix(X) if name == "xgb.Booster" else X)
        found = rg.explain(model, test, query=test.query_ids[0])
        np.testing.assert_array_equal(
            found.scores.astype(theirs.dtype), theirs[: len(found.scores)]
        )
        rg.convert(model, tmp_path / "m.rg")
        again = rg.load(tmp_path / "m.rg").predict(test)
        np.testing.assert_array_equal(again.astype(theirs.dtype), theirs, err_msg=name)
        shape = rg.partial_dependence(model, test, 1, grid=3)
        assert np.isfinite(shape.mean).all()
    given = lgb.Dataset(X, test.y)
    linear = lgb.train({"verbose": -1, "linear_tree": True, "min_data_in_leaf": 2}, given, 2)
    with pytest.raises(rg.ModelFileError, match="This lightgbm Booster: tree 0 has linear"):
        rg.convert(linear, tmp_path / "m.rg")
    with pytest.raises(rg.ParameterError, match="'model' parameter of explain"):
        rg.explain(object(), test)


@pytest.mark.parametrize("name", NAMES)
def test_lambdamart_goes_on_from_it(name, models, sets, tmp_path):
    train, _, test = sets
    model = rg.load(models[name])
    more = rg.LambdaMART(submodel=models[name], n_trees=5, min_leaf=3).fit(train)
    grown = more.predict(test) - model.predict(test)
    np.testing.assert_allclose(
        grown, rg.LambdaMART.restore(*without_submodel(more)).predict(test), atol=1e-6
    )
    more.save(tmp_path / "m.rg")
    np.testing.assert_array_equal(rg.load(tmp_path / "m.rg").predict(test), more.predict(test))
    assert "a TreeRanker of" in more.summary()
    flat = more.flat_ensemble()
    assert flat.n_trees == model.ensemble_.n_trees + 5


def without_submodel(ranker):
    content, arrays = ranker.to_state()
    arrays = {name: array for name, array in arrays.items() if not name.startswith("submodel/")}
    return content | {"submodel": None}, arrays


def test_lightgbms_trees_are_adapted(models, sets):
    _, target, test = sets
    base = rg.load(models["lgb.txt"])
    same = rg.Trada(base, beta=0, objective="lambdas").fit(target)
    np.testing.assert_array_equal(same.predict(test), base.predict(test))
    adapted = rg.Trada(base, beta=5, tune="splits", extra_trees=3).fit(target)
    assert adapted.ensemble_.n_trees == 28
    assert (adapted.predict(test) != base.predict(test)).any()
    assert base.trained_for == "lambdas"
    base.objective_ = "something"
    with pytest.raises(rg.ParameterError, match="not known what the base model, a TreeRanker"):
        rg.Trada(base).fit(target)


def test_models_without_statistics_say_what_to_do(models, sets):
    source, target, test = sets
    base = rg.load(models["xgb.ubj"])
    with pytest.raises(rg.DataError, match="statistics_from_data"):
        rg.Trada(base, objective="lambdas").fit(target)
    known = rg.statistics_from_data(base, source, objective="lambdas")
    np.testing.assert_array_equal(known.predict(test), base.predict(test))
    adapted = rg.Trada(known, beta=5, objective="lambdas").fit(target)
    assert adapted.report_.unreached_share < 1
    same = rg.Trada(base, beta=0, objective="lambdas").fit(target)
    np.testing.assert_allclose(same.predict(test), base.predict(test), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_pruned(name, models, sets):
    vali = sets[1]
    model = rg.load(models[name])
    wide = vali
    if name == "rank.xml":  # whose file does not say how many features there are
        more = np.zeros((vali.n_rows, 3), np.float32)
        wide = rg.QueryDataset(np.hstack([vali.X, more]), vali.y, vali.qid)
    found = rg.prune(model, wide, "ndcg@10", tolerance=0.02)
    assert found.n_trees[1] < model.ensemble_.n_trees
    assert found.ranker.ensemble_.single == model.ensemble_.single
    kept = rg.evaluate(found.ranker, wide, "ndcg@10").mean["ndcg@10"]
    assert kept >= found.values[0]["ndcg@10"] - 0.02 - 1e-6
    refined = rg.refine_weights(model, wide, "ndcg@10", rounds=1)
    assert np.isfinite(refined.ranker.predict(wide)).all()


def test_names_of_features_are_checked(sets, tmp_path):
    train = sets[0]
    names = [f"x{j}" for j in range(6)]
    matrix = xgb.DMatrix(np.asarray(train.X), train.y, feature_names=names)
    xgb.train({"max_depth": 2}, matrix, 2).save_model(tmp_path / "m.json")
    model = rg.load(tmp_path / "m.json")
    named = rg.QueryDataset(train.X, train.y, train.qid, feature_names=names[::-1])
    train = rg.QueryDataset(train.X, train.y, train.qid)
    with pytest.raises(rg.DataError, match="in another order"):
        model.predict(named)
    np.testing.assert_array_equal(model.predict(train), model.predict(np.asarray(train.X)))


def test_a_model_in_memory_is_loaded():
    """A Booster is taken as its file would be; anything else is refused with the rule."""
    lightgbm = pytest.importorskip("lightgbm")
    data = rg.make_web(15, n_docs=10, n_features=5, seed=1)
    sizes = np.bincount(data.query_of_row)
    params = {"objective": "lambdarank", "num_leaves": 4, "min_data_in_leaf": 2, "verbose": -1}
    booster = lightgbm.train(params, lightgbm.Dataset(data.X, data.y, group=sizes), 3)
    np.testing.assert_array_equal(rg.load(booster).predict(data), booster.predict(data.X))
    with pytest.raises(rg.ParameterError, match="'path' parameter of load must be the path"):
        rg.load(3)
