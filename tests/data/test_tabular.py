from __future__ import annotations

import builtins
import decimal
import gzip
import tracemalloc

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import rankgrove as rg
from rankgrove.data.queries import QueryDataset
from rankgrove.data.tabular import dataset_from_frame, read_table
from rankgrove.errors import DataError, MissingExtraError, ParseError

COLUMNS = {
    "qid": ["a", "b", "a", "b"],
    "label": [0, 1, 2, 0],
    "count": [3, None, 5, 7],
    "score": [0.5, 1.5, None, 2.5],
    "title": [True, None, False, True],
    "doc": ["d1", "d2", None, "d4"],
    "w": [1.0, 2.0, 3.0, 4.0],
}
MIXED = {"mixed": ["1", "NA", "high", "low"]}
EXPECTED = np.array([[3, 0.5, 1], [np.nan, 1.5, np.nan], [5, np.nan, 0], [7, 2.5, 1]], np.float32)


def converted(columns, backend):
    """Return a frame of pandas' own types; pandas 2.2 tries whole numbers first, and warns."""
    with np.errstate(invalid="ignore"):
        return pandas.DataFrame(columns).convert_dtypes(dtype_backend=backend)


FRAMES = {
    "mapping": lambda c: c,
    "pandas": pandas.DataFrame,
    "pandas-nullable": lambda c: converted(c, "numpy_nullable"),
    "pandas-arrow": lambda c: converted(c, "pyarrow"),
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
}


@pytest.fixture(params=list(FRAMES))
def make(request):
    return FRAMES[request.param]


def test_a_text_column_of_a_table_that_is_scored():
    """The class is a public one, and the advice one that `predict` can follow."""
    frame = pandas.DataFrame({"bm25": [1.0, 2.0], "title": ["rain", "sun"]})
    model = rg.LambdaMART(n_trees=1).fit([[1.0, 2.0], [3.0, 4.0]], [0, 1], qid=[1, 1])
    with pytest.raises(
        rg.DataError, match=r"'title' holds .*, such as 'rain' in row 0: drop it"
    ) as e:
        model.predict(frame)
    assert type(e.value) is rg.DataError
    assert e.value.row == 0
    assert "--features" not in str(e.value)
    model = rg.LambdaMART(n_trees=1).fit(frame[["bm25"]], [0, 1], qid=[1, 1])
    with pytest.raises(rg.DataError, match=r"'title' holds .*: drop it"):
        model.predict(frame)


def test_frames_of_all_kinds(make):
    data = dataset_from_frame(make(COLUMNS), weight="w", docid="doc")
    assert data.feature_names == ("count", "score", "title")
    assert data.X.dtype == np.float32
    assert np.array_equal(data.X, EXPECTED, equal_nan=True)
    assert data.y.tolist() == [0, 1, 2, 0]
    assert data.qid.tolist() == ["a", "b", "a", "b"]
    assert data.docid.tolist() == ["d1", "d2", "", "d4"]
    assert data.weight.tolist() == [1, 2, 3, 4]


def test_named_features_in_their_order(make):
    data = QueryDataset.from_frame(make(COLUMNS), features=["w", "count"])
    assert data.feature_names == ("w", "count")
    assert data.X[0].tolist() == [1, 3]


def test_a_column_named_docid_holds_the_document_ids(make):
    frame = make({"docid": ["a", "b"], "qid": [1, 1], "label": [0, 1], "x": [2, 3], "y": [4, 5]})
    data = dataset_from_frame(frame)
    assert data.docid.tolist() == ["a", "b"]
    assert data.feature_names == ("x", "y")
    assert dataset_from_frame(frame, features=["y"]).docid.tolist() == ["a", "b"]
    numbers = make({"docid": [7, 8], "qid": [1, 1], "label": [0, 1], "x": [2, 3]})
    # Unless it is named for something else.
    assert dataset_from_frame(numbers, features=["x", "docid"]).X.tolist() == [[2, 7], [3, 8]]
    assert dataset_from_frame(numbers, features=["x", "docid"]).docid is None
    assert dataset_from_frame(numbers, qid="docid", features="x").qid.tolist() == [7, 8]
    assert dataset_from_frame(numbers, docid="x").docid.tolist() == ["2", "3"]


