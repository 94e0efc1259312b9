"""Tuning: spaces, the store, what is made of the trials."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from sklearn.base import clone

import rankgrove as rg
from rankgrove.tuning import trial_runner
from rankgrove.tuning.search_space import (
    N_TRIALS,
    PRESETS,
    checked_space,
    drawn,
    grid,
    planned,
    size_of,
)
from rankgrove.tuning.tuning_result import Trial, Tuning

SPACE = {"n_leaves": [2, 5], "learning_rate": [0.1, 0.5]}
BASE = rg.LambdaMART("map[relevant=2]", n_trees=8, min_leaf=3, early_stopping=4)


@pytest.fixture(scope="module")
def parts():
    return [rg.make_web(20, n_docs=10, n_features=5, seed=s) for s in range(5)]


def renamed(parts):
    """The same data with query ids that do not meet."""
    return [rg.QueryDataset(p.X, p.y, [f"{i}-{q}" for q in p.qid]) for i, p in enumerate(parts)]


def test_the_papers_grids():
    assert size_of(PRESETS["small"]) == 1008
    assert size_of(PRESETS["large"]) == 162
    every = list(grid(PRESETS["small"]))
    assert len(every) == len({json.dumps(params) for params in every}) == 1008


def test_random_draws_are_of_the_grid_and_different():
    chosen = drawn(PRESETS["large"], 40, seed=1)
    every = [json.dumps(params) for params in grid(PRESETS["large"])]
    texts = [json.dumps(params) for params in chosen]
    assert len(set(texts)) == 40
    assert set(texts) <= set(every)
    assert len(drawn(SPACE, 99, seed=0)) == 4
    assert drawn(PRESETS["large"], 10, seed=1) == chosen[:10]


def test_a_grid_on_folds(parts):
    folds = list(rg.letor_folds(renamed(parts)))[:2]
    tuning = rg.tune(BASE, folds, SPACE, n_seeds=2, measures=["map[relevant=2]", "ndcg@3"])
    assert [trial.parameters for trial in tuning.trials] == list(grid(SPACE))
    second = tuning.trials[1]
    assert len(second.values["test"]["ndcg@3"]) == len(second.trees) == 4
    # the third fit is fold 2 with the first seed
    seed = trial_runner.derive_seed(0, "tune", 0) % 2**31
    model = rg.LambdaMART(**(BASE.get_params() | second.parameters | {"random_state": seed}))
    model.fit(folds[1].train, valid=folds[1].valid)
    expected = rg.evaluate(model, folds[1].test, "ndcg@3").mean["ndcg@3"]
    assert second.values["test"]["ndcg@3"][2] == expected
    means = [trial.mean("valid", "map[relevant=2]") for trial in tuning.trials]
    assert tuning.best is tuning.trials[int(np.argmax(means))]
    lines = tuning.table(2).splitlines()
    assert len(lines) == 4
    cells = [cell.strip() for cell in lines[0].split("|")[1:5]]
    names = [f"{part} {m}" for m in ("map[relevant=2]", "ndcg@3") for part in ("valid", "test")]
    assert cells == names
    shown = lines[2].split("|")[4].strip()
    assert shown == f"{tuning.best.mean('test', 'ndcg@3'):.4f}"
    assert f"{max(means):.4f}" in lines[2]
    for fold, (parameters, value) in enumerate(tuning.nested()):
        of_fold = [
            np.mean(t.values["valid"]["map[relevant=2]"][2 * fold : 2 * fold + 2])
            for t in tuning.trials
        ]
        best = tuning.trials[int(np.argmax(of_fold))]
        assert parameters == best.parameters
        on_test = best.values["test"]["map[relevant=2]"][2 * fold : 2 * fold + 2]
        assert value == pytest.approx(np.mean(on_test))


def test_what_is_known_is_not_computed_again(parts, tmp_path, monkeypatch):
    data, path = parts[:3], tmp_path / "trials.jsonl"
    work, n = trial_runner.fit_one, []

    def killed_at_third(*args):
        n.append(args[1])
        if len(n) == 3:
            raise KeyboardInterrupt
        return work(*args)

    monkeypatch.setattr(trial_runner, "fit_one", killed_at_third)
    with pytest.raises(KeyboardInterrupt):
        rg.tune(BASE, data, SPACE, store=path)
    with open(path, "ab") as out:  # a line that a kill cut short
        out.write(b'{"key": "half a li')
    tuning = rg.tune(BASE, data, SPACE, store=path)
    assert len(n) == 5  # two, the killed one, and the two that were left
    monkeypatch.setattr(trial_runner, "fit_one", lambda *_: pytest.fail("it is known"))
    again = rg.tune(BASE, data, SPACE, store=path)
    monkeypatch.undo()
    fresh = rg.tune(BASE, data, SPACE)
    for first, second, third in zip(tuning.trials, again.trials, fresh.trials, strict=True):
        assert first.values == second.values == third.values
    with pytest.raises(rg.DataError, match="holds other results: there random_state was 0"):
        rg.tune(BASE, data, SPACE, store=path, random_state=1)
    with pytest.raises(rg.DataError, match="other results: data differs"):
        rg.tune(BASE, parts[1:4], SPACE, store=tmp_path / "trials.jsonl")


def test_a_second_held_out_set(parts):
    tuning = rg.tune(BASE, parts[:3], SPACE, second=0.4, measures="ndcg@3")
    assert set(tuning.trials[0].values) == {"valid", "second", "test"}
    assert tuning.early_stop(1) in tuning.trials
    with pytest.raises(rg.ParameterError, match="leaves one of the two sets empty"):
        rg.tune(BASE, parts[:3], SPACE, second=0.01)


def test_test_data_does_not_choose(parts):
    with pytest.raises(rg.ParameterError, match="must not choose parameters"):
        rg.tune(BASE, rg.k_fold(parts[0], 3), SPACE)
    tuning = rg.tune(BASE, rg.k_fold(parts[0], 3, valid=True), SPACE)
    assert "4 trials, 3 folds, 1 seed; best valid map[relevant=2]" in repr(tuning)
    with pytest.raises(rg.DataError, match="no 'test' data, only 'valid'"):
        rg.tune(BASE, parts[:2], SPACE).nested()


def test_any_ranker_can_be_tuned(parts):
    tuning = rg.tune(rg.SVMMap(relevant=2), parts[:2], {"C": [0.1, 10.0]}, measures="map")
    assert tuning.trials[0].trees is None
    assert list(tuning.trials[0].values) == ["valid"]


@pytest.mark.parametrize("options", [{}, {"search": "random", "n_trials": 1}])
def test_every_value_is_checked_before_any_fit(parts, monkeypatch, options):
    monkeypatch.setattr(trial_runner, "fit_one", lambda *_: pytest.fail("no fit yet"))
    space = {"learning_rate": [0.1], "n_leaves": [31, 30, 29, "x"]}
    with pytest.raises(rg.ParameterError, match="'n_leaves' parameter of LambdaMART"):
        rg.tune(BASE, parts[:2], space, **options)


def test_a_bag_can_be_tuned(parts, tmp_path):
    bag = rg.BaggedRanker(BASE, 2, checkpoint=tmp_path / "models")
    space = {"base__n_leaves": [2, 5], "query_fraction": [0.5, 0.8]}
    path = tmp_path / "trials.jsonl"
    tuning = rg.tune(bag, parts[:3], space, measures="map[relevant=2]", store=path)
    trial = tuning.trials[1]
    assert trial.parameters == {"base__n_leaves": 2, "query_fraction": 0.8}
    seed = trial_runner.derive_seed(0, "tune", 0) % 2**31
    base = rg.LambdaMART(**(BASE.get_params() | {"n_leaves": 2}))
    bagged = rg.BaggedRanker(base, 2, 0.8, random_state=seed).fit(parts[0], valid=parts[1])
    expected = rg.evaluate(bagged, parts[2], "map[relevant=2]").mean["map[relevant=2]"]
    assert trial.values["test"]["map[relevant=2]"] == [expected]
    assert trial.trees == [bagged.n_trees_]
    other = rg.BaggedRanker(rg.LambdaMART(**(BASE.get_params() | {"min_leaf": 4})), 2)
    with pytest.raises(rg.DataError, match="there the base's min_leaf was 3"):
        rg.tune(other, parts[:3], space, measures="map[relevant=2]", store=path)
    with pytest.raises(rg.ParameterError, match="plain values for 'base'"):
        rg.tune(bag, parts[:3], {"base": [BASE]})
    with pytest.raises(rg.ParameterError, match="left out if the bag has a cluster"):
        rg.tune(rg.BaggedRanker(BASE, 2, cluster="local"), parts[:3], space, cluster="local")


def test_bags_by_their_out_of_bag_queries(parts, tmp_path):
    bag = rg.BaggedRanker(BASE, 4, 0.5)
    space = {"base__n_leaves": [2, 5, 8]}
    args = (bag, parts[:3], space)
    how = {"measures": ["map[relevant=2]", "ndcg@5"], "convention": "letor"}
    tuning = rg.tune(*args, **how, choose_by="out_of_bag")
    assert tuning.choose_by == "out_of_bag"
    worth = [trial.mean("out_of_bag", "map[relevant=2]") for trial in tuning.trials]
    assert tuning.best is tuning.trials[int(np.argmax(worth))]
    assert "out-of-bag map[relevant=2] | valid map[relevant=2] | test" in tuning.table()
    figure = rg.plot.tuning(tuning)
    assert figure.axes[0].get_legend().get_texts()[0].get_text() == "out of bag"
    # by hand: the queries that a model missed, by the models that missed them
    base = rg.LambdaMART(**(BASE.get_params() | {"n_leaves": 2}))
    seed = trial_runner.derive_seed(0, "tune", 0) % 2**31
    bagged = rg.BaggedRanker(base, 4, 0.5, random_state=seed)
    bagged.fit(parts[0], valid=parts[1], valid_measures="map[relevant=2]")
    scores = bagged.out_of_bag_scores_
    seen = ~np.isnan(scores)
    part = rg.QueryDataset(parts[0].X[seen], parts[0].y[seen], np.asarray(parts[0].qid)[seen])
    expected = rg.evaluate(scores[seen], part, how["measures"], "letor").mean
    assert {m: v for m, (v,) in tuning.trials[0].values["out_of_bag"].items()} == expected
    whole = rg.BaggedRanker(BASE, 2, 1.0)
    with pytest.raises(rg.ParameterError, match="left no query out"):
        rg.tune(whole, parts[:3], space, choose_by="out_of_bag")
    with pytest.raises(rg.ParameterError, match="which is not a bag"):
        rg.tune(BASE, parts[:3], SPACE, choose_by="out_of_bag")


def test_the_papers_grid_of_a_bag_is_its_bases(parts):
    tuning = rg.tune(
        rg.BaggedRanker(BASE, 2), parts[:3], "large", search="random", n_trials=1, n_seeds=1
    )
    assert list(tuning.best_parameters) == [f"base__{name}" for name in PRESETS["large"]]


def test_the_papers_grids_are_of_trees(parts):
    with pytest.raises(rg.ParameterError, match="which LambdaRank does not all have"):
        rg.tune(rg.LambdaRank(), parts, "small")


def test_optuna(parts):
    pytest.importorskip("optuna")
    tuning = rg.tune(BASE, parts[:3], SPACE, search="optuna", n_trials=3)
    assert len(tuning.trials) == 3
    again = rg.tune(BASE, parts[:3], SPACE, search="optuna", n_trials=3)
    assert [t.parameters for t in tuning.trials] == [t.parameters for t in again.trials]


def made_up(valid, test, second=None):
    trials = []
    for i, (v, t) in enumerate(zip(valid, test, strict=True)):
        values = {"valid": {"map": [v]}, "test": {"map": [t]}}
        if second is not None:
            values["second"] = {"map": [second[i]]}
        trials.append(Trial({"i": i}, values, None))
    return Tuning(trials, "map", 1, 1)


def test_the_best_of_m_is_the_expectation_over_all_subsets():
    valid, test = [0.3, 0.9, 0.1, 0.5, 0.7], [0.4, 0.2, 0.6, 0.8, 0.1]
    m, of_valid, of_test = made_up(valid, test).best_of()
    np.testing.assert_array_equal(m, [1, 2, 3, 4, 5])
    for size in m:
        best = [max(s, key=lambda i: valid[i]) for s in itertools.combinations(range(5), size)]
        assert of_valid[size - 1] == pytest.approx(np.mean([valid[i] for i in best]))
        assert of_test[size - 1] == pytest.approx(np.mean([test[i] for i in best]))


def test_where_tuning_should_have_ended():
    tuning = made_up([0.1, 0.2, 0.3, 0.4], [0] * 4, [0.5, 0.6, 0.4, 0.9])
    assert tuning.early_stop(1).parameters == {"i": 1}
    assert tuning.early_stop(2).parameters == {"i": 3}
    with pytest.raises(rg.DataError, match="second held-out set"):
        made_up([0.1], [0.1]).early_stop(1)


def test_the_table_of_all_trials(parts, tmp_path):
    tuning = rg.tune(BASE, parts[:3], SPACE)
    tuning.to_csv(tmp_path / "trials.csv")
    lines = (tmp_path / "trials.csv").read_text().splitlines()
    assert lines[0] == "n_leaves,learning_rate,valid map[relevant=2],test map[relevant=2]"
    assert len(lines) == 5


def test_the_plan_is_bounded_and_the_rankers_measure_decides(parts):
    space = checked_space("small-data", "tune")
    assert space == PRESETS["small"]
    assert checked_space("large-data", "tune") == PRESETS["large"]
    assert planned(space, "auto", None, "tune") == ("random", N_TRIALS, 1008)
    assert planned(space, "auto", 2000, "tune") == ("grid", 1008, 1008)
    assert planned(space, "grid", None, "tune") == ("grid", 1008, 1008)
    assert planned(SPACE, "random", None, "tune") == ("random", 4, 4)
    assert str(planned(space, "optuna", 7, "tune")) == "7 of 1,008 combinations, proposed by Optuna"
    tuning = rg.tune(clone(BASE).set_params(measure="map"), parts[:2], SPACE, n_trials=1)
    assert (len(tuning.trials), tuning.measure) == (1, "map")
    tuning = rg.tune(rg.MART(n_trees=2, min_leaf=3), parts[:2], {"n_leaves": [2]})
    assert tuning.measure == "ndcg@10"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"space": "huge"}, "'space' parameter of tune must be one of"),
        ({"space": {"n_leaves": 5}}, "a list of values for 'n_leaves'"),
        ({"space": {"n_leafs": [5]}}, "no parameter 'n_leafs'"),
        ({"n_trials": 0}, "'n_trials' parameter of tune"),
        ({"n_seeds": 0}, "'n_seeds' parameter"),
        ({"search": "grid", "n_trials": 3}, "left out for search='grid'"),
        ({"space": {"n_leaves": [2, 2]}}, "different values for 'n_leaves'"),
        ({"store": "/nonexistent/a.jsonl"}, "'store' parameter of tune"),
        ({"second": 1.0}, "a share below 1"),
        ({"base": rg.CombinedRanker()}, "'base' parameter of tune"),
        ({"data": 5}, "'data' parameter of tune"),
        ({"measures": []}, "'measures' parameter of tune"),
        ({"cluster": "here"}, "'cluster' parameter of tune"),
        ({"data": [(1, 2)]}, "a fold is"),
    ],
)
def test_mistakes(parts, options, message):
    arguments = {"base": BASE, "data": parts[:3], "space": SPACE} | options
    with pytest.raises((rg.ParameterError, rg.UnknownParameterError), match=message):
        rg.tune(**arguments)
