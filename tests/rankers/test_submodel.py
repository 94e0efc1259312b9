"""LambdaSMART: going on from a submodel, of every kind and in every way a ranker is used."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankgrove as rg

SMALL = {"n_leaves": 6, "min_leaf": 5, "random_state": 3}


@pytest.fixture(scope="module")
def domains():
    """Return much data of a source, a little of a target, and other queries of the target."""
    sizes = {"n_docs": 20, "n_features": 12}
    source, target = rg.make_domains(80, 30, **sizes, seed=1)
    _, valid = rg.make_domains(1, 30, **sizes, seed=2)
    return source, target, valid


@pytest.fixture(scope="module")
def background(domains):
    return rg.LambdaMART(**SMALL, n_trees=12).fit(domains[0])


class Linear:
    """Somebody else's model: it knows features, and nothing of data sets."""

    def predict(self, X):
        assert not isinstance(X, rg.QueryDataset)
        assert X.dtype == np.float32
        if scipy.sparse.issparse(X):
            X = X.toarray()
        return np.nan_to_num(X[:, 0]) - 0.5 * np.nan_to_num(X[:, 3])


def same_trees(a, b):
    for name, array in a.to_arrays().items():
        np.testing.assert_array_equal(array, b.to_arrays()[name], err_msg=name)


def scattered(data, seed=0):
    """Return the queries in another order, their rows apart from each other but in order."""
    lot = np.random.default_rng(seed).random(data.n_rows)
    for q in range(data.n_queries):
        part = slice(data.query_ptr[q], data.query_ptr[q + 1])
        lot[part] = np.sort(lot[part])
    rows = np.argsort(lot)
    scores = None if data.base_score is None else data.base_score[rows]
    made = rg.QueryDataset(data.X[rows], data.y[rows], data.qid[rows], base_score=scores)
    assert made.order is not None
    return made, rows


# -- one run in two parts -----------------------------------------------------------------------

