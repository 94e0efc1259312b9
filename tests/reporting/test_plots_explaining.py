"""The plots of explanations and of partial dependence."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg

DATA = rg.make_web(25, n_docs=12, n_features=15, seed=3)


@pytest.fixture(scope="module")
def model():
    return rg.LambdaMART(n_trees=20, min_leaf=5).fit(DATA)


def test_steps_from_base_to_score(model):
    found = rg.explain(model, DATA, DATA.query_ids[0])
    (axes,) = rg.plot.explanation(found, 0, n_features=5).axes
    bars = axes.patches
    assert len(bars) == 6
    assert bars[0].get_x() == pytest.approx(found.base[0])
    # a bar begins where the one above ends, and the last ends at the score
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    np.testing.assert_allclose([bar.get_x() for bar in bars[1:]], ends[:-1])
    assert ends[-1] == pytest.approx(found.scores[0])
    low, high = axes.get_xlim()
    assert low < min(ends)
    assert high > max(ends)
    assert axes.get_yticklabels()[-1].get_text().endswith("other features")
    (axes,) = rg.plot.explanation(found.why(0, 1)).axes
    assert axes.get_xlabel().startswith("line: difference")
    assert len(rg.plot.explanation(found.why(0, 0)).axes[0].patches) == 0


def test_sizes(model):
    found = rg.explain(model, DATA)
    (axes,) = rg.plot.explanation(found, n_features=4).axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == list(found.importance().values())[:4]


def test_partial_dependence(model, tmp_path):
    one = rg.partial_dependence(model, DATA, 1, [0.0, 1.0, 2.0, np.nan])
    figure = rg.plot.partial_dependence(one)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1  # beside it
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), one.mean[:3])
    figure.savefig(tmp_path / "one.png")
    two = rg.partial_dependence(model, DATA, (1, 2), 5)
    image = rg.plot.partial_dependence(two).axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), two.mean.T)


def test_mistakes(model):
    with pytest.raises(rg.ParameterError, match=r"rg\.explain"):
        rg.plot.explanation(model)
    with pytest.raises(rg.ParameterError, match=r"rg\.partial_dependence"):
        rg.plot.partial_dependence(model)
