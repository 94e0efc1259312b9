"""The SVMs as their user sees them: same bits, every form of data, choice of C, limits, manners."""

from __future__ import annotations

import pickle
import signal

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC

import rankgrove as rg
from rankgrove.rankers.base import KINDS
from tests.rankers.interrupting import interrupted_fit

STRUCTURAL = [rg.SVMMap, rg.SVMRoc, rg.SVMMrr, rg.SVMNdcg]
EVERY = [*STRUCTURAL, rg.SVMAcc]
OPTIONS = [
    {},
    {"scaling": "query"},
    {"scaling": "percentile"},
    {"scaling": None, "C": 1e-4},
    {"thresholds": 10},
    {"thresholds": 10, "scaling": "query"},
    {"thresholds": 10, "scaling": "percentile"},
]


@pytest.fixture(scope="module")
def train():
    return rg.make_web(40, n_docs=20, n_features=12, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(25, n_docs=20, n_features=12, seed=2)


def as_sparse(data):
    return rg.QueryDataset(scipy.sparse.csr_matrix(data.X), data.y, data.qid)


def scattered(data, seed=0):
    """Return the data with queries in another order, rows all over the file, and the rows."""
    rows = np.random.default_rng(seed).permutation(data.n_rows)
    return rg.QueryDataset(data.X[rows], data.y[rows], data.qid[rows]), rows


# -- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", EVERY)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_bits_for_any_number_of_threads_and_order_of_rows(train, valid, ranker, options):
    options = {"relevant": 2} | options
    one = ranker(**options, n_threads=1).fit(train)
    two = ranker(**options, n_threads=2).fit(train)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    scores = one.predict(valid)
    np.testing.assert_array_equal(scores, one.predict(valid, n_threads=2))
    # the caller's row order, in training and in prediction
    shuffled, rows = scattered(valid)
    np.testing.assert_array_equal(one.predict(shuffled), scores[rows])
    np.testing.assert_array_equal(one.predict(valid.X, **_qid(one, valid)), scores)
    view = valid.select([4, 2])
    whole = np.concatenate([scores[valid.qid == view.query_ids[k]] for k in (0, 1)])
    np.testing.assert_array_equal(one.predict(view), whole)


@pytest.mark.parametrize("ranker", EVERY)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sparse_features_make_the_same_model(train, valid, ranker, options):
    if ranker is rg.SVMAcc and not options:
        pytest.skip("not shifting sparse features changes what the intercept costs")
    fine = {"tolerance": 1e-8} if ranker is rg.SVMAcc else {"epsilon": 1e-8}
    options = {"relevant": 2} | fine | options
    dense = ranker(**options).fit(train).predict(valid)
    sparse = ranker(**options).fit(as_sparse(train))
    for data in (valid, as_sparse(valid)):
        scores = sparse.predict(data)
        # the same but for a shift, that no order sees
        np.testing.assert_allclose(scores - scores[0], dense - dense[0], atol=5e-3)


def _qid(model, data):
    by_query = model.linear_.scaling in ("query", "percentile")
    return {"qid": data.qid} if by_query else {}


@pytest.mark.parametrize("ranker", EVERY)
def test_learning_raises_the_measure(train, ranker):
    model = ranker(C=3.0, relevant=2).fit(train)
    start = rg.evaluate(np.zeros(train.n_rows), train, "map[relevant=2]").mean["map[relevant=2]"]
    assert rg.evaluate(model, train, "map[relevant=2]").mean["map[relevant=2]"] > start + 0.1
    assert model.score(train) == rg.evaluate(model, train, model.measure).mean[str(model.measure)]


@pytest.mark.parametrize("ranker", STRUCTURAL)
def test_the_slack_bounds_the_loss_and_the_gap_is_small(train, ranker):
    model = ranker(relevant=1, C=10.0).fit(train)
    found = model.solution_
    measure = {"svm-ndcg": "map"}.get(model.kind, str(model.measure))
    if model.kind != "svm-ndcg":
        assert found["slack"] >= 1 - rg.evaluate(model, train, measure).mean[measure] - 1e-9
    assert found["status"] == "converged"
    assert 0 <= found["gap"] <= 1.1 * 10.0 * model.epsilon
    assert found["objective"] - found["dual"] == pytest.approx(found["gap"])
    norm = 0.5 * model.coef_ @ model.coef_
    assert found["objective"] == pytest.approx(norm + 10.0 * found["slack"])
    assert set(model.seconds_) == {"all", "oracle", "qp"}


def test_both_forms_learn_the_same(train, valid):
    one = rg.SVMMap(relevant=2, epsilon=1e-4).fit(train)
    many = rg.SVMMap(relevant=2, epsilon=1e-4, form="n-slack").fit(train)
    assert one.solution_["objective"] == pytest.approx(many.solution_["objective"], abs=2e-4)
    np.testing.assert_allclose(one.predict(valid), many.predict(valid), atol=0.1)


def test_thresholds_inside_are_the_transformer_outside(train, valid):
    inside = rg.SVMMap(thresholds=8, relevant=2).fit(train)
    steps = rg.ThresholdFeatures(8).fit(train.X)
    made = steps.transform_dataset(train)
    outside = rg.SVMMap(scaling=None, relevant=2).fit(made)
    assert outside.linear_.weights.size == inside.linear_.weights.size
    assert inside.solution_["objective"] == pytest.approx(
        outside.solution_["objective"], abs=1.1e-3
    )
    scores = inside.predict(valid)
    np.testing.assert_allclose(steps.transform(valid) @ inside.coef_, scores, atol=1e-9)
    # per base function: thresholds and weights, Figure 2's form
    for (thresholds, weights), own in zip(
        inside.linear_.by_feature(), steps.thresholds_, strict=True
    ):
        np.testing.assert_array_equal(thresholds, own)
        assert weights.size == own.size


def test_sparse_features_are_never_written_out(train, monkeypatch):
    wide = scipy.sparse.random(800, 20_000, 0.001, "csr", np.float32, np.random.default_rng(1))
    y = np.tile([2, 0, 1, 0], 200)
    data = rg.QueryDataset(wide, y, np.repeat(np.arange(40), 20))
    plain = scipy.sparse.csr_matrix.toarray

    def small_only(self, *args, **kwargs):
        assert self.shape[0] * self.shape[1] < 10_000
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(scipy.sparse.csr_matrix, "toarray", small_only)
    for options in ({}, {"scaling": None}, {"scaling": "query"}):
        for ranker in (rg.SVMMap, rg.SVMAcc):
            model = ranker(C=10.0, **options).fit(data)
            assert model.predict(data).shape == (800,)


# -- binary relevance, queries left out, weights ---------------------------------------------------


def test_queries_with_nothing_to_order_are_counted_and_left_out(train):
    y = train.y.copy()
    y[train.query_of_row == 3] = 0
    y[train.query_of_row == 5] = 4
    y[train.query_of_row == 6] = 2
    data = rg.QueryDataset(train.X, y, train.qid)
    kept = data.select(~np.isin(np.arange(train.n_queries), [3, 5, 6]))
    for ranker in (rg.SVMMap, rg.SVMAcc):
        whole, part = ranker(relevant=2).fit(data), ranker(relevant=2).fit(kept)
        assert whole.skipped_ == {"nothing relevant": 1, "nothing irrelevant": 2} | {
            "nothing relevant": whole.skipped_["nothing relevant"]
        }
        assert part.skipped_["nothing irrelevant"] == 0
        np.testing.assert_allclose(whole.coef_, part.coef_, atol=1e-9)
        assert "queries left out" in whole.summary()
    with pytest.raises(rg.DataError, match=r"none has both.*label is at least 9"):
        rg.SVMMap(relevant=9).fit(train)


def test_the_threshold_of_relevance_is_binary(train):
    graded = rg.SVMMap(relevant=2).fit(train)
    binary = rg.QueryDataset(train.X, train.y >= 2, train.qid)
    np.testing.assert_array_equal(graded.coef_, rg.SVMMap().fit(binary).coef_)
    assert str(graded.measure) == "map[relevant=2]"


def test_weights_of_queries(train):
    weight = np.ones(train.n_queries)
    weight[:10] = 0
    weight[10:15] = 2
    weighted = rg.QueryDataset(train.X, train.y, train.qid, query_weight=weight)
    again = train.select(np.arange(10, 15))
    doubled = rg.QueryDataset(
        np.concatenate([train.X[train.query_of_row >= 10], again.X]),
        np.concatenate([train.y[train.query_of_row >= 10], again.y]),
        np.concatenate([train.qid[train.query_of_row >= 10], again.qid + 1000]),
    )
    for ranker in (rg.SVMMap, rg.SVMAcc):
        # standard scaling would see the rows of weight 0 too
        options = {"scaling": "query", "C": 1.0, "relevant": 2}
        fine = {"epsilon": 1e-6} if ranker is rg.SVMMap else {"tolerance": 1e-7}
        a, b = (ranker(**options, **fine).fit(data) for data in (weighted, doubled))
        np.testing.assert_allclose(a.predict(train), b.predict(train), atol=1e-3)
    zero = rg.QueryDataset(train.X[:40], train.y[:40], train.qid[:40])
    nothing = np.zeros(zero.n_queries)
    nothing[0] = 1.0
    y = zero.y.copy()
    y[zero.query_of_row == 0] = 0
    with pytest.raises(rg.DataError, match="has the weight 0"):
        rg.SVMMap().fit(rg.QueryDataset(zero.X, y, zero.qid, query_weight=nothing))


def test_weights_of_rows(train):
    with pytest.raises(rg.DataError, match="weights of rows have no meaning"):
        rg.SVMMap().fit(train.X, train.y, train.qid, sample_weight=np.ones(train.n_rows))
    plain = rg.SVMAcc(relevant=2).fit(train)
    ones = rg.SVMAcc(relevant=2).fit(train.X, train.y, train.qid, weight=np.full(train.n_rows, 3.0))
    np.testing.assert_allclose(plain.coef_, ones.coef_, atol=1e-9)


# -- values that are missing or infinite -----------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_missing_values(train, options):
    X = train.X.copy()
    X[::7, 2] = np.nan
    X[:, 5] = np.nan
    data = rg.QueryDataset(X, train.y, train.qid)
    for made in (data, as_sparse(data)):
        model = rg.SVMMap(**({"relevant": 2} | options)).fit(made)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict(made)).all()
        assert np.isfinite(model.predict(train)).all()


