"""rg.convert: which rankers become one model of another program, and which cannot."""

from __future__ import annotations

import json

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import rankgrove as rg
from rankgrove.operations.convert import flat_model
from tests.formats.made import walked
from tests.reference import formats as mirrored


@pytest.fixture(scope="module")
def train():
    return rg.make_web(40, n_docs=12, n_features=5, seed=1)


@pytest.fixture(scope="module")
def test():
    return rg.make_web(20, n_docs=12, n_features=5, seed=2)


SMALL = {"n_trees": 6, "n_leaves": 6, "min_leaf": 3}


@pytest.fixture(scope="module")
def boosted(train):
    return rg.LambdaMART(**SMALL).fit(train)


def lightgbm_scores(ranker, test, path):
    rg.convert(ranker, path / "m.txt")
    return lgb.Booster(model_file=path / "m.txt").predict(np.asarray(test.X), raw_score=True)


def test_boosted_rankers_are_exactly_their_trees(train, test, boosted, tmp_path):
    mart = rg.MART(**SMALL).fit(train)
    smart = rg.LambdaMART(submodel=mart, **SMALL).fit(train)
    trada = rg.Trada(mart, beta=3).fit(test)
    for ranker in (boosted, mart, smart, trada):
        np.testing.assert_array_equal(lightgbm_scores(ranker, test, tmp_path), ranker.predict(test))


def test_sums_of_trees_become_one(train, test, boosted, tmp_path):
    mart = rg.MART(**SMALL).fit(train)
    weighted = rg.LambdaMART(submodel=mart, submodel_weight=0.3, **SMALL).fit(train)
    combined = rg.CombinedRanker([boosted, mart, weighted]).fit(test)
    bag = rg.BaggedRanker(rg.LambdaMART(**SMALL), n_models=3, combine="mean").fit(train)
    nested = rg.CombinedRanker([bag, combined]).fit(test)
    found = rg.optimal_combination(boosted, mart, test, "ndcg@10")
    for ranker in (weighted, combined, bag, nested, found):
        np.testing.assert_allclose(
            lightgbm_scores(ranker, test, tmp_path), ranker.predict(test), rtol=1e-9, atol=1e-12
        )


def test_classes(train, test, tmp_path):
    model = rg.McRank(**SMALL).fit(train)
    X = np.asarray(test.X)
    rg.convert(model, tmp_path / "m.txt")
    probability = lgb.Booster(model_file=tmp_path / "m.txt").predict(X)
    np.testing.assert_allclose(probability, model.predict_proba(X), rtol=1e-9)
    rg.convert(model, tmp_path / "m.json", to="xgboost")
    probability = xgb.Booster(model_file=tmp_path / "m.json").predict(
        xgb.DMatrix(X, feature_names=list(test.feature_names))
    )
    np.testing.assert_allclose(probability, model.predict_proba(X), rtol=1e-4)
    np.testing.assert_allclose(
        rg.load(tmp_path / "m.txt").predict(test), model.predict(test), rtol=1e-9
    )
    with pytest.raises(rg.ParameterError, match="scores per row, one per class"):
        rg.convert(model, tmp_path / "m.c")
    ordinal = rg.McRank("ordinal", **SMALL).fit(train)
    with pytest.raises(rg.ParameterError, match=r"form='classes'.*rg\.MART"):
        rg.convert(ordinal, tmp_path / "m.txt")


def test_thresholds_of_linear_models_become_trees(train, test, tmp_path):
    model = rg.SVMMap(thresholds=6).fit(train)
    X = np.array(test.X)
    X[::5, 1] = np.nan
    rg.convert(model, tmp_path / "m.txt")
    found = lgb.Booster(model_file=tmp_path / "m.txt").predict(X, raw_score=True)
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9, atol=1e-12)
    assert walked(flat_model(model), X).shape == (1, len(X))


