"""Reading LETOR text: what rows may look like, against the plain reader of tests/reference."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data import letor_parse
from tests.reference import letor as oracle

quick = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def write(folder: Path, text: str | bytes, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to the sign of zero; one NaN is like another."""
    both_nan = np.isnan(a) & np.isnan(b)
    return a.shape == b.shape and bool(((a.view(np.uint32) == b.view(np.uint32)) | both_nan).all())


def dense(data: rg.QueryDataset) -> np.ndarray:
    """The matrix of a data set; scipy's own todense() adds to +0 and so loses the sign of -0."""
    if not data.is_sparse:
        return data.X
    X = np.zeros(data.X.shape, np.float32)
    X[np.repeat(np.arange(data.n_rows), np.diff(data.X.indptr)), data.X.indices] = data.X.data
    return X


def assert_is(data: rg.QueryDataset, rows: oracle.Rows, absent: float = 0.0) -> None:
    assert same_bits(dense(data), rows.dense(absent))
    assert data.y.tolist() == rows.y
    assert [str(q) for q in data.qid.tolist()] == [q.decode() for q in rows.qid]
    assert list(dict.fromkeys(data.qid.tolist())) == data.query_ids.tolist()
    if any(rows.docid):
        assert data.docid.tolist() == rows.docid
    else:
        assert data.docid is None


@pytest.fixture(params=[None, 1, 40], ids=["whole", "line-a-chunk", "small-chunks"])
def chunk(request, monkeypatch):
    """Cut even small files, so that borders of chunks fall everywhere."""
    if request.param is not None:
        monkeypatch.setattr(letor_parse, "_chunk_bytes", lambda *_: request.param)
    return request.param


NUMBERS = [
    "0", "-0", "1", "7", "0.5", ".5", "1.", "+1", "-2.25", "1e3", "1E-3", "1e+2", "0.007477",
    "12345678", "0.1234567890123456789", "123456789012345678901234567890", "16777217",
    "16777216.000000000000000000000000001", "1e-45", "7e-46", "7.1e-46", "1e-50", "1e-400",
    "3.4028235e38", "3.40282356e38", "1.17549435e-38", "1.4e-45", "0e999", "00012.50", "nan",
    "NULL", "NaN", "null", "inf", "-INF", "Infinity", "+nan",
]  # fmt: skip
QIDS = st.sampled_from(["1", "2", "10", "q-7", "007", "-3", "ä", "a:b", "9223372036854775808"])
blanks = st.sampled_from([" ", "\t", "  ", " \t "])


@st.composite
def letor_text(draw) -> str:
    """A file with all the liberties of the format."""
    end = draw(st.sampled_from(["\n", "\r\n", " \r\n"]))
    numeric = draw(st.booleans())
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            lines.append(draw(st.sampled_from(["", "  ", "# only a comment 1:2", "\t#docid = x"])))
            continue
        indices = draw(st.lists(st.integers(1, 12), unique=True, max_size=8))
        if draw(st.booleans()):
            indices.sort()
        pairs = [f"{i}:{draw(st.sampled_from(NUMBERS))}" for i in indices]
        label = draw(st.sampled_from(["0", "2", "-1", "0.30000000000000004", "1e-3", "+4.", ".5"]))
        qid = str(draw(st.integers(0, 3))) if numeric else draw(QIDS)
        row = draw(st.sampled_from(["", " ", "\t"])) + label
        for token in [f"qid:{qid}", *pairs]:
            row += draw(blanks) + token
        row += draw(st.sampled_from(["", " ", "\t ", "#", " # x y ", " #docid = D-1 inc = 1",
                                     "#docid=é", " # a docid = b", "# mydocid = c", " # 7 # 8",
                                     "#docid =", " # docid"]))  # fmt: skip
        lines.append(row)
    text = end.join(lines)
    return text + (end if draw(st.booleans()) else "")


def expected(text: bytes) -> tuple[oracle.Rows | None, int | None]:
    """The rows the plain reader gives, or None and the line of the mistake it finds."""
    try:
        return oracle.parse(text), None
    except oracle.Mistake as mistake:
        return None, mistake.line


