"""Text as a stream: plain, gzip, zstd; blocks that end in a line feed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data.letor_source import read_bytes
from rankgrove.data.text_stream import open_stream

pyarrow = pytest.importorskip("pyarrow")
TEXT = b"".join(b"%d qid:%d 1:%d.5 #docid = d%d\n" % (i % 3, i // 7, i, i) for i in range(40_000))


def zstd(text: bytes) -> bytes:
    return pyarrow.compress(text, "zstd", asbytes=True)


def packed(folder: Path) -> dict[str, bytes]:
    half = len(TEXT) // 2
    return {
        "plain.txt": TEXT,
        "one.gz": gzip.compress(TEXT),
        "two.gz": gzip.compress(TEXT[:half]) + gzip.compress(TEXT[half:]) + bytes(100),
        "much.gz": gzip.compress(TEXT, 9),
        "one.zst": zstd(TEXT),
    }


def text_of(path: Path, n_bytes: int) -> list[bytes]:
    with open_stream(path) as stream:
        return list(stream.blocks(n_bytes))


@pytest.mark.parametrize("n_bytes", [1, 1000, 1 << 20, 1 << 30])
def test_blocks_are_the_text_and_end_in_line_feeds(tmp_path, n_bytes):
    for name, blob in packed(tmp_path).items():
        path = tmp_path / name
        path.write_bytes(blob)
        blocks = text_of(path, n_bytes)
        assert b"".join(blocks) == TEXT, name
        assert all(block.endswith(b"\n") for block in blocks), name
        assert bytes(read_bytes(path)) == TEXT, name


@given(st.binary(min_size=1, max_size=300), st.integers(1, 50))
def test_blocks_of_any_bytes(tmp_path_factory, blob, n_bytes):
    path = tmp_path_factory.mktemp("blocks") / "any.txt"
    path.write_bytes(b"x" + blob)
    blocks = text_of(path, n_bytes)
    assert b"".join(blocks) == b"x" + blob
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_text_that_expands_much_comes_in_small_pieces(tmp_path):
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(b"0 qid:1 1:0\n" * 2_000_000))
    with open_stream(path) as stream:
        sizes = [len(piece) for piece in stream.pieces()]
    assert sum(sizes) == 24_000_000
    assert max(sizes) <= 1 << 20


def test_read_letor_reads_zstd(tmp_path):
    data = rg.make_artificial(5, n_docs=4, n_features=3, seed=1)
    rg.write_letor(data, tmp_path / "data.txt")
    (tmp_path / "data.txt.zst").write_bytes(zstd((tmp_path / "data.txt").read_bytes()))
    again = rg.read_letor(tmp_path / "data.txt.zst")
    assert (again.X == data.X).all()


def test_damage_is_told(tmp_path):
    for name, blob in packed(tmp_path).items():
        if name == "plain.txt":
            continue
        path = tmp_path / name
        path.write_bytes(blob[: len(blob) // 2])
        with pytest.raises(rg.ParseError, match=r"truncated|corrupt"):
            text_of(path, 1000)
