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


def test_the_stamp_has_the_kernels_that_a_kernel_calls(monkeypatch, tmp_path):
    package = tmp_path / "rankgrove"
    (package / "one").mkdir(parents=True)
    outer, inner = package / "one" / "_a_kernels.py", package / "one" / "_b_kernels.py"
    outer.write_text("from rankgrove.one._b_kernels import f\n")
    inner.write_text("f = 1\n")
    monkeypatch.setattr(kernel_cache, "PACKAGE", package)
    before = source_stamp.__wrapped__(outer)
    inner.write_text("f = 2\n")
    assert source_stamp.__wrapped__(outer) != before


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
