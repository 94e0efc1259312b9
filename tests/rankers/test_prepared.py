"""PreparedRanker: chosen and normalised features, in the model file and everywhere it scores."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data.normalising import NORMALISATIONS, normalised, transformed
from rankgrove.rankers.load import trainable
from tests.cli.test_info import SMALL
from tests.command import run_here as run
from tests.reference import transforms


@pytest.fixture(scope="module")
def parts():
    return [rg.make_artificial(20, n_docs=8, n_features=6, seed=seed) for seed in (1, 2)]


def naive(block, how):
    """One query's values of one feature, by RankLib's rules or as percentiles."""
    known = block[~np.isnan(block)]
    if how == "sum":
        total = np.abs(known).sum()
        return block / total if total > 0 else block
    if how == "linear":
        span = known.max() - known.min()
        return (block - known.min()) / span if span > 0 else block * 0.0
    if how == "percentile":
        lower, equal = ((f(known[None], block[:, None])).sum(axis=1) for f in (np.less, np.equal))
        return np.where(np.isnan(block), np.nan, (lower + 0.5 * equal) / known.size)
    deviation = known.std(ddof=1) if known.size > 1 else 0.0
    return (block - known.mean()) / deviation if deviation > 0 else block


@pytest.mark.parametrize("how", NORMALISATIONS)
def test_normalising_by_query(how):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 4)).astype(np.float32)
    X[:5, 1] = 2.0  # the same in a whole query
    X[6, 2] = np.nan
    X[:, 3] = 0.0
    ptr = np.array([0, 5, 11, 12])
    found = normalised(X, ptr, how)
    for a, b in itertools.pairwise(ptr):
        for j in range(4):
            np.testing.assert_allclose(found[a:b, j], naive(X[a:b, j].astype(float), how), 1e-6)


@pytest.mark.parametrize("kind", ["lambdamart", "mcrank", "ranknet", "svm-map", "adarank"])
@pytest.mark.parametrize("how", [None, "zscore"])
def test_it_scores_as_the_base_on_prepared_data(kind, how, parts, tmp_path):
    train, test = parts
    base = trainable()[kind]()
    base.set_params(**{k: v for k, v in SMALL.items() if k in base.get_params(deep=False)})
    model = rg.PreparedRanker(base, [2, 5, 6], how).fit(train, valid=test)
    columns = [1, 4, 5]
    by_hand = []
    for data in parts:
        X = np.asarray(data.X)[:, columns]
        if how:
            X = normalised(X, data.query_ptr, how)
        by_hand.append(rg.QueryDataset(X, data.y, data.qid))
    alone = trainable()[kind](**base.get_params()).fit(by_hand[0], valid=by_hand[1])
    expected = alone.predict(by_hand[1])
    np.testing.assert_array_equal(model.predict(test), expected)
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    np.testing.assert_array_equal(again.predict(test), expected)
    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(test.X), test.y, test.qid)
    np.testing.assert_allclose(again.predict(sparse), expected, rtol=1e-6)
    # rows in any order
    mixed = np.random.default_rng(1).permutation(test.n_rows)
    shuffled = rg.QueryDataset(test.X[mixed], test.y[mixed], test.qid[mixed])
    np.testing.assert_allclose(model.predict(shuffled), expected[mixed], rtol=1e-6)
    if how is None:
        np.testing.assert_array_equal(model.predict(np.asarray(test.X)), expected)
    else:
        with pytest.raises(rg.DataError, match="needs the queries"):
            model.predict(np.asarray(test.X))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", NORMALISATIONS)
def test_infinite_values_give_no_warning(how):
    X = np.array([[1.0], [np.inf], [2.0], [-np.inf], [3.0], [4.0]], np.float32)
    assert normalised(X, np.array([0, 3, 6]), how).shape == X.shape


def test_a_single_choice_is_named_once():
    with pytest.raises(rg.ParameterError, match="must be 'log1p'") as caught:
        rg.PreparedRanker(rg.LambdaMART(), transform="log").check_parameters()
    assert "did you mean" not in str(caught.value)


def test_queries_of_features_can_be_given(parts):
    train, test = parts
    model = rg.PreparedRanker(rg.LambdaMART(n_trees=2), normalise="zscore").fit(train)
    scores = model.predict(np.asarray(test.X), qid=test.qid)
    np.testing.assert_array_equal(scores, model.predict(test))


@given(st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=20))
def test_log1p(values):
    X = np.array(values, np.float32).reshape(-1, 1)
    found = transformed(X, "log1p")
    assert found.dtype == np.float32
    expected = np.array([transforms.log1p(float(x)) for x in X[:, 0]], np.float32)
    np.testing.assert_array_max_ulp(found[:, 0], expected, maxulp=1)
    finite = np.nan_to_num(X, nan=2.0)
    sparse = transformed(scipy.sparse.csr_matrix(finite), "log1p")
    np.testing.assert_array_equal(sparse.toarray(), transformed(finite, "log1p"))


@pytest.mark.parametrize("how", [None, "zscore"])
@pytest.mark.parametrize("kind", ["lambdamart", "lambdarank", "ranksvm"])
def test_transformed_features(kind, how, tmp_path):
    """It scores as the base on features transformed by hand, in every form that data has."""
    parts = [rg.make_web(15, n_docs=8, n_features=6, seed=seed) for seed in (1, 2)]
    base = trainable()[kind]()
    base.set_params(**{k: v for k, v in SMALL.items() if k in base.get_params(deep=False)})
    model = rg.PreparedRanker(base, [2, 5, 6], how, "log1p").fit(parts[0])
    by_hand = []
    for data in parts:
        X = np.vectorize(transforms.log1p)(np.asarray(data.X, float)[:, [1, 4, 5]])
        X = X.astype(np.float32)
        X = normalised(X, data.query_ptr, how) if how else X
        by_hand.append(rg.QueryDataset(X, data.y, data.qid))
    expected = trainable()[kind](**base.get_params()).fit(by_hand[0]).predict(by_hand[1])
    test = parts[1]
    np.testing.assert_array_equal(model.predict(test), expected)
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    assert again.transform == "log1p"
    np.testing.assert_array_equal(again.predict(test), expected)
    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(test.X), test.y, test.qid)
    np.testing.assert_allclose(again.predict(sparse), expected, rtol=1e-6)
    if how is None:
        np.testing.assert_array_equal(again.predict(np.asarray(test.X)), expected)
    if how is None and kind != "lambdamart":  # other thresholds of trees do the same
        with pytest.raises(rg.ParameterError, match="transforms features"):
            rg.convert(again, tmp_path / "m.xml", to="ranklib")
    assert "3 features of 6, transformed (log1p)" in again.summary()
    assert "transformed features (log1p)" in again.title()


def test_missing_values_stay_missing():
    train = rg.make_web(10, n_docs=6, n_features=4, seed=1)
    X = np.array(train.X)
    X[::3, 2] = np.nan
    data = rg.QueryDataset(X, train.y, train.qid)
    net = rg.RankNet(hidden=2, n_epochs=2)
    model = rg.PreparedRanker(net, normalise="zscore", transform="log1p").fit(data)
    np.testing.assert_array_equal(np.isnan(model.prepared(data).X), np.isnan(X))
    assert np.isfinite(model.predict(data)).all()


def test_bags_of_prepared_nets(parts, tmp_path):
    """Models of a bag have their own seeds, the bag's file its base, its folder all settings."""
    train, test = parts
    net = rg.LambdaRank("map", hidden=3, n_epochs=2)
    base = rg.PreparedRanker(net, normalise="zscore", transform="log1p")
    bag = rg.BaggedRanker(base, n_models=3, query_fraction=1.0, n_threads=1).fit(train)
    scores = bag.submodel_scores(test)
    assert len({tuple(column) for column in scores}) == 3  # all see the same queries
    alone = rg.BaggedRanker(net, n_models=3, query_fraction=1.0).fit(bag.models_[0].prepared(train))
    np.testing.assert_array_equal(alone.submodel_scores(bag.models_[0].prepared(test)), scores)
    by_processes = rg.BaggedRanker(base, n_models=3, query_fraction=1.0, n_threads=2).fit(train)
    np.testing.assert_array_equal(by_processes.predict(test), bag.predict(test))
    bag.save(tmp_path / "bag.rg")
    again = rg.load(tmp_path / "bag.rg")
    np.testing.assert_array_equal(again.predict(test), bag.predict(test))
    assert again.measure == "map"
    assert again.base.get_params()["base__hidden"] == 3
    assert again.title() == bag.title()
    refitted = rg.load(tmp_path / "bag.rg").fit(train)
    np.testing.assert_array_equal(refitted.predict(test), bag.predict(test))
    folder = str(tmp_path / "models")
    rg.BaggedRanker(base, n_models=2, checkpoint=folder).fit(train)
    other = rg.PreparedRanker(net.set_params(l2=0.1), normalise="zscore", transform="log1p")
    with pytest.raises(rg.RankgroveError, match="l2"):
        rg.BaggedRanker(other, n_models=2, checkpoint=folder).fit(train)


