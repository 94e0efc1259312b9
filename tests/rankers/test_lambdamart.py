"""LambdaMART as its user sees it: same bits, special data, validation, checkpoints, manners."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankgrove as rg
from tests.rankers.interrupting import interrupted_fit

SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))
SMALL = {"n_trees": 8, "n_leaves": 6, "min_leaf": 5}


@pytest.fixture(scope="module")
def train():
    return rg.make_web(60, n_docs=25, n_features=20, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(30, n_docs=25, n_features=20, seed=2)


def same_model(a, b):
    for name, array in a.ensemble_.to_arrays().items():
        np.testing.assert_array_equal(array, b.ensemble_.to_arrays()[name], err_msg=name)


OPTIONS = [
    {},
    {"split": "mse"},
    {"query_fraction": 0.5, "feature_fraction": 0.3},
    {"measure": "map", "l2": 1.0, "max_depth": 3},
    {"measure": "err", "surrogate": None},
    {"measure": "mrr@5", "min_leaf": 0.02},
    {"measure": "p@5"},
    {"measure": "pairs", "sigma": 2.0},
    {"measure": "auc"},
    {"measure": "meanndcg", "max_bins": 15},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_bits_for_any_number_of_threads_and_any_order_of_rows(train, options):
    options = SMALL | options
    one = rg.LambdaMART(**options, n_threads=1).fit(train)
    same_model(one, rg.LambdaMART(**options, n_threads=2).fit(train))
    rows = np.random.default_rng(0).permutation(train.n_rows)
    scattered = rg.QueryDataset(train.X[rows], train.y[rows], train.qid[rows])
    assert scattered.order is not None
    same_model(one, rg.LambdaMART(**options).fit(scattered))


SHUFFLED = {
    "MART": lambda: rg.MART(n_trees=5, n_leaves=5, min_leaf=5, row_fraction=0.6),
    "MART, classes": lambda: rg.McRank(n_trees=2, n_leaves=5, min_leaf=5),
    "exact steps": lambda: rg.LambdaMART(n_trees=4, n_leaves=5, min_leaf=5, step="optimal"),
    "sampled": lambda: rg.LambdaMART(
        n_trees=5, n_leaves=5, min_leaf=5, row_fraction=0.5, query_fraction=0.7
    ),
    "forest": lambda: rg.RandomForest(n_trees=3, n_leaves=6, sample="rows"),
    "submodel": lambda: rg.LambdaMART(n_trees=3, n_leaves=5, submodel=rg.LambdaMART(n_trees=1)),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_shuffled_rows_give_the_same_model(train, name):
    rows = np.random.default_rng(4).permutation(train.n_rows)
    # some rows twice: twins of one query are interchangeable
    rows = np.concatenate([rows, rows[:25]])
    again = np.random.default_rng(5).permutation(rows)
    scores = []
    for own in (rows, again):
        model = SHUFFLED[name]()
        if getattr(model, "submodel", None) is not None:
            model.submodel.fit(train)
        scores.append(model.fit(train.X[own], train.y[own], train.qid[own]).predict(train))
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_predictions_are_the_training_scores(train, valid, options):
    seen = []
    model = rg.LambdaMART(**(SMALL | options)).fit(
        train, valid={"train": train, "valid": valid}, callbacks=[lambda p: seen.append(p) and None]
    )
    done = seen[-1]
    full = model.truncated(model.ensemble_.n_trees)
    assert done.round == 8
    watched = done.watch.watched["train"].scores[0]
    whole = rg.LambdaMART(**(SMALL | options)).fit(train)
    np.testing.assert_array_equal(whole.predict(train), train.ungrouped(watched))
    np.testing.assert_array_equal(
        whole.predict(valid), valid.ungrouped(done.watch.watched["valid"].scores[0])
    )
    np.testing.assert_array_equal(full.predict(train), model.predict(train.X))


def test_learning_raises_the_measure(train):
    for measure in ("ndcg@10", "map", "err", "mrr", "p@5", "pairs"):
        model = rg.LambdaMART(measure, n_trees=30, n_leaves=8, min_leaf=5).fit(train)
        before = rg.evaluate(np.zeros(train.n_rows), train, measure).mean[measure]
        after = rg.evaluate(model, train, measure).mean[measure]
        assert after > before + 0.1, measure


def test_a_surrogate_gives_the_lambdas_and_the_measure_decides(train, valid):
    options = SMALL | {"n_trees": 15}
    of_ndcg = rg.LambdaMART("ndcg@10", **options).fit(train, valid=valid, valid_measures="err")
    auto = rg.LambdaMART("err", **options).fit(train, valid=valid)
    assert list(auto.history_["valid"]) == ["err"]
    assert auto.best_round_ == of_ndcg.best_round_
    same_model(auto, of_ndcg)
    own = rg.LambdaMART("err", **options, surrogate=None).fit(train)
    assert not np.array_equal(
        own.predict(valid), rg.LambdaMART("err", **options).fit(train).predict(valid)
    )
    # any measure, a value too, and no surrogate of a surrogate
    same_model(own, rg.LambdaMART("ndcg@10", **options, surrogate=rg.measure("err")).fit(train))
    assert rg.LambdaMART.papers("err").surrogate is None
    with pytest.raises(rg.ParameterError, match="ndgc"):
        rg.LambdaMART("err", surrogate="ndgc").fit(train)


@pytest.mark.slow
def test_a_users_own_measure_is_trained_on(train):
    rg.register_measure("good_top", lambda labels, k: (labels[:k] >= 2).mean())
    own = rg.LambdaMART("good_top@5", **SMALL).fit(train)
    built_in = rg.LambdaMART(rg.measure("p@5", relevant=2), **SMALL, truncation=None).fit(train)
    value = rg.evaluate(own, train, "p@5[relevant=2]").mean["p@5[relevant=2]"]
    start = rg.evaluate(np.zeros(train.n_rows), train, "p@5[relevant=2]").mean["p@5[relevant=2]"]
    assert value > start + 0.1
    np.testing.assert_allclose(own.predict(train), built_in.predict(train), atol=1e-9)


def test_sigma_changes_nothing_in_the_ranking(train, valid):
    # Overview paper, section 7; exactly so for powers of two: scores scale by 1 / sigma.
    one = rg.LambdaMART(**SMALL).fit(train)
    for sigma in (0.25, 2.0, 8.0):
        other = rg.LambdaMART(**SMALL, sigma=sigma).fit(train)
        np.testing.assert_array_equal(other.predict(valid) * sigma, one.predict(valid))
    three = rg.LambdaMART(**SMALL, sigma=3.0).fit(train)
    np.testing.assert_allclose(three.predict(valid) * 3, one.predict(valid), atol=0.05)


def test_weights(train):
    ones = rg.QueryDataset(train.X, train.y, train.qid, weight=np.ones(train.n_rows))
    same_model(rg.LambdaMART(**SMALL).fit(train), rg.LambdaMART(**SMALL).fit(ones))
    # a query of weight 0 is as good as absent from the lambdas
    weight = np.ones(train.n_queries)
    weight[:20] = 0
    weighted = rg.QueryDataset(train.X, train.y, train.qid, query_weight=weight)
    a = rg.LambdaMART(**SMALL).fit(weighted)
    by_rows = rg.QueryDataset(train.X, train.y, train.qid, weight=weight[train.query_of_row])
    b = rg.LambdaMART(**SMALL).fit(by_rows)
    same_model(a, b)


# -- validation, stopping, interruption ---------------------------------------------------------


def test_validation_and_early_stopping(train, valid):
    model = rg.LambdaMART(n_trees=400, n_leaves=31, min_leaf=1, early_stopping=5, learning_rate=0.5)
    model.fit(train, valid=valid, valid_measures=["map", "ndcg@5"])
    history = model.history_["valid"]
    assert list(history) == ["map", "ndcg@5"]
    assert len(history["map"]) < 400
    assert model.best_round_ == int(np.argmax(history["map"])) + 1
    assert len(history["map"]) == model.best_round_ + 5
    assert model.ensemble_.n_trees == model.best_round_
    assert rg.evaluate(model, valid, "map").mean["map"] == history["map"][model.best_round_ - 1]
    short = model.truncated(1)
    assert rg.evaluate(short, valid, "map").mean["map"] == history["map"][0]
    with pytest.raises(rg.DataError, match=r"trees\. Got n_trees=999"):
        model.truncated(999)


def test_a_callback_can_end_training(train):
    model = rg.LambdaMART(n_trees=50).fit(train, callbacks=[lambda p: p.round == 3])
    assert model.ensemble_.n_trees == 3


def test_ctrl_c_keeps_the_best_model(train, valid):
    def interrupt(progress):
        if progress.round == 4:
            raise KeyboardInterrupt

    model = interrupted_fit(rg.LambdaMART(**SMALL), train, valid=valid, callbacks=[interrupt])
    assert model.interrupted_
    assert 1 <= model.ensemble_.n_trees <= 4
    with pytest.raises(KeyboardInterrupt):
        rg.LambdaMART(**SMALL).fit(train, callbacks=[_raise_at_once])


def _raise_at_once(progress):
    progress.trees.clear()
    raise KeyboardInterrupt


def test_going_on_from_a_checkpoint_gives_the_same_model(train, valid, tmp_path):
    path = tmp_path / "state"
    options = SMALL | {"query_fraction": 0.5, "feature_fraction": 0.5, "checkpoint_every": 2}
    whole = rg.LambdaMART(**options).fit(train, valid=valid)

    def die(progress):
        if progress.round == 5:
            raise RuntimeError("power failure")

    with pytest.raises(RuntimeError):
        rg.LambdaMART(**options, checkpoint=path).fit(train, valid=valid, callbacks=[die])
    rounds = []
    went_on = rg.LambdaMART(**options, checkpoint=path, n_threads=1).fit(
        train, valid=valid, callbacks=[lambda p: rounds.append(p.round)]
    )
    assert rounds == [5, 6, 7, 8]
    same_model(whole, went_on)
    assert whole.history_ == went_on.history_
    # a finished run has nothing more to do, a longer one goes on
    again = rg.LambdaMART(**options, checkpoint=path).fit(train, valid=valid)
    same_model(whole, again)
    longer = rg.LambdaMART(**options | {"n_trees": 12}, checkpoint=path).fit(train, valid=valid)
    assert len(longer.history_["valid"]["ndcg@10"]) == 12
    with pytest.raises(rg.DataError, match="validation data was"):
        rg.LambdaMART(**options, checkpoint=path).fit(train)


def test_a_checkpoint_of_another_run_is_refused(train, valid, tmp_path):
    path = tmp_path / "state"
    rg.LambdaMART(**SMALL, checkpoint=path).fit(train)
    with pytest.raises(rg.DataError, match=r"learning_rate was 0\.1, here it is 0\.2"):
        rg.LambdaMART(**SMALL, checkpoint=path, learning_rate=0.2).fit(train)
    with pytest.raises(rg.DataError, match="training data was"):
        rg.LambdaMART(**SMALL, checkpoint=path).fit(valid)
    rg.LambdaMART(**SMALL).fit(train).save(path)
    with pytest.raises(rg.DataError, match="is a lambdamart model, not a checkpoint"):
        rg.LambdaMART(**SMALL, checkpoint=path).fit(train)


@pytest.mark.slow
def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    script = textwrap.dedent("""
        import os, signal, sys, rankgrove as rg
        train = rg.make_artificial(40, n_docs=15, seed=1)
        def kill(progress):
            if progress.round == int(sys.argv[1]):
                os.kill(os.getpid(), signal.SIGKILL)
        model = rg.LambdaMART(n_trees=9, n_leaves=5, min_leaf=2, checkpoint=sys.argv[2] or None,
                              checkpoint_every=1).fit(train, callbacks=[kill])
        model.save(sys.argv[3])
    """)

    def run(at, state, out):
        words = [sys.executable, "-c", script, str(at), str(state), str(out)]
        return subprocess.run(words, capture_output=True, cwd=tmp_path).returncode

    assert run(4, "state", "a.rg") == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == ["state"]
    assert run(7, "state", "a.rg") == -signal.SIGKILL
    assert run(0, "state", "a.rg") == 0
    assert run(0, "", "b.rg") == 0
    same_model(rg.load(tmp_path / "a.rg"), rg.load(tmp_path / "b.rg"))


# -- odd data -----------------------------------------------------------------------------------


def test_missing_infinite_and_constant_values(train):
    X = np.array(train.X)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[rng.random(X.shape) < 0.02] = np.inf
    X[rng.random(X.shape) < 0.02] = -np.inf
    X[:, 3] = 7
    X[:, 4] = np.nan
    data = rg.QueryDataset(X, train.y, train.qid)
    model = rg.LambdaMART(n_trees=20, n_leaves=8, min_leaf=3).fit(data)
    assert np.isfinite(model.predict(data)).all()
    used = set(model.ensemble_.feature.tolist())
    assert not used & {3, 4}
    assert rg.evaluate(model, data, "ndcg@10").mean["ndcg@10"] > 0.4


def test_sparse_features_give_the_same_model(train, valid):
    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(train.X), train.y, train.qid)
    a, b = rg.LambdaMART(**SMALL).fit(train), rg.LambdaMART(**SMALL).fit(sparse)
    same_model(a, b)
    np.testing.assert_array_equal(a.predict(valid), b.predict(scipy.sparse.csr_matrix(valid.X)))


def test_views_of_queries(train):
    chosen = np.arange(0, train.n_queries, 2)
    view = train.select(chosen)
    copy = rg.QueryDataset(view.X, view.y, view.qid)
    a, b = rg.LambdaMART(**SMALL).fit(view), rg.LambdaMART(**SMALL).fit(copy)
    same_model(a, b)
    np.testing.assert_array_equal(a.predict(view), a.predict(train)[view_rows(train, chosen)])


def view_rows(data, queries):
    return np.concatenate([np.arange(data.query_ptr[q], data.query_ptr[q + 1]) for q in queries])


def test_odd_queries():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    one_relevant = np.zeros(300)
    one_relevant[7] = 1
    y = np.concatenate([one_relevant, [1], np.full(30, 2), rng.integers(0, 32, 69)])
    qid = np.concatenate([np.zeros(300), [1], np.full(30, 2), np.full(69, 3)]).astype(int)
    data = rg.QueryDataset(X, y, qid)
    for measure in ("ndcg@10", "map", "err", "mrr", "p@3", "pairs"):
        model = rg.LambdaMART(measure, n_trees=5, min_leaf=1).fit(data)
        assert np.isfinite(model.predict(data)).all()
    single = rg.LambdaMART(n_trees=5, min_leaf=1).fit(X[-69:], y[-69:], qid=np.zeros(69, int))
    assert single.ensemble_.n_trees == 5


def test_many_tiny_queries():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    data = rg.QueryDataset(X, y, np.repeat(np.arange(20_000), 3))
    model = rg.LambdaMART("mrr", n_trees=3, n_leaves=4).fit(data)
    assert rg.evaluate(model, data, "mrr").mean["mrr"] > 0.99


def test_clear_errors(train, valid):
    with pytest.raises(rg.DataError, match="nothing to learn an order from"):
        rg.LambdaMART().fit([[1], [2]], [1, 1], qid=[1, 1])
    with pytest.raises(rg.DataError, match="same value in all rows"):
        rg.LambdaMART().fit([[1], [1]], [1, 0], qid=[1, 1])
    with pytest.raises(rg.DataError, match="at least one feature"):
        rg.LambdaMART().fit(rg.QueryDataset(None, [1, 0], qid=[1, 1]))
    with pytest.raises(rg.DataError, match="needs query ids"):
        rg.LambdaMART().fit([[1], [2]], [1, 0])
    with pytest.raises(rg.DataError, match="holds its own labels"):
        rg.LambdaMART().fit(train, [1, 0])
    with pytest.raises(rg.ParameterError, match="early_stopping needs validation data"):
        rg.LambdaMART(early_stopping=5).fit(train)
    with pytest.raises(rg.DataError, match="valid data has 3 features, the training data 20"):
        rg.LambdaMART(**SMALL).fit(train, valid=(np.ones((2, 3)), [0, 1], [1, 1]))
    with pytest.raises(rg.DataError, match="leaves out every query of the valid data"):
        rg.LambdaMART(**SMALL).fit(train, valid=(np.ones((2, 20)), [0, 0], [1, 1]))
    with pytest.raises(rg.DataError, match=r"QueryDataset or \(X, y, qid\)"):
        rg.LambdaMART(**SMALL).fit(train, valid=3)
    with pytest.raises(NotFittedError, match="not trained yet"):
        rg.LambdaMART().predict(train)
    model = rg.LambdaMART(**SMALL).fit(train)
    with pytest.raises(rg.DataError, match=r"has 3 features, but \w+ is expecting 20"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(
        rg.ParameterError, match=r"no parameter 'num_leaves'.*did you mean 'n_leaves'"
    ):
        model.set_params(num_leaves=3)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_trees": 0},
        {"n_leaves": 1},
        {"learning_rate": 0},
        {"learning_rate": "fast"},
        {"min_leaf": 0},
        {"min_leaf": 1.5},
        {"query_fraction": 0},
        {"feature_fraction": 1.2},
        {"split": "gini"},
        {"truncation": 0},
        {"sigma": -1},
        {"early_stopping": 0},
        {"max_bins": 256},
        {"max_depth": 0},
        {"l2": -1},
        {"random_state": -1},
        {"random_state": None},
        {"measure": "ndgc"},
        {"n_threads": 0},
    ],
    ids=str,
)
def test_bad_parameters(train, bad):
    (name,) = bad
    with pytest.raises(rg.ParameterError, match=f"{name}|measure"):
        rg.LambdaMART(**bad).fit(train)


# -- scikit-learn's manners ---------------------------------------------------------------------


def test_estimator_manners(train, valid):
    model = rg.LambdaMART(**SMALL, measure="map")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert repr(copy).startswith("LambdaMART(")
    model.fit(train, valid=valid)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(valid), model.predict(valid))
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importance("split").shape == (20,)
    assert model.score(valid) == rg.evaluate(model, valid, "map").mean["map"]
    text = model.summary(3)
    assert "LambdaMART for map" in text
    assert "valid map" in text


def test_features_labels_and_query_ids_instead_of_a_data_set(train, valid):
    a = rg.LambdaMART(**SMALL).fit(train, valid=valid)
    b = rg.LambdaMART(**SMALL).fit(
        train.X, train.y, qid=train.qid, valid=(valid.X, valid.y, valid.qid)
    )
    same_model(a, b)


def test_search_and_cross_validation_with_routing(train):
    with sklearn.config_context(enable_metadata_routing=True):
        X, y, qid = np.asarray(train.X), train.y, train.qid
        values = cross_val_score(
            rg.LambdaMART(**SMALL), X, y, cv=rg.QueryKFold(3), params={"qid": qid}
        )
        assert values.shape == (3,)
        assert np.isfinite(values).all()
        search = GridSearchCV(rg.LambdaMART(**SMALL), {"n_leaves": [2, 6]}, cv=rg.QueryKFold(3))
        search.fit(X, y, qid=qid)
        assert search.best_params_["n_leaves"] in (2, 6)
        assert search.predict(X).shape == y.shape


@pytest.mark.skipif(
    SKLEARN < (1, 8), reason="pipelines of scikit-learn below 1.8 do not route to score"
)
def test_cross_validation_of_a_pipeline_with_routing(train):
    with sklearn.config_context(enable_metadata_routing=True):
        X, y, qid = np.asarray(train.X), train.y, train.qid
        pipeline = make_pipeline(StandardScaler(), rg.LambdaMART(**SMALL))
        values = cross_val_score(pipeline, X, y, cv=rg.QueryKFold(3), params={"qid": qid})
        assert np.isfinite(values).all()


def test_search_without_routing_says_what_is_missing(train):
    X, y, qid = np.asarray(train.X), train.y, train.qid
    search = GridSearchCV(
        rg.LambdaMART(**SMALL), {"n_leaves": [2]}, cv=rg.QueryKFold(3), error_score="raise"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(rg.DataError, match="enable metadata routing"):
            search.fit(X, y, groups=qid, qid=qid)


def test_features_in_another_order_are_refused(train):
    import pandas as pd

    names = [f"n{i}" for i in range(20)]
    frame = pd.DataFrame(np.asarray(train.X), columns=names)
    model = rg.LambdaMART(**SMALL).fit(frame, train.y, qid=train.qid)
    assert model.feature_names_ == tuple(names)
    np.testing.assert_array_equal(model.predict(frame), model.predict(train.X))
    with pytest.raises(rg.DataError, match="another order"):
        model.predict(frame[names[::-1]])
    with pytest.raises(rg.DataError, match="feature 'n_3' that the training data did not have"):
        model.predict(frame.rename(columns={"n3": "n_3"}))
    turned = rg.QueryDataset(train.X, train.y, train.qid, feature_names=names[::-1])
    with pytest.raises(rg.DataError, match="another order"):
        rg.LambdaMART(**SMALL).fit(frame, train.y, qid=train.qid, valid=turned)


def test_weights_belong_to_the_data_set(train):
    with pytest.raises(rg.DataError, match="its own labels, query ids, weights"):
        rg.LambdaMART(**SMALL).fit(train, weight=np.ones(train.n_rows))


def test_how_a_model_was_run_does_not_travel_with_it(train, tmp_path):
    model = rg.LambdaMART(**SMALL, checkpoint=tmp_path / "state", n_threads=1).fit(train)
    model.save(tmp_path / "m.rg")
    assert rg.load(tmp_path / "m.rg").checkpoint is None
    rg.LambdaMART(**SMALL).fit(train).save(tmp_path / "n.rg")
    assert (tmp_path / "m.rg").read_bytes() == (tmp_path / "n.rg").read_bytes()


def test_feature_names_travel_with_the_model(train, tmp_path):
    names = [f"name {i}" for i in range(20)]
    data = rg.QueryDataset(train.X, train.y, train.qid, feature_names=names)
    model = rg.LambdaMART(**SMALL).fit(data)
    model.save(tmp_path / "m.rg")
    assert rg.load(tmp_path / "m.rg").feature_names_ == tuple(names)
    assert "name " in rg.load(tmp_path / "m.rg").summary()
