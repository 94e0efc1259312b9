"""Click logs from files and data frames, and the messages about bad ones."""

from __future__ import annotations

import gzip
import random

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg

TEXT = """session,query,document,position,click,device
1,shoes,007,1,0,pc
1,shoes,7,2,1,pc
2,"hats, red",7,1,1,tv
2,"hats, red",9,2,0,tv
"""


def same(a, b):
    """Whether two logs hold the same impressions, with ids as texts."""
    for log in (a, b):
        rows = [
            (str(s), str(q), str(d), p, c)
            for s, q, d, p, c in zip(
                log.session_ids[log.session_of].tolist(),
                log.query_ids[log.session_query[log.session_of]].tolist(),
                log.document_ids[log.pair_document[log.pair]].tolist(),
                log.position.tolist(),
                log.click.tolist(),
                strict=True,
            )
        ]
        if log is a:
            first = rows
    return first == rows


def message_about(path):
    """Read a file; return the message if it is refused, or its name."""
    try:
        log = rg.read_clicks(path)
    except rg.RankgroveError as error:
        return str(error)
    return str(path) if log.n_sessions > 1 else "one session"


def written(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.tsv"])
def test_text(tmp_path, name):
    text = TEXT if "csv" in name else TEXT.replace('"hats, red"', "hats red").replace(",", "\t")
    log = rg.read_clicks(written(tmp_path, text, name), context="device")
    assert log.session_ids.tolist() == [1, 2]
    assert log.document_ids.tolist() == ["007", "7", "9"]
    assert log.contexts["device"].names == ("pc", "tv")
    assert log.click.tolist() == [False, True, True, False]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "arrow"])
