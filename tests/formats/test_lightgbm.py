"""LightGBM's models: theirs read here, ours read there."""

from __future__ import annotations

import json
from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.formats import lightgbm
from rankgrove.formats.zero_missing import BELOW, ZERO
from rankgrove.model.ensemble import Ensemble
from tests.formats.made import random_ensemble, rows_for, same_trees, walked

QUIET = {"verbose": -1, "num_leaves": 12, "min_data_in_leaf": 4, "num_threads": 1}


def data(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 4] = rng.integers(0, 4, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, rng.integers(0, 4, n).astype(float)


def trained(params, seed=0, rounds=15, **dataset):
    X, y = data(seed)
    group = [60] * 10 if params["objective"] == "lambdarank" else None
    made = lgb.train({**QUIET, **params}, lgb.Dataset(X, y, group=group, **dataset), rounds)
    return made, X


FOREST = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
KINDS = {
    "lambdarank": {"objective": "lambdarank"},
    "missing is 0": {"objective": "lambdarank", "use_missing": False},
    "zero is missing": {"objective": "lambdarank", "zero_as_missing": True},
    "dart": {"objective": "lambdarank", "boosting": "dart", "drop_rate": 0.5},
    "from average": {"objective": "regression", "boost_from_average": True},
    "classes": {"objective": "multiclass", "num_class": 4},
    "one against all": {"objective": "multiclassova", "num_class": 4},
    "goss": {"objective": "lambdarank", "data_sample_strategy": "goss"},
    "forest": {"objective": "lambdarank", **FOREST},
    "forest of classes": {"objective": "multiclass", "num_class": 4, **FOREST},
}


@pytest.mark.parametrize("params", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("form", ["txt", "json"])
def test_scores_are_lightgbms_to_the_bit(params, form, tmp_path):
    booster, X = trained(params)
    path = tmp_path / f"model.{form}"
    if form == "txt":
        booster.save_model(path)
    else:
        path.write_text(json.dumps(booster.dump_model()))
    model = rg.load(path)
    rows = np.vstack([X, data(1)[0], [[np.inf] * 5, [-np.inf] * 5, [np.nan] * 5, [-0.0] * 5]])
    rows[-4, 1] = 1e-36  # a zero, to LightGBM
    # of a forest LightGBM's raw scores are sums; it divides them for its predictions
    divisor = 15 if params.get("boosting") == "rf" else 1
    expected = booster.predict(rows, raw_score=True) / divisor
    np.testing.assert_array_equal(model.raw_scores(rows), expected)
    single = rows.astype(np.float32)
    expected = booster.predict(single, raw_score=True) / divisor
    np.testing.assert_array_equal(model.raw_scores(single), expected)
    assert model.objective_.split(" ")[0] == params["objective"]
    if params["objective"] == "multiclass":
        expected = booster.predict(single) @ np.arange(4)
        np.testing.assert_allclose(model.predict(single), expected, rtol=1e-12)
    elif params["objective"] == "multiclassova":
        with pytest.raises(rg.DataError, match="no single score"):
            model.predict(single)


def test_float64_features_meet_float64_thresholds(tmp_path):
    booster, X = trained(KINDS["lambdarank"])
    booster.save_model(tmp_path / "m.txt")
    model = rg.load(tmp_path / "m.txt")
    at = model.ensemble_.threshold
    # values that float32 would carry across the threshold
    rows = np.repeat(X[:1], 2 * at.size, axis=0)
    for k, (feature, threshold) in enumerate(zip(model.ensemble_.feature, at, strict=True)):
        rows[2 * k, feature] = threshold
        rows[2 * k + 1, feature] = np.nextafter(threshold, np.inf)
    expected = booster.predict(rows, raw_score=True)
    np.testing.assert_array_equal(model.predict(rows), expected)
    rounded = model.predict(rows.astype(np.float32))
    assert (rounded != expected).any()
    import scipy.sparse

    filled = np.nan_to_num(rows)
    np.testing.assert_array_equal(
        model.predict(scipy.sparse.csr_matrix(filled)), booster.predict(filled, raw_score=True)
    )
    # a data set is float32, as always
    labelled = rg.QueryDataset(rows, np.zeros(len(rows)), np.zeros(len(rows), int))
    np.testing.assert_array_equal(model.predict(labelled), rounded)
    # what float32 thresholds decide on float32 data is the same
    single = rows.astype(np.float32)
    narrow = model.ensemble_.for_float32()
    assert narrow.threshold.dtype == np.float32
    np.testing.assert_array_equal(walked(narrow, single)[0], rounded)


def test_statistics_and_names_are_kept(tmp_path):
    names = ["a", "b b", "c", "d", "e"]
    booster, _ = trained(KINDS["lambdarank"], feature_name=names)
    booster.save_model(tmp_path / "m.txt")
    (tmp_path / "m.json").write_text(json.dumps(booster.dump_model()))
    for file in ("m.txt", "m.json"):
        model = rg.load(tmp_path / file)
        assert model.feature_names_ == ("a", "b_b", "c", "d", "e")
        trees = model.ensemble_
        whole = booster.dump_model()["tree_info"][3]["tree_structure"]
        root, first_leaf = trees.node_ptr[3], trees.leaf_ptr[3]
        assert trees.node_count[root] == whole["internal_count"] == 600
        assert trees.node_weight[root] == pytest.approx(whole["internal_weight"])
        assert trees.gain[root] == pytest.approx(whole["split_gain"], rel=1e-5)
        leaves = slice(first_leaf, trees.leaf_ptr[4])
        assert trees.leaf_count[leaves].sum() == 600
        np.testing.assert_allclose(trees.leaf_mean[leaves] * 0.1, trees.value[leaves])


def test_linear_trees_are_refused(tmp_path):
    booster, _ = trained({"objective": "regression", "linear_tree": True})
    booster.save_model(tmp_path / "m.txt")
    (tmp_path / "m.json").write_text(json.dumps(booster.dump_model()))
    for file in ("m.txt", "m.json"):
        message = rf"{file}.*linear functions.*without linear_tree"
        with pytest.raises(rg.ModelFileError, match=message):
            rg.load(tmp_path / file)


def test_a_forest_is_its_mean_everywhere(tmp_path):
    booster, X = trained(KINDS["forest"])
    booster.save_model(tmp_path / "m.txt")
    model = rg.load(tmp_path / "m.txt")
    scores = booster.predict(X)
    np.testing.assert_array_equal(model.predict(X), scores)
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    np.testing.assert_array_equal(again.predict(X), scores)
    again.save(tmp_path / "n.rg")
    assert (tmp_path / "n.rg").read_bytes() == (tmp_path / "m.rg").read_bytes()
    # as plain trees it is the same but for rounding
    np.testing.assert_allclose(walked(model.ensemble_, X)[0], scores, rtol=1e-12)
    single = X.astype(np.float32)
    np.testing.assert_allclose(
        model.scorer().predict(single), booster.predict(single), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        model.truncated(5).predict(X), booster.predict(X, num_iteration=5) * 5 / 15, rtol=1e-12
    )
    rg.convert(model, tmp_path / "out.txt", to="lightgbm")
    written = lgb.Booster(model_file=tmp_path / "out.txt")
    np.testing.assert_allclose(written.predict(X), scores, rtol=1e-12)


def test_a_dump_of_version_2(tmp_path):
    """It lacks the objective, whether it averages, and most statistics."""
    booster, X = trained(KINDS["lambdarank"])
    kept = {
        "name", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx",
        "feature_names", "tree_info",
    }  # fmt: skip
    document = {k: v for k, v in booster.dump_model().items() if k in kept}
    document["version"] = "v2"
    (tmp_path / "m.json").write_text(json.dumps(document))
    model = rg.load(tmp_path / "m.json")
    np.testing.assert_array_equal(model.predict(X), booster.predict(X))
    # the first of them call <= no_greater, and take NaN for 0
    booster, X = trained(KINDS["missing is 0"])
    text = json.dumps({**document, "tree_info": booster.dump_model()["tree_info"]})
    for key in ('"default_left": true, ', '"default_left": false, ', '"missing_type": "None", '):
        text = text.replace(key, "")
    assert "missing_type" not in text
    (tmp_path / "m.json").write_text(text.replace('"<="', '"no_greater"'))
    np.testing.assert_array_equal(rg.load(tmp_path / "m.json").predict(X), booster.predict(X))


def test_models_shortened_by_hand(tmp_path):
    booster, X = trained(KINDS["lambdarank"])
    text = booster.model_to_string()
    path = tmp_path / "m.txt"

    def message():
        with pytest.raises(rg.ModelFileError) as error:
            rg.load(path)
        return str(error.value)

    first = text.index("Tree=5\n")
    shortened = text[:first] + text[text.index("end of trees") :]
    path.write_text(shortened)
    assert "has 5 trees of the 15 that tree_sizes lists" in message()
    assert "remove the line tree_sizes=" in message()
    # as it advises
    path.write_text("\n".join(x for x in shortened.splitlines() if "tree_sizes" not in x))
    np.testing.assert_array_equal(rg.load(path).predict(X), booster.predict(X, num_iteration=5))
    path.write_text(text[:first])
    assert "ends within or after tree 4 of the 15 that tree_sizes lists" in message()
    path.write_text(text[text.index("Tree=0\n") :])
    assert "begins with a tree" in message()
    # files of old versions have no 'end of trees'
    path.write_text(text.replace("end of trees\n", ""))
    np.testing.assert_array_equal(rg.load(path).predict(X), booster.predict(X))


# -- what is zero ---------------------------------------------------------------------------------

EDGES = [-1.0, BELOW, -ZERO, -1e-36, -0.0, 0.0, 1e-36, ZERO, np.nextafter(ZERO, 1), 1.0]


@pytest.mark.parametrize("threshold", EDGES)
@pytest.mark.parametrize("default_left", [True, False])
@pytest.mark.parametrize("kind", [0, 4, 8], ids=["None", "Zero", "NaN"])
def test_every_way_a_zero_can_go(threshold, default_left, kind):
    text = lightgbm.write_text(
        Ensemble.from_trees([random_ensemble(3, 1, 4).tree(0)], 4), ["a", "b", "c", "d"]
    )
    head = text.partition("Tree=0")[0]
    tree = f"""Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
split_gain=1 1
threshold={float(threshold)!r} 0.5
decision_type={kind | (2 * default_left)} 8
left_child=1 -2
right_child=-1 -3
leaf_value=1 2 4

"""
    size = len(tree)
    whole = head.replace(head[head.index("tree_sizes") :], f"tree_sizes={size}\n\n")
    text = f"{whole}{tree}end of trees\n"
    booster = lgb.Booster(model_str=text)
    found = lightgbm.read_text(text).ensemble
    rows = np.zeros((3 * len(EDGES) + 2, 4))
    rows[:, 0] = [*EDGES, *np.nextafter(EDGES, -np.inf), *np.nextafter(EDGES, np.inf), np.nan, 5.0]
    rows[::2, 1] = 1.0
    expected = booster.predict(rows, raw_score=True)
    np.testing.assert_array_equal(walked(found, rows)[0], expected)


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
def test_lightgbm_reads_what_is_written(seed, n_trees, leaves, dtype, base, columns):
    trees = random_ensemble(seed, n_trees, leaves, dtype=dtype, base=base, n_columns=columns)
    text = lightgbm.write_text(trees, list("abcd"))
    booster = lgb.Booster(model_str=text)
    rows = rows_for(trees, seed, dtype=dtype)
    rows[np.abs(rows) <= ZERO] = 0.0  # as LightGBM does itself
    expected = walked(trees, rows)
    found = booster.predict(rows, raw_score=True, num_threads=1).T
    np.testing.assert_array_equal(np.atleast_2d(found), expected)
    again = lightgbm.read_text(text)
    np.testing.assert_array_equal(walked(again.ensemble, rows), expected)
    assert again.feature_names == tuple("abcd")
    if base == 0.0 and n_trees:
        wide = again.ensemble
        same_trees(wide, with_lightgbms_zero(trees))
    second = lightgbm.read_text(lightgbm.write_text(again.ensemble, list("abcd")))
    same_trees(second.ensemble, again.ensemble)


def with_lightgbms_zero(trees):
    """Float64 thresholds, none of them within what is 0 to LightGBM."""
    threshold = trees.threshold.astype(np.float64)
    zero = np.abs(threshold) < ZERO
    moved = np.where(threshold < 0, BELOW, ZERO)
    return replace(trees, threshold=np.where(zero | (threshold == -ZERO), moved, threshold))


def test_statistics_go_round():
    train = rg.make_web(30, n_docs=15, n_features=6, seed=1)
    model = rg.LambdaMART(n_trees=4, n_leaves=6, min_leaf=3).fit(train)
    text = lightgbm.write_text(model.ensemble_, [f"f{j}" for j in range(6)])
    again = lightgbm.read_text(text).ensemble
    for name in ("node_count", "leaf_count", "node_weight", "leaf_weight", "gain"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model.ensemble_, name))
    for name in ("node_mean", "leaf_mean"):
        np.testing.assert_allclose(
            getattr(again, name), getattr(model.ensemble_, name), rtol=1e-9, atol=1e-15
        )
