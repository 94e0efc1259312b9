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
EXPECTED = np.array([[3, 0.5, 1], [np.nan, 1.5, np.nan], [5, np.nan, 0], [7, 2.5, 1]], np.float32)

FRAMES = {
    "mapping": lambda c: c,
    "pandas": pandas.DataFrame,
    "pandas-nullable": lambda c: pandas.DataFrame(c).convert_dtypes(),
    "pandas-arrow": lambda c: pandas.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
}


@pytest.fixture(params=list(FRAMES))
def make(request):
    return FRAMES[request.param]


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


def test_whole_number_ids_stay_numbers(make):
    data = dataset_from_frame(make({"qid": [7, 7, 9], "label": [0.5, 1, 2], "x": [1, 2, 3]}))
    assert data.query_ids.tolist() == [7, 9]
    assert data.y.tolist() == [0.5, 1, 2]


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {}, "Features must be numbers. The column 'doc' holds .*'features'"),
        ({}, {"label": "lable"}, r"no column 'lable' for the label \(did you mean 'label'\?\)"),
        ({}, {"qid": "query"}, "no column 'query' for the qid.*columns are 'qid', 'label'"),
        ({}, {"features": ["scor"]}, "for a feature.*did you mean 'score'"),
        ({}, {"label": "doc", "features": ["w"]}, "Labels must be numbers. The column 'doc'"),
        ({}, {"weight": "doc", "features": ["w"]}, "Weights must be numbers"),
        ({"qid": ["a", None, "a", "b"]}, {"features": ["w"]}, "column 'qid' has none in row 1"),
        ({"qid": [1, None, 1, 2]}, {"features": ["w"]}, "column 'qid' has none in row 1"),
        ({"label": [1, None, 1, 2]}, {"features": ["w"]}, "finite numbers. Got nan at row 1"),
        ({"w": [1e300, 1, 1, 1]}, {"features": ["w"]}, "column 'w' has 1e.300: scale it"),
    ],
)
def test_bad_columns(make, changes, options, message):
    with pytest.raises(DataError, match=message):
        dataset_from_frame(make(COLUMNS | changes), **options)


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame({"qid": [1], "label": [1], "c": pandas.Categorical([3])}),
        pandas.DataFrame({"qid": [1], "label": [1], "c": pandas.to_datetime(["2024-01-01"])}),
        polars.DataFrame(
            {"qid": [1], "label": [1], "c": polars.Series(["x"]).cast(polars.Enum(["x"]))}
        ),
        polars.DataFrame({"qid": [1], "label": [1], "c": [[1, 2]]}),
        pyarrow.table({"qid": [1], "label": [1], "c": pyarrow.array(["x"]).dictionary_encode()}),
        pyarrow.table({"qid": [1], "label": [1], "c": pyarrow.array([1], pyarrow.timestamp("s"))}),
    ],
)
def test_categories_dates_and_lists_are_not_numbers(frame):
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
    with pytest.raises(DataError, match="'x' has 1 rows, the label 2"):
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1 this is no table", "cannot be read"),
        ("t.parquet", b"", "cannot be read"),
        ("t.csv", b"", "cannot be read: Empty CSV file"),
        ("t.csv", b"qid,label\n1,2\n1,2,3\n", "cannot be read.*[Ee]xpected 2 columns"),
        ("t.csv.gz", gzip.compress(b"qid,label\n" + b"1,2\n" * 9999)[:-20], "cannot be read"),
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
