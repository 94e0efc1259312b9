"""Examination from clicks of pairs with few impressions each, whatever their attractiveness."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.clicks.examination import (
    NaivePrior,
    PairCells,
    conditional_examination,
    estimate,
    naive_examination,
)

TRUTH = np.array([1.0, 0.7, 0.5, 0.35])


def drawn(rng, n_pairs, per_pair, low, high, truth=TRUTH):
    """Return counts of pairs: the more attractive, the higher they were shown."""
    k = truth.size
    alpha = rng.uniform(low, high, n_pairs)
    height = (alpha - low) / (high - low)
    shown = np.zeros((n_pairs, k), int)
    for _ in range(per_pair):
        score = -np.abs(height[:, None] * (k - 1) - np.arange(k)[::-1])
        shown[np.arange(n_pairs), (score + rng.gumbel(size=(n_pairs, k))).argmax(1)] += 1
    return counts_of(shown, rng.binomial(shown, truth * alpha[:, None]))


def counts_of(shown, clicked):
    pair, cell = np.nonzero(shown)
    starts = np.searchsorted(pair, np.arange(len(shown) + 1))
    return PairCells(
        starts, cell, shown[pair, cell] * 1.0, clicked[pair, cell] * 1.0, shown.shape[1]
    )


def as_log(counts):
    """Return a log of one impression per session."""
    times = counts.shown.astype(int)
    pair, cell = np.repeat(counts.pair, times), np.repeat(counts.cell, times)
    within = np.arange(pair.size) - np.repeat(np.cumsum(times) - times, times)
    click = within < np.repeat(counts.clicked, times)
    return rg.ClickLog(np.arange(pair.size), np.zeros(pair.size, int), pair, cell + 1, click)


def test_two_positions_shown_once_each_give_the_ratio_of_clicks():
    """The conditional estimate has a closed form; that of joint likelihood is another one.

    Of pairs shown once at both positions, those with a click at the second one alone, or at both,
    tend to raise joint examination, the others to lower it: its limit is theta / (1 + theta -
    a theta) for the attractiveness a of all, if that is below 1/2.
    """
    rng = np.random.default_rng(3)
    n, a, theta = 200_000, 0.3, 0.5
    clicks = (rng.random((n, 2)) < a * np.array([1.0, theta])).astype(int)
    counts = counts_of(np.ones((n, 2), int), clicks)
    found, _ = conditional_examination(counts, np.array([True, False]), start=np.array([1, 0.9]))
    both = clicks.sum(axis=0)
    assert found[1] == pytest.approx(both[1] / both[0], rel=1e-6)
    assert found[1] == pytest.approx(theta, abs=0.01)
    log = as_log(counts_of(np.ones((4000, 2), int), clicks[:4000]))
    joint = rg.PositionBased(method="em", examination_strength=0).fit(log)
    assert joint.examination_[1] == pytest.approx(theta / (1 + theta - a * theta), abs=0.03)


@pytest.mark.parametrize(("low", "high"), [(0.02, 0.2), (0.5, 0.98)])
@pytest.mark.parametrize("per_pair", [2, 5])
def test_right_however_few_impressions_pairs_have(low, high, per_pair):
    """Clicks are Bernoulli's, with probabilities up to 0.98."""
    n = 400_000 // per_pair if high < 0.5 else 80_000 // per_pair
    counts = drawn(np.random.default_rng(1), n, per_pair, low, high)
    found = estimate(counts)
    error = found.log_examination[1:] - np.log(TRUTH[1:])
    assert (np.abs(error) < 4 * found.standard_error[1:]).all()
    assert (found.standard_error[1:] < 0.06).all()


