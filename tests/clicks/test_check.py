"""The check of a log: examination with its errors, and the verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.clicks.examination import estimate, pair_counts


@pytest.fixture(scope="module")
def data():
    return rg.make_web(60, n_docs=20, n_features=8, seed=1)


def scores(data, strength):
    return strength * data.y + np.random.default_rng(0).normal(size=data.n_rows)


def test_one_ranking_cannot_be_told_apart(data):
    log = rg.simulate_clicks(data, scores(data, 1.0), sessions=3000, seed=1)
    found = rg.check_clicks(log)
    assert found.safe == ("naive",)
    assert found.overlap == 0
    assert found.stability == 1
    assert "cannot be told apart" in found.verdict
    assert np.isnan(found.bias)


def test_one_document_per_session():
    """Nothing is linked, and nothing warns."""
    log = rg.ClickLog(range(90), ["a", "b", "c"] * 30, ["x"] * 90, [1] * 90, [0, 1] * 45)
    found = rg.check_clicks(log)
    assert found.safe == ("naive",)
    assert np.isnan(found.strength)


def test_examination_and_its_error(data):
    """The errors are those of the truth: their ratio is near 1 over seeds."""
    z = []
    for seed in range(12):
        log = rg.simulate_clicks(data, scores(data, 1.0), sessions=2000, noise=0.7, seed=seed)
        found = rg.check_clicks(log)
        assert found.reference == 1
        error = np.log(found.examination) - np.log(1 / np.arange(1.0, 11))
        z.append(error[1:] / found.standard_error[1:])
    z = np.array(z)
    assert 0.7 < np.sqrt(np.nanmean(z**2)) < 1.3
    assert abs(np.nanmean(z)) < 0.5


def test_estimate_is_the_maximum_of_the_conditional_likelihood(data):
    """Against the multinomial likelihood, written down plainly, and its second derivatives."""
    log = rg.simulate_clicks(data, scores(data, 0.2), sessions=3000, noise=1.0, n_shown=4, seed=1)
    counts = pair_counts(log)
    found = estimate(counts)

    def likelihood(log_theta):
        total = 0.0
        for pair in np.unique(counts.pair):
            rows = np.flatnonzero(counts.pair == pair)
            mass = counts.shown[rows] * np.exp(log_theta[counts.cell[rows]])
            total += (counts.clicked[rows] * np.log(mass / mass.sum())).sum()
        return total

    at, step = found.log_examination, 1e-3
    best = likelihood(at)
    for i in range(1, 4):
        move = np.zeros(4)
        move[i] = step
        up, down = likelihood(at + move), likelihood(at - move)
        assert abs(up - down) / (2 * step) < 1e-2
        assert -(up + down - 2 * best) / step**2 == pytest.approx(found.information[i, i], rel=1e-3)


def test_islands_of_positions():
    """Positions 1 and 2 are joined, and 3 and 4, but not with each other."""
    rng = np.random.default_rng(1)
    session = np.repeat(np.arange(2000), 4)
    swap = rng.random((2000, 2)) < 0.5
    documents = np.where(swap[:, [0, 0, 1, 1]], [1, 0, 3, 2], [0, 1, 2, 3]).ravel()
    place = np.tile([1, 2, 3, 4], 2000)
    click = rng.random(8000) < np.tile([0.5, 0.3, 0.2, 0.1], 2000)
    log = rg.ClickLog(session, np.zeros(8000, int), documents, place, click)
    found = rg.check_clicks(log)
    assert found.linked == 0.5
    assert found.safe == ("naive",)
    assert np.isnan(found.examination[2:]).all()
    assert "only 50% of the impressions" in found.verdict


def test_verdicts(data):
    def safe(strength, sessions=20_000, **options):
        ranked = scores(data, strength)
        return rg.check_clicks(rg.simulate_clicks(data, ranked, sessions=sessions, **options))

    weak = safe(0.0, noise=1.0)
    assert weak.safe == ("judgements", "ips", "additive", "ratios", "affine")
    assert "arXiv 2404.03707" in weak.verdict
    assert abs(weak.strength) < 0.2
    assert weak.after_click == pytest.approx(1.0, abs=0.05)
    strong = safe(20.0, noise=1.0)
    assert strong.strength > 0.7
    assert strong.safe == ("judgements",)
    assert "logging ranker was strong" in strong.verdict
    cascade = safe(0.0, noise=1.0, model="cascade")
    assert cascade.safe == ("judgements",)
    assert cascade.after_click == 0.0
    assert "Below a click" in cascade.verdict
    assert safe(0.0, noise=1.0, eta=0.0).safe[0] == "naive"
    assert safe(0.0, sessions=150, noise=1.0).safe == ("naive",)


@pytest.mark.parametrize(
    ("relevance", "sessions"),
    [((0.1, 0.16, 0.28, 0.52, 1.0), 6000), ((0.7, 0.75, 0.8, 0.9, 0.95), 6000), (None, 1500)],
)
def test_strength_is_that_of_the_true_attractiveness(data, relevance, sessions):
    """However noisy click rates are, and however high."""
    log, truth = rg.simulate_clicks(
        data, scores(data, 0.5), noise=1.0, sessions=sessions, relevance=relevance,
        examination=0.8, eta=1.0, return_truth=True,
    )  # fmt: skip
    shown = np.bincount(log.pair, minlength=log.n_pairs)
    there = shown > 0
    height = -np.bincount(log.pair, log.position, minlength=log.n_pairs)[there] / shown[there]
    query, weight = log.pair_query[there], shown[there]

    def within(values):
        means = np.bincount(query, weight * values) / np.bincount(query, weight)
        return values - means[query]

    a, b = within(truth.attractiveness[there]), within(height)
    true = (weight * a * b).sum() / np.sqrt((weight * a**2).sum() * (weight * b**2).sum())
    assert 0.1 < true < 0.5
    assert rg.check_clicks(log).strength == pytest.approx(true, abs=0.1)


def test_text_and_json(data):
    log = rg.simulate_clicks(data, scores(data, 0.2), sessions=500, seed=1)
    found = rg.check_clicks(log)
    assert "Safe: naive." in str(found)
    assert "Safe: naive." in found._repr_html_()
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["bias"] is None


def test_refused():
    with pytest.raises(rg.DataError, match="at least two sessions"):
        rg.check_clicks(rg.ClickLog([1], [1], [1], [1], [1]))
    with pytest.raises(rg.DataError, match="needs clicks"):
        rg.check_clicks(rg.ClickLog([1, 2], [1, 1], [1, 1], [1, 1], [0, 0]))
