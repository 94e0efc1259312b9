"""The binary copy is quick, and never of another content."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.data import letor_cache, letor_parse
from tests.data.test_letor import ROWS, assert_is, write
from tests.reference import letor as oracle


@pytest.fixture
def source(tmp_path, monkeypatch) -> Path:
    """A file that has rested, in a folder of its own; the user's cache folder is another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(letor_cache, "_REST_NS", 0)
    (tmp_path / "data").mkdir()
    return write(tmp_path / "data", ROWS)


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """How often text was really read."""
    count: list[int] = []
    real = letor_parse.parse

    def counting(*arguments):
        count.append(1)
        return real(*arguments)

    monkeypatch.setattr(letor_parse, "parse", counting)
    return count


def beside(source: Path) -> Path:
    return source.with_name(source.name + ".rgcache")


OPTIONS = [{}, {"sparse": True}, {"absent": "missing"}, {"n_features": 20}]


@pytest.mark.parametrize("options", OPTIONS)
def test_second_reading_is_the_copy(source, reads, options):
    first = rg.read_letor(source, cache=True, **options)
    second = rg.read_letor(source, cache=True, **options)
    assert len(reads) == 1
    assert first.is_sparse == second.is_sparse
    for a, b in [(first.y, second.y), (first.qid, second.qid), (first.docid, second.docid)]:
        assert np.array_equal(a, b)
    one, two = first.X, second.X
    if first.is_sparse:
        one, two = one.toarray(), two.toarray()
    assert np.array_equal(one, two, equal_nan=True)
    assert one.shape == two.shape
    assert not second.y.flags.writeable


def test_options_do_not_mix(source, reads):
    for options in OPTIONS:
        rg.read_letor(source, cache=True, **options)
    assert len(reads) == 4
    assert np.isnan(rg.read_letor(source, cache=True, absent="missing").X).any()
    assert not np.isnan(rg.read_letor(source, cache=True).X).any()
    assert len(reads) == 4


def test_text_query_ids_and_no_docids(source, reads):
    source.write_text("1 qid:ä 1:1\n0 qid:b 1:2\n")
    rg.read_letor(source, cache=True)
    data = rg.read_letor(source, cache=True)
    assert len(reads) == 1
    assert data.query_ids.tolist() == ["ä", "b"]
    assert data.docid is None


def test_same_size_and_restored_times(source, reads):
    rg.read_letor(source, cache=True)
    status = source.stat()
    source.write_text(ROWS.replace("qid:0 ", "qid:9 "))
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert source.stat().st_size == status.st_size
    data = rg.read_letor(source, cache=True)
    assert len(reads) == 2
    assert data.query_ids[0] == 9


def test_a_file_that_had_not_rested_is_hashed(source, reads, monkeypatch):
    monkeypatch.setattr(letor_cache, "_REST_NS", 3600 * 10**9)
    hashed = []
    real = letor_cache.content_hash
    monkeypatch.setattr(letor_cache, "content_hash", lambda path: hashed.append(path) or real(path))
    rg.read_letor(source, cache=True)
    hashed.clear()
    rg.read_letor(source, cache=True)
    assert hashed
    assert len(reads) == 1
    # The change that times cannot show: same size, and all that stat tells as before.
    identity = letor_cache.identity(source)
    source.write_text(ROWS.replace("qid:0 ", "qid:9 "))
    monkeypatch.setattr(letor_cache, "identity", lambda path: identity)
    assert rg.read_letor(source, cache=True).query_ids[0] == 9


def test_touched_file_is_not_read_again_but_hashed_once(source, reads, monkeypatch):
    rg.read_letor(source, cache=True)
    os.utime(source)
    rg.read_letor(source, cache=True)
    assert len(reads) == 1
    monkeypatch.setattr(letor_cache, "content_hash", lambda path: pytest.fail("hashed again"))
    rg.read_letor(source, cache=True)
    assert len(reads) == 1


def test_changed_while_it_was_read(source, monkeypatch):
    real = letor_parse.parse

    def slow(*arguments):
        parts = real(*arguments)
        source.write_text(ROWS.replace("qid:0 ", "qid:9 "))
        return parts

    monkeypatch.setattr(letor_parse, "parse", slow)
    rg.read_letor(source, cache=True)
    assert not beside(source).exists()


