"""Choices at the edges of grids: counted, and warned of."""

from __future__ import annotations

import pytest

from rankgrove_papers.grid_edges import Choices, edge_report


def cells_of(table):
    rows = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]


def test_choices_at_either_edge_are_counted_and_warned_of():
    grid = (0.1, 1.0, 10.0)
    often = Choices([0.1, 10.0, 10.0, 1.0], grid)
    assert (often.share_at(min), often.share_at(max), often.at_edges) == (0.25, 0.5, 0.75)
    assert often.most_often == 10.0
    rarely = Choices([1.0] * 9 + [10.0], grid)
    assert rarely.at_edges == 0.1  # 10 % is not more than 10 %
    text = edge_report({"often": often, "rarely": rarely})
    assert cells_of(text)[2:] == [
        ["often", "0.1 to 10, 3 values", "10", "25%", "50%", "4"],
        ["rarely", "0.1 to 10, 3 values", "1", "0%", "10%", "10"],
    ]
    (warning,) = [line for line in text.splitlines() if line.startswith("**")]
    assert "often (75%)" in warning
    assert "rarely" not in warning
    assert "**" not in edge_report({"rarely": rarely})


def test_a_limit_is_not_an_edge():
    shares = Choices([1.0, 1.0, 0.5], (0.3, 0.5, 1.0), limits=(1.0,))
    assert shares.at_edges == 0.0
    text = edge_report({"share of queries": shares})
    assert cells_of(text)[2] == [
        "share of queries",
        "0.3 to 1, 3 values",
        "1",
        "0%",
        "no edge",
        "3",
    ]
    assert "**" not in text
    assert Choices([2.0], (2.0,)).at_edges == 0.0  # nothing to choose


def test_an_edge_beyond_which_nothing_changes_is_not_counted():
    grid = (0.1, 1.0, 10.0)
    flat, rising, falling = [0.5, 0.5 - 1e-5, 0.4], [0.3, 0.4, 0.5], [0.5, 0.4, 0.3]
    level = [0.4, 0.5, 0.5]
    chosen = Choices([0.1, 10.0, 0.1, 10.0], grid, curves=[flat, rising, falling, level])
    assert (chosen.share_at(min), chosen.share_at(max)) == (0.25, 0.25)
    assert "does as well on the validation data" in edge_report({"C": chosen})
    assert Choices([0.1, 10.0, 0.1, 10.0], grid).at_edges == 1.0


@pytest.mark.parametrize("values", [[3.0], []])
def test_choices_are_of_the_grid(values):
    with pytest.raises(ValueError, match=r"must be in the grid \[1.0, 2.0\]"):
        Choices(values, (1.0, 2.0))
