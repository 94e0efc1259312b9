"""Cells of tables: means, intervals, p-values, names of variants."""

from __future__ import annotations

import rankgrove as rg
from rankgrove_papers.tables import first_round_at, mean_and_reach, mean_cell, p_value, variant_of


def test_cells():
    assert mean_cell([0.5, 0.5, 0.5]) == "50.00 (0.00)"
    assert p_value([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == "1.0000"
    assert first_round_at([0.1, 0.3, 0.2, 0.4], 0.3) == 2
    assert first_round_at([0.1], 0.3) is None


def test_a_mean_of_folds_with_the_reach_of_all_queries():
    assert mean_and_reach([[0.5, 0.5], [0.5]]) == "0.5000 (0.0000)"
    assert mean_and_reach([[0.0, 1.0, 0.5], [1.0]]).startswith("0.7500 (0.")


def test_a_variant_is_named_by_its_parameters():
    text = variant_of(rg.LambdaMART("ndcg", normalise=False, split="mse", l2=0.0, truncation=None))
    for named in ("measure ndcg", "truncation None", "normalise False", "split mse", "l2 0.0"):
        assert named in text.split(", ")
