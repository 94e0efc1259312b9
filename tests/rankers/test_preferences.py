"""Learning from pairs: preferences without labels, by nets and by trees."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import rankgrove as rg

RANKERS = {
    "net": lambda **o: rg.RankNet(**{"hidden": (5,), "n_epochs": 6, "learning_rate": 0.01} | o),
    "trees": lambda **o: rg.LambdaMART("pairs", **{"n_trees": 6, "n_leaves": 5, "min_leaf": 3} | o),
}


@pytest.fixture(scope="module")
def data():
    return rg.make_artificial(40, n_docs=10, n_features=6, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_artificial(20, n_docs=10, n_features=6, seed=2)


def label_pairs(data):
    """Return all pairs of rows of a query with unequal labels, the better one first."""
    found = []
    for q in range(data.n_queries):
        rows = np.flatnonzero(data.query_of_row == q)
        found += [(i, j) for i in rows for j in rows if data.y[i] > data.y[j]]
    return np.array(found)


@pytest.mark.parametrize("ranker", RANKERS)
def test_pairs_of_labels_give_the_model_of_labels(data, ranker):
    make = RANKERS[ranker]
    options = {"normalise": False} if ranker == "trees" else {}
    by_labels = make(**options).fit(data)
    by_pairs = make(**options).fit_pairs(data.X, label_pairs(data), qid=data.qid)
    np.testing.assert_allclose(by_pairs.predict(data), by_labels.predict(data), atol=1e-4)
    again = make(**options).fit_pairs(data, label_pairs(data))
    np.testing.assert_array_equal(again.predict(data), by_pairs.predict(data))
    turned = make(**options).fit_pairs(data, label_pairs(data)[:, ::-1], 0.0)
    np.testing.assert_allclose(turned.predict(data), by_pairs.predict(data), atol=1e-4)


@pytest.mark.parametrize("ranker", RANKERS)
def test_rows_need_no_order_and_no_queries(data, ranker):
    make = RANKERS[ranker]
    rows = np.random.default_rng(0).permutation(data.n_rows)
    place = np.argsort(rows)
    pairs = label_pairs(data)
    by_group = make().fit_pairs(data.X, pairs)
    value = rg.evaluate(by_group, data, "pairs").mean["pairs"]
    assert value > rg.evaluate(np.zeros(data.n_rows), data, "pairs").mean["pairs"] + 0.05
    shuffled = make().fit_pairs(data.X[rows], place[pairs], qid=data.qid[rows])
    moved = rg.evaluate(shuffled, data, "pairs").mean["pairs"]
    assert moved == pytest.approx(value, abs=0.1)


@pytest.mark.parametrize("ranker", RANKERS)
def test_cyclic_preferences_end_at_one_half(ranker):
    """A confused judge: 0 before 1, 1 before 2, 2 before 0 (section 2)."""
    X = np.eye(3, dtype=np.float32)
    pairs = [[0, 1], [1, 2], [2, 0]]
    options = (
        {"hidden": (4,), "n_epochs": 2000, "learning_rate": 0.01}
        if ranker == "net"
        else {"n_trees": 200, "n_leaves": 3, "min_leaf": 1, "l2": 0.1}
    )
    model = RANKERS[ranker](**options).fit_pairs(X, pairs)
    np.testing.assert_allclose(model.predict_pairs(X, pairs), 0.5, atol=0.02)
    one_way = RANKERS[ranker](**options).fit_pairs(X, pairs[:2])
    assert (one_way.predict_pairs(X, pairs[:2]) > 0.9).all()


@pytest.mark.parametrize("ranker", RANKERS)
def test_probabilities_are_learned(ranker):
    X = np.array([[0.0], [1.0], [2.0]], np.float32)
    pairs, target = [[0, 1], [1, 2]], [0.8, 0.3]
    options = (
        {"hidden": (4,), "n_epochs": 3000, "learning_rate": 0.01}
        if ranker == "net"
        else {"n_trees": 300, "n_leaves": 3, "min_leaf": 1}
    )
    for sigma in (1.0, 2.5):
        model = RANKERS[ranker](**options, sigma=sigma).fit_pairs(X, pairs, target)
        np.testing.assert_allclose(model.predict_pairs(X, pairs), target, atol=0.02)
    # the same pair judged by ten people
    judged = RANKERS[ranker](**options).fit_pairs(X, [[0, 2]] * 7 + [[2, 0]] * 3)
    np.testing.assert_allclose(judged.predict_pairs(X, [[0, 2]]), 0.7, atol=0.02)
    weighted = RANKERS[ranker](**options).fit_pairs(X, [[0, 2], [2, 0]], weight=[7, 3])
    np.testing.assert_allclose(weighted.predict_pairs(X, [[0, 2]]), 0.7, atol=0.02)


def test_one_large_group_makes_many_updates():
    """A tournament among all documents is no query: its pairs are dealt out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    pairs = rng.integers(0, 300, (6000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    better = X[pairs[:, 0]] @ [1, -1, 2, 0] > X[pairs[:, 1]] @ [1, -1, 2, 0]
    pairs = np.where(better[:, None], pairs, pairs[:, ::-1])
    model = rg.RankNet(hidden=(), n_epochs=60, learning_rate=0.02).fit_pairs(X, pairs)
    assert (model.predict_pairs(X, pairs) > 0.5).mean() > 0.97


@pytest.mark.parametrize("form", ["factorised", "pairs"])
def test_pair_by_pair(data, form):
    model = RANKERS["net"](form=form, optimiser="sgd", n_epochs=10).fit_pairs(
        data, label_pairs(data)
    )
    assert rg.evaluate(model, data, "pairs").mean["pairs"] > 0.55


@pytest.mark.parametrize("ranker", RANKERS)
def test_validation_and_checkpoints(data, valid, ranker, tmp_path):
    make, pairs = RANKERS[ranker], label_pairs(data)
    plain = make().fit_pairs(data, pairs, 0.9, valid=valid, valid_measures=["ndcg@5", "pairs"])
    assert list(plain.history_["valid"]) == ["ndcg@5", "pairs"]

    def die(progress):
        if progress.round == 4:
            raise RuntimeError

    options = {"checkpoint": tmp_path / "state", "checkpoint_every": 1}
    looked = {"valid": valid, "valid_measures": ["ndcg@5", "pairs"]}
    with pytest.raises(RuntimeError):
        make(**options).fit_pairs(data, pairs, 0.9, **looked, callbacks=die)
    went_on = make(**options).fit_pairs(data, pairs, 0.9, **looked)
    np.testing.assert_array_equal(went_on.predict(valid), plain.predict(valid))
    assert went_on.history_ == plain.history_
    with pytest.raises(rg.DataError, match="pairs was"):
        make(**options).fit_pairs(data, pairs, 0.8, **looked)
    went_on.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    np.testing.assert_array_equal(
        again.predict_pairs(data, pairs), went_on.predict_pairs(data, pairs)
    )


def test_threads_and_sampling(data):
    pairs = label_pairs(data)
    options = {"query_fraction": 0.5, "feature_fraction": 0.5}
    a, b = (RANKERS["trees"](**options, n_threads=n).fit_pairs(data.X, pairs) for n in (1, 2))
    np.testing.assert_array_equal(a.predict(data), b.predict(data))


def test_sparse_features_and_frames(data):
    import pandas as pd

    pairs = label_pairs(data)
    plain = RANKERS["net"]().fit_pairs(data.X, pairs)
    sparse = RANKERS["net"]().fit_pairs(scipy.sparse.csr_matrix(data.X), pairs)
    np.testing.assert_array_equal(plain.predict(data), sparse.predict(data))
    frame = pd.DataFrame(np.asarray(data.X), columns=list("abcdef"))
    named = RANKERS["net"]().fit_pairs(frame, pairs)
    assert named.feature_names_ == tuple("abcdef")


@pytest.mark.parametrize("ranker", RANKERS)
def test_clear_errors(data, ranker):
    make = RANKERS[ranker]
    name = type(make()).__name__
    with pytest.raises(rg.DataError, match=rf"{name}\.fit_pairs: pair 0 is \(0, 900\)"):
        make().fit_pairs(data.X, [[0, 900]])
    with pytest.raises(
        rg.DataError, match=r"pair 1 joins row 0 of query .*1.* and row 15 of query"
    ):
        make().fit_pairs(data, [[0, 1], [0, 15]])
    with pytest.raises(rg.DataError, match=rf"{name}\.fit_pairs: X has 400 rows, and qid 2 ids"):
        make().fit_pairs(data.X, [[0, 1]], qid=[1, 2])
    with pytest.raises(rg.DataError, match="probability must be between 0 and 1"):
        make().fit_pairs(data, [[0, 1]], 2.0)
    with pytest.raises(rg.DataError, match="same value in all rows"):
        make().fit_pairs(np.ones((3, 2)), [[0, 1]])
    model = make().fit_pairs(data, label_pairs(data))
    with pytest.raises(rg.DataError, match=rf"{name}\.predict_pairs: pair 0 compares row 3 with"):
        model.predict_pairs(data, [[3, 3]])


def test_trees_that_cannot_be_grown_are_told(caplog):
    X, pairs = np.arange(6.0)[:, None], [[1, 0], [2, 1], [3, 2]]
    rg.LambdaMART("pairs", n_trees=3, min_leaf=1).fit_pairs(X, pairs)
    assert not caplog.text
    rg.LambdaMART("pairs", n_trees=3).fit_pairs(X, pairs)
    assert "no tree could be grown" in caplog.text
    assert "min_leaf=20" in caplog.text


def test_exact_steps_need_labels(data, valid):
    pairs = label_pairs(data)
    exact = {"measure": "pairs", "n_trees": 2, "step": "optimal"}
    with pytest.raises(rg.ParameterError, match="pairs have none: set step='newton'"):
        rg.LambdaMART(**exact).fit_pairs(data.X, pairs)
    model = rg.LambdaMART(**exact, step_on="valid").fit_pairs(data.X, pairs, valid=valid)
    assert len(model.steps_) >= 1


def test_trees_need_the_measure_of_pairs(data):
    with pytest.raises(rg.ParameterError, match=r"needs measure='pairs'\. Got 'ndcg@10'"):
        rg.LambdaMART().fit_pairs(data, [[0, 1]])
    assert not hasattr(rg.LambdaRank, "fit_pairs")
