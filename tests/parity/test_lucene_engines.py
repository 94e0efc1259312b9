"""The Lucene plugins and Elasticsearch's own learning to rank: files, emulators, predictions."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tools import engine_cases

import rankgrove as rg
from rankgrove.errors import ModelFileError, ParameterError
from rankgrove.formats import elasticsearch_native
from rankgrove.formats.targets import TARGETS, target_of, targets_of
from rankgrove.formats.write import FORMATS, Labels, encode
from rankgrove.parity.engines import ENGINES
from tests.command import run_here as run
from tests.formats.made import random_ensemble, rows_for

LABELS = Labels("web", list("abcd"), True)
LUCENE = [name for name in ENGINES if ENGINES[name].format in engine_cases.OURS]


def leaf(number, value):
    return {"nodeid": number, "leaf": value}


def split(threshold=0.5, missing=1, **changed):
    """A tree of one split on `a`: 1 on the left, 2 on the right."""
    root = {"nodeid": 0, "depth": 0, "split": "a", "split_condition": threshold, "yes": 1, "no": 2,
            "missing": missing, "children": [leaf(1, 1.0), leaf(2, 2.0)]}  # fmt: skip
    return {name: value for name, value in {**root, **changed}.items() if value is not None}


def body(definition, kind="model/xgboost+json", **more):
    text = definition if isinstance(definition, str) else json.dumps(definition)
    model = {"name": "m", "model": {"type": kind, "definition": text, **more}}
    return json.dumps({"model": model}).encode()


def native(*nodes, **changed):
    """A request with one tree on `a`."""
    tree = {"tree": {"feature_names": ["a"], "tree_structure": list(nodes)}}
    ensemble = {"feature_names": ["a"], "trained_models": [tree], **changed}
    config = {"learning_to_rank": {"feature_extractors": []}}
    definition = {"trained_model": {"ensemble": ensemble}}
    return json.dumps({"inference_config": config, "definition": definition}).encode()


def node(threshold=0.5, **changed):
    return {"node_index": 0, "split_feature": 0, "threshold": threshold, "left_child": 1,
            "right_child": 2, **changed}  # fmt: skip


LEFT, RIGHT = {"node_index": 1, "leaf_value": 1.0}, {"node_index": 2, "leaf_value": [2.0]}


def scored(engine, content, *values):
    return ENGINES[engine].read(content).scores(np.array(values, np.float64)[:, None]).tolist()


# -- predictions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", LUCENE)
def test_emulated_scores_are_as_predicted(engine):
    assert list(engine_cases.mismatches(engine, range(25), 20)) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", LUCENE)
def test_emulated_scores_are_as_predicted_of_many_models(engine):
    assert list(engine_cases.mismatches(engine, range(25, 250), 30)) == []


def test_a_wrong_rule_is_noticed():
    """The cases tell the engines apart: they have missing values that matter."""
    cases = [engine_cases.make_case("opensearch-3.8", number, 40) for number in range(9)]
    for case in cases:
        scores = engine_cases.emulated("opensearch-3.8", case)
        assert np.array_equal(scores, case.predicted)
    others = [engine_cases.emulated("opensearch-3.2", case) for case in cases]
    pairs = zip(others, cases, strict=True)
    assert sum(not np.array_equal(scores, case.predicted) for scores, case in pairs) > 4


def test_scores_of_a_real_engine_are_compared(tmp_path):
    engine_cases.write_cases("opensearch-3.8", tmp_path, 4, 10)
    for place in tmp_path.iterdir():
        case = engine_cases.make_case("opensearch-3.8", int(place.name), 10)
        lines = [str(np.float32(value)) for value in case.predicted]
        (place / "scores.csv").write_text("\n".join(lines))
        header = (place / "values.csv").read_text().splitlines()[0]
        assert header == ",".join(case.features)
    seen, unlike, unpredicted, largest = engine_cases.compare("opensearch-3.8", tmp_path, 10)
    assert (seen, unlike, unpredicted) == (40, 0, 0)
    assert 0 <= largest <= 1
    lines[3] = "12345.0"
    (place / "scores.csv").write_text("\n".join(lines))
    assert engine_cases.compare("opensearch-3.8", tmp_path, 10)[1:3] == (1, 1)
    (place / "scores.csv").write_text("refused: it is Tuesday\n")
    with pytest.raises(SystemExit, match="Tuesday"):
        engine_cases.compare("opensearch-3.8", tmp_path, 10)


# -- engines by name ------------------------------------------------------------------------------


def test_every_engine_that_models_are_written_for_is_emulated():
    for name, target in TARGETS.items():
        assert (ENGINES[name].name, ENGINES[name].format) == (name, target.format)
    described = rg.convert.__doc__.split("engine :")[1]
    assert all(f'``"{name}"``' in described for name in TARGETS)
    assert all(engine.sources for engine in ENGINES.values())
    assert {target.format for target in TARGETS.values()} <= set(FORMATS)
    assert targets_of("opensearch")[0].name == "opensearch-3.8"


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("opensearch-2.19", "opensearch-3.1"),
        ("opensearch-3.2.0", "opensearch-3.2"),
        ("opensearch-3.7", "opensearch-3.2"),
        ("opensearch-3.10", "opensearch-main"),
        ("elasticsearch-9.1", "elasticsearch-8.12"),
        ("elasticsearch-9", "elasticsearch-8.12"),
        ("opensearch-2", "opensearch-3.1"),
        ("OpenSearch-3.8", "opensearch-3.8"),
        ("solr-10", "solr-9.2"),
        ("elasticsearch-ltr-1.5.8-es8.9.2", "elasticsearch-ltr-2023"),
        ("elasticsearch-ltr-1.5.9", "elasticsearch-ltr"),
        ("elasticsearch-ltr-1.5.10", "elasticsearch-ltr"),
        ("vespa-8", "vespa"),
        ("vespa-8.400.1", "vespa"),
        ("vespa-fast-forest", "vespa-fast-forest"),
        ("ranklib", "ranklib"),
    ],
)
def test_versions_in_between(name, rules):
    assert target_of(name).name == rules


@pytest.mark.parametrize(
    "name", ["elasticsearch-8.11", "elasticsearch-ltr-8.9", "solr-5.0", "lucene-99.0", "onnx", ""]
)
def test_unknown_engines(name):
    with pytest.raises(ParameterError, match=r"engine= \(--engine\) is one of elasticsearch-ltr, "):
        target_of(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("solr", ["solr-9.2", "solr-9.1"]),
        ("solr-9", ["solr-9.1", "solr-9.2"]),
        ("opensearch-3", ["opensearch-3.1", "opensearch-3.2", "opensearch-3.8", "opensearch-main"]),
        ("elasticsearch-ltr-1.5", ["elasticsearch-ltr-2023", "elasticsearch-ltr"]),
        ("Elasticsearch", ["elasticsearch-ltr", "elasticsearch-ltr-2023", "elasticsearch-8.12"]),
    ],
)
def test_names_that_may_mean_several_engines_are_refused_with_the_list(name, meant):
    with pytest.raises(ParameterError, match=f"'{name}' may be one of several: ") as error:
        target_of(name)
    assert [str(error.value).index(engine + " (") for engine in meant] == sorted(
        str(error.value).index(engine + " (") for engine in meant
    )


def test_versions_before_the_first_with_learning_to_rank_name_the_plugin():
    with pytest.raises(ParameterError, match="the plugin is elasticsearch-ltr"):
        target_of("elasticsearch-8.11")


# -- missing values -------------------------------------------------------------------------------


def test_learned_directions_are_kept_where_the_engine_can():
    trees = random_ensemble(5, 4, 8)
    for engine in ("elasticsearch-ltr", "opensearch-3.8", "elasticsearch-8.12"):
        target = TARGETS[engine]
        plain, notes = encode(trees, target.format, LABELS, engine=target, shift=False)
        assert plain == encode(trees, target.format, LABELS, engine=target, keep=True,
                               shift=False)[0]  # fmt: skip
        assert not any("missing" in note for note in notes)
    _, notes = encode(trees, "opensearch", LABELS, shift=False)  # the version was not said
    assert any("other versions treat missing" in note and "opensearch-3.1" in note
               for note in notes)  # fmt: skip
    agreeing = replace(trees, missing_left=trees.threshold >= 0)
    assert encode(agreeing, "elasticsearch", LABELS, shift=False)[1] == []  # as in all versions


@pytest.mark.parametrize("engine", ["elasticsearch-ltr-2023", "opensearch-3.1"])
def test_engines_that_know_no_missing_values(engine):
    trees, target = random_ensemble(5, 4, 8), TARGETS[engine]
    for asked in ({}, {"keep": True}):
        with pytest.raises(ParameterError, match=r"missing value as 0, but \d+ .*Or update: from"):
            encode(trees, target.format, LABELS, engine=target, **asked)
    encode(trees, target.format, LABELS, engine=target, zero=True)
    _, notes = encode(trees, target.format, LABELS, engine=target, learned_missing=False)
    assert "nothing was learned" in notes[0]


def test_an_engine_that_sends_missing_values_right():
    trees, target = random_ensemble(5, 4, 8), TARGETS["opensearch-3.2"]
    for learned in (True, False):
        with pytest.raises(
            ParameterError, match=r"right at every split, but.*missing='keep'.*3\.8"
        ):
            encode(trees, "opensearch", LABELS, engine=target, learned_missing=learned)
    content, notes = encode(trees, "opensearch", LABELS, engine=target, keep=True, shift=False)
    assert "leaves instead of" in notes[0]
    rows = rows_for(trees, 1, 300)
    model = ENGINES["opensearch-3.2"].read(content)
    columns = ["abcd".index(name) for name in model.features]
    found = model.scores(rows[:, columns])
    exact = sum(trees.tree(t).value[trees.tree(t).apply(rows)] for t in range(4))
    np.testing.assert_allclose(found, exact, atol=1e-5)
    going_right = replace(trees, missing_left=np.zeros_like(trees.missing_left))
    assert encode(going_right, "opensearch", LABELS, engine=target, shift=False)[1] == []


def test_splits_for_missing_values_may_become_too_many(monkeypatch):
    from rankgrove.formats import missing_values

    monkeypatch.setattr(missing_values, "LEAST_ROOM", 1)
    monkeypatch.setattr(missing_values, "MOST_TIMES", 1)
    with pytest.raises(ParameterError, match="times as many leaves"):
        encode(random_ensemble(5, 4, 8), "opensearch", LABELS, keep=True,
               engine=TARGETS["opensearch-3.2"])  # fmt: skip


def test_a_model_may_say_that_missing_values_are_zero():
    trees, target = random_ensemble(5, 4, 8), TARGETS["opensearch-main"]
    content, _ = encode(trees, "opensearch", LABELS, engine=target, zero=True)
    definition = json.loads(json.loads(content)["model"]["model"]["definition"])
    assert definition["missing_as_zero"] is True
    with pytest.raises(ModelFileError, match=r"unknown field \[missing_as_zero\]"):
        ENGINES["opensearch-3.8"].read(content)
    plain, _ = encode(trees, "opensearch", LABELS, engine=TARGETS["opensearch-3.8"], zero=True)
    rows = rows_for(trees, 1, 100)
    first, second = (
        ENGINES[name].read(text).scores(rows)
        for name, text in (("opensearch-main", content), ("opensearch-3.8", plain))
    )
    np.testing.assert_array_equal(first, second)


# -- emulators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "missing", "expected"),
    [
        ("elasticsearch-ltr", 1, [1, 2, 2, 1]),
        ("elasticsearch-ltr", 2, [1, 2, 2, 2]),
        ("elasticsearch-ltr-2023", 2, [1, 2, 2, 1]),  # 0 is below
        ("opensearch-3.2", 1, [1, 2, 2, 2]),
        ("opensearch-3.8", None, [1, 2, 2, 2]),
    ],
)
def test_a_split_of_the_plugins(engine, missing, expected):
    content = body([split(missing=missing)])
    assert scored(engine, content, 0.4999999, 0.5, np.inf, np.nan) == expected


def test_sums_and_sigmoids_are_float32():
    trees = [leaf(0, 1.0), leaf(0, 1e-8), leaf(0, 16777216.0), leaf(0, 1.0)]
    assert scored("elasticsearch-ltr", body(trees), 0.0) == [16777216.0]
    content = body({"objective": "binary:logistic", "splits": [leaf(0, 1.0)]})
    expected = float(np.float32(1 / (1 + np.exp(-1.0))))
    assert scored("opensearch-3.1", content, 0.0) == [expected]


@pytest.mark.parametrize(
    ("engine", "content", "message"),
    [
        ("elasticsearch-ltr", b"{", "is not JSON"),
        ("elasticsearch-ltr", b"[1]", r"Missing required value \[model\]"),
        ("elasticsearch-ltr", body([split(missing=None)]), "no field .missing."),
        ("opensearch-3.8", body([split(missing=7)]), "missing must name a child"),
        ("opensearch-3.2", body([split(yes=2)]), "yes and no must name"),
        ("opensearch-3.2", body([split(depth=None)]), r"\[depth\] must be a whole"),
        ("opensearch-3.2", body([split(gain=1.0)]), r"unknown field \[gain\]"),
        ("opensearch-3.2", body([split(children=[leaf(1, 1)])]), "all the required fields"),
        ("opensearch-3.2", body([{**split(), "leaf": None}]), r"\[leaf\] is null"),
        ("opensearch-3.2", body([]), "must have a tree"),
        ("opensearch-3.2", body("[NaN]"), "NaN is not a number"),
        ("opensearch-3.2", body('{"splits": [], "splits": []}'), r"duplicate field \[splits\]"),
        ("opensearch-3.1", body({"objective": "rank:ndcg", "splits": []}), "not a valid XGBoost"),
        ("opensearch-3.2", body({}), r"missing required field \[splits\]"),
        ("opensearch-3.2", body({}, "model/ranklib"), "are not emulated"),
        ("opensearch-3.2", body({"a": "b"}, "model/linear"), "must be a number"),
        (
            "opensearch-3.2",
            body({"a": 1}, "model/linear",
                 feature_normalizers={"a": {"standard": {"standard_deviation": 0}}}),
            "must be positive",
        ),
        ("elasticsearch-8.12", native(), r"needs \[feature_names\] and a"),
        ("elasticsearch-8.12", native(node(), LEFT), r"missing nodes \[2\]"),
        ("elasticsearch-8.12", native(node(right_child=0), LEFT), "cycle at node"),
        ("elasticsearch-8.12", native(node(split_feature=1), LEFT, RIGHT), "out of bounds"),
        ("elasticsearch-8.12", native(node(decision_type="=="), LEFT, RIGHT), "must be one of lt"),
        ("elasticsearch-8.12", native(LEFT, target_type="classification"), "must be regression"),
        (
            "elasticsearch-8.12",
            native(LEFT, aggregate_output={"weighted_sum": {"weights": [1, 2]}}),
            "2 weights for 1 models",
        ),
    ],
)  # fmt: skip
def test_what_engines_refuse(engine, content, message):
    with pytest.raises(ModelFileError, match=message):
        ENGINES[engine].read(content)


def test_a_split_of_elasticsearch_itself():
    values = (0.5, np.nextafter(0.5, 1), np.nan, np.inf, -np.inf)
    tree = (LEFT, RIGHT)
    assert scored("elasticsearch-8.12", native(node(), *tree), *values) == [1, 2, 2, 2, 2]
    left = native(node(decision_type="lt", default_left=True), *tree)
    assert scored("elasticsearch-8.12", left, *values) == [2, 2, 1, 1, 1]
    negative = native(node(-0.0), *tree)
    assert scored("elasticsearch-8.12", negative, 0.0, -0.0) == [2, 1]  # -0 is below 0 there
    above = native(node(-0.0, decision_type="gt"), *tree)
    assert scored("elasticsearch-8.12", above, 0.0, -0.0) == [1, 2]
    trees = random_ensemble(3, 1, 2)
    minus = replace(trees, threshold=np.full_like(trees.threshold, -0.0))
    content, _ = encode(minus, "elasticsearch-native", LABELS)
    assert b"-0.0" not in content


def test_float32_thresholds_among_float64_values():
    """The limit is the last float64 number whose nearest float32 is at most the threshold."""
    rng = np.random.default_rng(0)
    some = (rng.normal(size=2000) * 10.0 ** rng.integers(-45, 38, 2000)).astype(np.float32)
    edges = np.float32([0.0, -0.0, 1e-45, -1e-45, 1.2e-38, 1.0, 3.0, -1.0, 3.4e38, -3.4028235e38])
    at = np.concatenate([some, edges])
    found = elasticsearch_native.limits(at)
    assert np.all(found.astype(np.float32) <= at)
    with np.errstate(over="ignore"):
        assert np.all(np.nextafter(found, np.inf).astype(np.float32) > at)
    assert not np.signbit(elasticsearch_native.limits(np.array([-0.0])))[0]
    infinite = elasticsearch_native.limits(np.float32([np.inf, -np.inf]))
    assert infinite.tolist() == [np.inf, -np.inf]


def test_elasticsearch_sums_with_the_errors_carried_along():
    values = [2.0**53, 1.0, 1.0, 1.0, 1.0, -(2.0**53)]
    trees = [
        {"tree": {"feature_names": [], "tree_structure": [{"node_index": 0, "leaf_value": v}]}}
        for v in values
    ]
    content = native(trained_models=trees)
    assert scored("elasticsearch-8.12", content, 0.0) == [4.0]
    total = 0.0
    for value in values:
        total += value
    assert total == 0.0


# -- whole models ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    made = rg.make_web(20, n_docs=12, n_features=5, seed=3)
    X = np.array(made.X, np.float32)
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    return rg.QueryDataset(X, made.y, made.qid)


def engine_scores(path, engine, X):
    """The scores of a file whose features are f1, f2, ..."""
    model = ENGINES[engine].read(path.read_bytes())
    return model.scores(np.asarray(X)[:, [int(name[1:]) - 1 for name in model.features]])


@pytest.mark.parametrize("engine", ["opensearch-3.2", "opensearch-3.8", "elasticsearch-8.12"])
def test_bags_and_combinations(data, tmp_path, engine):
    one = rg.LambdaMART(n_trees=4, n_leaves=5, min_leaf=2).fit(data)
    bag = rg.BaggedRanker(one, n_models=3, combine="mean", random_state=1).fit(data)
    for ranker in (bag, rg.CombinedRanker([one, bag]).fit(data)):
        rg.convert(ranker, tmp_path / "m.json", engine=engine, missing="keep", shift=False)
        found = engine_scores(tmp_path / "m.json", engine, data.X)
        np.testing.assert_allclose(found, ranker.predict(data), rtol=1e-5, atol=1e-6)


def test_linear_models_have_normalisers(data, tmp_path, caplog):
    model = rg.RankSVM().fit(data)
    assert model.linear_.scaling == "standard"
    with pytest.raises(ParameterError, match="uses the mean of 5 features"):
        rg.convert(model, tmp_path / "m.json", to="opensearch", missing="keep")
    rg.convert(model, tmp_path / "m.json", to="opensearch", missing="zero")
    assert "no intercept" not in caplog.text
    filled = np.nan_to_num(np.asarray(data.X))
    for engine in ("opensearch-3.1", "opensearch-3.8"):
        found = engine_scores(tmp_path / "m.json", engine, data.X)
        np.testing.assert_allclose(found, model.predict(filled), rtol=1e-4, atol=1e-5)
    with pytest.raises(ParameterError, match="Elasticsearch's own learning to rank cannot hold"):
        rg.convert(model, tmp_path / "m.json", to="elasticsearch-native")


def test_foreign_models_go_into_elasticsearch_itself(data, tmp_path):
    lgb = pytest.importorskip("lightgbm")
    X, sizes = np.asarray(data.X), np.diff(data.query_ptr)
    booster = lgb.train(
        {"objective": "lambdarank", "verbose": -1, "num_leaves": 6, "min_data_in_leaf": 3},
        lgb.Dataset(X, data.y, group=sizes), 8,
    )  # fmt: skip
    rg.convert(booster, tmp_path / "m.json", engine="elasticsearch-8.12",
               features=[f"f{j}" for j in range(1, 6)])  # fmt: skip
    found = engine_scores(tmp_path / "m.json", "elasticsearch-8.12", X)
    exact = booster.predict(X, raw_score=True)
    np.testing.assert_array_equal(found, exact.astype(np.float32).astype(np.float64))


# -- definitions of features, the command line ----------------------------------------------------


def test_definitions_of_features(data, tmp_path):
    model = rg.LambdaMART(n_trees=3, n_leaves=4, min_leaf=2).fit(data)
    model.save(tmp_path / "m.rg")
    (tmp_path / "names.txt").write_text("title\nbody\nage\nclicks\nlinks\n")
    words = ["convert", "m.rg", "m.json", "--features", "names.txt", "--feature-set", "set.json"]
    out, said = run(*words, "--engine", "opensearch-2.19", "--missing", "zero", cwd=tmp_path)
    assert "set.json" in out + said
    features = json.loads((tmp_path / "set.json").read_text())["featureset"]["features"]
    assert [one["name"] for one in features] == ["title", "body", "age", "clicks", "links"]
    assert all(one["params"] == ["keywords"] and "match" in one["template"] for one in features)
    run(*words, "--to", "elasticsearch-native", cwd=tmp_path)
    written = json.loads((tmp_path / "m.json").read_text())
    assert json.loads((tmp_path / "set.json").read_text()) == written["inference_config"]
    extractors = written["inference_config"]["learning_to_rank"]["feature_extractors"]
    read = ENGINES["elasticsearch-8.12"].read((tmp_path / "m.json").read_bytes()).features
    assert sorted(one["query_extractor"]["feature_name"] for one in extractors) == sorted(read)
    _, said = run(*words, "--to", "lightgbm", cwd=tmp_path, status=2)
    assert "--feature-set) is for search engines (solr, elasticsearch, opensearch" in said
    _, said = run(*words, "--to", "solr", "--engine", "opensearch-3.1", cwd=tmp_path, status=2)
    assert "reads the format 'opensearch', not 'solr'" in said
    _, said = run("convert", "m.rg", "m.json", "--to", "opensearch", "--feature-set", "m.json",
                  cwd=tmp_path, status=2)  # fmt: skip
    assert "would overwrite" in said
