"""Losses of single rows and of classes: gradients by finite differences, steps as printed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.objectives.classes import (
    MOST_CLASSES,
    OrdinalObjective,
    SoftmaxObjective,
    find_classes,
)
from rankgrove.objectives.pointwise import Balanced, Logistic, SquaredError
from tests.reference import boosting as naive

N = 12
PTR = np.array([0, 3, 4, 9, 12])
reals = st.floats(-6, 6)
rows_of = lambda values: st.lists(values, min_size=N, max_size=N).map(np.array)  # noqa: E731
weights = st.one_of(st.none(), rows_of(st.floats(0.125, 4)))
sigmas = st.floats(0.25, 4)
BOTH = np.array([1, -1, 1, 1, -1, -1, -1, 1, -1, -1, 1, -1])


def derivatives(objective, scores, **how):
    """Return gradient and hessian, NaN where nothing was written."""
    gradient, hessian = np.full((2, *scores.shape), np.nan)
    objective.gradients(scores, gradient, hessian, **how)
    return gradient, hessian


def check_by_differences(loss, objective, scores, weight, factor=1.0):
    """Compare with central differences of ``loss(row, score)``, one column."""
    gradient, hessian = derivatives(objective, scores)
    weight = np.ones(N) if weight is None else weight
    h = 1e-4
    for i, f in enumerate(scores):
        low, here, high = loss(i, f - h), loss(i, f), loss(i, f + h)
        assert gradient[i] == pytest.approx(-weight[i] * (high - low) / (2 * h), abs=1e-5, rel=1e-5)
        second = weight[i] * (high - 2 * here + low) / h**2
        assert hessian[i] == pytest.approx(factor * second, abs=1e-5, rel=1e-5)


@given(rows_of(reals), rows_of(reals), weights)
def test_squared_error(labels, scores, weight):
    labels[0] = 7.0
    objective = SquaredError(labels, PTR, weight)
    check_by_differences(lambda i, f: naive.squared(labels[i], f), objective, scores, weight)
    at_start, _ = derivatives(objective, np.full(N, objective.start))
    assert math.fsum(at_start) == pytest.approx(0, abs=1e-12)


@given(rows_of(st.floats(-3, 3)), sigmas, weights)
def test_logistic(scores, sigma, weight):
    objective = Logistic(BOTH, PTR, sigma, weight)
    check_by_differences(lambda i, f: naive.logistic(BOTH[i], f, sigma), objective, scores, weight)
    at_start, _ = derivatives(objective, np.full(N, objective.start))
    assert math.fsum(at_start) == pytest.approx(0, abs=1e-10)
    gradient, hessian = derivatives(objective, scores)
    step = naive.logistic_step(BOTH, scores, sigma, weight)
    assert gradient.sum() / hessian.sum() == pytest.approx(step, rel=1e-5)


@given(rows_of(st.floats(-3, 3)), sigmas)
def test_balanced(scores, sigma):
    objective = Balanced(BOTH, PTR, sigma)
    positive, negative = (BOTH > 0).sum(), (BOTH < 0).sum()
    share = N / 2 * np.where(BOTH > 0, 1 / positive, 1 / negative)
    assert share.sum() == pytest.approx(N)
    check_by_differences(lambda i, f: naive.logistic(BOTH[i], f, sigma), objective, scores, share)
    gradient, hessian = derivatives(objective, scores)
    for rows in (np.arange(N), np.arange(5), np.array([0, 7, 11])):
        step = naive.balanced_step(BOTH[rows], scores[rows], positive, negative, sigma)
        assert gradient[rows].sum() / hessian[rows].sum() == pytest.approx(
            step, rel=1e-5
        )  # |r| (2 - |r|) cancels
    at_start, _ = derivatives(objective, np.full(N, objective.start))
    assert math.fsum(at_start) == pytest.approx(0, abs=1e-12)


def test_the_step_of_equation_15_is_not_that_of_the_scaled_pseudoresponses():
    # The paper's remark: with z in place of y in the step of section 6 it would be another.
    scores = np.linspace(-1, 1, N)
    positive, negative = (BOTH > 0).sum(), (BOTH < 0).sum()
    z = [
        naive.pseudoresponse(y, f) / (positive if y > 0 else negative)
        for y, f in zip(BOTH, scores, strict=True)
    ]
    other = sum(z) / sum(abs(r) * (2 - abs(r)) for r in z)
    assert other != pytest.approx(naive.balanced_step(BOTH, scores, positive, negative), rel=0.1)


@given(rows_of(st.floats(0.01, 1)))
def test_balanced_begins_with_0_exactly(weight):
    assert Balanced(BOTH, PTR, 1.0, weight).start == 0.0


def test_balanced_weights_of_rows_count_as_so_many_rows():
    weight = np.array([2, 1, 1, 3, 1, 1, 1, 1, 2, 1, 1, 1])
    often = np.repeat(np.arange(N), weight)
    scores = np.linspace(-2, 2, N)
    gradient, hessian = derivatives(Balanced(BOTH, PTR, 1.0, weight.astype(float)), scores)
    one_a_row = Balanced(BOTH[often], np.array([0, often.size]))
    each, each_h = derivatives(one_a_row, scores[often])
    np.testing.assert_allclose(gradient, np.bincount(often, each), rtol=1e-12)
    np.testing.assert_allclose(hessian, np.bincount(often, each_h), rtol=1e-12)


CLASSES = np.array([-1.0, 0.0, 2.5, 4.0])
LABELS = CLASSES[[0, 1, 2, 3, 1, 1, 0, 2, 3, 3, 0, 1]]
columns_of = lambda n: st.lists(rows_of(reals), min_size=n, max_size=n).map(np.array)  # noqa: E731


@given(columns_of(4), weights)
def test_softmax(scores, weight):
    gradient, hessian = derivatives(SoftmaxObjective(LABELS, CLASSES, PTR, weight), scores)
    w = np.ones(N) if weight is None else weight
    np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-12)
    for i in range(N):
        p = naive.softmax(scores[:, i])
        for k in range(4):
            is_k = LABELS[i] == CLASSES[k]
            assert gradient[k, i] == pytest.approx(w[i] * (is_k - p[k]), rel=1e-9, abs=1e-12)
            r = is_k - p[k]
            assert hessian[k, i] == pytest.approx(4 / 3 * w[i] * abs(r) * (1 - abs(r)), rel=1e-9)
            h = 1e-4
            moved = [scores[:, i] + h * s * (np.arange(4) == k) for s in (-1, 0, 1)]
            code = int(np.searchsorted(CLASSES, LABELS[i]))
            low, here, high = (naive.cross_entropy(code, F) for F in moved)
            assert gradient[k, i] == pytest.approx(-w[i] * (high - low) / (2 * h), abs=1e-5)
            second = (high - 2 * here + low) / h**2
            assert hessian[k, i] == pytest.approx(4 / 3 * w[i] * second, abs=1e-5)


@given(columns_of(3), weights)
def test_ordinal(scores, weight):
    objective = OrdinalObjective(LABELS, CLASSES, PTR, weight)
    gradient, hessian = derivatives(objective, scores)
    w = np.ones(N) if weight is None else weight
    for k in range(3):
        above = 1 / (1 + np.exp(-scores[k]))
        np.testing.assert_allclose(gradient[k], w * ((CLASSES[k] < LABELS) - above), atol=1e-12)
        np.testing.assert_allclose(hessian[k], w * above * (1 - above), rtol=1e-9)


def test_expected_labels():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4, 30), scale=3)
    expected = [np.dot(naive.softmax(scores[:, i]), CLASSES) for i in range(30)]
    np.testing.assert_allclose(SoftmaxObjective.expected(scores, CLASSES), expected, rtol=1e-12)
    p = SoftmaxObjective.probabilities(scores)
    np.testing.assert_allclose(p @ CLASSES, expected, rtol=1e-12)
    # thresholds: sum over k of 1 - P(y <= k) for the labels 0, 1, ...; steps between others
    at_most = 1 / (1 + np.exp(scores[:3]))
    found = OrdinalObjective.expected(scores[:3], np.arange(4.0))
    np.testing.assert_allclose(found, (1 - at_most).sum(axis=0), rtol=1e-12)
    found = OrdinalObjective.expected(scores[:3], CLASSES)
    np.testing.assert_allclose(found, -1 + np.array([1, 2.5, 1.5]) @ (1 - at_most), rtol=1e-12)
    p = OrdinalObjective.probabilities(scores[:3])
    assert p.shape == (30, 4)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    falling = np.sort(scores[:3], axis=0)[::-1]  # where no repair is needed both say the same
    np.testing.assert_allclose(
        OrdinalObjective.probabilities(falling) @ CLASSES,
        OrdinalObjective.expected(falling, CLASSES),
        rtol=1e-12,
    )


def objectives():
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 60, 1500)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    labels, weight = rng.integers(0, 4, ptr[-1]).astype(float), rng.random(ptr[-1])
    classes = np.arange(4.0)
    signs = np.where(labels >= 2, 1, -1)
    return ptr, [
        (1, SquaredError(labels, ptr, weight)),
        (1, Logistic(signs, ptr, 2.0, weight)),
        (1, Balanced(signs, ptr)),
        (4, SoftmaxObjective(labels, classes, ptr, weight)),
        (3, OrdinalObjective(labels, classes, ptr, weight)),
        (1, OrdinalObjective(labels, classes[:2], ptr)),
    ]


def test_threads_and_some_queries():
    ptr, made = objectives()
    some = np.array([0, 3, 4, 700, 1499])
    chosen = np.concatenate([np.arange(ptr[q], ptr[q + 1]) for q in some])
    for n_columns, objective in made:
        assert objective.n_columns == n_columns
        shape = (ptr[-1],) if n_columns == 1 else (n_columns, ptr[-1])
        scores = np.random.default_rng(2).normal(size=shape)
        whole = derivatives(objective, scores, n_threads=1)
        for a, b in zip(whole, derivatives(objective, scores, n_threads=2), strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(whole, derivatives(objective, scores, queries=some), strict=True):
            np.testing.assert_array_equal(a[..., chosen], b[..., chosen])
            assert np.isnan(np.delete(b, chosen, axis=-1)).all()


def test_scores_of_any_size():
    huge = np.array([0, 1, -1, 40, -40, 400, -400, 800, -800, 1e6, -1e6, 1e300])
    for objective in (Logistic(BOTH, PTR, 3.0), Balanced(BOTH, PTR)):
        gradient, hessian = derivatives(objective, huge)
        assert np.isfinite([gradient, hessian]).all()
        assert (hessian >= 0).all()
    # no digit is lost where the model is sure: g is 2 exp(-2v) and the second derivative twice g
    gradient, hessian = derivatives(
        Logistic(np.ones(2) * [1, -1], np.array([0, 2])), np.full(2, 30.0)
    )
    np.testing.assert_allclose(gradient, [2 * math.exp(-60), -2.0], rtol=1e-14)
    np.testing.assert_allclose(hessian, 4 * math.exp(-60), rtol=1e-14)
    sure = np.zeros((3, 2))
    sure[0] = 60.0
    objective = SoftmaxObjective(np.array([0.0, 1.0]), np.arange(3.0), np.array([0, 2]))
    gradient, hessian = derivatives(objective, sure)
    np.testing.assert_allclose(gradient[0], [2 * math.exp(-60), -1.0], rtol=1e-14)
    np.testing.assert_allclose(hessian[0], 1.5 * 2 * math.exp(-60), rtol=1e-14)
    scores = np.zeros((4, N))
    scores[1] = huge
    for objective, s in (
        (SoftmaxObjective(LABELS, CLASSES, PTR), scores),
        (OrdinalObjective(LABELS, CLASSES, PTR), scores[1:]),
    ):
        gradient, hessian = derivatives(objective, s)
        assert np.isfinite([gradient, hessian]).all()
        assert (hessian >= 0).all()
        expected = objective.expected(s, CLASSES)
        assert ((expected >= -1) & (expected <= 4)).all()
        assert np.isfinite(objective.probabilities(s)).all()


def test_nothing_to_learn():
    for labels, weight in (
        (np.full(N, 2.0), None),
        (LABELS, (LABELS == 0).astype(float)),
        (LABELS, np.zeros(N)),
    ):
        with pytest.raises(rg.DataError, match=r"labels of all rows .* are equal"):
            SquaredError(labels, PTR, weight)
        with pytest.raises(rg.DataError, match=r"labels of all rows .* are equal"):
            find_classes(labels, weight, "McRank")
        for loss in (Logistic, Balanced):
            with pytest.raises(rg.DataError, match=r"all rows .* are of one class, not relevant"):
                loss(np.where(labels > 2.5, 1, -1), PTR, 1.0, weight)
    with pytest.raises(rg.DataError, match="of one class, relevant"):
        Logistic(np.ones(N), PTR)


def test_classes():
    np.testing.assert_array_equal(find_classes(LABELS, None, "McRank"), CLASSES)
    weight = (LABELS != 2.5).astype(float)
    np.testing.assert_array_equal(find_classes(LABELS, weight, "McRank"), [-1, 0, 4])
    many = np.arange(MOST_CLASSES + 1.0)
    assert find_classes(many[1:], None, "McRank").size == MOST_CLASSES
    with pytest.raises(rg.DataError, match=r"33 different values.*at most 32.*Round the labels"):
        find_classes(many, None, "McRank")
    # a label of no weight need not be a class: it pulls nowhere
    objective = SoftmaxObjective(LABELS, np.array([-1.0, 0, 4]), PTR, weight)
    gradient, _ = derivatives(objective, np.zeros((3, N)))
    assert not gradient[:, LABELS == 2.5].any()
