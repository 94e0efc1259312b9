"""Rank correlation between two systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rankgrove as rg


def test_two_rankings_of_a_data_set():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, (2, 60)).astype(float)
    data = rg.QueryDataset(None, np.zeros(60), qid=np.repeat([1, 2, 3], 20))
    found = rg.agreement(first, second, data)
    for q in range(3):
        own = slice(20 * q, 20 * q + 20)
        expected = stats.kendalltau(first[own], second[own]).statistic
        assert found.per_query["kendall"][q] == pytest.approx(expected, abs=1e-12)
        expected = stats.spearmanr(first[own], second[own]).statistic
        assert found.per_query["spearman"][q] == pytest.approx(expected, abs=1e-12)
    assert rg.agreement(second, second, data).mean == pytest.approx({"kendall": 1, "spearman": 1})


def test_two_runs():
    first = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"a": 1.0}}
    second = {"1": {"c": 3.0, "b": 2.0, "a": 1.0, "d": 9.0}, "3": {"a": 1.0}}
    assert rg.agreement(first, second).mean == pytest.approx({"kendall": -1, "spearman": -1})
    with pytest.raises(rg.DataError, match="no document of any query in common"):
        rg.agreement(first, {"9": {"a": 1.0}})


def test_nothing_is_said_of_labels_and_conventions():
    data = rg.QueryDataset(None, np.zeros(6), qid=[1, 1, 1, 2, 2, 2])
    found = rg.agreement([3, 2, 1, 3, 2, 1], [3, 1, 2, 5, 5, 5], data)
    for text in (str(found), found._repr_html_()):
        assert "label" not in text
        assert "convention" not in text
        assert "left out of 2 queries: 1 with equal scores by the second" in text
    found = rg.agreement([3, 2, 1, 3, 2, 1], [3, 1, 2, 5, 4, 3], data)
    assert len(str(found).splitlines()) == 3
    nothing = str(rg.agreement([3, 2, 1, 3, 2, 1], [1] * 6, data)).splitlines()[-1]
    assert nothing == "No value of kendall, spearman: every query is left out."


def test_measures_that_need_judgements():
    with pytest.raises(rg.ParameterError, match=r"others need judgements. Got 'map'"):
        rg.agreement({}, {}, measures="map")