def test_infinite_values(train):
    X = train.X.copy()
    X[4, 2] = np.inf
    data = rg.QueryDataset(X, train.y, train.qid)
    for options in ({}, {"scaling": None}):
        with pytest.raises(rg.DataError, match="infinite values, but feature 3 has inf"):
            rg.SVMMap(**options).fit(data)
    for options in ({"thresholds": 5}, {"scaling": "query"}, {"scaling": "percentile"}):
        assert np.isfinite(rg.SVMMap(**options).fit(data).predict(data)).all()


def test_a_feature_that_says_nothing_has_no_weight(train):
    X = np.column_stack([train.X, np.full(train.n_rows, 7.0)])
    with_constant = rg.QueryDataset(X, train.y, train.qid)
    model = rg.SVMMap(relevant=2).fit(with_constant)
    assert model.coef_[-1] == 0.0
    plain = rg.SVMMap(relevant=2).fit(train)
    np.testing.assert_allclose(model.predict(with_constant), plain.predict(train), atol=1e-9)
    with pytest.raises(rg.DataError, match="same value in all rows"):
        rg.SVMMap(thresholds=5).fit(rg.QueryDataset(np.ones((4, 2)), [1, 0, 0, 1], [1, 1, 2, 2]))


# -- choice of C -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", [rg.SVMMap, rg.SVMAcc])
def test_c_is_chosen_by_validation(train, valid, ranker):
    grid = [10.0, 0.01, 1.0]
    model = ranker(C=grid, relevant=2).fit(
        train, valid={"a": valid, "b": train}, valid_measures=["map[relevant=2]", "ndcg@5"]
    )
    assert [one["C"] for one in model.solutions_] == sorted(grid)
    assert list(model.history_) == ["a", "b"]
    values = model.history_["a"]["map[relevant=2]"]
    assert len(values) == 3
    assert sorted(grid)[int(np.argmax(values))] == model.C_
    assert rg.evaluate(model, valid, "map[relevant=2]").mean["map[relevant=2]"] == max(values)
    assert model.solution_ == model.solutions_[int(np.argmax(values))]
    assert "the best of 3" in model.summary()
    found = model.C_
    for value, hint in [(0.01, "tried: smaller ones may"), (1.0, None), (10.0, "larger ones may")]:
        model.C_ = value
        assert ("at the edge" in model.summary()) == (hint is not None)
        assert hint is None or hint in model.summary()
    model.C_ = found
    # as good as training for that C alone
    alone = ranker(C=model.C_, relevant=2).fit(train)
    if ranker is rg.SVMMap:
        assert alone.solution_["objective"] == pytest.approx(
            model.solution_["objective"], abs=1.1e-3 * model.C_
        )
    else:
        np.testing.assert_array_equal(alone.coef_, model.coef_)
    with pytest.raises(rg.ParameterError, match="several values of C need validation data"):
        ranker(C=grid).fit(train)
    assert ranker(C=np.array([2.0])).fit(train).C_ == 2.0
    assert len(ranker(C="auto", relevant=2).fit(train, valid=valid).solutions_) > 5


