"""Every mistake in a LETOR file has its own message, with its line; no bytes break the reader."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.data import letor_parse
from tests.data.test_letor import ROWS, assert_is, expected, write

GOOD = b"1 qid:1 1:0.5 2:1\n# a comment\n\n0 qid:1 1:2\n"  # four lines
AFTER = b"\n2 qid:2 1:1 2:3\n"

MISTAKES = {
    "label-word": (b"good qid:1 1:1", "the label 'good' is not a number"),
    "label-missing": (b"qid:1 1:1", "the label 'qid:1' is not a number.*label comes first"),
    "label-nan": (b"nan qid:1 1:1", "the label 'nan' is not a finite number"),
    "label-inf": (b"-inf qid:1 1:1", "the label '-inf' is not a finite number"),
    "label-huge": (b"1e999 qid:1 1:1", "the label '1e999' is not a finite number"),
    "label-hex": (b"0x1 qid:1 1:1", "the label '0x1' is not a number"),
    "label-underscore": (b"1_0 qid:1 1:1", "the label '1_0' is not a number"),
    "qid-missing": (b"1 1:1 2:2", "no query id, but there are rows with one before it"),
    "qid-empty": (b"1 qid: 1:1", "'qid:' has no query id after it"),
    "qid-late": (b"1 1:1 qid:2 2:2", "'qid:2' comes after '1:1'.*qid:ID as the second token"),
    "qid-second": (b"1 qid:1 qid:2 1:1", "'qid:2' is a second query id in one row, after 'qid:1'"),
    "qid-second-late": (b"1 qid:1 1:1 QID:2", "'QID:2' is a second query id in one row"),
    "qid-upper": (b"1 QID:1 1:1", "'QID:1' is not one. Write qid: in lower case"),
    "qid-in-comment": (b"1 1:1 # qid:2", "rows with one before it"),
    "qid-bytes": (b"1 qid:\xff\xfe 1:1", "query id .* is not text"),
    "index-zero": (b"1 qid:1 0:1", "'0:1' is 0, and features count from 1.*zero_based=True"),
    "index-negative": (b"1 qid:1 -3:1", "index in '-3:1' is negative"),
    "index-real": (b"1 qid:1 1.5:1", "index in '1.5:1' is not a whole number"),
    "index-none": (b"1 qid:1 :1", "index in ':1' is not a whole number"),
    "index-large": (b"1 qid:1 2147483648:1", "'2147483648:1' is too large"),
    "index-larger": (b"1 qid:1 99999999999999999999999:1", "is too large"),
    "twice": (b"1 qid:1 1:1 2:2 2:3", "feature 2 appears twice in one row"),
    "twice-apart": (b"1 qid:1 3:1 1:2 2:3 3:1", "feature 3 appears twice in one row"),
    "twice-zero": (b"1 qid:1 3:0 1:0 3:0", "feature 3 appears twice in one row"),
    "no-colon": (b"1 qid:1 1:1 0.25", "'0.25' has no colon"),
    "no-value": (b"1 qid:1 1: 2:1", "'1:' has no value"),
    "value-word": (b"1 qid:1 1:abc", "the value of '1:abc' is not a number"),
    "value-hex": (b"1 qid:1 1:0x10", "the value of '1:0x10' is not a number"),
    "value-underscore": (b"1 qid:1 1:1_0", "the value of '1:1_0' is not a number"),
    "value-two-points": (b"1 qid:1 1:1.2.3", "the value of '1:1.2.3' is not a number"),
    "value-two-colons": (b"1 qid:1 1:2:3", "the value of '1:2:3' is not a number"),
    "value-bare-e": (b"1 qid:1 1:1e", "the value of '1:1e' is not a number"),
    "value-sign": (b"1 qid:1 1:-", "the value of '1:-' is not a number"),
    "value-point": (b"1 qid:1 1:.", "the value of '1:.' is not a number"),
    "value-minus-null": (b"1 qid:1 1:-NULL", "the value of '1:-NULL' is not a number"),
    "value-huge": (b"1 qid:1 1:1e39", "value of '1:1e39' is too large for float32"),
    "value-just-huge": (b"1 qid:1 1:3.4028235677973367e38", "is too large for float32"),
    "nul": (b"1 qid:1 1:\x000", "bytes that are not text"),
    "not-utf8": (b"\x89PNG\r", "bytes that are not text"),
    "latin-comment": (b"good qid:1 1:1 # caf\xe9", "the label 'good' is not a number"),
    "bare-return": (b"1 qid:1 1:1\r0 qid:1 1:2", "rows end in a carriage return without a line"),
    "bare-return-no-qid": (b"1 1:1\r0 1:2", "rows end in a carriage return without a line"),
    "return-in-comment": (b"1 qid:1 1:1 # a\rb", "there is a carriage return inside a comment"),
    "return-after-hash": (b"#\rx", "there is a carriage return inside a comment"),
    "row-lost-in-comment": (b"1 qid:1 1:1 #docid = a\r0 qid:1 1:2", "rows end in a carriage"),
    "row-lost-after-comment-line": (b"# x\r0 qid:1 1:2", "rows end in a carriage return without"),
    "nul-qid": (b"1 qid:a\x00 1:1", "bytes that are not text"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 10_000])
def test_message_and_line(tmp_path, monkeypatch, name, sparse, chunk_bytes):
    monkeypatch.setattr(letor_parse, "_chunk_bytes", lambda *_: chunk_bytes)
    line, message = MISTAKES[name]
    last = b"\nnonsense"  # a later mistake does not hide the first
    if name == "qid-bytes":  # found when the rows are read
        last = b""
    for text in (GOOD + line + AFTER + last, GOOD + line, gzip.compress(GOOD + line + AFTER)):
        with pytest.raises(rg.ParseError, match=message) as caught:
            rg.read_letor(write(tmp_path, text), sparse=sparse)
        assert caught.value.line == 5
        assert caught.value.path == tmp_path / "data.txt"
        assert len(caught.value.reason) < 300


def test_long_tokens_are_cut(tmp_path):
    with pytest.raises(rg.ParseError) as caught:
        rg.read_letor(write(tmp_path, b"1 qid:1 1:" + b"x" * 10_000_000))
    assert len(str(caught.value)) < 400


def test_no_qid_anywhere(tmp_path):
    with pytest.raises(rg.ParseError, match=r"no query id.*query_file=") as caught:
        rg.read_letor(write(tmp_path, "# head\n1 1:1\n2 1:2\n"))
    assert caught.value.line == 2


def test_qid_only_on_later_rows(tmp_path):
    with pytest.raises(rg.ParseError, match="with one after it, from line 2") as caught:
        rg.read_letor(write(tmp_path, "1 1:1\n2 qid:1 1:2\n"))
    assert caught.value.line == 1


def test_qid_and_side_file_contradict(tmp_path):
    side = write(tmp_path, "2\n", "sizes")
    text = "1 1:1\n2 qid:1 1:2\n"
    with pytest.raises(rg.ParseError, match=r"its own query id.*Leave query_file out") as caught:
        rg.read_letor(write(tmp_path, text), query_file=side)
    assert caught.value.line == 2
    write(tmp_path, "2\n", "data.txt.query")
    with pytest.raises(rg.ParseError, match="rows before it have none") as caught:
        rg.read_letor(write(tmp_path, text))
    assert caught.value.line == 2


def test_second_file_of_another_kind(tmp_path):
    one, two = write(tmp_path, "1 qid:1 1:1\n", "one"), write(tmp_path, "1 1:1\n", "two")
    write(tmp_path, "1\n", "two.query")
    with pytest.raises(rg.ParseError, match="no query id") as caught:
        rg.read_letor([one, two])
    assert caught.value.path == two
    with pytest.raises(rg.ParseError) as caught:
        rg.read_letor([one, write(tmp_path, "\n1 qid:1 0:1", "three")])
    assert (caught.value.path, caught.value.line) == (tmp_path / "three", 2)


@pytest.mark.parametrize("text", [b"\n \n", b"# nothing\n", b"#", b"\xef\xbb\xbf", b"\r\n"])
def test_no_rows(tmp_path, text):
    with pytest.raises(rg.ParseError, match="no data rows") as caught:
        rg.read_letor(write(tmp_path, text))
    assert caught.value.line is None


def test_what_stands_there_instead_of_rows(tmp_path):
    with pytest.raises(rg.ParseError, match=r"only comments\. Expected rows"):
        rg.read_letor(write(tmp_path, "# one\n\n# two\n"))
    with pytest.raises(rg.ParseError, match=r"only empty lines\. Expected rows"):
        rg.read_letor(write(tmp_path, "\n \n"))


@pytest.mark.parametrize("row", [b"1 qid:1 1:1", b"1 qid:1 1:1 #a", b"1 1:1"])
def test_rows_that_end_in_carriage_returns_alone(tmp_path, row):
    # Where rows have comments, all but the first would be lost in the first one's.
    with pytest.raises(rg.ParseError, match="carriage return without a line feed") as caught:
        rg.read_letor(write(tmp_path, b"\r".join([row, row, b""])))
    assert caught.value.line == 1


def test_late_and_upper_case_qids_beside_a_side_file(tmp_path):
    write(tmp_path, "1\n", "data.txt.query")
    with pytest.raises(rg.ParseError, match="'qid:2' comes after a feature"):
        rg.read_letor(write(tmp_path, "1 1:1 qid:2\n"))
    with pytest.raises(
        rg.ParseError, match=r"'QID:2' is not a query id\. Write qid: in lower case"
    ):
        rg.read_letor(write(tmp_path, "1 QID:2 1:1\n"))


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("path", [".", "/", [".", "."], "..", Path()])
def test_folders(path, cache):
    with pytest.raises(rg.ParseError, match="this is a folder"):
        rg.read_letor(path, cache=cache)


@pytest.mark.parametrize("options", [{}, {"cache": True}])
def test_empty_names(tmp_path, options):
    for path in ("", [""]):
        with pytest.raises(rg.ParameterError, match="Got '' instead, which is not the name"):
            rg.read_letor(path, **options)
    with pytest.raises(rg.ParameterError, match=r"'query_file' parameter.*not the name of a file"):
        rg.read_letor(write(tmp_path, "1 1:1\n"), query_file="")


def test_no_file(tmp_path):
    with pytest.raises(rg.ParseError, match="there is no such file"):
        rg.read_letor(tmp_path / "nowhere")
    with pytest.raises(rg.ParseError, match="this is a folder"):
        rg.read_letor(tmp_path)
    with pytest.raises(rg.ParseError, match="the file is empty"):
        rg.read_letor(write(tmp_path, b""))
    with pytest.raises(rg.ParseError, match="the file is empty"):
        rg.read_letor(write(tmp_path, gzip.compress(b"")))
    with pytest.raises(rg.ParseError, match=r"cannot be read|no such file"):
        rg.read_letor("a\0b")
    if os.path.exists("/dev/null"):
        with pytest.raises(rg.ParseError, match="device"):
            rg.read_letor("/dev/null")


def test_damaged_gzip(tmp_path):
    packed = gzip.compress(ROWS.encode())
    for end in (3, 12, len(packed) // 2, len(packed) - 1):
        with pytest.raises(rg.ParseError, match="gzip file is truncated"):
            rg.read_letor(write(tmp_path, packed[:end]))
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 0x55
    with pytest.raises(rg.ParseError, match="gzip file is corrupt"):
        rg.read_letor(write(tmp_path, bytes(broken)))
    with pytest.raises(rg.ParseError, match="gzip file is corrupt"):
        rg.read_letor(write(tmp_path, packed + b"more"))


def test_utf16_and_byte_order_mark(tmp_path):
    with pytest.raises(rg.ParseError, match=r"not text.*UTF-16"):
        rg.read_letor(write(tmp_path, GOOD.decode().encode("utf-16")))
    marked = b"\xef\xbb\xbf" + GOOD
    assert_is(rg.read_letor(write(tmp_path, marked)), expected(marked)[0])


def _mutations(rng: np.random.Generator, text: bytes) -> bytes:
    """The text with a few bytes changed, inserted, deleted or moved, or cut off."""
    alphabet = b"0123456789:. #\n\r\t-+eEqidnaNUL\x00\xff"
    out = bytearray(text)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(out) + 1))
        to = min(len(out), at + int(rng.integers(1, 6)))
        what = rng.integers(0, 5)
        letters = bytes(rng.choice(list(alphabet), to - at))
        if what == 0:
            out[at:to] = letters
        elif what == 1:
            out[at:at] = letters
        elif what == 2:
            del out[at:to]
        elif what == 3:
            out[at:at] = out[to : to + 20]
        else:
            del out[at + len(out) // 2 :]
    return bytes(out)


def _read(path: Path, **options) -> tuple[rg.QueryDataset | None, rg.ParseError | None]:
    try:
        return rg.read_letor(path, **options), None
    except rg.ParseError as error:
        return None, error


def _fuzz(tmp_path: Path, monkeypatch, text: bytes, n: int) -> tuple[int, int]:
    monkeypatch.setattr(letor_parse, "_DENSE_ALWAYS", 1 << 20)  # a wide row costs time
    rng = np.random.default_rng(5)
    good = bad = 0
    for turn in range(n):
        monkeypatch.setattr(letor_parse, "_chunk_bytes", lambda *_, t=turn: [50, 10**6][t % 2])
        mutant = _mutations(rng, text)
        path = write(tmp_path, mutant)
        rows, line = expected(mutant)
        data, error = _read(path, sparse=["auto", True][turn // 2 % 2])
        if data is not None:
            assert rows is not None, mutant
            if rows.n_features < 10_000:
                assert_is(data, rows)
            good += 1
            continue
        bad += 1
        # A query id that is not UTF-8 is refused; the oracle keeps bytes.
        if "Expected UTF-8." not in str(error):
            assert rows is None, (mutant, error)
            assert error.line == line, (mutant, error)
    return good, bad


@pytest.mark.slow
def test_mutated_text_is_read_or_refused(tmp_path, monkeypatch):
    text = b"".join(
        b"%d qid:%d %s # docid = D%d x\n" % (i % 3, i // 3, ROWS.encode().split(b"\n")[i][8:40], i)
        for i in range(8)
    )
    good, bad = _fuzz(tmp_path, monkeypatch, text + GOOD, 800)
    assert good > 80
    assert bad > 80


@pytest.mark.parametrize("name", ["mq2008/S1.txt.gz", "ohsumed-null/S1.txt.gz"])
def test_mutated_collections_are_read_or_refused(tmp_path, monkeypatch, data_dir, name):
    with gzip.open(data_dir / name) as file:
        text = b"".join(file.readline() for _ in range(3))
    good, bad = _fuzz(tmp_path, monkeypatch, text, 120)
    assert good > 10
    assert bad > 10


def test_mutated_gzip_is_read_or_refused(tmp_path):
    rng = np.random.default_rng(1)
    packed = gzip.compress(ROWS.encode())
    for _ in range(200):
        _read(write(tmp_path, _mutations(rng, packed)))  # whatever else it raises fails the test


def test_noise_is_refused(tmp_path):
    rng = np.random.default_rng(2)
    for size in (1, 10, 1000, 300_000):
        with pytest.raises(rg.ParseError):
            rg.read_letor(write(tmp_path, rng.bytes(size)))
