"""docs/papers.md: everything it names exists, and no number of the papers is left out."""

from __future__ import annotations

import ast
import functools
import importlib
import re

import pytest

from rankgrove_papers.catalogue import EXPERIMENTS
from tests.conftest import ROOT

# How many of each kind every paper numbers, and what it numbers or names besides.
NUMBERED = {
    "Wu, Burges, Svore and Gao 2010": {"Eq.": 7, "Algorithm": 1, "Figure": 4, "Table": 4},
    "Burges 2010": {"Eq.": 15, "Figure": 1},
    "Yue, Finley, Radlinski and Joachims 2007": {
        "Eq.": 13,
        "Algorithm": 2,
        "Figure": 2,
        "Table": 11,
        "Theorem": 2,
        "Lemma": 1,
        "Proposition": 1,
        "Observation": 1,
        "Optimization Problem": 1,
    },
    "Chen, Lu, Wong, Sun, Heck and Tseng 2008": {
        "Eq.": 4,
        "Algorithm": 3,
        "Figure": 12,
        "Table": 3,
    },
    "Ganjisaffar, Caruana and Lopes 2011": {"Figure": 4, "Table": 5},
}
NAMED = {"Burges 2010": ["Algorithm LambdaMART", "Section 3, steps 1 to 4"]}
HEADER = ["number", "what it is", "code", "test", "experiment"]


def rows_by_paper():
    """Return the rows of every section's table, each a list of five cells."""
    text = (ROOT / "docs" / "papers.md").read_text()
    found = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, body = section.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        assert cells[0] == HEADER
        found[title] = cells[2:]
    return found


PAPERS = rows_by_paper()
ROWS = [(paper, row) for paper, rows in PAPERS.items() for row in rows]


def names_in(cell):
    """Return the names of a cell; there is nothing but names between commas."""
    names = re.findall(r"`([^`]+)`", cell)
    assert ", ".join(f"`{name}`" for name in names) == cell
    return names


def found_at(path):
    """Return what a dotted path names: a module, or an attribute of one."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[cut:], found)
    raise ModuleNotFoundError(path)


@functools.cache
def functions_of(path):
    tree = ast.parse((ROOT / "tests" / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_number_is_there_once_and_in_order():
    assert list(PAPERS) == list(NUMBERED)
    for paper, kinds in NUMBERED.items():
        given = [row[0] for row in PAPERS[paper]]
        assert len(set(given)) == len(given)
        for kind, last in kinds.items():
            numbers = [name for name in given if re.fullmatch(rf"{re.escape(kind)} \d+", name)]
            assert numbers == [f"{kind} {n}" for n in range(1, last + 1)], paper
        listed = {f"{kind} {n}" for kind, last in kinds.items() for n in range(1, last + 1)}
        others = [name for name in given if name not in listed]
        assert set(NAMED.get(paper, [])) <= set(others)
        assert all(name.startswith(("Section ", "Algorithm ")) for name in others)


@pytest.mark.parametrize(("paper", "row"), ROWS, ids=[f"{p[:4]} {row[0]}" for p, row in ROWS])
def test_a_row_names_what_exists(paper, row):
    number, meaning, code, tests, experiments = row
    assert meaning
    for path in names_in(code):
        assert path.startswith(("rankgrove.", "rankgrove_papers."))
        assert found_at(path) is not None
    for one in names_in(tests):
        path, _, name = one.partition("::")
        assert name in functions_of(path), one
    assert names_in(code), f"{number}: no code"
    assert names_in(tests), f"{number}: no test"
    known = {one.name for one in EXPERIMENTS}
    assert set(names_in(experiments)) <= known


def test_every_experiment_is_of_something():
    named = [name for _, row in ROWS for name in names_in(row[4])]
    assert {one.name for one in EXPERIMENTS} == set(named)
