"""The scorer for services: the same bits, the top k by early exit, many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankgrove.errors import DataError, ParameterError
from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring import scorer as scorer_module
from rankgrove.scoring.score import score
from rankgrove.scoring.scorer import Scorer
from tests.scoring.making import NUMBERS, cases, codes, make_ensemble


@pytest.fixture(autouse=True, scope="module")
def no_query_is_too_short():
    with mock.patch.object(scorer_module, "FEW", 0):
        yield


def full_top(trees: Ensemble, features: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    scores = score(trees, features, scorer="walk")
    order = np.argsort(-scores, kind="stable")[:k]
    return order, scores[order]


@pytest.mark.slow
@given(cases(), st.integers(1, 80))
@settings(max_examples=80, deadline=None)
def test_scores_and_top_are_those_of_the_walk(case, k):
    trees, features, _ = case
    if trees.n_columns != 1:
        return
    scorer = Scorer(trees)
    expected = score(trees, features, scorer="walk")
    np.testing.assert_array_equal(scorer.predict(features), expected)
    rows, scores = full_top(trees, features, k)
    found = scorer.top(features, k)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.scores, scores)


def fading(
    rng: np.random.Generator, n_trees: int, single: bool, grid: bool, **more: Any
) -> Ensemble:
    """Return trees of less and less weight; on a grid many scores are equal."""
    trees = make_ensemble(rng, [6] * n_trees, 5, rng.normal(size=40), single=single, **more)
    weight = 0.9 ** np.repeat(np.arange(n_trees), 6)
    value = rng.normal(size=trees.value.size) * weight
    if grid:
        value = np.round(value * 4) / 4
    object.__setattr__(trees, "value", value)
    return trees


@pytest.mark.parametrize("n_rows", [50, 64, 65, 129, 300, 1000])
@pytest.mark.parametrize("k", [1, 10, 63, 64])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("grid", [False, True])
def test_early_exit_changes_nothing(n_rows, k, single, grid):
    rng = np.random.default_rng(n_rows + k)
    trees = fading(rng, 400, single, grid)
    features = rng.normal(size=(n_rows, 5)).astype(np.float32)
    features[::7] = features[0]  # equal documents
    scorer = Scorer(trees)
    rows, scores = full_top(trees, features, k)
    found = scorer.top(features, k)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.scores, scores)
    assert 0.0 <= found.saved < 1.0
    if n_rows == 1000 and k <= 10:
        assert found.saved > 0.3


@pytest.mark.parametrize("n_rows", [65, 129, 1000])
def test_early_exit_changes_nothing_with_sets(n_rows):
    rng = np.random.default_rng(n_rows)
    trees = fading(rng, 400, single=False, grid=False, categorical={0: 30, 2: 9}, n_sets=20)
    features = rng.normal(size=(n_rows, 5)).astype(np.float32)
    features[:, 0], features[:, 2] = codes(rng, n_rows, 30), codes(rng, n_rows, 9)
    rows, scores = full_top(trees, features, 10)
    found = Scorer(trees).top(features, 10)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.scores, scores)
    if n_rows == 1000:
        assert found.saved > 0.3


@pytest.mark.parametrize("single", [False, True])
def test_rounding_does_not_leave_out_the_winner(single):
    # One document is ahead by less than what rounding takes from it later.
    rng = np.random.default_rng(0)
    trees = make_ensemble(rng, [2] * 96, 1, [0.5], single=single, missing="left")
    value, huge = np.zeros(192), 2.0**30 if single else 2.0**60
    right, left = (trees.leaf_ptr[:-1] + ~side for side in (trees.right, trees.left))
    value[right[0]] = 1.0  # ahead by 1, which the next numbers swallow
    value[[left[40], right[40]]] = huge
    value[[left[41], right[41]]] = -huge
    object.__setattr__(trees, "value", value)
    features = np.zeros((200, 1), np.float32)
    features[150] = 1.0
    found = Scorer(trees).top(features, 1)
    rows, scores = full_top(trees, features, 1)
    assert found.rows.tolist() == rows.tolist() == [0]
    assert found.scores.tolist() == scores.tolist()


def test_who_is_behind_may_still_win():
    # The remaining trees make up for 1 with 1.5, all of what they have.
    trees = make_ensemble(np.random.default_rng(0), [2] * 64, 1, [0.5], missing="left")
    right, left = (trees.leaf_ptr[:-1] + ~side for side in (trees.right, trees.left))
    value = np.zeros(128)
    value[right[0]], value[left[32:]] = 1.0, 1.5 / 32
    object.__setattr__(trees, "value", value)
    features = np.zeros((200, 1), np.float32)
    features[150] = 1.0
    found = Scorer(trees).top(features, 1)
    assert found.rows.tolist() == [0]
    assert found.scores.tolist() == [1.5]


def test_one_scorer_for_several_threads():
    rng = np.random.default_rng(1)
    trees = make_ensemble(rng, [31] * 60, 8, rng.normal(size=99))
    scorer = Scorer(trees)
    queries = [
        rng.normal(size=(n, 8)).astype(kind)
        for n, kind in zip(rng.integers(1, 300, 40), [np.float32, np.float64] * 20, strict=True)
    ]
    expected = [score(trees, one, scorer="walk") for one in queries]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for found, wanted in zip(pool.map(scorer.predict, queries), expected, strict=True):
                np.testing.assert_array_equal(found, wanted)
            tops = pool.map(lambda one: scorer.top(one, 3), queries)
            for found, one in zip(tops, queries, strict=True):
                np.testing.assert_array_equal(found.rows, full_top(trees, one, 3)[0])


def test_scores_are_written_where_the_caller_wants_them():
    rng = np.random.default_rng(2)
    for single in (False, True):
        trees = make_ensemble(rng, [4] * 20, 3, NUMBERS, base=0.25, single=single)
        features, out = rng.normal(size=(90, 3)), np.empty(90)
        assert Scorer(trees).predict(features, out) is out
        np.testing.assert_array_equal(out, score(trees, features))
    assert Scorer(trees).predict(np.empty((0, 3))).shape == (0,)
    assert Scorer(trees).predict(features.tolist()).shape == (90,)


def test_mistakes_are_named():
    rng = np.random.default_rng(3)
    scorer = Scorer(make_ensemble(rng, [4] * 2, 3, NUMBERS))
    with pytest.raises(DataError, match="trained on 3 features; the data has 2"):
        scorer.predict(np.zeros((1, 2)))
    with pytest.raises(DataError, match=r"one row per document.*Got an array of shape \(3,\)"):
        scorer.predict(np.zeros(3))
    with pytest.raises(DataError, match=r"such as data.X. Got dict"):
        scorer.predict({})
    assert repr(scorer) == "Scorer(2 trees, 3 features)"
    with pytest.raises(ParameterError, match="'k' parameter of Scorer"):
        scorer.top(np.zeros((4, 3)), 0)
    with pytest.raises(ParameterError, match=r"float64 array of shape \(4,\)"):
        scorer.predict(np.zeros((4, 3)), np.empty(3))
    with pytest.raises(DataError, match="these trees give 2"):
        Scorer(make_ensemble(rng, [4] * 2, 3, NUMBERS, n_columns=2))
