"""Stacks: a net on the scores of rankers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import rankgrove as rg
from rankgrove.rankers.load import trainable


@pytest.fixture(scope="module")
def rankers():
    train = rg.make_artificial(60, n_docs=20, n_features=8, seed=1)
    return [
        rg.LambdaMART("ndcg@5", n_trees=20, n_leaves=8).fit(train),
        rg.LambdaRank("ndcg@5", n_epochs=30, learning_rate=0.01).fit(train),
        rg.SVMMap(C=1.0, scaling="query").fit(train),
    ]


@pytest.fixture(scope="module")
def held_out():
    return rg.make_artificial(80, n_docs=20, n_features=8, seed=2)


def mean(model, data, measure="ndcg@5"):
    return rg.evaluate(model, data, measure).mean[measure]


def test_it_is_a_lambdarank_net_on_scores(rankers, held_out):
    stack = rg.StackedRanker(rankers, "ndcg@5", hidden=(3,), n_epochs=5).fit(held_out)
    columns = np.stack([one.predict(held_out) for one in rankers], axis=1).astype(np.float32)
    data = rg.QueryDataset(columns, held_out.y, qid=held_out.qid)
    net = rg.LambdaRank(
        "ndcg@5", hidden=(3,), n_epochs=5, learning_rate=0.01, schedule="linear"
    ).fit(data)
    assert np.array_equal(stack.network_.flat, net.network_.flat)
    assert np.array_equal(stack.predict(held_out), net.predict(data))
    assert np.array_equal(stack.stacked(held_out).X, columns)
    with pytest.raises(AttributeError, match="hidden units"):
        stack.weights_  # noqa: B018


def test_linear_ones_combine(rankers, held_out):
    stack = rg.StackedRanker(rankers, "ndcg@5").fit(held_out)
    assert mean(stack, held_out) >= max(mean(one, held_out) for one in rankers) - 0.003
    combined = sum(
        weight * one.predict(held_out) for weight, one in zip(stack.weights_, rankers, strict=True)
    )
    # the score, but for what lifts all documents alike
    np.testing.assert_allclose(np.ptp(combined - stack.predict(held_out)), 0, atol=1e-4)
    text = stack.summary()
    assert text.startswith("StackedRanker for ndcg@5: 3 inputs, a linear function")
    assert "ranker 1: LambdaMART for ndcg@5, weight" in text


def test_saving_loading_cloning(rankers, held_out, tmp_path):
    for hidden in ((), (4,)):
        stack = rg.StackedRanker(rankers, "map", hidden=hidden, n_epochs=3, early_stopping=2)
        stack.fit(held_out, valid=held_out)
        assert stack.best_epoch_ is not None
        stack.save(tmp_path / "stack.rg")
        loaded = rg.load(tmp_path / "stack.rg")
        assert isinstance(loaded, rg.StackedRanker)
        assert np.array_equal(loaded.predict(held_out), stack.predict(held_out))
        assert loaded.score(held_out) == stack.score(held_out) == mean(stack, held_out, "map")
        assert loaded.n_features_in_ == 8
        assert loaded.history_ == stack.history_
        assert loaded.hidden == hidden
    copy = clone(stack)
    assert copy.rankers is rankers
    assert not hasattr(copy, "network_")
    assert copy.get_params() == stack.get_params()
    assert "stacked" not in trainable()


def test_stacks_in_stacks_and_combinations(rankers, held_out, tmp_path):
    inner = rg.StackedRanker(rankers[:2], "ndcg@5", n_epochs=2).fit(held_out)
    outer = rg.StackedRanker([inner, rankers[2]], "ndcg@5", n_epochs=2).fit(held_out)
    outer.save(tmp_path / "outer.rg")
    assert np.array_equal(rg.load(tmp_path / "outer.rg").predict(held_out), outer.predict(held_out))
    both = rg.optimal_combination(inner, rankers[2], held_out, "ndcg@5")
    assert both.value >= mean(inner, held_out)
    goes_on = rg.LambdaMART("ndcg@5", n_trees=2, submodel=inner).fit(held_out)
    assert np.isfinite(goes_on.predict(held_out)).all()


def test_rows_in_any_order_and_feature_names(rankers, held_out):
    stack = rg.StackedRanker(rankers[:2], n_epochs=3).fit(held_out)
    turned = np.random.default_rng(0).permutation(held_out.n_rows)
    mixed = rg.QueryDataset(
        held_out.X[turned], held_out.y[turned], qid=held_out.qid[turned],
        feature_names=[f"x{j}" for j in range(8)],
    )  # fmt: skip
    assert np.array_equal(stack.predict(mixed), stack.predict(held_out)[turned])
    named = rg.StackedRanker(rankers[:2], n_epochs=3).fit(mixed)
    assert named.feature_names_ == mixed.feature_names
    named.fit(held_out)
    assert not hasattr(named, "feature_names_")


def test_models_of_others(held_out, tmp_path):
    linear = LinearRegression().fit(held_out.X, held_out.y)
    stack = rg.StackedRanker([linear], n_epochs=2).fit(held_out)
    assert np.array_equal(stack.predict(held_out.X), stack.predict(held_out))
    with pytest.raises(rg.ParameterError, match="A stack with a LinearRegression cannot be saved"):
        stack.save(tmp_path / "no.rg")


def test_model_files_of_rankers(rankers, held_out, tmp_path):
    for i, one in enumerate(rankers[:2]):
        one.save(tmp_path / f"{i}.rg")
    paths = [tmp_path / "0.rg", str(tmp_path / "1.rg")]
    by_files = rg.StackedRanker(paths, n_epochs=3).fit(held_out)
    expected = rg.StackedRanker(rankers[:2], n_epochs=3).fit(held_out)
    for path in paths:
        Path(path).unlink()  # they were read
    assert np.array_equal(by_files.predict(held_out), expected.predict(held_out))
    assert by_files.rankers is paths
    by_files.save(tmp_path / "stack.rg")
    read = rg.load(tmp_path / "stack.rg")
    assert np.array_equal(read.predict(held_out), expected.predict(held_out))
    with pytest.raises(rg.ParameterError, match=r"model files, and there is no such file. Got 'a"):
        rg.StackedRanker(["a.rg"]).fit(held_out)


def test_refusals(rankers, held_out):
    with pytest.raises(rg.ParameterError, match=r"StackedRanker needs at least 1 ranker\. Got 0"):
        rg.StackedRanker().fit(held_out)
    with pytest.raises(rg.ParameterError, match=r"can score other data\. Got ndarray"):
        rg.StackedRanker([np.zeros(3)]).fit(held_out)
    with pytest.raises(rg.ParameterError, match="a list of trained rankers"):
        rg.StackedRanker("a").fit(held_out)
    with pytest.raises(NotFittedError):
        rg.StackedRanker(rankers).predict(held_out)
    with pytest.raises(rg.DataError, match="the valid data has 7 features"):
        rg.StackedRanker(rankers).fit(held_out, valid=rg.make_artificial(5, n_features=7))

    class Bad:
        def predict(self, X):
            return np.full(len(X), np.inf)

    with pytest.raises(rg.DataError, match=r"Ranker 2 \(Bad\) has inf at row 0"):
        rg.StackedRanker([rankers[0], Bad()]).fit(held_out)
