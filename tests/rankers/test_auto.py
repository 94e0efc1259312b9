"""AutoRanker: cross-fitting, an honest choice, limits, resuming, odd data."""

from __future__ import annotations

import copy
import inspect
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import rankgrove as rg
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.parse import full_name, target_measure
from rankgrove.rankers.auto import limited as limiting
from rankgrove.rankers.auto import search as searching
from rankgrove.rankers.auto.budget import Budget
from rankgrove.rankers.auto.crossfit import Shared, Task, best_round, divided, fit_fold
from rankgrove.rankers.auto.leaderboard import Entry, Leaderboard
from rankgrove.rankers.auto.limited import Limited, bag_of
from rankgrove.rankers.auto.portfolio import Candidate, presets, variation
from rankgrove.rankers.auto.selection import (
    STRATEGIES,
    Columns,
    balanced_groups,
    best_of_families,
    choose,
    counted_greedy,
    exact_greedy,
    few_strategies,
    mean_of_best,
)
from rankgrove.rankers.inner_rankers import described

FOUR = {"n_trees": 4, "n_leaves": 4, "early_stopping": 10, "overfitting_tolerance": 1.0}
FEW = {"n_fits": 15, "n_threads": 1}


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

    def some(queries, members):
        rows = np.repeat(queries, np.diff(ptr))
        size = np.arange(0, rows.sum() + 1, 10)
        return columns_of(scores[np.ix_(members, rows)], labels[rows], size)

    choice = choose(some, fold, STRATEGIES, [None] * 40)
    chance = np.mean([columns_of(scores, labels, ptr).mean(column) for column in scores])
    assert choice.in_sample > chance + 0.03
    assert abs(choice.value - chance) < 0.05
    assert choice.optimism > 0.02


def test_a_fold_is_valued_without_candidates_that_it_had_a_part_in_proposing():
    """Columns that know the labels of one fold are left out where that fold is valued."""
    rng = np.random.default_rng(6)
    ptr = np.arange(0, 1001, 10)
    labels = rng.integers(0, 2, 1000).astype(float)
    fold = np.arange(100) % 5
    of_row = np.repeat(fold, 10)
    scores = rng.normal(size=(12, 1000))
    for j in range(5):  # it looks good on all folds but its own: it was proposed by the others
        scores[2 + j] += 5.0 * labels * (of_row != j)
    blind = [None, None, 0, 1, 2, 3, 4, None, None, None, None, None]

    def some(queries, members):
        rows = np.repeat(queries, np.diff(ptr))
        size = np.arange(0, rows.sum() + 1, 10)
        return columns_of(scores[np.ix_(members, rows)], labels[rows], size)

    chance = np.mean([columns_of(scores[:2], labels, ptr).mean(c) for c in scores[7:]])
    strategies = {"mean": mean_of_best(5)}
    assert abs(choose(some, fold, strategies, blind).value - chance) < 0.05
    assert choose(some, fold, strategies, [None] * 12).value > chance + 0.1


def test_every_kind_of_model_gets_the_same_weight():
    scores, labels, ptr = noisy_columns(n=1, seed=3)
    columns = columns_of([scores[0] + 1e-3 * j * labels for j in range(4)], labels, ptr)
    weights = balanced_groups(columns)
    assert weights[[0, 2]].sum() == pytest.approx(weights[[1, 3]].sum())
    weights = best_of_families(columns)
    assert np.count_nonzero(weights[:2]) == 1


# -- the portfolio ---------------------------------------------------------------------------------


def test_variations_are_new_and_valid(data):
    known, listed = set(), presets("ndcg@10", data, trees_only=False)
    draw = np.random.default_rng(0)
    groups = set()
    for _ in range(60):
        child = variation(listed, known, draw, 2)
        assert child.key not in known
        assert child.blind == 2
        groups.add(child.group)
        known.add(child.key)
        child.ranker.check_parameters()
    assert groups == {"trees", "net"}


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


