"""What every ranker does for its caller: names of parameters, weights, callbacks, checkpoints."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankgrove as rg
from rankgrove.rankers.base import Ranker

SMALL = {"n_trees": 4, "n_leaves": 5, "min_leaf": 3}


@pytest.fixture(scope="module")
def train():
    return rg.make_artificial(40, n_docs=12, n_features=6, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_artificial(20, n_docs=12, n_features=6, seed=2)


def same_model(a, b):
    for name, array in a.ensemble_.to_arrays().items():
        np.testing.assert_array_equal(array, b.ensemble_.to_arrays()[name], err_msg=name)


# -- names of parameters ------------------------------------------------------------------------


def test_an_unknown_parameter_is_refused_with_the_nearest_name():
    message = (
        r"^LambdaMART has no parameter 'n_tree' \(did you mean 'n_trees'\?\)\. It has: .*n_leav"
    )
    with pytest.raises(TypeError, match=message) as caught:
        rg.LambdaMART(n_tree=3)
    assert isinstance(caught.value, rg.UnknownParameterError)
    assert isinstance(caught.value, rg.ParameterError)
    with pytest.raises(rg.UnknownParameterError, match=message):
        rg.LambdaMART().set_params(n_tree=3)
    with pytest.raises(rg.UnknownParameterError, match=r"no parameter 'zzz'\. It has"):
        rg.LambdaMART("map", zzz=1)


def test_the_constructor_is_what_it_was():
    parameters = inspect.signature(rg.LambdaMART).parameters
    assert list(parameters)[:3] == ["measure", "n_trees", "n_leaves"]
    assert set(rg.LambdaMART().get_params()) == set(parameters)
    model = rg.LambdaMART("map", 7, l2=0.5)
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()
        assert (copy.measure, copy.n_trees, copy.l2) == ("map", 7, 0.5)


def test_a_users_own_subclass():
    class Renamed(rg.LambdaMART):
        pass

    class Fixed(Ranker):
        def __init__(self, depth=3):
            self.depth = depth

    class Open(rg.LambdaMART):
        def __init__(self, extra=1, **others):
            super().__init__(**others)
            self.extra = extra

    with pytest.raises(rg.UnknownParameterError, match="Renamed has no parameter 'n_tree'"):
        Renamed(n_tree=3)
    with pytest.raises(rg.UnknownParameterError, match="did you mean 'depth'"):
        Fixed(dept=3)
    assert Fixed(depth=4).depth == 4
    assert Open(n_trees=3).n_trees == 3


# -- weights ------------------------------------------------------------------------------------


def test_sample_weight_is_weight(train):
    X, y, qid = np.asarray(train.X), train.y, train.qid
    weight = np.random.default_rng(0).uniform(0.1, 3, y.size)
    a = rg.LambdaMART(**SMALL).fit(X, y, qid=qid, weight=weight)
    b = rg.LambdaMART(**SMALL).fit(X, y, qid=qid, sample_weight=weight)
    same_model(a, b)
    plain = rg.LambdaMART(**SMALL).fit(X, y, qid=qid)
    assert not np.array_equal(plain.ensemble_.value, a.ensemble_.value)
    with pytest.raises(rg.ParameterError, match="weight and sample_weight are the same thing"):
        rg.LambdaMART(**SMALL).fit(X, y, qid=qid, weight=weight, sample_weight=weight)
    with pytest.raises(rg.DataError, match="its own labels, query ids, weights"):
        rg.LambdaMART(**SMALL).fit(train, sample_weight=weight)
    assert a.score(X, y, qid, sample_weight=weight) == a.score(X, y, qid)


@pytest.mark.parametrize("name", ["weight", "sample_weight"])
def test_weights_are_routed(train, name):
    X, y, qid = np.asarray(train.X), train.y, train.qid
    weight = np.random.default_rng(0).uniform(0.1, 3, y.size)
    by_query = {q: 1.0 + (q % 3) for q in train.query_ids.tolist()}
    direct = rg.LambdaMART(**SMALL).fit(X, y, qid=qid, weight=weight, query_weight=by_query)
    given = {"qid": qid, name: weight, "query_weight": by_query}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(rg.LambdaMART(**SMALL), {"n_leaves": [5]}, cv=rg.QueryKFold(3))
        same_model(search.fit(X, y, **given).best_estimator_, direct)
        values = cross_val_score(
            rg.LambdaMART(**SMALL), X, y, cv=rg.QueryKFold(3), params=given, error_score="raise"
        )
    assert np.isfinite(values).all()


# -- callbacks ----------------------------------------------------------------------------------


LOOKED_AT = [
    *(rg.LambdaMART, rg.MART, rg.LambdaRank, rg.SVMMap, rg.SVMAcc),
    *(rg.ListNet, rg.BoltzRank, rg.CoordinateAscent, rg.RankSVM, rg.SmoothRank, rg.CRR),
]


@pytest.mark.parametrize("kind", LOOKED_AT)
def test_what_cannot_be_looked_at_or_is_no_data_is_refused(train, kind):
    with pytest.raises(rg.ParameterError, match="valid_measures needs validation data"):
        kind().fit(train, valid_measures="p@3")
    with pytest.raises(rg.DataError, match=r"fit takes data.*rg\.read_letor\('train\.txt'\)"):
        kind().fit("train.txt")
    with pytest.raises(rg.DataError, match=r"rg\.read_letor\('vali\.txt'\)"):
        kind().fit(train, valid="vali.txt")


def test_callbacks_are_none_one_or_several(train, valid):
    plain = rg.LambdaMART(**SMALL).fit(train, callbacks=None)
    seen = []
    one = rg.LambdaMART(**SMALL).fit(train, callbacks=lambda p: seen.append(p.round))
    assert seen == [1, 2, 3, 4]
    same_model(plain, one)
    two = rg.LambdaMART(**SMALL).fit(train, callbacks=(c for c in [lambda p: p.round == 2, print]))
    assert two.ensemble_.n_trees == 2
    for bad in (3, [print, "log"], "log"):
        with pytest.raises(rg.ParameterError, match=r"'callbacks' parameter of LambdaMART\.fit"):
            rg.LambdaMART(**SMALL).fit(train, callbacks=bad)


def test_progress_shows_itself_in_one_line(train, valid):
    shown = []
    model = rg.LambdaMART(**SMALL)
    model.fit(train, callbacks=lambda p: shown.append(repr(p)))
    assert shown[1] == "Progress(round 2 of 4)"
    model.fit(train, valid={"vali": valid}, callbacks=lambda p: shown.append(str(p)))
    value = model.history_["vali"]["ndcg@10"][-1]
    assert shown[-1] == f"Progress(round 4 of 4, vali ndcg@10 {value:.4f})"


# -- checkpoints --------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [3, "", True, b"state", ".", "nowhere/state"], ids=repr)
def test_a_checkpoint_that_cannot_be_written_is_refused_before_any_work(bad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rg.ParameterError, match="'checkpoint' parameter of LambdaMART must be"):
        rg.LambdaMART(checkpoint=bad).fit("no data")


def test_a_search_with_one_checkpoint_says_what_to_do(train, tmp_path):
    X, y, qid = np.asarray(train.X), train.y, train.qid
    model = rg.LambdaMART(**SMALL, checkpoint=tmp_path / "state")
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(rg.DataError, match=r"training data was .* or give this run another one"),
    ):
        cross_val_score(model, X, y, cv=rg.QueryKFold(2), params={"qid": qid}, error_score="raise")


def test_a_checkpoint_knows_its_validation_sets_by_name_and_order(train, valid, tmp_path):
    options = SMALL | {"checkpoint": tmp_path / "state"}
    sets = {"training": valid, "other": train}
    rg.LambdaMART(**options).fit(train, valid=sets)
    rg.LambdaMART(**options).fit(train, valid=sets)
    with pytest.raises(rg.DataError, match="training data was"):
        rg.LambdaMART(**options).fit(valid, valid=sets)
    with pytest.raises(rg.DataError, match="validation data was"):
        rg.LambdaMART(**options).fit(train, valid=dict(reversed(sets.items())))


# -- cutting and describing ---------------------------------------------------------------------


@pytest.mark.parametrize("bad", [2.5, "3", True, None], ids=repr)
def test_a_model_is_cut_to_a_whole_number_of_trees(train, bad):
    model = rg.LambdaMART(**SMALL).fit(train)
    with pytest.raises(rg.ParameterError, match="'n_trees' parameter of truncated"):
        model.truncated(bad)
    assert model.truncated(np.int64(2)).ensemble_.n_trees == 2


def test_the_summary_counts_and_speaks_of_the_trees_it_has(train, valid):
    model = rg.LambdaMART(**SMALL).fit(train, valid=valid)
    text = model.truncated(1).summary()
    assert "1 tree, 5 leaves, 6 features" in text
    assert f"valid ndcg@10: {model.history_['valid']['ndcg@10'][0]:.4f} after 1 tree\n" in text
    assert "after" not in model.truncated(0).summary()
    assert model.truncated(0).summary().startswith("LambdaMART for ndcg@10: 0 trees, 0 leaves")
    with pytest.raises(rg.DataError, match=r"has 1 tree\. Got n_trees=2"):
        model.truncated(1).truncated(2)


@pytest.mark.parametrize(
    "ranker",
    [
        rg.LambdaMART("ndcg@5", **SMALL),
        rg.AdaRank("ndcg@5", n_rounds=2),
        rg.SVMRoc(C=1.0),
        rg.RankNet(hidden=(), n_epochs=1),
        rg.BaggedRanker(rg.LambdaMART("ndcg@5", **SMALL), n_models=2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_names_of_features_are_those_of_the_last_training(ranker, train):
    names = [f"feature {j}" for j in range(train.n_features)]
    named = rg.QueryDataset(train.X, train.y, train.qid, feature_names=names)
    model = clone(ranker).fit(named)
    assert model.feature_names_ == tuple(names)
    model.fit(train)
    assert not hasattr(model, "feature_names_")
    model.predict(rg.QueryDataset(train.X, train.y, train.qid, feature_names=names[::-1]))
