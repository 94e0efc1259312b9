"""Grown trees: equal to the naive ones, the same for any threads and any order of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankgrove.data.binning import Binner
from rankgrove.errors import DataError, ParameterError
from rankgrove.growth import local_row_source as rows_module
from rankgrove.growth.grower import Grower
from rankgrove.growth.partition import leaves_of
from rankgrove.growth.splitting import SplitRules
from rankgrove.model.tree import Tree
from tests.reference import tree as naive


def web(n: int, d: int, seed: int, missing: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[:, ::3] = np.round(np.abs(X[:, ::3]) * 3)
    gradient = X[:, 0] - np.sin(2 * X[:, 1]) + rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    X[rng.random(X.shape) < 0.01] = np.inf
    X[rng.random(X.shape) < 0.01] = -np.inf
    return X, gradient


def grower(X: np.ndarray, **options: object) -> Grower:
    return Grower(Binner.fit(X).transform(X), **options)  # type: ignore[arg-type]


def equal(a: Tree, b: Tree) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in Tree.__dataclass_fields__
    )


def check(tree: Tree, leaf_of: np.ndarray, X: np.ndarray) -> None:
    """What is true of every tree grown on all rows of X."""
    assert tree.n_nodes == tree.n_leaves - 1
    assert np.array_equal(tree.apply(X), leaf_of)
    counts = np.bincount(leaf_of, minlength=tree.n_leaves)
    assert np.array_equal(tree.count[tree.n_nodes :], counts)
    if tree.n_nodes:
        assert tree.count[0] == len(X)
        assert (tree.gain > 0).all()


def always_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "worth_a_region", lambda nanoseconds, n_threads: True)
    monkeypatch.setattr(rows_module, "parts_for", lambda n_rows, n_threads: n_threads)
    monkeypatch.setattr(rows_module, "timed", lambda step, n_rows, n_threads, work: step(n_threads))


@pytest.fixture(params=["serial", "parallel"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run small data through the kernels of small leaves, and through those of large ones."""
    if request.param == "parallel":
        always_parallel(monkeypatch)
    return str(request.param)


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("path")
def test_tree_equals_the_exact_greedy_tree(split: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    X = rng.integers(0, 12, (n, 5)).astype(np.float32)
    if seed % 2:
        X[rng.random(X.shape) < 0.15] = np.nan
    gradient = rng.integers(-400, 400, n) / 8.0 + 10 * (np.nan_to_num(X[:, 1]) > 4)
    hessian = rng.integers(1, 30, n) / 4.0
    rules = {"min_leaf": 1 + seed % 3, "split": split}
    if seed == 4:
        rules["max_depth"] = 3
    made, expected_leaf = naive.greedy_tree(X, gradient, hessian, 9, **rules)
    tree, leaf_of = grower(X, n_leaves=9, n_threads=2, **rules).grow(gradient, hessian)
    assert tree.n_leaves == len(made) + 1
    found = zip(
        tree.feature.tolist(), tree.threshold.tolist(), tree.missing_left.tolist(), strict=True
    )
    assert list(found) == made
    assert np.array_equal(leaf_of, expected_leaf)
    check(tree, leaf_of, X)
    for leaf in range(tree.n_leaves):
        inside = leaf_of == leaf
        expected = math.fsum(gradient[inside]) / math.fsum(hessian[inside])
        assert tree.value[leaf] == expected


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.usefixtures("path")
def test_threads_do_not_matter(split: str) -> None:
    X, gradient = web(6000, 20, 1)
    hessian = np.random.default_rng(0).random(6000)
    trees = [
        grower(X, n_leaves=31, n_threads=k, split=split, min_leaf=5).grow(gradient, hessian, 3)
        for k in (1, 2)
    ]
    assert trees[0][0].n_leaves == 31
    assert equal(trees[0][0], trees[1][0])
    assert np.array_equal(trees[0][1], trees[1][1])
    check(*trees[0], X)


def test_threads_do_not_matter_for_many_rows() -> None:
    X, gradient = web(40_000, 10, 15)
    hessian = np.random.default_rng(0).random(40_000)
    trees = [grower(X, n_leaves=63, n_threads=k).grow(gradient, hessian) for k in (1, 2)]
    assert equal(trees[0][0], trees[1][0])
    assert np.array_equal(trees[0][1], trees[1][1])
    check(*trees[0], X)


def test_large_and_small_leaf_kernels_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    X, gradient = web(3000, 12, 2)
    a = grower(X, n_leaves=40, n_threads=2).grow(gradient)
    always_parallel(monkeypatch)
    b = grower(X, n_leaves=40, n_threads=2).grow(gradient)
    assert equal(a[0], b[0])


@pytest.mark.parametrize("split", ["mse", "newton"])
def test_order_of_rows_does_not_matter(split: str) -> None:
    X, gradient = web(4000, 10, 3)
    rng = np.random.default_rng(3)
    hessian = rng.random(4000) * 10.0 ** rng.integers(-6, 2, 4000)
    keys = rng.integers(0, 2**63, 4000).astype(np.uint64)
    order = rng.permutation(4000)
    options = {"n_leaves": 31, "split": split, "n_threads": 2}
    a, leaf_a = grower(X, row_keys=keys, **options).grow(gradient, hessian)
    b, leaf_b = grower(X[order], row_keys=keys[order], **options).grow(
        gradient[order], hessian[order]
    )
    assert equal(a, b)
    assert np.array_equal(leaf_a[order], leaf_b)
    c, _ = grower(X, row_keys=keys[order], **options).grow(gradient, hessian)
    assert c.n_leaves == 31  # other keys round otherwise; the tree may differ


@pytest.mark.parametrize("n_leaves", [2, 3, 17, 256, 257, 300])
def test_numbers_of_leaves(n_leaves: int) -> None:
    X, gradient = web(4000, 6, 4)
    tree, leaf_of = grower(X, n_leaves=n_leaves).grow(gradient)
    assert tree.n_leaves == n_leaves
    assert leaf_of.dtype == (np.uint8 if n_leaves <= 256 else np.uint16)
    check(tree, leaf_of, X)


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.usefixtures("path")
def test_a_small_histogram_pool_gives_the_same_tree(split: str) -> None:
    X, gradient = web(3000, 12, 5)
    hessian = np.random.default_rng(5).random(3000)
    roomy = grower(X, n_leaves=120, split=split).grow(gradient, hessian)
    tight = grower(X, n_leaves=120, split=split, histogram_bytes=0).grow(gradient, hessian)
    assert equal(roomy[0], tight[0])
    assert np.array_equal(roomy[1], tight[1])


def test_limits_are_kept() -> None:
    X, gradient = web(3000, 8, 6)
    tree, leaf_of = grower(X, n_leaves=200, min_leaf=40).grow(gradient)
    assert np.bincount(leaf_of).min() >= 40
    assert tree.n_leaves < 200
    tree, _ = grower(X, n_leaves=200, max_depth=4).grow(gradient)
    assert tree.depth() == 4
    assert tree.n_leaves <= 16
    tree, _ = grower(X, n_leaves=200, min_gain=30.0).grow(gradient)
    assert 2 < tree.n_leaves < 200
    assert tree.gain.min() > 30


def test_gain_is_the_decrease_of_the_squared_error() -> None:
    X, gradient = web(2000, 5, 7)
    tree, leaf_of = grower(X, n_leaves=20).grow(gradient)
    before = ((gradient - gradient.mean()) ** 2).sum()
    after = ((gradient - tree.value[leaf_of]) ** 2).sum()
    assert tree.gain.sum() == pytest.approx(before - after, rel=1e-4)


@pytest.mark.parametrize("fraction", [0.5, 0.02])
def test_sampled_rows(fraction: float) -> None:
    X, gradient = web(5000, 9, 8)
    rng = np.random.default_rng(8)
    hessian = rng.random(5000)
    rows = np.flatnonzero(rng.random(5000) < fraction)
    keys = np.arange(5000, dtype=np.uint64)
    binner = Binner.fit(X)
    whole = Grower(binner.transform(X), row_keys=keys, n_leaves=12, n_threads=2)
    whole.grow(gradient, hessian)  # what is left in the work arrays must not matter
    tree, leaf_of = whole.grow(gradient, hessian, 1, rows)
    part = Grower(binner.transform(X, rows), row_keys=keys[rows], n_leaves=12, n_threads=1)
    alone, leaf_alone = part.grow(gradient[rows], hessian[rows], 1)
    assert equal(tree, alone)
    assert np.array_equal(leaf_of[rows], leaf_alone)
    assert np.array_equal(leaf_of, tree.apply(X))


def test_rounds_and_drawn_features() -> None:
    X, gradient = web(3000, 40, 9)
    grow = grower(X, n_leaves=15, feature_fraction=0.2, seed=4)
    trees = [grow.grow(gradient, None, round)[0] for round in (0, 1, 0)]
    assert equal(trees[0], trees[2])
    assert not np.array_equal(trees[0].feature, trees[1].feature)
    again = grower(X, n_leaves=15, feature_fraction=0.2, seed=4, n_threads=1).grow(gradient)[0]
    assert equal(trees[0], again)
    assert np.unique(trees[0].feature).size > 2


def test_nodes_add_up() -> None:
    X, gradient = web(2500, 7, 10)
    hessian = np.random.default_rng(1).random(2500) + 0.1
    tree, leaf_of = grower(X, n_leaves=25, l2=2.0, split="newton").grow(gradient, hessian)
    m = tree.n_nodes

    def index(child: int) -> int:
        return child if child >= 0 else m + ~child

    for node in range(m):
        children = [index(tree.left[node]), index(tree.right[node])]
        assert tree.count[node] == tree.count[children].sum()
        assert tree.weight[node] == pytest.approx(tree.weight[children].sum(), rel=1e-14)
    assert tree.mean[0] == math.fsum(gradient) / (math.fsum(hessian) + 2.0)
    assert np.array_equal(tree.mean[m:], tree.value)
    total = math.fsum(hessian[leaf_of == 3]) + 2.0
    assert tree.value[3] == math.fsum(gradient[leaf_of == 3]) / total


def test_other_rows_are_routed_on_their_bins() -> None:
    X, gradient = web(4000, 9, 11)
    new, _ = web(5000, 9, 12, missing=0.3)
    binner = Binner.fit(X)
    tree, leaf_of = Grower(binner.transform(X), n_leaves=50).grow(gradient)
    assert np.array_equal(leaves_of(tree, binner.transform(X)), leaf_of)
    for n_threads in (1, 2):
        leaves = leaves_of(tree, binner.transform(new), n_threads=n_threads)
        assert np.array_equal(tree.value[leaves], tree.predict(new))
    other = Binner.fit(new[:, ::-1].copy())
    with pytest.raises(DataError, match="not a threshold of these bins"):
        leaves_of(tree, other.transform(new))


def test_missing_values_alone_can_be_split_off() -> None:
    X = np.array([[1], [1], [np.nan], [np.nan], [1]], np.float32)
    tree, leaf_of = grower(X, n_leaves=4).grow(np.array([1.0, 1, 9, 9, 1]))
    assert tree.threshold.tolist() == [np.inf]
    assert not tree.missing_left[0]
    assert leaf_of.tolist() == [0, 0, 1, 1, 0]
    assert tree.value.tolist() == [1.0, 9.0]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_and_constant_data_give_one_leaf(n: int) -> None:
    X = np.ones((n, 3), np.float32)
    gradient = np.arange(n, dtype=np.float64)
    tree, leaf_of = grower(X).grow(gradient)
    assert tree.n_leaves == 1
    assert tree.depth() == 0
    assert tree.value.tolist() == [gradient.mean()]
    assert leaf_of.tolist() == [0] * n
    assert tree.count.tolist() == [n]
    assert tree.predict(X).tolist() == [gradient.mean()] * n
    assert leaves_of(tree, Binner.fit(X).transform(X)).tolist() == [0] * n


def test_no_gradient_no_split_and_no_hessian_no_value() -> None:
    X = np.arange(10, dtype=np.float32)[:, None]
    tree, _ = grower(X).grow(np.zeros(10))
    assert tree.n_leaves == 1
    assert tree.value.tolist() == [0.0]
    gradient = np.r_[np.ones(5), -np.ones(5)]
    tree, _ = grower(X, n_leaves=2).grow(gradient, np.r_[np.zeros(5), np.full(5, 2.0)])
    assert tree.value.tolist() == [0.0, -0.5]


def test_float32_gradients_and_many_scales() -> None:
    X, gradient = web(1000, 4, 13)
    single = gradient.astype(np.float32)
    a = grower(X, n_leaves=8).grow(single)[0]
    for power in (-400, -40, 40, 470):
        b = grower(X, n_leaves=8).grow(single.astype(np.float64) * 2.0**power)[0]
        assert np.array_equal(a.feature, b.feature)
        assert np.array_equal(a.value * 2.0**power, b.value)


def test_numbers_too_small_to_tell_apart_still_give_a_tree() -> None:
    X, gradient = web(100, 3, 16)
    tree, _ = grower(X, n_leaves=4).grow(gradient * 1e-300)
    assert np.isfinite(tree.value).all()
    assert tree.mean[0] == math.fsum(gradient * 1e-300) / 100


def test_bad_input_is_refused() -> None:
    X, gradient = web(20, 3, 14)
    grow = grower(X, n_leaves=4)
    with pytest.raises(DataError, match="finite"):
        grow.grow(np.where(np.arange(20) == 7, np.nan, gradient))
    with pytest.raises(DataError, match="finite"):
        grow.grow(gradient, np.full(20, np.inf))
    with pytest.raises(DataError, match="1e144"):
        grow.grow(gradient * 1e150)
    with pytest.raises(DataError, match="one number per row"):
        grow.grow(gradient[:5])
    with pytest.raises(DataError, match="at least one row"):
        grow.grow(gradient, rows=np.array([], np.int64))
    with pytest.raises(DataError, match="ascending"):
        grow.grow(gradient, rows=np.array([3, 2]))
    with pytest.raises(DataError, match="row_keys"):
        grower(X, row_keys=np.zeros(3, np.uint64))
    with pytest.raises(ParameterError, match="split"):
        SplitRules(split="msee")
    with pytest.raises(ParameterError, match="n_leaves"):
        grower(X, n_leaves=1)