def test_a_candidate_can_be_made_again():
    """The preparation and its base have a parameter of the same name."""
    net = rg.LambdaRank("map", hidden=(8,), normalise=False)
    ranker = rg.PreparedRanker(net, normalise="zscore")
    again = replace(entry(), settings=described(ranker)).ranker()
    assert again.normalise == "zscore"
    assert again.base.get_params() == net.get_params()


def entry(name="trees", seconds=0.0, weight=1.0, trees=None, value=0.5):
    return Entry(name, {}, value, value - 0.1, value + 0.1, weight, 5, seconds, trees)


def test_the_table_is_aligned_whatever_its_measure_and_times():
    board = Leaderboard([entry(value=12.25, seconds=1234.5, trees=1200), entry("b")], "dcg@100000")
    title, first, second = repr(board).split("\n")
    assert (
        title.split() == "candidate dcg@100000 95 % interval weight fits time trees/model".split()
    )
    assert len(title) == len(first) == len(second)
    for column in ("dcg@100000", "95 % interval", "time", "trees/model"):
        end = title.index(column) + len(column)
        assert not first[end - 1].isspace()
        assert not second[end - 1].isspace()
        assert not first[end:].strip() or first[end] == " "
    assert "1,234.5 s" in first
    assert "-" in second.split()


def test_the_convention_and_the_time_of_scoring_are_named(best):
    assert "ndcg@10[papers]" in repr(best.leaderboard_).split("\n")[0]
    for text in (best.explain_choice(), best.summary()):
        assert "new queries: ndcg@10[papers]" in text
        assert "microseconds per document" in text
    assert best.microseconds_ > 0.0
    assert full_name("ndcg@10[letor]") == "ndcg@10[letor]"
    assert full_name("dcg@5[discount=ln]") == "dcg@5[papers,discount=ln]"
    for name in ("map", "err[yahoo]", "dcg@5[discount=ln]"):
        assert rg.measure(full_name(name)) == rg.measure(name)


def test_ways_need_as_many_candidates_as_they_name():
    assert list(few_strategies(1)) == ["the best candidate alone"]
    assert "the mean of the 3 best" not in few_strategies(2)
    assert "the mean of the 5 best" in few_strategies(5)
    assert "the mean of the 10 best" not in few_strategies(9)
    assert few_strategies(10) == STRATEGIES


def test_ways_of_the_same_value_are_one_line(best, monkeypatch):
    monkeypatch.setattr(best, "compared_", {"a": 0.5, "b": 0.6, "c": 0.5})
    assert best.ways() == [("b", 0.6), ("a (the same: c)", 0.5)]
    assert "0.5000  a (the same: c)" in best.explain_choice()


def test_an_estimate_without_optimism_says_so(best, monkeypatch):
    monkeypatch.setattr(best, "optimism_", 1e-6)
    assert best.estimate_text().endswith("made on it is the same.")


def test_an_interrupted_search_says_so(best, monkeypatch):
    assert "interrupted" not in best.summary()
    monkeypatch.setattr(best, "interrupted_", True)
    assert "The search was interrupted" in best.summary()


def test_its_own_documentation_of_fit():
    assert "join those of the folds" in rg.AutoRanker.fit.__doc__
    assert inspect.signature(rg.AutoRanker.fit) == inspect.signature(rg.LambdaMART.fit)


def test_the_leaderboard_as_a_table(best):
    frame = best.leaderboard_.to_frame()
    assert frame["value"].tolist() == [entry.value for entry in best.leaderboard_]


def test_groups_are_not_kept(best, tmp_path):
    groups = best.set_params(group=["a user"] * 60)
    groups.save(tmp_path / "best.rg")
    best.set_params(group=None)
    assert rg.load(tmp_path / "best.rg").group is None
    assert b"a user" not in (tmp_path / "best.rg").read_bytes()


