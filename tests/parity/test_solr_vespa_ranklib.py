"""Emulated Solr, Vespa and RankLib: random models, and the rules that are easily forgotten."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tools.search_cases import emulated, make_case, mismatches

import rankgrove as rg
from rankgrove.errors import ModelFileError, ParameterError
from rankgrove.formats import solr, vespa_profile
from rankgrove.formats.write import Labels, encode
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network, n_weights
from rankgrove.parity.engines import ENGINES
from tests.formats.made import random_ensemble, rows_for
from tests.reference import formats as mirrored

PACKAGE = "org.apache.solr.ltr."
ENGINES_HERE = ["solr-9.2", "solr-9.1", "vespa", "vespa-fast-forest", "ranklib"]
LETTERS = list("abcd")


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_random_models_score_as_predicted(engine):
    """`python -m tools.search_cases predict` does this for 10,000 models."""
    assert list(mismatches(engine, range(30), 20)) == []


def test_a_large_model_is_rounded_by_vespa():
    case = make_case("vespa", 1, 20)
    np.testing.assert_array_equal(emulated("vespa", case), case.predicted)
    assert np.any(case.predicted != case.own)


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_the_emulators_agree_with_slow_ones(engine):
    """Two readings of the sources: vectorised here, one row at a time in tests/reference."""
    form = ENGINES[engine].format
    for seed in range(5):
        trees = random_ensemble(seed, 6, 12, base=-0.7)
        rows = rows_for(trees, seed, 60)
        zero = engine in ("solr-9.1", "ranklib")
        content, _ = encode(trees, form, Labels("web", LETTERS, True), zero=zero)
        model = ENGINES[engine].read(content)
        numbered = list("1234") if form == "ranklib" else LETTERS
        found = model.scores(rows[:, [numbered.index(name) for name in model.features]])
        text = content.decode()
        if form == "solr":
            expected = mirrored.solr(text, LETTERS, rows)
        elif form == "ranklib":
            expected = mirrored.ranklib(text, rows)
        else:
            documents = [dict(zip(LETTERS, map(float, row), strict=True)) for row in rows]
            expected = mirrored.vespa(text, documents)
        exact = 0.0 if engine != "vespa-fast-forest" else 1e-5
        np.testing.assert_allclose(found, expected, rtol=0, atol=exact)


# -- Solr -----------------------------------------------------------------------------------------


def solr_model(tree, norm=None, **params):
    feature = {"name": "a"} if norm is None else {"name": "a", "norm": norm}
    return json.dumps(
        {
            "class": PACKAGE + "model.MultipleAdditiveTreesModel",
            "name": "m",
            "features": [feature],
            "params": {"trees": [{"weight": "2", "root": tree}], **params},
        }
    ).encode()


def test_what_solr_does_with_a_missing_value():
    tree = {"feature": "a", "threshold": "1", "left": {"value": "1"}, "right": {"value": "3"}}
    values = np.array([[0.0], [1.0000005], [1.1], [np.nan]])
    read = ENGINES["solr-9.2"].read
    assert read(solr_model(tree)).scores(values).tolist() == [2, 2, 6, 2]
    tree["missing"] = "right"
    content = solr_model(tree, isNullSameAsZero=False)
    assert read(content).scores(values).tolist() == [2, 2, 6, 6]
    norm = {"class": PACKAGE + "norm.MinMaxNormalizer", "params": {"min": "1", "max": "2"}}
    assert read(solr_model(tree, norm)).scores(values + 1).tolist() == [2, 2, 6, 2]
    del tree["missing"]
    with pytest.raises(ModelFileError, match="without the field 'missing'"):
        read(solr_model(tree, isNullSameAsZero=False)).scores(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"isNullSameAsZero": "false"}, "not true or false"),
        ({"other": 1}, "no setter"),
        ({"trees": [{"weight": 1.5, "root": {"value": "1"}}]}, "write it as a string"),
        ({"trees": [{"weight": "1", "root": {"value": "1", "left": {}}}]}, "leaf with children"),
        ({"trees": [{"root": {"value": "1"}}]}, "weight"),
    ],
)
def test_what_solr_refuses(change, message):
    with pytest.raises(ModelFileError, match=message):
        ENGINES["solr-9.2"].read(solr_model({"value": "1"}, **change))


def test_solr_up_to_9_1_refuses_missing_directions():
    trees = random_ensemble(3, 3, 8)
    content, _ = encode(trees, "solr", Labels("web", LETTERS, True))
    assert solr.tells_missing(trees)
    with pytest.raises(ModelFileError, match="'isNullSameAsZero': it has no setter"):
        ENGINES["solr-9.1"].read(content)


def test_solr_refuses_a_net_that_does_not_fit():
    layer = {"matrix": [[1.0, 2.0]], "bias": [0.0], "activation": "identity"}
    document = {
        "class": PACKAGE + "model.NeuralNetworkModel",
        "name": "m",
        "features": [{"name": "a"}],
        "params": {"layers": [layer]},
    }
    with pytest.raises(ModelFileError, match="1 x 2 weights and 1 biases for 1 inputs"):
        ENGINES["solr-9.2"].read(json.dumps(document).encode())


# -- Vespa ----------------------------------------------------------------------------------------


def test_vespa_imports_xgboosts_dump_with_float32_thresholds():
    dump = [
        {"nodeid": 0, "split": "a", "split_condition": 0.1, "yes": 1, "no": 2, "missing": 1,
         "children": [{"nodeid": 2, "leaf": 2.0}, {"nodeid": 1, "leaf": 1.0}]},
        {"nodeid": 0, "leaf": 0.1},
        {"nodeid": 0, "leaf": 0.2},
    ]  # fmt: skip
    model = ENGINES["vespa"].read(json.dumps(dump).encode())
    at = float(np.float32(0.1))
    below = np.nextafter(at, 0)
    expected = [1 + (0.1 + 0.2), 2 + (0.1 + 0.2), 1 + (0.1 + 0.2)]  # constants are added first
    assert model.scores(np.array([[below], [at], [np.nan]])).tolist() == expected
    dump[0]["gain"] = 1.0
    with pytest.raises(ModelFileError, match=r"'gain'.*with_stats=False"):
        ENGINES["vespa"].read(json.dumps(dump).encode())
    with pytest.raises(ModelFileError, match="save_model is not imported"):
        ENGINES["vespa"].read(b'{"learner": {}}')


def test_vespas_ubj_differs_from_xgboost_where_it_is_known_to(tmp_path):
    """Thresholds are the float32 below; a tree without splits has another leaf than XGBoost's."""
    xgboost = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    data = xgboost.DMatrix(X, (X[:, 0] > 0).astype(int), feature_names=["a", "b"])
    for gamma, is_like in ((0.0, True), (1e9, False)):
        params = {"objective": "binary:logistic", "gamma": gamma, "base_score": 0.3}
        booster = xgboost.train(params, data, 4)
        booster.save_model(tmp_path / "m.ubj")
        model = ENGINES["vespa"].read((tmp_path / "m.ubj").read_bytes())
        columns = [["a", "b"].index(name) for name in model.features]
        apart = np.abs(model.scores(X[:, columns]) - booster.predict(data, output_margin=True))
        assert apart.max() < 1e-5 if is_like else apart.min() > 1e-3
    booster = xgboost.train({"max_depth": 1, "base_score": 0.0}, data, 1)
    booster.save_model(tmp_path / "m.ubj")
    (stump,) = booster.get_dump(dump_format="json")
    at = np.float32(json.loads(stump)["split_condition"])
    steps = [np.nextafter(at, np.float32(-9)), at]
    steps = [np.nextafter(steps[0], np.float32(-9)), *steps]
    found = (
        ENGINES["vespa"].read((tmp_path / "m.ubj").read_bytes()).scores(np.array(steps)[:, None])
    )
    assert found[0] != found[1]  # for XGBoost, only the third value is at its threshold
    assert found[1] == found[2]


