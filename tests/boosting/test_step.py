"""How far to go along a tree: exact weights against plain looking, same bits, records."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.boosting.step import OptimalStep
from rankgrove.data.binning import Binner
from rankgrove.growth.grower import Grower
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.random import row_keys

SMALL = {"n_trees": 6, "n_leaves": 5, "min_leaf": 3, "learning_rate": 1.0}
EXACT = ["optimal", "optimal-newton"]
rg.register_measure("own", lambda labels, k: (labels[:k] >= 2).mean())


@pytest.fixture(scope="module")
def train():
    return rg.make_web(40, n_docs=15, n_features=10, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(30, n_docs=15, n_features=10, seed=2)


def value_at(measure, data, scores):
    return rg.evaluate(data.ungrouped(scores), data, measure).mean[str(measure)]


def same_model(a, b):
    for name, array in a.ensemble_.to_arrays().items():
        np.testing.assert_array_equal(array, b.ensemble_.to_arrays()[name], err_msg=name)
    assert a.steps_ == b.steps_


class Looking:
    """A callback that keeps every round's scores of the watched data sets."""

    def __init__(self):
        self.scores = []

    def __call__(self, progress):
        self.scores.append({n: one.scores[0].copy() for n, one in progress.watch.watched.items()})


# -- the weight is the best there is --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["ndcg@10", "map", "err", "mrr", "p@3", "auc", "own@4"])
@pytest.mark.parametrize("step", EXACT)
@pytest.mark.parametrize("step_on", ["train", "valid"])
def test_no_other_weight_is_better(train, valid, measure, step, step_on):
    bounds = (0.1, 20.0)
    options = SMALL | {"step": step, "step_on": step_on, "step_bounds": bounds}
    looking = Looking()
    data = {"train": train, "valid": valid}[step_on]
    model = rg.LambdaMART(measure, **options).fit(
        train, valid={"valid": valid, "train": train}, callbacks=[looking]
    )
    steps = model.truncated(model.ensemble_.n_trees).steps_
    before = np.zeros(data.n_rows)
    for t, weight in enumerate(steps):
        after = looking.scores[t][step_on]
        tree = (after - before) / weight
        reached = value_at(measure, data, after)
        for other in np.geomspace(*bounds, 60):
            assert value_at(measure, data, before + other * tree) <= reached + 1e-9
        assert bounds[0] <= weight <= bounds[1]
        before = after


def test_the_search_is_by_the_training_measure_and_ties_by_expectation(train, valid):
    # what is watched on the validation data has no part in it, nor has the measure's rule of ties
    options = SMALL | {"step": "optimal", "step_on": "valid"}
    one = rg.LambdaMART("map", **options).fit(train, valid=valid)
    other = rg.LambdaMART("map", **options).fit(train, valid=valid, valid_measures=["mrr", "map"])
    n = min(len(one.steps_), len(other.steps_))
    assert one.steps_[:n] == other.steps_[:n]
    stable = rg.measure("map", ties="stable")
    third = rg.LambdaMART(stable, **options).fit(train, valid=valid)
    n = min(len(one.steps_), len(third.steps_))
    assert one.steps_[:n] == third.steps_[:n]