@quick
@given(text=letor_text(), sparse=st.sampled_from(["auto", True, False]), cut=st.booleans())
def test_agrees_with_the_plain_reader(tmp_path, text, sparse, cut):
    path = write(tmp_path, text)
    rows, line = expected(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(letor_parse, "_chunk_bytes", lambda *_: 30)
        if rows is None:
            with pytest.raises(rg.ParseError) as caught:
                rg.read_letor(path, sparse=sparse)
            assert caught.value.line == line
        else:
            assert_is(rg.read_letor(path, sparse=sparse), rows)
            assert_is(rg.read_letor(path, absent="missing"), rows, np.nan)


ROWS = "".join(
    f"{i % 3} qid:{i // 7} "
    + " ".join(f"{j}:{(i * j) % 11 / 7:.6f}" for j in range(1, 9) if (i + j) % 3)
    + (f" #docid = d{i}\n" if i % 2 else "\n")
    for i in range(200)
)


def test_threads_and_chunks_do_not_matter(tmp_path, chunk):
    path = write(tmp_path, ROWS)
    for n_threads in (1, 2):
        assert_is(rg.read_letor(path, n_threads=n_threads), oracle.parse(ROWS.encode()))


def test_a_wider_row_than_any_sampled_is_found(tmp_path, chunk, monkeypatch):
    monkeypatch.setattr(letor_parse, "_SAMPLE_LINES", 1)
    text = "0 qid:1 1:1\n" * 50 + "1 qid:1 9:3 2:5\n" + "0 qid:2 2:1\n"
    data = rg.read_letor(write(tmp_path, text))
    assert data.n_features == 9
    assert_is(data, oracle.parse(text.encode()))


def test_more_hard_numbers_than_expected(tmp_path, chunk):
    # Exactly half way between two float32 and written so that no double holds it.
    halves = [f"1.000000059604644775390625{'0' * k}1" for k in range(3)]
    text = "".join(f"0.1234567890123456789 qid:1 1:{halves[i % 3]} 2:-1e-46\n" for i in range(300))
    assert_is(rg.read_letor(write(tmp_path, text)), oracle.parse(text.encode()))
    assert_is(rg.read_letor(write(tmp_path, text), sparse=True), oracle.parse(text.encode()))


def test_gzip_is_known_by_its_content(tmp_path):
    whole = ROWS.encode()
    members = gzip.compress(whole[:1001]) + gzip.compress(whole[1001:]) + b"\0" * 20
    data = rg.read_letor(write(tmp_path, members, "no-suffix"))
    assert_is(data, oracle.parse(whole))
    assert_is(rg.read_letor(write(tmp_path, whole, "plain.gz")), oracle.parse(whole))


def test_several_files_are_one(tmp_path):
    first = write(tmp_path, "1 qid:a 1:1\n2 qid:b 2:2 # x", "one")  # no line feed at the end
    second = write(tmp_path, gzip.compress(b"3 qid:a 5:3\n"), "two")
    data = rg.read_letor([first, second])
    assert data.query_ids.tolist() == ["a", "b"]
    assert data.query_of_row.tolist() == [0, 1, 0]
    assert data.docid.tolist() == ["", "x", ""]
    assert data.X.tolist() == [[1, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 0, 0, 3]]


@pytest.mark.parametrize(
    ("tokens", "ids"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["1", "01"], ["1", "01"]),
        (["9223372036854775807"], [2**63 - 1]),
        (["9223372036854775808"], ["9223372036854775808"]),
        (["7", "x"], ["7", "x"]),
    ],
)
def test_query_ids_are_numbers_where_all_are(tmp_path, tokens, ids):
    data = rg.read_letor(write(tmp_path, "".join(f"0 qid:{t} 1:1\n" for t in tokens)))
    assert data.query_ids.tolist() == ids


def test_features_are_float32_contiguous_and_frozen(tmp_path):
    data = rg.read_letor(write(tmp_path, ROWS))
    assert data.features.dtype == np.float32
    assert data.features.flags.c_contiguous
    assert not data.features.flags.writeable
    assert data.y.dtype == np.float64
    assert data.query_of_row.dtype == np.int64


def test_zero_based_and_n_features(tmp_path):
    path = write(tmp_path, "1 qid:1 0:5 2:6\n")
    assert rg.read_letor(path, zero_based=True).X.tolist() == [[5, 0, 6]]
    assert rg.read_letor(path, zero_based=True, n_features=5).X.tolist() == [[5, 0, 6, 0, 0]]
    sparse = rg.read_letor(path, zero_based=True, n_features=5, sparse=True)
    assert sparse.X.shape == (1, 5)
    with pytest.raises(rg.ParseError, match=r"'2:6' is beyond n_features=2") as caught:
        rg.read_letor(path, zero_based=True, n_features=2)
    assert caught.value.line == 1


def test_rows_without_features(tmp_path):
    assert rg.read_letor(write(tmp_path, "1 qid:1\n0 qid:1\n")).X.shape == (2, 0)


