"""Ctrl-C at any moment of a sweep comes out as KeyboardInterrupt, and what is learned is kept."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rankgrove as rg
from tests.command import COMMAND

AT_MANY_MOMENTS = """
import random, signal, sys, time
import rankgrove as rg

is_set = False

def interrupt(*_):
    # An interrupt may be lost where Python ignores exceptions, as in a finaliser: `is_set` ends the
    # wait for it all the same.
    global is_set
    if is_set:
        is_set = False
        raise KeyboardInterrupt

def work():
    rg.optimal_combination(one, other, data, sys.argv[1], n_threads=1)

signal.signal(signal.SIGALRM, interrupt)
data = rg.make_artificial(6, n_docs=6, n_features=2, seed=1)
one, other = data.column(1).astype(float), data.column(2).astype(float)
work()  # compiles
draw = random.Random(0)
end = time.monotonic() + 4.0
n_interrupts = 0
while time.monotonic() < end:
    try:
        is_set = True
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.004 * draw.random())
        while is_set:
            work()
    except KeyboardInterrupt:
        n_interrupts += 1
print(n_interrupts)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("measure", ["ndcg@5", "kendall"])
def test_at_many_moments(measure):
    """In a process of its own: an interrupt in code of a coverage tool is no KeyboardInterrupt."""
    words = [sys.executable, "-c", AT_MANY_MOMENTS, measure]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_kernels_called_from_python_return_no_tuple_of_arrays():
    """Numba cannot make one where Ctrl-C comes in between (see ``packed``)."""
    folder = Path(rg.__file__).parent
    kernels, called = {}, set()
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        if path.name.startswith("_") and path.name != "__init__.py":
            kernels |= {one.name: one for one in tree.body if _returns_tuple(one)}
        else:
            called |= set(_used_kernels(tree))
    numbers = {"add_up", "best_candidate", "certificate", "division_of", "drawn_pair"}
    numbers |= {"least_and_largest", "record", "score_top"}
    as_python = {"new_lines"}  # by its py_func
    assert {name for name in kernels if name in called} == numbers | as_python


def _used_kernels(tree):
    """Give the names that a module takes from modules of kernels."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and "._" in (node.module or ""):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and "kernels" in ast.unparse(node.value):
            yield node.attr


def _returns_tuple(one):
    """Whether a kernel returns a tuple, or a NamedTuple, whose names begin with a capital."""
    if not isinstance(one, ast.FunctionDef) or not one.decorator_list:
        return False
    if "njit" not in ast.unparse(one.decorator_list[0]):
        return False
    values = [node.value for node in ast.walk(one) if isinstance(node, ast.Return) and node.value]
    return any(
        isinstance(value, ast.Tuple)
        or (isinstance(value, ast.Call) and ast.unparse(value.func)[0].isupper())
        for value in values
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("interrupts")
    data = rg.make_web(300, n_docs=20, n_features=20, seed=1)
    rg.write_letor(data, made / "data.txt")
    return made


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3.0, 4.1, 5.2, 6.3])
def test_coordinate_ascent_keeps_its_best_model(folder, seconds):
    words = "train data.txt --ranker coordinate-ascent --set n_restarts=500 --set tolerance=0"
    process = subprocess.Popen(
        [COMMAND, *words.split(), "--out", f"{seconds}.rg"],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if line.startswith("training on"):
            break
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "Traceback" not in told
    if (folder / f"{seconds}.rg").exists():
        assert f"interrupted: {seconds}.rg holds the best model so far." in told
        assert rg.load(folder / f"{seconds}.rg").interrupted_
    else:  # on a slow machine, before the first pass was done
        assert "interrupted: nothing was kept" in told
