"""rg.convert: which rankers become one model of another program, and which cannot."""

from __future__ import annotations

import json

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import rankgrove as rg
from rankgrove.operations.flat_models import flat_model
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


def with_missing(data):
    X = np.array(data.X)
    X[np.random.default_rng(5).random(X.shape) < 0.2] = np.nan
    return X


def linear_scores(model, X):
    weights, intercept = model.raw_weights()
    return np.where(np.isnan(X), model.shift, X) @ weights + intercept


def test_sums_of_linear_rankers_are_linear(train, test, tmp_path):
    bag = rg.BaggedRanker(rg.CoordinateAscent(), n_models=3, combine="mean").fit(train)
    first, second = rg.RankSVM(scaling="standard").fit(train), rg.SVMMap(scaling="none").fit(train)
    combined = rg.optimal_combination(first, second, test, "ndcg@10").ranker
    X = with_missing(test)
    for ranker in (bag, combined, rg.CombinedRanker([bag, second]).fit(train)):
        model = flat_model(ranker)
        np.testing.assert_allclose(linear_scores(model, X), ranker.predict(X), rtol=1e-5, atol=1e-6)
        rg.convert(ranker, tmp_path / "m.json", engine="solr-9.2")


@pytest.mark.parametrize("inner", ["trees", "linear", "net", "net without hidden units"])
def test_chosen_features_are_columns_of_the_whole(inner, train, test, tmp_path):
    base = {
        "trees": rg.LambdaMART(**SMALL),
        "linear": rg.CoordinateAscent(scaling="standard"),
        "net": rg.RankNet(hidden=(3,), n_epochs=1),
        "net without hidden units": rg.ListNet(n_epochs=1),
    }[inner]
    ranker = rg.PreparedRanker(base, features=[2, 5]).fit(train)
    X = with_missing(test)
    rg.convert(ranker, tmp_path / "m.onnx")
    session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / "m.onnx")
    (scores,) = session.run(["score"], {"features": X.astype(np.float32)})
    np.testing.assert_allclose(scores[:, 0], ranker.predict(X), rtol=1e-5, atol=1e-5)


def test_trees_on_logarithms_have_other_thresholds(train, tmp_path):
    X = 300.0 * with_missing(train)
    data = rg.QueryDataset(X, train.y, train.qid)
    ranker = rg.PreparedRanker(rg.LambdaMART(**SMALL), [1, 3, 4], transform="log1p").fit(data)
    trees = flat_model(ranker)
    edge = np.tile(trees.threshold[:, None], 5)
    beyond = np.nextafter(edge, np.float32(np.inf))
    zeros = np.full((2, 5), [[0.0], [-0.0]])
    infinite = np.full((2, 5), [[np.inf], [-np.inf]])
    values = np.vstack([X, edge, beyond, zeros, infinite]).astype(np.float32)
    rg.convert(ranker, tmp_path / "m.txt")
    for found in (walked(trees, values)[0], rg.load(tmp_path / "m.txt").predict(values)):
        np.testing.assert_array_equal(found, ranker.predict(values))


def test_our_own_files_keep_missing_values(boosted, tmp_path):
    with pytest.raises(rg.ParameterError, match=r"missing='zero'.*is for other programs"):
        rg.convert(boosted, tmp_path / "m.rg", missing="zero")


def test_what_is_prepared_by_query_is_refused(train, tmp_path):
    refusals = [
        (rg.PreparedRanker(rg.LambdaMART(**SMALL), normalise="linear"), "normalise='linear'"),
        (rg.PreparedRanker(rg.CoordinateAscent(), transform="log1p"), "which only trees can hold"),
    ]
    for ranker, said in refusals:
        ranker.fit(train)
        with pytest.raises(rg.ParameterError, match=rf"{said}.*convert `ranker_`"):
            rg.convert(ranker, tmp_path / "m.onnx")
        rg.convert(ranker.ranker_, tmp_path / "m.onnx")  # as is said


def test_encoded_categories_are_refused(tmp_path):
    data = rg.make_web(20, n_docs=10, n_features=3, seed=1)
    X = np.array(data.X)
    X[:, 1] = np.arange(len(X)) % 4
    coded = rg.QueryDataset(X, data.y, data.qid, categorical={2: ["a", "b", "c", "d"]})
    ranker = rg.PreparedRanker(rg.LambdaMART(**SMALL), encode="onehot").fit(coded)
    with pytest.raises(rg.ParameterError, match=r"encode='onehot'.*sets of categories"):
        rg.convert(ranker, tmp_path / "m.onnx")


@pytest.mark.parametrize("to", ["lightgbm", "xgboost", "vespa", "solr"])
def test_missing_values_are_zero_where_that_is_asked_for(to, train, tmp_path):
    X = with_missing(train)
    model = rg.LambdaMART(**SMALL).fit(rg.QueryDataset(X, train.y, train.qid))
    assert not np.array_equal(model.predict(X), model.predict(np.nan_to_num(X)))
    rg.convert(model, tmp_path / "m.json", to=to, missing="zero")
    back = rg.load(tmp_path / "m.json")
    np.testing.assert_array_equal(back.predict(X), back.predict(np.nan_to_num(X)))


def test_a_mean_for_missing_values_stays_and_is_told(train, tmp_path, caplog):
    model = rg.CoordinateAscent(scaling="standard").fit(train)
    rg.convert(model, tmp_path / "m.json", engine="vespa", missing="zero")
    assert "missing='zero' (--missing zero) changes nothing" in caplog.text


@pytest.mark.parametrize("hidden", [(3,), (4, 2)])
def test_bags_of_nets_are_one_wide_net(hidden, train, test, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    net = rg.LambdaRank(hidden=hidden, n_epochs=2)
    bag = rg.BaggedRanker(net, n_models=3, combine="mean").fit(train)
    X = np.array(test.X, np.float32)
    X[:, 1] = 7.0  # a value that training never had
    wide = flat_model(bag)
    assert wide.hidden == tuple(3 * n for n in hidden)
    np.testing.assert_allclose(wide.scores(X), bag.predict(X), rtol=1e-9, atol=1e-9)
    both = rg.CombinedRanker([bag, rg.RankNet(hidden=hidden, n_epochs=1).fit(train)]).fit(test)
    np.testing.assert_allclose(flat_model(both).scores(X), both.predict(X), rtol=1e-9, atol=1e-9)
    rg.convert(bag, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (scores,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(scores.ravel(), bag.predict(X), rtol=1e-5, atol=1e-5)


def test_bags_of_nets_that_fill_missing_values(train, tmp_path):
    holes = rg.QueryDataset(with_missing(train), train.y, train.qid)
    net = rg.RankNet(hidden=(3,), n_epochs=1)
    bag = rg.BaggedRanker(net, n_models=2, combine="mean").fit(holes)
    with pytest.raises(rg.ParameterError, match="different numbers for missing values"):
        rg.convert(bag, tmp_path / "m.onnx")


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
    with pytest.raises(
        rg.ParameterError, match=r"neither all trees nor all linear.*one by one, .* weights 0"
    ):
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
