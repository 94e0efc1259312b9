"""PreparedRanker: chosen and normalised features, in the model file and everywhere it scores."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import scipy.sparse

import rankgrove as rg
from rankgrove.data.normalising import NORMALISATIONS, normalised
from rankgrove.rankers.load import trainable
from tests.cli.test_info import SMALL
from tests.command import run_here as run


@pytest.fixture(scope="module")
def parts():
    return [rg.make_artificial(20, n_docs=8, n_features=6, seed=seed) for seed in (1, 2)]


def naive(block, how):
    """One query's values of one feature, by RankLib's rules."""
    known = block[~np.isnan(block)]
    if how == "sum":
        total = np.abs(known).sum()
        return block / total if total > 0 else block
    if how == "linear":
        span = known.max() - known.min()
        return (block - known.min()) / span if span > 0 else block * 0.0
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
        with pytest.raises(rg.DataError, match="must know the queries"):
            model.predict(np.asarray(test.X))


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
    for columns in ([1], [1, 6], [-1, 2]):
        write_model(tmp_path / "x.rg", kind, content, arrays | {"columns": np.array(columns)})
        with pytest.raises(rg.ModelFileError, match="columns"):
            rg.load(tmp_path / "x.rg")
    bad = json.loads(json.dumps(content))
    bad["parameters"]["normalise"] = "other"
    write_model(tmp_path / "x.rg", kind, bad, arrays)
    with pytest.raises(rg.ModelFileError, match="normalisation"):
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
