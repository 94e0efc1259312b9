"""MART as its user sees it: against the papers' own loops, same bits, special data, manners."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import rankgrove as rg
from tests.rankers.test_lambdamart import same_model
from tests.reference import boosting as naive

SMALL = {"n_trees": 8, "n_leaves": 6, "min_leaf": 5}
LOSSES = ("squared", "logistic", "balanced")


@pytest.fixture(scope="module")
def train():
    return rg.make_web(60, n_docs=25, n_features=20, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(30, n_docs=25, n_features=20, seed=2)


def tiny(seed=0, n=40):
    """Return rows with a real-valued response, in a few queries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n, scale=0.3)
    return X, y, np.repeat(np.arange(n // 10), 10)


# -- against the naive loops ----------------------------------------------------------------------


def test_squared_error_is_least_squares_boosting():
    X, y, qid = tiny()
    model = rg.MART(n_trees=6, n_leaves=4, learning_rate=0.3, min_leaf=2, l2=0).fit(X, y, qid=qid)
    expected = naive.mart(X, y, 6, 4, 0.3, min_leaf=2)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    assert model.ensemble_.base == math.fsum(y) / y.size


@pytest.mark.parametrize("loss", ["logistic", "balanced"])
@pytest.mark.parametrize("sigma", [1.0, 2.5])
def test_two_classes_are_the_papers_loop(loss, sigma):
    X, y, qid = tiny(1)
    signs = np.where(y > 0.5, 1, -1)
    model = rg.MART(loss, "auc", 6, 4, 0.3, min_leaf=2, l2=0, sigma=sigma, split="mse")
    model.fit(X, signs, qid=qid)
    expected = naive.mart_logistic(
        X, signs, 6, 4, 0.3, sigma=sigma, balanced=loss == "balanced", min_leaf=2
    )
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10)
    positive = 1 / (1 + np.exp(-2 * sigma * expected))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], positive, rtol=1e-10)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_graded_labels_are_cut_at_relevant(train):
    for relevant in (1, 2.5):
        graded = rg.MART("logistic", relevant=relevant, **SMALL).fit(train)
        signs = np.where(train.y >= relevant, 1, -1)
        same_model(graded, rg.MART("logistic", **SMALL).fit(train.X, signs, qid=train.qid))


def test_sigma_changes_nothing_in_the_ranking(train, valid):
    # Section 6: the Newton step is proportional to 1 / sigma; exactly so for powers of two.
    for loss in ("logistic", "balanced"):
        one = rg.MART(loss, **SMALL).fit(train)
        for sigma in (0.25, 4.0):
            other = rg.MART(loss, sigma=sigma, **SMALL).fit(train)
            np.testing.assert_array_equal(other.predict(valid) * sigma, one.predict(valid))
            np.testing.assert_array_equal(other.predict_proba(valid), one.predict_proba(valid))


def test_the_balanced_loss_evens_the_classes_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=2000) > 2.3).astype(float)  # a twentieth is relevant
    data = rg.QueryDataset(X, y, np.repeat(np.arange(20), 100))
    options = {"n_trees": 40, "n_leaves": 4, "l2": 0}
    plain = rg.MART("logistic", **options).fit(data).predict_proba(data)[:, 1]
    even = rg.MART("balanced", **options).fit(data).predict_proba(data)[:, 1]
    assert plain.mean() == pytest.approx(y.mean(), abs=0.01)
    assert (even[y == 1].mean() + even[y == 0].mean()) / 2 == pytest.approx(0.5, abs=0.05)

    def error_rate(p):  # section 6.1
        return ((p > 0.5) & (y == 0)).sum() / (2 * (y == 0).sum()) + (
            (p <= 0.5) & (y == 1)
        ).sum() / (2 * (y == 1).sum())

    assert error_rate(even) < error_rate(plain) - 0.1


