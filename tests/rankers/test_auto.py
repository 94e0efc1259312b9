"""AutoRanker: cross-fitting, an honest choice, limits, resuming, odd data."""

from __future__ import annotations

import time

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.parse import target_measure
from rankgrove.rankers.auto import search as searching
from rankgrove.rankers.auto.budget import Budget
from rankgrove.rankers.auto.crossfit import Shared, Task, best_round, divided, fit_fold
from rankgrove.rankers.auto.portfolio import Candidate, presets, variation
from rankgrove.rankers.auto.selection import (
    STRATEGIES,
    Columns,
    balanced_groups,
    best_of_families,
    choose,
    counted_greedy,
    exact_greedy,
    mean_of_best,
)

FOUR = {"n_trees": 4, "n_leaves": 4, "early_stopping": 10, "overfitting_tolerance": 1.0}
FEW = {"minutes": None, "n_fits": 15, "n_threads": 1}


@pytest.fixture(scope="module")
def data():
    return rg.make_web(60, n_docs=12, n_features=8, seed=1)


@pytest.fixture(scope="module")
def test_data():
    return rg.make_web(60, n_docs=12, n_features=8, seed=2)


@pytest.fixture(scope="module")
def best(data):
    return rg.AutoRanker("ndcg@10", **FEW).fit(data)


# -- cross-fitting ---------------------------------------------------------------------------------


def test_folds_cover_all_queries_and_keep_groups_together():
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 40, 200).astype(np.uint64)
    usable = rng.random(200) < 0.3
    fold = divided(groups, usable, 5, 3, 0)
    assert sorted(set(fold)) == [0, 1, 2, 3, 4]
    for group in np.unique(groups):
        assert len(set(fold[groups == group])) == 1
    assert np.bincount(fold).min() >= 25
    assert np.bincount(fold, usable).min() >= 8
    assert not np.array_equal(fold, divided(groups, usable, 5, 3, 1))
    turned = divided(groups[::-1], usable[::-1], 5, 3, 0)
    np.testing.assert_array_equal(turned[::-1], fold)


def test_a_fold_plays_no_part_in_its_own_models(data):
    """Changing the labels of a fold changes neither its model nor its out-of-fold scores."""
    candidate = Candidate("trees", rg.LambdaMART(**FOUR))
    usable = np.ones(data.n_queries, bool)
    fold = divided(data.query_keys, usable, 5, 0, 0)
    rows = np.repeat(fold == 2, np.diff(data.query_ptr))
    labels = data.y.copy()
    labels[rows] = labels[rows][::-1]
    changed = rg.QueryDataset(data.X, labels, qid=data.qid)
    scores = []
    for part in (data, changed):
        target = target_measure("ndcg@10")
        shared = Shared(part, None, part.query_keys, usable, 5, target, 0, None)
        scores.append(fit_fold(shared, Task(candidate, 0, 2), 1).model.predict(part))
    np.testing.assert_array_equal(*scores)


def test_the_best_round_is_that_of_the_mean_curve():
    rising, falling = np.linspace(0, 1, 50), np.linspace(1, 0, 50) ** 2
    assert best_round([rising]) == 50
    assert best_round([rising, falling * 3]) == 1
    peak = -np.abs(np.arange(60) - 30.0)
    assert abs(best_round([peak, peak]) - 31) <= 1
    assert best_round([]) is None
    assert best_round([np.empty(0)]) is None
    assert best_round([np.array([0.1]), np.array([0.2, 0.3, 0.9])]) == 3


# -- the choice ------------------------------------------------------------------------------------


def columns_of(scores, labels, ptr, measure="ndcg@5"):
    prepared = target_measure(measure).prepare(labels, ptr, 1)
    names = [f"family {j // 2}" for j in range(len(scores))]
    groups = ["trees" if j % 2 else "linear" for j in range(len(scores))]
    return Columns(np.array(scores), prepared, names, groups, 1)


def noisy_columns(n_queries=60, n=6, seed=0):
    rng = np.random.default_rng(seed)
    ptr = np.arange(0, 10 * n_queries + 1, 10)
    labels = rng.integers(0, 3, ptr[-1]).astype(float)
    scores = [labels + (1 + 0.5 * j) * rng.normal(size=labels.size) for j in range(n)]
    return scores, labels, ptr


def test_strategies_give_weights_that_add_up_to_1():
    columns = columns_of(*noisy_columns())
    for strategy in STRATEGIES.values():
        weights = strategy(columns)
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()


def test_greedy_selection_is_never_worse_than_the_best_column():
    columns = columns_of(*noisy_columns(seed=2))
    alone = columns.mean(mean_of_best(1)(columns) @ columns.scores)
    for strategy in (exact_greedy, counted_greedy):
        assert columns.mean(strategy(columns) @ columns.scores) >= alone