def test_rankers_that_cannot_use_weights_are_not_tried(data):
    weighted = rg.QueryDataset(data.X, data.y, qid=data.qid, weight=np.ones(data.n_rows))
    names = {candidate.name for candidate in presets("map", data, trees_only=False)}
    kept = {candidate.name for candidate in presets("map", weighted, trees_only=False)}
    assert names - kept == {"SVM-map", "RankSVM", "Coordinate ascent", "CRR"}
    for candidate in presets("map", weighted, trees_only=False):
        assert candidate.learner.takes_row_weights


def test_a_model_that_normalises_asks_for_queries(best, data):
    """Its own name is in the messages, and what to do."""
    net = rg.PreparedRanker(rg.LambdaRank(n_epochs=1), normalise="zscore").fit(data)
    mixed = copy.copy(best)
    mixed.model_ = bag_of([net, *best.model_.models_], np.ones(16), data, None)
    with pytest.raises(DataError, match=r"^AutoRanker\.predict: .* QueryDataset, or qid="):
        mixed.predict(data.X)
    np.testing.assert_array_equal(mixed.predict(data.X, qid=data.qid), mixed.predict(data))
    with pytest.raises(ParameterError, match="--exportable"):
        rg.convert(mixed, "best.txt", to="lightgbm")
    with pytest.raises(ParameterError, match="--exportable"):
        rg.prune(mixed, data)


def test_unknown_times_have_no_column():
    assert "time" not in repr(Leaderboard([entry()], "map"))


def test_one_candidate_is_described_in_the_singular(data):
    model = rg.AutoRanker("map", **FEW | {"n_fits": 5}).fit(data)
    text = model.explain_choice()
    assert text.startswith("1 candidate was cross-fitted, 5 fits in all")
    assert "Ways to combine" not in text
    assert "luck" not in text
    assert "5 models of 1 candidate, " in model.summary()


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
    assert best.explain_choice().startswith(loaded.explain_choice())
    assert loaded.microseconds_ is None  # a time, which would make equal searches differ
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
    with pytest.raises(DataError, match="another search: there measure was"):
        rg.AutoRanker("map", checkpoint=folder, **FEW).fit(data)
    with pytest.raises(DataError, match="training data had other values, rows or queries"):
        rg.AutoRanker("ndcg@10", checkpoint=folder, **FEW).fit(test_data)


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


def test_there_is_one_limit():
    assert rg.AutoRanker()._minutes == 10.0
    assert rg.AutoRanker(minutes=5)._minutes == 5
    by_fits = rg.AutoRanker("map", n_fits=100)
    assert by_fits._minutes is None
    assert clone(by_fits).get_params() == by_fits.get_params()
    assert rg.AutoRanker("map", 5).minutes == 5
    for ranker in (rg.AutoRanker(), rg.AutoRanker(minutes=5), by_fits):
        ranker.check_parameters()
    with pytest.raises(ParameterError, match="leave one out"):
        rg.AutoRanker(minutes=5, n_fits=5).check_parameters()


def test_a_budget_of_time():
    budget = Budget(minutes=1.0, n_fits=None)
    assert budget.deadline == pytest.approx(budget.started + 60 * 0.97)
    budget.started = time.monotonic() - 50
    assert budget.allows(5, 1.0)
    assert not budget.allows(5, 20.0)
    budget.reserve(20.0)
    assert budget.is_over


def test_what_is_kept_for_the_end_follows_the_latest_estimate():
    budget = Budget(minutes=1.0, n_fits=None)
    budget.reserve(10.0, "training")
    budget.reserve(5.0)
    assert budget.finishing == 15.0
    budget.reserve(2.0, "training")
    assert budget.finishing == 7.0
    assert Budget(None, 5).deadline is None


