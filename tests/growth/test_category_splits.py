"""Splits on sets of categories: equal to brute force, honest, the same for any threads."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.data.binning import MISSING, Binner
from rankgrove.data.category_bins import Target, exact_unit
from rankgrove.data.category_means import FOLDS, CategorySums
from rankgrove.data.counting import sum_column, training_bins
from rankgrove.errors import ParameterError
from rankgrove.growth.constraints import Constraints
from rankgrove.growth.grower import Grower
from rankgrove.growth.partition import leaves_of
from rankgrove.growth.splitting import CategoryRules
from tests.growth.test_grower import always_parallel, equal
from tests.reference.category_sets import best_set

PLAIN = CategoryRules(smoothing=0.0, penalty=0.0, min_rows=1, max_set=254)


def grower(X, categorical, **options):
    binned = Binner.fit(X, categorical=categorical).transform(X)
    return Grower(binned, **{"n_threads": 1} | options)


def sample(n=400, n_categories=6, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, n).astype(np.float32)
    effect = rng.normal(size=n_categories)
    gradient = effect[codes.astype(int)] + rng.normal(size=n)
    codes[rng.random(n) < missing] = np.nan
    return codes, gradient, rng.integers(1, 30, n) / 8.0


def best_by_force(codes, gradient, hessian, l2, min_leaf):
    """The highest gain of all sets of categories; missing values are on the other side."""

    def score(rows):
        denominator = hessian[rows].sum() + l2
        return gradient[rows].sum() ** 2 / denominator if rows.any() else 0.0

    known = np.unique(codes[~np.isnan(codes)])
    best = 0.0
    for size in range(1, known.size + 1):
        for chosen in combinations(known, size):
            left = np.isin(codes, chosen)
            if min(left.sum(), (~left).sum()) >= min_leaf:
                gain = score(left) + score(~left) - score(np.ones(codes.size, bool))
                best = max(best, gain)
    return best


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_set_is_that_of_all_sets(split, seed):
    codes, gradient, hessian = sample(seed=seed, missing=0.1 * (seed % 2))
    hessian = np.ones(codes.size) if split == "mse" else hessian
    min_leaf = 1 + 20 * (seed % 3)
    rules = {"n_leaves": 2, "split": split, "min_leaf": min_leaf, "categories": PLAIN}
    tree, leaf_of = grower(codes[:, None], [0], **rules).grow(gradient, hessian)
    expected = best_by_force(codes, gradient, hessian, 0.0, min_leaf)
    assert tree.gain[0] == pytest.approx(expected, rel=1e-4)
    assert tree.set_of.tolist() == [0]
    np.testing.assert_array_equal(tree.apply(codes[:, None]), leaf_of)


def test_categories_without_hessian_are_at_the_ends_of_the_order():
    """Their gradients count: with l2 the best set is still that of all sets."""
    codes = np.repeat(np.arange(6.0), 4)
    gradient, hessian = np.repeat([-3.0, 1, 2, 4, 5, 9], 4), np.repeat([0.0, 2, 3, 5, 9, 0], 4)
    rules = {"n_leaves": 2, "split": "newton", "l2": 2.0, "categories": PLAIN}
    X = codes[:, None].astype(np.float32)
    tree, _ = grower(X, [0], **rules).grow(gradient, hessian)
    expected = best_by_force(codes, gradient, hessian, 2.0, 1)
    assert tree.gain[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("growth", ["leafwise", "symmetric"])
@pytest.mark.parametrize("split", ["mse", "newton"])
def test_threads_and_order_of_rows_do_not_matter(growth, split, monkeypatch):
    rng = np.random.default_rng(3)
    n = 3000
    X = np.column_stack([rng.integers(0, 40, n), rng.normal(size=n), rng.integers(0, 5, n)])
    X = X.astype(np.float32)
    X[rng.random(n) < 0.1, 0] = np.nan
    gradient, hessian = rng.normal(size=n) + np.nan_to_num(X[:, 0]) % 3, rng.random(n) + 0.1
    keys = rng.integers(0, 1 << 60, n).astype(np.uint64)
    options = {"n_leaves": 16, "split": split, "growth": growth, "min_leaf": 5}
    tree, leaf_of = grower(X, [0, 2], row_keys=keys, **options).grow(gradient, hessian)
    assert (tree.set_of >= 0).any()
    assert not tree.missing_left[tree.set_of >= 0].any()
    np.testing.assert_array_equal(tree.apply(X), leaf_of)
    always_parallel(monkeypatch)
    again, _ = grower(X, [0, 2], row_keys=keys, n_threads=2, **options).grow(gradient, hessian)
    assert equal(tree, again)
    order = rng.permutation(n)
    turned, _ = grower(X[order], [0, 2], row_keys=keys[order], **options).grow(
        gradient[order], hessian[order]
    )
    assert equal(tree, turned)


def test_categories_of_few_rows_go_where_missing_values_go():
    codes, gradient, hessian = sample(n_categories=4, missing=0.0)
    codes[:3] = 9.0
    gradient[:3] = 100.0
    rules = CategoryRules(smoothing=0.0, penalty=0.0, min_rows=5)
    tree, _ = grower(codes[:, None], [0], n_leaves=2, categories=rules).grow(gradient, hessian)
    assert 9 not in tree.sets.codes(0)


def test_sets_have_at_most_the_given_size():
    codes, gradient, hessian = sample(n=2000, n_categories=30)
    rules = CategoryRules(penalty=0.0, max_set=3)
    tree, _ = grower(codes[:, None], [0], n_leaves=8, categories=rules).grow(gradient, hessian)
    assert max(tree.sets.codes(s).size for s in range(len(tree.sets))) == 3


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("seed", range(4))
def test_what_noise_would_gain_is_subtracted(split, seed):
    """With categories of very different sizes, and gradients with heavy tails."""
    codes, gradient, hessian = sample(n=900, n_categories=40, seed=seed, missing=0.1 * (seed % 2))
    codes = np.floor(codes**2 / 40)
    gradient = gradient * np.abs(gradient)
    hessian = np.ones(codes.size) if split == "mse" else hessian
    rules = CategoryRules(smoothing=3.0, penalty=0.5, min_rows=4)
    options = {"n_leaves": 2, "split": split, "min_leaf": 1, "categories": rules}
    tree, _ = grower(codes[:, None], [0], **options).grow(gradient, hessian)
    noise = np.mean(gradient**2) / np.mean(hessian)
    naive = {"smoothing": 3.0, "penalty": 0.5, "noise": noise, "min_rows": 4}
    gain, chosen = best_set(codes, gradient, hessian, **naive)
    assert tree.gain[0] == pytest.approx(gain, rel=1e-3)
    frequent = {c for c in np.unique(codes[~np.isnan(codes)]) if (codes == c).sum() >= 4}
    assert set(tree.sets.codes(0)) in (chosen, frequent - chosen)


@pytest.mark.parametrize("split", ["mse", "newton"])
def test_gains_of_sets_are_those_of_values_within_bounds(split):
    """A monotone number is split first; the values of its children bound the sets below it."""
    codes, noise, hessian = sample(n=900, n_categories=5, missing=0.0)
    hessian = np.ones(codes.size) if split == "mse" else hessian
    number = np.arange(codes.size) % 2
    effect = np.array([-1.0, -0.5, 0.0, 0.0, 2.0])[codes.astype(int)]
    gradient = np.where(number, 2.2, effect) * hessian + 0.1 * noise
    X = np.column_stack([codes, number]).astype(np.float32)
    options = {"n_leaves": 3, "split": split, "categories": PLAIN}
    tree, _ = grower(X, [0], constraints=Constraints({1: 1}), **options).grow(gradient, hessian)
    assert tree.feature.tolist() == [1, 0]
    sides = [number == 0, number == 1]
    means = [gradient[side].sum() / hessian[side].sum() for side in sides]
    middle = sum(means) / 2

    def gain(side, *bounds):
        return best_set(codes[side], gradient[side], hessian[side], bounds=bounds)[0]

    free = max(gain(side, -np.inf, np.inf) for side in sides)
    bounded = max(gain(sides[0], -np.inf, middle), gain(sides[1], middle, np.inf))
    assert bounded < 0.9 * free
    assert tree.gain[1] == pytest.approx(bounded, rel=1e-3)


def test_categories_without_effect_are_not_split():
    """Without the penalty noise is split; with it only the number that has an effect is."""
    rng = np.random.default_rng(5)
    n = 4000
    number = rng.normal(size=n)
    X = np.column_stack([rng.integers(0, 200, n), number]).astype(np.float32)
    gradient = 0.15 * number + rng.normal(size=n)
    for penalty, columns in ((0.0, {0}), (1.0, {1})):
        rules = CategoryRules(penalty=penalty)
        tree, _ = grower(X, [0], n_leaves=2, categories=rules).grow(gradient)
        assert set(tree.feature.tolist()) == columns


# -- bins ------------------------------------------------------------------------------------------


def test_rare_and_unknown_categories_are_missing():
    X = np.array([[3], [3], [7], [np.nan], [5], [5]], np.float32)
    binner = Binner.fit(X, categorical=[0])
    assert binner.categories_of(0).codes.tolist() == [3, 5]
    binned = binner.transform(np.array([[3], [5], [7], [8], [np.nan], [-1], [1e6]], np.float32))
    assert binned.codes[:, 0].tolist() == [0, 1, *[MISSING] * 5]


def test_the_most_frequent_categories_have_bins():
    codes = np.repeat(np.arange(400), np.r_[np.full(200, 3), np.full(200, 2)])
    binner = Binner.fit(codes[:, None].astype(np.float32), categorical=[0])
    assert binner.categories_of(0).codes.tolist() == list(range(254))


def many(seed=0, n_queries=120, n_docs=40):
    rng = np.random.default_rng(seed)
    n = n_queries * n_docs
    codes = rng.integers(0, 600, n)
    y = (rng.normal(size=600)[codes] + rng.normal(size=n) > 0.8).astype(float)
    X = np.column_stack([codes, rng.normal(size=n)]).astype(np.float32)
    return rg.QueryDataset(X, y, qid=np.repeat(np.arange(n_queries), n_docs), categorical=[1])


def test_many_categories_are_ordered_by_the_labels_of_other_queries():
    """The bins of a query's rows do not depend on its own labels."""
    data = many()
    target = Target.of(data)
    binner = Binner.fit(data.X, categorical=[0], target=target)
    at = binner.columns.tolist().index(0)
    categories = binner.categories_of(at)
    assert categories.ordered
    assert not binner.splits_by_set[at]
    bins = binner.transform_training(data).codes[:, at]
    labels = data.y.copy()
    first = target.fold == target.fold[0]
    labels[first] = labels[first][::-1]
    other = Target.of(rg.QueryDataset(data.X, labels, qid=data.qid))
    sums = sum_column(data.X, None, other, 0, categories.codes)
    others = replace(categories, by_fold=training_bins(binner.thresholds[at], sums))
    again = others.of_training(data.X[:, 0], target.fold)
    np.testing.assert_array_equal(again[first], bins[first])
    assert (again[~first] != bins[~first]).any()
    assert target.fold.max() == FOLDS - 1