def test_validation_data_is_checked(train, valid):
    with pytest.raises(rg.DataError, match="the valid data has 3 features, the training data 12"):
        rg.SVMMap().fit(train, valid=(valid.X[:, :3], valid.y, valid.qid))
    with pytest.raises(rg.DataError, match="leaves out every query of the valid data"):
        rg.SVMMap(relevant=2).fit(train, valid=(valid.X, np.zeros(valid.n_rows), valid.qid))


# -- scaling by query needs queries ---------------------------------------------------------------


def test_prediction_needs_the_queries_where_scaling_does(train, valid):
    model = rg.SVMMap(scaling="query", relevant=2).fit(train)
    with pytest.raises(rg.DataError, match=r"scaling='query'.*give it a QueryDataset, or qid="):
        model.predict(valid.X)
    with pytest.raises(rg.DataError, match=r"has 3 features, but \w+ is expecting 12"):
        model.predict(valid.X[:, :3], qid=valid.qid)
    with pytest.raises(rg.DataError, match=r"SVMMap\.predict: X has .* rows, and qid 2 ids"):
        model.predict(valid.X, qid=[1, 2])
    assert rg.SVMMap(relevant=2).fit(train).predict(valid.X).shape == (valid.n_rows,)


# -- limits, interruption, callbacks --------------------------------------------------------------


