"""The pairwise hinge loss: counted without looking at pairs, solved as pairs written down are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

import rankgrove as rg
from rankgrove.svm.design import MatrixDesign
from rankgrove.svm.pair_oracle import PairOracle, label_levels
from tests.reference import linear as naive


def standardised(data):
    """Return features on the scale of the queries that have unequal labels."""
    X, labels, ptr = (
        data.grouped(np.asarray(data.X, np.float64)),
        data.grouped(data.y),
        data.query_ptr,
    )
    used = np.repeat([np.ptp(labels[a:b]) > 0 for a, b in pairwise(ptr)], np.diff(ptr))
    return (X - X[used].mean(axis=0)) / X[used].std(axis=0)


def test_levels_of_labels():
    ptr = np.array([0, 4, 5, 8])
    levels = label_levels(np.array([0.5, 2.0, 0.5, -1.0, 7.0, 1.0, 1.0, 0.0]), ptr)
    assert levels.tolist() == [2, 3, 2, 1, 1, 2, 2, 1]


@given(st.data())
def test_counts_are_those_of_all_pairs(data):
    sizes = data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=4))
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    # quarters: ties, and margins of exactly 1
    number = st.integers(-8, 8).map(lambda k: k / 4)
    many = {"min_size": int(ptr[-1]), "max_size": int(ptr[-1])}
    labels = np.array(data.draw(st.lists(st.integers(0, 4), **many)), np.float64)
    labels[ptr[:-1]], labels[ptr[:-1] + 1] = 5.0, 0.0  # every query has a pair
    scores = np.array(data.draw(st.lists(number, **many)))
    pairs = data.draw(st.sampled_from(["all", "query"]))
    oracle = PairOracle(MatrixDesign(np.zeros((ptr[-1], 1), np.float32)), ptr, labels, pairs=pairs)
    level = label_levels(labels, ptr)
    loss, coefficient = oracle.rankings(scores, ptr, level)
    found = naive.pairs_of(labels, ptr)
    for q, own in enumerate(found):
        short = [(i, j) for i, j in own if scores[j] > scores[i] - 1.0]
        assert loss[q] == pytest.approx(len(short) / len(own))
        expected = np.zeros(scores.size)
        for i, j in short:
            expected[i] += 1 / len(own)
            expected[j] -= 1 / len(own)
        rows = slice(ptr[q], ptr[q + 1])
        np.testing.assert_allclose(coefficient[rows], expected[rows], atol=1e-12)
        # the slack is the mean hinge loss
        hinge = np.mean([max(0.0, 1.0 - scores[i] + scores[j]) for i, j in own])
        assert loss[q] - coefficient[rows] @ scores[rows] == pytest.approx(hinge)
    numbers = np.array([len(own) for own in found])
    shares = numbers / numbers.sum() if pairs == "all" else np.full(len(sizes), 1 / len(sizes))
    np.testing.assert_allclose(oracle.shares, shares)


def test_a_margin_that_rounding_blurs_is_counted_on_both_sides_or_on_none():
    rng = np.random.default_rng(0)
    for _ in range(200):
        low = rng.normal(size=8)
        scores = np.concatenate([low, low + 1.0])
        labels = np.repeat([0.0, 1.0], 8)
        ptr = np.array([0, 16])
        oracle = PairOracle(MatrixDesign(np.zeros((16, 1), np.float32)), ptr, labels)
        _, coefficient = oracle.rankings(scores, ptr, label_levels(labels, ptr))
        assert coefficient.sum() == pytest.approx(0.0, abs=1e-12)
        assert (coefficient[:8] <= 0).all()
        assert (coefficient[8:] >= 0).all()


@pytest.mark.parametrize("pairs", ["all", "query"])
@pytest.mark.parametrize("form", ["1-slack", "n-slack"])
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_the_optimum_is_that_of_pairs_written_down(pairs, form, C):
    data = rg.make_web(8, n_docs=7, n_features=4, seed=3)
    X, labels = standardised(data), data.grouped(data.y)
    by_query = [own for own in naive.pairs_of(labels, data.query_ptr) if own]
    differences = np.array([X[i] - X[j] for own in by_query for i, j in own])
    share = np.concatenate([
        np.full(len(own), 1.0 if pairs == "all" else 1.0 / len(own)) for own in by_query
    ])  # fmt: skip
    share /= share.sum()

    def objective(w):
        return 0.5 * w @ w + C * share @ np.maximum(0.0, 1.0 - differences @ w)

    model = rg.RankSVM(C=C, pairs=pairs, form=form, epsilon=1e-6).fit(data)
    found = model.solution_
    assert found["objective"] == pytest.approx(objective(model.coef_), rel=1e-9)
    # LIBLINEAR on both signs of every difference; every pair so counts twice
    signs = np.repeat([1, -1], share.size)
    peer = LinearSVC(C=C / 2, loss="hinge", fit_intercept=False, max_iter=10**6, tol=1e-9)
    peer.fit(signs[:, None] * np.vstack([differences] * 2), signs, np.tile(share, 2))
    best = objective(peer.coef_[0])
    assert found["dual"] <= best * (1 + 1e-6)
    assert found["objective"] == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(model.coef_, peer.coef_[0], atol=5e-3)


def test_query_weights_are_repeated_queries():
    data = rg.make_artificial(6, n_docs=8, n_features=3, seed=1)
    weight = np.array([1.0, 2.0, 1.0, 3.0, 0.0, 1.0])
    options = {"scaling": None, "C": 10.0, "epsilon": 1e-7}
    rows = np.concatenate([
        np.flatnonzero(data.qid == q) for q, n in zip(data.query_ids, weight, strict=True)
        for _ in range(int(n))
    ])  # fmt: skip
    names = np.repeat(np.arange(int(weight.sum())), 8)
    repeated = rg.QueryDataset(data.X[rows], data.y[rows], names)
    by_query = dict(zip(data.query_ids.tolist(), weight, strict=True))
    weighted = rg.QueryDataset(data.X, data.y, data.qid, query_weight=by_query)
    for pairs in ("all", "query"):
        a = rg.RankSVM(pairs=pairs, **options).fit(repeated)
        b = rg.RankSVM(pairs=pairs, **options).fit(weighted)
        assert a.solution_["objective"] == pytest.approx(b.solution_["objective"], rel=1e-6)