# -- the values of the leaves ---------------------------------------------------------------------


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_leaves_are_mean_lambdas_or_newton_steps(train, l2):
    keys = row_keys(train.query_keys, train.query_ptr)
    target = rg.measure("ndcg@10")
    labels = train.grouped(train.y)
    objective = LambdaObjective(target, labels, train.query_ptr, row_keys=keys, truncation=15)
    gradient, hessian = np.zeros((2, train.n_rows))
    rng = np.random.default_rng(0)
    scores = rng.normal(size=train.n_rows)
    objective.gradients(scores, gradient, hessian)
    binned = Binner.fit(train.X).transform(train.X)
    tree, leaf_of = Grower(binned, n_leaves=6, l2=l2).grow(gradient, hessian)
    prepared = target.prepare(labels, train.query_ptr)
    options = {"bounds": (1e-3, 1e3), "learning_rate": 1.0, "l2": l2}
    total, weight = np.zeros((2, 6))
    np.add.at(total, leaf_of, gradient)
    np.add.at(weight, leaf_of, hessian)
    mean = total / np.bincount(leaf_of)
    value, newton = OptimalStep(prepared, **options, mean_response=True).direction(tree)
    np.testing.assert_allclose(value, mean, rtol=1e-9)
    # Newton's step along the values: where the quadratic model of the gain is highest
    alphas = np.linspace(0, 3 * newton, 301)
    gain = [(a * total * mean - 0.5 * (weight + l2) * (a * mean) ** 2).sum() for a in alphas]
    assert alphas[np.argmax(gain)] == pytest.approx(newton, rel=0.02)
    value, newton = OptimalStep(prepared, **options, mean_response=False).direction(tree)
    np.testing.assert_allclose(value, total / (weight + l2), rtol=1e-9)
    assert newton == pytest.approx(1.0)


@pytest.mark.parametrize("step", EXACT)
def test_the_first_tree_takes_newtons_weight_whatever_the_learning_rate(train, step):
    slow = rg.LambdaMART(**SMALL | {"learning_rate": 0.25}, step=step).fit(train)
    fast = rg.LambdaMART(**SMALL, step=step).fit(train)
    assert slow.steps_[0] == fast.steps_[0]
    # and from then on the learning rate is a factor
    assert slow.steps_[1] == 0.25 * fast.steps_[1]
    if step == "optimal-newton":
        assert slow.steps_[0] == pytest.approx(1.0)
    # Newton's weight is cut to the bounds
    bounded = rg.LambdaMART(**SMALL, step=step, step_bounds=(0.2, 0.5)).fit(train)
    assert bounded.steps_[0] == 0.5


# -- the same bits, records, files ----------------------------------------------------------------


@pytest.mark.parametrize("step_on", ["train", "valid"])
def test_same_bits_for_any_threads_and_order(train, valid, step_on):
    options = SMALL | {"step": "optimal", "step_on": step_on, "row_fraction": 0.7}
    one = rg.LambdaMART(**options, n_threads=1).fit(train, valid=valid)
    same_model(one, rg.LambdaMART(**options, n_threads=2).fit(train, valid=valid))
    turned = [data.select(np.arange(data.n_queries)[::-1]) for data in (train, valid)]
    same_model(one, rg.LambdaMART(**options).fit(turned[0], valid=turned[1]))
    np.testing.assert_array_equal(one.predict(train.X), one.predict(train))


def test_weights_are_recorded_saved_and_resumed(train, valid, tmp_path):
    options = SMALL | {"step": "optimal", "step_on": "valid", "checkpoint_every": 1}
    options |= {"learning_rate": 0.5, "step_bounds": [0.1, 50]}
    whole = rg.LambdaMART(**options).fit(train, valid=valid)
    assert len(whole.steps_) == whole.ensemble_.n_trees
    whole.save(tmp_path / "m.rg")
    loaded = rg.load(tmp_path / "m.rg")
    assert loaded.steps_ == whole.steps_
    assert loaded.step_bounds == (0.1, 50)

    def die(progress):
        if progress.round == 3:
            raise RuntimeError("power failure")

    state = {"checkpoint": tmp_path / "state"}
    with pytest.raises(RuntimeError):
        rg.LambdaMART(**options, **state).fit(train, valid=valid, callbacks=[die])
    went_on = rg.LambdaMART(**options, **state).fit(train, valid=valid)
    same_model(whole, went_on)
    assert went_on.history_ == whole.history_
    with pytest.raises(rg.DataError, match="step was 'optimal', here it is 'newton'"):
        rg.LambdaMART(**options | {"step": "newton"}, **state).fit(train, valid=valid)
    plain = rg.LambdaMART(n_trees=3, learning_rate=0.2).fit(train)
    assert plain.steps_ == [0.2] * 3