def test_whole_number_ids_stay_numbers(make):
    data = dataset_from_frame(make({"qid": [7, 7, 9], "label": [0.5, 1, 2], "x": [1, 2, 3]}))
    assert data.query_ids.tolist() == [7, 9]
    assert data.y.tolist() == [0.5, 1, 2]


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (
            {"doc": ["1", "d1", "2", "3"]},
            {},
            "Features must be numbers. The column 'doc' holds .*'d1' in row 1.*'categorical'",
        ),
        ({}, {"label": "lable"}, r"no column 'lable' for the label \(did you mean 'label'\?\)"),
        ({}, {"qid": "query"}, "no column 'query' for the qid.*columns are 'qid', 'label'"),
        ({}, {"features": ["scor"]}, "for a feature.*did you mean 'score'"),
        ({}, {"label": "doc", "features": ["w"]}, "Labels must be numbers. The column 'doc'"),
        (
            MIXED,
            {"label": "mixed", "features": ["w"]},
            "column 'mixed' holds .*'high' in row 2: write",
        ),
        ({}, {"weight": "doc", "features": ["w"]}, "Weights must be numbers"),
        ({"qid": ["a", None, "a", "b"]}, {"features": ["w"]}, "column 'qid' has none in row 1"),
        ({"qid": [1, None, 1, 2]}, {"features": ["w"]}, "column 'qid' has none in row 1"),
        ({"label": [1, None, 1, 2]}, {"features": ["w"]}, "finite numbers. Got nan at row 1"),
        ({"w": [1e300, 1, 1, 1]}, {"features": ["w"]}, "column 'w' has 1e.300 in row 0: scale it"),
    ],
)
def test_bad_columns(make, changes, options, message):
    with pytest.raises(DataError, match=message):
        dataset_from_frame(make(COLUMNS | changes), **options)


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame({"qid": [1], "label": [1], "c": pandas.to_datetime(["2024-01-01"])}),
        polars.DataFrame({"qid": [1], "label": [1], "c": [[1, 2]]}),
        pyarrow.table({"qid": [1], "label": [1], "c": pyarrow.array([1], pyarrow.timestamp("s"))}),
    ],
)
def test_dates_and_lists_are_neither_numbers_nor_categories(frame):
    with pytest.raises(DataError, match="The column 'c' holds"):
        dataset_from_frame(frame)


@pytest.mark.parametrize(
    "kind", [pandas.Categorical, lambda v: polars.Series(v).cast(polars.Categorical)]
)
def test_categories_may_be_ids(kind):
    frame = {"qid": kind(["u", "v", "u"]), "label": [0, 1, 2]}
    table = pandas.DataFrame(frame) if kind is pandas.Categorical else polars.DataFrame(frame)
    assert dataset_from_frame(table).query_ids.tolist() == ["u", "v"]
    arrow = pyarrow.table({"qid": pyarrow.array(["u", "v"]).dictionary_encode(), "label": [0, 1]})
    assert dataset_from_frame(arrow).query_ids.tolist() == ["u", "v"]


def test_dictionary_encoded_numbers_are_numbers():
    column = pyarrow.array([4, None, 4]).dictionary_encode()
    data = dataset_from_frame(pyarrow.table({"qid": [1] * 3, "label": [0, 1, 2], "d": column}))
    assert np.array_equal(data.X[:, 0], np.array([4, np.nan, 4], np.float32), equal_nan=True)


def test_decimals_are_numbers():
    values = [decimal.Decimal("1.5"), None]
    for frame in (pyarrow.table, polars.DataFrame, pandas.DataFrame):
        data = dataset_from_frame(frame({"qid": [1, 1], "label": [0, 1], "d": values}))
        assert np.array_equal(data.X[:, 0], np.array([1.5, np.nan], np.float32), equal_nan=True)


def test_not_tables():
    with pytest.raises(DataError, match=r"call its collect\(\) first"):
        dataset_from_frame(polars.LazyFrame(COLUMNS))
    with pytest.raises(DataError, match="Got list"):
        dataset_from_frame([1, 2])
    twice = pandas.DataFrame([[1, 2, 3, 4]], columns=["qid", "label", "x", "x"])
    with pytest.raises(DataError, match="two columns named 'x'"):
        dataset_from_frame(twice)
    with pytest.raises(DataError, match="'x' has 1 row, the label 2"):
        dataset_from_frame({"qid": [1, 1], "label": [0, 1], "x": [1.0]})