OPTIONS = [
    {},
    {"query_fraction": 0.5, "row_fraction": 0.7, "feature_fraction": 0.3},
    {"split": "mse", "measure": "map", "row_fraction": 0.5},
    {"normalise": False, "sigma": 2.0, "query_fraction": 0.6},
    {"step": "optimal", "learning_rate": 1.0, "row_fraction": 0.7},
    {"step": "optimal-newton", "learning_rate": 0.5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_k_trees_and_m_more_are_k_plus_m_trees(domains, options):
    source, target, valid = domains
    options = SMALL | options
    whole = rg.LambdaMART(**options, n_trees=9).fit(source)
    first = rg.LambdaMART(**options, n_trees=4).fit(source)
    second = rg.LambdaMART(**options, n_trees=3, submodel=first).fit(source)
    third = rg.LambdaMART(**options, n_trees=2, submodel=second, n_threads=1).fit(source)
    assert third.ensemble_.n_trees == 2
    same_trees(third.flat_ensemble(), whole.ensemble_)
    for data in (source, target, scattered(source)[0]):
        np.testing.assert_array_equal(third.predict(data), whole.predict(data))
    # and the validation values on the way are the same
    watched = {"valid": valid, "valid_measures": "ndcg@10"}
    whole.fit(source, **watched)
    second.fit(source, **watched, callbacks=[])
    rounds = whole.history_["valid"]["ndcg@10"]
    assert second.history_["valid"]["ndcg@10"] == rounds[4:7]
    assert second.start_values_["valid"]["ndcg@10"] == rounds[3]


def test_random_draws_go_on_from_the_submodels_rounds(domains, background):
    source = domains[0]
    options = SMALL | {"row_fraction": 0.5, "n_trees": 2}
    scores = source.with_base_score(background.predict(source))
    by_ranker = rg.LambdaMART(**options, submodel=background).fit(source)
    by_scores = rg.LambdaMART(**options, submodel="base_score").fit(scores)
    one, other = by_ranker.ensemble_.to_arrays(), by_scores.ensemble_.to_arrays()
    assert any(not np.array_equal(one[name], other[name]) for name in one)
    # without draws the scores are all there is to a submodel
    by_ranker = rg.LambdaMART(**SMALL, n_trees=1, split="mse", submodel=background).fit(source)
    assert by_ranker.ensemble_.n_trees == 1


# -- no tree at all -----------------------------------------------------------------------------


def test_no_tree_at_all_is_the_submodel(domains, background):
    _, target, valid = domains
    for data in (target, valid, scattered(target)[0], target.X, scipy.sparse.csr_matrix(target.X)):
        model = rg.LambdaMART(**SMALL, n_trees=0, submodel=background).fit(target)
        assert model.ensemble_.n_trees == 0
        same = model.predict(data).view(np.int64) == background.predict(data).view(np.int64)
        assert same.all()
    scores = np.where(np.arange(target.n_rows) % 2, -0.0, 1e-300)
    given = target.with_base_score(scores)
    model = rg.LambdaMART(**SMALL, n_trees=0, submodel="base_score").fit(given)
    assert (model.predict(given).view(np.int64) == scores.view(np.int64)).all()
    with pytest.raises(rg.ParameterError, match=r"'n_trees'.*at least 1"):
        rg.LambdaMART(n_trees=0).fit(target)


def test_a_submodel_that_no_tree_betters_is_kept_as_it_is(domains):
    _, target, valid = domains
    noise = np.random.default_rng(0).normal(size=target.n_rows)
    knows = rg.LambdaMART(**SMALL, n_trees=40, early_stopping=3, submodel="base_score")
    # on the training data the base scores say nothing, on the validation data they say it all
    perfect = valid.with_base_score(valid.y * 100)
    knows.fit(target.with_base_score(noise), valid=perfect)
    assert knows.best_round_ == 0
    assert knows.ensemble_.n_trees == 0
    assert knows.steps_ == []
    assert len(knows.history_["valid"]["ndcg@10"]) == 3
    assert knows.start_values_["valid"]["ndcg@10"] == pytest.approx(1.0)
    np.testing.assert_array_equal(knows.predict(perfect), perfect.base_score)
    assert "valid ndcg@10: 1.0000 after 0 trees" in knows.summary()
    # without a submodel there is nothing to fall back on
    plain = rg.LambdaMART(**SMALL, n_trees=3).fit(target, valid=valid)
    assert plain.best_round_ >= 1
    assert plain.start_values_ == {}


# -- kinds of submodels -------------------------------------------------------------------------


def test_all_kinds_of_submodels_with_the_same_scores_give_the_same_model(
    domains, background, tmp_path
):
    _, target, valid = domains
    background.save(tmp_path / "big.rg")

    class Wrapped:
        def predict(self, X):
            return background.predict(X)

    scored = [data.with_base_score(background.predict(data)) for data in (target, valid)]
    options = SMALL | {"n_trees": 5}
    model = rg.LambdaMART(**options, submodel=background).fit(target, valid=valid)
    by_path = rg.LambdaMART(**options, submodel=str(tmp_path / "big.rg")).fit(target, valid=valid)
    same_trees(model.ensemble_, by_path.ensemble_)
    assert model.history_ == by_path.history_
    same_trees(
        model.ensemble_,
        rg.LambdaMART(**options, submodel=tmp_path / "big.rg").fit(target, valid=valid).ensemble_,
    )
    # neither has rounds that draws would go on from
    foreign = rg.LambdaMART(**options, submodel=Wrapped()).fit(target, valid=valid)
    column = rg.LambdaMART(**options, submodel="base_score").fit(scored[0], valid=scored[1])
    same_trees(foreign.ensemble_, column.ensemble_)
    assert foreign.history_ == column.history_
    np.testing.assert_array_equal(foreign.predict(target), column.predict(scored[0]))
    np.testing.assert_array_equal(
        column.predict(target.X, base_score=scored[0].base_score), column.predict(scored[0])
    )


@pytest.mark.parametrize("form", ["dense", "sparse", "scattered", "view"])
def test_scores_are_in_the_callers_order(domains, form):
    _, target, _ = domains
    target = target.with_base_score(Linear().predict(target.X))
    rows = np.arange(target.n_rows)
    data = target
    if form == "sparse":
        X = scipy.sparse.csr_matrix(np.nan_to_num(target.X))
        data = rg.QueryDataset(X, target.y, target.qid, base_score=target.base_score)
    elif form == "scattered":
        data, rows = scattered(target)
    elif form == "view":
        data = target.select([7, 3, 4])
        rows = np.concatenate([np.arange(20) + 20 * q for q in (7, 3, 4)])
    np.testing.assert_array_equal(data.base_score, target.base_score[rows])
    foreign = rg.LambdaMART(**SMALL, n_trees=4, submodel=Linear()).fit(data)
    column = rg.LambdaMART(**SMALL, n_trees=4, submodel="base_score").fit(data)
    same_trees(foreign.ensemble_, column.ensemble_)
    if form == "scattered":
        same_trees(column.fit(target).ensemble_, foreign.ensemble_)
    expected = data.base_score.copy()
    for t in range(4):
        expected += column.ensemble_.tree(t).predict(
            data.X if form != "sparse" else data.X.toarray()
        )
    np.testing.assert_array_equal(foreign.predict(data), expected)
    np.testing.assert_array_equal(column.predict(data), expected)
    np.testing.assert_array_equal(foreign.predict(data.X), expected)


def test_the_weight_scales_the_submodel(domains, background):
    _, target, _ = domains
    given = target.with_base_score(background.predict(target))
    for submodel in (background, "base_score"):
        half = rg.LambdaMART(**SMALL, n_trees=3, submodel=submodel, submodel_weight=0.5).fit(given)
        expected = 0.5 * given.base_score
        for t in range(3):
            expected += half.ensemble_.tree(t).predict(target.X)
        np.testing.assert_array_equal(half.predict(given), expected)
        with pytest.raises(rg.DataError, match=r"weight 0\.5\) and the trees are not one ensemble"):
            half.flat_ensemble()


def test_adapting_helps():
    # the reason for it all: on little data of the target, going on from the source is better than
    # either alone
    shifts = {"n_docs": 20, "n_features": 20, "feature_shift": 0.1}
    source, target = rg.make_domains(600, 60, **shifts, seed=5)
    _, test = rg.make_domains(1, 300, **shifts, seed=6)
    big = rg.LambdaMART(n_trees=100, n_leaves=10).fit(source)
    small = rg.LambdaMART(n_trees=60, n_leaves=6, row_fraction=0.7)
    alone = clone(small).fit(target)
    adapted = small.set_params(submodel=big).fit(target)
    value = {
        name: rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"]
        for name, model in {"big": big, "alone": alone, "adapted": adapted}.items()
    }
    assert value["adapted"] > max(value["big"], value["alone"]) + 0.01, value


# -- files, copies, checkpoints -----------------------------------------------------------------


def test_the_file_stands_alone(domains, background, tmp_path):
    _, target, valid = domains
    background.save(tmp_path / "big.rg")
    middle = rg.LambdaMART(**SMALL, n_trees=3, submodel=tmp_path / "big.rg").fit(target)
    top = rg.LambdaMART(
        **SMALL, n_trees=2, learning_rate=0.2, submodel=middle, submodel_weight=0.7
    ).fit(target, valid=valid)
    top.save(tmp_path / "top.rg")
    (tmp_path / "big.rg").unlink()
    loaded = rg.load(tmp_path / "top.rg")
    for data in (target, valid):
        np.testing.assert_array_equal(loaded.predict(data), top.predict(data))
    assert loaded.submodel_weight_ == 0.7
    assert loaded.start_values_ == top.start_values_
    assert loaded.submodel_.submodel_.n_trees == 12
    assert loaded.summary() == top.summary()
    assert "starting from a LambdaMART of 15 trees, weight 0.7" in loaded.summary()
    loaded.save(tmp_path / "again.rg")
    assert (tmp_path / "again.rg").read_bytes() == (tmp_path / "top.rg").read_bytes()
    # it can be trained again from what the file holds
    again = loaded.fit(target, valid=valid)
    np.testing.assert_array_equal(again.predict(valid), top.predict(valid))


def test_files_of_models_on_given_scores_and_on_foreign_models(domains, tmp_path):
    _, target, _ = domains
    given = target.with_base_score(Linear().predict(target.X))
    column = rg.LambdaMART(**SMALL, n_trees=3, submodel="base_score").fit(given)
    column.save(tmp_path / "column.rg")
    loaded = rg.load(tmp_path / "column.rg")
    assert loaded.submodel == "base_score"
    np.testing.assert_array_equal(loaded.predict(given), column.predict(given))
    foreign = rg.LambdaMART(**SMALL, n_trees=3, submodel=Linear()).fit(target)
    with pytest.raises(rg.ParameterError, match="a Linear, cannot be written into a model file"):
        foreign.save(tmp_path / "foreign.rg")
    assert not (tmp_path / "foreign.rg").exists()
    again = pickle.loads(pickle.dumps(foreign))
    np.testing.assert_array_equal(again.predict(target), foreign.predict(target))
    foreign.submodel_ = "base_score"  # as the message says
    foreign.save(tmp_path / "foreign.rg")
    np.testing.assert_array_equal(
        rg.load(tmp_path / "foreign.rg").predict(given), column.predict(given)
    )


def test_copies_keep_the_trained_submodel(domains, background):
    _, target, _ = domains
    expected = background.predict(target)
    model = rg.LambdaMART(**SMALL, n_trees=2, submodel=background)
    copied = clone(model)
    assert copied.submodel is background
    assert clone(clone(model)).fit(target).submodel_.n_features_in_ == 12
    for other in (copied, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.fit(target)
        np.testing.assert_array_equal(other.submodel_.predict(target), expected)
        trained = pickle.loads(pickle.dumps(other))
        np.testing.assert_array_equal(trained.predict(target), other.predict(target))
    # the parameters of a trained model are not parameters of this one
    assert not any("__" in name for name in model.get_params(deep=True))
    with pytest.raises(rg.ParameterError, match="'submodel__n_trees' cannot be set"):
        model.set_params(submodel__n_trees=3)
    assert background.n_trees == 12
    # cloning the submodel itself untrains it, as scikit-learn will have it
    with pytest.raises(rg.ParameterError, match="must be trained, and this LambdaMART is not"):
        rg.LambdaMART(submodel=clone(background)).fit(target)
    # a foreign estimator is kept too
    ridge = Ridge().fit(np.nan_to_num(target.X), target.y)
    assert clone(rg.LambdaMART(submodel=ridge)).submodel is ridge


def test_training_the_submodel_anew_leaves_the_ranker_as_it_was(domains):
    source, target, _ = domains
    big = rg.LambdaMART(**SMALL, n_trees=3).fit(source)
    model = rg.LambdaMART(**SMALL, n_trees=2, submodel=big).fit(target)
    before = model.predict(target)
    big.fit(target)
    np.testing.assert_array_equal(model.predict(target), before)
    # a training that fails leaves it too
    model.submodel = rg.LambdaMART(**SMALL, n_trees=1).fit(target)
    with pytest.raises(rg.DataError, match="nothing to learn an order from"):
        model.fit(target.X, np.zeros(target.n_rows), qid=target.qid)
    np.testing.assert_array_equal(model.predict(target), before)


def test_truncated(domains, background):
    _, target, _ = domains
    for submodel in (background, Linear()):
        model = rg.LambdaMART(**SMALL, n_trees=4, submodel=submodel).fit(target)
        short = model.truncated(2)
        assert len(short.steps_) == short.ensemble_.n_trees == 2
        expected = rg.LambdaMART(**SMALL, n_trees=2, submodel=submodel).fit(target)
        np.testing.assert_array_equal(short.predict(target), expected.predict(target))
        np.testing.assert_array_equal(
            model.truncated(0).predict(target), submodel.predict(target.X)
        )


def test_going_on_from_a_checkpoint(domains, background, tmp_path):
    _, target, valid = domains
    options = SMALL | {"n_trees": 7, "row_fraction": 0.6, "query_fraction": 0.8}
    whole = rg.LambdaMART(**options, submodel=background).fit(target, valid=valid)
    state = {"checkpoint": tmp_path / "state", "checkpoint_every": 2}

    def die(progress):
        if progress.round == 5:
            raise RuntimeError("power failure")

    with pytest.raises(RuntimeError):
        rg.LambdaMART(**options, **state, submodel=background).fit(
            target, valid=valid, callbacks=[die]
        )
    rounds = []
    model = rg.LambdaMART(**options, **state, submodel=background).fit(
        target, valid=valid, callbacks=[lambda p: rounds.append(p.round)]
    )
    assert rounds == [5, 6, 7]
    same_trees(model.ensemble_, whole.ensemble_)
    assert model.history_ == whole.history_
    assert (model.best_round_, model.steps_) == (whole.best_round_, whole.steps_)
    alike = rg.LambdaMART(**SMALL, n_trees=12, learning_rate=0.2).fit(domains[0])
    for other in (None, background.truncated(11), Linear(), alike):
        with pytest.raises(rg.DataError, match="another run: there submodel's"):
            rg.LambdaMART(**options, **state, submodel=other).fit(target, valid=valid)


# -- scikit-learn -------------------------------------------------------------------------------


def test_searches_with_a_submodel(domains, background):
    _, target, _ = domains
    X, y, qid = np.asarray(target.X), target.y, target.qid
    scores = Linear().predict(target.X).astype(float)
    cv = rg.QueryKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = rg.LambdaMART(**SMALL, n_trees=3, submodel=background)
        values = cross_val_score(model, X, y, cv=cv, params={"qid": qid}, error_score="raise")
        expected = []
        for fold in rg.k_fold(target, 3):
            one = rg.LambdaMART(**SMALL, n_trees=3, submodel=background).fit(fold.train)
            expected.append(rg.evaluate(one, fold.test, "ndcg@10").mean["ndcg@10"])
        assert sorted(values) == sorted(expected)
        grid = {"n_trees": [1, 3], "submodel": [None, FrozenEstimator(background)]}
        search = GridSearchCV(rg.LambdaMART(**SMALL), grid, cv=cv, error_score="raise")
        search.fit(X, y, qid=qid)
        assert search.best_params_["submodel"] is not None
        assert search.best_estimator_.submodel_.ensemble_.n_trees == 12
        assert search.predict(X).shape == y.shape
        column = rg.LambdaMART(**SMALL, n_trees=3, submodel="base_score")
        values = cross_val_score(
            column, X, y, cv=cv, params={"qid": qid, "base_score": scores}, error_score="raise"
        )
        given = target.with_base_score(scores)
        expected = [
            rg.evaluate(clone(column).fit(f.train), f.test, "ndcg@10").mean["ndcg@10"]
            for f in rg.k_fold(given, 3)
        ]
        assert sorted(values) == sorted(expected)


# -- mistakes -----------------------------------------------------------------------------------


def test_missing_base_scores_are_asked_for(domains):
    _, target, valid = domains
    given = target.with_base_score(target.y)
    model = rg.LambdaMART(**SMALL, n_trees=2, submodel="base_score")
    with pytest.raises(rg.DataError, match=r"fit: the ranker starts from scores.*with_base_score"):
        model.fit(target)
    with pytest.raises(rg.DataError, match="this data has none"):
        model.fit(given, valid=valid)
    model.fit(given)
    for data in (target, target.X):
        with pytest.raises(rg.DataError, match=r"predict: the ranker starts.*base_score=\.\.\."):
            model.predict(data)
    with pytest.raises(rg.DataError, match="this data has none"):
        rg.evaluate(model, target, "map")
    # a chain that ends in scores needs them too, and is given them
    chain = rg.LambdaMART(**SMALL, n_trees=1, submodel=model)
    with pytest.raises(rg.DataError, match=r"The submodel: .*this data has none"):
        chain.fit(target)
    chain.fit(given)
    np.testing.assert_array_equal(
        chain.predict(given), chain.predict(target.X, base_score=target.y)
    )
    with pytest.raises(rg.DataError, match="holds its own base scores"):
        chain.predict(given, base_score=target.y)
    # scores that nobody would look at
    plain = rg.LambdaMART(**SMALL, n_trees=1)
    with pytest.raises(rg.ParameterError, match="start from base scores: set submodel='base_sc"):
        plain.fit(target.X, target.y, qid=target.qid, base_score=target.y)
    with pytest.raises(rg.ParameterError, match="does not start from base scores"):
        plain.fit(given).predict(target.X, base_score=target.y)


@pytest.mark.parametrize(
    ("submodel", "message"),
    [
        ("nowhere.rg", "'base_score', and there is no such file. Got 'nowhere.rg'"),
        (3, "must be a trained ranker, a model file, an object with predict, or 'base_score'"),
        (Linear, "must be a trained ranker"),
        (rg.LambdaMART(), "must be trained"),
    ],
)
def test_what_is_no_submodel(domains, submodel, message):
    with pytest.raises(rg.ParameterError, match=message):
        rg.LambdaMART(submodel=submodel).fit(domains[1])


def test_submodels_that_do_not_fit_the_data(domains, background):
    _, target, _ = domains
    fewer = rg.QueryDataset(target.X[:, :5], target.y, target.qid)
    with pytest.raises(rg.DataError, match="The submodel: X has 5 features, but LambdaMART"):
        rg.LambdaMART(submodel=background).fit(fewer)
    names = [f"n{i}" for i in range(12)]
    named = rg.QueryDataset(target.X, target.y, target.qid, feature_names=names)
    turned = rg.QueryDataset(target.X, target.y, target.qid, feature_names=names[::-1])
    first = rg.LambdaMART(**SMALL, n_trees=1).fit(named)
    with pytest.raises(rg.DataError, match=r"The submodel: .*in another order"):
        rg.LambdaMART(submodel=first).fit(turned)

    class Odd:
        def __init__(self, value):
            self.value = value

        def predict(self, X):
            return np.full(len(X) - (self.value == "short"), np.nan if self.value else -np.inf)

    for value, message in [(0, "must be finite. Got -inf"), (1, "NaN"), ("short", "number per")]:
        with pytest.raises(rg.DataError, match=message):
            rg.LambdaMART(submodel=Odd(value)).fit(target)
    for bad in (0, -1, "best", None):
        with pytest.raises(rg.ParameterError, match="'submodel_weight'"):
            rg.LambdaMART(submodel=background, submodel_weight=bad).fit(target)
