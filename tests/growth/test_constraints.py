"""Trees with constraints: equal to the naive ones, in order to the bit, and of one group."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankgrove.data.binning import Binner
from rankgrove.growth import symmetric
from rankgrove.growth.constraints import Constraints, Meeting, bounded
from rankgrove.growth.grower import Grower
from rankgrove.growth.quantise import Layout
from rankgrove.growth.splitting import FeatureDraw
from rankgrove.model.tree import Tree
from tests.growth.test_grower import always_parallel, check, equal, web
from tests.growth.test_parts import search
from tests.reference import tree as naive

GROWTHS = ["leafwise", "symmetric"]
SPLITS = ["mse", "newton"]


def grower(
    X: np.ndarray,
    directions: dict[int, int] | None = None,
    groups: list[set[int]] | None = None,
    **options: object,
) -> Grower:
    sets = None if groups is None else tuple(frozenset(group) for group in groups)
    constraints = Constraints(directions or {}, sets)
    return Grower(Binner.fit(X).transform(X), constraints=constraints, **options)  # type: ignore[arg-type]


def leaves_below(tree: Tree, child: int) -> list[int]:
    if child < 0:
        return [~child]
    return leaves_below(tree, int(tree.left[child])) + leaves_below(tree, int(tree.right[child]))


def check_order(tree: Tree, directions: dict[int, int]) -> int:
    """Below every split of values on a feature with a direction, all leaves are in order.

    So are then all pairs of rows that differ in this feature alone: they part at such a split.
    """
    n_ordered = 0
    for node in range(tree.n_nodes):
        sign = directions.get(int(tree.feature[node]), 0)
        if sign and tree.threshold[node] < np.inf:
            left = tree.value[leaves_below(tree, int(tree.left[node]))]
            right = tree.value[leaves_below(tree, int(tree.right[node]))]
            below, above = (left, right) if sign > 0 else (right, left)
            assert below.max() <= above.min()
            n_ordered += 1
    return n_ordered


def branches(tree: Tree, node: int = 0, above: tuple[int, ...] = ()) -> list[set[int]]:
    """The features of every branch."""
    if node < 0 or not tree.n_nodes:
        return [set(above)]
    below = (*above, int(tree.feature[node]))
    children = (int(tree.left[node]), int(tree.right[node]))
    return [branch for child in children for branch in branches(tree, child, below)]


# -- against the naive versions --------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([("mse", 100), ("newton", 100), ("newton", 1 << 21)]),
    st.integers(1, 3),
    st.sampled_from([0.0, 8.0]),
    st.booleans(),
    st.booleans(),
)
def test_best_split_under_bounds_equals_trying_all(
    seed: int, form: tuple[str, int], min_leaf: int, l2: float, missing: bool, wide: bool
) -> None:
    split, layout = form[0], Layout.of(*form)
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 30)), int(rng.integers(1, 11))
    X = rng.integers(0, 6, (n, d)).astype(np.float32)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    g = rng.integers(-1000, 1000, n)
    h = rng.integers(0, 50, n)
    binner = Binner.fit(X)
    if binner.columns.size == 0:
        return
    packed = (g << layout.gradient.shift) + 1
    if layout.hessian is not None:
        packed += h << layout.hessian.shift
    signs = rng.integers(-1, 2, d)
    middle = g.sum() / (n if split == "mse" else h.sum() + l2 + 1)
    low = middle - rng.exponential(100 if split == "mse" else 4)
    high = middle + rng.exponential(100 if split == "mse" else 4)
    bounds = (-np.inf, np.inf) if wide else (float(low), float(high))
    found = search(
        binner,
        X,
        packed,
        int(h.sum()),
        l2=l2,
        min_leaf=min_leaf,
        layout=layout,
        signs=signs[binner.columns].astype(np.int8),
        bounds=bounds,
    )
    thresholds: list[list[float]] = [[] for _ in range(d)]
    for column, values in zip(binner.columns, binner.thresholds, strict=True):
        thresholds[column] = values.tolist()
    exact: naive.Bounds = bounds if wide else (Fraction(bounds[0]), Fraction(bounds[1]))
    expected = naive.best_split(
        X,
        thresholds,
        [Fraction(int(v)) for v in g],
        [Fraction(int(v)) for v in h],
        np.arange(n),
        split=split,
        min_leaf=min_leaf,
        l2=Fraction(l2),
        signs=dict(enumerate(signs.tolist())),
        bounds=exact,
    )
    if expected is None or expected[0] < 1e-9:
        assert found is None or found.gain < 1e-6
        return
    assert found is not None
    assert found.gain == pytest.approx(float(expected[0]), rel=1e-9)
    assert (binner.columns[found.feature], found.bin) == expected[1:3]


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("seed", range(8))
def test_tree_equals_the_exact_constrained_tree(growth: str, split: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    X = rng.integers(0, 9, (n, 4)).astype(np.float32)
    if seed % 2:
        X[rng.random(X.shape) < 0.15] = np.nan
    gradient = rng.integers(-400, 400, n) / 8.0 + 20 * (np.nan_to_num(X[:, 1]) > 4)
    hessian = rng.integers(1, 30, n) / 4.0
    signs = {0: -1, 1: 1, 2: int(rng.choice([-1, 1]))}
    groups = [{0, 1}, {1, 2, 3}] if seed > 3 else None
    rules = {"split": split, "min_leaf": 2 + seed % 3}
    l2 = 2.0 if seed > 5 and split == "newton" else 0.0
    constrained = {"l2": Fraction(l2), "signs": signs, "groups": groups, **rules}
    if growth == "symmetric":
        levels, expected_leaf = naive.symmetric_tree(X, gradient, hessian, 3, **constrained)
        made = [split[:3] for split in levels]
    else:
        made, expected_leaf = naive.greedy_tree(X, gradient, hessian, 8, **constrained)
    some = grower(X, signs, groups, n_leaves=8, n_threads=1, growth=growth, l2=l2, **rules)
    tree, leaf_of = some.grow(gradient, hessian)
    found = zip(
        tree.feature.tolist(), tree.threshold.tolist(), tree.missing_left.tolist(), strict=True
    )
    assert list(found) == made
    assert np.array_equal(leaf_of, expected_leaf)
    check(tree, leaf_of, X)
    check_order(tree, signs)
    node_signs = [signs.get(f, 0) if t < np.inf else 0 for f, t, _ in made]
    assert tree.value == pytest.approx(naive_values(tree, node_signs), rel=1e-12, abs=1e-12)
    for branch in branches(tree):
        assert groups is None or len(branch) < 2 or any(branch <= group for group in groups)


def naive_values(tree: Tree, signs: list[int]) -> list[float]:
    """The values of leaves, each from the bounds of all nodes above it, one after the other."""
    values = [0.0] * tree.n_leaves

    def mean(child: int) -> float:
        return float(tree.mean[child if child >= 0 else tree.n_nodes + ~child])

    def fill(child: int, low: float, high: float) -> None:
        if child < 0:
            values[~child] = min(max(mean(child), low), high)
            return
        children = int(tree.left[child]), int(tree.right[child])
        a, b = (min(max(mean(c), low), high) for c in children)
        middle = (a + b) / 2
        if signs[child] * (b - a) < 0:
            middle = min(max(mean(child), low), high)
        bounds = {
            0: [(low, high), (low, high)],
            1: [(low, middle), (middle, high)],
            -1: [(middle, high), (low, middle)],
        }
        for c, bound in zip(children, bounds[signs[child]], strict=True):
            fill(c, *bound)

    fill(0 if tree.n_nodes else -1, -np.inf, np.inf)
    return values


# -- the order is exact ----------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    growth=st.sampled_from(GROWTHS),
    split=st.sampled_from(SPLITS),
    l2=st.sampled_from([0.0, 0.5, 30.0]),
    feature_fraction=st.sampled_from([1.0, 0.5]),
    spread=st.integers(0, 6),
)
def test_all_trees_are_in_order(
    seed: int, growth: str, split: str, l2: float, feature_fraction: float, spread: int
) -> None:
    """Whatever the gradients and hessians: also of very different sizes, and hessians of 0."""
    rng = np.random.default_rng(seed)
    X, gradient = web(150, 5, seed, missing=0.1)
    gradient = gradient * 10.0 ** rng.integers(-spread, spread + 1, 150)
    hessian = rng.random(150) * 10.0 ** rng.integers(-spread, spread + 1, 150)
    hessian[rng.random(150) < 0.1] = 0.0
    directions = {int(j): int(rng.choice([-1, 1])) for j in rng.permutation(5)[:3]}
    options = {"n_leaves": 16, "l2": l2, "split": split, "growth": growth}
    some = grower(X, directions, n_threads=1, feature_fraction=feature_fraction, **options)
    for round in range(3):
        tree, leaf_of = some.grow(gradient, hessian, round)
        check(tree, leaf_of, X)
        check_order(tree, directions)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_values_are_in_order_whatever_the_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, gradient = web(120, 4, seed)
    tree, _ = grower(X, n_leaves=12, n_threads=1).grow(gradient)
    directions = {j: int(rng.choice([-1, 1])) for j in range(4)}
    signs = np.array(
        [
            directions[f] if t < np.inf else 0
            for f, t in zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)
        ],
        np.int8,
    )
    mean = rng.normal(size=tree.mean.size) * 10.0 ** rng.integers(-320, 300, tree.mean.size)
    value = bounded(tree.left, tree.right, signs, mean)
    object.__setattr__(tree, "value", value)
    check_order(tree, directions)


def test_means_of_rows_in_order_may_have_steps_that_are_not() -> None:
    """Least squares does not see hessians: out of order, both leaves get the value of their parent.

    Means are 1 and 2, steps 1 / 0.1 and 2 / 1.
    """
    X = np.arange(4, dtype=np.float32)[:, None]
    gradient, hessian = np.array([1.0, 1, 2, 2]), np.array([0.1, 0.1, 1, 1])
    free, _ = grower(X, n_leaves=2, n_threads=1).grow(gradient, hessian)
    assert free.value.tolist() == [10.0, 2.0]
    tree, _ = grower(X, {0: 1}, n_leaves=2, n_threads=1).grow(gradient, hessian)
    assert tree.value.tolist() == [pytest.approx(6 / 2.2)] * 2
    assert tree.mean[1:].tolist() == [10.0, 2.0]  # statistics of the rows, without bounds


def test_bounds_reach_below_splits_on_other_features() -> None:
    """x0 parts 0 from 4; x1 would add 3 to half of the lower rows, which the middle, 2, cuts."""
    X = np.array([[a, b] for a in (0, 1) for b in (0, 1) for _ in range(5)], np.float32)
    gradient = np.repeat([0.0, 3.5, 5.0, 5.0], 5)
    tree, leaf_of = grower(X, {0: 1}, n_leaves=3, n_threads=1).grow(gradient)
    assert tree.feature.tolist() == [0, 1]
    middle = (1.75 + 5.0) / 2
    assert tree.value[leaf_of].tolist() == np.repeat([0.0, middle, 5.0, 5.0], 5).tolist()
    # 5 rows at 0, 5 at 3.375 and not 3.5, against 10 rows at 1.75
    assert tree.gain[1] == pytest.approx(10 * 1.75**2 - 5 * (3.5 - middle) ** 2)


def test_missing_values_have_no_order() -> None:
    X = np.array([0, 0, 1, 1, np.nan, np.nan], np.float32)[:, None]
    gradient = np.array([2.0, 2, 1, 1, -5, -5])
    tree, leaf_of = grower(X, {0: 1}, n_leaves=4, n_threads=1).grow(gradient)
    assert tree.threshold.tolist() == [np.inf]  # values are parted from missing ones, not 0 from 1
    assert tree.value[leaf_of].tolist() == [1.5] * 4 + [-5.0] * 2
    falling, leaf_of = grower(X, {0: -1}, n_leaves=4, n_threads=1).grow(gradient)
    assert falling.value[leaf_of].tolist() == gradient.tolist()


def test_no_constraint_changes_nothing() -> None:
    X, gradient = web(2000, 6, 3)
    plain, _ = grower(X, n_leaves=20, n_threads=1).grow(gradient)
    assert equal(plain, Grower(Binner.fit(X).transform(X), n_leaves=20).grow(gradient)[0])
    everywhere, _ = grower(X, None, [set(range(6))], n_leaves=20, n_threads=1).grow(gradient)
    assert equal(plain, everywhere)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("split", SPLITS)
def test_threads_and_memory_do_not_matter(
    growth: str, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, gradient = web(3000, 20, 10)
    hessian = np.random.default_rng(1).random(3000)
    directions = {0: 1, 1: -1, 4: 1, 6: -1, 7: 1}
    groups = [set(range(12)), set(range(8, 20))]
    options = {"n_leaves": 32, "split": split, "min_leaf": 5, "feature_fraction": 0.7}
    options |= {"growth": growth}
    first, _ = grower(X, directions, groups, n_threads=1, **options).grow(gradient, hessian, 3)
    assert check_order(first, directions) > 2
    less = grower(X, directions, groups, n_threads=1, histogram_bytes=0, **options)
    assert equal(first, less.grow(gradient, hessian, 3)[0])
    always_parallel(monkeypatch)
    monkeypatch.setattr(symmetric, "worth_a_region", lambda nanoseconds, n_threads: True)
    threaded = grower(X, directions, groups, n_threads=2, **options)
    assert equal(first, threaded.grow(gradient, hessian, 3)[0])


# -- features that may meet ------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(GROWTHS), st.sampled_from([1.0, 0.4]), st.integers(0, 3)
)
def test_features_of_a_branch_are_of_one_group(
    seed: int, growth: str, feature_fraction: float, n_groups: int
) -> None:
    rng = np.random.default_rng(seed)
    X, gradient = web(300, 8, seed)
    groups = [set(rng.permutation(8)[: rng.integers(2, 5)].tolist()) for _ in range(n_groups)]
    options = {"growth": growth, "feature_fraction": feature_fraction}
    some = grower(X, {}, groups, n_leaves=16, n_threads=1, **options)
    for round in range(3):
        tree, leaf_of = some.grow(gradient, None, round)
        check(tree, leaf_of, X)
        assert tree.n_leaves > 4
        for branch in branches(tree):
            assert len(branch) == 1 or any(branch <= group for group in groups)


def test_groups_that_overlap() -> None:
    columns = np.array([3, 5, 7, 9, 11])  # the columns of the matrix that are not constant
    meeting = Meeting((frozenset({3, 5}), frozenset({5, 7, 9}), frozenset({0, 11})), columns)
    assert meeting.allowed(()) is None

    def allowed(*used: int) -> list[int]:
        return columns[meeting.allowed(used)].tolist()

    assert allowed(0) == [3, 5]
    assert allowed(1) == [3, 5, 7, 9]
    assert allowed(1, 2) == [5, 7, 9]
    assert allowed(1, 0) == [3, 5]
    assert allowed(4) == [11]


def test_the_share_of_drawn_features_is_that_of_the_allowed() -> None:
    draw = FeatureDraw(np.arange(40), 0.25, 1)
    allowed = np.zeros(40, np.bool_)
    allowed[[1, 5, 7, 8, 20, 31, 33, 39]] = True
    for leaf in range(10):
        drawn = draw(0, leaf, allowed)
        assert drawn.sum() == 2
        assert not (drawn & ~allowed).any()
    assert len({draw(0, leaf, allowed).tobytes() for leaf in range(10)}) > 4