def test_no_float64_copy_of_everything():
    n, m = 20_000, 60
    frame = pandas.DataFrame({f"x{j}": np.zeros(n) for j in range(m)})
    frame["qid"], frame["label"] = np.arange(n) // 10, 0.0
    tracemalloc.start()
    dataset_from_frame(frame)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.6 * n * m * 4


# -- files ------------------------------------------------------------------------------------


@pytest.fixture
def table():
    return pyarrow.table(COLUMNS)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz", "t.tsv", "T.CSV"])
def test_files(tmp_path, table, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, path)
    else:
        delimiter = "\t" if name.endswith(".tsv") else ","
        plain = tmp_path / "plain"
        pyarrow.csv.write_csv(table, plain, pyarrow.csv.WriteOptions(delimiter=delimiter))
        text = plain.read_bytes()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    data = read_table(path, weight="w", docid="doc")
    assert np.array_equal(data.X, EXPECTED, equal_nan=True)
    assert data.docid.tolist() == ["d1", "d2", "", "d4"]
    few = read_table(str(path), features=["score"], docid="doc")
    assert few.feature_names == ("score",)
    with pytest.raises(ParseError, match="did you mean 'score'"):
        read_table(path, features=["scores"])


def csv_file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["007", "7"], ["007", "7"]),
        (["7", "08"], ["7", "08"]),
        (["7", "-8", "7", "0"], [7, -8, 7, 0]),
        (["7", "7.0"], ["7", "7.0"]),
        (["+7", "7"], ["+7", "7"]),
        (["9223372036854775807", "1"], [2**63 - 1, 1]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["NA", "null"], ["NA", "null"]),
        (["7 ", " 7"], [7, 7]),
        (["é", "b"], ["é", "b"]),
    ],
)
def test_query_ids_of_csv_files(tmp_path, ids, expected):
    rows = "".join(f"{one},0,1\n" for one in ids)
    data = read_table(csv_file(tmp_path, f"qid,label,x\n{rows}"))
    assert data.qid.tolist() == expected
    tabs = csv_file(tmp_path, f"qid,label,x\n{rows}".replace(",", "\t"), "t.tsv.gz")
    assert read_table(tabs).qid.tolist() == expected


def test_document_ids_of_csv_files_are_texts(tmp_path):
    path = csv_file(tmp_path, "qid,docid,label,x,d\n1,007,0,1,NA\n1,7,1,2,08\n1,,1,2,\n")
    assert read_table(path, features=["x"]).docid.tolist() == ["007", "7", ""]
    assert read_table(path, features=["x"], docid="d").docid.tolist() == ["NA", "08", ""]
    assert read_table(path, features=["docid", "x"]).X[:2].tolist() == [[7, 1], [7, 2]]


