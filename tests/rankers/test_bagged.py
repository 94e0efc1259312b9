"""Bags of rankers."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import rankgrove as rg
from rankgrove.bagging.aggregate import COMBINE, aggregate
from rankgrove.bagging.sample import sampled_queries
from rankgrove.random import derive_seed


@pytest.fixture(scope="module")
def sets():
    return [rg.make_web(n, n_docs=12, n_features=6, seed=s) for n, s in ((40, 1), (15, 2), (20, 3))]


BASE = rg.LambdaMART(
    "map[relevant=2]", n_trees=25, n_leaves=4, min_leaf=3, query_fraction=0.7, early_stopping=8
)


@pytest.mark.parametrize("combine", COMBINE)
def test_a_bag_is_its_models(sets, combine):
    train, valid, test = sets
    bag = rg.BaggedRanker(BASE, 4, 0.6, combine, random_state=5).fit(train, valid=valid)
    columns = []
    for m in range(4):
        seen = sampled_queries(train.query_keys, 0.6, 5, m)
        seed = derive_seed(5, "bagged model", m) % 2**31
        one = clone(BASE).set_params(random_state=seed)
        _, bins = one.shared_bins(train)  # those of all training data
        some = bins.some(np.repeat(seen, np.diff(train.query_ptr)))
        one.fit_binned(train.select(seen), some, valid={"valid": valid})
        columns.append(one.predict(test))
        np.testing.assert_array_equal(one.predict(test), bag.models_[m].predict(test))
    expected = test.ungrouped(
        aggregate([test.grouped(c) for c in columns], test.query_ptr, combine, np.ones(4))
    )
    np.testing.assert_allclose(bag.predict(test), expected, rtol=1e-12)
    np.testing.assert_allclose(bag.submodel_scores(test), columns, rtol=1e-12)
    by_hand = [rg.evaluate(c, test, BASE.measure).mean["map[relevant=2]"] for c in columns]
    np.testing.assert_allclose(bag.submodel_values(test), by_hand)


def test_same_bits_for_any_number_of_threads_and_order_of_rows(sets):
    train, valid, test = sets
    bag = rg.BaggedRanker(BASE, 3).fit(train, valid=valid)
    turned = train.select(np.arange(train.n_queries)[::-1])
    other = rg.BaggedRanker(BASE, 3, n_threads=1).fit(turned, valid=valid)
    np.testing.assert_array_equal(bag.predict(test), other.predict(test, n_threads=1))


@pytest.mark.parametrize(
    "base",
    [
        rg.MART(n_trees=5, n_leaves=4, min_leaf=3),
        rg.LambdaRank(n_epochs=3),
        rg.SVMMap(relevant=2),
        rg.McRank(n_trees=3, n_leaves=4, min_leaf=3),
    ],
    ids=lambda base: base.kind,
)
def test_any_ranker_can_be_bagged_and_saved(sets, base, tmp_path):
    train, _, test = sets
    bag = rg.BaggedRanker(base, 3).fit(train)
    bag.save(tmp_path / "bag.rg")
    back = rg.load(tmp_path / "bag.rg")
    np.testing.assert_array_equal(back.predict(test), bag.predict(test))
    assert back.get_params()["base"].get_params() == base.get_params()
    assert back.summary() == bag.summary()
    copy = pickle.loads(pickle.dumps(bag))
    np.testing.assert_array_equal(copy.predict(test), bag.predict(test))


def test_out_of_bag_scores(sets):
    train, valid, _ = sets
    bag = rg.BaggedRanker(BASE, 3, 0.6).fit(train, valid=valid)
    scores = train.grouped(bag.out_of_bag_scores_)
    seen = [sampled_queries(train.query_keys, 0.6, 0, m) for m in range(3)]
    unseen = ~np.isnan(scores[train.query_ptr[:-1]])
    np.testing.assert_array_equal(unseen, ~np.all(seen, axis=0))
    (q,) = np.flatnonzero(~seen[0] & seen[1] & seen[2])[:1]
    one = train.select([q])
    expected = aggregate([bag.models_[0].predict(one)], one.query_ptr, "minmax", np.ones(1))
    np.testing.assert_allclose(scores[train.query_ptr[q] : train.query_ptr[q + 1]], expected)
    assert 0.0 < bag.out_of_bag_ < 1.0
    assert rg.BaggedRanker(BASE, 2, 1.0).fit(train, valid=valid).out_of_bag_ is None


@pytest.mark.parametrize("combine", COMBINE)
def test_out_of_bag_scores_are_kept_in_the_callers_order(sets, combine, tmp_path):
    train, valid, _ = sets
    mixed = np.random.default_rng(0).permutation(train.n_rows)
    X, y, qid = train.X[mixed], train.y[mixed], train.qid[mixed]
    bag = rg.BaggedRanker(BASE, 3, 0.6, combine).fit(X, y, qid, valid=valid)
    data = rg.QueryDataset(X, y, qid)
    missed = [~sampled_queries(data.query_keys, 0.6, 0, m) for m in range(3)]
    expected = np.full(train.n_rows, np.nan)
    for q in range(data.n_queries):
        own = [bag.models_[m] for m in range(3) if missed[m][q]]
        if own:
            one = data.select([q])
            columns = [one.grouped(model.predict(one)) for model in own]
            scores = aggregate(columns, one.query_ptr, combine, np.ones(len(own)))
            rows = np.flatnonzero(np.asarray(qid) == one.qid[0])
            expected[rows] = one.ungrouped(scores)
    np.testing.assert_allclose(bag.out_of_bag_scores_, expected, rtol=1e-12)
    assert 0 < np.isnan(expected).sum() < train.n_rows
    serial = rg.BaggedRanker(BASE, 3, 0.6, combine, n_threads=1).fit(X, y, qid, valid=valid)
    np.testing.assert_array_equal(serial.out_of_bag_scores_, bag.out_of_bag_scores_)
    bag.save(tmp_path / "bag.rg")
    assert rg.load(tmp_path / "bag.rg").out_of_bag_scores_ is None
    small = rg.prune(bag, valid).ranker
    assert small.out_of_bag_scores_ is None
    assert small.out_of_bag_ is None
    every = rg.BaggedRanker(BASE, 2, 1.0).fit(train, valid=valid)
    assert np.isnan(every.out_of_bag_scores_).all()


def test_an_unlucky_sample_is_named():
    data = rg.make_web(6, n_docs=5, n_features=4, seed=1)
    y = np.where(data.qid == data.qid[0], np.arange(data.n_rows) % 2, 0)  # one query has an order
    train = rg.QueryDataset(data.X, y, data.qid)
    base = rg.LambdaMART("ndcg@10", n_trees=2, min_leaf=1)
    lucky = [sampled_queries(train.query_keys, 0.3, 0, m)[0] for m in range(10)]
    place = lucky.index(False) + 1
    message = (
        rf"^Model {place} of the bag, trained on 2 of 6 queries: No query has .* larger query_"
    )
    with pytest.raises(rg.DataError, match=message):
        rg.BaggedRanker(base, 10, 0.3).fit(train)
    nothing = rg.QueryDataset(data.X, np.zeros(data.n_rows), data.qid)
    with pytest.raises(rg.DataError, match=r"^No query has documents of different relevance"):
        rg.BaggedRanker(base, 2, 1.0).fit(nothing)
    with pytest.raises(rg.DataError, match=r"^Sample \d+ of 'a', trained on 2 of 6 queries: No "):
        rg.variance_analysis({"a": base}, train, train, query_fraction=0.3)


def test_overfitting_tolerance_keeps_more_trees(sets):
    train, valid, _ = sets
    best = rg.BaggedRanker(BASE, 3).fit(train, valid=valid)
    more = rg.BaggedRanker(BASE, 3, overfitting_tolerance=0.5).fit(train, valid=valid)
    for one, other in zip(best.models_, more.models_, strict=True):
        assert other.best_round_ == one.best_round_ == one.ensemble_.n_trees
        assert other.ensemble_.n_trees > one.ensemble_.n_trees
    assert more.n_trees_ > best.n_trees_


def test_an_interrupted_bag_goes_on(sets, tmp_path, monkeypatch):
    from rankgrove.rankers.ensembles import bagged

    train, valid, test = sets
    folder = tmp_path / "models"
    whole = rg.BaggedRanker(BASE, 3).fit(train, valid=valid)
    work, calls = bagged.train_one, []

    def stop_at_third(shared, task, n_threads):
        calls.append(task[0])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return work(shared, task, n_threads)

    monkeypatch.setattr(bagged, "train_one", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        rg.BaggedRanker(BASE, 3, checkpoint=folder).fit(train, valid=valid)
    done = rg.BaggedRanker(BASE, 3, checkpoint=folder).fit(train, valid=valid)
    assert calls == [0, 1, 2, 2]
    np.testing.assert_array_equal(done.predict(test), whole.predict(test))
    with pytest.raises(rg.DataError, match=r"another bag: there query_fraction was 0\.67"):
        rg.BaggedRanker(BASE, 3, 0.5, checkpoint=folder).fit(train, valid=valid)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(rg.DataError, match="empty folder"):
        rg.BaggedRanker(BASE, 3, checkpoint=tmp_path / "full").fit(train, valid=valid)
    with pytest.raises(rg.DataError, match="there the base's n_trees was 25, here it is 9"):
        rg.BaggedRanker(clone(BASE).set_params(n_trees=9), 3, checkpoint=folder).fit(
            train, valid=valid
        )
    (folder / "model-0001.rg").write_bytes(b"damaged")
    with pytest.raises(rg.ModelFileError, match="Remove it: it will be trained again"):
        rg.BaggedRanker(BASE, 3, checkpoint=folder).fit(train, valid=valid)
    assert json.loads((folder / "bag.json").read_text())["random_state"] == 0


def test_plain_features(sets):
    train, valid, test = sets
    bag = rg.BaggedRanker(BASE, 2).fit(train.X, train.y, train.qid, valid=valid)
    with pytest.raises(rg.DataError, match="give it a QueryDataset, or qid="):
        bag.predict(test.X)
    np.testing.assert_array_equal(bag.predict(test.X, qid=test.qid), bag.predict(test))
    plain = rg.BaggedRanker(BASE, 2, combine="mean").fit(train, valid=valid)
    np.testing.assert_array_equal(plain.predict(test.X), plain.predict(test))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base": None}, "'base' parameter of BaggedRanker must be a ranker to train"),
        ({"base": rg.CombinedRanker()}, "'base' parameter"),
        ({"base": rg.LambdaMART(n_trees=0)}, "'n_trees' parameter of LambdaMART"),
        ({"n_models": 0}, "'n_models' parameter of BaggedRanker must be"),
        ({"query_fraction": 1.5}, "'query_fraction' parameter of BaggedRanker"),
        ({"combine": "median"}, "'combine' parameter of BaggedRanker"),
        ({"base": rg.BaggedRanker(rg.LambdaMART())}, "A bag of bags is one bag"),
        ({"base": rg.SVMMap(), "overfitting_tolerance": 0.1}, "SVMMap has no such parameter"),
        ({"overfitting_tolerance": 0.02}, "needs validation data"),
    ],
)
def test_bad_parameters(sets, options, message):
    given = {"base": rg.LambdaMART(n_trees=2)} | options
    with pytest.raises(rg.ParameterError, match=message):
        rg.BaggedRanker(**given).fit(sets[0])


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"seed": 1}'])
def test_a_damaged_folder_is_refused(sets, tmp_path, content):
    train = sets[0]
    bag = rg.BaggedRanker(rg.LambdaMART(n_trees=1), n_models=1, checkpoint=tmp_path / "bag")
    bag.fit(train)
    (tmp_path / "bag" / "bag.json").write_bytes(content)
    with pytest.raises(rg.DataError, match=r"is damaged|belongs to another bag"):
        bag.fit(train)
