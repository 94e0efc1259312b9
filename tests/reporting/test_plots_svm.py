"""The plot of base functions' weights."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.reporting.plots import base_function_weights

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def model():
    data = rg.make_web(30, n_docs=20, n_features=5, seed=1)
    return rg.SVMMap(thresholds=6, relevant=2).fit(data)


def test_panels_are_the_step_functions(model, tmp_path):
    figure = base_function_weights(model)
    used = [j for j, span in enumerate(model.linear_.influence()) if span > 0]
    assert [axes.get_title("left") for axes in figure.axes] == [
        model.feature_names_[j] for j in used
    ]
    steps = figure.axes[0].patches[0].get_data()
    thresholds, weights = model.linear_.by_feature()[used[0]]
    np.testing.assert_allclose(steps.values, np.concatenate([[0.0], np.cumsum(weights)]))
    np.testing.assert_allclose(steps.edges[1:-1], thresholds)
    figure.savefig(tmp_path / "weights.png")
    assert (tmp_path / "weights.png").stat().st_size > 1000


def test_chosen_features(model):
    name = model.feature_names_[1]
    figure = base_function_weights(model, [name, 1], n_columns=1)
    assert [axes.get_title("left") for axes in figure.axes] == [name, model.feature_names_[0]]
    for one in (name, 2):
        (axes,) = base_function_weights(model, one).axes
        assert axes.get_title("left") == name


def test_mistakes(model):
    data = rg.make_web(30, n_docs=20, n_features=5, seed=1)
    with pytest.raises(rg.DataError, match="with thresholds: train one with"):
        base_function_weights(rg.SVMMap(relevant=2).fit(data))
    with pytest.raises(rg.DataError, match="no feature 9 among the model's 5 features"):
        base_function_weights(model, [9])
    with pytest.raises(rg.ParameterError, match="one feature or several"):
        base_function_weights(model, [])
    with pytest.raises(rg.ParameterError, match="n_columns"):
        base_function_weights(model, n_columns=0)
