"""XGBoost's models: theirs read here, ours read there."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.formats import xgboost
from tests.formats.made import random_ensemble, rows_for, same_trees, walked

XGBOOST = tuple(map(int, xgb.__version__.split(".")[:2]))


def data(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[rng.random(X.shape) < 0.2] = 0.0
    return X, rng.integers(0, 3, n)


def trained(objective, rounds=12, **params):
    X, y = data()
    if objective.startswith("binary") or objective == "reg:logistic":
        y = y > 0
    if objective == "reg:gamma":
        y = y + 1
    matrix = xgb.DMatrix(X, y)
    if objective.startswith("rank"):
        matrix.set_group([40] * 10)
    made = xgb.train(
        {"objective": objective, "max_depth": 4, "nthread": 1, **params}, matrix, rounds
    )
    return made, X


OBJECTIVES = [
    *[(name, {}) for name in xgboost.IDENTICAL if name not in ("multi:softmax", "multi:softprob")],
    *[(name, {}) for name in (*xgboost.LOGISTIC, *xgboost.LOGARITHMIC)],
    ("multi:softmax", {"num_class": 3}),
    ("multi:softprob", {"num_class": 3, "num_parallel_tree": 2, "subsample": 0.5}),
    ("rank:ndcg", {"booster": "dart", "rate_drop": 0.5}),
    ("rank:ndcg", {"base_score": 0.7}),
    ("rank:ndcg", {"tree_method": "exact"}),
    ("rank:ndcg", {"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 0}),
    ("binary:logistic", {"base_score": 0.2}),
    ("reg:squarederror", {"base_score": -1234.5}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "params"), OBJECTIVES)
@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scores_are_xgboosts_to_the_bit(objective, params, form, tmp_path):
    if objective == "rank:map":
        params = {**params, "objective": "rank:map"}
        X, y = data()
        matrix = xgb.DMatrix(X, y > 0)
        matrix.set_group([40] * 10)
        booster = xgb.train({"max_depth": 4, "nthread": 1, **params}, matrix, 12)
    else:
        booster, X = trained(objective, **params)
    path = tmp_path / f"model.{form}"
    booster.save_model(path)
    model = rg.load(path)
    rows = np.vstack([X, data(1)[0]])
    expected = booster.predict(xgb.DMatrix(rows), output_margin=True)
    np.testing.assert_array_equal(model.raw_scores(rows), expected.astype(np.float64))
    np.testing.assert_array_equal(
        model.raw_scores(rows.astype(np.float64)), expected.astype(np.float64)
    )
    assert model.ensemble_.single
    if objective == "multi:softprob":
        probability = booster.predict(xgb.DMatrix(rows))
        np.testing.assert_allclose(model.predict(rows), probability @ np.arange(3), rtol=1e-5)
    assert ("log odds" in model.summary()) == (objective == "binary:logistic")


def test_a_split_that_tells_missing_values_from_all_others():
    trees = random_ensemble(1, 3, 4)
    document = json.loads(xgboost.write_json(trees, None))
    first = document["learner"]["gradient_booster"]["model"]["trees"][0]
    assert first["left_children"][0] != -1
    first["split_conditions"][0] = float("-inf")
    for default in (0, 1):
        first["default_left"][0] = default
        text = json.dumps(document)
        booster = xgb.Booster()
        booster.load_model(bytearray(text.encode()))
        found = xgboost.read_document(json.loads(text)).ensemble
        rows = rows_for(trees, 1)
        expected = booster.predict(xgb.DMatrix(rows))
        np.testing.assert_array_equal(walked(found, rows)[0], expected)


def test_base_scores_old_and_new():
    document = json.loads(xgboost.write_json(random_ensemble(1, 3, 4, n_columns=3), None))
    param = document["learner"]["learner_model_param"]
    found = []
    for text in ("5E-1", "[5E-1]", "[5E-1,5E-1,5E-1]", "[1E-1,2E-1,3E-1]"):
        param["base_score"] = text
        found.append(xgboost.read_document(document).ensemble)
    rows = rows_for(found[0], 1)
    for other in found[1:3]:
        same_trees(other, found[0])
    apart = walked(found[3], rows) - walked(found[0], rows)
    np.testing.assert_allclose(apart, [[-0.4], [-0.3], [-0.2]] * np.ones(len(rows)), atol=1e-6)


@pytest.mark.parametrize("objective", ["count:poisson", "binary:logistic"])
def test_many_base_scores(objective):
    trees = random_ensemble(1, 0)
    document = json.loads(xgboost.write_json(trees, None))
    document["learner"]["objective"] = {"name": objective}
    own = {"count:poisson": "poisson_regression_param", "binary:logistic": "reg_loss_param"}
    document["learner"]["objective"][own[objective]] = {}
    # at 1.014 the C library's logf is not the nearest float32
    some = [np.float32(1.014)] if objective == "count:poisson" else []
    for score in [*some, *np.random.default_rng(1).random(40).astype(np.float32)]:
        document["learner"]["learner_model_param"]["base_score"] = str(score)
        booster = xgb.Booster()
        booster.load_model(bytearray(json.dumps(document).encode()))
        (expected,) = booster.predict(xgb.DMatrix(np.zeros((1, 4))), output_margin=True)
        assert xgboost.read_document(document).ensemble.base == expected


def test_statistics_and_names_are_kept(tmp_path):
    X, y = data()
    matrix = xgb.DMatrix(X, y, feature_names=list("abcde"))
    params = {"objective": "reg:squarederror", "max_depth": 3, "eta": 0.3, "base_score": 0}
    xgb.train(params, matrix, 3).save_model(tmp_path / "m.json")
    model = rg.load(tmp_path / "m.json")
    assert model.feature_names_ == tuple("abcde")
    trees = model.ensemble_
    assert trees.node_count[trees.node_ptr[:-1]].tolist() == [400] * 3
    for t in range(3):
        leaves = slice(trees.leaf_ptr[t], trees.leaf_ptr[t + 1])
        assert trees.leaf_count[leaves].sum() == trees.leaf_weight[leaves].sum() == 400
    assert trees.gain[trees.node_ptr[0]] > 0
    # the mean response of the first root: the mean label, but for the L2 of 1
    assert trees.node_mean[0] == pytest.approx(y.sum() / 401, rel=1e-5)
    ranked, _ = trained("rank:ndcg")
    ranked.save_model(tmp_path / "r.json")
    assert (rg.load(tmp_path / "r.json").ensemble_.leaf_count == -1).all()


def test_what_cannot_be_read_is_refused(tmp_path):
    X, y = data()
    xgb.train({"booster": "gblinear"}, xgb.DMatrix(X, y), 3).save_model(tmp_path / "linear.json")
    with pytest.raises(rg.ModelFileError, match=r"'gblinear'.*booster=gbtree"):
        rg.load(tmp_path / "linear.json")
    several = xgb.DMatrix(X, np.column_stack([y, y]))
    for strategy, message in [("multi_output_tree", "several"), ("one_output_per_tree", "several")]:
        made = xgb.train({"multi_strategy": strategy, "tree_method": "hist"}, several, 2)
        made.save_model(tmp_path / "several.ubj")
        with pytest.raises(rg.ModelFileError, match=message):
            rg.load(tmp_path / "several.ubj")
    document = json.loads(xgboost.write_json(random_ensemble(1), None))
    document["learner"]["objective"]["name"] = "mine:own"
    document["learner"]["learner_model_param"]["base_score"] = "5E-1"
    (tmp_path / "own.json").write_text(json.dumps(document))
    with pytest.raises(rg.ModelFileError, match=r"'mine:own'.*base_score=0"):
        rg.load(tmp_path / "own.json")


@pytest.mark.skipif(XGBOOST < (3, 2), reason="XGBoost below 3.2 refuses base scores of 0 and 1")
@pytest.mark.parametrize("objective", ["binary:logistic", "reg:logistic"])
def test_base_scores_of_0_and_1_are_xgboosts(objective):
    X, y = data()
    booster = xgb.train({"objective": objective, "max_depth": 2}, xgb.DMatrix(X, y > 1), 3)
    document = json.loads(booster.save_raw("json"))
    for score in ("0", "1E0", "[0E0]", "[1E-7]", "[9.9999994E-1]"):
        document["learner"]["learner_model_param"]["base_score"] = score
        again = xgb.Booster(model_file=bytearray(json.dumps(document).encode()))
        expected = again.predict(xgb.DMatrix(X), output_margin=True)
        found = walked(xgboost.read_document(document).ensemble, X.astype(np.float32))[0]
        np.testing.assert_array_equal(found, expected)
    document["learner"]["learner_model_param"]["base_score"] = "2"
    with pytest.raises(rg.ModelFileError, match="not a probability"):
        xgboost.read_document(document)


# -- dumps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dump_model", "get_dump", "with_stats"])
def test_a_dump_is_read(form, tmp_path, caplog):
    booster, X = trained("rank:ndcg")
    booster = booster.copy()
    path = tmp_path / "dump.json"
    if form == "get_dump":
        path.write_text(json.dumps(booster.get_dump(dump_format="json")))
    else:
        booster.dump_model(path, dump_format="json", with_stats=form == "with_stats")
    expected = booster.predict(xgb.DMatrix(X), output_margin=True)
    config = json.loads(booster.save_config())["learner"]["learner_model_param"]
    base = float(config["base_score"].strip("[]"))
    model = rg.load(path, base_score=base)
    assert not caplog.records
    np.testing.assert_array_equal(model.predict(X), expected)
    without = rg.load(path)
    assert "does not have the base score" in caplog.text
    np.testing.assert_allclose(without.predict(X), expected - base, rtol=1e-5, atol=1e-5)
    assert np.isfinite(model.ensemble_.node_weight).all() == (form == "with_stats")
    booster.save_model(tmp_path / "whole.json")
    with pytest.raises(rg.ParameterError, match="base_score= is only for a dump of XGBoost"):
        rg.load(tmp_path / "whole.json", base_score=0.5)


def test_a_dump_with_names_needs_their_order(tmp_path):
    X, y = data()
    names = ["title", "body", "f0", "url", "rank"]
    matrix = xgb.DMatrix(X, y, feature_names=names)
    booster = xgb.train({"max_depth": 4, "base_score": 0}, matrix, 8)
    booster.dump_model(tmp_path / "d.json", dump_format="json")
    with pytest.raises(rg.ModelFileError, match=r"does not say which column.*features=\[\.\.\.\]"):
        rg.load(tmp_path / "d.json")
    with pytest.raises(rg.ModelFileError, match="not among the 2 of features="):
        rg.load(tmp_path / "d.json", features=["title", "body"])
    model = rg.load(tmp_path / "d.json", features=names, base_score=0)
    np.testing.assert_array_equal(model.predict(X), booster.predict(matrix))
    assert model.feature_names_ == tuple(names)


def test_indicators_of_a_dump_are_refused(tmp_path):
    (tmp_path / "d.json").write_text('[{"nodeid": 0, "split": "f0", "yes": 1, "no": 2}]')
    with pytest.raises(rg.ModelFileError, match="as an indicator"):
        rg.load(tmp_path / "d.json")


# -- writing --------------------------------------------------------------------------------------


@given(
    st.integers(0, 2**32),
    st.integers(0, 6),
    st.sampled_from([2, 3, 40, 256]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([0.0, -0.7]),
    st.sampled_from([1, 3]),
)
@settings(max_examples=40)
def test_xgboost_reads_what_is_written(seed, n_trees, leaves, dtype, base, columns):
    trees = random_ensemble(seed, n_trees, leaves, dtype=dtype, base=base, n_columns=columns)
    text = xgboost.write_json(trees, list("abcd"))
    booster = xgb.Booster()
    booster.load_model(bytearray(text.encode()))
    booster.set_param({"nthread": 1})
    rows = rows_for(trees, seed)
    matrix = xgb.DMatrix(rows, feature_names=list("abcd"))
    found = booster.predict(matrix, output_margin=True).reshape(len(rows), -1).T
    np.testing.assert_allclose(found, walked(trees, rows), rtol=0, atol=3e-5)
    # read back, the scores are XGBoost's to the bit, and nothing changes any more
    again = xgboost.read_document(json.loads(text))
    np.testing.assert_array_equal(walked(again.ensemble, rows), found)
    second = xgboost.read_document(json.loads(xgboost.write_json(again.ensemble, list("abcd"))))
    np.testing.assert_array_equal(walked(second.ensemble, rows), found)
    assert again.feature_names == second.feature_names == tuple("abcd")
