"""Every scorer against a walk in plain Python, bit for bit."""

from __future__ import annotations

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings

from rankgrove.errors import DataError, ParameterError
from rankgrove.model.category_sets import CategorySets
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring import score as scoring
from rankgrove.scoring.lanes import MOST_THRESHOLDS, compile_lanes
from rankgrove.scoring.score import SCORERS, choose, score
from rankgrove.scoring.scorer import Scorer
from tests.scoring.making import NUMBERS, cases, codes, make_ensemble, naive_scores


def bits(scores: np.ndarray) -> np.ndarray:
    return np.atleast_2d(scores).view(np.int64)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_every_scorer_gives_the_bits_of_a_plain_walk(case):
    trees, features, start = case
    trees.check()
    expected = bits(naive_scores(trees, features, start))
    for scorer in SCORERS:
        found = score(trees, features, n_threads=1, start=start, scorer=scorer)
        np.testing.assert_array_equal(bits(found), expected, scorer)
    np.testing.assert_array_equal(bits(score(trees, features, start=start)), expected)


@pytest.mark.parametrize("n_rows", [1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 300])
def test_blocks_that_are_not_full(n_rows):
    rng = np.random.default_rng(n_rows)
    trees = make_ensemble(rng, [5] * 37, 4, NUMBERS)
    features = rng.choice([*NUMBERS, np.nan], (n_rows, 4)).astype(np.float32)
    expected = bits(naive_scores(trees, features))
    for scorer in SCORERS:
        np.testing.assert_array_equal(bits(score(trees, features, scorer=scorer)), expected)


@pytest.mark.parametrize("n_leaves", [255, 256, 257, 1500, 70_000])
@pytest.mark.parametrize("shape", ["any", "chain"])
def test_large_trees(n_leaves, shape):
    rng = np.random.default_rng(n_leaves)
    trees = make_ensemble(rng, [n_leaves, 3, n_leaves], 3, rng.normal(size=5000), shape=shape)
    features = rng.normal(size=(40, 3)).astype(np.float32)
    expected = bits(score(trees, features, scorer="walk"))
    np.testing.assert_array_equal(bits(score(trees, features, scorer="lanes")), expected)
    if n_leaves < 2000:
        np.testing.assert_array_equal(bits(naive_scores(trees, features)), expected)