def test_wide_sparse_text_becomes_csr(tmp_path):
    text = "".join(f"0 qid:1 {1 + i * 1_000_003}:1 2000000000:2 7:0 5:{i}\n" for i in range(40))
    data = rg.read_letor(write(tmp_path, text))
    assert data.is_sparse
    assert data.X.shape == (40, 2_000_000_000)
    assert data.X[3, 4] == 3
    assert data.X[3, 3_000_009] == 1
    assert data.X.nnz == 40 * 3 - 1  # zeros are not stored
    assert data.X.has_sorted_indices
    with pytest.raises(rg.DataError, match="sparse=True"):
        rg.read_letor(tmp_path / "data.txt", absent="missing")
    with pytest.raises(rg.DataError, match="sparse=True"):
        rg.read_letor(tmp_path / "data.txt", sparse=False)


def test_long_unordered_sparse_row(tmp_path):
    order = np.random.default_rng(0).permutation(3000) + 1
    text = "0 qid:1 " + " ".join(f"{j}:{j % 7}" for j in order) + "\n"
    assert_is(rg.read_letor(write(tmp_path, text), sparse=True), oracle.parse(text.encode()))


class TestLightGBMForm:
    ROWS = "1 1:1\n0 2:2\n\n2 1:3 # z\n"

    def test_side_file_by_name(self, tmp_path):
        write(tmp_path, "2\n\n1\n", "rank.train.query")
        data = rg.read_letor(write(tmp_path, self.ROWS, "rank.train"))
        assert data.query_ids.tolist() == [1, 2]
        assert data.query_of_row.tolist() == [0, 0, 1]
        packed = write(tmp_path, gzip.compress(self.ROWS.encode()), "rank.train.gz")
        assert rg.read_letor(packed).query_ids.tolist() == [1, 2]
        write(tmp_path, gzip.compress(b"1\n1\n1"), "rank.train.query.gz")
        assert rg.read_letor(packed).query_ids.tolist() == [1, 2, 3]

    def test_side_file_named_and_several(self, tmp_path):
        one, two = write(tmp_path, self.ROWS, "a"), write(tmp_path, self.ROWS, "b")
        sizes, more = write(tmp_path, "2\r\n1", "x"), write(tmp_path, "3", "y")
        data = rg.read_letor([one, two], query_file=[sizes, more])
        assert data.query_ids.tolist() == [1, 2, 3]
        assert data.query_of_row.tolist() == [0, 0, 1, 2, 2, 2]
        with pytest.raises(rg.ParameterError, match="one file for every path"):
            rg.read_letor([one, two], query_file=sizes)

    def test_qids_win_over_a_side_file_found_by_name(self, tmp_path):
        write(tmp_path, "1\n", "d.query")
        data = rg.read_letor(write(tmp_path, "0 qid:7 1:1\n0 qid:8 1:1\n", "d"))
        assert data.query_ids.tolist() == [7, 8]

    @pytest.mark.parametrize(
        ("sizes", "line", "message"),
        [
            ("2\n2\n", None, r"add up to 4, and .*rank has 3 rows"),
            ("2\nx\n", 2, "whole number of at least 1. Got 'x'"),
            ("2\n\n0\n", 3, "Got '0'"),
            ("-1\n", 1, "Got '-1'"),
            ("\n", None, "no group sizes"),
            ("", None, "empty"),
            ("9" * 23, 1, r"the group size '9{23}' is larger than the number of rows .*is 3"),
            ("1\n4\n", 2, "the group size '4' is larger than the number of rows"),
            ("0" * 20, 1, "whole number of at least 1"),
            ("9" * 9999, 1, "larger than the number of rows"),
        ],
    )
    def test_side_file_mistakes(self, tmp_path, sizes, line, message):
        side = write(tmp_path, sizes, "rank.query")
        with pytest.raises(rg.ParseError, match=message) as caught:
            rg.read_letor(write(tmp_path, self.ROWS, "rank"))
        assert caught.value.path == side
        assert caught.value.line == line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"absent": "nan"}, "'absent' parameter of read_letor must be one of 'zero', 'missing'"),
        ({"sparse": "yes"}, "'sparse' parameter"),
        ({"zero_based": 1}, "'zero_based' parameter"),
        ({"n_features": 0}, "'n_features' parameter"),
        ({"n_threads": 0}, "'n_threads' parameter"),
        ({"absent": "missing", "sparse": True}, "cannot combine absent='missing'"),
    ],
)
def test_parameters_are_checked(tmp_path, arguments, message):
    with pytest.raises(rg.ParameterError, match=message):
        rg.read_letor(write(tmp_path, ROWS), **arguments)


def test_path_is_checked():
    for path in (7, [], [1], None):
        with pytest.raises(rg.ParameterError, match="path or a list of paths"):
            rg.read_letor(path)
