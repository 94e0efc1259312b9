"""Splits on sets of categories: other libraries' read here, ours read there, or expanded."""

from __future__ import annotations

import ctypes
import json
import logging
import shutil
import subprocess
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.errors import ModelFileError, ParameterError
from rankgrove.formats import category_chains, lightgbm, ranklib, source, xgboost
from rankgrove.formats.foreign import TreeParts
from rankgrove.formats.write import Labels, encode
from rankgrove.formats.zero_missing import ZERO
from rankgrove.model.category_sets import CategorySets
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring.score import score
from tests.formats.made import CATEGORIES, random_ensemble, rows_for, same_trees, walked
from tests.formats.mutations import load_or_fail
from tests.formats.test_others import module_of, run_onnx
from tests.reference import formats as mirrored
from tests.reference.one_hot import one_hot_rows

try:
    ONNXRUNTIME = tuple(map(int, version("onnxruntime").split(".")[:2]))
except PackageNotFoundError:
    ONNXRUNTIME = (0, 0)
NAMES = list("abcd")
LABELS = Labels("web", NAMES, True)
BOTH = st.sampled_from(["right", "both"])


def data(seed=0, n=700, nan=0.1):
    """A number, a feature of 5 and one of 300 categories; rare, strong and missing ones."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 5, n), rng.integers(0, 300, n)]
    ).astype(np.float64)
    X[rng.random(X.shape) < nan] = np.nan
    y = np.nan_to_num(np.sin(X[:, 2]) + 0.7 * (X[:, 1] == 2) + 0.3 * X[:, 0])
    return X, y + 0.1 * rng.normal(size=n)


def strange_rows():
    """Other rows, some with unseen codes, numbers below 0 and fractions."""
    rows, rng = data(1)[0], np.random.default_rng(2)
    odd = rng.random(rows.shape) < 0.15
    odd[:, 0] = False
    rows[odd] = rng.choice([-1, -7, 300, 319, 320, 1e6, 1e9, 3.7, 16777216], int(odd.sum()))
    return rows


def scores(model, rows):
    averaged = model._averaged
    if averaged is None:
        return score(model.ensemble_, rows, scorer="walk")
    return score(averaged.sums, rows, scorer="walk") / averaged.divisor


# -- LightGBM's models ----------------------------------------------------------------------------

QUIET = {"verbose": -1, "num_leaves": 15, "min_data_in_leaf": 5, "num_threads": 1}
LOOSE = {"min_data_per_group": 3, "cat_smooth": 1, "cat_l2": 1}
KINDS = {
    "sets": {"objective": "regression"},
    "one-hot": {"objective": "regression", "max_cat_to_onehot": 400},
    "missing is 0": {"objective": "regression", "use_missing": False},
    "zero is missing": {"objective": "regression", "zero_as_missing": True},
    "classes": {"objective": "multiclass", "num_class": 3},
    "forest": {
        "objective": "regression", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7
    },
}  # fmt: skip


def lightgbm_trained(params, rounds=8, X=None, y=None, **dataset):
    if X is None:
        X, y = data()
    if params["objective"] == "multiclass":
        y = np.digitize(y, [0.0, 0.5])
    return lgb.train({**QUIET, **LOOSE, **params}, lgb.Dataset(X, y, **dataset), rounds)


def saved(booster, path):
    if path.suffix == ".txt":
        booster.save_model(path)
    else:
        path.write_text(json.dumps(booster.dump_model()))
    return path


@pytest.mark.parametrize("params", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("file", ["m.txt", "m.json"])
def test_lightgbms_scores_to_the_bit(params, file, tmp_path):
    booster = lightgbm_trained(params, categorical_feature=[1, 2])
    model = rg.load(saved(booster, tmp_path / file))
    assert model.ensemble_.has_sets
    assert model.categories_ == {1: None, 2: None}
    divisor = 8 if params.get("boosting") == "rf" else 1
    for rows in (strange_rows(), strange_rows().astype(np.float32)):
        expected = booster.predict(rows, raw_score=True) / divisor
        np.testing.assert_array_equal(scores(model, rows).T, expected)
    assert not model.ensemble_.missing_left[model.ensemble_.set_of >= 0].any()


@pytest.mark.parametrize(("nan", "absent"), [(0.0, "zero"), (0.1, "missing")])
def test_what_absent_features_are_is_seen_in_thresholds_alone(nan, absent, tmp_path):
    X, y = data(nan=nan)
    booster = lightgbm_trained(KINDS["sets"], X=X, y=y, categorical_feature=[1, 2])
    assert rg.load(saved(booster, tmp_path / "m.txt")).absent_ == absent
    kinds = ["q", "c", "c"]
    matrix = xgb.DMatrix(X, y, feature_types=kinds, enable_categorical=True)
    for one_hot in (1, 400):
        made = xgb.train({"max_depth": 5, "max_cat_to_onehot": one_hot}, matrix, 4)
        made.save_model(tmp_path / "m.json")
        model = rg.load(tmp_path / "m.json")
        assert model.ensemble_.has_sets
        assert model.absent_ == absent


BRANDS = ("acme", "Bölt", "c d", "dé", "e,e")
ASCII = ("acme", "Bolt", "c d", "d", "e,e")


def frame(seed=0, n=700, brands=BRANDS):
    X, y = data(seed, n)
    table = pd.DataFrame({"price": X[:, 0]})
    known = ~np.isnan(X[:, 1:])
    codes = np.where(known, X[:, 1:], -1).astype(int)
    table["brand"] = pd.Categorical.from_codes(codes[:, 0], brands)
    table["shop"] = pd.Categorical.from_codes(codes[:, 1], np.arange(300) * 7)
    return table, y


def with_codes(table, model):
    """The features of a frame, by the names of categories that a model knows."""
    columns = []
    for j, name in enumerate(table.columns):
        known = model.categories_.get(j)
        if known is None:
            columns.append(table[name].to_numpy(np.float64))
        else:
            code = {word: c for c, word in enumerate(known)}
            texts = table[name].astype(object)
            columns.append([np.nan if t != t else code.get(str(t), np.nan) for t in texts])
    return np.column_stack(columns).astype(np.float64)


def shuffled(table):
    """The same values, with categories in another order, and a new one."""
    other = table.copy()
    for name in ("brand", "shop"):
        words = [*other[name].cat.categories[::-1], "new" if name == "brand" else 10**6]
        other[name] = other[name].cat.set_categories(words)
    other.loc[other.index[:9], "brand"] = "new"
    return other


@pytest.mark.parametrize("file", ["m.txt", "m.json"])
def test_names_of_lightgbms_categories(file, tmp_path):
    table, y = frame()
    booster = lightgbm_trained(KINDS["sets"], X=table, y=y)
    model = rg.load(saved(booster, tmp_path / file))
    assert model.categories_[1] == BRANDS
    assert model.categories_[2] == tuple(str(7 * j) for j in range(300))
    for rows in (table, shuffled(table)):
        expected = booster.predict(rows, raw_score=True)
        np.testing.assert_array_equal(scores(model, with_codes(rows, model)), expected)


def test_lists_of_names_that_fit_no_columns(tmp_path, caplog):
    """An ordered category is a number to LightGBM, and a column may be called categorical."""
    table, y = frame()
    table["brand"] = table["brand"].cat.as_ordered()
    table["shop"] = table["shop"].cat.codes.astype(float).replace(-1, np.nan)
    table["one"] = pd.Categorical(["x"] * len(table))
    booster = lightgbm_trained(KINDS["sets"], X=table, y=y, categorical_feature=["shop"])
    model = rg.load(saved(booster, tmp_path / "m.txt"))
    assert model.categories_.keys() >= {2}
    assert model.categories_[2] is None
    # a column of one value may be the one that a list is for
    del table["brand"]
    booster = lightgbm_trained(KINDS["sets"], X=table, y=y, categorical_feature=["shop"])
    with caplog.at_level(logging.WARNING, "rankgrove"):
        model = rg.load(saved(booster, tmp_path / "m.txt"))
    assert model.categories_[1] is None
    text = (tmp_path / "m.txt").read_text()
    (tmp_path / "m.txt").write_text(text.replace('[["x"]]', '[["x"], ["y"], ["z"]]'))
    rg.load(tmp_path / "m.txt")
    assert "names of categories for 3 columns" in caplog.text


def test_the_first_dumps_have_one_category_a_split(tmp_path):
    booster = lightgbm_trained(KINDS["one-hot"], categorical_feature=[1, 2])
    text = json.dumps(booster.dump_model()).replace(
        '"decision_type": "=="', '"decision_type": "is"'
    )
    (tmp_path / "m.json").write_text(text)
    rows = strange_rows()
    np.testing.assert_array_equal(
        scores(rg.load(tmp_path / "m.json"), rows), booster.predict(rows, raw_score=True)
    )


# -- XGBoost's models -----------------------------------------------------------------------------

SETTINGS = {
    "sets": {"max_cat_to_onehot": 1},
    "one-hot": {"max_cat_to_onehot": 400},
    "both": {"max_cat_to_onehot": 10, "max_cat_threshold": 300},
    "dart": {"booster": "dart", "rate_drop": 0.3},
    "classes": {"objective": "multi:softprob", "num_class": 3},
}
TYPES = ["q", "c", "c"]


def xgboost_trained(params, rounds=6, nan=0.1):
    X, y = data(nan=nan)
    if "num_class" in params:
        y = np.digitize(y, [0.0, 0.5])
    matrix = xgb.DMatrix(X, y, feature_types=TYPES, enable_categorical=True)
    return xgb.train({"max_depth": 6, "nthread": 1, **params}, matrix, rounds)


def xgboost_scores(booster, rows):
    matrix = xgb.DMatrix(rows, feature_types=TYPES, enable_categorical=True)
    return booster.predict(matrix, output_margin=True).astype(np.float64)


@pytest.mark.parametrize("params", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("file", ["m.json", "m.ubj"])
def test_xgboosts_scores_to_the_bit(params, file, tmp_path):
    booster = xgboost_trained(params)
    booster.save_model(tmp_path / file)
    model = rg.load(tmp_path / file)
    assert model.ensemble_.has_sets
    assert model.categories_ == {1: None, 2: None}
    rows = strange_rows().astype(np.float32)
    np.testing.assert_array_equal(scores(model, rows).T, xgboost_scores(booster, rows))


@pytest.mark.parametrize("one_hot", [1, 400])
def test_a_dump_of_xgboost_has_its_sets(one_hot, tmp_path):
    booster = xgboost_trained({"max_cat_to_onehot": one_hot})
    booster.dump_model(tmp_path / "d.json", dump_format="json")
    config = json.loads(booster.save_config())["learner"]["learner_model_param"]
    model = rg.load(tmp_path / "d.json", base_score=float(config["base_score"].strip("[]")))
    assert model.categories_ == {1: None, 2: None}
    rows = strange_rows().astype(np.float32)
    np.testing.assert_array_equal(scores(model, rows), xgboost_scores(booster, rows))


@pytest.mark.skipif(
    tuple(map(int, xgb.__version__.split(".")[:2])) < (3, 1), reason="XGBoost keeps no names"
)
@pytest.mark.parametrize("file", ["m.json", "m.ubj"])
def test_names_of_xgboosts_categories(file, tmp_path):
    table, y = frame(brands=ASCII)
    booster = xgb.train({"max_depth": 6}, xgb.DMatrix(table, y, enable_categorical=True), 6)
    booster.save_model(tmp_path / file)
    model = rg.load(tmp_path / file)
    assert model.categories_[1] == ASCII
    assert model.categories_[2] == tuple(str(7 * j) for j in range(300))
    other = table.copy()
    other["brand"] = other["brand"].cat.set_categories(other["brand"].cat.categories[::-1])
    expected = booster.predict(xgb.DMatrix(other, enable_categorical=True))
    rows = with_codes(other, model).astype(np.float32)
    np.testing.assert_array_equal(scores(model, rows), expected)
    # XGBoost before 3.4 cuts other names at wrong places
    table, y = frame()
    booster = xgb.train({"max_depth": 6}, xgb.DMatrix(table, y, enable_categorical=True), 6)
    booster.save_model(tmp_path / file)
    assert rg.load(tmp_path / file).categories_[1] in (None, BRANDS)


# -- writing --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(0, 5), BOTH, st.sampled_from([1, 3]))
@settings(max_examples=30)
def test_lightgbm_reads_what_is_written(seed, n_trees, missing, columns):
    trees = random_ensemble(seed, n_trees, 12, base=0.5, n_columns=columns, categories=missing)
    text = lightgbm.write_text(trees, NAMES)
    rows = rows_for(trees, seed)
    rows[np.abs(rows) <= ZERO] = 0.0  # as LightGBM does itself
    expected = walked(trees, rows)
    found = lgb.Booster(model_str=text).predict(rows, raw_score=True, num_threads=1).T
    np.testing.assert_array_equal(np.atleast_2d(found), expected)
    again = lightgbm.read_text(text)
    np.testing.assert_array_equal(walked(again.ensemble, rows), expected)
    assert set(again.categories) == set(trees.categorical_features().tolist())
    second = lightgbm.read_text(lightgbm.write_text(again.ensemble, NAMES))
    same_trees(second.ensemble, again.ensemble, "feature", "left", "right", "value", "set_of")
    np.testing.assert_array_equal(second.ensemble.sets.words, again.ensemble.sets.words)


@given(st.integers(0, 2**32), st.integers(0, 5), BOTH, st.sampled_from([1, 3]))
@settings(max_examples=30)
def test_xgboost_reads_what_is_written(seed, n_trees, missing, columns):
    trees = random_ensemble(seed, n_trees, 12, base=0.5, n_columns=columns, categories=missing)
    text = xgboost.write_json(trees, NAMES)
    booster = xgb.Booster()
    booster.load_model(bytearray(text.encode()))
    rows = rows_for(trees, seed)
    types = booster.feature_types
    matrix = xgb.DMatrix(rows, feature_names=NAMES, feature_types=types, enable_categorical=True)
    found = booster.predict(matrix, output_margin=True).reshape(len(rows), -1).T
    np.testing.assert_allclose(found, walked(trees, rows), rtol=0, atol=1e-5)
    again = xgboost.read_document(json.loads(text))
    np.testing.assert_array_equal(walked(again.ensemble, rows), found)
    second = xgboost.read_document(json.loads(xgboost.write_json(again.ensemble, NAMES)))
    np.testing.assert_array_equal(walked(second.ensemble, rows), found)


@pytest.mark.skipif(ONNXRUNTIME < (1, 22), reason="this onnxruntime may lack TreeEnsemble")
@given(st.integers(0, 2**32), st.integers(1, 5), BOTH, st.sampled_from([1, 3]))
@settings(max_examples=30)
def test_onnx(seed, n_trees, missing, columns):
    trees = random_ensemble(seed, n_trees, 12, base=0.5, n_columns=columns, categories=missing)
    rows = rows_for(trees, seed)
    found = run_onnx(encode(trees, "onnx", LABELS)[0], rows)
    np.testing.assert_allclose(found.T, walked(trees, rows), rtol=0, atol=1e-5)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_python_source_gives_the_same_bits(seed, single, tmp_path):
    trees = random_ensemble(seed, 6, 30, base=0.3, single=single, categories="both")
    module = module_of(source.write_python(trees, "m"), tmp_path)
    rows = rows_for(trees, seed)
    rows[0, :] = 3.7, 3.7, -0.0, 299.5
    found = [module.score(row.tolist()) for row in rows]
    np.testing.assert_array_equal(found, walked(trees, rows)[0])


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(("seed", "single"), [(0, False), (1, True)])
def test_c_source_gives_the_same_bits(seed, single, tmp_path):
    trees = random_ensemble(seed, 6, 30, base=0.3, single=single, categories="both")
    (tmp_path / "m.c").write_text(source.write_c(trees, "m"))
    flags = "-std=c99 -O2 -Wall -Wextra -Werror -pedantic -shared -fPIC".split()
    subprocess.run(["cc", *flags, "m.c", "-o", "m.so"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "m.so"))
    rows, found = rows_for(trees, seed), np.empty(200)
    rows[0, :] = 3.7, 3.7, -0.0, 299.5
    pointer = ctypes.c_void_p
    library.score_batch(
        rows.ctypes.data_as(pointer), ctypes.c_size_t(200), found.ctypes.data_as(pointer)
    )
    np.testing.assert_array_equal(found, walked(trees, rows)[0])


@pytest.mark.parametrize("brands", [BRANDS, ASCII])
def test_names_go_to_lightgbm_and_xgboost(brands, tmp_path):
    table, y = frame(brands=brands)
    booster = lightgbm_trained(KINDS["sets"], X=table, y=y)
    model = rg.load(saved(booster, tmp_path / "m.txt"))
    expected = booster.predict(table, raw_score=True)
    other = shuffled(table)
    # names of categories stay: LightGBM finds codes by them
    rg.convert(model, tmp_path / "n.txt")
    written = lgb.Booster(model_file=tmp_path / "n.txt")
    texts = table.assign(shop=table["shop"].cat.rename_categories(str))
    np.testing.assert_array_equal(written.predict(texts, raw_score=True), expected)
    infos = next(x for x in (tmp_path / "n.txt").read_text().split("\n") if "feature_infos" in x)
    assert infos.startswith("feature_infos=[-inf:inf] -1:0:1:2:3:4 -1:0:1:")
    again = rg.load(tmp_path / "n.txt")
    assert again.categories_ == model.categories_
    np.testing.assert_array_equal(
        scores(again, with_codes(other, again)), scores(model, with_codes(other, model))
    )
    rg.convert(model, tmp_path / "n.json", to="xgboost")
    none = dict.fromkeys(model.categories_)
    assert rg.load(tmp_path / "n.json").categories_ == (
        model.categories_ if brands == ASCII else none
    )
    by_xgboost = xgb.Booster(model_file=tmp_path / "n.json")
    found = by_xgboost.predict(xgb.DMatrix(texts, enable_categorical=True))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    if brands == ASCII and tuple(map(int, xgb.__version__.split(".")[:2])) >= (3, 1):
        turned = texts.assign(brand=texts["brand"].cat.set_categories(brands[::-1]))
        found = by_xgboost.predict(xgb.DMatrix(turned, enable_categorical=True))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_copies_for_missing_values_are_limited(monkeypatch):
    trees = random_ensemble(1, 6, 30, categories="both")
    turned = category_chains.missing_right(trees, NAMES, "LightGBM")
    assert not turned.missing_left[turned.set_of >= 0].any()
    monkeypatch.setattr(category_chains, "LEAST_ROOM", 10)
    monkeypatch.setattr(category_chains, "MOST_TIMES", 1)
    with pytest.raises(
        ParameterError, match=r"LightGBM sends missing values away from sets.*leaves.* 'b', 'd'\."
    ):
        lightgbm.write_text(trees, NAMES)


# -- programs that hold no sets -------------------------------------------------------------------


@pytest.mark.parametrize("to", ["ranklib", "solr", "elasticsearch"])
def test_programs_without_sets_refuse_them(to):
    trees = random_ensemble(1, 6, 30, categories="right")
    message = r"cannot hold splits on sets.*on 'b', 'd'\. to='lightgbm', .*--expand-categories"
    with pytest.raises(ParameterError, match=message):
        encode(trees, to, LABELS, zero=True)


def small_sets(seed, n_trees, missing):
    """Trees whose sets are small enough to be chains."""
    trees = random_ensemble(seed, n_trees, 8, base=0.5, categories=missing)
    codes = [np.unique(trees.sets.codes(s) % 8)[:3] for s in range(len(trees.sets))]
    return replace(trees, sets=CategorySets.of(codes))


@given(st.integers(0, 2**32), st.integers(0, 5), BOTH)
@settings(max_examples=30)
def test_expanded_trees_score_one_hot_rows_as_before(seed, n_trees, missing):
    trees = small_sets(seed, n_trees, missing)
    rows = rows_for(trees, seed)
    names = {1: ("acme", "bolt", "c d", "d=d", "e", "f", "g", "h"), 3: None}
    wide, columns = category_chains.one_hot(trees, NAMES, names)
    wide.check()
    assert not wide.has_sets
    if missing == "both":  # a missing value is like an unknown category
        for column in CATEGORIES:
            rows[np.isnan(rows[:, column]), column] = -1.0
    rows[:, [0, 2]] = np.random.default_rng(seed).normal(size=(len(rows), 2))  # Solr's 1e-6
    expected = walked(trees, rows)
    hot = one_hot_rows(rows, NAMES, columns, names)
    np.testing.assert_array_equal(walked(wide, hot), expected)
    labels = replace(LABELS, categories=names)
    filled = np.nan_to_num(hot)
    for to, run in (
        ("solr", lambda text: mirrored.solr(text, columns, filled)),
        ("elasticsearch", lambda text: mirrored.elasticsearch(text, columns, filled)),
        ("ranklib", lambda text: mirrored.ranklib(text, filled)),
    ):
        written, _ = encode(trees, to, labels, zero=True, shift=False, expand_categories=True)
        found = run(written.decode())
        np.testing.assert_allclose(found, walked(wide, filled)[0], rtol=0, atol=1e-5)


def test_names_and_notes_of_an_expanded_model():
    trees = small_sets(1, 5, "right")
    labels = replace(LABELS, categories={1: tuple("stuvwxyz"), 3: None})
    written, notes = encode(trees, "ranklib", labels, zero=True, expand_categories=True)
    wide, columns = category_chains.one_hot(trees, NAMES, labels.categories)
    assert [name for name in columns if "=" not in name] == ["a", "c"]
    assert "b=s" in columns
    assert "d=0" in columns
    assert columns.index("a") < columns.index("b=s") < columns.index("c") < columns.index("d=0")
    assert f"## Feature {columns.index('c') + 1} = c\n" in written.decode()
    assert ranklib.read_text(written.decode()).ensemble.n_features == wide.n_features
    assert "'b', 'd' became" in notes[0]
    # an expanded model needs no program with sets, but may be written for one
    text = encode(trees, "lightgbm", labels, expand_categories=True)[0].decode()
    assert lightgbm.read_text(text).feature_names == tuple(columns)
    assert "num_cat=1" not in text
    with pytest.raises(ParameterError, match=r"Two features would be named 'd=0'"):
        category_chains.one_hot(trees, ["d=0", "b", "c", "d"], {})


def test_what_is_known_is_not_tested_again():
    parts = TreeParts()
    root = parts.split(None, 1, 0.0, False, np.array([0, 4]))
    inside = parts.split((root, True), 1, 0.0, False, np.array([4]))
    outside = parts.split((root, False), 1, 0.0, False, np.array([0, 3, 4]))
    for value, place in enumerate(
        [(inside, True), (inside, False), (outside, True), (outside, False)]
    ):
        parts.leaf(place, float(value))
    trees = Ensemble.from_trees([parts.tree(np.float32)], 2)
    wide, columns = category_chains.one_hot(trees, ["price", "brand"], {})
    assert columns == ["price", "brand=0", "brand=3", "brand=4"]
    assert wide.feature.tolist() == [1, 3, 2]
    assert sorted(wide.value.tolist()) == [0.0, 1.0, 2.0, 3.0]


def test_a_feature_with_sets_and_thresholds_stays_too():
    trees = [small_sets(3, 5, "right").tree(t) for t in range(5)]
    numbers = random_ensemble(4, 3, 10)
    both = Ensemble.from_trees([*trees, *(numbers.tree(t) for t in range(3))], 4)
    wide, columns = category_chains.one_hot(both, NAMES, {})
    assert {"a", "b", "c", "d", "b=0"} <= set(columns)
    rows = rows_for(both, 1)
    np.testing.assert_array_equal(
        walked(wide, one_hot_rows(rows, NAMES, columns, {})), walked(both, rows)
    )


def test_missing_values_that_an_expanded_model_cannot_tell():
    trees = small_sets(1, 5, "both")
    with pytest.raises(
        ParameterError, match=r"splits on 'b', 'd' send it elsewhere.*missing='zero'"
    ):
        encode(trees, "solr", LABELS, expand_categories=True)
    encode(trees, "solr", LABELS, expand_categories=True, zero=True)


def test_large_sets_are_not_expanded(monkeypatch):
    for n_codes in (256, 257):
        parts = TreeParts()
        root = parts.split(None, 3, 0.0, False, np.arange(n_codes))
        parts.leaf((root, True), 1.0)
        parts.leaf((root, False), 2.0)
        trees = Ensemble.from_trees([parts.tree(np.float32)], 4)
        if n_codes == 256:
            for to in ("solr", "elasticsearch", "ranklib"):
                encode(trees, to, LABELS, zero=True, expand_categories=True)
    message = "test more than 256 categories, the last of them of 'd'.*smaller sets"
    with pytest.raises(ParameterError, match=message):
        encode(trees, "solr", LABELS, zero=True, expand_categories=True)
    trees = random_ensemble(1, 6, 30, categories="right")
    monkeypatch.setattr(category_chains, "MOST_LINKS", 10**6)
    monkeypatch.setattr(category_chains, "LEAST_ROOM", 10)
    monkeypatch.setattr(category_chains, "MOST_TIMES", 1)
    with pytest.raises(ParameterError, match=r"more than 1 times as many leaves.* on 'b', 'd'\."):
        encode(trees, "solr", LABELS, zero=True, expand_categories=True)


# -- damage ---------------------------------------------------------------------------------------


def one_set() -> str:
    """A LightGBM tree with one split, on the set {1, 33}."""
    return """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=0
