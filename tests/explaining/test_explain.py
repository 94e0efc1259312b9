"""Explanations of every kind of ranker: sums to the bit, tables, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.explaining.explanation import settle
from rankgrove.model.ensemble import unknown_statistics

DATA = rg.make_web(40, n_docs=12, n_features=8, seed=1)
OTHER = rg.make_web(40, n_docs=12, n_features=8, seed=2)


def small(**settings):
    return rg.LambdaMART(n_trees=8, min_leaf=5, **settings)


def read_back(model, folder, to, **settings):
    """Return the model as another library's, read from that library's file."""
    rg.convert(model, folder / to, to, **settings)
    return rg.load(folder / to)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    trees = small().fit(DATA)
    lightgbm = read_back(trees, folder, "lightgbm")
    mart = rg.MART(n_trees=6).fit(DATA)
    svm = rg.SVMMap().fit(DATA)
    shifted = OTHER.with_base_score(np.linspace(-1, 1, OTHER.n_rows))
    return {
        "LambdaMART": trees,
        "MART": mart,
        "submodel": small(submodel=trees, step="optimal").fit(OTHER),
        "base scores": small(submodel="base_score").fit(shifted),
        "on an SVM": small(submodel=svm).fit(OTHER),
        "SVM": svm,
        "SVM, steps": rg.SVMMap(thresholds=9).fit(DATA),
        "SVM, percentile": rg.SVMMap(scaling="percentile").fit(DATA),
        "SVM, standard": rg.SVMMap(scaling="standard").fit(DATA),
        "SVMAcc": rg.SVMAcc().fit(DATA),
        "AdaRank": rg.AdaRank(n_rounds=5).fit(DATA),
        "CoordinateAscent": rg.CoordinateAscent(n_restarts=1).fit(DATA),
        "SmoothRank": rg.SmoothRank(scaling="query").fit(DATA),
        "CRR": rg.CRR(n_epochs=2).fit(DATA),
        "linear net": rg.RankNet(hidden=(), n_epochs=2).fit(DATA),
        "mean": rg.BaggedRanker(small(), n_models=3, combine="mean").fit(DATA),
        "minmax": rg.BaggedRanker(small(), n_models=3).fit(DATA),
        "combined": rg.CombinedRanker([trees, svm]).fit(OTHER),
        "stacked": rg.StackedRanker([trees, svm], hidden=(), n_epochs=2).fit(OTHER),
        "Trada": rg.Trada(trees, beta=3.0).fit(OTHER),
        "LightGBM": lightgbm,
        "on LightGBM": small(submodel=lightgbm).fit(OTHER),
        "with LightGBM": rg.CombinedRanker([lightgbm, mart]).fit(OTHER),
        "XGBoost": read_back(trees, folder, "xgboost"),
    }


KINDS = """LambdaMART;MART;submodel;base scores;on an SVM;SVM;SVM, steps;SVM, percentile
SVM, standard;SVMAcc;AdaRank;CoordinateAscent;SmoothRank;CRR;linear net
mean;minmax;combined;stacked;Trada;LightGBM;on LightGBM;with LightGBM;XGBoost"""


@pytest.mark.parametrize("kind", KINDS.replace("\n", ";").split(";"))
def test_sums_to_the_bit(models, kind):
    model = models[kind]
    data = DATA.with_base_score(np.arange(DATA.n_rows) / 7.0)
    scores = data.select([3]), model.predict(data)[DATA.query_of_row == 3]
    for background in (None, OTHER):
        found = rg.explain(model, data, data.query_ids[3], background)
        if kind != "minmax":
            np.testing.assert_array_equal(found.scores, scores[1])
        for i in range(len(found.documents)):
            listed = [found.base[i], *found.contributions[i], found.rounding[i]]
            assert math.fsum(listed) == found.scores[i]
        single = kind in ("stacked", "XGBoost")  # float32 scores, or sums
        limit = 1e-6 if single else 1e-13
        assert np.abs(found.rounding).max() <= limit * (1 + np.abs(found.scores).max())
        if kind != "base scores":
            assert np.unique(found.base).size == 1


def test_nothing_but_what_a_feature_does(models):
    """A feature that no tree looks at adds nothing, and a permutation of features only permutes."""
    model = models["LambdaMART"]
    found = rg.explain(model, DATA)
    unused = np.setdiff1d(np.arange(8), model.ensemble_.feature)
    assert not found.contributions[:, unused].any()
    assert found.contributions.shape == (DATA.n_rows, 8)
    # the mean over the training rows of what is explained is the base
    assert found.base[0] == pytest.approx(found.scores.mean())


def test_linear_contributions_are_weight_times_distance(models):
    model = models["SVM, standard"]
    found = rg.explain(model, DATA)
    weight, _ = model.linear_.raw_weights()
    x = np.array(DATA.X, float)
    np.testing.assert_allclose(found.contributions, weight * (x - x.mean(axis=0)), atol=1e-12)


def test_sparse_and_missing_values(models):
    x = np.array(DATA.X)
    x[np.random.default_rng(0).random(x.shape) < 0.3] = 0.0
    dense = rg.QueryDataset(x, DATA.y, DATA.qid, feature_names=DATA.feature_names)
    sparse = rg.QueryDataset(
        scipy.sparse.csr_matrix(x), DATA.y, DATA.qid, feature_names=DATA.feature_names
    )
    for kind in ("LambdaMART", "SVM, steps", "SVM, standard"):
        a, b = (rg.explain(models[kind], data, DATA.query_ids[0]) for data in (dense, sparse))
        np.testing.assert_allclose(a.contributions, b.contributions, atol=1e-12)
    x[::3] = np.nan
    holes = rg.QueryDataset(x, DATA.y, DATA.qid, feature_names=DATA.feature_names)
    for kind, model in models.items():
        if kind not in ("base scores",):
            found = rg.explain(model, holes, background=OTHER)
            assert np.isfinite(found.contributions).all()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.floats(-1e6, 1e6))
def test_settling_is_exact(parts, base):
    score = base  # added one after the other, as models do, in whatever order
    for part in reversed(parts):
        score += part
    array = np.array(parts)
    rounding = settle(score, base, array)
    assert math.fsum([base, *array, rounding]) == score
    np.testing.assert_allclose(array, parts, rtol=0, atol=1e-25)


def test_settling_what_is_nothing_but_rounding():
    parts = np.array([1.0, 2.0**-60, 2.0**-110, 0.0])
    rounding = settle(1e-40, -1.0, parts)
    assert math.fsum([-1.0, *parts, rounding]) == 1e-40


def test_tables(models):
    found = rg.explain(models["LambdaMART"], DATA, DATA.query_ids[3])
    best, second = found.ranking[:2].tolist()
    table = found.table(best)
    assert math.fsum([table.base, *table.amounts, table.rounding]) == found.scores[best]
    assert np.all(np.diff(np.abs(table.amounts)) <= 0)
    text = str(found.why(best, second)).splitlines()
    assert text[0].startswith(f"{found.documents[best]} (")
    assert text[1].split()[0] == "feature"
    assert text[-1].split() == ["difference", f"{found.scores[best] - found.scores[second]:+.6f}"]
    few = found.why(best, second).text(top=2).splitlines()
    assert "other features" in few[4]
    frame = found.why(best, second).to_pandas()
    assert frame["adds"].sum() == pytest.approx(found.scores[best] - found.scores[second])
    same = found.why(best, best)
    assert same.total == 0.0
    assert not same.amounts.any()
    whole = found.to_pandas()
    assert whole.shape == (len(found.documents), 3 + 8)
    assert list(found.importance()) == sorted(
        found.importance(), key=lambda name: -found.importance()[name]
    )


@given(st.integers(0, 9), st.integers(0, 9))
def test_differences_to_the_bit(models_once, a, b):
    why = models_once.why(a, b)
    assert why.total == models_once.scores[a] - models_once.scores[b]
    assert math.fsum([why.base, *why.amounts, why.rounding]) == why.total


@pytest.fixture(scope="module")
def models_once(models):
    return rg.explain(models["combined"], DATA, DATA.query_ids[3])


def test_documents_by_id():
    docid = [f"D{i}" for i in range(DATA.n_rows)]
    named = rg.QueryDataset(DATA.X, DATA.y, DATA.qid, docid=docid)
    model = small().fit(named)
    found = rg.explain(model, named, query=str(named.query_ids[1]))
    start = int(named.query_ptr[1])
    assert found.documents[0] == f"D{start}"
    assert found.position(f"D{start + 1}") == 1
    with pytest.raises(rg.DataError, match="no document 'D0'"):
        found.table("D0")
    with pytest.raises(rg.ParameterError, match="between 0 and"):
        found.table(999)
    assert rg.explain(model, DATA, query=DATA.query_ids[1]).documents[0] == f"row{start}"
    with pytest.raises(rg.DataError, match="no query 'nothing'"):
        rg.explain(model, named, query="nothing")
    twice = rg.QueryDataset(DATA.X, DATA.y, DATA.qid, docid=["A"] * DATA.n_rows)
    with pytest.raises(rg.DataError, match="have the id 'A'"):
        rg.explain(model, twice).table("A")


def test_what_has_no_sum_is_refused(models):
    hidden = rg.RankNet(hidden=(3,), n_epochs=1).fit(DATA)
    classes = rg.McRank(n_trees=2).fit(DATA)
    borda = rg.BaggedRanker(small(), n_models=2, combine="borda").fit(DATA)
    for model, why in [(hidden, "hidden units"), (classes, "expected label"), (borda, "borda")]:
        with pytest.raises(rg.DataError, match=f"{why}.*partial_dependence"):
            rg.explain(model, DATA)
    with pytest.raises(rg.ParameterError, match="trained ranker"):
        rg.explain(np.zeros(3), DATA)
    with pytest.raises(rg.ParameterError, match="trained: call fit"):
        rg.explain(rg.LambdaMART(), DATA)
    with pytest.raises(rg.DataError, match="QueryDataset"):
        rg.explain(models["MART"], "test.txt")
    with pytest.raises(rg.DataError, match="is expecting 8 features"):
        rg.explain(models["MART"], rg.make_artificial(3))


def test_unknown_counts_are_filled_or_refused(models):
    model = small().fit(DATA)
    trees = model.ensemble_
    unknown = unknown_statistics(trees.feature.size, trees.n_leaves)
    model.ensemble_ = replace(trees, **unknown)
    with pytest.raises(rg.DataError, match="background="):
        rg.explain(model, DATA)
    known = rg.explain(models["LambdaMART"], DATA, DATA.query_ids[0])
    filled = rg.explain(model, DATA, DATA.query_ids[0], background=DATA)
    np.testing.assert_array_equal(filled.contributions, known.contributions)
    # sums of hessians will do, as XGBoost knows them
    model.ensemble_ = replace(trees, **(unknown | {"leaf_weight": 2.0 * trees.leaf_count}))
    np.testing.assert_allclose(
        rg.explain(model, DATA, DATA.query_ids[0]).contributions, known.contributions, atol=1e-14
    )


def test_models_of_ranklib_need_a_background(models, tmp_path):
    """Its files have no counts, and do not say how many features there are."""
    few = np.array(DATA.X)[:, :3]
    trees = small().fit(rg.QueryDataset(few, DATA.y, DATA.qid))
    own = read_back(trees, tmp_path, "ranklib", missing="zero")
    with pytest.raises(rg.DataError, match="background"):
        rg.explain(own, DATA)
    found = rg.explain(own, DATA, background=DATA)
    assert found.contributions.shape == (DATA.n_rows, DATA.n_features)
    assert not found.contributions[:, 3:].any()
    wanted = rg.explain(trees, rg.QueryDataset(few, DATA.y, DATA.qid))
    np.testing.assert_allclose(found.contributions[:, :3], wanted.contributions, atol=1e-6)


def test_files_and_search_results(models, tmp_path):
    model = models["LambdaMART"]
    model.save(tmp_path / "m.rg")
    a = rg.explain(tmp_path / "m.rg", DATA, DATA.query_ids[0])
    b = rg.explain(rg.prune(model, OTHER, "ndcg@5", 1.0), DATA, DATA.query_ids[0])
    assert a.contributions.shape == b.contributions.shape
    with pytest.raises(rg.ParameterError, match="no such file"):
        rg.explain(tmp_path / "no.rg", DATA)


def test_float32_sums_are_told_by_rounding(models):
    model = small().fit(DATA)
    model.ensemble_ = replace(model.ensemble_, single=True)
    found = rg.explain(model, DATA, DATA.query_ids[0])
    np.testing.assert_array_equal(found.scores, found.scores.astype(np.float32))
    assert 0 < np.abs(found.rounding).max() < 1e-5