# -- the weight of a submodel ---------------------------------------------------------------------


@pytest.mark.parametrize("step_on", ["train", "valid"])
def test_the_submodel_is_scaled_to_the_best(train, valid, step_on, tmp_path):
    big = rg.LambdaMART(n_trees=20, n_leaves=6).fit(rg.make_web(60, n_docs=15, n_features=10))
    options = SMALL | {"learning_rate": 0.1, "submodel": big, "step_on": step_on}
    model = rg.LambdaMART(**options, submodel_weight="optimal").fit(train, valid=valid)
    # the tree that it is found by is the first one that would be grown at a spread of about 1
    scores = big.predict(train)
    squares = [(part - part.mean()) ** 2 for part in np.split(scores, train.query_ptr[1:-1])]
    spread = 2.0 ** np.round(np.log2(np.sqrt(np.concatenate(squares).mean())))
    fixed = rg.LambdaMART(**options | {"n_trees": 1, "learning_rate": 1.0})
    tree = fixed.set_params(submodel_weight=1 / spread).fit(train).ensemble_.tree(0)
    data = {"train": train, "valid": valid}[step_on]
    values, scores = tree.predict(data.X), big.predict(data) / spread

    def reached(weight):
        return rg.evaluate(weight * scores + values, data, "ndcg@10").mean["ndcg@10"]

    found = model.submodel_weight_ * spread
    assert 0.1 <= found <= 100
    best = reached(found)
    for other in np.geomspace(0.1, 100, 200):
        assert reached(other) <= best + 1e-9
    # it is as if that number had been given
    given = rg.LambdaMART(**options, submodel_weight=model.submodel_weight_).fit(train, valid=valid)
    same_model(model, given)
    model.save(tmp_path / "m.rg")
    loaded = rg.load(tmp_path / "m.rg")
    assert loaded.submodel_weight_ == model.submodel_weight_
    assert loaded.submodel_weight == "optimal"
    np.testing.assert_array_equal(loaded.predict(valid), model.predict(valid))
    # the scale of the submodel's scores has no part in it
    for scale in (2.0**-9, 2.0**9):
        scaled = [data.with_base_score(scale * big.predict(data)) for data in (train, valid)]
        one = [data.with_base_score(big.predict(data)) for data in (train, valid)]
        by_scores = rg.LambdaMART(**options | {"submodel": "base_score"}, submodel_weight="optimal")
        expected = by_scores.fit(one[0], valid=one[1]).predict(one[1])
        by_scores.fit(scaled[0], valid=scaled[1])
        np.testing.assert_array_equal(by_scores.predict(scaled[1]), expected)
    none = rg.LambdaMART(**options | {"n_trees": 0}, submodel_weight="optimal")
    none.fit(train, valid=valid)
    np.testing.assert_array_equal(none.predict(valid), big.predict(valid))


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"step": "exact"},
        {"step": None},
        {"step_on": "test"},
        {"step_bounds": 3},
        {"step_bounds": (1, 1)},
        {"step_bounds": (0, 1)},
        {"step_bounds": (0.1, np.inf)},
        {"step_bounds": (0.1, "5")},
        {"submodel_weight": "best"},
    ],
    ids=str,
)
def test_bad_parameters(train, bad):
    (name,) = bad
    with pytest.raises(rg.ParameterError, match=f"'{name}' parameter of LambdaMART"):
        rg.LambdaMART(**bad).fit(train)


def test_validation_data_is_asked_for(train):
    for options in (
        {"step": "optimal"},
        {"submodel_weight": "optimal", "submodel": rg.LambdaMART(**SMALL).fit(train)},
    ):
        with pytest.raises(rg.ParameterError, match="step_on='valid' needs validation data"):
            rg.LambdaMART(**options, step_on="valid").fit(train)
    # where no weight is searched for, it does not matter
    rg.LambdaMART(**SMALL, step_on="valid").fit(train)