@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-320])
def test_sums_of_labels_are_exact_for_any_parts(scale):
    """They are whole numbers of units: neither parts nor the order of queries change a bit."""
    data = many(n_queries=30)
    labels = (data.y + np.random.default_rng(2).random(data.n_rows)) * scale
    data = rg.QueryDataset(data.X, labels, qid=data.qid)
    codes = np.unique(data.X[:, 0]).astype(int)
    whole = sum_column(data.X, None, Target.of(data), 0, codes)
    unit = exact_unit(labels.min(), labels.max(), data.n_rows)
    queries = np.random.default_rng(3).permutation(data.n_queries)
    parts = [data.select(np.sort(part)) for part in np.split(queries, [3, 14])]
    sums = [sum_column(part.X, None, Target.of(part, unit), 0, codes) for part in parts]
    merged = CategorySums.merged(sums)
    np.testing.assert_array_equal(merged.sums, whole.sums)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    expected = np.zeros((FOLDS, codes.size))
    fold = Target.of(data).fold
    for query in range(data.n_queries):
        of_query = labels[data.query_of_row == query]
        for row in np.flatnonzero(data.query_of_row == query):
            place = np.searchsorted(codes, data.X[row, 0])
            expected[fold[row], place] += labels[row] - of_query.mean()
    np.testing.assert_allclose(whole.sums, expected, atol=data.n_rows * unit)
    assert unit <= max(1e-8 * scale, 1e-307)


