"""McRank as its user sees it: against plain loops, columns of classes, same bits, manners."""

from __future__ import annotations

import json
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import rankgrove as rg
from tests.rankers.interrupting import interrupted_fit
from tests.rankers.test_lambdamart import same_model
from tests.reference import boosting as naive

SMALL = {"n_trees": 6, "n_leaves": 6, "min_leaf": 5}
FORMS = ("classes", "ordinal")


@pytest.fixture(scope="module")
def train():
    return rg.make_web(60, n_docs=25, n_features=20, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(30, n_docs=25, n_features=20, seed=2)


def tiny(seed=1, n=40):  # a draw on which no two splits gain the same
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    codes = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n, scale=0.3), [-0.5, 0.8])
    return X, codes, np.repeat(np.arange(n // 10), 10)


@pytest.mark.parametrize("values", [(0, 1, 2), (-3.5, 0, 10)])
def test_classes_are_friedmans_loop(values):
    X, codes, qid = tiny()
    labels = np.array(values, float)[codes]
    model = rg.McRank(n_trees=5, n_leaves=4, learning_rate=0.3, min_leaf=2, l2=0)
    model.fit(X, labels, qid=qid)
    F = naive.mcrank(X, codes, 3, 5, 4, 0.3, min_leaf=2)
    p = np.array([naive.softmax(F[:, i]) for i in range(len(X))])
    np.testing.assert_allclose(model.predict_proba(X), p, rtol=1e-10)
    np.testing.assert_allclose(model.predict(X), p @ np.array(values), rtol=1e-10)
    np.testing.assert_array_equal(model.classes_, values)


def test_ordinal_is_one_model_a_threshold():
    X, codes, qid = tiny()
    model = rg.McRank("ordinal", n_trees=5, n_leaves=4, learning_rate=0.3, min_leaf=2, l2=0)
    model.fit(X, codes, qid=qid)
    F = naive.mcrank_ordinal(X, codes, 3, 5, 4, 0.3, min_leaf=2)
    at_most = 1 / (1 + np.exp(-F))
    np.testing.assert_allclose(model.predict(X), (1 - at_most).sum(axis=0), rtol=1e-10)
    # other label values: steps of other sizes
    other = rg.McRank("ordinal", n_trees=5, n_leaves=4, learning_rate=0.3, min_leaf=2, l2=0)
    other.fit(X, np.array([1.0, 2.0, 7.0])[codes], qid=qid)
    np.testing.assert_allclose(other.predict(X), 1 + [1, 5] @ (1 - at_most), rtol=1e-10)


def test_two_classes_are_the_two_class_loss():
    # with Friedman's (K - 1) / K; both begin at 0 where the classes are equally frequent
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    t = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=200, scale=0.5)
    y = (t > np.median(t)).astype(int)
    qid = np.repeat(np.arange(10), 20)
    options = {"n_trees": 20, "n_leaves": 5, "min_leaf": 3, "l2": 0, "split": "mse"}
    expected = rg.MART("logistic", **options).fit(X, y, qid=qid).predict_proba(X)
    for form in FORMS:
        model = rg.McRank(form, **options).fit(X, y, qid=qid)
        assert model.ensemble_.n_columns == (2 if form == "classes" else 1)
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
        np.testing.assert_allclose(model.predict(X), expected[:, 1], atol=1e-9)


def test_weights_count_as_so_many_rows(train):
    often = np.random.default_rng(0).integers(0, 4, train.n_rows)
    rows = np.repeat(np.arange(train.n_rows), often)
    X = np.round(np.asarray(train.X), 1)
    weighted = rg.QueryDataset(X, train.y, train.qid, weight=often.astype(float))
    repeated = rg.QueryDataset(X[rows], train.y[rows], train.qid[rows])
    options = {"n_trees": 4, "n_leaves": 5, "min_leaf": 1, "split": "newton"}
    for form in FORMS:
        a = rg.McRank(form, **options).fit(weighted)
        b = rg.McRank(form, **options).fit(repeated)
        np.testing.assert_allclose(a.predict(X[rows]), b.predict(X[rows]), rtol=1e-6)


# -- the same bits, rounds and trees ------------------------------------------------------------

OPTIONS = [
    {},
    {"split": "newton", "l2": 0.0},
    {"form": "ordinal"},
    {"form": "ordinal", "query_fraction": 0.5, "feature_fraction": 0.3},
    {"query_fraction": 0.5, "feature_fraction": 0.3},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_bits_for_any_number_of_threads_and_any_order_of_queries(train, options):
    options = SMALL | options
    one = rg.McRank(**options, n_threads=1).fit(train)
    same_model(one, rg.McRank(**options, n_threads=2).fit(train))
    turned = train.select(np.arange(train.n_queries)[::-1])
    same_model(one, rg.McRank(**options).fit(turned))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_predictions_are_the_training_scores(train, valid, options):
    seen = []
    watched = {"train": train, "valid": valid}
    rg.McRank(**(SMALL | options)).fit(
        train, valid=watched, callbacks=[lambda p: seen.append(p) and None]
    )
    whole = rg.McRank(**(SMALL | options)).fit(train)
    for name, data in watched.items():
        one = seen[-1].watch.watched[name]
        found = whole.predict(data)
        np.testing.assert_array_equal(found, data.ungrouped(one.ranked(one.scores)))
        np.testing.assert_array_equal(found, whole.predict(data, n_threads=1))


@pytest.mark.parametrize("form", FORMS)
def test_rounds_and_trees(train, valid, form):
    model = rg.McRank(
        form, n_trees=200, n_leaves=8, min_leaf=5, learning_rate=0.2, early_stopping=4
    )
    model.fit(train, valid=valid, valid_measures=["ndcg@5", "map"])
    n_columns = 5 if form == "classes" else 4
    history = model.history_["valid"]["ndcg@5"]
    best = model.best_round_
    assert best == int(np.argmax(history)) + 1
    assert len(history) == best + 4 < 200
    assert (model.ensemble_.n_rounds, model.ensemble_.n_columns) == (best, n_columns)
    assert model.ensemble_.n_trees == best * n_columns == len(model.steps_)
    assert rg.evaluate(model, valid, "ndcg@5").mean["ndcg@5"] == history[best - 1]
    assert f"McRank for ndcg@10: {best} rounds of {n_columns} trees," in model.summary()
    assert f"{history[best - 1]:.4f} after {best} rounds of {n_columns} trees" in model.summary()
    # fewer rounds are whole rounds, and say so
    two = model.truncated(2)
    assert (two.ensemble_.n_rounds, two.ensemble_.n_trees) == (2, 2 * n_columns)
    assert len(two.steps_) == 2 * n_columns
    assert rg.evaluate(two, valid, "ndcg@5").mean["ndcg@5"] == history[1]
    assert two.history_["valid"]["ndcg@5"] == history[:2]
    assert two.best_round_ == int(np.argmax(history[:2])) + 1
    assert f"{history[1]:.4f} after 2 rounds" in two.summary()
    assert model.history_["valid"]["ndcg@5"] == history  # the model itself is as it was
    assert np.ptp(model.truncated(0).predict(valid)) == 0
    with pytest.raises(rg.DataError, match=rf"{best} rounds of . trees\. Got n_trees={best + 1}"):
        model.truncated(best + 1)


@pytest.mark.parametrize("form", FORMS)
def test_going_on_from_a_checkpoint_gives_the_same_model(train, valid, tmp_path, form):
    path = tmp_path / "state"
    sampled = {"query_fraction": 0.5, "feature_fraction": 0.5, "checkpoint_every": 2}
    options = SMALL | sampled | {"form": form}
    whole = rg.McRank(**options).fit(train, valid=valid)

    def die(progress):
        if progress.round == 5:
            raise RuntimeError("power failure")

    with pytest.raises(RuntimeError):
        rg.McRank(**options, checkpoint=path).fit(train, valid=valid, callbacks=[die])
    rounds = []
    went_on = rg.McRank(**options, checkpoint=path, n_threads=1).fit(
        train, valid=valid, callbacks=[lambda p: rounds.append(p.round)]
    )
    assert rounds == [5, 6]
    same_model(whole, went_on)
    assert whole.history_ == went_on.history_
    longer = rg.McRank(**options | {"n_trees": 8}, checkpoint=path).fit(train, valid=valid)
    assert len(longer.history_["valid"]["ndcg@10"]) == 8
    shorter = rg.McRank(**options | {"n_trees": 3}, checkpoint=path).fit(train, valid=valid)
    assert len(shorter.history_["valid"]["ndcg@10"]) == 3
    same_model(shorter, rg.McRank(**options | {"n_trees": 3}).fit(train, valid=valid))


def test_ctrl_c_within_a_round_keeps_whole_rounds(train, monkeypatch):
    from rankgrove.growth.grower import Grower

    grow, calls = Grower.grow, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 13:  # in the third round
            raise KeyboardInterrupt
        return grow(self, *arguments)

    monkeypatch.setattr(Grower, "grow", interrupted)
    model = interrupted_fit(rg.McRank(**SMALL), train)
    monkeypatch.undo()
    assert model.interrupted_
    assert (model.ensemble_.n_trees, len(model.steps_)) == (10, 10)
    same_model(model, rg.McRank(**SMALL | {"n_trees": 2}).fit(train))


@pytest.mark.parametrize("form", FORMS)
def test_saving_keeps_the_classes(train, tmp_path, form):
    values = np.array([-1.0, 0.0, 0.5, 3.0, 100.0])
    data = rg.QueryDataset(train.X, values[train.y.astype(int)], train.qid)
    model = rg.McRank(form, "auc", **SMALL).fit(data)
    model.save(tmp_path / "m.rg")
    loaded = rg.load(tmp_path / "m.rg")
    assert isinstance(loaded, rg.McRank)
    np.testing.assert_array_equal(loaded.classes_, values)
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    np.testing.assert_array_equal(loaded.predict_proba(data), model.predict_proba(data))
    np.testing.assert_array_equal(
        loaded.truncated(2).predict(data), model.truncated(2).predict(data)
    )
    scores = model.predict(data)
    assert ((scores >= -1) & (scores <= 100)).all()


def test_a_file_whose_classes_do_not_fit_is_refused(train, tmp_path):
    model = rg.McRank(**SMALL).fit(train)
    model.save(tmp_path / "m.rg")
    with zipfile.ZipFile(tmp_path / "m.rg") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = next(name for name in members if name.endswith(".json"))
    content = json.loads(members[header])
    content["content"]["classes"] = [0, 1]
    members[header] = json.dumps(content).encode()
    with zipfile.ZipFile(tmp_path / "bad.rg", "w") as archive:
        for name, blob in members.items():
            archive.writestr(name, blob)
    with pytest.raises(rg.ModelFileError, match="2 classes do not fit 5 columns of trees"):
        rg.load(tmp_path / "bad.rg")


# -- special data, manners ----------------------------------------------------------------------


def test_learning(train):
    for form in FORMS:
        model = rg.McRank(form, n_trees=30, n_leaves=8).fit(train)
        assert model.score(train) > model.truncated(0).score(train) + 0.2


def test_missing_and_constant_values(train):
    X = np.array(train.X)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    X[:, 3] = 7
    data = rg.QueryDataset(X, train.y, train.qid)
    for form in FORMS:
        model = rg.McRank(form, n_trees=15, n_leaves=8, min_leaf=3).fit(data)
        assert np.isfinite(model.predict(data)).all()
        assert 3 not in model.ensemble_.feature
        assert model.score(data) > 0.4


def test_classes_that_separate_without_l2():
    X = np.arange(60, dtype=np.float32)[:, None]
    y = np.arange(60) // 20
    for form in FORMS:
        model = rg.McRank(form, n_trees=150, n_leaves=3, min_leaf=1, learning_rate=1.0, l2=0)
        model.fit(X, y, qid=np.zeros(60, int))
        np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_clear_errors(train):
    with pytest.raises(rg.DataError, match="nothing to learn from"):
        rg.McRank().fit([[1], [2]], [1, 1], qid=[1, 1])
    with pytest.raises(rg.DataError, match=r"1,532 different values.*at most 32 are possible"):
        rg.McRank().fit(train.X, np.arange(train.n_rows) / 7, qid=train.qid)
    with pytest.raises(rg.DataError, match="same value in all rows"):
        rg.McRank().fit([[1], [1]], [1, 0], qid=[1, 1])
    with pytest.raises(rg.ParameterError, match="'form' parameter of McRank"):
        rg.McRank("regression").fit(train)


def test_many_classes(train):
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(train.n_rows) % 32)
    model = rg.McRank(n_trees=2, **{k: v for k, v in SMALL.items() if k != "n_trees"})
    model.fit(train.X, labels, qid=train.qid)
    assert model.ensemble_.n_trees == 64
    assert model.predict_proba(train.X).shape == (train.n_rows, 32)


def test_estimator_manners(train, valid):
    import sklearn

    model = rg.McRank("ordinal", "map", **SMALL)
    assert clone(model).get_params() == model.get_params()
    model.fit(train)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(valid), model.predict(valid))
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(rg.McRank(**SMALL), {"form": FORMS}, cv=rg.QueryKFold(3))
        search.fit(np.asarray(train.X), train.y, qid=train.qid)
        assert search.best_params_["form"] in FORMS