def test_trees_of_chosen_features_are_trees(parts, tmp_path):
    train, test = parts
    model = rg.PreparedRanker(rg.LambdaMART(n_trees=4, min_leaf=2), [6, 2]).fit(train)
    scores = model.predict(test)
    np.testing.assert_array_equal(model.scorer().predict(np.asarray(test.X)), scores)
    assert set(model.ensemble_.feature.tolist()) <= {1, 5}
    rg.convert(model, tmp_path / "m.txt", "lightgbm")
    np.testing.assert_allclose(rg.load(tmp_path / "m.txt").predict(test), scores, rtol=1e-12)
    normal = rg.PreparedRanker(rg.LambdaMART(n_trees=4, min_leaf=2), normalise="sum").fit(train)
    with pytest.raises(rg.ParameterError, match="normalises features within every query"):
        rg.convert(normal, tmp_path / "n.txt", "lightgbm")


@pytest.mark.parametrize("how", [None, "linear"])
def test_explanations_sum_to_the_score(how, parts):
    train, test = parts
    model = rg.PreparedRanker(rg.LambdaMART(n_trees=4, min_leaf=2), [1, 4, 6], how).fit(train)
    found = rg.explain(model, test)
    total = found.contributions.sum(axis=1) + found.base
    np.testing.assert_allclose(total, model.predict(test), rtol=1e-9)
    assert not found.contributions[:, [1, 2, 4]].any()