def test_side_file_counts(source, reads):
    source.write_text("1 1:1\n0 1:2\n")
    side = source.with_name(source.name + ".query")
    side.write_text("2\n")
    assert rg.read_letor(source, cache=True).n_queries == 1
    side.write_text("1\n1\n")
    assert rg.read_letor(source, cache=True).n_queries == 2
    assert len(reads) == 2


@pytest.mark.parametrize("damage", ["empty", "cut", "cut-head", "magic", "header", "longer", "zip"])
def test_damaged_copy_is_made_anew(source, reads, damage):
    rg.read_letor(source, cache=True)
    copy = beside(source)
    content = bytearray(copy.read_bytes())
    if damage == "magic":
        content[0] ^= 1
    elif damage == "header":
        content[60] ^= 1
    cut = {"empty": 0, "cut": len(content) - 64, "cut-head": 100}.get(damage, len(content))
    content = {"longer": content + b"\0", "zip": b"PK" * 50}.get(damage, content[:cut])
    copy.write_bytes(content)
    assert_is(rg.read_letor(source, cache=True), oracle.parse(ROWS.encode()))
    assert len(reads) == 2
    rg.read_letor(source, cache=True)
    assert len(reads) == 2


def test_every_damage_to_the_body_is_noticed(source, reads):
    whole = rg.read_letor(source, cache=True)
    copy = beside(source)
    content = copy.read_bytes()
    begin = len(content) - 64
    for n, place in enumerate([begin, *range(len(content) // 2, len(content), 97)], start=2):
        broken = bytearray(content)
        broken[place] ^= 4
        copy.write_bytes(broken)
        again = rg.read_letor(source, cache=True)
        assert len(reads) == n
        assert np.array_equal(again.X, whole.X, equal_nan=True)
        assert np.array_equal(again.y, whole.y)


def test_every_damage_to_the_head_is_noticed(source):
    expected = oracle.parse(ROWS.encode())
    rg.read_letor(source, cache=True)
    content = beside(source).read_bytes()
    rng = np.random.default_rng(0)
    head = 16 + int.from_bytes(content[8:16], "little") + 32  # magic and length, JSON, digest
    for place in [*range(16), *rng.integers(16, head, 40)]:
        broken = bytearray(content)
        broken[place] ^= int(rng.integers(1, 256))
        beside(source).write_bytes(broken)
        assert_is(rg.read_letor(source, cache=True), expected)


def test_folder_that_takes_no_copy(source, reads, monkeypatch, tmp_path):
    real = letor_cache.atomic_output

    def refusing(place):
        if place.parent == source.parent:
            raise PermissionError(13, "Permission denied")
        return real(place)

    monkeypatch.setattr(letor_cache, "atomic_output", refusing)
    rg.read_letor(source, cache=True)
    rg.read_letor(source, cache=True)
    assert len(reads) == 1
    assert os.listdir(source.parent) == [source.name]
    assert len(os.listdir(tmp_path / "home" / "rankgrove")) == 1


def test_nowhere_to_keep_it(source, reads, monkeypatch):
    def refusing(place):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(letor_cache, "atomic_output", refusing)
    assert_is(rg.read_letor(source, cache=True), oracle.parse(ROWS.encode()))


def test_errors_are_as_without(source):
    source.write_text("1 qid:1 0:1\n")
    with pytest.raises(rg.ParseError, match="zero_based"):
        rg.read_letor(source, cache=True)
    with pytest.raises(rg.ParseError, match="no such file"):
        rg.read_letor(source.with_name("nowhere"), cache=True)
    assert os.listdir(source.parent) == [source.name]


@pytest.mark.slow
def test_processes_at_once(source):
    program = (
        "import sys, rankgrove as rg\n"
        "for _ in range(20): assert rg.read_letor(sys.argv[1], cache=True).n_rows == 200\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(source)]) for _ in range(2)]
    deadline = time.monotonic() + 50
    while any(process.poll() is None for process in running) and time.monotonic() < deadline:
        os.utime(source)  # so that copies are written again and again
        time.sleep(0.01)
    assert [process.wait(timeout=10) for process in running] == [0, 0]
    left = [name for name in os.listdir(source.parent) if name.startswith(".")]
    assert left == []