def test_written_and_read_again(tmp_path, ending):
    log = rg.ClickLog(
        [1, 1, 2], ["a b", "a b", "é,\t"], ["x", 'y"', "x"], [1, 2, 1], [0, 1, 0],
        dwell=[1.5, float("nan"), 0], time=[5, 5, 9], client=["u", "u", "v"],
        context={"device": ["tv", "tv", "pc"]},
    )  # fmt: skip
    path = tmp_path / f"log.{ending}"
    if ending == "tsv":  # cells with tabs are quoted
        assert log.query_ids[1] == "é,\t"
    log.write(path)
    again = rg.read_clicks(path, context=["device"])
    assert again.n_sessions == 2
    if ending.startswith(("csv", "tsv")):
        assert again.query_ids.tolist() == ["a b", "é,"]  # spaces around ids are left out
    else:
        assert same(log, again)
    assert again.session_time.tolist() == [5, 9]
    assert again.dwell[0] == 1.5
    assert again.client_ids.tolist() == ["u", "v"]
    assert again.contexts["device"].names == ("pc", "tv")
    log.write(path)
    first = path.read_bytes()
    log.write(path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("kind", [pandas.DataFrame, polars.DataFrame, pyarrow.table, dict])
def test_frames(kind):
    columns = {"visit": [1, 1, 2], "q": ["a", "a", "b"], "d": [7, 8, 7], "rank": [0, 1, 0]}
    columns |= {"clicked": [False, True, False], "device": ["tv", "tv", "pc"]}
    log = rg.read_clicks(
        kind(columns), session="visit", query="q", document="d", position="rank",
        click="clicked", context=["device"], first_position=0,
    )  # fmt: skip
    assert log.position.tolist() == [1, 2, 1]
    assert log.document_ids.tolist() == [7, 8]
    assert log.contexts["device"].codes.tolist() == [1, 0]


LINES = TEXT.splitlines()
BAD = {
    "no column": (TEXT.replace("position", "rank"), r"no column 'position' for the position"),
    "columns named": (TEXT.replace("click", "clik"), r"columns are 'session', 'query', 'document'"),
    "zero": (TEXT.replace(",1,0,pc", ",0,0,pc"), r"log.csv:2: .*Got 0 in row 0.*first_position=0"),
    "far": (TEXT.replace("9,2,0", "9,20000,0"), r"log.csv:5: .*10,000. Got 20000"),
    "twice": (TEXT.replace("9,2,0", "9,1,0"), r"log.csv:5: .*position 1 twice, in the rows 2 and"),
    "repeat": (TEXT.replace("9,2,0", "7,2,0"), r"log.csv:5: .*document '7' twice.*duplicates='mer"),
    "no id": (TEXT.replace("7,2,1", ",2,1"), r"log.csv:3: document is empty in row 1"),
    "no place": (TEXT.replace("7,2,1", "7,,1"), r"log.csv:3: position is missing in row 1"),
    "no click": (TEXT.replace("9,2,0", "9,2,"), r"log.csv:5: click is missing in row 3"),
    "clicks": (TEXT.replace("9,2,0", "9,2,3"), r"log.csv:5: Clicks must be 0 or 1. Got 3"),
    "words": (TEXT.replace("9,2,0", "9,2,no"), r"Clicks must be booleans, or 0 and 1"),
    "one session": ("\n".join(LINES[:3]) + "\n", r"All rows are of one session"),
    "only clicks": (TEXT.replace(",0,pc", ",1,pc").replace(",0,tv", ",1,tv"), r"All 4 rows are cl"),
    "none": (TEXT.replace(",1,pc", ",0,pc").replace(",1,tv", ",0,tv"), r"None of the 4 rows is a"),
    "header": (LINES[0] + "\n", r"at least one impression"),
    "empty": ("", r"log.csv: "),
    "semicolons": (TEXT.replace(",", ";"), r"semicolons and no commas"),
    "ragged": (TEXT + "1,2\n", r"log.csv:6: "),
    "names": (TEXT.replace("device", "click"), r"two columns named 'click'"),
    "device": (TEXT.replace("1,0,pc", "1,0,tv"), r"log.csv:3: the context 'device' must be the sa"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    text, message = BAD[name]
    with pytest.raises(rg.ParseError, match=message):
        rg.read_clicks(written(tmp_path, text), context=[] if name == "names" else ["device"])


def test_other_mistakes(tmp_path):
    with pytest.raises(rg.MissingFileError):
        rg.read_clicks(tmp_path / "no.csv")
    with pytest.raises(rg.ParseError, match="must end in"):
        rg.read_clicks(written(tmp_path, TEXT, "log.txt"))
    with pytest.raises(rg.DataError, match="must be a pandas, polars or pyarrow table"):
        rg.read_clicks(3)
    with pytest.raises(rg.ParameterError, match=r"'first_position' parameter .* 0 or 1\. Got 2"):
        rg.read_clicks({}, first_position=2)
    with pytest.raises(rg.DataError, match=r"no column 'page' for a context"):
        rg.read_clicks(written(tmp_path, TEXT), context=["page"])
    with pytest.raises(rg.DataError, match="name of a click log must end in"):
        rg.ClickLog([1], [1], [1], [1], [1]).write(tmp_path / "log.txt")


def test_damaged_files(tmp_path):
    """Cut and changed files are read, or refused with a message."""
    log = rg.read_clicks(written(tmp_path, TEXT * 1))
    draw = random.Random(1)
    for ending in ("csv", "csv.gz", "parquet", "arrow"):
        path = tmp_path / f"good.{ending}"
        log.write(path)
        good = path.read_bytes()
        for k in range(40):
            bad = bytearray(good)
            if k % 2:
                del bad[draw.randrange(len(bad)) :]
            else:
                bad[draw.randrange(len(bad))] = draw.randrange(256)
            path.write_bytes(bytes(bad))
            assert str(path) in message_about(path)


cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=6)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(cells, cells, cells, cells, cells), max_size=6))
def test_any_text_is_read_or_refused(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    lines = ["session,query,document,position,click", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    assert str(path) in message_about(path)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TEXT, encoding="utf-8-sig")
    (tmp_path / "plain.csv").write_text(TEXT)
    log, plain = rg.read_clicks(path), rg.read_clicks(tmp_path / "plain.csv")
    np.testing.assert_array_equal(log.session_ids, plain.session_ids)


def test_all_missing_columns_are_named_with_the_remedy():
    table = {"session": [1, 2], "query": ["a", "b"], "doc": ["x", "y"], "rank": [1, 1]}
    with pytest.raises(rg.DataError, match="no columns 'document', 'position', 'click'") as found:
        rg.read_clicks(table)
    assert "document=..., position=..., click=..." in str(found.value)
    assert "--columns document=NAME,position=NAME,click=NAME" in str(found.value)


def test_other_encodings_are_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TEXT.replace("7,2,1", "é,2,1"), encoding="latin-1")
    with pytest.raises(rg.ParseError, match=r"not UTF-8 text.*iconv"):
        rg.read_clicks(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": ["1", "2", "1", "2"]}, "the text '1' in row 0: convert"),
        ({"time": ["1 May", "x", "y", "z"]}, "time must have .* Got '1 May' in row 0"),
        ({"document": ["x", "", "x", "y"]}, "document is empty in row 1"),
    ],
)
def test_texts_in_frames(change, message):
    table = {"session": [1, 1, 2, 2], "query": ["a"] * 4, "document": ["x", "y"] * 2}
    table |= {"position": [1, 2, 1, 2], "click": [0, 1, 0, 0]} | change
    with pytest.raises(rg.DataError, match=message):
        rg.read_clicks({name: np.array(column) for name, column in table.items()})


def test_positions_from_1_are_not_read_as_positions_from_0():
    table = {"session": [1, 1, 2, 2], "query": ["a"] * 4, "document": ["x", "y"] * 2}
    table |= {"position": [1, 2, 1, 2], "click": [0, 1, 0, 0]}
    with pytest.raises(rg.DataError, match="No document is at position 0"):
        rg.read_clicks(table, first_position=0)


def test_positions_without_impressions_have_no_rate():
    log = rg.ClickLog([1, 2], ["a", "a"], ["x", "y"], [2, 2], [1, 0])
    assert "nan" not in str(log.summary())
    assert "nan" not in log.summary()._repr_html_()
