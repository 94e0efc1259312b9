"""Adapting trees: by hand, beside the naive version, and the laws it must keep."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.adapt.adaptation_report import AdaptationReport
from rankgrove.adapt.adapted_trees import adapt_ensemble, trimmed
from rankgrove.adapt.statistics import source_statistics, statistics_of
from rankgrove.adapt.target import TargetRows
from rankgrove.adapt.walking import Rules
from rankgrove.data.binning import Binner
from rankgrove.model.category_sets import CategorySets
from rankgrove.model.ensemble import STATISTICS, Ensemble, unknown_statistics
from rankgrove.model.tree import Tree
from rankgrove.objectives.pointwise import SquaredError
from rankgrove.scoring.score import score
from tests.reference import trada as naive

RATE = 0.5


class Residuals:
    """Squared error without a constant of its own."""

    n_columns = 1

    def __init__(self, y):
        self.y = np.array(y, float)

    def gradients(self, scores, gradient, hessian, queries=None, n_threads=None):
        gradient[:] = self.y - scores
        hessian[:] = 1.0


def two_levels(threshold=(0.5, 0.5)):
    """Return x0 <= v: leaf A; else x1 <= w: leaf B, else leaf C, with what the source saw there."""
    mean = np.array([2.0, 3.0, 1.0, 2.0, 3.5])  # root, inner node, A, B, C
    tree = Tree(
        feature=np.array([0, 1], np.int32),
        threshold=np.array(threshold, np.float32),
        left=np.array([~0, ~1], np.int32),
        right=np.array([1, ~2], np.int32),
        missing_left=np.array([False, False]),
        gain=np.ones(2),
        value=RATE * mean[2:],
        count=np.array([12, 6, 6, 2, 4]),
        weight=np.array([12.0, 6, 6, 2, 4]),
        mean=mean,
    )
    return Ensemble.from_trees([tree], 2)


def adapt(ensemble, X, y, objective=Residuals, n_threads=1, **rules):
    X = np.array(X, np.float32)
    target = TargetRows.of(X, None, np.unique(ensemble.feature), Binner.fit(X).transform(X))
    made = objective(y)
    source = source_statistics(ensemble)
    return adapt_ensemble(ensemble, source, target, made, Rules(**rules), n_threads=n_threads)


# -- by hand ------------------------------------------------------------------------------------

# A gets the responses 3 and 5, B gets 4, C gets 8; means: root 5, inner node 6.
# beta 2: p0 = 12/20, 6/10 (inner node), 6/10 (A), 2/4 (B), 4/6 (C).
X1 = [[0, 0], [0, 1], [1, 0], [1, 1]]
Y1 = [3, 5, 4, 8]


def test_responses_of_leaves_by_hand():
    found = adapt(two_levels(), X1, Y1, beta=2.0, level="leaf")
    # .6 * 1 + .4 * 4 = 2.2;  .5 * 2 + .5 * 4 = 3;  2/3 * 3.5 + 1/3 * 8 = 5
    np.testing.assert_allclose(found.ensemble.value, [1.1, 1.5, 2.5], rtol=1e-15)
    np.testing.assert_array_equal(found.ensemble.threshold, [0.5, 0.5])
    assert found.reached.tolist() == [4, 2, 2, 1, 1]
    np.testing.assert_allclose(found.scores, [1.1, 1.1, 1.5, 2.5], rtol=1e-15)


def test_responses_of_layers_by_hand():
    found = adapt(two_levels(), X1, Y1, beta=2.0, level="layer")
    # root .6*2 + .4*5 = 3.2; A -1 both; inner +1 both; B .5*-1 + .5*-2 = -1.5;
    # C 2/3*.5 + 1/3*2 = 1: 2.2, 2.7, 5.2
    np.testing.assert_allclose(found.ensemble.value, [1.1, 1.35, 2.6], rtol=1e-15)


# v0 = 1 and 10. Root: the best split of x0 is 3.5, so v = .6 * 1 + .4 * 3.5 = 2: the second row
# goes left now. Inner node: x1 splits at 6, v = .6 * 10 + .4 * 6 = 8.4: both rows go to B.
X2 = [[1, 4], [2, 8], [5, 4], [6, 8]]
Y2 = [0, 2, 8, 10]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        # A .6*1 + .4*1; B 1/3*2 + 2/3*9; C as it was
        ("leaf", [1.0, 20 / 3, 3.5]),
        # root 3.2; A .6*-1 + .4*-4 = -2.2; inner 2.2; B 1/3*-1 + 0; C .5
        ("layer", [1.0, 5.4 - 1 / 3, 5.9]),
    ],
)
def test_splits_by_hand(level, expected):
    found = adapt(two_levels((1, 10)), X2, Y2, beta=2.0, tune="splits", level=level)
    np.testing.assert_array_equal(found.ensemble.threshold, np.float32([2.0, 8.4]))
    assert found.reached.tolist() == [4, 2, 2, 2, 0]
    np.testing.assert_allclose(found.ensemble.value, RATE * np.array(expected), rtol=1e-15)
    cut = trimmed(found.ensemble, found.reached)  # C is not reached: B takes its parent's place
    cut.check()
    assert (cut.left.tolist(), cut.right.tolist()) == ([~0], [~1])
    np.testing.assert_array_equal(cut.value, found.ensemble.value[:2])
    assert cut.threshold[0] == 2.0
    np.testing.assert_array_equal(score(cut, np.array(X2, np.float32)), found.scores)


def test_a_set_of_categories_is_kept_by_hand():
    trees = two_levels((0, 10))
    trees = replace(trees, set_of=[0, -1], sets=CategorySets.of([[1, 4]]))
    # categories 1 and 4 go left; 2, an unknown one, a negative one and a missing one go right
    X = [[1, 4], [4, 8], [2, 4], [70, 8], [-1, 4], [math.nan, 8]]
    found = adapt(trees, X, [0, 2, 8, 10, 8, 10], beta=2.0, tune="splits", level="leaf")
    # the inner node: x1 splits at 6, v = 6/14 * 10 + 8/14 * 6
    np.testing.assert_array_equal(found.ensemble.threshold, np.float32([0, 108 / 14]))
    assert found.reached.tolist() == [6, 4, 2, 2, 2]
    np.testing.assert_array_equal(score(found.ensemble, np.array(X, np.float32)), found.scores)
    cut = trimmed(found.ensemble, np.array([6, 4, 2, 4, 0]))
    assert cut.sets.codes(int(cut.set_of[0])).tolist() == [1, 4]
    assert (cut.set_of.size, cut.left.tolist(), cut.right.tolist()) == (1, [~0], [~1])


# -- beside the naive version ---------------------------------------------------------------------


def domains(n_trees=6, **settings):
    big, small = rg.make_domains(40, 8, n_docs=15, n_features=12, seed=3, feature_shift=1.0)
    base = rg.MART(
        n_trees=n_trees, n_leaves=7, min_leaf=5, learning_rate=0.3, n_threads=1, **settings
    ).fit(big)
    return base.ensemble_, big, small


def squared(data):
    return lambda y: SquaredError(y, data.query_ptr)


def with_sets(trees, data):
    """Return the trees and the data with categories in place of the most used feature."""
    rng = np.random.default_rng(0)
    column = int(np.bincount(trees.feature).argmax())
    nodes = trees.feature == column
    sets = [rng.choice(9, 4, replace=False) for _ in range(np.count_nonzero(nodes))]
    set_of = np.where(nodes, np.cumsum(nodes) - 1, -1)
    threshold = np.where(nodes, 0, trees.threshold).astype(np.float32)
    features = np.array(data.X)
    features[:, column] = rng.choice([*range(10), math.nan, -1, 200], data.n_rows)
    changed = replace(trees, set_of=set_of, sets=CategorySets.of(sets), threshold=threshold)
    return changed, rg.QueryDataset(features, data.y, data.qid)


@pytest.mark.slow
@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize("tune", ["responses", "splits"])
@pytest.mark.parametrize("level", ["layer", "leaf"])
@pytest.mark.parametrize("beta", [0.5, 10.0, math.inf])
def test_agrees_with_the_naive_version(tune, level, beta, categories):
    trees, _, small = domains()
    if categories:
        trees, small = with_sets(trees, small)
    rules = {"beta": beta, "tune": tune, "level": level, "l2": 0.3, "min_leaf": 4}
    found = adapt(trees, small.X, small.y, squared(small), **rules)
    binner = Binner.fit(small.features)
    candidates = {j: [] for j in range(small.n_features)}
    candidates |= {
        int(j): t.tolist() for j, t in zip(binner.columns, binner.thresholds, strict=True)
    }
    thresholds, values, base, scores = naive.adapt(
        trees, 0.3, small.X, small.y, candidates, beta, tune, level, 0.3, 4
    )
    np.testing.assert_array_equal(found.ensemble.threshold, np.float32(thresholds))
    np.testing.assert_allclose(found.ensemble.value, values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.ensemble.base, base, rtol=1e-12)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-9)
    assert (tune == "splits") == (not np.array_equal(found.ensemble.threshold, trees.threshold))
    # the scores that adaptation ends with are those of the adapted trees
    np.testing.assert_array_equal(score(found.ensemble, small.features), found.scores)


# -- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tune", ["responses", "splits"])
@pytest.mark.parametrize("level", ["layer", "leaf"])
def test_beta_0_changes_nothing(tune, level):
    trees, _, small = domains()
    found = adapt(trees, small.X, small.y, squared(small), beta=0.0, tune=tune, level=level)
    for name in ("threshold", "value", "base"):
        np.testing.assert_array_equal(getattr(found.ensemble, name), getattr(trees, name))


@pytest.mark.parametrize("level", ["layer", "leaf"])
def test_infinite_beta_on_the_source_fits_anew(level):
    # fitting the responses to the data the base model was trained on gives the base model again
    trees, big, _ = domains(l2=0.0)
    found = adapt(trees, big.X, big.y, squared(big), beta=math.inf, level=level)
    np.testing.assert_allclose(found.ensemble.value, trees.value, rtol=1e-9, atol=1e-12)
    # and of trees that know nothing (values 0) it makes what boosting would have made of them
    blank = replace(
        trees, value=0.0 * trees.value, leaf_mean=0.0 * trees.leaf_mean, node_mean=0.0 * trees.gain
    )
    target = TargetRows.of(big.features, None, np.unique(trees.feature))
    known = source_statistics(blank, rate=0.3)
    found = adapt_ensemble(
        blank, known, target, squared(big)(big.y), Rules(beta=1e300, level=level)
    )
    np.testing.assert_allclose(found.ensemble.value, trees.value, rtol=1e-9, atol=1e-12)


def test_levels_agree_where_no_node_is_shared():
    _, _, small = domains()
    leaf = Tree(
        *(np.empty(0, t) for t in ("i4", "f4", "i4", "i4", "?", "f8")),
        value=np.array([0.5]),
        count=np.array([10]),
        weight=np.array([10.0]),
        mean=np.array([1.0]),
    )
    alone = Ensemble.from_trees([leaf, leaf], 12)
    used = replace(alone, base=1.0)
    made = [
        adapt_ensemble(
            used,
            source_statistics(used),
            TargetRows.of(small.features, None, np.empty(0, np.int32)),
            Residuals(small.y),
            Rules(beta=3.0, level=level),
        )
        for level in ("layer", "leaf")
    ]
    np.testing.assert_allclose(made[0].ensemble.value, made[1].ensemble.value, rtol=1e-14)
    assert made[0].ensemble.value[0] != 0.5
    # nor do they differ where both domains fill all nodes in the same proportion
    rows = [[0, 0]] * 6 + [[1, 0]] * 2 + [[1, 1]] * 4
    y = np.random.default_rng(0).integers(0, 5, 12)
    one, other = (
        adapt(two_levels(), rows, y, beta=2.0, level=level).ensemble.value
        for level in ("layer", "leaf")
    )
    np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("tune", ["responses", "splits"])
def test_neither_threads_nor_order_matter(tune):
    trees, _, small = domains()
    rules = {"beta": 5.0, "tune": tune, "min_leaf": 3}
    one = adapt(trees, small.X, small.y, squared(small), **rules)
    two = adapt(trees, small.X, small.y, squared(small), n_threads=2, **rules)
    turned = small.select(np.arange(small.n_queries)[::-1])
    back = adapt(trees, turned.X, turned.y, squared(turned), **rules)
    for other in (two, back):
        for name in ("threshold", "value", "base"):
            np.testing.assert_array_equal(
                getattr(one.ensemble, name), getattr(other.ensemble, name)
            )


def test_trimming_keeps_what_the_target_reaches():
    trees, _, small = domains()
    few = small.select([0])
    found = adapt(trees, few.X, few.y, squared(few), beta=5.0)
    assert (found.reached == 0).any()
    cut = trimmed(found.ensemble, found.reached)
    cut.check()
    assert cut.n_trees == trees.n_trees
    assert cut.n_leaves == sum(
        int((found.reached[trees.node_ptr[t + 1] + trees.leaf_ptr[t] :][:n] > 0).sum())
        for t, n in enumerate(np.diff(trees.leaf_ptr))
    )
    np.testing.assert_array_equal(score(cut, few.X), found.scores)


def test_statistics_are_those_of_training():
    trees, big, _ = domains(l2=0.2)
    bare = replace(trees, **unknown_statistics(trees.feature.size, trees.n_leaves))
    target = TargetRows.of(big.features, None, np.unique(trees.feature))
    found = statistics_of(bare, target, squared(big)(big.y), l2=0.2)
    for name in STATISTICS:
        np.testing.assert_allclose(getattr(found, name), getattr(trees, name), rtol=1e-9, atol=1e-9)


def test_what_is_missing_is_said_or_derived():
    trees, _, _ = domains(l2=0.0)
    whole = source_statistics(trees)
    assert np.all(whole.rate == 0.3)
    unknown = unknown_statistics(trees.feature.size, trees.n_leaves)
    with pytest.raises(rg.DataError, match=r"how many rows of its training data.*statistics_from"):
        source_statistics(replace(trees, **unknown))
    means = {name: unknown[name] for name in ("node_mean", "leaf_mean")}
    with pytest.raises(
        rg.DataError, match=r"learning rate of the base model.s trees is not known.*base_rate"
    ):
        source_statistics(replace(trees, **means))
    derived = source_statistics(replace(trees, **means), rate=0.3)
    np.testing.assert_allclose(derived.response, whole.response, rtol=1e-9, atol=1e-12)
    # the leaves are enough: inner nodes are their sums
    inner = {name: unknown[name] for name in unknown if name.startswith("node")}
    some = source_statistics(replace(trees, **inner))
    np.testing.assert_array_equal(some.count, whole.count)
    np.testing.assert_allclose(some.response, whole.response, rtol=1e-9, atol=1e-12)
    # a rate that shows is not overridden; trees that do not show theirs get the given one
    with pytest.raises(rg.ParameterError, match=r"base_rate=0.5.*known \(0.3\): leave"):
        source_statistics(trees, rate=0.5)
    mean = trees.leaf_mean.copy()
    mean[: trees.leaf_ptr[1]] = np.nan
    partly = source_statistics(replace(trees, leaf_mean=mean), rate=0.5)
    assert partly.rate.tolist() == [0.5] + [0.3] * (trees.n_trees - 1)


@pytest.mark.parametrize("level", ["layer", "leaf"])
def test_the_constant_is_mixed_by_the_sum_of_leaf_counts(level):
    trees = replace(two_levels(), base=1.0, node_count=np.array([-1, -1]))

    class Started(Residuals):
        start = 3.0

    found = adapt(trees, X1, Y1, Started, beta=2.0, level=level)
    np.testing.assert_allclose(found.ensemble.base, (12 * 1 + 8 * 3) / 20, rtol=1e-15)
    assert found.ensemble.node_count.tolist() == [16, 8]


@pytest.mark.parametrize("level", ["layer", "leaf"])
@pytest.mark.parametrize("tune", ["responses", "splits"])
def test_beta_0_needs_no_statistics(level, tune):
    trees, _, small = domains()
    bare = replace(trees, **unknown_statistics(trees.feature.size, trees.n_leaves))
    target = TargetRows.of(small.features, None, np.unique(trees.feature))
    source = source_statistics(bare, needed=False)
    found = adapt_ensemble(bare, source, target, squared(small)(small.y), Rules(0, tune, level))
    np.testing.assert_array_equal(found.scores, score(trees, small.X))
    assert found.ensemble.to_arrays().keys() == bare.to_arrays().keys()
    assert np.isnan(found.ensemble.leaf_mean).all()
    assert (found.ensemble.leaf_count == -1).all()


# -- the report -----------------------------------------------------------------------------------


def test_report_by_hand():
    trees = two_levels((1, 10))
    X = np.array(X2, np.float32)
    target = TargetRows.of(X, None, np.array([0, 1]), Binner.fit(X).transform(X))
    source = source_statistics(trees)
    found = adapt_ensemble(
        trees, source, target, Residuals(Y2), Rules(beta=2.0, tune="splits", level="leaf")
    )
    report = AdaptationReport.of(trees, source, found, target, ["a", "b"])
    assert report.unreached_share == 0.25
    (row,) = report.by_tree()
    assert (row["nodes_reached"], row["leaves_reached"], row["unreached"]) == (2, 2, 0.25)
    assert row["moved"] == 2
    std = [np.std([1, 2, 5, 6]), 2.0]
    np.testing.assert_allclose(row["movement"], (1 / std[0] + 1.6 / std[1]) / 2, rtol=1e-6)
    # A .5 -> .5 and B 1 -> 10/3, two rows each
    np.testing.assert_allclose(row["response_change"], (0 + (10 / 3 - 1)) / 2, rtol=1e-12)
    first, second = report.by_feature()
    assert [first["feature"], second["feature"]] == ["b", "a"]
    np.testing.assert_allclose(first["movement"], 0.8, rtol=1e-6)
    # C - B was 1.75 - 1, is 1.75 - 10/3
    np.testing.assert_allclose(first["effect_change"], 10 / 3 - 1, rtol=1e-12)
    assert report.to_csv(by="feature").splitlines()[0].startswith("feature,nodes,nodes_reached")
    assert "25.0% of their branches" in str(report)
    back = AdaptationReport.from_arrays(report.to_arrays(), report.feature_names)
    assert str(back) == str(report)
