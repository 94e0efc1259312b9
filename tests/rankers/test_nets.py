"""Nets as their user sees them: the same bits, validation, checkpoints, manners."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankgrove as rg
from rankgrove.nets import training_loop as loop
from rankgrove.nets.tasks import QueryTask
from rankgrove.nets.training_loop import Optimiser, epoch_order
from tests.rankers.interrupting import interrupted_fit

NETS = [rg.RankNet, rg.LambdaRank, rg.BoltzRank]
SMALL = {"n_epochs": 4, "hidden": (5,), "learning_rate": 0.01, "schedule": "constant"}


@pytest.fixture(scope="module")
def train():
    return rg.make_artificial(60, n_docs=12, n_features=6, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_artificial(30, n_docs=12, n_features=6, seed=2)


def same_model(a, b):
    for name, array in a.network_.to_arrays().items():
        np.testing.assert_array_equal(array, b.network_.to_arrays()[name], err_msg=name)


def with_rows(data, rows):
    return rg.QueryDataset(data.X[rows], data.y[rows], data.qid[rows])


# -- learning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("hidden", [(), (8,), (8, 4)], ids=str)
def test_learning_raises_what_is_learned(train, hidden, optimiser):
    for model in (rg.RankNet(), rg.LambdaRank("ndcg@5")):
        model.set_params(hidden=hidden, optimiser=optimiser, n_epochs=60).fit(train)
        measure = str(model.measure)
        start = rg.evaluate(np.zeros(train.n_rows), train, measure).mean[measure]
        assert rg.evaluate(model, train, measure).mean[measure] > start + 0.1
        assert model.network_.hidden == hidden


@pytest.mark.parametrize("measure", ["map", "err", "mrr", "p@3", "auc", "meanndcg", "pairs"])
def test_every_measure_can_be_trained_on(train, measure):
    model = rg.LambdaRank(measure, n_epochs=60, learning_rate=0.01).fit(train)
    start = rg.evaluate(np.zeros(train.n_rows), train, measure).mean[measure]
    assert rg.evaluate(model, train, measure).mean[measure] > start + 0.05


@pytest.mark.slow
def test_a_users_own_measure_is_trained_on(train):
    rg.register_measure("net_good_top", lambda labels, k: (labels[:k] >= 2).mean())
    options = SMALL | {"optimiser": "sgd"}  # adam moves on where a query says nothing
    own = rg.LambdaRank("net_good_top@3", **options).fit(train)
    built_in = rg.LambdaRank(rg.measure("p@3", relevant=2), **options, truncation=None).fit(train)
    np.testing.assert_allclose(own.predict(train), built_in.predict(train), atol=1e-6)


def test_lambdarank_on_pairs_is_ranknet(train):
    a = rg.RankNet(**SMALL).fit(train)
    same_model(a, rg.LambdaRank("pairs", **SMALL).fit(train))


def test_ranknet_pair_by_pair(train):
    model = rg.RankNet(form="pairs", hidden=(5,), n_epochs=5, optimiser="sgd", learning_rate=0.01)
    start = rg.evaluate(np.zeros(train.n_rows), train, "pairs").mean["pairs"]
    assert rg.evaluate(model.fit(train), train, "pairs").mean["pairs"] > start + 0.1


def test_schedules(train):
    rates = {
        s: [Optimiser("sgd", 0.4, s).rate_at(e, 4) for e in range(4)]
        for s in ("constant", "linear", "cosine")
    }
    np.testing.assert_allclose(rates["constant"], 0.4)
    np.testing.assert_allclose(rates["linear"], [0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(rates["cosine"], 0.2 * (1 + np.cos(np.pi * np.arange(4) / 4)))
    found = [rg.RankNet(**SMALL | {"schedule": s}).fit(train).network_.flat for s in rates]
    assert not np.array_equal(found[0], found[1])
    assert not np.array_equal(found[1], found[2])


def test_sigma_and_l2_do_something(train):
    plain = rg.RankNet(**SMALL).fit(train).network_
    assert not np.array_equal(plain.flat, rg.RankNet(**SMALL, sigma=2.0).fit(train).network_.flat)
    small = rg.RankNet(**SMALL, l2=10.0).fit(train).network_
    assert np.abs(small.output).max() < np.abs(plain.output).max()


def test_weights(train):
    plain = rg.LambdaRank(**SMALL).fit(train)
    ones = rg.QueryDataset(train.X, train.y, train.qid, weight=np.ones(train.n_rows))
    same_model(plain, rg.LambdaRank(**SMALL).fit(ones))
    weight = np.ones(train.n_queries)
    weight[:20] = 0
    weighted = rg.QueryDataset(train.X, train.y, train.qid, query_weight=weight)
    by_rows = rg.QueryDataset(train.X, train.y, train.qid, weight=weight[train.query_of_row])
    a, b = (rg.LambdaRank(**SMALL).fit(d) for d in (weighted, by_rows))
    same_model(a, b)
    assert not np.array_equal(a.network_.flat, plain.network_.flat)
    c = rg.LambdaRank(**SMALL).fit(train.X, train.y, train.qid, sample_weight=by_rows.weight)
    same_model(a, c)


# -- the same bits ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize(
    "options", [{}, {"optimiser": "sgd"}, {"activation": "relu", "hidden": (6, 3)}], ids=str
)
def test_same_bits_for_any_number_of_threads_and_any_order_of_rows(train, valid, kind, options):
    options = SMALL | options
    one = kind(**options, n_threads=1).fit(train, valid=valid)
    two = kind(**options, n_threads=2).fit(train, valid=valid)
    same_model(one, two)
    assert one.history_ == two.history_
    rng = np.random.default_rng(0)
    lot = rng.random(train.n_rows)
    for q in range(train.n_queries):
        part = slice(train.query_ptr[q], train.query_ptr[q + 1])
        lot[part] = np.sort(lot[part])
    scattered = with_rows(train, np.argsort(lot))
    assert scattered.order is not None
    same_model(one, kind(**options).fit(scattered, valid=valid))
    backwards = train.select(np.arange(train.n_queries)[::-1])
    same_model(one, kind(**options).fit(backwards, valid=valid))
    assert not np.array_equal(
        one.network_.flat, kind(**options, random_state=1).fit(train).network_.flat
    )


def test_every_epoch_has_an_order_of_its_own():
    keys = np.random.default_rng(0).integers(0, 2**63, 50).astype(np.uint64)
    first, second = epoch_order(keys, 0, 0), epoch_order(keys, 0, 1)
    assert sorted(first.tolist()) == list(range(50))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, epoch_order(keys, 1, 0))
    turned = np.arange(50)[::-1]
    np.testing.assert_array_equal(keys[turned][epoch_order(keys[turned], 0, 0)], keys[first])


def test_sparse_features_give_the_same_model(train, valid):
    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(train.X), train.y, train.qid)
    a, b = rg.LambdaRank(**SMALL).fit(train), rg.LambdaRank(**SMALL).fit(sparse)
    same_model(a, b)
    np.testing.assert_array_equal(a.predict(valid), b.predict(scipy.sparse.csr_matrix(valid.X)))


def test_views_of_queries(train):
    view = train.select(np.arange(0, train.n_queries, 2))
    copy = rg.QueryDataset(view.X, view.y, view.qid)
    a, b = rg.RankNet(**SMALL).fit(view), rg.RankNet(**SMALL).fit(copy)
    same_model(a, b)
    np.testing.assert_array_equal(a.predict(view), b.predict(copy))


# -- validation, stopping, interruption ---------------------------------------------------------


@pytest.mark.parametrize("kind", NETS)
def test_validation_and_early_stopping(train, valid, kind):
    options = {"hidden": (20,), "learning_rate": 0.05, "schedule": "constant"}
    model = kind(**options, n_epochs=400, early_stopping=5)
    model.fit(train, valid=valid, valid_measures=["map", "ndcg@5"])
    history = model.history_["valid"]
    assert list(history) == ["map", "ndcg@5"]
    assert len(history["map"]) == model.n_epochs_ < 400
    assert model.best_epoch_ == int(np.argmax(history["map"])) + 1
    assert model.n_epochs_ == model.best_epoch_ + 5
    best = history["map"][model.best_epoch_ - 1]
    assert rg.evaluate(model, valid, "map").mean["map"] == best
    # the best epoch is what as many epochs give
    short = kind(**options, n_epochs=model.best_epoch_).fit(train)
    same_model(model, short)
    assert f"valid map: {best:.4f} after epoch {model.best_epoch_}" in model.summary()


def test_the_ranker_decides_by_its_own_measure(train, valid):
    assert list(rg.RankNet(**SMALL).fit(train, valid=valid).history_["valid"]) == ["pairs"]
    model = rg.LambdaRank("map", **SMALL).fit(train, valid={"a": valid, "b": train})
    assert {k: list(v) for k, v in model.history_.items()} == {"a": ["map"], "b": ["map"]}
    assert model.score(valid) == rg.evaluate(model, valid, "map").mean["map"]


def test_callbacks(train, valid):
    seen = []
    model = rg.RankNet(**SMALL).fit(
        train, valid=valid, callbacks=[lambda p: seen.append((p.round, p.network)), print]
    )
    assert [round for round, _ in seen] == [1, 2, 3, 4]
    np.testing.assert_array_equal(model.network_.flat, seen[model.best_epoch_ - 1][1].flat)
    stopped = rg.RankNet(**SMALL).fit(train, callbacks=lambda p: p.round == 2)
    assert stopped.n_epochs_ == 2
    np.testing.assert_array_equal(stopped.network_.flat, seen[1][1].flat)
    with pytest.raises(rg.ParameterError, match=r"'callbacks' parameter of RankNet\.fit"):
        rg.RankNet(**SMALL).fit(train, callbacks=3)


def test_ctrl_c_keeps_the_best_so_far(train, valid):
    def interrupt(progress):
        if progress.round == 3:
            raise KeyboardInterrupt

    model = interrupted_fit(rg.RankNet(**SMALL), train, valid=valid, callbacks=interrupt)
    assert model.interrupted_
    assert model.n_epochs_ == 3
    same_model(model, rg.RankNet(**SMALL | {"n_epochs": model.best_epoch_}).fit(train))


def test_ctrl_c_in_the_middle_of_an_epoch(train, monkeypatch, tmp_path):
    """Only whole epochs are kept, also in the checkpoint."""
    monkeypatch.setattr(loop, "DOCUMENTS_AT_ONCE", 100)
    options = SMALL | {"checkpoint": tmp_path / "state"}
    calls = []
    plain = QueryTask.run

    def run(self, order, *others):
        calls.append(order.size)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return plain(self, order, *others)

    monkeypatch.setattr(QueryTask, "run", run)
    model = interrupted_fit(rg.RankNet(**options), train)
    assert model.interrupted_
    assert model.n_epochs_ == 1  # an epoch has 8 parts
    monkeypatch.setattr(QueryTask, "run", plain)
    same_model(model, rg.RankNet(**SMALL | {"n_epochs": 1}).fit(train))
    went_on = rg.RankNet(**options).fit(train)
    same_model(went_on, rg.RankNet(**SMALL).fit(train))
    monkeypatch.setattr(QueryTask, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        rg.RankNet(**SMALL).fit(train)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("kind", NETS)
def test_going_on_from_a_checkpoint_gives_the_same_model(train, valid, tmp_path, kind, optimiser):
    path = tmp_path / "state"
    options = SMALL | {"n_epochs": 8, "checkpoint_every": 2, "optimiser": optimiser}
    whole = kind(**options).fit(train, valid=valid)

    def die(progress):
        if progress.round == 5:
            raise RuntimeError("power failure")

    with pytest.raises(RuntimeError):
        kind(**options, checkpoint=path).fit(train, valid=valid, callbacks=die)
    rounds = []
    went_on = kind(**options, checkpoint=path, n_threads=1).fit(
        train, valid=valid, callbacks=lambda p: rounds.append(p.round)
    )
    assert rounds == [5, 6, 7, 8]
    same_model(whole, went_on)
    assert whole.history_ == went_on.history_
    assert whole.best_epoch_ == went_on.best_epoch_
    same_model(whole, kind(**options, checkpoint=path).fit(train, valid=valid))
    longer = kind(**options | {"n_epochs": 11}, checkpoint=path).fit(train, valid=valid)
    same_model(longer, kind(**options | {"n_epochs": 11}).fit(train, valid=valid))
    with pytest.raises(rg.DataError, match="holds 11 epochs, and n_epochs is 8"):
        kind(**options, checkpoint=path).fit(train, valid=valid)
    with pytest.raises(rg.DataError, match="validation data was"):
        kind(**options, checkpoint=path).fit(train)


def test_a_checkpoint_of_another_run_is_refused(train, valid, tmp_path):
    path = tmp_path / "state"
    rg.RankNet(**SMALL, checkpoint=path).fit(train)
    with pytest.raises(rg.DataError, match=r"learning_rate was 0\.01, here it is 0\.2"):
        rg.RankNet(**SMALL | {"learning_rate": 0.2}, checkpoint=path).fit(train)
    with pytest.raises(rg.DataError, match="training data was"):
        rg.RankNet(**SMALL, checkpoint=path).fit(valid)
    with pytest.raises(rg.DataError, match=r"hidden was \[5\], here it is \[5, 2\]"):
        rg.RankNet(**SMALL | {"hidden": [5, 2]}, checkpoint=path).fit(train)
    with pytest.raises(rg.DataError, match="belongs to another run"):
        rg.LambdaRank("pairs", **SMALL, checkpoint=path).fit(train)
    rg.RankNet(**SMALL | {"hidden": 5}, checkpoint=path).fit(train)  # the same net
    # a schedule that ends hangs on when it ends
    path = tmp_path / "other"
    options = SMALL | {"schedule": "cosine", "checkpoint": path}
    rg.RankNet(**options).fit(train)
    with pytest.raises(rg.DataError, match="n_epochs was 4, here it is 9"):
        rg.RankNet(**options | {"n_epochs": 9}).fit(train)


@pytest.mark.slow
def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    script = textwrap.dedent("""
        import os, signal, sys, rankgrove as rg
        train, valid = (rg.make_artificial(40, n_docs=15, seed=s) for s in (1, 2))
        def kill(progress):
            if progress.round == int(sys.argv[1]):
                os.kill(os.getpid(), signal.SIGKILL)
        model = rg.LambdaRank(n_epochs=9, checkpoint=sys.argv[2] or None, checkpoint_every=1)
        model.fit(train, valid=valid, callbacks=kill).save(sys.argv[3])
    """)

    def run(at, state, out):
        words = [sys.executable, "-c", script, str(at), str(state), str(out)]
        return subprocess.run(words, capture_output=True, cwd=tmp_path).returncode

    assert run(4, "state", "a.rg") == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == ["state"]
    assert run(7, "state", "a.rg") == -signal.SIGKILL
    assert run(0, "state", "a.rg") == 0
    assert run(0, "", "b.rg") == 0
    assert (tmp_path / "a.rg").read_bytes() == (tmp_path / "b.rg").read_bytes()


# -- odd data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NETS)
def test_missing_and_constant_values(train, kind):
    X = np.array(train.X)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 3], X[:, 4] = 7, np.nan
    data = rg.QueryDataset(X, train.y, train.qid)
    model = kind(**SMALL).fit(data)
    scores = model.predict(data)
    assert np.isfinite(scores).all()
    assert model.network_.scale[3] == model.network_.scale[4] == 0
    other = X.copy()
    other[:, 3], other[:, 4] = -1e30, 5
    np.testing.assert_array_equal(model.predict(other), scores)


@pytest.mark.parametrize("kind", NETS)
def test_odd_queries(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    one_relevant = np.zeros(300)
    one_relevant[7] = 1
    y = np.concatenate([one_relevant, [1], np.full(30, 2), rng.integers(0, 32, 69)])
    qid = np.concatenate([np.zeros(300), [1], np.full(30, 2), np.full(69, 3)]).astype(int)
    model = kind(n_epochs=5).fit(X, y, qid)
    assert np.isfinite(model.predict(X)).all()
    # queries without a pair change nothing
    pairs = np.isin(qid, [0, 3])
    few = kind(n_epochs=5).fit(X[pairs], y[pairs], qid[pairs])
    few_net = few.network_
    full = model.network_
    if np.array_equal(few_net.mean, full.mean):
        same_model(few, model)


def test_outliers_do_not_break_training(train):
    X = np.array(train.X)
    X[5, 2], X[17, 0] = 3e38, -1e20
    model = rg.LambdaRank(**SMALL).fit(X, train.y, train.qid)
    assert np.isfinite(model.predict(X)).all()


def test_clear_errors(train, valid):
    with pytest.raises(rg.DataError, match="nothing to learn an order from"):
        rg.RankNet().fit([[1], [2]], [1, 1], qid=[1, 1])
    with pytest.raises(rg.DataError, match="same value in all rows"):
        rg.LambdaRank().fit([[1], [1]], [1, 0], qid=[1, 1])
    with pytest.raises(rg.DataError, match=r"RankNet\.fit needs data with at least one feature"):
        rg.RankNet().fit(rg.QueryDataset(None, [1, 0], qid=[1, 1]))
    with pytest.raises(rg.DataError, match="needs query ids"):
        rg.RankNet().fit([[1], [2]], [1, 0])
    infinite = np.array(train.X)
    infinite[31, 4] = np.inf
    with pytest.raises(rg.DataError, match="row 31 has inf for feature 5"):
        rg.RankNet().fit(infinite, train.y, train.qid)
    with pytest.raises(rg.ParameterError, match="early_stopping needs validation data"):
        rg.RankNet(early_stopping=5).fit(train)
    with pytest.raises(rg.DataError, match="valid data has 3 features, the training data 6"):
        rg.RankNet(**SMALL).fit(train, valid=(np.ones((2, 3)), [0, 1], [1, 1]))
    with pytest.raises(rg.DataError, match="leaves out every query of the valid data"):
        rg.RankNet(**SMALL).fit(train, valid=(np.ones((2, 6)), [0, 0], [1, 1]))
    with pytest.raises(NotFittedError, match="not trained yet"):
        rg.LambdaRank().predict(train)
    model = rg.LambdaRank(**SMALL).fit(train)
    with pytest.raises(rg.DataError, match=r"has 3 features, but \w+ is expecting 6"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(rg.DataError, match="row 31 has inf"):
        model.predict(infinite)


@pytest.mark.parametrize(
    "options", [{"hidden": ()}, {"hidden": (4,), "activation": "relu"}], ids=str
)
def test_training_that_comes_apart_says_so(train, options):
    model = rg.RankNet(**options, optimiser="sgd", learning_rate=1e150, n_epochs=50)
    with pytest.raises(rg.ParameterError, match=r"diverged in epoch \d+.*learning_rate \(it was"):
        model.fit(train)
    model.set_params(optimiser="adam", learning_rate=1e300)
    with pytest.raises(rg.ParameterError, match=r"\(it was 1e\+300\)\.$"):  # it is adam already
        model.fit(train)
    with pytest.raises(rg.ParameterError, match=r"at most 1. Got 0.001 \* 2000: lower l2"):
        rg.LambdaRank(l2=2000).fit(train)


@pytest.mark.parametrize(
    "bad",
    [
        {"hidden": 0},
        {"hidden": (5, 0)},
        {"hidden": (5, 2.5)},
        {"hidden": "10"},
        {"hidden": None},
        {"hidden": np.ones((2, 2), int)},
        {"activation": "sigmoid"},
        {"optimiser": "adagrad"},
        {"learning_rate": 0},
        {"learning_rate": "fast"},
        {"schedule": "never"},
        {"n_epochs": 0},
        {"l2": -1},
        {"early_stopping": 0},
        {"checkpoint": "nowhere/state"},
        {"checkpoint_every": 0},
        {"random_state": -1},
        {"n_threads": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", NETS)
def test_bad_parameters(train, valid, kind, bad):
    (name,) = bad
    with pytest.raises(rg.ParameterError, match=f"'{name}' parameter"):
        kind(**{"n_epochs": 1} | bad).fit(train, valid=valid)


@pytest.mark.parametrize("kind", [rg.RankNet, rg.LambdaRank])
def test_a_negative_sigma_is_refused(train, kind):
    with pytest.raises(rg.ParameterError, match="'sigma' parameter"):
        kind(sigma=-1).fit(train)


def test_bad_parameters_of_one_of_them(train):
    with pytest.raises(rg.ParameterError, match="'form' parameter of RankNet"):
        rg.RankNet(form="lists").fit(train)
    with pytest.raises(rg.ParameterError, match="'truncation' parameter of LambdaRank"):
        rg.LambdaRank(truncation=0).fit(train)
    with pytest.raises(rg.ParameterError, match="'normalise' parameter of LambdaRank"):
        rg.LambdaRank(normalise="yes").fit(train)
    with pytest.raises(rg.UnknownParameterError, match="RankNet has no parameter 'measure'"):
        rg.RankNet(measure="map")
    with pytest.raises(rg.ParameterError, match="ndgc"):
        rg.LambdaRank("ndgc").fit(train)


# -- manners ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NETS)
def test_saving_and_loading(train, valid, tmp_path, kind):
    model = kind(**SMALL | {"hidden": (5, 3)}, n_threads=1).fit(train, valid=valid)
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    assert type(again) is kind
    assert again.hidden == (5, 3)
    assert again.history_ == model.history_
    assert (again.best_epoch_, again.n_epochs_) == (model.best_epoch_, 4)
    assert again.summary() == model.summary()
    np.testing.assert_array_equal(again.predict(valid), model.predict(valid))
    again.save(tmp_path / "n.rg")
    assert (tmp_path / "m.rg").read_bytes() == (tmp_path / "n.rg").read_bytes()
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.predict(valid), model.predict(valid))


def test_a_damaged_net_is_refused(train, tmp_path):
    from rankgrove.model.store import read_model, write_model

    rg.RankNet(**SMALL).fit(train).save(tmp_path / "m.rg")
    kind, content, arrays = read_model(tmp_path / "m.rg")
    arrays["flat"] = arrays["flat"][:-1]
    write_model(tmp_path / "m.rg", kind, content, arrays)
    with pytest.raises(rg.ModelFileError, match=r"m\.rg: A net of 6 x 5 units has 40 numbers"):
        rg.load(tmp_path / "m.rg")


@pytest.mark.parametrize("kind", NETS)
def test_scikit_learns_manners(train, kind):
    model = kind(**SMALL)
    assert clone(model).get_params() == model.get_params()
    assert "hidden=(5,)" in repr(model)
    X, y, qid = np.asarray(train.X), train.y, train.qid
    with sklearn.config_context(enable_metadata_routing=True):
        cv = rg.QueryKFold(3)
        values = cross_val_score(model, X, y, cv=cv, params={"qid": qid}, error_score="raise")
        search = GridSearchCV(model, {"hidden": [(), (4,), (3, 2)]}, cv=cv).fit(X, y, qid=qid)
    assert np.isfinite(values).all()
    same_model(search.best_estimator_, clone(search.best_estimator_).fit(train))


def test_feature_names(train, tmp_path):
    import pandas as pd

    names = [f"n{i}" for i in range(6)]
    frame = pd.DataFrame(np.asarray(train.X), columns=names)
    model = rg.RankNet(**SMALL).fit(frame, train.y, qid=train.qid)
    assert model.feature_names_ == tuple(names)
    with pytest.raises(rg.DataError, match="another order"):
        model.predict(frame[names[::-1]])
    model.fit(train)
    assert not hasattr(model, "feature_names_")


def test_a_linear_net_has_a_weight_a_feature(train):
    net = rg.RankNet(hidden=(), n_epochs=3).fit(train).network_
    assert net.hidden == ()
    assert net.output.shape == (6,)
    np.testing.assert_array_equal(net.flat, net.output)
    X = (np.asarray(train.X, np.float64) - net.mean) * net.scale
    np.testing.assert_allclose(net.scores(np.asarray(train.X)), X @ net.output, atol=1e-12)


def test_the_progress_bar_counts_epochs(train, valid, capsys):
    rg.RankNet(**SMALL, progress=True).fit(train, valid=valid)
    assert "in epoch" in capsys.readouterr().err


# -- beginning with another net's weights ---------------------------------------------------------


def test_training_begins_with_the_weights_of_another_net(tmp_path):
    train = rg.make_artificial(40, n_docs=12, n_features=6, seed=1)
    other = rg.make_artificial(30, n_docs=12, n_features=6, seed=2)
    first = rg.RankNet(hidden=(5,), n_epochs=4).fit(other)
    still = rg.LambdaRank(hidden=(5,), n_epochs=1, learning_rate=1e-300, optimiser="sgd")
    still.fit(train, start=first)
    assert np.array_equal(still.predict(train), first.predict(train))
    assert np.array_equal(still.network_.mean, first.network_.mean)
    first.save(tmp_path / "first.rg")
    still.fit(train, start=tmp_path / "first.rg")
    assert np.array_equal(still.predict(train), first.predict(train))
    with pytest.raises(rg.ParameterError, match="its model file, and there is no such file"):
        still.fit(train, start="second.rg")
    # one epoch from a net's own first weights is that net's first epoch
    rate = {"hidden": (5,), "optimiser": "sgd", "learning_rate": 0.01}
    seen = []
    whole = rg.LambdaRank(n_epochs=1, **rate)
    whole.fit(train, callbacks=[lambda progress: seen.append(progress.start)])
    again = rg.LambdaRank(n_epochs=1, **rate).fit(train, start=seen[0])
    assert np.array_equal(again.network_.flat, whole.network_.flat)
    for wrong, message in [
        (rg.RankNet(hidden=(4,), n_epochs=1).fit(train), r"6 x 5 tanh units\. Got 6 x 4 tanh"),
        (rg.RankNet(hidden=(5,), activation="relu", n_epochs=1).fit(train), "relu units"),
    ]:
        with pytest.raises(rg.ParameterError, match=message):
            rg.LambdaRank(hidden=(5,)).fit(train, start=wrong)
    with pytest.raises(rg.ParameterError, match=r"'start' parameter of LambdaRank\.fit"):
        rg.LambdaRank().fit(train, start=rg.RankNet())
    # an update follows the lambdas of that net, its standardising included
    query = train.select([0])
    net = first.network_
    moved = rg.LambdaRank("pairs", n_epochs=1, **rate).fit(query, start=first).network_
    scores = net.scores(query.X)
    apart = np.sign(np.subtract.outer(query.y, query.y))
    up = (apart / (1 + np.exp(apart * np.subtract.outer(scores, scores)))).sum(axis=1)
    for i in (0, 7, 29, 31):
        step = np.zeros(net.flat.size)
        step[i] = 1e-6
        slope = net.with_flat(net.flat + step).scores(query.X)
        slope = (slope - net.with_flat(net.flat - step).scores(query.X)) / 2e-6
        assert (moved.flat[i] - net.flat[i]) / 0.01 == pytest.approx(up @ slope, rel=1e-6)
    # a checkpoint knows what the run began with
    path = tmp_path / "state"
    rg.LambdaRank(n_epochs=1, checkpoint=path, **rate).fit(train, start=first)
    with pytest.raises(rg.DataError, match="first weights"):
        rg.LambdaRank(n_epochs=2, checkpoint=path, **rate).fit(train, start=seen[0])