def test_limits(train, valid):
    for options, status in [
        ({"max_iterations": 2}, "iteration limit"),
        ({"time_limit": 1e-9}, "time limit"),
        ({"memory_limit": 0.001}, "memory limit"),
    ]:
        model = rg.SVMMap(relevant=2, epsilon=1e-6, **options).fit(train)
        assert model.solution_["status"] == status
        assert model.solution_["gap"] > 0
        assert status in model.summary()
    short = rg.SVMMap(C="auto", relevant=2, time_limit=1e-9).fit(train, valid=valid)
    assert len(short.solutions_) == 1


def test_callbacks_and_ctrl_c(train, valid):
    seen = []
    model = rg.SVMMap(C=[0.1, 10.0], relevant=2)
    model.fit(train, valid=valid, callbacks=[lambda done: seen.append(str(done)) and None])
    assert seen[0].startswith("C 0.1: 1 iterations, 0 constraints, violation")
    assert seen[-1].startswith("C 10:")
    stopped = rg.SVMMap(relevant=2).fit(train, callbacks=lambda done: done.iteration == 2)
    assert stopped.solution_["status"] == "stopped"
    assert not stopped.interrupted_

    def press(done):
        if done.C == 10.0 and done.iteration == 3:
            signal.raise_signal(signal.SIGINT)

    cut = interrupted_fit(rg.SVMMap(C=[0.1, 10.0], relevant=2), train, valid=valid, callbacks=press)
    assert cut.interrupted_
    assert [one["C"] for one in cut.solutions_] == [0.1]
    only = interrupted_fit(rg.SVMMap(C=10.0, relevant=2), train, callbacks=press)
    assert only.interrupted_
    assert only.solution_["status"] == "interrupted"
    with pytest.raises(rg.ParameterError, match="LIBLINEAR has no callbacks"):
        rg.SVMAcc().fit(train, callbacks=print)


def test_progress_is_shown(train, capsys):
    rg.SVMMap(relevant=2, progress=True).fit(train)
    assert "Traceback" not in capsys.readouterr().err


# -- SVM-acc -------------------------------------------------------------------------------------


