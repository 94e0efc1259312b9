"""``rankgrove compile`` and what `train` compiles ahead."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

import rankgrove as rg
from rankgrove import kernel_cache
from rankgrove.cli import ahead, kernel_sets
from rankgrove.cli.compile import check_processor
from tests.command import run, run_here
from tests.conftest import ROOT


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
    assert [words[-2:] for words in started] == [
        ["grow", "lambdamart:few"],
        ["--quiet", "mart:few"],
    ]


def test_unknown_processors_are_refused():
    with pytest.raises(rg.ParameterError, match="--cpu must be a type of processor"):
        check_processor("nonsense")
    check_processor("haswell" if platform.machine() in ("x86_64", "AMD64") else "generic")


def test_measures_and_parts_of_rankers_have_names():
    assert kernel_sets.set_names(["map", "err@5"]) == ["map", "err@5"]
    assert kernel_sets.set_names(["mart:few"]) == ["mart:few"]
    assert {"explain", "combine"} <= set(kernel_sets.set_names(["all"]))
    assert kernel_sets.set_names(["all", "map"])[-1] == "map"
    with pytest.raises(rg.ParameterError, match="all"):
        kernel_sets.set_names(["bag:few"])


@pytest.mark.slow
def test_what_is_compiled_ahead_is_not_compiled_again(monkeypatch, tmp_path):
    pytest.importorskip("pandas")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    run("compile", "read", "train", "evaluate", "predict", "serve", "map", "explain", "combine")
    (tmp_path / "data").mkdir()
    words = ["tests.cli.after_compiling", tmp_path / "data", "map", "explain", "combine"]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, timeout=600
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if not line.endswith(": ")] == []


def _ended(monkeypatch, *words, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    return run("compile", *words, status=2)[1]


def test_folders_that_take_no_files_are_refused(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "kernels"
    said = _ended(monkeypatch, "read", NUMBA_CACHE_DIR=nowhere)
    assert "NUMBA_CACHE_DIR: files cannot be created in" in said
    said = _ended(monkeypatch, "read", "--cache", nowhere)
    assert "--cache: the folder" in said
    assert "cannot be created: a part of its path is a file" in " ".join(said.split())


def test_kernels_that_cannot_be_kept_are_an_error(monkeypatch):
    monkeypatch.setattr(kernel_cache, "_lost", (Path("there"), "No space left on device"))
    _, said = run_here("compile", "evaluate", status=2)
    assert "cannot be kept in there: No space left on device" in " ".join(said.split())


def test_kernels_in_the_temporary_folder_are_counted(monkeypatch, tmp_path):
    folder = tmp_path / "rankgrove-kernels-0"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.kernel").write_bytes(b"12")
    (folder / "deep" / "b.kernel.lock").touch()
    monkeypatch.setattr(kernel_cache, "chosen_folder", lambda: folder)
    assert (folder / "deep" / "a.kernel", 2) in kernel_cache.kernel_files()
    kernel_cache.remove_old_locks()
    assert [path.name for path in (folder / "deep").iterdir()] == ["a.kernel"]