def test_the_first_candidate_shares_the_time_among_its_folds(data, monkeypatch, tmp_path):
    ends = []

    def watched(shared, task, n_threads):
        ends.append(shared.deadlines)
        return fit_fold(shared, task, n_threads)

    monkeypatch.setattr(searching, "fit_fold", watched)
    began = time.monotonic()
    # a limit that is over before the first fit has begun
    folder = tmp_path / "fits"
    model = rg.AutoRanker("ndcg@10", 1e-4, n_threads=1, checkpoint=folder).fit(data)
    assert len(model.leaderboard_) == 1
    assert len(ends) == 5
    assert all(later > earlier for earlier, later in pairwise(ends[0]))
    assert ends[0][-1] < time.monotonic() + 0.01
    assert ends[0][0] > began
    assert not list(folder.glob("*.rg"))  # what was stopped early is not kept


class NoiseFit:
    """A candidate whose scores are noise, other noise for every number of rounds."""

    rounds = 100

    def __init__(self, number, seed):
        self.candidate = Candidate(f"candidate {number}", rg.LambdaMART(n_trees=number + 1))
        self._seed = [number, seed]

    def scores_within(self, most_rounds, shared, n_threads):
        return np.random.default_rng([*self._seed, most_rounds]).normal(size=shared.data.n_rows)