def test_document_ids_of_parquet_files(tmp_path, table):
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(
        table.rename_columns(["docid" if n == "doc" else n for n in COLUMNS]), path
    )
    for features in (None, "w", ["score", "w"]):
        assert read_table(path, features=features).docid.tolist() == ["d1", "d2", "", "d4"]
    with pytest.raises(ParseError, match=r"no column 'scores' for the docid.*did you mean 'score'"):
        read_table(path, features="w", docid="scores")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("qid,label,x\n1,0,1\n1,2,abc\n", 3, "column 'x' holds .*'abc' in row 1: convert"),
        ("qid,label,x\n\n1,0,NA\n\n1,2,abc\n", 5, "'abc' in row 1"),
        ('qid,label,x,d\n1,0,1,"a\nb"\n1,2,abc,c\n', 4, "'abc' in row 1"),
        ("qid,label,x\r\n1,0,1\r\n1,2,abc\r\n", 3, "'abc' in row 1"),
        ("qid,label,x\n1,0,1\n1,good,2\n", 3, "Labels must be numbers.*'good' in row 1: write"),
        ("qid,label,x\n1,0,1\n1,,2\n", 3, "Got nan at row 1 of the column 'label'"),
        ("qid,label,x\n1,0,1\n ,1,2\n", 3, "column 'qid' has none in row 1"),
        ("qid,label,x\n1,0,1\n1,1,1e39\n", 3, "column 'x' has 1e.39 in row 1"),
        ("qid,label,x\n1,0,1\n1,1,1,1\n", 3, "read: .*Expected 3 columns, got 4: 1,1,1,1"),
        ("qid;label;x\n1;0;0,5\n1;1;2,5\n", 1, "has semicolons and no commas.*pass its table"),
        ("qid;label\n1;0\n1;1\n", 1, "'qid;label' has semicolons and no commas"),
        ("qid\tlabel\n1\t0\n1\t1\n", 1, "tabs and no commas.*rename it to .tsv"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_bad_cells_of_csv_files(tmp_path, text, line, message, name):
    path = csv_file(tmp_path, text, name)
    with pytest.raises(ParseError, match=message) as caught:
        read_table(path, docid="d" if ",d\n" in text else None)
    assert caught.value.line == line


def test_a_bad_cell_far_down(tmp_path):
    path = csv_file(tmp_path, "qid,label,x\n" + "1,0,1\n" * 300_000 + "1,0,abc\n")
    with pytest.raises(ParseError, match="'abc' in row 300000") as caught:
        read_table(path)
    assert caught.value.line == 300_002


def test_commas_in_a_tsv_file(tmp_path):
    with pytest.raises(ParseError, match="has commas and no tabs"):
        read_table(csv_file(tmp_path, "qid,label\n1,0\n", "t.tsv"))


def test_whole_numbers_first_and_others_much_later(tmp_path):
    text = "qid,label,x,e\n" + "1,0,1,\n" * 300_000 + "1,0,0.5,2\n"
    data = read_table(csv_file(tmp_path, text))
    assert data.X[-1].tolist() == [0.5, 2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1 this is no table", "cannot be read"),
        ("t.parquet", b"", "cannot be read"),
        ("t.csv", b"", "cannot be read: Empty CSV file"),
        ("t.csv", b"qid,label\n1,2\n1,2,3\n", "cannot be read.*[Ee]xpected 2 columns"),
        (
            "t.csv.gz",
            gzip.compress(b"qid,label\n" + b"1,2\n" * 9999, mtime=0)[:-20],
            "cannot be read",
        ),
        ("t.csv.gz", b"qid,label\n1,2\n", "cannot be read"),
        ("t.csv", b"qid,label,x\n1,2,\xff\n", "The column 'x' holds"),
        ("t.csv", b"qid,label\n", "at least one row"),
        ("t.xlsx", b"", "must end in .parquet, .csv"),
    ],
)
def test_damaged_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ParseError, match=message) as caught:
        read_table(path)
    assert caught.value.path == path


def test_missing_file(tmp_path):
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(ParseError, match="no such file"):
            read_table(tmp_path / name)


def test_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("qid,label\n1,0\n")
    real = builtins.__import__

    def refusing(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(MissingExtraError, match=r"pip install 'rankgrove\[tables\]'"):
        read_table(tmp_path / "t.csv")


def test_a_column_that_is_absent_is_named_with_what_names_it():
    frame = {"query": [1, 1], "grade": [0, 1]} | {f"f{k}": [0.5, 1.5] for k in range(30)}
    with pytest.raises(DataError, match=r"'grade', .* and 12 more\. .* in 'label' \(--label\)\."):
        dataset_from_frame(frame, qid="query")
    with pytest.raises(DataError, match=r"in 'features' \(--features\)\."):
        dataset_from_frame(frame, label="grade", qid="query", features=["f1", "g1"])


def test_tables_without_labels():
    data = QueryDataset.from_frame({"qid": ["a", "b"], "bm25": [1.0, 2.0]}, label=None)
    assert (data.y.tolist(), data.feature_names) == ([0.0, 0.0], ("bm25",))


def test_ids_of_documents_are_suspected():
    """A column that no query has a value of twice, though values occur in several queries."""
    rows = np.arange(120)
    frame = {"qid": rows // 10, "label": rows % 2, "bm25": rows, "product": rows * 7 % 40}
    frame["product"] = [f"p{number}" for number in frame["product"]]
    with pytest.warns(rg.DataWarning, match=r"'product' .* 'docid' \(--docid\)"):
        dataset_from_frame(frame)
    # no warning, which is an error here
    assert dataset_from_frame(frame, docid="product").n_features == 1
    assert dataset_from_frame(frame, categorical=["product"]).n_features == 2
    brands = [f"b{row % 9}" for row in rows]
    assert dataset_from_frame(frame | {"product": brands}).n_features == 2
    few_documents = frame | {"qid": rows // 3}
    assert dataset_from_frame(few_documents).n_features == 2