def test_vespa_adds_a_sigmoid_by_the_objective():
    trees = random_ensemble(1, 3, 5)
    content, _ = encode(trees, "vespa", Labels("web", LETTERS, True))
    rows = rows_for(trees, 1, 20)
    document = json.loads(content)
    plain = ENGINES["vespa"].read(content).scores(rows[:, :4][:, _columns(content)])
    for objective, link in (
        ("binary sigmoid:1", lambda s: 1 / (1 + np.exp(-s))),
        ("poisson", np.exp),
    ):
        document["objective"] = objective
        linked = json.dumps(document).encode()
        found = ENGINES["vespa"].read(linked).scores(rows[:, _columns(content)])
        np.testing.assert_allclose(found, link(plain), rtol=1e-15)


def _columns(content):
    return [LETTERS.index(name) for name in ENGINES["vespa"].read(content).features]


@pytest.mark.parametrize("text", ["rank-profile m { first-phase { expression: 1 + } }",
                                  "rank-profile m { first-phase { expression: (1 } }",
                                  "rank-profile m { first-phase { expression: a ? 1 } }",
                                  "rank-profile m { }"])  # fmt: skip
def test_an_expression_that_vespa_cannot_parse(text):
    with pytest.raises(ModelFileError):
        ENGINES["vespa"].read((text.replace(" } }", "\n } }")).encode())


