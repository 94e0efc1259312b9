"""Columns of arrow tables that are damaged or empty."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg

pyarrow = pytest.importorskip("pyarrow")


def columns(**changed):
    plain = {"session": [1, 1, 2], "query": ["a"] * 3, "document": ["x", "y", "x"]}
    return pyarrow.table(plain | {"position": [1, 2, 1], "click": [1, 0, 0]} | changed)


def test_codes_beyond_the_dictionary():
    codes = pyarrow.array(np.array([0, 1, 2], np.int32))
    damaged = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["x", "y"]), safe=False)
    with pytest.raises(rg.DataError, match="codes of 2 values, and the code 2: the column is dam"):
        rg.read_clicks(columns(document=damaged))


def test_a_table_without_rows():
    with pytest.raises(rg.DataError, match="needs at least one impression"):
        rg.read_clicks(columns().slice(0, 0))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2,a,y,first,0", r"log\.csv:5: Positions must be whole numbers from 1\. Got 'first'"),
        ("2,a,y,2,yes", r"log\.csv:5: Clicks must be booleans, or 0 and 1\. Got 'yes' in row 3"),
    ],
)
def test_texts_where_numbers_should_be(tmp_path, line, message):
    head = "session,query,document,position,click\n1,a,x,1,1\n1,a,y,2,0\n2,a,x,1,0\n"
    (tmp_path / "log.csv").write_text(f"{head}{line}\n")
    with pytest.raises(rg.ParseError, match=message):
        rg.read_clicks(tmp_path / "log.csv")
