"""Where compiled kernels are kept, and what happens to damaged, foreign and unwritable ones."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
import threading
import time
from pathlib import Path

import numba
import pytest

from rankgrove import _random_kernels, kernel_cache
from rankgrove.jit import njit
from rankgrove.kernel_cache import source_stamp


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path / "rankgrove"


def _kernel():
    """Return a kernel of ours as a new process has it."""
    return njit(cache=True, nogil=True)(_random_kernels.mix.py_func)


def _was_read(kernel):
    return sum(kernel.stats.cache_hits.values()) == 1


def _files(folder):
    return sorted(folder.glob("*.kernel"))


def test_a_second_process_reads_what_the_first_compiled(folder):
    first = _kernel()
    value = first(numba.uint64(7))
    assert not _was_read(first)
    assert len(_files(folder)) == 1
    second = _kernel()
    assert second(numba.uint64(7)) == value
    assert _was_read(second)


@pytest.mark.parametrize("content", [b"", b"x" * 400, None])
def test_a_damaged_file_is_compiled_again(folder, content):
    value = _kernel()(numba.uint64(7))
    (file,) = _files(folder)
    whole = file.read_bytes()
    file.write_bytes(whole[:-7] if content is None else content)
    again = _kernel()
    assert again(numba.uint64(7)) == value
    assert not _was_read(again)
    third = _kernel()
    third(numba.uint64(7))
    assert _was_read(third)


def test_types_of_processors_have_files_of_their_own(folder, monkeypatch):
    kernel = _kernel()
    kernel(numba.uint64(7))
    codegen = kernel.targetctx.codegen()
    monkeypatch.setattr(type(codegen), "magic_tuple", lambda _: ("x", "another", ""))
    other = _kernel()
    other(numba.uint64(7))
    assert not _was_read(other)
    assert len(_files(folder)) == 2


def test_a_full_disk_is_told_once(folder, monkeypatch, caplog):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_cache.tempfile, "mkstemp", full)
    monkeypatch.setattr(kernel_cache, "_lost", None)
    with caplog.at_level(logging.WARNING, "rankgrove"):
        for _ in range(2):
            _kernel()(numba.uint64(7))
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage()
    assert "NUMBA_CACHE_DIR" in record.getMessage()


def test_a_process_waits_for_the_one_that_compiles(folder):
    kernel = _kernel()
    kernel(numba.uint64(7))
    (file,) = _files(folder)
    content = file.read_bytes()
    file.unlink()
    handle = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    later = _kernel()
    results = []
    thread = threading.Thread(target=lambda: results.append(later(numba.uint64(7))))
    thread.start()
    time.sleep(0.2)
    assert not results
    file.write_bytes(content)
    thread.join()
    os.close(handle)
    assert _was_read(later)


def test_a_process_that_ends_leaves_no_lock(folder):
    kernel = _kernel()
    kernel(numba.uint64(7))
    (file,) = _files(folder)
    file.unlink()
    Path(f"{file}.lock").touch()  # its process is gone
    later = _kernel()
    later(numba.uint64(7))
    assert len(_files(folder)) == 1


@pytest.fixture
def package(monkeypatch, tmp_path):
    folder = tmp_path / "rankgrove"
    (folder / "one").mkdir(parents=True)
    monkeypatch.setattr(kernel_cache, "PACKAGE", folder)
    return folder


def stamp_of_now(source):
    return kernel_cache._stamp(source, kernel_cache._scanned)


@pytest.mark.parametrize(
    "line",
    [
        "from rankgrove.one._b_kernels import f",
        "from rankgrove.one import _b_kernels",
        "from rankgrove.one import _a, _b_kernels",
        "from rankgrove.one import (\n    _a,\n    _b_kernels as b,\n)",
        "from rankgrove.one import _a, \\\n    _b_kernels",
        "if True:\n    from rankgrove.one._b_kernels import f",
        "import rankgrove.one._b_kernels as b",
        "from rankgrove.one._c_kernels import g",  # which imports the other one
    ],
)
def test_the_stamp_has_the_kernels_that_a_kernel_calls(package, line):
    outer, inner = package / "one" / "_a_kernels.py", package / "one" / "_b_kernels.py"
    (package / "one" / "_c_kernels.py").write_text("from rankgrove.one._b_kernels import f as g\n")
    outer.write_text(f"import numpy as np\n\n{line}\n\nx = (1)\n")
    inner.write_text("f = 1\n")
    before = stamp_of_now(outer)
    inner.write_text("f = 2\n")
    assert stamp_of_now(outer) != before


def test_an_upgrade_under_a_process_changes_no_stamp_of_what_it_has_imported(package):
    callee, caller = package / "one" / "_a_kernels.py", package / "one" / "_b_kernels.py"
    callee.write_text("f = 1\n")
    source_stamp(callee)  # its kernels are made
    callee.write_text("f = 2\n")
    caller.write_text("from rankgrove.one._a_kernels import f\n")
    stamp = source_stamp(caller)  # its kernels are compiled with f = 1
    assert stamp != stamp_of_now(caller)
    callee.write_text("f = 1\n")
    assert stamp == stamp_of_now(caller)


@pytest.mark.parametrize(
    ("name", "value"), [("BOUNDSCHECK", 1), ("OPT", 0), ("LOOP_VECTORIZE", 0), ("USING_SVML", 7)]
)
def test_settings_of_numba_have_files_of_their_own(folder, monkeypatch, name, value):
    _kernel()(numba.uint64(7))
    monkeypatch.setattr(numba.config, name, value)
    other = _kernel()
    other(numba.uint64(7))
    assert not _was_read(other)
    assert len(_files(folder)) == 2


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_a_compilation_that_fails_keeps_nobody_waiting(folder, monkeypatch, problem):
    def fails(*_):
        assert list(folder.glob("*.lock"))
        raise problem

    kernel = _kernel()
    monkeypatch.setattr(kernel._compiler, "compile", fails)
    with pytest.raises(problem):
        kernel(numba.uint64(7))
    assert not list(folder.glob("*.lock"))
    monkeypatch.setattr(kernel_cache.KernelCache, "_wait_for", fails)
    _kernel()(numba.uint64(7))


def test_a_kernel_that_cannot_be_loaded_is_compiled_again(folder, monkeypatch):
    from numba.core.compiler import CompileResult

    def fails(*_):
        raise TypeError("written by another build")

    value = _kernel()(numba.uint64(7))
    with monkeypatch.context() as patch:
        patch.setattr(CompileResult, "_rebuild", fails)
        again = _kernel()
        assert again(numba.uint64(7)) == value
    assert not _was_read(again)
    third = _kernel()
    third(numba.uint64(7))
    assert _was_read(third)


def test_old_kernels_beside_their_sources_are_removed(folder):
    first = _kernel()
    first(numba.uint64(7))
    (file,) = _files(folder)
    stamp = f"-{first._cache._stamp[:12]}-"
    line = file.name.split("-")[1]
    old = folder / file.name.replace(stamp, "-0123456789ab-").replace(f"-{line}-", "-999-")
    other, file_of_another = folder / file.name.replace(line, "998"), folder / "_x.f-1-0-0.kernel"
    for path in (old, other, file_of_another):
        path.touch()
    file.unlink()
    again = _kernel()
    again._cache._beside = folder
    again(numba.uint64(7))
    assert _files(folder) == sorted([file, other, file_of_another])


def test_where_no_usual_folder_takes_files_a_private_one_does(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_cache.os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private = kernel_cache.private_folder.__wrapped__
    folder = private()
    assert folder.parent == tmp_path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private() == folder
    folder.chmod(0o777)  # somebody else's files could be in it, and they would be run
    assert private() != folder
    wanted = (tmp_path / "not writable",)
    assert kernel_cache.writable.__wrapped__(wanted) == kernel_cache.private_folder()
    kernel_cache.private_folder.cache_clear()