def test_linear_rankers(train, test, tmp_path):
    model = rg.SVMMap(scaling="standard").fit(train)
    names = ["title", "body", "age", "clicks", "links"]
    rg.convert(model, tmp_path / "m.json", to="solr", features=names, name="svm", missing="zero")
    text = (tmp_path / "m.json").read_text()
    assert json.loads(text)["name"] == "svm"
    apart = mirrored.solr(text, names, np.asarray(test.X)) - model.predict(test)
    assert np.ptp(apart) < 1e-4  # but for the intercept
    by_query = rg.SVMMap(scaling="query").fit(train)
    with pytest.raises(rg.ParameterError, match=r"within every query.*scaling='standard'"):
        rg.convert(by_query, tmp_path / "m.json", to="solr")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_no_format_can_hold(train, test, boosted, tmp_path):
    bag = rg.BaggedRanker(rg.LambdaMART(**SMALL), n_models=2, combine="minmax").fit(train)
    combined = rg.CombinedRanker([bag, boosted]).fit(train)
    with pytest.raises(rg.ParameterError, match=r"is for a bag.*within a combination"):
        rg.convert(combined, tmp_path / "m.txt", combine="mean")
    with pytest.raises(rg.ParameterError, match=r"within every query.*combine='mean'"):
        rg.convert(bag, tmp_path / "m.txt")
    net = rg.RankNet(hidden=(3,), n_epochs=1).fit(train)
    mixed = rg.CombinedRanker([boosted, net]).fit(test)
    with pytest.raises(rg.ParameterError, match=r"not all trees.*one by one"):
        rg.convert(mixed, tmp_path / "m.txt")
    scored = train.with_base_score(np.zeros(train.n_rows))
    going_on = rg.LambdaMART(submodel="base_score", **SMALL).fit(scored)
    with pytest.raises(rg.ParameterError, match="scores that come with the data"):
        rg.convert(going_on, tmp_path / "m.txt")
    stack = rg.StackedRanker([boosted, net], n_epochs=1).fit(train)
    with pytest.raises(rg.ParameterError, match=r"StackedRanker is a net of.*CombinedRanker"):
        rg.convert(stack, tmp_path / "m.txt")
    with pytest.raises(rg.ParameterError, match=r"cannot hold nets"):
        rg.convert(net, tmp_path / "m.txt")
    assert list(tmp_path.iterdir()) == []


def test_parameters(boosted, tmp_path):
    cases = [
        ({"path": "m.json"}, "does not say which format.*lightgbm"),
        ({"path": "m"}, "does not say which format"),
        ({"to": "lightgmb"}, "did you mean 'lightgbm'"),
        ({"missing": "nan"}, "'missing' parameter of convert"),
        ({"features": ["a"]}, "the model has 5 features; 1 names"),
        ({"features": ["a"] * 5}, "'a' is given twice"),
        ({"features": "abcde"}, "a list of names"),
        ({"path": "no/such/folder.txt"}, "in a folder that exists"),
        ({"model": "gone.rg"}, "there is no such file"),
        ({"model": 3}, "a trained ranker or the path"),
        ({"model": rg.LambdaMART()}, "not trained yet"),
    ]
    for given, message in cases:
        given = {"model": boosted, "path": "m.txt", **given}
        if isinstance(given["path"], str):
            given["path"] = tmp_path / given["path"]
        with pytest.raises(Exception, match=message) as caught:
            rg.convert(**given)
        assert type(caught.value).__name__ in ("ParameterError", "NotFittedError")
    assert list(tmp_path.iterdir()) == []


def test_ours_and_files_by_their_names(boosted, test, tmp_path):
    boosted.save(tmp_path / "web.rg")
    rg.convert(tmp_path / "web.rg", tmp_path / "web.txt", features=list("abcde"))
    rg.convert(str(tmp_path / "web.txt"), tmp_path / "again.rg")
    again = rg.load(tmp_path / "again.rg")
    plain = rg.MART(**SMALL).fit(np.asarray(test.X), test.y, test.qid)
    for to in ("lightgbm", "xgboost"):  # what has no names is given none
        rg.convert(plain, tmp_path / "plain", to=to)
        assert not hasattr(rg.load(tmp_path / "plain"), "feature_names_")
    assert again.feature_names_ == tuple("abcde")
    np.testing.assert_array_equal(again.predict(np.asarray(test.X)), boosted.predict(test))


def test_notes_are_logged(boosted, tmp_path, caplog):
    rg.convert(boosted, tmp_path / "m.json", to="elasticsearch", missing="zero")
    assert "higher by" in caplog.text
    assert json.loads((tmp_path / "m.json").read_text())["model"]["name"] == "m"