def test_the_nested_value_does_not_see_the_query_it_values():
    """With columns of pure noise the nested value is that of chance; the one in sample is above."""
    rng = np.random.default_rng(5)
    ptr = np.arange(0, 1001, 10)
    labels = rng.integers(0, 2, 1000).astype(float)
    scores = rng.normal(size=(40, 1000))
    fold = np.arange(100) % 5

    def some(queries):
        rows = np.repeat(queries, np.diff(ptr))
        return columns_of(scores[:, rows], labels[rows], np.arange(0, rows.sum() + 1, 10))

    choice = choose(some, fold, STRATEGIES)
    chance = np.mean([columns_of(scores, labels, ptr).mean(column) for column in scores])
    assert choice.in_sample > chance + 0.03
    assert abs(choice.value - chance) < 0.05
    assert choice.optimism > 0.02


def test_every_kind_of_model_gets_the_same_weight():
    scores, labels, ptr = noisy_columns(n=1, seed=3)
    columns = columns_of([scores[0] + 1e-3 * j * labels for j in range(4)], labels, ptr)
    weights = balanced_groups(columns)
    assert weights[[0, 2]].sum() == pytest.approx(weights[[1, 3]].sum())
    weights = best_of_families(columns)
    assert np.count_nonzero(weights[:2]) == 1


# -- the portfolio ---------------------------------------------------------------------------------


def test_variations_are_new_and_valid(data):
    known, listed = set(), presets("ndcg@10", data, trees_only=True)
    draw = np.random.default_rng(0)
    for _ in range(40):
        child = variation(listed, known, draw)
        assert child.key not in known
        known.add(child.key)
        child.ranker.check_parameters()


def test_presets_of_trees_can_be_exported(data):
    kinds = {candidate.ranker.kind for candidate in presets("map", data, trees_only=True)}
    assert kinds == {"lambdamart", "mart"}
    assert len(presets("map", data, trees_only=False)) > len(presets("map", data, trees_only=True))


# -- the ranker ------------------------------------------------------------------------------------


def test_it_says_what_it_tried_and_what_it_is_worth(best, data):
    assert len(best.leaderboard_) == 3
    assert sum(entry.fits for entry in best.leaderboard_) == 15
    assert sum(entry.weight for entry in best.leaderboard_) == pytest.approx(1.0)
    values = [entry.value for entry in best.leaderboard_]
    assert values == sorted(values, reverse=True)
    low, high = best.interval_
    assert low < best.value_ < high
    text = best.explain_choice()
    for part in ("3 candidates were cross-fitted", best.leaderboard_[0].name, f"{best.value_:.4f}"):
        assert part in text
    assert "95 % interval" in repr(best.leaderboard_)
    assert "AutoRanker for ndcg@10" in best.summary()
    assert [step.fits for step in best.search_] == [5, 10, 15]


@pytest.mark.slow
def test_the_same_bits_for_any_threads_and_after_loading(best, data, test_data, tmp_path):
    again = rg.AutoRanker("ndcg@10", **FEW | {"n_threads": 2}).fit(data)
    scores = best.predict(test_data)
    np.testing.assert_array_equal(scores, again.predict(test_data))
    other = rg.AutoRanker("ndcg@10", random_state=1, **FEW).fit(data)
    assert not np.array_equal(scores, other.predict(test_data))
    best.save(tmp_path / "best.rg")
    loaded = rg.load(tmp_path / "best.rg")
    np.testing.assert_array_equal(scores, loaded.predict(test_data))
    assert loaded.explain_choice() == best.explain_choice()
    assert [step.value for step in loaded.search_] == [step.value for step in best.search_]
    again.save(tmp_path / "again.rg")
    assert (tmp_path / "again.rg").read_bytes() == (tmp_path / "best.rg").read_bytes()


@pytest.mark.slow
def test_a_cluster_gives_the_same_model(best, data, test_data):
    other = rg.AutoRanker("ndcg@10", cluster="local", **FEW).fit(data)
    np.testing.assert_array_equal(best.predict(test_data), other.predict(test_data))


def test_a_search_is_resumed_from_its_folder(best, data, test_data, tmp_path, monkeypatch):
    folder = tmp_path / "fits"
    first = rg.AutoRanker("ndcg@10", checkpoint=folder, **FEW | {"n_fits": 10}).fit(data)
    assert len(list(folder.glob("*.rg"))) == 10
    trained = []

    def counting(shared, task, n_threads):
        trained.append(task)
        return fit_fold(shared, task, n_threads)

    monkeypatch.setattr(searching, "fit_fold", counting)
    whole = rg.AutoRanker("ndcg@10", checkpoint=folder, **FEW).fit(data)
    assert len(trained) == 5
    np.testing.assert_array_equal(whole.predict(test_data), best.predict(test_data))
    assert len(first.leaderboard_) == 2
    with pytest.raises(DataError, match="another search"):
        rg.AutoRanker("map", checkpoint=folder, **FEW).fit(data)


