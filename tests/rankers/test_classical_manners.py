"""The manners of RankBoost, FRank, GBRank, AdaRank and RandomForest: what every ranker does."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import rankgrove as rg
from tests.rankers.interrupting import interrupted_fit

TREES = [rg.RankBoost, rg.FRank, rg.GBRank, rg.RandomForest]
ALL = [*TREES, rg.AdaRank]
GO_ON = [rg.RankBoost, rg.FRank, rg.GBRank]


def quick(kind, n=6, **options):
    more = {"n_leaves": 6} if kind in (rg.GBRank, rg.RandomForest) else {}
    return kind(**({"n_rounds" if kind is rg.AdaRank else "n_trees": n} | more | options))


@pytest.fixture(scope="module")
def train():
    return rg.make_web(40, n_docs=20, n_features=12, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(20, n_docs=20, n_features=12, seed=2)


@pytest.mark.parametrize("kind", ALL)
def test_saved_loaded_cloned_and_pickled(kind, train, valid, tmp_path):
    model = quick(kind, measure="map[relevant=2]").fit(train, valid=valid)
    model.save(tmp_path / "m.rg")
    for other in (rg.load(tmp_path / "m.rg"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(valid), model.predict(valid))
        assert other.history_ == model.history_
        assert other.best_round_ == model.best_round_
        assert other.summary() == model.summary()
        assert other.get_params() == model.get_params()
    again = clone(model).fit(train, valid=valid)
    np.testing.assert_array_equal(again.predict(valid), model.predict(valid))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_the_same_bits_for_any_threads_and_any_order_of_queries(kind):
    rng = np.random.default_rng(0)
    data = rg.make_web(80, n_docs=250, n_features=9, seed=3)  # enough for several pieces
    one, two = (quick(kind, n_threads=n).fit(data).predict(data) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    turn = np.concatenate(
        [np.arange(data.query_ptr[q], data.query_ptr[q + 1]) for q in rng.permutation(80)]
    )
    turned = rg.QueryDataset(data.X[turn], data.y[turn], data.qid[turn])
    options = {"scaling": None} if kind is rg.AdaRank else {}
    plain = quick(kind, **options).fit(data).predict(data)
    np.testing.assert_array_equal(quick(kind, **options).fit(turned).predict(turned), plain[turn])


@pytest.mark.parametrize("kind", ALL)
def test_validation_keeps_the_best_round_and_ends_training(kind, train, valid):
    model = quick(kind, 60, early_stopping=3)
    model.fit(train, valid={"v": valid, "t": train}, valid_measures=["p@3", "ndcg@10"])
    values = model.history_["v"]["p@3"]
    assert len(values) < 60
    assert model.best_round_ == int(np.argmax(values)) + 1
    value = rg.evaluate(model, valid, "p@3").mean["p@3"]
    assert value == pytest.approx(max(values), abs=1e-12)
    with pytest.raises(rg.ParameterError, match="early_stopping needs validation data"):
        quick(kind, early_stopping=3).fit(train)
    with pytest.raises(rg.ParameterError, match="valid_measures needs validation data"):
        quick(kind).fit(train, valid_measures="map")


@pytest.mark.parametrize("kind", ALL)
def test_callbacks_and_ctrl_c_keep_what_is_there(kind, train, valid):
    seen = []
    stopped = quick(kind).fit(train, callbacks=lambda p: seen.append(repr(p)) or p.round == 2)
    assert seen == ["Progress(round 1 of 6)", "Progress(round 2 of 6)"]
    two = quick(kind, 2).fit(train)
    np.testing.assert_array_equal(stopped.predict(valid), two.predict(valid))

    def interrupt(progress):
        if progress.round == 3:
            raise KeyboardInterrupt

    cut = interrupted_fit(quick(kind), train, callbacks=interrupt)
    assert cut.interrupted_
    np.testing.assert_array_equal(cut.predict(valid), quick(kind, 3).fit(train).predict(valid))


def test_the_bar_is_shown(train, capfd):
    for kind in ALL:
        quick(kind, progress=True).fit(train)
        assert kind.__name__ in capfd.readouterr().err


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_trees", 0),
        ("n_rounds", 1.5),
        ("n_thresholds", 0),
        ("n_thresholds", 255),
        ("spacing", "log"),
        ("even_queries", "yes"),
        ("tau", 0.0),
        ("tau", np.inf),
        ("sample", "documents"),
        ("sample_fraction", 1.1),
        ("feature_fraction", 0),
        ("tolerance", -1),
        ("most_in_a_row", 0),
        ("direction", "down"),
        ("scaling", "unit"),
        ("early_stopping", 0),
        ("n_threads", 0),
    ],
)
def test_bad_parameters_are_refused_by_name(kind, name, value, train, valid):
    if name not in kind().get_params():
        with pytest.raises(rg.UnknownParameterError, match=f"no parameter '{name}'"):
            kind(**{name: value})
        return
    with pytest.raises(rg.ParameterError, match=f"'{name}' parameter"):
        quick(kind, **{name: value}).fit(train, valid=valid)


@pytest.mark.parametrize("kind", TREES)
def test_an_interrupted_run_goes_on_from_its_checkpoint(kind, train, valid, tmp_path):
    path = tmp_path / "state"
    quick(kind, 4, checkpoint=path).fit(train, valid=valid)
    on = quick(kind, 9, checkpoint=path).fit(train, valid=valid)
    whole = quick(kind, 9).fit(train, valid=valid)
    assert on.history_ == whole.history_
    np.testing.assert_array_equal(on.predict(valid), whole.predict(valid))


def test_a_checkpoint_of_another_ranker_is_refused(train, tmp_path):
    same = {"even_queries": True, "n_thresholds": 10, "checkpoint": tmp_path / "state"}
    quick(rg.RankBoost, **same).fit(train)
    with pytest.raises(rg.DataError, match="ranker was 'rankboost'"):
        quick(rg.FRank, checkpoint=tmp_path / "state").fit(train)


@pytest.mark.parametrize("kind", GO_ON)
def test_going_on_from_a_submodel_is_never_having_stopped(kind, train, valid, tmp_path):
    first = quick(kind, 3).fit(train)
    on = quick(kind, 4, submodel=first).fit(train)
    if kind is rg.GBRank:  # begins to take means anew, with the submodel as h_0
        assert on.submodel_.ensemble_.n_trees == 3
    else:
        whole = quick(kind, 7).fit(train)
        np.testing.assert_allclose(on.predict(valid), whole.predict(valid), rtol=1e-12)
        np.testing.assert_allclose(on.flat_ensemble().value, whole.ensemble_.value, rtol=1e-12)
    on.save(tmp_path / "m.rg")
    np.testing.assert_array_equal(rg.load(tmp_path / "m.rg").predict(valid), on.predict(valid))
    base = rg.LambdaMART(n_trees=5).fit(train)
    better = quick(kind, 10, submodel=base).fit(train, valid=valid)
    assert better.best_round_ is not None
    assert better.start_values_["valid"]["ndcg@10"] <= max(
        [better.start_values_["valid"]["ndcg@10"], *better.history_["valid"]["ndcg@10"]]
    )


@pytest.mark.parametrize("kind", ALL)
def test_bags_combinations_and_searches_take_it(kind, train, valid):
    bag = rg.BaggedRanker(quick(kind), n_models=3).fit(train, valid=valid)
    assert np.isfinite(bag.predict(valid)).all()
    model, other = quick(kind).fit(train), rg.MART(n_trees=5).fit(train)
    both = rg.optimal_combination(model, other, valid, "ndcg@10")
    assert both.ranker.predict(valid).shape == (valid.n_rows,)
    name = "n_rounds" if kind is rg.AdaRank else "n_trees"
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(quick(kind), {name: [1, 5]}, cv=rg.QueryKFold(2))
        search.fit(np.asarray(train.X), train.y, qid=train.qid)
    assert search.best_params_[name] in (1, 5)


@pytest.mark.parametrize("kind", TREES)
def test_stumps_and_forests_are_pruned_as_all_trees_are(kind, train, valid):
    model = quick(kind, 12).fit(train)
    found = rg.prune(model, valid, "ndcg@10")
    assert np.isfinite(found.ranker.predict(valid)).all()


@pytest.mark.parametrize("kind", ALL)
def test_names_of_features_are_kept_and_checked(kind, train):
    names = [f"col{j}" for j in range(12)]
    named = rg.QueryDataset(train.X, train.y, train.qid, feature_names=names)
    model = quick(kind).fit(named)
    assert model.feature_names_ == tuple(names)
    other = rg.QueryDataset(train.X, train.y, train.qid, feature_names=names[::-1])
    with pytest.raises(rg.DataError, match="in another order"):
        model.predict(other)
    with pytest.raises(rg.DataError, match="in another order"):
        quick(kind).fit(named, valid=other)
    with pytest.raises(rg.DataError, match="the valid data has 3 features"):
        quick(kind).fit(train, valid=rg.make_web(5, n_docs=5, n_features=3, seed=1))


def test_adarank_scales_by_query(train, valid, tmp_path):
    for scaling in ("query", "percentile", "none", None):
        model = quick(rg.AdaRank, scaling=scaling).fit(train, valid=valid)
        value = rg.evaluate(model, valid, "ndcg@10").mean["ndcg@10"]
        assert value == max(model.history_["valid"]["ndcg@10"])
    model = quick(rg.AdaRank, scaling="query").fit(train)
    with pytest.raises(rg.DataError, match="needs the queries"):
        model.predict(train.X)
    np.testing.assert_array_equal(model.predict(train.X, qid=train.qid), model.predict(train))
