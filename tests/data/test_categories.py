"""Categorical features of data sets: arrays, tables, files, subsets, joined data."""

import pickle

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse

import rankgrove as rg
from rankgrove.data.concatenate import concatenate
from rankgrove.errors import DataError, DataWarning, ParseError

BRANDS = ["core", "acme", "core", None, "bolt", "core"]
COLUMNS = {
    "qid": [1, 1, 1, 2, 2, 2],
    "label": [0, 1, 2, 0, 1, 2],
    "x": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
    "brand": BRANDS,
}
NAMES = ("core", "acme", "bolt")
CODES = [0, 1, 0, np.nan, 2, 0]


def arrays(X, **columns):
    X = np.asarray(X, np.float32) if not scipy.sparse.issparse(X) else X
    n = X.shape[0]
    return rg.QueryDataset(X, np.arange(n) % 2, qid=np.arange(n) // 2, **columns)


# -- arrays ----------------------------------------------------------------------------------------


def test_by_number_from_1_and_by_name():
    X = [[0.5, 3], [0.25, 0], [1, np.nan], [2, 1]]
    assert arrays(X, categorical=[2]).categories == {1: None}
    assert arrays(X, categorical=["2"]).categories == {1: None}
    named = arrays(X, feature_names=["x", "brand"], categorical=["brand"])
    assert named.categories == {1: None}
    assert named.categorical == {2: None}
    given = arrays(X, categorical={2: ["a", "b", "c", "d"]})
    assert given.categories == {1: ("a", "b", "c", "d")}
    assert arrays(X).categories == {}
    assert repr(given).startswith("QueryDataset(4 rows, 2 queries, 2 features, 1 categorical;")
    assert "f2: 4 categories (a, b, c, d)" in given._repr_html_()
    assert "categorical" not in arrays(X)._repr_html_()


@pytest.mark.parametrize("bad", [-1, 1.5, np.inf, 2**20])
@pytest.mark.parametrize("sparse", [False, True])
def test_values_that_are_no_codes(bad, sparse):
    X = np.array([[0, 1], [0, 2**20 - 1], [0, np.nan], [0, bad]], np.float32)
    X = scipy.sparse.csr_matrix(X) if sparse else X
    with pytest.raises(DataError, match=r"'f2' \(number 2\) has .* in row 3: number") as e:
        arrays(X, categorical=[2])
    assert e.value.row == 3
    arrays(X[:2], categorical=[2])


@pytest.mark.parametrize(
    ("categorical", "message"),
    [
        ("f1", "categorical is a list of features"),
        (2, "categorical is a list of features"),
        ([0], "There is no feature 0: features are numbered 1 to 2"),
        (["brand"], "There is no feature 'brand'"),
        ([2, "f2"], "names the feature 'f2' twice"),
        ({2: ["a"]}, "below 1, the number of its names"),
        ({2: ["a", "b", "a"]}, "must differ. 'a' appears twice"),
        ({2: "ab"}, "are a list of names"),
    ],
)
def test_mistakes(categorical, message):
    with pytest.raises(DataError, match=message):
        arrays([[0, 0], [0, 1]], categorical=categorical)


def test_kept_by_views_copies_and_pickles():
    X = np.arange(24).reshape(8, 3) % 5
    data = arrays(X, categorical={1: list("abcde"), 3: None})
    for other in (
        data.select([2, 0]),
        data.select([2, 0]).select([1]),
        data.with_base_score(np.zeros(8)),
        data.without_features(),
        pickle.loads(pickle.dumps(data)),
        pickle.loads(pickle.dumps(data.select([1]))),
        data.with_n_features(4),
    ):
        assert other.categories == data.categories
    assert data.with_n_features(2).categories == {0: tuple("abcde")}
    assert data.with_categorical([2]).categories == {1: None}
    data.categories[1] = None  # a copy: the data set is frozen
    assert data.categories == {0: tuple("abcde"), 2: None}


@pytest.mark.parametrize("sparse", [False, True])
def test_recoded(sparse):
    X = np.array([[7, 0], [8, 1], [0, 2], [0, np.nan]], np.float32)
    X = scipy.sparse.csr_matrix(X) if sparse else X
    data = arrays(X, categorical={2: ["a", "b", "c"]})
    new = data.recoded({1: ("c", "a")})
    assert new.categories == {1: ("c", "a")}
    dense = new.X.toarray() if sparse else new.X
    assert np.array_equal(dense, [[7, 1], [8, np.nan], [0, 0], [0, np.nan]], equal_nan=True)
    view = data.select([1]).recoded({1: ("c", "a")})
    assert np.array_equal(view.column(2), [0, np.nan], equal_nan=True)
    assert data.recoded({1: ("a", "b", "c")}) is data
    assert new.is_sparse == sparse


# -- joined data -----------------------------------------------------------------------------------


def part(first, brands, **more):
    n = len(brands)
    frame = {"qid": np.arange(n) // 2 + first, "label": np.arange(n) % 2, "brand": brands}
    return rg.QueryDataset.from_frame(frame | more)


def test_joined_data_has_the_codes_of_one_table():
    parts = ["b", "b", "a", "a", "a", "c"], ["d", "c", "c", "c", None, "c"]
    joined = concatenate([part(0, parts[0]), part(10, parts[1])])
    assert joined.categories == {0: ("c", "a", "b", "d")}
    whole = part(0, parts[0] + parts[1])
    assert whole.categories == joined.categories
    assert np.array_equal(whole.X, joined.X, equal_nan=True)
    # equal names stay as they are
    data = part(0, parts[0])
    assert concatenate([data.select([2]), data.select([0])]).categories == data.categories


def test_joined_data_of_different_kinds():
    texts = part(0, ["a", "b"])
    with pytest.raises(DataError, match=r"'brand' is categorical in data set 0 .* in data set 1"):
        concatenate([texts, part(5, [1.0, 2.0])])
    codes = rg.QueryDataset(
        [[0], [1]], [0, 1], [8, 8], feature_names=["brand"], categorical=["brand"]
    )
    with pytest.raises(DataError, match="only one has names of categories"):
        concatenate([texts, codes])


# -- tables ----------------------------------------------------------------------------------------


def shuffled_categories(values):
    return pandas.Categorical(values, categories=["unused", "bolt", "core", "acme"])


KINDS = {
    "mapping": lambda c: c,
    "pandas text": pandas.DataFrame,
    "pandas object": lambda c: pandas.DataFrame(c).astype({"brand": object}),
    "pandas arrow": lambda c: pandas.DataFrame(c).astype({"brand": "string[pyarrow]"}),
    "pandas category": lambda c: pandas.DataFrame(c | {"brand": shuffled_categories(c["brand"])}),
    "polars text": polars.DataFrame,
    "polars category": lambda c: polars.DataFrame(c).cast({"brand": polars.Categorical}),
    "polars enum": lambda c: polars.DataFrame(c).cast(
        {"brand": polars.Enum(["none", "bolt", "core", "acme"])}
    ),
    "pyarrow text": pyarrow.table,
    "pyarrow dictionary": lambda c: pyarrow.table(
        c | {"brand": pyarrow.array(c["brand"]).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_all_kinds(kind):
    frame = KINDS[kind](COLUMNS)
    data = rg.QueryDataset.from_frame(frame)
    assert data.categories == {1: NAMES}
    assert np.array_equal(data.column("brand"), CODES, equal_nan=True)
    assert data.column("x").tolist() == COLUMNS["x"]
    # other orders of rows give the same codes
    again = {name: values[::-1] for name, values in COLUMNS.items()}
    assert rg.QueryDataset.from_frame(KINDS[kind](again)).categories == {1: NAMES}


def test_chunks_with_dictionaries_of_their_own():
    chunks = [pyarrow.array(part).dictionary_encode() for part in (["b", "a"], ["c", "b"])]
    table = pyarrow.table(
        {"qid": [1] * 4, "label": [0, 1, 0, 1], "brand": pyarrow.chunked_array(chunks)}
    )
    data = rg.QueryDataset.from_frame(table)
    assert data.categories == {0: ("b", "a", "c")}
    assert data.column("brand").tolist() == [0, 1, 2, 0]


def test_whole_numbers_that_are_named():
    ids = [900_000_007, 5, 5, -3, 5, 900_000_007]
    frame = pandas.DataFrame(COLUMNS | {"shop": ids, "day": ["1", "02", "02", "1", "1", None]})
    data = rg.QueryDataset.from_frame(frame, categorical=["shop", "day"])
    assert data.categories == {1: NAMES, 2: ("5", "900000007", "-3"), 3: ("1", "02")}
    assert rg.QueryDataset.from_frame(frame, categorical=[3, 4]).categories == data.categories
    assert data.column("shop").tolist() == [1, 0, 0, 2, 0, 1]
    floats = frame.assign(shop=[7.0, np.nan, 7.0, 8.0, 8.0, 8.0]).drop(columns="day")
    data = rg.QueryDataset.from_frame(floats, categorical=["shop"])
    assert data.categories[2] == ("8", "7")
    with pytest.raises(DataError, match=r"texts or whole numbers. The column 'x' has 0.5"):
        rg.QueryDataset.from_frame(frame, categorical=["x", "shop"])


def test_given_names_of_a_table():
    data = rg.QueryDataset.from_frame(COLUMNS, categorical={"brand": ["acme", "bolt", "core"]})
    assert np.array_equal(data.column("brand"), [2, 0, 2, np.nan, 1, 2], equal_nan=True)
    with pytest.raises(DataError, match=r"'brand' has 'bolt' in row 4, .* 2 categories: add it"):
        rg.QueryDataset.from_frame(COLUMNS, categorical={"brand": ["acme", "core"]})


def test_a_table_as_features():
    frame = pandas.DataFrame(COLUMNS)
    X = frame[["x", "brand"]]
    data = rg.QueryDataset(X, frame.label, qid=frame.qid)
    assert data.categories == {1: NAMES}
    again = rg.QueryDataset(
        X, frame.label, qid=frame.qid, feature_names=["a", "b"], categorical=["b"]
    )
    assert again.categories == {1: NAMES}
    codes = pandas.DataFrame({"c": pandas.Categorical([3, 1, 1])})
    data = rg.QueryDataset(codes, [0, 1, 2], qid=[1, 1, 1])
    assert data.categories == {0: ("1", "3")}
    assert data.X[:, 0].tolist() == [1, 0, 0]


def test_texts_that_are_mostly_numbers_are_no_categories():
    sizes = ["42", "43", "XL", "44", "42", "43"]
    frame = pandas.DataFrame(COLUMNS | {"brand": sizes})
    with pytest.raises(DataError, match=r"'brand' holds .*'XL' in row 2: .*'categorical'"):
        rg.QueryDataset.from_frame(frame)
    data = rg.QueryDataset.from_frame(frame, categorical=["brand"])
    assert data.categories == {1: ("42", "43", "44", "XL")}


def test_texts_of_every_row_its_own_are_warned_of():
    n = 100
    frame = {"qid": [1] * n, "label": np.arange(n) % 2, "url": [f"u{i}" for i in range(n)]}
    with pytest.warns(DataWarning, match="'url' is taken as categorical.*100 in 100 rows"):
        rg.QueryDataset.from_frame(frame)


def test_too_many_categories(monkeypatch):
    monkeypatch.setattr("rankgrove.data.category_columns.MOST_CATEGORIES", 2)
    with pytest.raises(DataError, match="'brand' has 3: leave it out, or pool"):
        rg.QueryDataset.from_frame(COLUMNS)


# -- files -----------------------------------------------------------------------------------------


def test_csv_and_parquet(tmp_path):
    frame = pandas.DataFrame(COLUMNS | {"zip": ["007", "7", "7", "007", "8", "7"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        data = rg.read_table(tmp_path / name, categorical=["zip"])
        assert data.categories == {1: NAMES, 2: ("7", "007", "8")}
        assert np.array_equal(data.column("brand"), CODES, equal_nan=True)
    numbers = rg.read_table(tmp_path / "a.csv")
    assert numbers.categories == {1: NAMES}
    assert numbers.column("zip").tolist() == [7, 7, 7, 7, 8, 7]
    chosen = rg.read_table(tmp_path / "a.csv", features=["zip", "x"], categorical=[1])
    assert chosen.categories == {0: ("7", "007", "8")}


def test_a_number_with_a_mistake_in_a_file(tmp_path):
    (tmp_path / "a.csv").write_text(
        "qid,label,x\n1,0,1.5\n1,1,2,5\n1,0,o.5\n".replace("2,5", "2.5")
    )
    with pytest.raises(ParseError, match=r"a\.csv:4: .*'o\.5' in row 2"):
        rg.read_table(tmp_path / "a.csv")


@pytest.mark.parametrize("cache", [False, True])
def test_letor(tmp_path, cache):
    path = tmp_path / "a.txt"
    path.write_text("0 qid:1 1:0.5 3:7\n1 qid:1 1:1.5 2:4\n")
    for _ in range(2):
        data = rg.read_letor(path, categorical=[2, 3], cache=cache)
        assert data.categories == {1: None, 2: None}
        assert data.X.tolist() == [[0.5, 0, 7], [1.5, 4, 0]]
    assert rg.read_letor(path, cache=cache).categories == {}
    with pytest.raises(DataError, match=r"'f1' \(number 1\) has 0.5 in row 0"):
        rg.read_letor(path, categorical=[1], cache=cache)