@pytest.mark.parametrize("n_thresholds", [14, 15, 16, 254, 255, 256, 510, 511])
@pytest.mark.parametrize("exact", [False, True])
def test_a_feature_of_many_thresholds_is_cut_into_columns(n_thresholds, exact):
    rng = np.random.default_rng(n_thresholds)
    numbers = np.arange(n_thresholds) / 8
    trees = make_ensemble(rng, [64] * 100, 1, numbers, exact=exact, missing="right")
    used = np.unique(trees.threshold).size
    lanes = compile_lanes(trees)
    assert lanes.columns[np.dtype(np.float32)].feature.size == -(-used // MOST_THRESHOLDS)
    features = np.concatenate([numbers, numbers - 0.01, numbers + 0.01, [np.nan]])[:, None]
    for kind in (np.float32, np.float64):
        given_features = features.astype(kind)
        expected = bits(score(trees, given_features, scorer="walk"))
        np.testing.assert_array_equal(bits(score(trees, given_features, scorer="lanes")), expected)


def test_infinity_as_a_threshold_leaves_the_right_to_missing_values():
    trees = make_ensemble(np.random.default_rng(0), [2], 1, [np.inf], missing="right")
    features = np.array([[-np.inf], [0.0], [np.inf], [np.nan]], np.float32)
    left, right = trees.value[~trees.left[0]], trees.value[~trees.right[0]]
    for scorer in SCORERS:
        assert score(trees, features, scorer=scorer).tolist() == [left, left, left, right]


def test_float64_features_are_rounded_where_thresholds_are_float32():
    rng = np.random.default_rng(1)
    trees = make_ensemble(rng, [30] * 20, 3, rng.normal(size=50))
    near = np.repeat(trees.threshold[:50].astype(np.float64), 3)[:, None] * np.ones((1, 3))
    near[1::3] = np.nextafter(near[1::3], 9.0)
    near[2::3] = np.nextafter(near[2::3], -9.0)
    rounded = score(trees, near.astype(np.float32), scorer="walk")
    for scorer in SCORERS:
        np.testing.assert_array_equal(score(trees, near, scorer=scorer), rounded)


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize("rows", [None, slice(10, 4000, 3), np.array([5, 5, 0, 4999])])
def test_threads_and_rows_change_nothing(n_threads, rows):
    rng = np.random.default_rng(2)
    trees = make_ensemble(rng, [20] * 60, 6, NUMBERS, n_columns=3)
    features = rng.choice(NUMBERS, (5000, 6)).astype(np.float32)
    some = features if rows is None else features[rows]
    expected = bits(score(trees, some, n_threads=1, scorer="walk"))
    sparse = scipy.sparse.csr_matrix(np.nan_to_num(features, posinf=9.0, neginf=-9.0))
    dense = sparse.toarray() if rows is None else sparse.toarray()[rows]
    for scorer in SCORERS:
        found = score(trees, features, rows, n_threads, scorer=scorer)
        np.testing.assert_array_equal(bits(found), expected)
        np.testing.assert_array_equal(
            score(trees, sparse, rows, n_threads, scorer=scorer), score(trees, dense, scorer="walk")
        )


def test_features_in_any_layout_or_type():
    rng = np.random.default_rng(3)
    trees = make_ensemble(rng, [9] * 30, 4, NUMBERS)
    features = rng.integers(-3, 3, (90, 4))
    expected = score(trees, features.astype(np.float32), scorer="walk")
    for scorer in SCORERS:
        for given_features in (features, np.asfortranarray(features, float), features[:, ::1]):
            np.testing.assert_array_equal(score(trees, given_features, scorer=scorer), expected)


def test_several_threads_may_score_by_one_new_ensemble():
    rng = np.random.default_rng(4)
    trees = make_ensemble(rng, [31] * 100, 10, rng.normal(size=99))
    features = rng.normal(size=(3000, 10)).astype(np.float32)
    expected = score(trees, features, n_threads=1, scorer="walk")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: score(trees, features, n_threads=2), range(12)))
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_the_other_form_is_made_when_it_pays_and_forgotten_with_the_ensemble():
    rng = np.random.default_rng(5)
    trees = make_ensemble(rng, [31] * 50, 10, rng.normal(size=99))
    features = rng.normal(size=(100, 10)).astype(np.float32)
    assert type(choose(trees, 1)).__name__ == "Walk"
    made = [type(choose(trees, 100)).__name__ for _ in range(20)]
    assert made[0] == "Walk"
    assert made[-1] == "Lanes"
    again = pickle.loads(pickle.dumps(trees))
    assert isinstance(again, Ensemble)
    assert scoring.known(again).lanes is None
    np.testing.assert_array_equal(score(again, features), score(trees, features))
    before = len(scoring._known)
    del trees, again
    gc.collect()
    assert len(scoring._known) < before


def test_trees_of_one_split_are_walked_and_no_trees_are_no_trouble():
    rng = np.random.default_rng(6)
    large = make_ensemble(rng, [60_000] * 2, 3, rng.normal(size=5000))
    assert scoring.known(large).costs.least == np.inf
    none = make_ensemble(rng, [], 3, [0.0], base=2.5)
    for scorer in (None, *SCORERS):
        assert score(none, np.zeros((4, 3), np.float32), scorer=scorer).tolist() == [2.5] * 4
        assert score(large, np.zeros((0, 3), np.float32), scorer=scorer).shape == (0,)


def test_mistakes_are_named():
    trees = make_ensemble(np.random.default_rng(7), [4], 3, [0.0])
    with pytest.raises(DataError, match="trained on 3 features; the data has 4"):
        score(trees, np.zeros((2, 4), np.float32))
    with pytest.raises(ParameterError, match="did you mean 'lanes'"):
        score(trees, np.zeros((2, 3), np.float32), scorer="lane")


