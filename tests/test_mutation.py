"""The tool that changes the code: which changes it makes, and that it says what tests missed."""

from __future__ import annotations

import ast

import pytest
from tools import mutation

SOURCE = '''
"""No change of 1 + 1 here."""
from __future__ import annotations


@njit(cache=True)
def f(x: int = 3, most: list[int] | None = None) -> int | None:
    if x < 2 and not most:
        raise ValueError(f"must be above {1 + 1}")
    for i in range(x):
        x += -i
    return max(x[:i], 0.5)
'''


def changed(source):
    text = source.splitlines()
    found = set()
    for offset, before, after in mutation.changes(source):
        mutant = mutation.Mutant(
            "p", "f", source.count("\n", 0, offset) + 1, offset, before, after, ""
        )
        new = mutant.applied(source)
        ast.parse(new)
        found.add((text[mutant.line - 1].strip(), new.splitlines()[mutant.line - 1].strip()))
    return found


def test_what_is_changed():
    condition, total = "if x < 2 and not most:", "return max(x[:i], 0.5)"
    head = "def f(x: int = 3, most: list[int] | None = None) -> int | None:"
    assert changed(SOURCE) == {
        (head, head.replace("3", "4")),
        (condition, "if x <= 2 and not most:"),
        (condition, "if x < 3 and not most:"),
        (condition, "if x < 2 or not most:"),
        (condition, "if x < 2 and most:"),
        ("for i in range(x):", "for i in range((x - 1)):"),
        ("x += -i", "x -= -i"),
        ("x += -i", "x += i"),
        (total, "return min(x[:i], 0.5)"),
        (total, "return max(x[:(i - 1)], 0.5)"),
        (total, "return max(x[:i], 1.5)"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("package", mutation.PACKAGES)
def test_every_mutant_is_python_and_has_tests(package):
    mutants = mutation.mutants_of(package)
    texts = {m.file: (mutation.ROOT / "src" / "rankgrove" / m.file).read_text() for m in mutants}
    assert len(mutants) > 50
    for mutant in mutation.sample(package, 40, seed=1):
        ast.parse(mutant.applied(texts[mutant.file]))
    for file in texts:
        for test in mutation.tests_of(file):
            assert (mutation.ROOT / test).exists(), f"{file}: no {test}"


def test_a_smaller_sample_is_part_of_a_larger_one():
    assert mutation.sample("svm", 5, 0) == mutation.sample("svm", 9, 0)[:5]
    assert mutation.sample("svm", 5, 0) != mutation.sample("svm", 5, 1)


def test_the_table_counts_time_as_killed():
    chosen = mutation.sample("bagging", 4, 0)
    outcomes = dict(zip(chosen, ["killed", "survived", "time"], strict=False))
    lines = mutation.table({"bagging": chosen}, outcomes).splitlines()
    assert lines[2:4] == ["| bagging | 3 | 2 | 1 | 67% |", "| all | 3 | 2 | 1 | 67% |"]
    assert lines[4].startswith(f"{chosen[1].file}:{chosen[1].line}  ")