def test_the_number_of_members_is_chosen_inside_the_nesting():
    """With scores of pure noise the estimate is that of chance; the best of three is above."""
    target, qid = target_measure("ndcg@5"), np.repeat(np.arange(60), 10)
    gains = []
    for seed in range(40):
        labels = np.random.default_rng([seed]).integers(0, 2, 600)
        noise = rg.QueryDataset(np.zeros((600, 1)), labels, qid=qid)
        usable = np.ones(60, bool)
        shared = Shared(noise, None, noise.query_keys, usable, 5, target, 0, None)
        search = searching.Search(shared, Budget(None, 5), n_threads=1)
        search.fitted = [NoiseFit(number, seed) for number in range(6)]
        limited = Limited(search, 9, None, 1)
        choice, parts = limited.choose()
        assert len(parts) in (1, 2, 3)
        assert {part.rounds for part in parts} == {9 // len(parts)}
        assert choice.weights.sum() == pytest.approx(1.0)
        columns = columns_of(np.empty((0, 600)), labels.astype(float), np.arange(0, 601, 10))
        draw = np.random.default_rng([seed, 1])
        chance = np.mean([columns.mean(draw.normal(size=600)) for _ in range(100)])
        gains.append(choice.value - chance)
    assert abs(np.mean(gains)) < 2.0 * np.std(gains) / len(gains) ** 0.5


@pytest.mark.slow
def test_limits_of_size(data, test_data):
    few = rg.AutoRanker("ndcg@10", max_trees=20, **FEW).fit(data)
    assert few.tree_count() <= 20
    assert few.flat().n_trees <= 20
    fast = rg.AutoRanker("ndcg@10", max_microseconds=5.0, **FEW).fit(data)
    assert fast.flat() is not None
    assert fast.microseconds_ < 10.0
    assert np.isfinite(fast.predict(test_data)).all()


def test_a_time_of_scoring_that_no_model_keeps_is_refused(data, monkeypatch):
    """A call takes time by itself: it is counted, and refused before the search goes on."""
    fits = []

    def counting(shared, task, n_threads):
        fits.append(task)
        return fit_fold(shared, task, n_threads)

    monkeypatch.setattr(searching, "fit_fold", counting)
    with pytest.raises(ParameterError, match=r"a model of one tree takes .* Give a higher limit"):
        rg.AutoRanker("ndcg@10", max_microseconds=0.001, **FEW).fit(data)
    assert len(fits) == 5


def test_the_time_of_a_call_counts(data, monkeypatch):
    """With 2 microseconds per call and 0.1 per tree, 3 microseconds are enough for 11 trees."""
    monkeypatch.setattr(limiting, "microseconds", lambda model, _: 1.9 + 0.1 * model.n_trees_)
    limits = {"max_microseconds": 3.0, **FEW | {"n_fits": 5}}
    model = rg.AutoRanker("ndcg@10", **limits).fit(data)
    assert model.tree_count() == 11
    assert "at most 11 trees in all and at most 3 microseconds" in model.explain_choice()


def test_a_limited_model_is_not_what_the_leaderboard_is_about(data):
    text = rg.AutoRanker("ndcg@10", max_trees=1, **FEW | {"n_fits": 10}).fit(data).explain_choice()
    assert "with at most 1 tree in all" in text
    assert "The values of candidates are those of their models without the limit" in text
    assert "*" not in text


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
    model = rg.AutoRanker("ndcg@10", n_fits=12, n_threads=1).fit(small)
    assert np.isfinite(model.predict(small)).all()
    assert np.isfinite(model.value_)


def test_validation_data_is_more_training_data(data, test_data):
    both = rg.AutoRanker("ndcg@10", **FEW | {"n_fits": 5}).fit(data, valid=test_data)
    alone = rg.AutoRanker("ndcg@10", **FEW | {"n_fits": 5}).fit(data)
    assert not np.array_equal(both.predict(data), alone.predict(data))


def test_queries_of_two_data_sets_are_refused(data, test_data):
    """By content: neither ids nor the order of documents matter."""
    few = rg.AutoRanker("ndcg@10", **FEW | {"n_fits": 5})
    back = data.select(np.arange(60) == 7)
    again = rg.QueryDataset(back.X[::-1], back.y[::-1], qid=["other"] * back.n_rows)
    for valid in (data, again):
        with pytest.raises(DataError, match="same documents and labels as the query"):
            few.fit(data, valid=valid)
    with pytest.raises(DataError, match=r"query other of the b data .* of the training data"):
        few.fit(data, valid={"a": test_data, "b": again})
    relabelled = rg.QueryDataset(back.X, back.y[::-1], qid=["other"] * back.n_rows)
    few.fit(data, valid=relabelled)


@pytest.mark.parametrize("name", ["err", "pfound[gain=exp2]"])
def test_the_scale_of_grades_is_that_of_all_data(name, data):
    """One document has the highest grade: folds without it are on the same scale."""
    labels = np.minimum(data.y, 1)
    labels[0] = 4
    steep = rg.QueryDataset(data.X, labels, qid=data.qid)
    model = rg.AutoRanker(name, **FEW | {"n_fits": 10}).fit(steep)
    best = model.leaderboard_[0].value
    assert model.compared_["the best candidate alone"] == pytest.approx(best, rel=0.2)
    assert model.value_ == pytest.approx(best, rel=0.2)


def test_mistakes_are_refused(data):
    with pytest.raises(ParameterError, match="one limit"):
        rg.AutoRanker(minutes=1, n_fits=5).fit(data)
    with pytest.raises(ParameterError, match="minutes"):
        rg.AutoRanker(minutes=-1).fit(data)
    with pytest.raises(ParameterError, match="too low: a candidate takes 5 fits"):
        rg.AutoRanker(n_fits=3).fit(data)
    with pytest.raises(DataError, match=r"AutoRanker\(group=\.\.\.\)"):
        rg.AutoRanker(**FEW).fit(data, group=np.arange(60))
    equal = rg.QueryDataset(data.X, np.zeros(data.n_rows), qid=data.qid)
    with pytest.raises(DataError, match="differ in relevance"):
        rg.AutoRanker(**FEW).fit(equal)


def test_queries_that_count_are_spread_over_the_folds(data):
    labels = data.y.copy()
    labels[data.query_ptr[7] :] = 0  # seven queries with different labels
    few = rg.QueryDataset(data.X, labels, qid=data.qid)
    model = rg.AutoRanker("ndcg@10", exportable=True, n_fits=7, n_threads=1).fit(few)
    assert model.leaderboard_[0].fits == 7
    assert not model.failed_
