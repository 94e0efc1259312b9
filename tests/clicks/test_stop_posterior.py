"""Satisfaction given clicks: exposures, posterior means and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.clicks.chains import Chain, ChainEvidence, ChainExposures
from rankgrove.clicks.stop_posterior import beta_prior, grid, stop_posterior
from tests.reference import clicks as reference


def chain_log(n_sessions, seed, longest=5):
    rng = np.random.default_rng(seed)
    rows = [
        (s, s % 3, document, position, rng.random() < 0.5)
        for s in range(n_sessions)
        for position, document in enumerate(rng.permutation(6)[: 1 + s % longest], 1)
    ]
    return rg.ClickLog(*map(list, zip(*rows, strict=True)))


@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("going", [1.0, 0.7])
def test_exposures_are_those_of_enumerated_clicks(by_position, going):
    log = chain_log(40, 2)
    rng = np.random.default_rng(5)
    n = log.n_positions if by_position else log.n_pairs
    chain = Chain(rng.uniform(0.1, 0.9, log.n_pairs), rng.uniform(0.1, 0.9, n), np.array([going]))
    exposures = ChainEvidence(log, by_position, 2).exposures(np.ones(log.n_sessions), chain)
    key = (lambda pair, position: position - 1) if by_position else (lambda pair, position: pair)
    a_sums, s_sums = reference.chain_exposures(
        reference.sessions_of(log), chain.attraction, chain.stop, going, key
    )
    np.testing.assert_allclose(exposures.pairs.T, [a_sums[p] for p in range(log.n_pairs)])
    np.testing.assert_allclose(
        exposures.stops.T, [s_sums[k] for k in range(n)], rtol=1e-9, atol=1e-12
    )


def exposures_of(cases):
    """Return the exposures of pairs with so many other clicks, and these last clicks."""
    stops = np.zeros((3, len(cases)))
    stops[0] = [n_others for n_others, _ in cases]
    last = [pair for pair, (_, missing) in enumerate(cases) for _ in missing]
    again = [1 - q for _, missing in cases for q in missing]
    return ChainExposures(np.zeros((3, 0)), stops, np.array(last), np.array(again))


def test_means_are_those_of_a_fine_sum():
    cases = [(0, [0.5]), (1, []), (3, [0.9, 0.2]), (40, [0.3] * 25), (0, []), (200, [0.6] * 50)]
    exposures = exposures_of(cases)
    found = stop_posterior(
        exposures, np.ones(exposures.last.size), beta_prior(0.3, 5.0), np.full(6, 0.5), None
    )
    without = []
    for pair, (n_others, missing) in enumerate(cases):
        mean, others = reference.posterior_of_stop(
            n_others, missing[:3], lambda s: s**0.5 * (1 - s) ** 2.5
        )
        if len(missing) <= 3:
            assert found.stop[pair] == pytest.approx(mean, abs=2e-4)
            without += others
    np.testing.assert_allclose(found.without[: len(without)], without, atol=2e-4)
    # of many clicks: where the likelihood is highest
    s = np.linspace(0.0005, 0.9995, 1000)
    for pair in (3, 5):
        n_others, missing = cases[pair]
        p = (n_others + 2.5) * np.log(1 - s) + 0.5 * np.log(s)
        p += len(missing) * np.log(s + (1 - s) * missing[0])
        p = np.exp(p - p.max())
        assert found.stop[pair] == pytest.approx((p * s).sum() / p.sum(), abs=2e-4)


def test_many_clicks_agree_with_the_grid(monkeypatch):
    import rankgrove.clicks.stop_posterior as module

    exposures = exposures_of([(40, list(np.linspace(0.2, 0.8, 100)))])
    ones = np.ones(100)
    by_grid = stop_posterior(exposures, ones, beta_prior(0.5, 1.0), np.array([0.5]), None)
    monkeypatch.setattr(module, "FEW", 10)
    others = stop_posterior(exposures, ones, beta_prior(0.5, 1.0), np.array([0.5]), None)
    assert others.stop[0] == pytest.approx(by_grid.stop[0], abs=0.01)
    np.testing.assert_allclose(others.without, by_grid.without, atol=0.01)


def test_draws_have_the_mean_and_the_spread_of_the_posterior():
    exposures = exposures_of([(2, [0.5, 0.7])] * 4000)
    ones, prior = np.ones(8000), beta_prior(0.3, 2.0)
    mean = stop_posterior(exposures, ones, prior, np.full(4000, 0.5), None).stop
    drawn = stop_posterior(exposures, ones, prior, np.full(4000, 0.5), 2, seed=3).stop
    assert np.unique(mean).size == 1
    assert drawn.mean() == pytest.approx(mean[0], abs=4 * drawn.std() / 63)
    again = stop_posterior(exposures, ones, prior, np.full(4000, 0.5), 1, seed=3).stop
    np.testing.assert_array_equal(drawn, again)


def test_the_prior_is_learned_whatever_its_form():
    """Satisfaction is .1 or .9 as often: no beta distribution, and seen through few clicks."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(6000) < 0.5, 0.1, 0.9)
    again = rng.uniform(0.4, 1.0, (6000, 4))
    other = rng.random((6000, 4)) < (1 - truth[:, None]) * again
    cases = [(int(o.sum()), list(1 - a[~o])) for o, a in zip(other, again, strict=True)]
    exposures, prior = exposures_of(cases), beta_prior(0.5, 2.0)
    ones, stop = np.ones(exposures.last.size), np.full(6000, 0.5)
    for _ in range(30):
        found = stop_posterior(exposures, ones, prior, stop, None, learns_prior=True)
        prior = found.prior
    middles = grid()[0]
    assert prior @ middles == pytest.approx(0.5, abs=0.02)
    spread = np.sqrt(prior @ (middles - 0.5) ** 2)
    assert spread == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize(
    ("model", "ranker", "options"),
    [
        ("dbn", rg.DBN(), {"continuation": 0.8}),
        ("simplified-dbn", rg.SimplifiedDBN(method="em"), {}),
    ],
    ids=["dbn", "simplified"],
)
def test_satisfaction_is_recovered_with_intervals(model, ranker, options):
    data = rg.make_web(40, seed=3)
    log, truth = rg.simulate_clicks(
        *(data, data.column(1)),
        **{"model": model, "sessions": 10_000, "noise": 1.0, "return_truth": True, **options},
    )
    ranker.fit(log)
    clicks = np.bincount(log.pair[log.click], minlength=log.n_pairs)
    error = ranker.satisfaction_ - truth.satisfaction
    assert abs(np.average(error, weights=clicks)) < 0.05
    assert np.sqrt(np.average(error**2, weights=clicks)) < 0.17
    intervals = ranker.intervals(log, n=20)
    low, high = intervals.low["satisfaction"], intervals.high["satisfaction"]
    held = (low <= truth.satisfaction) & (truth.satisfaction <= high)
    assert held[clicks > 0].mean() > 0.85
    if model == "dbn":
        assert ranker.continuation_ == pytest.approx(0.8, abs=0.015)


def test_intervals_hold_satisfaction_of_single_clicks():
    """Closed forms: the interval of one click is that of the prior and the click, not a point."""
    log = rg.ClickLog([1, 1, 2, 2], ["a"] * 4, ["x", "y"] * 2, [1, 2] * 2, [1, 1, 0, 1])
    model = rg.SimplifiedDBN(prior_strength=2.0).fit(log)
    intervals = model.intervals(log, n=200)
    width = intervals.high["satisfaction"] - intervals.low["satisfaction"]
    assert (width > 0.5).all()


def test_intervals_of_positions_that_say_nothing_are_those_of_the_prior():
    """After a click at the last position nobody sees whether users go on."""
    data = rg.make_web(20, seed=1)
    log = rg.simulate_clicks(
        data, data.column(1), model="dependent-click", sessions=3000, noise=1.0, n_shown=4
    )
    intervals = rg.DependentClick().fit(log).intervals(log, n=100)
    assert intervals.low["continuation"][3] < 0.1
    assert intervals.high["continuation"][3] > 0.9
