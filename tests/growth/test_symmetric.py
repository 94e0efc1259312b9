"""Symmetric trees: equal to the naive ones, the same for any threads, order of rows and memory."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from rankgrove.data.binning import Binner
from rankgrove.errors import ParameterError
from rankgrove.growth import symmetric
from rankgrove.growth.grower import Grower
from rankgrove.growth.splitting import SplitRules
from tests.growth.test_grower import always_parallel, check, equal, web
from tests.reference import tree as naive


def grower(X: np.ndarray, **options: object) -> Grower:
    return Grower(Binner.fit(X).transform(X), growth="symmetric", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("seed", range(8))
def test_tree_equals_the_exact_symmetric_tree(split: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    X = rng.integers(0, 9, (n, 4)).astype(np.float32)
    if seed % 2:
        X[rng.random(X.shape) < 0.15] = np.nan
    gradient = rng.integers(-400, 400, n) / 8.0 + 10 * (np.nan_to_num(X[:, 1]) > 4)
    hessian = rng.integers(1, 30, n) / 4.0
    rules = {"split": split, "min_leaf": 1 + seed % 3}
    l2 = 8.0 if seed > 5 and split == "newton" else 0.0
    made, expected_leaf = naive.symmetric_tree(X, gradient, hessian, 3, l2=Fraction(l2), **rules)
    tree, leaf_of = grower(X, n_leaves=11, n_threads=1, l2=l2, **rules).grow(gradient, hessian)
    found = zip(
        tree.feature.tolist(), tree.threshold.tolist(), tree.missing_left.tolist(), strict=True
    )
    assert list(found) == [split[:3] for split in made]
    assert tree.gain == pytest.approx([float(split[3]) for split in made], rel=1e-9)
    assert np.array_equal(leaf_of, expected_leaf)
    check(tree, leaf_of, X)
    for leaf in range(tree.n_leaves):
        inside = leaf_of == leaf
        expected = math.fsum(gradient[inside]) / (math.fsum(hessian[inside]) + l2)
        assert tree.value[leaf] == expected


def test_one_split_for_all_leaves_of_a_level() -> None:
    X, gradient = web(3000, 12, 7)
    tree, leaf_of = grower(X, n_leaves=32, n_threads=1).grow(gradient)
    check(tree, leaf_of, X)
    assert tree.n_leaves > 16
    splits = zip(tree.feature, tree.threshold, tree.missing_left, strict=True)
    assert len(set(splits)) == tree.depth() == 5


@pytest.mark.parametrize(
    ("n_leaves", "max_depth", "depth"),
    [(2, None, 1), (15, None, 3), (16, None, 4), (64, 2, 2), (8, 9, 3)],
)
def test_leaves_and_depth_are_limited(n_leaves: int, max_depth: int | None, depth: int) -> None:
    X, gradient = web(2000, 6, 8)
    tree, _ = grower(X, n_leaves=n_leaves, max_depth=max_depth, n_threads=1).grow(gradient)
    assert tree.depth() == depth
    assert 2 ** (depth - 1) < tree.n_leaves <= 2**depth


def test_small_leaves_and_small_gains_are_refused() -> None:
    X, gradient = web(1000, 6, 9)
    tree, leaf_of = grower(X, n_leaves=64, min_leaf=60, n_threads=1).grow(gradient)
    assert 4 < tree.n_leaves <= 1000 // 60
    assert np.bincount(leaf_of).min() >= 60
    whole, _ = grower(X, n_leaves=64, n_threads=1).grow(gradient)
    first = float(whole.gain[0])
    assert grower(X, min_gain=first, n_threads=1).grow(gradient)[0].n_leaves == 1
    # min_gain is compared with the sum of a level
    second = float(whole.gain[1:3].sum())
    low = grower(X, n_leaves=4, min_gain=0.99 * second, n_threads=1).grow(gradient)[0]
    assert low.n_leaves == 4
    assert grower(X, n_leaves=4, min_gain=second, n_threads=1).grow(gradient)[0].n_leaves == 2


@pytest.mark.parametrize("split", ["mse", "newton"])
def test_threads_order_of_rows_and_memory_do_not_matter(
    split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, gradient = web(3000, 20, 10)
    rng = np.random.default_rng(1)
    hessian = rng.random(3000) * 10.0 ** rng.integers(-6, 2, 3000)
    keys = rng.integers(0, 2**63, 3000).astype(np.uint64)
    order = rng.permutation(3000)
    options = {"n_leaves": 32, "split": split, "min_leaf": 5, "feature_fraction": 0.5}
    first, leaf_of = grower(X, row_keys=keys, n_threads=1, **options).grow(gradient, hessian, 3)
    assert first.n_leaves > 12
    for least in (0, 1 << 28):
        some = grower(X, row_keys=keys, n_threads=1, histogram_bytes=least, **options)
        assert equal(first, some.grow(gradient, hessian, 3)[0])
    other, other_leaf = grower(X[order], row_keys=keys[order], n_threads=1, **options).grow(
        gradient[order], hessian[order], 3
    )
    assert equal(first, other)
    assert np.array_equal(leaf_of[order], other_leaf)
    always_parallel(monkeypatch)
    monkeypatch.setattr(symmetric, "worth_a_region", lambda nanoseconds, n_threads: True)
    threaded, _ = grower(X, row_keys=keys, n_threads=2, **options).grow(gradient, hessian, 3)
    assert equal(first, threaded)


def test_features_are_drawn_for_every_level() -> None:
    X, gradient = web(1500, 30, 11)
    options = {"n_leaves": 16, "feature_fraction": 0.1, "n_threads": 1}
    some = grower(X, **options)
    trees = [some.grow(gradient, round=k)[0] for k in range(20)]
    used = [set(tree.feature.tolist()) for tree in trees]
    assert max(len(features) for features in used) == 4  # one feature per level
    assert len(set.union(*used)) > 15
    assert equal(trees[3], grower(X, **options).grow(gradient, round=3)[0])


def test_other_rows_are_routed() -> None:
    X, gradient = web(2000, 8, 12)
    rows = np.flatnonzero(np.random.default_rng(0).random(2000) < 0.4)
    tree, leaf_of = grower(X, n_leaves=16, n_threads=1).grow(gradient, rows=rows)
    assert tree.count[0] == rows.size
    assert np.array_equal(tree.apply(X), leaf_of)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_and_constant_data_give_one_leaf(n: int) -> None:
    X = np.ones((n, 3), np.float32)
    tree, leaf_of = grower(X, n_threads=1).grow(np.arange(n, dtype=float))
    assert tree.n_leaves == 1
    assert not leaf_of.any()


def test_bad_growth_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"'growth'.*leafwise.*symmetric.*'oblivious'"):
        SplitRules(growth="oblivious")


def test_missing_values_of_leaves_that_are_not_divided_decide_nothing() -> None:
    """Missing values go to the larger child of the leaf that is divided, which has none."""
    rows = [(0, int(i >= 8), 1.0 if i < 8 else -1.0) for i in range(12)]
    rows += [(1, 0, 50.0)] * 9 + [(1, np.nan, 50.0)]
    X = np.array([row[:2] for row in rows], np.float32)
    gradient = np.array([row[2] for row in rows])
    tree, _ = grower(X, n_leaves=4, min_leaf=4, n_threads=1).grow(gradient)
    assert tree.feature.tolist() == [0, 1]
    assert tree.missing_left.tolist() == [True, True]