def test_weights_count_as_so_many_rows(train):
    rng = np.random.default_rng(0)
    often = rng.integers(1, 4, train.n_rows)
    rows = np.repeat(np.arange(train.n_rows), often)
    repeated = rg.QueryDataset(train.X[rows], train.y[rows], train.qid[rows])
    weighted = rg.QueryDataset(train.X, train.y, train.qid, weight=often.astype(float))
    options = {"n_trees": 5, "n_leaves": 5, "min_leaf": 1, "split": "newton", "relevant": 2}
    # bins hold equal numbers of rows: one value a bin makes them the same
    coarse = np.round(np.asarray(train.X), 1)
    weighted = rg.QueryDataset(coarse, train.y, train.qid, weight=often.astype(float))
    repeated = rg.QueryDataset(coarse[rows], train.y[rows], train.qid[rows])
    for loss in LOSSES:
        a = rg.MART(loss, **options).fit(weighted)
        b = rg.MART(loss, **options).fit(repeated)
        assert a.ensemble_.base == pytest.approx(b.ensemble_.base, rel=1e-14)
        np.testing.assert_allclose(a.predict(coarse), b.predict(coarse), rtol=1e-9)


def test_weights_of_queries_and_rows(train):
    weight = np.ones(train.n_queries)
    weight[:20] = [0.5] * 10 + [0] * 10
    by_query = rg.QueryDataset(train.X, train.y, train.qid, query_weight=weight)
    by_rows = rg.QueryDataset(train.X, train.y, train.qid, weight=weight[train.query_of_row])
    twice = rg.QueryDataset(
        train.X,
        train.y,
        train.qid,
        weight=np.sqrt(weight)[train.query_of_row],
        query_weight=np.sqrt(weight),
    )
    for loss in LOSSES:
        a = rg.MART(loss, **SMALL).fit(by_query)
        same_model(a, rg.MART(loss, **SMALL).fit(by_rows))
        np.testing.assert_allclose(
            a.predict(train), rg.MART(loss, **SMALL).fit(twice).predict(train), rtol=1e-6
        )


# -- the same bits --------------------------------------------------------------------------------