@pytest.mark.parametrize("n_sets", [1, 7, 8, 9, 120, 129])
@pytest.mark.parametrize("missing", ["both", "left", "right"])
def test_sets_of_one_feature_share_columns(n_sets, missing):
    rng = np.random.default_rng(n_sets)
    trees = make_ensemble(
        rng, [20] * 40, 2, [0.0], categorical={1: 50}, n_sets=n_sets, missing=missing
    )
    lanes = compile_lanes(trees)
    nodes = trees.set_of >= 0
    pairs = {*zip(trees.set_of[nodes].tolist(), trees.missing_left[nodes].tolist(), strict=True)}
    n_bins = lanes.columns[np.dtype(np.float32)].feature.size
    assert lanes.n_bytes == n_bins + -(-len(pairs) // 8)
    features = np.stack([rng.normal(size=130), codes(rng, 130, 50)], axis=1)
    for kind in (np.float32, np.float64):
        expected = bits(naive_scores(trees, features.astype(kind)))
        for scorer in SCORERS:
            found = score(trees, features.astype(kind), scorer=scorer)
            np.testing.assert_array_equal(bits(found), expected, scorer)


@pytest.mark.parametrize("exact", [False, True])
def test_sets_alone(exact):
    # 2.9999999999 is 3 as float32, and 2 as float64
    trees = make_ensemble(np.random.default_rng(8), [9] * 40, 1, [0.0], exact=exact)
    sets = CategorySets.of([[2], [3], [0, 3], [1]])
    trees = replace(trees, set_of=np.arange(trees.feature.size) % 4, sets=sets)
    features = np.array([[0.0], [2.9999999999], [3.0], [-1e-9], [np.nan], [4.0]])
    for kind in (np.float32, np.float64):
        expected = bits(naive_scores(trees, features.astype(kind)))
        for scorer in SCORERS:
            found = score(trees, features.astype(kind), scorer=scorer)
            np.testing.assert_array_equal(bits(found), expected, scorer)


def test_a_tree_decides_on_sets_as_the_scorers_do():
    rng = np.random.default_rng(9)
    trees = make_ensemble(rng, [15] * 12, 3, NUMBERS, categorical={0: 70, 2: 3}, missing="both")
    features = rng.choice([*NUMBERS, np.nan], (200, 3)).astype(np.float32)
    features[:, 0], features[:, 2] = codes(rng, 200, 70), codes(rng, 200, 3)
    expected = np.zeros(200)
    for t in range(trees.n_trees):
        expected += trees.tree(t).predict(features)
    for scorer in SCORERS:
        np.testing.assert_array_equal(score(trees, features, scorer=scorer), expected, scorer)


def test_tables_of_categories_that_would_be_too_long_are_not_made():
    rng = np.random.default_rng(10)
    trees = make_ensemble(rng, [8] * 20, 2, NUMBERS, categorical={0: 40}, n_sets=50)
    features = np.stack([codes(rng, 400, 40), rng.normal(size=400)], axis=1)
    expected = score(trees, features, scorer="walk")
    with mock.patch.object(scoring, "MOST_BITS", 10):
        again = pickle.loads(pickle.dumps(trees))
        assert type(choose(again, 10**9)).__name__ == "Walk"
        scorer = Scorer(again)
        np.testing.assert_array_equal(scorer.predict(features), expected)
        assert scorer.top(features, 1).rows.tolist() == [int(np.argmax(expected))]
    assert scoring.known(again).lanes is None
    assert scoring.known(trees).costs.fits
    lanes = compile_lanes(trees)
    assert lanes.memberships.table.size <= scoring.table_of_bits(trees) + 200


def test_categories_of_high_codes_in_few_sets_need_little_memory():
    sets = CategorySets.of([[2**20 - 1, 5], [2**19]])
    trees = make_ensemble(np.random.default_rng(11), [2] * 40, 1, [0.0], missing="right")
    trees = replace(trees, set_of=np.arange(40) % 2, sets=sets)
    assert scoring.known(trees).costs.fits
    assert compile_lanes(trees).memberships.table.size < 100
    features = np.array([[5.0], [2.0**20 - 1], [2.0**19], [2.0**20], [7.0]], np.float32)
    expected = naive_scores(trees, features)[0]
    np.testing.assert_array_equal(score(trees, features, scorer="lanes"), expected)
