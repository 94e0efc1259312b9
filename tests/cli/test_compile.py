"""``rankgrove compile`` and what `train` compiles ahead."""

from __future__ import annotations

import platform
import subprocess

import pytest

import rankgrove as rg
from rankgrove.cli import ahead
from rankgrove.cli.compile import check_processor
from rankgrove.operations import kernel_sets
from tests.command import run_here


def test_sets_are_compiled_one_by_one():
    out, _ = run_here("compile", "evaluate")
    assert "1/1 evaluate: " in out
    assert " MB, in " in out.splitlines()[-1]
    assert run_here("compile", "evaluate", "--quiet") == ("", "")


def test_unknown_set():
    _, complaints = run_here("compile", "evalute", status=2)
    assert "evaluate" in complaints


def test_names_of_sets():
    assert kernel_sets.set_names([]) == list(kernel_sets.SETS)
    assert "mart" in kernel_sets.set_names(["all"])
    assert kernel_sets.set_names(["read", "mart", "read"]) == ["read", "mart"]


@pytest.mark.parametrize(
    ("variables", "cores", "kind"),
    [
        ({ahead.SWITCH: "0"}, 2, "lambdamart"),
        ({ahead.SWITCH: "1", "NUMBA_DISABLE_JIT": "1"}, 2, "lambdamart"),
        ({ahead.SWITCH: "1"}, 1, "lambdamart"),
        ({ahead.SWITCH: "1"}, 2, "combined"),
    ],
)
def test_no_second_process(monkeypatch, variables, cores, kind):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ahead, "available_threads", lambda: cores)
    monkeypatch.setattr("rankgrove.kernel_cache.has_kernel", lambda *_: False)
    monkeypatch.setattr(subprocess, "Popen", None)
    assert ahead.compile_ahead(kind) is None


def test_a_second_process_where_nothing_was_compiled(monkeypatch):
    started = []
    monkeypatch.setenv(ahead.SWITCH, "1")
    monkeypatch.setattr(ahead, "available_threads", lambda: 2)
    monkeypatch.setattr("rankgrove.kernel_cache.has_kernel", lambda *_: False)
    monkeypatch.setattr(subprocess, "Popen", lambda words, **_: started.append(words))
    monkeypatch.setattr(ahead.atexit, "register", lambda *_: None)
    ahead.compile_ahead("lambdamart")
    ahead.compile_ahead("mart")
    assert [words[-2:] for words in started] == [["grow", "train"], ["--quiet", "mart"]]


def test_unknown_processors_are_refused():
    with pytest.raises(rg.ParameterError, match="--cpu must be a type of processor"):
        check_processor("nonsense")
    check_processor("haswell" if platform.machine() in ("x86_64", "AMD64") else "generic")