def test_svm_acc_is_liblinear(train, valid):
    counts = np.add.reduceat((train.y >= 2).astype(int), train.query_ptr[:-1])
    train = train.select(counts > 0)
    good, X = train.y >= 2, train.X.astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ratio = (~good).sum() / good.sum()
    for balanced in (False, True):
        plain = LinearSVC(
            loss="hinge",
            C=50.0 / train.n_rows,
            tol=1e-8,
            max_iter=200_000,
            random_state=0,
            class_weight={True: ratio if balanced else 1.0, False: 1.0},
        ).fit(X, good)
        ours = rg.SVMAcc(
            C=50.0, balanced=balanced, relevant=2, tolerance=1e-8, max_iterations=200_000
        ).fit(train)
        np.testing.assert_allclose(ours.coef_, plain.coef_[0], atol=1e-4)
        np.testing.assert_allclose(ours.predict(train), plain.decision_function(X), atol=1e-3)
    assert rg.SVMAcc(C=1e6, relevant=2, max_iterations=2).fit(train).solution_ == {
        "C": 1e6,
        "status": "iteration limit",
        "iterations": 2,
    }
    squared = rg.SVMAcc(C=50.0, relevant=2, loss="squared").fit(train)
    assert rg.evaluate(squared, valid, "auc").mean["auc"] > 0.6


# -- a loss of one's own --------------------------------------------------------------------------


class TopFive(rg.StructuralSVM):
    """1 - P@5 by brute force over how many relevant documents stand among the first five."""

    kind = "svm-top-five-of-the-tests"
    goal = "p@5"

    def most_violated(self, scores, relevant):
        by_score = np.argsort(-scores, kind="stable")
        good, bad = by_score[relevant[by_score]], by_score[~relevant[by_score]]
        best = (-np.inf, 0.0, by_score)
        for k in range(max(0, 5 - bad.size), min(5, good.size) + 1):
            top = by_score[np.isin(by_score, [*good[:k], *bad[: 5 - k]])]
            rest = by_score[~np.isin(by_score, top)]
            order = np.concatenate([top, rest])
            place = np.argsort(order)
            before = place[relevant][:, None] < place[~relevant][None, :]
            margins = scores[relevant][:, None] - scores[~relevant][None, :]
            value = 1 - k / 5 + np.where(before, margins, -margins).mean()
            if value > best[0]:
                best = (value, 1 - k / 5, order)
        return best[1], best[2]


def test_a_users_own_loss(train, tmp_path):
    model = TopFive(relevant=2, C=3.0).fit(train)
    assert model.solution_["status"] == "converged"
    assert str(model.measure) == "p@5[relevant=2]"
    start = rg.evaluate(np.zeros(train.n_rows), train, model.measure).mean[str(model.measure)]
    assert model.score(train) > start
    model.save(tmp_path / "own.rg")
    np.testing.assert_array_equal(rg.load(tmp_path / "own.rg").predict(train), model.predict(train))


def test_a_users_own_loss_that_is_incomplete(train):
    class Unfinished(rg.StructuralSVM):
        goal = "map"

    message = "needs a class attribute 'kind' and a method most_violated"
    with pytest.raises(rg.ParameterError, match=message):
        Unfinished().fit(train)

    class Wrong(rg.StructuralSVM):
        kind, goal = "svm-wrong-of-the-tests", "map"
        found = None

        def most_violated(self, scores, relevant):
            return self.found

    for found, message in [
        (None, "must return two values"),
        (("much", np.arange(3)), "A loss must be a finite number"),
        ((1.0, None), "must name each of the numbers"),
        ((1.0, [[0], [1, 2]]), "must name each of the numbers"),
        ((1.0, np.arange(float(train.query_ptr[1]))), "must name each of the numbers"),
    ]:
        Wrong.found = found
        with pytest.raises(rg.DataError, match=message):
            Wrong().fit(train)


def test_a_kind_that_is_taken_is_refused(train, tmp_path):
    with pytest.raises(rg.ParameterError, match=r"'svm-map' is that of .*svm.SVM"):
        type("Mine", (rg.StructuralSVM,), {"kind": "svm-map", "goal": "map"})
    for _ in range(2):  # the same class once more is let pass
        mine = type("Mine", (rg.SVMMap,), {"kind": "mine-of-the-tests", "__module__": "notebook"})
    path = tmp_path / "mine.rg"
    mine(relevant=2).fit(train).save(path)
    assert isinstance(rg.load(path), mine)
    del KINDS["mine-of-the-tests"]
    with pytest.raises(rg.ModelFileError, match="must be imported before"):
        rg.load(path)


