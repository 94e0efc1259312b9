"""The plots: what they show, and what they say where Matplotlib is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.reporting.changes import envelope


@pytest.fixture(scope="module")
def best():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(20), 20))
    a, b = labels + rng.normal(size=(2, 400)) * 2
    return rg.optimal_combination(a, b, data, "ndcg@5", names=["old", "new"])


def test_a_curve(best, tmp_path):
    figure = rg.plot.combination_curve(best)
    (axes,) = figure.axes
    assert axes.get_xlabel() == "alpha in (1 - alpha) a + alpha b"
    assert axes.get_ylabel() == "mean ndcg@5"
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["old", "new", f"best: {best.value:.4f} at {best.alpha:.4g}"]
    figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_curves_of_one_colour_have_different_dashes():
    lines = {f"line {k}": (np.arange(3), np.arange(3) + k) for k in range(20)}
    (axes,) = rg.plot.curves(lines, "x", "y", "title").axes
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
    assert len(looks) == 20


@pytest.mark.parametrize("columns", [3, 40, 5000])
def test_thinning_loses_no_peak(columns):
    rng = np.random.default_rng(1)
    alpha = np.concatenate([[0.0], np.sort(rng.random(999)) ** 3, [1.0]])
    value = rng.normal(size=1000)
    lefts, least, largest = envelope(alpha, value, columns)
    assert lefts.size == least.size == largest.size <= max(columns, 1000) + 1
    assert (least.min(), largest.max()) == (value.min(), value.max())
    # at every alpha the curve lies within the band
    for x in rng.random(300):
        true = value[np.searchsorted(alpha, x) - 1]
        part = np.searchsorted(lefts, x) - 1
        assert least[part] <= true <= largest[part]


def test_without_matplotlib(best, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(rg.MissingExtraError, match=r"pip install 'rankgrove\[plot\]'"):
        rg.plot.combination_curve(best)