def test_ctrl_c_keeps_the_best_so_far(data, test_data, monkeypatch):
    calls = []

    def interrupted(shared, task, n_threads):
        calls.append(task)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return fit_fold(shared, task, n_threads)

    monkeypatch.setattr(searching, "fit_fold", interrupted)
    ranker = rg.AutoRanker("ndcg@10", **FEW)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(data)
    assert ranker.interrupted_
    assert len(ranker.leaderboard_) == 1
    assert np.isfinite(ranker.predict(test_data)).all()
    calls[:] = [None] * 7
    with pytest.raises(KeyboardInterrupt):
        rg.AutoRanker("ndcg@10", **FEW).fit(data)


def test_a_budget_of_time():
    budget = Budget(minutes=1.0, n_fits=None)
    assert budget.deadline == pytest.approx(budget.started + 60 * 0.97)
    budget.started = time.monotonic() - 50
    assert budget.allows(5, 1.0)
    assert not budget.allows(5, 20.0)
    budget.reserve(20.0)
    assert budget.is_over


@pytest.mark.slow
def test_limits_of_size(data, test_data):
    few = rg.AutoRanker("ndcg@10", max_trees=20, **FEW).fit(data)
    assert few.tree_count() <= 20
    assert few.flat().n_trees <= 20
    fast = rg.AutoRanker("ndcg@10", max_microseconds=0.5, **FEW).fit(data)
    assert fast.flat() is not None
    assert np.isfinite(fast.predict(test_data)).all()


def test_it_can_be_exported_and_explained(data, test_data, tmp_path):
    model = rg.AutoRanker("ndcg@10", exportable=True, **FEW).fit(data)
    rg.convert(model, tmp_path / "best.txt", to="lightgbm")
    there = rg.load(tmp_path / "best.txt")
    np.testing.assert_allclose(there.predict(test_data), model.predict(test_data), atol=1e-9)
    explanation = rg.explain(model, test_data.select([0]))
    assert explanation is not None
    assert model.scorer().predict(test_data.X).shape == (test_data.n_rows,)


def test_pruning_keeps_all_models(data, test_data):
    model = rg.AutoRanker("ndcg@10", exportable=True, **FEW).fit(data)
    pruned = rg.prune(model, test_data, "ndcg@10", tolerance=0.01)
    value = rg.evaluate(pruned.ranker, test_data, "ndcg@10").mean["ndcg@10"]
    assert value == pytest.approx(pruned.values[1]["ndcg@10"])
    assert pruned.ranker.tree_count() == pruned.n_trees[1]


# -- odd data --------------------------------------------------------------------------------------


def test_groups_are_never_divided(data):
    users = np.arange(data.n_queries) // 6
    model = rg.AutoRanker("ndcg@10", group=users, **FEW).fit(data)
    assert model.leaderboard_[0].fits == 10  # few groups: one fold each
    with pytest.raises(ParameterError, match="one value per query"):
        rg.AutoRanker(group=[1, 2], **FEW).fit(data)
    with pytest.raises(DataError, match="at least 2 queries"):
        rg.AutoRanker(group=np.zeros(data.n_queries), **FEW).fit(data)


def test_few_queries_one_feature_missing_values_and_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    X[rng.random(60) < 0.2] = np.nan
    labels = (np.nan_to_num(X[:, 0]) + 0.3 * rng.normal(size=60) > 0.5).astype(int)
    labels[20:40] = 0  # all equal in most queries
    qid = np.repeat(np.arange(6), 10)
    small = rg.QueryDataset(X, labels, qid=qid, query_weight=rng.random(6) + 0.5)
    model = rg.AutoRanker("ndcg@10", minutes=None, n_fits=12, n_threads=1).fit(small)
    assert np.isfinite(model.predict(small)).all()
    assert np.isfinite(model.value_)


def test_validation_data_is_more_training_data(data, test_data):
    both = rg.AutoRanker("ndcg@10", **FEW | {"n_fits": 5}).fit(data, valid=test_data)
    alone = rg.AutoRanker("ndcg@10", **FEW | {"n_fits": 5}).fit(data)
    assert not np.array_equal(both.predict(data), alone.predict(data))


def test_mistakes_are_refused(data):
    with pytest.raises(ParameterError, match="one limit"):
        rg.AutoRanker(minutes=1, n_fits=5).fit(data)
    with pytest.raises(ParameterError, match="one limit"):
        rg.AutoRanker(minutes=None).fit(data)
    with pytest.raises(ParameterError, match="minutes"):
        rg.AutoRanker(minutes=-1).fit(data)
    with pytest.raises(DataError, match="too low"):
        rg.AutoRanker(minutes=None, n_fits=3).fit(data)
    equal = rg.QueryDataset(data.X, np.zeros(data.n_rows), qid=data.qid)
    with pytest.raises(DataError, match="differ in relevance"):
        rg.AutoRanker(**FEW).fit(equal)


def test_queries_that_count_are_spread_over_the_folds(data):
    labels = data.y.copy()
    labels[data.query_ptr[7] :] = 0  # seven queries with different labels
    few = rg.QueryDataset(data.X, labels, qid=data.qid)
    model = rg.AutoRanker("ndcg@10", exportable=True, minutes=None, n_fits=7, n_threads=1).fit(few)
    assert model.leaderboard_[0].fits == 7
    assert not model.failed_