@pytest.mark.parametrize(
    "text", ["rank-profile m { first-phase { expression: 1", "rank-profile m {\n  function f() {\n"]
)
def test_a_profile_that_ends_too_early(text):
    with pytest.raises(ModelFileError, match="rank profile"):
        ENGINES["vespa"].read(text.encode())


def test_nesting_too_deep_for_us_is_refused():
    deep = "(" * 20000 + "1" + ")" * 20000
    text = f"rank-profile m {{\n first-phase {{\n expression: {deep}\n }}\n}}\n"
    with pytest.raises(ModelFileError, match="nested too deeply"):
        ENGINES["vespa"].read(text.encode())
    for engine in ("vespa", "solr-9.2"):
        with pytest.raises(ModelFileError, match="RecursionError"):
            ENGINES[engine].read(b'{"class": ' + b"[" * 100_000)


def test_a_profile_of_a_net_keeps_its_functions_apart_from_features():
    sizes = (3, 2)
    flat = np.random.default_rng(0).normal(size=n_weights(sizes))
    model = Network(sizes, flat, np.ones(3), np.array([1.0, 2.0, 0.0]), "relu")
    text, notes = vespa_profile.write_net(model, ["input_1", "bm25(title)", "unused"], "a-b")
    assert text.startswith("rank-profile a_b inherits a_b_features {\n    function net_input_0()")
    assert "unused" not in text
    assert notes == []
    rows = np.array([[1.0, 2.0, 3.0], [np.nan, 5.0, 6.0], [-2.0, np.nan, 7.0]], np.float32)
    engine = ENGINES["vespa"].read(text.encode())
    assert engine.features == ("input_1", "bm25(title)")
    np.testing.assert_allclose(engine.scores(rows[:, :2]), model.scores(rows), rtol=1e-14)
    skeleton = vespa_profile.profile(model, ["input_1", "bm25(title)", "unused"], "a-b", {})
    assert skeleton.startswith("rank-profile a_b_features {\n    function input_1() {")
    wide = Network((3, 2000), np.ones(n_weights((3, 2000))), np.ones(3), np.ones(3), "relu")
    _, notes = vespa_profile.write_net(wide, LETTERS[:3], "wide")
    assert 'to="onnx"' in notes[0]


def test_a_linear_model_keeps_its_intercept_in_vespa():
    none = np.empty(0)
    mean, scale = np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 0.0])
    model = Linear(3, np.array([1.0, -2.0, 3.0]), "standard", mean, scale, none, none, 0.25)
    text = vespa_profile.write_linear(model, ["bm25(title)", "age", "unused"], "m")
    engine = ENGINES["vespa"].read(text.encode())
    assert engine.features == ("bm25(title)", "age")
    rows = np.array([[1.5, 3.0], [np.nan, 1.0], [np.nan, np.nan]])
    assert engine.scores(rows).tolist() == [0.25 + 1.0 - 1.0, 0.25 + 1.0, 0.25]
    nothing = Linear(3, np.zeros(3), "standard", mean, scale, none, none)
    engine = ENGINES["vespa"].read(vespa_profile.write_linear(nothing, list("abc"), "m").encode())
    assert engine.scores(np.empty((2, 0))).tolist() == [0.0, 0.0]


def test_feature_sets_of_solr_and_vespa(train_set, tmp_path):
    model = rg.LambdaMART(n_trees=2, n_leaves=4, min_leaf=2).fit(train_set)
    names = ["bm25(title)", "title_score", "attribute(price)"]
    rg.convert(model, tmp_path / "web.json", "vespa", features=names, feature_set=tmp_path / "p")
    text = (tmp_path / "p").read_text()
    assert 'expression: lightgbm("web.json")' in text
    assert ("function title_score() {" in text) == ("title_score" in text)
    assert "match-features {" in text
    rg.convert(model, tmp_path / "web.json", "solr", features=names, feature_set=tmp_path / "f")
    store = json.loads((tmp_path / "f").read_text())
    listed = [one["name"] for one in json.loads((tmp_path / "web.json").read_text())["features"]]
    assert [one["name"] for one in store] == listed
    assert all(one["class"].endswith(".FieldValueFeature") for one in store)


@pytest.fixture(name="train_set")
def _train_set():
    X = np.random.default_rng(1).normal(size=(60, 3))
    return rg.QueryDataset(X, (X[:, 1] + X[:, 0] > 0).astype(int), np.repeat(np.arange(6), 10))


