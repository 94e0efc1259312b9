"""MART against scikit-learn's histogram boosting: the same first tree, the same held-out loss."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

import rankgrove as rg

COMMON = {"n_leaves": 15, "learning_rate": 0.1, "min_leaf": 20, "max_bins": 255, "l2": 0}


def theirs(kind, n_trees):
    return kind(
        max_iter=n_trees,
        max_leaf_nodes=15,
        learning_rate=0.1,
        min_samples_leaf=20,
        max_bins=255,
        l2_regularization=0.0,
        early_stopping=False,
    )


def data(n, seed, whole=False):
    """Return Friedman's regression problem with noise, and ids of queries of 20 rows."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 8)).astype(np.float32)
    if whole:  # few values a feature, so that the bins are the same
        X = np.floor(X * 100)
    x = X / 100 if whole else X
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
    return X, y + 5 * x[:, 4] + rng.normal(size=n), np.repeat(np.arange(n // 20), 20)


def test_the_first_trees_of_squared_error():
    X, y, qid = data(3000, 1, whole=True)
    # scikit-learn's gradients are float32; later trees may differ where two splits gain alike,
    # with "newton" a little sooner, because its gradients are rounded to fewer bits
    for n_trees, split in ((1, "mse"), (1, "newton"), (5, "mse")):
        ours = rg.MART(n_trees=n_trees, split=split, **COMMON).fit(X, y, qid=qid)
        other = theirs(HistGradientBoostingRegressor, n_trees).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), other.predict(X), rtol=1e-7)


def test_the_first_trees_of_two_classes():
    X, t, qid = data(3000, 2, whole=True)
    y = (t > 16).astype(int)
    for n_trees, tolerance in ((1, 1e-6), (5, 1e-5)):
        ours = rg.MART("logistic", n_trees=n_trees, split="newton", **COMMON).fit(X, y, qid=qid)
        other = theirs(HistGradientBoostingClassifier, n_trees).fit(X, y)
        np.testing.assert_allclose(
            ours.predict_proba(X), other.predict_proba(X), rtol=tolerance, atol=1e-6
        )
        # their raw score is the log odds, ours half of that
        np.testing.assert_allclose(
            2 * ours.predict(X), other.decision_function(X), rtol=tolerance, atol=1e-5
        )


def test_held_out_squared_error():
    (X, y, qid), (X_test, y_test, _) = data(8000, 3), data(8000, 4)
    ours = rg.MART(n_trees=100, **COMMON).fit(X, y, qid=qid)
    other = theirs(HistGradientBoostingRegressor, 100).fit(X, y)
    a, b = (np.mean((model.predict(X_test) - y_test) ** 2) for model in (ours, other))
    assert a == pytest.approx(b, rel=0.03)  # over eight seeds: 0 +- .009
    assert a < 0.2 * y_test.var()


def test_held_out_loss_of_two_classes():
    (X, t, qid), (X_test, t_test, _) = data(8000, 5), data(8000, 6)
    y, y_test = (t > 18).astype(int), (t_test > 18).astype(int)
    ours = rg.MART("logistic", n_trees=100, split="newton", **COMMON).fit(X, y, qid=qid)
    other = theirs(HistGradientBoostingClassifier, 100).fit(X, y)
    a, b = (log_loss(y_test, model.predict_proba(X_test)[:, 1]) for model in (ours, other))
    assert a == pytest.approx(b, rel=0.03)
    assert a < 0.6 * log_loss(y_test, np.full(y_test.size, y.mean()))


@pytest.mark.slow
def test_held_out_loss_of_several_classes():
    # They have no (K - 1) / K in their steps: at rate 0.1 ours is theirs at 0.1 (K - 1) / K.
    (X, t, qid), (X_test, t_test, _) = data(8000, 7), data(8000, 8)
    edges = [10, 14, 18, 22]
    y, y_test = np.digitize(t, edges), np.digitize(t_test, edges)
    options = COMMON | {"learning_rate": 0.1 * 5 / 4}
    ours = rg.McRank(n_trees=60, split="newton", **options).fit(X, y, qid=qid)
    other = theirs(HistGradientBoostingClassifier, 60).fit(X, y)
    a, b = (log_loss(y_test, model.predict_proba(X_test)) for model in (ours, other))
    assert a == pytest.approx(b, rel=0.03)