def test_transform_on_the_command_line(parts, tmp_path):
    rg.write_letor(parts[0], tmp_path / "train.txt")
    words = "--ranker ranknet --transform log1p --normalise zscore --set n_epochs=2"
    run("train", "train.txt", *words.split(), "--out", "m.rg", cwd=tmp_path)
    model = rg.load(tmp_path / "m.rg")
    assert (model.transform, model.normalise, model.features) == ("log1p", "zscore", None)
    run("train", "train.txt", "--transform", "log1p", "--out", "t.rg", cwd=tmp_path)
    assert rg.load(tmp_path / "t.rg").normalise is None
    out, _ = run("cv", "train.txt", *words.split(), "--folds", "2", cwd=tmp_path)
    assert "RankNet on transformed features (log1p) and normalised features (zscore)" in out


def test_on_the_command_line_and_in_the_service(parts, tmp_path):
    for name, data in zip(("train", "test"), parts, strict=True):
        rg.write_letor(data, tmp_path / f"{name}.txt")
    (tmp_path / "chosen.txt").write_text("2\n5\n6\n")
    words = "train train.txt --features chosen.txt --normalise zscore --valid-share 0.25"
    few = "--set n_trees=5 --set min_leaf=2 --set early_stopping=3 --out m.rg"
    out, told = run(*words.split(), *few.split(), cwd=tmp_path)
    assert "3 features of 6, normalised within every query (zscore)" in out
    assert "held out for validation: QueryDataset(40 rows, 5 queries" in told
    train, held = rg.hold_out(rg.read_letor(tmp_path / "train.txt"), 0.25)
    base = rg.LambdaMART(n_trees=5, min_leaf=2, early_stopping=3)
    expected = rg.PreparedRanker(base, [2, 5, 6], "zscore").fit(train, valid={"held out": held})
    test = rg.read_letor(tmp_path / "test.txt")
    scores = expected.predict(test)
    run("rank", "test.txt", "--model", "m.rg", "--out", "s.txt", cwd=tmp_path)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "s.txt"), scores)
    out, _ = run("info", "m.rg", cwd=tmp_path)
    assert "kind: prepared (PreparedRanker)" in out
    assert "held out ndcg@10" in out
    assert "ranker 1:\n  kind: lambdamart" in out

    from rankgrove.serving.registry import Registry

    served = Registry({"m": tmp_path / "m.rg"}, 100).get(None)
    first = slice(0, int(test.query_ptr[1]))
    np.testing.assert_array_equal(served.scores(test.X[first], None), scores[first])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--valid-share 1", "above 0, below 1"),
        ("--valid-share 0.001", "leaves one of the two parts empty"),
        ("--valid-share 0.2 --valid train.txt", "Give --valid or --valid-share"),
        ("--features twice.txt", "different features"),
        ("--features none.txt", "none.txt"),
        ("--features gone.txt", "There is no feature '9'"),
        ("--normalise zscore --submodel m.rg", "without a submodel"),
        ("--normalise max", "max"),
        ("--transform sqrt", "sqrt"),
        ("--normalise sum --cluster local", "do not work with --cluster"),
    ],
)
def test_mistakes(parts, words, message, tmp_path):
    rg.write_letor(parts[0], tmp_path / "train.txt")
    rg.LambdaMART(n_trees=2, min_leaf=2).fit(parts[0]).save(tmp_path / "m.rg")
    (tmp_path / "twice.txt").write_text("2\n5\n2\n")
    (tmp_path / "gone.txt").write_text("2\n9\n")
    _, error = run("train", "train.txt", *words.split(), "--out", "x.rg", cwd=tmp_path, status=2)
    assert message in error
    assert not (tmp_path / "x.rg").exists()