# -- RankLib --------------------------------------------------------------------------------------


def test_ranklib_does_not_round_a_leaf_times_a_weight():
    rng = np.random.default_rng(1)
    trees = "".join(
        f'<tree id="{t}" weight="{weight}"><split><output>{leaf}</output></split></tree>'
        for t, (weight, leaf) in enumerate(rng.random((40, 2)).tolist(), 1)
    )
    text = f"## LambdaMART\n<ensemble>{trees}</ensemble>\n"
    found = ENGINES["ranklib"].read(text.encode()).scores(np.empty((1, 0)))
    np.testing.assert_array_equal(found, mirrored.ranklib(text, np.zeros((1, 1))))
    total = np.float32(0)
    for tree in text.split("weight=")[1:]:
        weight, leaf = tree.split('"')[1], tree.split("output>")[1].rstrip("</")
        total += np.float32(weight) * np.float32(leaf)
    assert found[0] != total


def test_ranklib_divides_the_sums_of_a_random_forest():
    bag = (
        '<ensemble><tree id="1" weight="0.1"><split><feature>2</feature><threshold>0.5</threshold>'
        '<split pos="left"><output>1.5</output></split><split pos="right"><output>2.5</output>'
        "</split></split></tree></ensemble>"
    )
    model = ENGINES["ranklib"].read(f"## Random Forests\n{bag}\n{bag}\n".encode())
    assert model.features == ("2",)
    single = [float(np.float32(x * float(np.float32(0.1)))) for x in (1.5, 2.5, 1.5)]
    found = model.scores(np.array([[0.5], [0.6], [np.nan]]))
    assert found.tolist() == [(x + x) / 2 for x in single]
    with pytest.raises(ModelFileError, match="has one <ensemble>; this file has 2"):
        ENGINES["ranklib"].read(f"## LambdaMART\n{bag}\n{bag}\n".encode())
    with pytest.raises(ModelFileError, match="'RankNet' is not emulated"):
        ENGINES["ranklib"].read(b"## RankNet\n")
    with pytest.raises(ModelFileError, match="document type"):
        ENGINES["ranklib"].read(b"## MART\n<!DOCTYPE a><ensemble/>")


def test_engines_without_versions_may_be_named(tmp_path, caplog):
    """``vespa`` and ``ranklib`` write what ``to=`` writes, and say as much."""
    rng = np.random.default_rng(1)
    web = rg.make_web(20, n_docs=12, n_features=4, seed=1)
    X = np.where(rng.random(web.X.shape) < 0.2, np.nan, web.X)
    model = rg.LambdaMART(n_trees=3).fit(rg.QueryDataset(X, web.y, web.qid))
    full = rg.LambdaMART(n_trees=3).fit(web)  # no value was missing
    for name, one in (("learned", model), ("full", full)):
        rg.convert(one, tmp_path / f"{name}.to", to="vespa", name="m")
        for engine in ("vespa", "Vespa-8", "vespa-fast-forest"):
            rg.convert(one, tmp_path / f"{name}.json", engine=engine, name="m")
            assert (tmp_path / f"{name}.json").read_text() == (tmp_path / f"{name}.to").read_text()
    assert not caplog.text
    rg.convert(full, tmp_path / "forest.xml", engine="ranklib")
    assert rg.load(tmp_path / "forest.xml").predict(web.X) == pytest.approx(
        full.predict(web), abs=1e-5
    )
    with pytest.raises(ParameterError, match="Or train on data in which missing values are 0"):
        rg.convert(model, tmp_path / "forest.xml", engine="ranklib")


def test_an_ending_of_another_format_is_refused(tmp_path):
    model = rg.LambdaMART(n_trees=2).fit(rg.make_web(10, n_docs=8, n_features=4, seed=1))
    with pytest.raises(ParameterError, match=r"the ending of .*web\.onnx says 'onnx'"):
        rg.convert(model, tmp_path / "web.onnx", engine="opensearch-3.8")
    assert not list(tmp_path.iterdir())


def test_a_rank_profile_under_another_name_is_noted(tmp_path, caplog):
    model = rg.RankSVM().fit(rg.make_web(10, n_docs=8, n_features=4, seed=1))
    rg.convert(model, tmp_path / "web.profile", to="vespa")
    assert "rank profile" not in caplog.text
    rg.convert(model, tmp_path / "web.json", to="vespa")
    assert "Vespa reads it as schemas/SCHEMA/web.profile" in caplog.text
