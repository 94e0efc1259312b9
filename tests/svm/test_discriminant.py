"""The discriminant of rankings, and why the greedy ranking may be greedy (Lemma 1)."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankgrove.svm.oracles import pair_coefficients
from tests.reference import svm as naive


def cases():
    rng = np.random.default_rng(0)
    for n, p in [(3, 1), (4, 2), (5, 2), (5, 4)]:
        for _ in range(5):
            yield rng.normal(size=(n, 3)), rng.permutation(np.arange(n) < p), rng.normal(size=3)


def test_the_sorted_ranking_is_the_largest():
    # equation 1
    for X, relevant, w in cases():
        own = np.dot(w, naive.psi(X, relevant, np.argsort(-(X @ w)).tolist()))
        every = [
            np.dot(w, naive.psi(X, relevant, list(order)))
            for order in itertools.permutations(range(len(X)))
        ]
        assert own >= max(every) - 1e-12


def test_psi_is_a_sum_of_rows():
    # equation 2: Psi(true) - Psi(y) is X' c, so w . Psi is a sum of scores
    for X, relevant, w in cases():
        true = np.array(naive.psi(X, relevant, naive.perfect(relevant)))
        for order in itertools.permutations(range(len(X))):
            c = pair_coefficients(np.array(order), relevant)
            difference = true - naive.psi(X, relevant, list(order))
            np.testing.assert_allclose(X.T @ c, difference, atol=1e-12)
            np.testing.assert_allclose((X @ w) @ c, w @ difference, atol=1e-12)


scores = st.lists(st.integers(-50, 50), min_size=2, max_size=8)


@given(scores, scores)
def test_gains_never_rise(good, bad):
    # equations 11 and 12, and Lemma 1: of the next irrelevant document every part is no larger
    good, bad = sorted(good, reverse=True), sorted(bad, reverse=True)
    p, n = len(good), len(bad)

    def of_loss(j, k):
        return (j / (j + k) - (j - 1) / (j + k - 1)) / p

    def of_scores(j, k):
        return -2 * (good[k - 1] - bad[j - 1]) / (p * n)

    for j, k in itertools.product(range(1, n), range(1, p + 1)):
        assert of_loss(j + 1, k) <= of_loss(j, k)
        assert of_scores(j + 1, k) <= of_scores(j, k)
    for j, (first, last) in itertools.product(
        range(1, n), itertools.combinations(range(1, p + 2), 2)
    ):
        sums = [
            sum(of_loss(i, k) + of_scores(i, k) for k in range(first, last)) for i in (j, j + 1)
        ]
        assert sums[1] <= sums[0] + 1e-12