def test_a_crafted_file_is_refused(parts, tmp_path):
    from rankgrove.model.store import read_model, write_model

    model = rg.PreparedRanker(rg.LambdaMART(n_trees=2, min_leaf=2), [1, 2]).fit(parts[0])
    model.save(tmp_path / "m.rg")
    kind, content, arrays = read_model(tmp_path / "m.rg")
    for columns in ([1], [1, 6], [-1, 2], [1, 1], [1, 0]):
        write_model(tmp_path / "x.rg", kind, content, arrays | {"columns": np.array(columns)})
        with pytest.raises(rg.ModelFileError, match="columns"):
            rg.load(tmp_path / "x.rg")
    for name, word in (("normalise", "normalisation"), ("transform", "transform")):
        bad = json.loads(json.dumps(content))
        bad["parameters"][name] = "other"
        write_model(tmp_path / "x.rg", kind, bad, arrays)
        with pytest.raises(rg.ModelFileError, match=word):
            rg.load(tmp_path / "x.rg")


@pytest.mark.parametrize("n_features", [40, 60])
def test_text_of_another_width_is_cut_or_filled(tmp_path, n_features):
    rg.write_letor(rg.make_artificial(20, seed=1), tmp_path / "data.txt")
    data = rg.read_letor(tmp_path / "data.txt")
    model = rg.PreparedRanker(rg.LambdaMART(n_trees=3), normalise="zscore").fit(data)
    other = data.with_n_features(n_features)
    with pytest.warns(rg.DataWarning, match=f"the data {n_features}"):
        scores = model.predict(other)
    np.testing.assert_array_equal(scores, model.predict(other.with_n_features(50)))


def test_prepared_rankers_are_pruned_adapted_and_converted(tmp_path):
    """Trees on chosen features are trees."""
    train = rg.make_web(20, n_docs=12, n_features=6, seed=1)
    base = rg.LambdaMART(n_trees=12, n_leaves=4, min_leaf=3)
    model = rg.PreparedRanker(base, features=[2, 5]).fit(train)
    pruned = rg.prune(model, train, tolerance=0.1)
    assert pruned.n_trees[1] < 12
    assert pruned.ranker.predict(train).shape == (train.n_rows,)
    np.testing.assert_array_equal(pruned.ranker.columns_, [1, 4])
    adapted = rg.Trada(model, beta=0.0).fit(train)
    np.testing.assert_allclose(adapted.predict(train), model.predict(train))
    rg.convert(model, tmp_path / "model.xml", to="ranklib")  # nothing was missing in training
    normalised = rg.PreparedRanker(base, normalise="zscore").fit(train)
    with pytest.raises(rg.ParameterError, match="normalises features within every query"):
        rg.convert(normalised, tmp_path / "other.xml", to="ranklib")


def test_appended_features_come_after_the_original_ones(parts, tmp_path):
    train, test = parts
    base = rg.LambdaMART(n_trees=8, n_leaves=4, min_leaf=5)
    model = rg.PreparedRanker(base, [2, 5], "percentile", append=True).fit(train)
    seen = model.prepared(test)
    chosen = np.asarray(test.X)[:, [1, 4]]
    np.testing.assert_array_equal(seen.X[:, :2], chosen)
    expected = normalised(chosen, test.query_ptr, "percentile")  # rows are in query order
    np.testing.assert_array_equal(seen.X[:, 2:], expected)
    assert seen.feature_names == ("f2", "f5", "f2 (percentile)", "f5 (percentile)")
    np.testing.assert_array_equal(model.predict(test), model.ranker_.predict(seen))
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    np.testing.assert_array_equal(again.predict(test), model.predict(test))
    assert "again normalised" in again.summary()


def test_what_appended_features_add_counts_for_the_original_one(parts):
    train, test = parts
    base = rg.LambdaMART(n_trees=8, n_leaves=4, min_leaf=5)
    model = rg.PreparedRanker(base, None, "percentile", append=True).fit(train)
    explained = rg.explain(model, test)
    np.testing.assert_allclose(
        explained.base + explained.contributions.sum(axis=1), model.predict(test), atol=1e-9
    )
    inner = rg.explain(model.ranker_, model.prepared(test))
    np.testing.assert_allclose(
        explained.contributions[:, 0],
        inner.contributions[:, 0] + inner.contributions[:, 6],
        atol=1e-12,
    )


def test_append_without_a_normalisation_is_refused(parts):
    with pytest.raises(rg.errors.ParameterError, match=r"append.*without normalise"):
        rg.PreparedRanker(rg.LambdaMART(), append=True).fit(parts[0])


def test_partial_dependence_refuses_features_normalised_by_query(parts):
    model = rg.PreparedRanker(rg.LambdaMART(n_trees=3), None, "zscore").fit(parts[0])
    with pytest.raises(rg.errors.DataError, match="normalise='zscore'"):
        rg.partial_dependence(model, parts[0], 1)
