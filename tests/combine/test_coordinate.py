"""One weight at a time: the exact search is the best of all values of it."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.combine.coordinate import Coordinates, spread
from tests.reference import linear as naive


def small(seed, n_features=3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, 4)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(ptr[-1], n_features))
    labels = rng.integers(0, 3, ptr[-1]).astype(np.float64)
    labels[ptr[:-1]], labels[ptr[:-1] + 1] = 2.0, 0.0
    return X, labels, ptr


def coordinates(measure, X, labels, ptr):
    prepared = rg.measure(measure).prepare(labels, ptr)
    spreads = np.array([spread(column, ptr) for column in X.T])
    return Coordinates(prepared, lambda w: X @ w, lambda j: X[:, j].copy(), spreads)


@pytest.mark.parametrize("measure", ["ndcg@3", "map", "err", "mrr", "pairs"])
def test_a_move_is_the_best_of_the_whole_line(measure):
    rose = 0
    for seed in range(4):
        X, labels, ptr = small(seed)
        line = coordinates(measure, X, labels, ptr)
        weights = np.random.default_rng(seed).uniform(-1, 1, 3)
        value = line.value(weights)
        assert value == pytest.approx(naive.mean_value(measure, labels, X @ weights, ptr))
        for j in range(3):
            others = np.where(np.arange(3) == j, 0.0, weights)
            best = naive.best_on_line(measure, labels, ptr, X @ others, X[:, j])
            moved, reached = line.move(weights, value, j, "exact")
            assert reached == pytest.approx(max(best, value), abs=1e-12)
            assert reached == line.value(moved)
            rose += reached > value
            weights, value = moved, reached
            steps, after_steps = line.move(weights, value, j, "steps")
            assert after_steps == value  # nothing on the line is better
            assert steps is weights
    assert rose > 2


def test_steps_never_fall_and_are_those_of_the_definition():
    for seed in range(8):
        X, labels, ptr = small(seed)
        line = coordinates("ndcg", X, labels, ptr)
        weights = np.array([0.5, -0.3, 0.2])
        value = line.value(weights)
        moved, reached = line.move(weights, value, 1, "steps")
        tried = [-0.3, 0.0]  # unchanged, and none
        step = total = 0.001
        for _ in range(25):
            tried += [-0.3 + total, -0.3 - total]
            step *= 2.0
            total += step
        best = max(line.value(np.array([0.5, w, 0.2])) for w in tried)
        assert reached == pytest.approx(best, abs=1e-12)
        assert np.abs(moved).sum() == pytest.approx(1.0)


def test_a_column_without_an_order_is_left_alone_and_one_alone_takes_its_sign():
    X, labels, ptr = small(0)
    X[:, 1] = np.repeat(np.arange(4), np.diff(ptr))  # the same for all documents of a query
    X[:, 0] = -labels
    line = coordinates("ndcg", X, labels, ptr)
    weights = np.array([0.0, 1.0, 0.0])
    value = line.value(weights)
    assert line.move(weights, value, 1, "exact")[0] is weights
    moved, reached = line.move(weights, value, 0, "exact")
    assert moved.tolist() == [-1.0, 0.0, 0.0]
    assert reached == 1.0