def test_weights_that_are_all_0_are_told(train, caplog):
    class First(rg.StructuralSVM):
        """1 where the first document is irrelevant: the bound says nothing."""

        kind, goal = "svm-first-of-the-tests", "p@1"

        def most_violated(self, scores, relevant):
            order = np.argsort(-scores)
            worst = order[~relevant[order]][0]
            passed = np.flatnonzero(relevant & (scores > scores[worst]))
            pairs = relevant.sum() * (~relevant).sum()
            cost = 2 * (scores[passed] - scores[worst]).sum() / pairs
            if relevant[order[0]] and cost < 1:
                return 1.0, [worst, *order[order != worst]]
            return float(not relevant[order[0]]), order

    model = First(C=10).fit(train)
    assert not model.coef_.any()
    assert "all weights are 0" in caplog.text
    assert "all weights are 0: the bound is too loose at this C" in model.summary()


# -- manners ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", EVERY)
@pytest.mark.parametrize("options", [{}, {"thresholds": 6, "scaling": "query"}], ids=str)
def test_the_model_file(train, valid, ranker, options, tmp_path):
    model = ranker(C=(0.5, 5), relevant=2, **options).fit(train, valid=valid)
    path = tmp_path / "model.rg"
    model.save(path)
    back = rg.load(path)
    assert type(back) is ranker
    assert back.get_params() == model.get_params()
    np.testing.assert_array_equal(back.predict(valid), model.predict(valid))
    for name in ("history_", "C_", "solution_", "solutions_", "skipped_", "interrupted_"):
        assert getattr(back, name) == getattr(model, name)
    assert back.summary() == model.summary()
    ranker(C=(0.5, 5), relevant=2, **options).fit(train, valid=valid).save(tmp_path / "again.rg")
    assert (tmp_path / "again.rg").read_bytes() == path.read_bytes()
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(valid), model.predict(valid))


def test_names_of_features(train, valid):
    model = rg.SVMMap(relevant=2).fit(train)
    assert model.feature_names_ == train.feature_names
    assert train.feature_names[0] in model.summary(20)
    other = rg.QueryDataset(
        valid.X[:, ::-1], valid.y, valid.qid, feature_names=valid.feature_names[::-1]
    )
    with pytest.raises(rg.DataError, match="but in another order"):
        model.predict(other)


@pytest.mark.parametrize("ranker", EVERY)
def test_scikit_learn(train, ranker):
    model = clone(ranker(relevant=2, C=0.5))
    assert (model.relevant, model.C) == (2, 0.5)
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            model, train.X, train.y, cv=rg.QueryKFold(3), params={"qid": train.qid}
        )
        assert np.all(scores > 0.1)
        search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=rg.QueryKFold(3))
        search.fit(train.X, train.y, qid=train.qid)
        assert search.best_params_["C"] in (0.1, 1.0)


@pytest.mark.parametrize(
    ("ranker", "options", "message"),
    [
        (rg.SVMMap, {"C": 0}, "'C' parameter of SVMMap must be a finite number above 0"),
        (rg.SVMMap, {"C": "atuo"}, "a number, a list of them, or 'auto'"),
        (rg.SVMMap, {"C": []}, "a number, a list"),
        (rg.SVMMap, {"C": [1, "x"]}, "'C' parameter"),
        (rg.SVMMap, {"epsilon": -1}, "'epsilon' parameter"),
        (rg.SVMMap, {"scaling": "standrad"}, "did you mean 'standard'"),
        (rg.SVMMap, {"thresholds": 0}, "'thresholds' parameter"),
        (rg.SVMMap, {"form": "2-slack"}, "one of '1-slack', 'n-slack'"),
        (rg.SVMMap, {"relevant": None}, "'relevant' parameter"),
        (rg.SVMMap, {"time_limit": 0}, "'time_limit' parameter"),
        (rg.SVMAcc, {"balanced": 1}, "True or False"),
        (rg.SVMAcc, {"loss": "log"}, "one of 'hinge', 'squared'"),
        (rg.SVMAcc, {"max_iterations": 0}, "'max_iterations' parameter"),
    ],
)
def test_bad_parameters(train, ranker, options, message):
    with pytest.raises(rg.ParameterError, match=message):
        ranker(**options).fit(train)


def test_an_unknown_parameter_is_refused():
    with pytest.raises(rg.UnknownParameterError, match="did you mean 'epsilon'"):
        rg.SVMMap(epsilom=1)