def test_standard_errors_are_those_of_bernoulli_clicks():
    z, of_poisson = [], []
    for seed in range(60):
        counts = drawn(np.random.default_rng(seed), 400, 4, 0.6, 0.98)
        found = estimate(counts)
        error = found.log_examination - np.log(TRUTH)
        z.append(error[1:] / found.standard_error[1:])
        poisson = np.sqrt(np.diag(np.linalg.inv(found.information[1:, 1:])))
        of_poisson.append(error[1:] / poisson)
    assert np.sqrt(np.mean(np.square(z))) == pytest.approx(1, abs=0.15)
    assert np.sqrt(np.mean(np.square(of_poisson))) < 0.8


def test_long_chains_of_positions():
    """Only neighbours were swapped: what is known of position 60 goes through all the others."""
    n = 60
    shown, clicked = np.zeros((n - 1, n), int), np.zeros((n - 1, n), int)
    for k in range(n - 1):
        shown[k, k : k + 2] = 10_000
        clicked[k, k : k + 2] = 1000, 950
    found = estimate(counts_of(shown, clicked))
    np.testing.assert_allclose(found.log_examination, np.log(0.95) * np.arange(n), atol=1e-4)


def test_cells_that_nothing_is_known_of_have_the_naive_examination():
    shown = np.array([[50, 50, 0, 0], [0, 0, 100, 0], [60, 0, 0, 0]])
    clicked = np.array([[20, 10, 0, 0], [0, 0, 15, 0], [30, 0, 0, 0]])
    counts = counts_of(shown, clicked)
    naive = naive_examination(counts, np.zeros(4, int))
    fixed = np.arange(4) == 0
    found, _ = conditional_examination(counts, fixed, start=naive, prior=NaivePrior(1.0, naive))
    np.testing.assert_allclose(found[2:], naive[2:], rtol=1e-6)
    assert found[1] == pytest.approx(0.5, abs=0.02)
    model = rg.PositionBased().fit(as_log(counts))
    np.testing.assert_allclose(model.examination_, found[:3], rtol=1e-5)


def test_threads_and_numbers_of_pairs_change_no_bit():
    counts = drawn(np.random.default_rng(5), 300, 4, 0.1, 0.9)
    turned = np.random.default_rng(6).permutation(300)
    dense = np.zeros((2, 300, 4), int)
    for table, values in zip(dense, (counts.shown, counts.clicked), strict=True):
        table[turned[counts.pair], counts.cell] = values
    other = counts_of(*dense)
    fixed, start = np.arange(4) == 0, np.ones(4)
    found = [
        conditional_examination(c, fixed, start=start, n_threads=n)[0]
        for c, n in [(counts, 1), (counts, 2), (other, 3)]
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("seed", range(3))
def test_intervals_hold_their_estimate(seed):
    """The log on which those of joint learning did not hold it."""
    data = rg.make_web(30)
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=5000, seed=seed)
    model = rg.PositionBased().fit(log)
    edges = model.intervals(log, n=100, seed=seed)
    low, high = edges.low["examination"][1:], edges.high["examination"][1:]
    assert ((low < model.examination_[1:]) & (model.examination_[1:] < high)).all()
    truth = 1 / np.arange(2, 11)
    assert ((low < truth) & (truth < high)).mean() > 0.7
    assert np.sqrt(np.mean(np.log(model.examination_[1:] / truth) ** 2)) < 0.2


def test_user_browsing_is_right_on_sparse_logs():
    data = rg.make_web(400, seed=2)
    log, truth = rg.simulate_clicks(
        data, data.column(1), model="user-browsing", noise=1.0, sessions=20_000, seed=1, n_shown=5,
        return_truth=True,
    )  # fmt: skip
    errors = {}
    cells = ([1, 2, 3, 2, 3, 4], [0, 0, 0, 1, 1, 1])
    for method in ("conditional", "em"):
        model = rg.UserBrowsing(method=method).fit(log)
        errors[method] = np.log(model.examination_[cells] / truth.examination[cells])
    assert abs(errors["conditional"].mean()) < 0.08
    assert np.abs(errors["conditional"]).max() < 0.25
    assert np.abs(errors["conditional"]).mean() < np.abs(errors["em"]).mean()