objective=regression
feature_names=a
feature_infos=-1:1:33

Tree=0
num_leaves=2
num_cat=1
split_feature=0
threshold=0
decision_type=1
left_child=-1
right_child=-2
leaf_value=1 2
cat_boundaries=0 2
cat_threshold=2 2

end of trees
"""


@pytest.mark.parametrize("kind", [1, 3, 5, 7, 9, 11])
def test_missing_types_mean_nothing_to_sets(kind):
    """Nor does the default side: LightGBM looks at the set alone."""
    text = one_set().replace("decision_type=1", f"decision_type={kind}")
    rows = np.array([[1.0], [33.0], [0.0], [2.0], [65.0], [np.nan], [-1.0]])
    trees = lightgbm.read_text(text).ensemble
    assert trees.threshold.tolist() == [0.0]
    found = walked(trees, rows)[0]
    assert found.tolist() == [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert lgb.Booster(model_str=text).predict(rows).tolist() == found.tolist()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cat_boundaries=0 2", "cat_boundaries=0 3", "do not fit"),
        ("cat_boundaries=0 2", "cat_boundaries=1 2", "do not fit"),
        ("cat_boundaries=0 2", "cat_boundaries=0 -2", "do not fit"),
        ("cat_boundaries=0 2", "cat_boundaries=0", "list of 2 numbers"),
        ("num_cat=1", "num_cat=0", "list of 1 numbers"),
        ("num_cat=1", "num_cat=2", "'num_cat' must be"),
        ("num_cat=1\n", "", "lacks 'num_cat'"),
        ("cat_boundaries=0 2\n", "", "lacks 'cat_boundaries'"),
        ("cat_threshold=2 2\n", "", "lacks 'cat_threshold'"),
        ("cat_threshold=2 2", "cat_threshold=2 -2", "do not fit"),
        ("cat_threshold=2 2", "cat_threshold=2 4294967296", "do not fit"),
        ("cat_threshold=2 2", "cat_threshold=2 2.5", "not a number"),
        ("threshold=0\n", "threshold=1\n", "does not exist"),
        ("threshold=0\n", "threshold=-1\n", "does not exist"),
        ("threshold=0\n", "threshold=0.5\n", "does not exist"),
        ("threshold=0\n", "threshold=nan\n", "does not exist"),
        ("end of trees\n", 'end of trees\n\npandas_categorical:[["a", "b"', "its JSON ends"),
        ("end of trees\n", "end of trees\n\npandas_categorical:7\n", "must be a list"),
    ],
)
def test_damaged_sets_of_lightgbm(old, new, message, tmp_path):
    text = one_set()
    assert old in text
    (tmp_path / "m.txt").write_text(text.replace(f"\n{old}", f"\n{new}", 1))
    with pytest.raises(ModelFileError, match=rf"m\.txt.*{message}"):
        rg.load(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("categories", [], "do not fit"),
        ("categories", [0, 1, -3], "below 0"),
        ("categories", [0, 1, 1 << 24], "only those up to"),
        ("categories", [0, 1, 10**30], "must be whole numbers"),
        ("categories_sizes", [3, 3], "do not fit"),
        ("categories_sizes", [2**62, 1], "do not fit"),
        ("categories_sizes", [-1, 1], "do not fit"),
        ("categories_sizes", [2], "list of 2 numbers"),
        ("categories_segments", [0, 3], "do not fit"),
        ("categories_sizes", [3, 1], "do not fit"),  # they overlap
        ("categories_segments", [-1, 2], "do not fit"),
        ("categories_segments", [0, 2**63 - 1], "do not fit"),
        ("categories_nodes", [0, 0], "do not fit"),
        ("categories_nodes", [0, 4], "node 2 of tree 0 has no categories"),
        ("categories_nodes", "x", "must be a list"),
    ],
)
def test_damaged_sets_of_xgboost(name, value, message, tmp_path):
    document = two_sets()
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    assert tree["categories_nodes"] == [0, 2]
    tree[name] = value
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=rf"m\.json.*{message}"):
        rg.load(tmp_path / "m.json")


def two_sets():
    """An XGBoost tree with the sets {0, 4} and {7}."""
    parts = TreeParts()
    root = parts.split(None, 1, 0.0, False, np.array([0, 4]))
    below = parts.split((root, True), 3, 0.0, False, np.array([7]))
    for place in ((below, True), (below, False), (root, False)):
        parts.leaf(place, 1.0)
    trees = Ensemble.from_trees([parts.tree(np.float32)], 4)
    return json.loads(xgboost.write_json(trees, None))


@pytest.mark.parametrize(
    "cats",
    [
        {"enc": [{}]},
        {"enc": [{"values": 3}]},
        {"enc": [{"offsets": ["x"], "values": [1]}]},
        {"enc": 3},
        {"enc": [{"offsets": [0, 99], "values": [97]}]},
        {"enc": [{"offsets": [0, -5], "values": [97]}]},
        {"enc": [{"offsets": [0, 1], "values": [200]}]},
        {"enc": [{"type": 15, "values": [[1]]}]},
        [],
        None,
    ],
)
def test_damaged_names_of_xgboost_do_no_harm(cats, tmp_path):
    document = two_sets()
    document["learner"]["gradient_booster"]["model"]["cats"] = cats
    (tmp_path / "m.json").write_text(json.dumps(document))
    content = (tmp_path / "m.json").read_bytes()
    model = load_or_fail(tmp_path / "m.json", content)
    assert model is None or set(model.categories_) >= {1, 3}


def test_a_small_file_cannot_ask_for_a_lot_of_memory(tmp_path, monkeypatch):
    document = two_sets()
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["categories"] = [0, 4, (1 << 24) - 1]
    (tmp_path / "m.json").write_text(json.dumps(document))
    assert rg.load(tmp_path / "m.json").ensemble_.sets.words.size == 1 + (1 << 19)
    monkeypatch.setattr("rankgrove.formats.foreign.MOST_WORDS", 1 << 19)
    with pytest.raises(ModelFileError, match="too many and too large"):
        rg.load(tmp_path / "m.json")