OPTIONS = [
    {},
    {"split": "newton", "l2": 0.0},
    {"loss": "logistic", "relevant": 2},
    {"loss": "balanced", "query_fraction": 0.5, "feature_fraction": 0.3},
    {"query_fraction": 0.5, "max_depth": 2, "max_bins": 9},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_bits_for_any_number_of_threads_and_any_order_of_rows(train, options):
    options = SMALL | options
    one = rg.MART(**options, n_threads=1).fit(train)
    same_model(one, rg.MART(**options, n_threads=2).fit(train))
    rng = np.random.default_rng(0)
    lot = rng.random(train.n_rows)
    for q in range(train.n_queries):
        part = slice(train.query_ptr[q], train.query_ptr[q + 1])
        lot[part] = np.sort(lot[part])
    rows = np.argsort(lot)
    scattered = rg.QueryDataset(train.X[rows], train.y[rows], train.qid[rows])
    same_model(one, rg.MART(**options).fit(scattered))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_predictions_are_the_training_scores(train, valid, options):
    seen = []
    watched = {"train": train, "valid": valid}
    rg.MART(**(SMALL | options)).fit(
        train, valid=watched, callbacks=[lambda p: seen.append(p) and None]
    )
    whole = rg.MART(**(SMALL | options)).fit(train)
    for name, data in watched.items():
        scores = seen[-1].watch.watched[name].scores[0]
        np.testing.assert_array_equal(whole.predict(data), data.ungrouped(scores))


@pytest.mark.parametrize("loss", LOSSES)
def test_going_on_from_a_checkpoint_and_loading_give_the_same_model(train, valid, tmp_path, loss):
    path = tmp_path / "state"
    options = SMALL | {"loss": loss, "query_fraction": 0.5, "checkpoint_every": 2}
    whole = rg.MART(**options).fit(train, valid=valid)

    def die(progress):
        if progress.round == 5:
            raise RuntimeError("power failure")

    with pytest.raises(RuntimeError):
        rg.MART(**options, checkpoint=path).fit(train, valid=valid, callbacks=[die])
    went_on = rg.MART(**options, checkpoint=path).fit(train, valid=valid)
    same_model(whole, went_on)
    assert whole.history_ == went_on.history_
    whole.save(tmp_path / "m.rg")
    loaded = rg.load(tmp_path / "m.rg")
    assert isinstance(loaded, rg.MART)
    assert loaded.loss == loss
    np.testing.assert_array_equal(loaded.predict(valid), whole.predict(valid))
    np.testing.assert_array_equal(
        whole.truncated(0).predict(valid), np.full(valid.n_rows, whole.ensemble_.base)
    )


# -- special data, manners ----------------------------------------------------------------------


def test_learning_and_early_stopping(train, valid):
    for loss in LOSSES:
        model = rg.MART(
            loss,
            relevant=2,
            n_trees=300,
            min_leaf=2,
            learning_rate=0.5,
            split="mse",
            early_stopping=5,
        )
        model.fit(train, valid=valid)
        history = model.history_["valid"]["ndcg@10"]
        assert model.best_round_ == int(np.argmax(history)) + 1
        assert len(history) == model.best_round_ + 5
        assert model.ensemble_.n_trees == model.best_round_
        assert model.score(valid) == max(history)
        assert model.score(train) > model.truncated(0).score(train) + 0.15
        text = f"valid ndcg@10: {max(history):.4f} after {model.best_round_} trees"
        assert text in model.summary()


def test_missing_infinite_and_constant_values(train):
    X = np.array(train.X)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[rng.random(X.shape) < 0.02] = np.inf
    X[:, 3] = 7
    X[:, 4] = np.nan
    data = rg.QueryDataset(X, train.y, train.qid)
    for loss in LOSSES:
        model = rg.MART(loss, relevant=2, n_trees=20, n_leaves=8, min_leaf=3).fit(data)
        assert np.isfinite(model.predict(data)).all()
        assert not set(model.ensemble_.feature.tolist()) & {3, 4}
        assert model.score(data) > 0.4


def test_classes_that_separate_without_l2():
    X = np.arange(40, dtype=np.float32)[:, None]
    y = np.arange(40) >= 20
    for loss in LOSSES:
        model = rg.MART(loss, n_trees=200, n_leaves=2, min_leaf=1, learning_rate=1.0, l2=0)
        model.fit(X, y, qid=np.zeros(40, int))
        assert np.isfinite(model.predict(X)).all()
        assert model.score(X, y, qid=np.zeros(40, int)) == pytest.approx(1)


def test_a_feature_that_says_nothing():
    X = np.tile(np.arange(4, dtype=np.float32), 10)[:, None]
    y = np.repeat(np.arange(10) % 2, 4)
    for loss in LOSSES:
        model = rg.MART(loss, n_trees=5, min_leaf=1).fit(X, y, qid=np.zeros(40, int))
        assert model.ensemble_.n_trees == 1  # the first tree has no split, nor would others
        np.testing.assert_allclose(model.predict(X), model.ensemble_.base)


def test_clear_errors(train):
    for loss in LOSSES:
        with pytest.raises(rg.DataError, match="nothing to learn from"):
            rg.MART(loss).fit([[1], [2]], [1, 1], qid=[1, 1])
    with pytest.raises(rg.DataError, match="Labels of at least 'relevant' are relevant"):
        rg.MART("logistic", relevant=9).fit(train)
    with pytest.raises(rg.DataError, match="same value in all rows"):
        rg.MART().fit([[1], [1]], [1, 0], qid=[1, 1])
    model = rg.MART(**SMALL).fit(train)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(rg.MART(), "predict_proba")
    assert hasattr(rg.MART("logistic"), "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        model.predict_proba(train)
    assert "has no probabilities: train with loss='logistic'" in str(caught.value.__cause__)
    two = rg.MART("logistic", **SMALL).fit(train)
    with pytest.raises(rg.DataError, match=r"has 3 features, but \w+ is expecting 20"):
        two.predict_proba(np.ones((2, 3)))


@pytest.mark.parametrize(
    "bad", [{"loss": "hinge"}, {"sigma": 0}, {"relevant": "yes"}, {"split": "gini"}], ids=str
)
def test_bad_parameters(train, bad):
    (name,) = bad
    with pytest.raises(rg.ParameterError, match=f"'{name}' parameter of MART"):
        rg.MART(**bad).fit(train)


def test_estimator_manners(train, valid):
    import sklearn

    model = rg.MART("logistic", **SMALL)
    assert clone(model).get_params() == model.get_params()
    model.fit(train)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(valid), model.predict_proba(valid))
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(rg.MART(**SMALL), {"loss": LOSSES}, cv=rg.QueryKFold(3))
        search.fit(np.asarray(train.X), train.y, qid=train.qid)
        assert search.best_params_["loss"] in LOSSES
