"""CSV in blocks: the rows and types that pyarrow finds in the whole file."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data import text_stream
from rankgrove.data.csv_rows import row_blocks
from rankgrove.data.table_batches import TableFile

pyarrow = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")

CELLS = ["0", "1", "7", "00", "0x1F", "true", "False", "0.5", "1e3", "", "NA", "nan", " 2", "-1"]
CELLS += ["2020-01-01", "1000-01-01", "10:00:00", "2020-01-01 10:00:00", "2020-01-01 10:00:00.25"]
CELLS += ["2020-01-01 10:00:00Z", "2020-01-01 10:00:00.5Z", "x", '"1"', '"a,b"', '"a\nb"', 'a"b']
CELLS += ['"a""b"', '"a"b"', '"\n5,5\n"', "12345678901234567890"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


def whole(text: bytes, separator: str = ","):
    return csv.read_csv(
        io.BytesIO(text),
        csv.ReadOptions(use_threads=False, block_size=len(text) + 64),
        csv.ParseOptions(delimiter=separator),
    )


def in_blocks(path, n_bytes: int, piece: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_stream, "_PIECE", piece)
        tables = list(TableFile(path, None, [], n_bytes).tables(lambda *_: None))
    return pyarrow.concat_tables(tables) if tables else None


def check(path, text: bytes, n_bytes: int, piece: int) -> None:
    path.write_bytes(text)
    try:
        expected = whole(text)
    except pyarrow.ArrowInvalid:
        with pytest.raises(rg.ParseError):
            in_blocks(path, n_bytes, piece)
        return
    table = in_blocks(path, n_bytes, piece)
    if table is None:
        assert expected.num_rows == 0
    else:
        assert table.schema == expected.schema
        assert table.to_pydict() == expected.to_pydict()


@given(st.text('a1",\n\r', max_size=60), st.integers(1, 30), st.integers(1, 9))
@example('"x\n1,2\n",3\n4,5\n', 1, 1)
@example('a"b,1\n"c\n2,d",3\n', 1, 3)
@example('"a""\n""b",1\n', 2, 2)
def test_rows_of_any_text(folder, text, n_bytes, piece):
    check(folder / "any.csv", b"p,q\n" + text.encode(), n_bytes, piece)


@given(
    st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3), min_size=1, max_size=5),
    st.integers(1, 40),
    st.integers(1, 30),
)
@example([["0", "1"], ["true"]], 1, 1)
@example([["0", "7"], ["true"]], 1, 1)
@example([["true"], ["0"], ["00"]], 1, 1)
@example([["7"], ["0x1F"], ["0.5"]], 1, 1)
@example([["2020-01-01"], ["2020-01-01 10:00:00"], ["2020-01-01 10:00:00.25"]], 1, 1)
@example([["1000-01-01"], ["2020-01-01 10:00:00.25"]], 1, 1)
def test_types_of_any_cells(folder, runs, n_bytes, piece):
    """Cells of one kind are in rows next to each other, so that blocks differ."""
    cells = [cell for run in runs for cell in run]
    text = "p,q\n" + "".join(f"{cell},1\n" for cell in cells)
    check(folder / "types.csv", text.encode(), n_bytes, piece)


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7])
def test_a_block_ends_with_a_row(separator, piece):
    text = 'a,b\n"1\n2",3\n4"\n5,"x""\ny"\r\n\n"",z\n"end'.replace(",", separator).encode()
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    blocks = list(row_blocks(pieces, 1, separator))
    assert b"".join(blocks) == text
    rows = [b"a,b\n", b'"1\n2",3\n', b'4"\n', b'5,"x""\ny"\r\n', b"\n", b'"",z\n', b'"end']
    ends = {0}
    for row in rows:
        ends.add(max(ends) + len(row))
    place = 0
    for block in blocks:
        place += len(block)
        assert place in ends, block


def test_line_feeds_in_quotes_do_not_make_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgrove.rankers.trees.open_binned.LEAST_BLOCK", 20)
    monkeypatch.setattr(text_stream, "_PIECE", 20)
    path = tmp_path / "a.csv"
    rows = [f"{i // 10 + 1},{i % 3},{i * 0.5},d" for i in range(100)]
    rows[37] = '4,1,18.5,"a\n7,2,9.5,b"'
    path.write_text("\n".join(["qid,label,x,c", *rows]) + "\n")
    data = rg.open_binned(path, memory=1 << 16)
    assert data.n_rows == 100
    assert data.categories == rg.read_table(path).categories == {1: ("d", "a\n7,2,9.5,b")}


def test_lines_that_are_blank(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgrove.rankers.trees.open_binned.LEAST_BLOCK", 100)
    monkeypatch.setattr(text_stream, "_PIECE", 50)
    path = tmp_path / "a.csv"
    rows = "".join(f"{i // 10 + 1},{i % 3},{i * 0.5}\n" for i in range(100))
    for text in (
        "\n" * 500 + "qid,label,x\n" + rows,
        "\ufeff" + "\n" * 500 + "qid,label,x\n" + rows,
    ):
        path.write_text(text)
        assert rg.open_binned(path, memory=1 << 16).n_rows == 100
    path.write_text("\n" * 500)
    with pytest.raises(rg.ParseError, match="Empty CSV file"):
        rg.open_binned(path, memory=1 << 16)
    tabs = tmp_path / "a.tsv"
    tabs.write_text("qid\tlabel\tx\n" + rows.replace(",", "\t") + "\t\t\n" * 200)
    with pytest.raises(rg.ParseError, match=r"a.tsv:102"):
        rg.open_binned(tabs, memory=1 << 16)


def test_utf_16_is_refused_in_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("qid,label,x\n1,1,1\n".encode("utf-16"))
    for read in (rg.open_binned, rg.read_table):
        with pytest.raises(rg.ParseError, match=r"a.csv:1: this is UTF-16 text. Expected UTF-8"):
            read(path)
