"""Reliability tables: bins, errors over queries, the expected calibration error."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.evaluation.reliability import reliability


def test_bins_and_error_by_hand():
    predicted = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 2.0])
    observed = np.array([0.0, 1.0, 0.0, 2.0, 1.0, 2.0])
    query = np.array([0, 1, 0, 1, 2, 2])
    table = reliability("grade", predicted, observed, query, bins=6)
    assert table.count.tolist() == [2, 3, 1]  # equal predictions stay together
    assert table.predicted.tolist() == [0, 1, 2]
    assert table.observed.tolist() == [0.5, 1, 2]
    assert table.ece == pytest.approx((2 * 0.5 + 0 + 0) / 6 / 2)
    assert "calibration error 0.0833 of the range" in str(table)
    assert "<table" in table._repr_html_()


def test_rows_of_a_query_are_one_observation():
    random = np.random.default_rng(1)
    values = random.integers(0, 3, 200).astype(float)
    once = reliability("x", np.zeros(200), values, np.arange(200), bins=1)
    assert once.error[0] == pytest.approx(values.std(ddof=1) / np.sqrt(200), rel=1e-6)
    repeated = reliability("x", np.zeros(1000), np.repeat(values, 5), np.arange(1000) // 5, bins=1)
    assert repeated.error[0] == pytest.approx(once.error[0])
    inside = (once.low < values.mean()) & (values.mean() < once.high)
    assert inside.all()


def test_weights_and_refusals():
    predicted, observed = np.array([1.0, 1.0]), np.array([0.0, 4.0])
    table = reliability("x", predicted, observed, np.arange(2), np.array([3.0, 1.0]))
    assert table.observed.tolist() == [1.0]
    assert table.ece == 0
    with pytest.raises(rg.DataError, match="at least one row"):
        reliability("x", np.empty(0), np.empty(0), np.empty(0, int))
    with pytest.raises(rg.ParameterError, match="'bins' parameter of reliability"):
        reliability("x", predicted, observed, np.arange(2), bins=0)
