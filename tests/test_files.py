"""Writing whole or not at all."""

from __future__ import annotations

import gzip
import os
import threading

import pytest

import rankgrove as rg
from rankgrove.files import atomic_output, write_atomically


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    model = rg.MART(n_trees=1, min_leaf=1).fit([[1.0], [2.0]], [0, 1], qid=[1, 1])
    with pytest.raises(rg.DataError, match=r"m\.rg cannot be written: the folder .*such does not"):
        model.save(tmp_path / "no" / "such" / "m.rg")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, "one")
    with pytest.raises(TypeError), atomic_output(path) as out:
        out.writelines([b"half", None])
    assert path.read_text() == "one"
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert os.listdir(tmp_path) == ["a.txt"]
    write_atomically(tmp_path / "a.gz", "packed")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"packed"
    for bad in (tmp_path, tmp_path / "no" / "a.txt"):
        with pytest.raises(rg.DataError, match=r"is a folder|cannot be written"):
            write_atomically(bad, "x")


def test_what_a_link_points_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    os.symlink("there/a.txt", tmp_path / "link")
    for text in ("one", "two"):
        write_atomically(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "a.txt").read_text() == text


def test_a_pipe_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_text()), daemon=True)
    reader.start()
    write_atomically(path, "through")
    reader.join(10)
    assert got == ["through"]
    assert path.is_fifo()
