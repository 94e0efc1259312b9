"""ListNet, CoordinateAscent, RankSVM, SmoothRank and CRR as their user sees them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankgrove as rg
from tests.rankers.interrupting import interrupted_fit

SMALL = {
    rg.ListNet: {"n_epochs": 5, "learning_rate": 0.01, "schedule": "constant"},
    rg.CoordinateAscent: {"n_restarts": 2, "n_iterations": 2},
    rg.RankSVM: {"C": 3.0},
    rg.SmoothRank: {"sigma": (8.0, 0.5), "n_steps": 5},
    rg.CRR: {"n_epochs": 5, "learning_rate": 0.01},
}
EVERY = list(SMALL)
ROUNDS = [rg.CoordinateAscent, rg.SmoothRank, rg.CRR]  # linear, and trained by rounds
LINEAR = [*ROUNDS, rg.RankSVM]


@pytest.fixture(scope="module")
def train():
    return rg.make_web(40, n_docs=20, n_features=8, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(25, n_docs=20, n_features=8, seed=2)


def made(ranker, **options):
    return ranker(**(SMALL[ranker] | options))


def mean(model, data, measure="ndcg@10"):
    return rg.evaluate(model, data, measure).mean[measure]


# -- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", EVERY)
def test_learning_raises_the_measure(train, ranker):
    model = made(ranker).fit(train)
    assert mean(model, train) > mean(np.zeros(train.n_rows), train) + 0.1
    assert model.score(train) == mean(model, train)


@pytest.mark.slow
@pytest.mark.parametrize("ranker", EVERY)
def test_same_bits_for_any_number_of_threads(ranker):
    large = rg.make_web(500, n_docs=50, n_features=8, seed=3)  # enough for a second thread
    options = {rg.CoordinateAscent: {"n_restarts": 1, "n_iterations": 1}}.get(ranker, {})
    one, two = (made(ranker, n_threads=n, **options).fit(large) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(large), two.predict(large, n_threads=1))


@pytest.mark.slow
@pytest.mark.parametrize("ranker", LINEAR)
@pytest.mark.parametrize("scaling", ["standard", "query", "percentile", None])
def test_every_scaling(train, valid, ranker, scaling):
    model = made(ranker, scaling=scaling).fit(train)
    scores = model.predict(valid)
    assert np.isfinite(scores).all()
    assert model.linear_.scaling == (scaling or "none")
    rows = np.random.default_rng(0).permutation(valid.n_rows)
    shuffled = rg.QueryDataset(valid.X[rows], valid.y[rows], valid.qid[rows])
    np.testing.assert_array_equal(model.predict(shuffled), scores[rows])
    if scaling in ("query", "percentile"):
        np.testing.assert_array_equal(model.predict(valid.X, qid=valid.qid), scores)
        with pytest.raises(rg.DataError, match="needs the queries"):
            model.predict(valid.X)


@pytest.mark.parametrize("ranker", EVERY)
def test_sparse_features_learn_the_same(train, valid, ranker):
    options = {} if ranker is rg.ListNet else {"scaling": "query"}
    dense = made(ranker, **options).fit(train).predict(valid)
    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(train.X), train.y, train.qid)
    model = made(ranker, **options).fit(sparse)
    for data in (valid, rg.QueryDataset(scipy.sparse.csr_matrix(valid.X), valid.y, valid.qid)):
        np.testing.assert_allclose(model.predict(data), dense, atol=1e-4)
    if ranker is not rg.ListNet:  # only divided: no order hangs on a shift
        assert mean(made(ranker).fit(sparse), train) > mean(np.zeros(train.n_rows), train) + 0.1


def test_the_training_measure_never_falls_within_a_restart(train, valid):
    seen = []
    for search in ("exact", "steps"):
        model = rg.CoordinateAscent("ndcg@5", search, n_restarts=3, tolerance=0.0)
        model.fit(train, valid={"same": train, "other": valid}, callbacks=lambda p: seen.append(p))
        assert model.objective_ == model.history_["same"]["ndcg@5"]
        falls = [k for k in range(1, model.n_rounds_) if np.diff(model.objective_)[k - 1] < 0]
        assert len(falls) <= 2  # where another restart begins
        assert mean(model, train, "ndcg@5") == max(model.objective_)
        assert np.abs(model.coef_).sum() == pytest.approx(1.0)
        alone = rg.CoordinateAscent("ndcg@5", search, n_restarts=3, tolerance=0.0).fit(train)
        np.testing.assert_array_equal(alone.coef_, model.coef_)  # the best on training data, too
    assert seen[0].linear is not None


def test_the_exact_search_of_one_pass_beats_steps(train):
    exact, steps = (
        rg.CoordinateAscent("map", search, n_restarts=1, n_iterations=1).fit(train).objective_[0]
        for search in ("exact", "steps")
    )
    assert exact >= steps


@pytest.mark.parametrize("measure", ["map", "err", "mrr", "p@3", "auc", "accuracy"])
def test_coordinate_ascent_takes_any_measure(train, measure):
    few = train.select(np.arange(8))
    model = made(rg.CoordinateAscent, measure=measure, n_restarts=1).fit(few)
    assert mean(model, few, measure) == max(model.objective_)
    assert mean(model, few, measure) > mean(np.zeros(few.n_rows), few, measure)


@pytest.mark.slow
def test_coordinate_ascent_takes_a_users_own_measure(train):
    few = train.select(np.arange(8))
    rg.register_measure("linear_top", lambda labels, k: (labels[:k] >= 2).mean())
    own = made(rg.CoordinateAscent, measure="linear_top@3").fit(few)
    same = made(rg.CoordinateAscent, measure=rg.measure("p@3", relevant=2, empty=0.0)).fit(few)
    assert max(own.objective_) == pytest.approx(max(same.objective_))


def test_smoothrank_begins_with_the_regression_and_climbs(train):
    model = rg.SmoothRank("ndcg", sigma=(1.0, 0.25), l2=0.0).fit(train, valid=train)
    X = train.grouped(np.asarray(train.X, np.float64))
    gain = 2.0 ** train.grouped(train.y) - 1
    fit = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), gain, rcond=None)[0]
    scores = train.ungrouped(X @ fit[:-1])
    assert model.history_["valid"]["ndcg"][0] == pytest.approx(
        mean(scores, train, "ndcg"), abs=1e-3
    )
    assert model.n_rounds_ == 4  # the regression, then sigma 1, 1/2 and 1/4
    assert model.objective_[1] > model.objective_[0]
    held = rg.SmoothRank("ndcg", sigma=(1.0, 0.25), l2=1e6).fit(train)
    first = rg.SmoothRank("ndcg", sigma=(1.0, 0.25)).fit(train, callbacks=lambda p: True)
    np.testing.assert_allclose(held.coef_, first.coef_, atol=1e-4)


def test_crr_scores_are_labels(train):
    model = rg.CRR(alpha=1.0, n_epochs=60).fit(train)
    assert model.predict(train).mean() == pytest.approx(train.y.mean(), abs=0.1)
    X = np.column_stack([np.asarray(train.X, np.float64), np.ones(train.n_rows)])
    best = X @ np.linalg.lstsq(X, train.y, rcond=None)[0]
    found, most = (np.corrcoef(scores, train.y)[0, 1] for scores in (model.predict(train), best))
    assert found > 0.9 * most


def test_ranksvm_has_its_certificate_and_every_c(train, valid):
    model = rg.RankSVM(C=[0.1, 1.0, 10.0]).fit(train, valid=valid)
    assert [one["C"] for one in model.solutions_] == [0.1, 1.0, 10.0]
    assert len(model.history_["valid"]["ndcg@10"]) == 3
    for one in model.solutions_:
        assert one["status"] == "converged"
        assert -1e-12 <= one["gap"] <= 1.1 * one["C"] * model.epsilon
    steps = rg.RankSVM(thresholds=10, pairs="query").fit(train)
    assert steps.linear_.has_thresholds
    assert mean(steps, train) > mean(np.zeros(train.n_rows), train) + 0.1
    assert rg.RankSVM(max_iterations=2).fit(train).solution_["status"] == "iteration limit"


# -- validation, callbacks, Ctrl-C ---------------------------------------------------------------


@pytest.mark.parametrize("ranker", ROUNDS)
def test_validation_keeps_the_best_round(train, valid, ranker):
    model = made(ranker).fit(train, valid=valid, valid_measures=["ndcg@5", "map"])
    values = model.history_["valid"]["ndcg@5"]
    assert len(values) == len(model.history_["valid"]["map"]) == model.n_rounds_
    assert model.best_round_ == int(np.argmax(values)) + 1
    assert mean(model, valid, "ndcg@5") == max(values)
    assert f"valid ndcg@5: {max(values):.4f} after round {model.best_round_}" in model.summary()
    assert made(ranker).fit(train).best_round_ is None


@pytest.mark.parametrize("ranker", [rg.SmoothRank, rg.CRR, rg.ListNet])
def test_early_stopping(train, valid, ranker):
    more = {rg.SmoothRank: {"sigma": (1e6, 1e-6), "l2": 100.0}}.get(ranker, {"n_epochs": 500})
    model = made(ranker, early_stopping=2, **more).fit(train, valid=valid)
    (values,) = model.history_["valid"].values()
    assert len(values) == int(np.argmax(values)) + 3
    with pytest.raises(rg.ParameterError, match="early_stopping needs validation data"):
        made(ranker, early_stopping=2).fit(train)


@pytest.mark.parametrize("ranker", [*ROUNDS, rg.ListNet])
def test_a_callback_ends_training_and_ctrl_c_keeps_what_is_there(train, ranker):
    ended = made(ranker).fit(train, callbacks=lambda p: p.round == 2)
    rounds = []

    def press(progress):
        rounds.append(progress.round)
        if progress.round == 2:
            raise KeyboardInterrupt

    cut = interrupted_fit(made(ranker), train, callbacks=press)
    assert rounds == [1, 2]
    assert cut.interrupted_
    assert not ended.interrupted_
    if ranker is not rg.ListNet:  # whose epoch counts once all callbacks have seen it
        np.testing.assert_array_equal(cut.predict(train), ended.predict(train))

    def at_once(progress):
        raise KeyboardInterrupt

    if ranker in ROUNDS:
        assert interrupted_fit(made(ranker), train, callbacks=at_once).n_rounds_ == 1


@pytest.mark.parametrize("ranker", ROUNDS)
def test_ctrl_c_before_the_first_round_is_passed_on(train, ranker, monkeypatch):
    def interrupted(self, data):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(ranker, "_rounds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made(ranker).fit(train)


# -- manners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", EVERY)
def test_clone_pickle_and_the_model_file(train, valid, ranker, tmp_path):
    names = [f"bm{i}" for i in range(8)]
    named = rg.QueryDataset(train.X, train.y, train.qid, feature_names=names)
    valid = rg.QueryDataset(valid.X, valid.y, valid.qid, feature_names=names)
    model = made(ranker, n_threads=1).fit(named, valid=valid)
    model.save(tmp_path / "m.rg")
    for back in (rg.load(tmp_path / "m.rg"), pickle.loads(pickle.dumps(model))):
        assert type(back) is ranker
        np.testing.assert_array_equal(back.predict(valid), model.predict(valid))
        assert back.history_ == model.history_
        assert back.summary() == model.summary()
        assert back.feature_names_ == tuple(names)
        assert {k: v for k, v in back.get_params().items() if k != "n_threads"} == {
            k: v for k, v in model.get_params().items() if k != "n_threads"
        }
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "n_features_in_")
    assert ranker.__name__ in model.summary()


@pytest.mark.slow
@pytest.mark.parametrize("ranker", EVERY)
def test_searches_bags_and_combinations(train, valid, ranker):
    X, y, qid = np.asarray(train.X), train.y, train.qid
    name, values = {
        rg.ListNet: ("l2", [0.0, 0.1]),
        rg.CoordinateAscent: ("n_iterations", [1, 2]),
        rg.RankSVM: ("C", [0.1, 1.0]),
        rg.SmoothRank: ("l2", [0.1, 0.001]),
        rg.CRR: ("alpha", [0.0, 1.0]),
    }[ranker]
    with sklearn.config_context(enable_metadata_routing=True):
        found = GridSearchCV(made(ranker), {name: values}, cv=rg.QueryKFold(2)).fit(X, y, qid=qid)
        assert found.best_params_[name] in values
        scores = cross_val_score(
            made(ranker), X, y, cv=rg.QueryKFold(2), params={"qid": qid}, error_score="raise"
        )
    assert np.isfinite(scores).all()
    bag = rg.BaggedRanker(made(ranker), 2).fit(train)
    assert mean(bag, train) > mean(np.zeros(train.n_rows), train) + 0.05
    both = rg.optimal_combination(made(ranker).fit(train), bag, valid, "ndcg@10")
    assert np.isfinite(both.predict(valid)).all()


@pytest.mark.parametrize("ranker", EVERY)
def test_missing_values_and_constant_features(train, ranker):
    X = np.array(train.X)
    X[::3, 0] = np.nan
    X[:, 1] = 7.0
    holes = rg.QueryDataset(X, train.y, train.qid)
    model = made(ranker).fit(holes)
    assert np.isfinite(model.predict(holes)).all()
    if ranker is not rg.ListNet:
        assert model.coef_[1] == 0.0
    X[0, 2] = np.inf
    with pytest.raises(rg.DataError, match="infinite"):
        made(ranker).fit(rg.QueryDataset(X, train.y, train.qid))


@pytest.mark.parametrize("ranker", EVERY)
def test_data_that_says_nothing_is_refused(train, ranker):
    equal = rg.QueryDataset(train.X, np.ones(train.n_rows), train.qid)
    with pytest.raises(rg.DataError, match=r"documents of different labels|all labels are equal"):
        made(ranker).fit(equal)
    flat = rg.QueryDataset(np.ones((train.n_rows, 2)), train.y, train.qid)
    if ranker is rg.RankSVM:  # its bound is then best at 0, and it says so
        assert not made(ranker).fit(flat).coef_.any()
    else:
        with pytest.raises(rg.DataError, match="same value in all rows"):
            made(ranker).fit(flat)
    weighted = rg.QueryDataset(train.X, train.y, train.qid, weight=np.ones(train.n_rows))
    with pytest.raises(rg.DataError, match="weights of rows"):
        made(ranker).fit(weighted)


@pytest.mark.parametrize("ranker", EVERY)
def test_weights_of_queries_count_or_are_refused(train, ranker):
    weight = np.where(np.arange(train.n_queries) % 2, 1.0, 20.0)
    uneven = rg.QueryDataset(train.X, train.y, train.qid, query_weight=weight)
    if ranker is rg.CoordinateAscent:
        with pytest.raises(rg.DataError, match=r"gives all queries the same weight.*query_weight"):
            made(ranker).fit(uneven)
    else:
        found = [made(ranker).fit(data).predict(train) for data in (train, uneven)]
        assert not np.array_equal(*found)


@pytest.mark.parametrize("ranker", [rg.CoordinateAscent, rg.SmoothRank])
def test_features_of_queries_alone_are_refused(train, ranker):
    by_query = np.unique(train.qid, return_inverse=True)[1].astype(np.float32)[:, None]
    data = rg.QueryDataset(by_query, train.y, train.qid)
    with pytest.raises(rg.DataError, match="no feature tells any two documents"):
        made(ranker).fit(data)
    options = {"measure": "p@3[relevant=9]"}
    with pytest.raises(rg.DataError, match=r"[Nn]o order changes p@3"):
        made(ranker, **options).fit(train)


@pytest.mark.parametrize("ranker", EVERY)
def test_one_query_and_queries_of_one_document(ranker):
    X = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [5.0, 5.0]]
    data = rg.QueryDataset(X, [0, 1, 2, 1], [1, 1, 1, 2])
    model = made(ranker).fit(data)
    assert np.isfinite(model.predict(data)).all()
    assert mean(model, data, "pairs") >= 0.5


BAD = [
    (rg.ListNet, {"n_epochs": 0}, "n_epochs"),
    (rg.ListNet, {"measure": "ndgc"}, "ndgc"),
    (rg.CoordinateAscent, {"search": "step"}, "search.*did you mean 'steps'"),
    (rg.CoordinateAscent, {"n_restarts": 0}, "n_restarts"),
    (rg.CoordinateAscent, {"n_iterations": 1.5}, "n_iterations"),
    (rg.CoordinateAscent, {"tolerance": -1}, "tolerance"),
    (rg.CoordinateAscent, {"measure": "nothing"}, "nothing"),
    (rg.CoordinateAscent, {"random_state": -1}, "random_state"),
    (rg.RankSVM, {"pairs": "queries"}, "pairs.*did you mean 'query'"),
    (rg.RankSVM, {"C": 0}, "'C' parameter"),
    (rg.RankSVM, {"epsilon": 0}, "epsilon"),
    (rg.SmoothRank, {"sigma": 3}, "sigma"),
    (rg.SmoothRank, {"sigma": (1, 2)}, "sigma.*larger one first"),
    (rg.SmoothRank, {"l2": -1}, "l2"),
    (rg.SmoothRank, {"n_steps": 0}, "n_steps"),
    (rg.SmoothRank, {"measure": "err"}, "err is none of them"),
    (rg.CRR, {"alpha": 1.1}, "alpha"),
    (rg.CRR, {"loss": "hinge"}, "loss"),
    (rg.CRR, {"pairs": "some"}, "pairs"),
    (rg.CRR, {"learning_rate": 0}, "learning_rate"),
    (rg.CRR, {"early_stopping": 0}, "early_stopping"),
    (rg.CRR, {"scaling": "z"}, "scaling"),
]


@pytest.mark.parametrize(("ranker", "options", "message"), BAD, ids=str)
def test_bad_parameters_are_refused(train, ranker, options, message):
    with pytest.raises(rg.RankgroveError, match=message):
        ranker(**options).fit(train)


@pytest.mark.parametrize("ranker", EVERY)
def test_other_data_is_refused(train, valid, ranker):
    fewer = rg.QueryDataset(np.asarray(valid.X)[:, :5], valid.y, valid.qid)
    with pytest.raises(rg.DataError, match="5 features, the training data 8"):
        made(ranker).fit(train, valid=fewer)
    with pytest.raises(rg.DataError, match="is expecting 8 features"):
        made(ranker).fit(train).predict(fewer)
    nothing = rg.QueryDataset(valid.X, np.zeros(valid.n_rows), valid.qid)
    with pytest.raises(rg.DataError, match="leaves out every query of the valid data"):
        made(ranker).fit(train, valid=nothing)
    with pytest.raises(rg.ParameterError, match="valid_measures needs validation data"):
        made(ranker).fit(train, valid_measures="p@3")
    with pytest.raises(rg.DataError, match=r"rg\.read_letor\('train\.txt'\)"):
        made(ranker).fit("train.txt")
    with pytest.raises(rg.UnknownParameterError, match="has no parameter 'progres'"):
        ranker(progres=True)


def test_a_listnet_starts_from_another_net_and_goes_on_from_a_checkpoint(train, tmp_path):
    first = rg.RankNet(hidden=(), n_epochs=3).fit(train)
    model = made(rg.ListNet, n_epochs=1, learning_rate=1e-12).fit(train, start=first)
    np.testing.assert_allclose(model.predict(train), first.predict(train), atol=1e-6)
    whole = made(rg.ListNet, n_epochs=6, hidden=(4,)).fit(train)
    made(rg.ListNet, n_epochs=3, hidden=(4,), checkpoint=tmp_path / "state").fit(train)
    rest = made(rg.ListNet, n_epochs=6, hidden=(4,), checkpoint=tmp_path / "state").fit(train)
    np.testing.assert_array_equal(whole.predict(train), rest.predict(train))


def test_local_optima_of_what_was_learned(train):
    found = rg.check_local_optimum(made(rg.SmoothRank).fit(train), train, p0=0.2, coordinates=2)
    assert found.n_directions > 10
