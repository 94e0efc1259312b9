"""Choosing click models, and expected examinations."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.clicks.choosing import calibrated_examinations, expected_examinations


@pytest.fixture(scope="module")
def data():
    return rg.make_web(40, n_docs=12, n_features=5, seed=1)


def log_of(data, model, **options):
    return rg.simulate_clicks(
        data, data.column(1), model=model, sessions=8000, noise=1.0, seed=1, **options
    )


@pytest.mark.parametrize(("users", "chosen"), [("position-based", "PositionBased"), ("dbn", "DBN")])
def test_the_model_of_the_users_is_chosen(data, users, chosen):
    choice = rg.choose_click_model(log_of(data, users))
    assert choice.models[0] == type(choice.model).__name__ == chosen
    assert list(choice.log_likelihood) == sorted(choice.log_likelihood, reverse=True)
    assert chosen in str(choice)
    assert chosen in choice._repr_html_()


def test_users_who_stop_are_not_position_based(data):
    """A DBN can do what the dependent click model does: either of them may be chosen."""
    choice = rg.choose_click_model(log_of(data, "dependent-click"))
    assert choice.models[-1] == "PositionBased"


def test_given_models_do_not_change(data):
    log = log_of(data, "position-based")
    model = rg.PositionBased()
    choice = rg.choose_click_model(log, [model])
    assert not hasattr(model, "attractiveness_")
    whole = rg.PositionBased().fit(log)
    np.testing.assert_array_equal(choice.model.attractiveness_, whole.attractiveness_)


def test_examinations_of_positions(data):
    log = log_of(data, "position-based")
    model = rg.PositionBased().fit(log)
    plain = np.bincount(log.pair, model.examination_[log.position - 1], minlength=log.n_pairs)
    np.testing.assert_allclose(expected_examinations(model, log), plain)
    ratio = calibrated_examinations(model, log).sum() / plain.sum()
    assert ratio == pytest.approx(1.0, abs=0.05)


def test_a_wrong_model_is_calibrated(data):
    """Rates of clicks know nothing of positions; the factors bring examination back."""
    log = log_of(data, "position-based")
    model = rg.ClickThroughRate().fit(log)
    true = np.bincount(log.pair, 1.0 / log.position, minlength=log.n_pairs)
    shown = expected_examinations(model, log)
    np.testing.assert_allclose(shown, np.bincount(log.pair, minlength=log.n_pairs))
    calibrated = calibrated_examinations(model, log)
    assert np.corrcoef(calibrated, true)[0, 1] > 0.995
    assert calibrated.sum() == pytest.approx(true.sum(), rel=0.1)


def test_refused(data):
    log = log_of(data, "position-based")
    with pytest.raises(rg.ParameterError, match="must be click models"):
        rg.choose_click_model(log, ["pbm"])
    with pytest.raises(rg.ParameterError, match="at least one click model"):
        rg.choose_click_model(log, [])