def test_splits_of_ordered_categories_are_sets():
    data = many()
    model = rg.LambdaMART("ndcg@10", n_trees=5, n_leaves=8, n_threads=1).fit(data, valid=data)
    trees = model.ensemble_
    assert trees.has_sets
    assert not trees.missing_left[trees.set_of >= 0].any()
    # validation data, here the same rows, are scored by bins while training
    value = rg.evaluate(model, data, "ndcg@10").mean["ndcg@10"]
    assert value == model.history_["valid"]["ndcg@10"][-1]
    binned = model.bins(data)
    plain = binned.binner.transform(data.X)
    for t in range(trees.n_trees):
        expected = trees.tree(t).apply(np.asarray(data.X))
        np.testing.assert_array_equal(leaves_of(trees.tree(t), plain), expected)


def test_ordered_bins_are_not_shared_by_fits():
    data = many()
    assert rg.LambdaMART(n_threads=1).shared_bins(data) is None


# -- rankers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranker", [rg.LambdaMART, rg.MART, rg.McRank, rg.GBRank])
def test_boosted_trees_use_categories(ranker, tmp_path):
    rng = np.random.default_rng(1)
    n = 600
    codes = rng.integers(0, 12, n)
    y = (rng.normal(size=12)[codes] > 0).astype(float)
    qid = np.repeat(np.arange(30), 20)
    names = {1: [f"brand {c}" for c in range(12)]}
    data = rg.QueryDataset(codes[:, None].astype(np.float32), y, qid=qid, categorical=names)
    model = ranker(n_trees=3, min_leaf=5, n_threads=1).fit(data)
    assert rg.evaluate(model, data, "map").mean["map"] > 0.99
    model.save(tmp_path / "model.rg")
    scores = rg.load(tmp_path / "model.rg").predict(data)
    np.testing.assert_array_equal(scores, model.predict(data))


def test_rules_for_categories_are_a_parameter():
    data = many()
    with pytest.raises(ParameterError, match="did you mean 'min_rows'"):
        rg.LambdaMART(category_rules={"min_row": 3}).fit(data)
    with pytest.raises(ParameterError, match="max_set"):
        rg.LambdaMART(category_rules={"max_set": 0}).fit(data)
    with pytest.raises(ParameterError, match="'f1' is categorical"):
        rg.LambdaMART(monotone={1: 1}, n_threads=1).fit(data)
    codes = (data.column(1) % 40).astype(np.float32)
    few = rg.QueryDataset(codes[:, None], data.y, qid=data.qid, categorical=[1])
    model = rg.LambdaMART(n_trees=2, category_rules={"max_set": 2}, n_threads=1).fit(few)
    sets = model.ensemble_.sets
    assert max(sets.codes(s).size for s in range(len(sets))) <= 2
