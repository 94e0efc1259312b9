"""Tables in Markdown, and p-values as text."""

from __future__ import annotations

from rankgrove.tuning.tables import markdown, p_text


def test_columns_are_aligned():
    assert markdown(["a", "bb"], [[1, 2]]) == "| a | bb |\n|---|----|\n| 1 | 2  |"


def test_p_values():
    assert p_text(0.0312) == ".0312"
    assert p_text(1.0) == "1.0000"
    assert p_text(0.00001) == "< .0001"
