"""What users of LightGBM, XGBoost, PyTerrier and pandas do, done to the rankers here."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rankgrove as rg

DATA = rg.make_web(12, n_docs=8, n_features=5, seed=1)
VALID = rg.make_web(6, n_docs=8, n_features=5, seed=2)
X, Y, QID = np.array(DATA.X), np.array(DATA.y), np.array(DATA.qid)
SIZES = np.diff(DATA.query_ptr)
POINTWISE = [
    rg.MART(n_trees=4, min_leaf=5),
    rg.MART("logistic", n_trees=4, min_leaf=5, row_fraction=0.5),
    rg.McRank(n_trees=2, min_leaf=5),
    rg.RandomForest(n_trees=4, min_leaf=5),
    rg.SVMAcc(C=1),
]
RANKERS = [
    rg.LambdaMART(n_trees=4, min_leaf=5),
    rg.RankNet(hidden=(2,), n_epochs=2),
    rg.ListNet(n_epochs=2),
    rg.RankSVM(C=1),
    rg.AdaRank(n_rounds=3),
    rg.CoordinateAscent(n_restarts=1),
    rg.BaggedRanker(rg.MART(n_trees=3, min_leaf=5), n_models=2),
    *POINTWISE,
]
named = pytest.mark.parametrize(
    "ranker", RANKERS, ids=[f"{i}-{one.kind}" for i, one in enumerate(RANKERS)]
)
pointwise = pytest.mark.parametrize(
    "ranker", POINTWISE, ids=[f"{i}-{one.kind}" for i, one in enumerate(POINTWISE)]
)


# -- group, eval_set, eval_group ------------------------------------------------------------------


@named
def test_sizes_of_queries_say_what_ids_do(ranker):
    expected = ranker.fit(X, Y, np.repeat(np.arange(SIZES.size), SIZES)).predict(DATA)
    assert np.array_equal(ranker.fit(X, Y, group=SIZES).predict(DATA), expected)
    assert np.array_equal(ranker.fit(X, Y, group=SIZES.tolist()).predict(DATA), expected)


@named
def test_eval_set_is_validation_data(ranker):
    valid = (np.array(VALID.X), np.array(VALID.y))
    sizes, ids = np.diff(VALID.query_ptr), np.array(VALID.qid)
    expected = ranker.fit(DATA, valid=[VALID])
    history, scores = getattr(expected, "history_", None), expected.predict(DATA)
    for queries in ({"eval_group": [sizes]}, {"eval_qid": [ids]}):
        found = ranker.fit(DATA, eval_set=[valid], **queries)
        assert getattr(found, "history_", None) == history
        assert np.array_equal(found.predict(DATA), scores)


def test_the_call_of_pyterrier():
    """``pt.ltr.apply_learned_model(model, form="ltr")`` trains and scores by these two calls."""
    frame = pd.DataFrame({"qid": [str(one) for one in QID], "label": Y, "features": list(X)})
    sizes = frame.groupby(["qid"], sort=False).count()["label"].values
    features = np.stack(frame["features"].values)
    model = rg.LambdaMART(n_trees=5, min_leaf=5)
    model.fit(
        features,
        frame["label"].values,
        group=sizes,
        eval_set=[(features, frame["label"].values)],
        eval_group=[sizes],
    )
    assert model.predict(features).shape == (DATA.n_rows,)
    assert list(model.history_) == ["valid 1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"group": [3, 4]}, "add up to 7, and there are 93 rows"),
        ({"group": [93.0]}, "whole numbers of at least 1"),
        ({"group": [93, 0]}, "whole numbers of at least 1"),
        ({"group": [93], "qid": QID}, "qid and group mean the same"),
        ({"qid": QID, "eval_set": [(X, Y)]}, "give eval_group .* or eval_qid"),
        ({"qid": QID, "eval_set": [(X, Y)], "eval_group": [[93], [1]]}, "2 entries for 1 eval_set"),
        ({"qid": QID, "eval_set": [(X, Y)], "eval_group": [[95]]}, "add up to 95"),
        ({"qid": QID, "eval_group": [[93]]}, "belong to an eval_set"),
        ({"qid": QID, "valid": VALID, "eval_set": [(X, Y)]}, "the same thing"),
        ({"qid": QID, "valid": (X, Y)}, r"give \(X, y, qid\), not \(X, y\)"),
    ],
)
def test_mistakes_with_groups(words, message):
    with pytest.raises(rg.DataError, match=message):
        rg.LambdaMART(n_trees=2).fit(X, Y, **words)


def test_a_data_set_has_its_own_queries():
    with pytest.raises(rg.DataError, match="holds its own labels"):
        rg.LambdaMART(n_trees=2).fit(DATA, group=SIZES)


# -- rankers of single rows need no queries --------------------------------------------------------


@pointwise
def test_pointwise_rankers_need_no_queries(ranker):
    scores = ranker.fit(X, Y).predict(X)
    assert np.isfinite(scores).all()
    assert np.unique(scores).size > 1
    assert getattr(ranker, "out_of_bag_", None) is None


def test_without_sampling_queries_change_nothing():
    ranker = rg.MART(n_trees=5, min_leaf=5)
    with_them = ranker.fit(X, Y, QID).predict(X)
    # but which of two splits that gain the same is taken
    without = ranker.fit(X, Y).predict(X)
    assert np.mean((without - Y) ** 2) == pytest.approx(np.mean((with_them - Y) ** 2), rel=0.02)


def test_what_needs_queries_says_so():
    ranker = rg.MART(n_trees=2, min_leaf=5, early_stopping=1)
    with pytest.raises(rg.DataError, match="give eval_group"):
        ranker.fit(X, Y, eval_set=[(X, Y)])
    ranker.fit(X, Y, eval_set=[(X, Y)], eval_group=[SIZES])
    with pytest.raises(rg.DataError, match=r"needs query ids \(qid=\)"):
        ranker.score(X, Y)
    with pytest.raises(rg.DataError, match=r"needs query ids \(qid=\)"):
        rg.LambdaMART(n_trees=2).fit(X, Y)
    with pytest.raises(rg.DataError, match=r"needs query ids \(qid=\)"):
        rg.SVMAcc(scaling="query").fit(X, Y)


# -- other libraries' names of parameters ----------------------------------------------------------


@pytest.mark.parametrize(
    ("ranker", "word", "meant"),
    [
        (rg.LambdaMART, "n_estimators", "n_trees"),
        (rg.LambdaMART, "num_boost_round", "n_trees"),
        (rg.LambdaMART, "num_leaves", "n_leaves"),
        (rg.LambdaMART, "max_leaves", "n_leaves"),
        (rg.LambdaMART, "eta", "learning_rate"),
        (rg.LambdaMART, "min_child_samples", "min_leaf"),
        (rg.LambdaMART, "lambda_l2", "l2"),
        (rg.LambdaMART, "reg_lambda", "l2"),
        (rg.LambdaMART, "subsample", "row_fraction"),
        (rg.LambdaMART, "colsample_bytree", "feature_fraction"),
        (rg.LambdaMART, "early_stopping_rounds", "early_stopping"),
        (rg.LambdaMART, "n_jobs", "n_threads"),
        (rg.LambdaMART, "seed", "random_state"),
        (rg.RandomForest, "max_samples", "sample_fraction"),
        (rg.RankNet, "epochs", "n_epochs"),
        (rg.RankNet, "hidden_layer_sizes", "hidden"),
        (rg.AdaRank, "n_estimators", "n_rounds"),
        (rg.LambdaMART, "learning_rat", "learning_rate"),
    ],
)
def test_other_names_are_recognised(ranker, word, meant):
    with pytest.raises(rg.UnknownParameterError, match=f"{word!r} .did you mean {meant!r}"):
        ranker(**{word: 1})
    with pytest.raises(rg.UnknownParameterError, match=f"did you mean {meant!r}"):
        ranker().set_params(**{word: 1})


def test_a_word_that_a_ranker_has_no_parameter_for():
    with pytest.raises(rg.UnknownParameterError, match=r"'num_leaves'\. It has"):
        rg.RankSVM(num_leaves=3)


# -- pandas ----------------------------------------------------------------------------------------


def test_nullable_columns():
    plain = pd.DataFrame(X, columns=list("abcde"))
    plain["b"] = np.round(plain["b"])
    plain.loc[[1, 4], "b"] = np.nan
    nullable = plain.astype({"a": "Float32", "b": "Int64", "c": "Float64"})
    assert nullable["b"].isna().sum() == 2
    model = rg.MART(n_trees=3, min_leaf=5).fit(plain, Y, QID)
    again = rg.MART(n_trees=3, min_leaf=5).fit(nullable, Y, QID)
    assert np.array_equal(again.predict(nullable), model.predict(plain))
    assert again.absent_ == "missing"
    assert again.feature_names_in_.tolist() == list("abcde")
    objects = nullable.astype(object)
    assert np.array_equal(again.predict(objects), model.predict(plain))


def test_a_text_column_is_categorical():
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["d"] = "blue"
    assert rg.QueryDataset(frame, Y, QID).categories == {3: ("blue",)}
    with pytest.raises(rg.DataError, match="'d'"):
        rg.RankBoost(n_trees=3).fit(frame, Y, QID)


def test_a_pyarrow_table_has_names():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({name: X[:, j] for j, name in enumerate("abcde")})
    model = rg.MART(n_trees=3, min_leaf=5).fit(table, Y, QID)
    assert model.feature_names_ == tuple("abcde")
    assert np.array_equal(model.predict(table), model.predict(X))


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", [rg.RankBoost(n_trees=3), rg.FRank(n_trees=3)])
def test_giant_weights(ranker):
    plain = ranker.fit(X, Y, QID, weight=np.ones(Y.size)).predict(X)
    with pytest.raises(rg.DataError, match=r"at most 1e\+30.*Got 1e\+300 at row 5: divide all"):
        ranker.fit(X, Y, QID, weight=np.where(np.arange(Y.size) == 5, 1e300, 1.0))
    giant = ranker.fit(X, Y, QID, weight=np.full(Y.size, 1e30), query_weight=[1e30] * 12)
    assert np.allclose(giant.predict(X), plain)