@pytest.mark.parametrize("combine", ["minmax", "borda"])
def test_the_plain_mean_of_a_bag_is_written_when_asked_for(combine, train, test, tmp_path, caplog):
    bag = rg.BaggedRanker(rg.LambdaMART(**SMALL), n_models=3, combine=combine).fit(train)
    rg.convert(bag, tmp_path / "m.txt", to="lightgbm", combine="mean")
    assert "plain mean of the bag's 3 models, not the bag itself" in caplog.text
    assert bag.combine == combine
    found = rg.load(tmp_path / "m.txt").predict(test)
    expected = np.mean([one.predict(test) for one in bag.models_], axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


FAMILIES = {
    "trees": lambda: rg.LambdaMART(**SMALL),
    "forest": lambda: rg.RandomForest(n_trees=3, n_leaves=4),
    "bag": lambda: rg.BaggedRanker(rg.MART(**SMALL), n_models=2, combine="mean"),
    "linear": lambda: rg.CoordinateAscent(n_restarts=1, scaling="standard"),
    "net": lambda: rg.RankNet(n_epochs=2, hidden=(3,)),
    "svm": lambda: rg.SVMMap(C=1.0, scaling="standard"),
    "adarank": lambda: rg.AdaRank(n_rounds=3, scaling="standard"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_never_saw_a_missing_value_needs_no_word_on_it(family, train, tmp_path, caplog):
    """Nothing was learned for such values, so nothing is lost; else it is asked for."""
    of_trees = family in ("trees", "forest", "bag")
    to, options = ("solr", {"engine": "solr-9.1"}) if of_trees else ("elasticsearch", {})
    for hole in (False, True):
        X = np.array(train.X)
        X[::7, 1] = np.nan if hole else X[::7, 1]
        ranker = FAMILIES[family]().fit(rg.QueryDataset(X, train.y, train.qid))
        ranker.save(tmp_path / "m.rg")
        model = rg.load(tmp_path / "m.rg")
        if family == "net":  # Solr's feature store has the mean for it
            rg.convert(model, tmp_path / "m.json", to="solr")
            assert "uses the mean of the feature" in caplog.text
            continue
        if hole:
            with pytest.raises(rg.ParameterError, match="treats a missing value as 0"):
                rg.convert(model, tmp_path / "m.json", to=to, **options)
            continue
        rg.convert(model, tmp_path / "m.json", to=to, **options)
        assert "No value was missing in training" in caplog.text
        rg.convert(model, tmp_path / "zero.json", to=to, missing="zero", name="m", **options)
        assert (tmp_path / "m.json").read_bytes() == (tmp_path / "zero.json").read_bytes()
        if family == "trees":
            onward = rg.LambdaMART(**SMALL, submodel=model).fit(train)
            rg.convert(onward, tmp_path / "m.xml")
            rg.convert(onward, tmp_path / "m.json", to="elasticsearch")
            model.saw_missing_ = None  # as a file of before
            model.save(tmp_path / "old.rg")
            with pytest.raises(rg.ParameterError, match="treats a missing value as 0"):
                rg.convert(tmp_path / "old.rg", tmp_path / "m.json", **options)


def test_a_damaged_word_on_missing_values_is_refused(train):
    content, arrays = rg.MART(**SMALL).fit(train).to_state()
    assert content["saw_missing"] is False
    with pytest.raises(rg.ModelFileError, match="neither true nor false"):
        rg.MART.restore({**content, "saw_missing": 2}, arrays)


def test_a_dump_of_xgboost_is_converted(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    matrix = xgb.DMatrix(X, X[:, 0] + X[:, 2], feature_names=["a", "b", "c"])
    booster = xgb.train({"base_score": 0.25}, matrix, 3)
    booster.dump_model(tmp_path / "d.json", dump_format="json")
    rg.convert(tmp_path / "d.json", tmp_path / "m.rg", features=["a", "b", "c"], base_score=0.25)
    np.testing.assert_array_equal(rg.load(tmp_path / "m.rg").predict(X), booster.predict(matrix))
    with pytest.raises(rg.ParameterError, match="is for a dump of XGBoost"):
        rg.convert(tmp_path / "m.rg", tmp_path / "m.txt", base_score=0.25)
