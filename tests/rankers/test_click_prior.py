"""Priors and judgements from clicks and features."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg


@pytest.fixture(scope="module")
def data():
    return rg.make_web(60, n_docs=12, n_features=12, seed=1)


@pytest.fixture(scope="module")
def log(data):
    return rg.simulate_clicks(data, data.column(1), sessions=6000, noise=1.0, seed=1)


@pytest.fixture(scope="module")
def truth(data):
    return 0.1 + 0.9 * (2**data.y - 1) / 15


def test_prior_predicts_attractiveness(data, log, truth):
    prior = rg.click_prior(log, data)
    assert prior.shape == (log.n_pairs,)
    assert prior.min() >= 0.005
    assert prior.max() <= 0.995
    assert np.corrcoef(prior, truth)[0, 1] > 0.15
    np.testing.assert_array_equal(prior, rg.click_prior(log, data, rg.PositionBased()))


def test_prior_does_not_see_its_own_query(data, log):
    """Clicks of one query change the priors of other queries, not of its own."""
    own = log.session_query[log.session_of] == 0
    click = log.click.copy()
    click[own] = ~click[own]
    changed = rg.ClickLog.from_parts(**{
        name: getattr(log, name)
        for name in ("query_ids", "document_ids", "pair_query", "pair_document", "session_ptr",
                     "session_query", "contexts", "pair", "position")
    }, click=click)  # fmt: skip
    model = rg.PositionBased().fit(log)  # the same examination for both
    before, after = (rg.click_prior(each, data, model) for each in (log, changed))
    inside = log.pair_query == 0
    assert np.abs(before - after)[~inside].max() > 1e-3
    # what little changes comes from the factors of positions, which all queries share
    assert np.abs(before - after)[inside].max() < np.abs(before - after)[~inside].max()


def test_smoothed_judgements(data, log, truth):
    model = rg.PositionBased()
    judged = rg.smoothed_judgements(log, data, model, correction=1)
    assert not hasattr(model, "attractiveness_")
    assert (judged.weight == 1).all()
    rows = judged.dataset(data)
    plain = rg.judgements(log, rg.PositionBased(), labels="soft", samples=0, min_impressions=1)
    shown = np.sort(judged.pair)
    error = np.abs(rows.y - truth[shown]).mean()
    assert error < np.abs(plain.dataset(data).y - truth[shown]).mean()
    smoother = rg.smoothed_judgements(log, data, model, strength=500.0, correction=1)
    prior = rg.click_prior(log, data)
    far = np.abs(judged.label - prior[judged.pair]).mean()
    assert np.abs(smoother.label - prior[smoother.pair]).mean() < 0.2 * far
    graded = rg.smoothed_judgements(log, data, model, correction=1, labels="grades", n_grades=3)
    assert sorted(set(graded.label.tolist())) == [0.0, 1.0, 2.0]


def test_correction_is_what_the_log_needs():
    """Full where the old ranking was bad, less where it was good; 0: labels of impressions."""
    data = rg.make_web(60, n_docs=10, n_features=5, seed=3)
    model = rg.PositionBased()
    for scores, chosen in ((-data.y + 0.0, 1.0), (data.y + 0.0, 0.5)):
        log = rg.simulate_clicks(data, scores, sessions=8000, noise=1.0, seed=1, eta=1.5)
        judged = rg.smoothed_judgements(log, data, model, n_folds=2)
        assert judged.correction == chosen
        assert ("where 1 is full" in str(judged)) == (chosen < 1)
    again = rg.smoothed_judgements(log, data, model, n_folds=2, correction=0.5)
    np.testing.assert_array_equal(judged.label, again.label)
    naive = rg.smoothed_judgements(log, data, model, n_folds=2, correction=0, strength=1e-9)
    rates = naive.clicks / naive.impressions
    np.testing.assert_allclose(naive.label, rates, atol=1e-6)


def test_logs_without_anything_to_learn(caplog):
    """Little data, equal rates, or one document per query: labels, and no notes of rankers."""
    data = rg.make_web(9, n_docs=4, n_features=3, seed=1)
    log = rg.simulate_clicks(data, data.column(1), sessions=300, noise=1.0, seed=1)
    judged = rg.smoothed_judgements(log, data, rg.PositionBased(), n_folds=3)
    assert len(judged) == np.unique(log.pair).size
    log = rg.ClickLog(range(90), [*"abcdefghi"] * 10, ["x"] * 90, [1] * 90, [0, 1, 1] * 30)
    one = rg.QueryDataset(np.arange(9.0)[:, None], np.zeros(9), qid=[*"abcdefghi"], docid=["x"] * 9)
    assert rg.smoothed_judgements(log, one, rg.PositionBased()).correction == 1
    assert "no tree" not in caplog.text


def test_refused(data, log):
    with pytest.raises(rg.ParameterError, match="must be a click model"):
        rg.click_prior(log, data, "pbm")
    with pytest.raises(rg.ParameterError, match="must be a click model"):
        rg.smoothed_judgements(log, data, "pbm")
    with pytest.raises(rg.DataError, match="at least one query per fold"):
        rg.click_prior(log, data.select([0, 1]), rg.PositionBased())
    with pytest.raises(rg.ParameterError, match="strength"):
        rg.smoothed_judgements(log, data, strength=0.0)
    with pytest.raises(rg.ParameterError, match="correction"):
        rg.smoothed_judgements(log, data, correction=1.5)
