from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from rankgrove import parallel
from rankgrove.data import dataset_checks
from rankgrove.data.queries import QueryDataset
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import DataError


@pytest.fixture
def mixed() -> QueryDataset:
    """Seven rows of three queries whose rows are not adjacent."""
    X = np.arange(14, dtype=np.float32).reshape(7, 2)
    return QueryDataset(
        X,
        [0, 1, 2, 0, 1, 2, 3],
        qid=["b", "a", "b", "c", "a", "b", "c"],
        weight=[1, 2, 3, 4, 5, 6, 7],
        docid=[f"d{i}" for i in range(7)],
        feature_names=["bm25", "clicks"],
        query_weight={"a": 1.0, "b": 2.0, "c": 3.0},
    )


def test_order_and_pointers(mixed):
    assert mixed.query_ids.tolist() == ["b", "a", "c"]
    assert mixed.query_ptr.tolist() == [0, 3, 5, 7]
    assert mixed.order.tolist() == [0, 2, 5, 1, 4, 3, 6]
    assert mixed.query_of_row.tolist() == [0, 1, 0, 2, 1, 0, 2]
    assert mixed.qid.tolist() == ["b", "a", "b", "c", "a", "b", "c"]
    assert mixed.query_weight.tolist() == [2.0, 1.0, 3.0]
    assert (mixed.n_rows, len(mixed), mixed.n_queries, mixed.n_features) == (7, 7, 3, 2)


def test_adjacent_rows_need_no_order():
    data = QueryDataset([[1.0], [2.0], [3.0]], [0, 1, 0], qid=[9, 9, 4])
    assert data.order is None
    values = np.array([5.0, 6.0, 7.0])
    assert data.grouped(values) is values
    assert data.ungrouped(values) is values


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_grouped_and_ungrouped_are_inverse(qid):
    data = QueryDataset(None, np.zeros(len(qid)), qid=qid)
    rows = np.arange(len(qid))
    grouped = data.grouped(rows)
    assert np.array_equal(data.ungrouped(grouped), rows)
    for i in range(data.n_queries):
        inside = grouped[data.query_ptr[i] : data.query_ptr[i + 1]]
        expected = [row for row, token in enumerate(qid) if token == data.query_ids[i]]
        assert inside.tolist() == expected


def test_select_keeps_everything_of_a_query(mixed):
    part = mixed.select([2, 0])
    assert part.query_ids.tolist() == ["c", "b"]
    assert part.docid.tolist() == ["d3", "d6", "d0", "d2", "d5"]
    assert part.y.tolist() == [0, 3, 0, 2, 2]
    assert part.weight.tolist() == [4, 7, 1, 3, 6]
    assert part.query_weight.tolist() == [3.0, 2.0]
    assert part.X[:, 0].tolist() == [6, 12, 0, 4, 10]
    assert part.feature_names == ("bm25", "clicks")


def test_masks_and_ids_select_alike(mixed):
    by_mask = mixed.select([True, False, True])
    by_position = mixed.select(np.array([0, 2], np.uint8))
    by_id = mixed.select_ids(["b", "c"])
    for part in (by_position, by_id):
        assert part.docid.tolist() == by_mask.docid.tolist()
        assert np.array_equal(part.X, by_mask.X)
    assert mixed.select_ids("c").query_ids.tolist() == ["c"]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=30),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_views_of_views_equal_direct_selection(qid, adjacent, sparse, data):
    """Slices of slices, lists of slices, slices of lists: all end at the same rows."""
    if adjacent:
        qid = sorted(qid)
    X = np.arange(2 * len(qid), dtype=np.float32).reshape(-1, 2)
    whole = QueryDataset(scipy.sparse.csr_matrix(X) if sparse else X, np.arange(len(qid)), qid=qid)
    view, ids = whole, whole.query_ids.tolist()
    for _ in range(3):
        n = len(ids)
        if data.draw(st.booleans()):
            low = data.draw(st.integers(0, n - 1))
            chosen = list(range(low, data.draw(st.integers(low, n - 1)) + 1))
        else:
            chosen = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
        view, ids = view.select(chosen), [ids[i] for i in chosen]
    rows = [row for token in ids for row, own in enumerate(qid) if own == token]
    shown = view.X.toarray() if sparse else view.X
    assert np.array_equal(shown, X[rows])
    assert view.y.tolist() == rows
    assert view.column(2).tolist() == X[rows, 1].tolist()
    out = np.empty((len(rows), 2), np.float32)
    view.copy_features(out)
    assert np.array_equal(out, X[rows])


@pytest.mark.parametrize("first", [[2, 3, 4, 5], [5, 1, 4, 2]])
@pytest.mark.parametrize("second", [[1, 2], [3, 0]])
def test_a_view_of_each_kind_of_each_kind(first, second):
    data = QueryDataset(np.arange(12.0)[:, None], np.zeros(12), qid=np.repeat(range(6), 2))
    wanted = [first[i] for i in second]
    view = data.select(first).select(second)
    assert view.query_ids.tolist() == wanted
    assert view.X[::2, 0].tolist() == [2 * i for i in wanted]


def test_a_contiguous_view_shares_memory():
    X = np.zeros((6, 2), np.float32)
    data = QueryDataset(X, np.zeros(6), qid=[1, 1, 2, 2, 3, 3])
    assert np.shares_memory(data.X, X)
    assert np.shares_memory(data.select([1, 2]).X, X)
    assert np.shares_memory(data.select([1, 2]).select([1]).X, X)


def test_columns_by_number_and_name(mixed):
    assert mixed.column(1).tolist() == mixed.column("bm25").tolist() == mixed.column("1").tolist()
    assert mixed.feature_index(np.int64(2)) == 1
    assert QueryDataset([[1, 2]], [0], qid=[1]).feature_names == ("f1", "f2")
    for wrong in (0, 3, -1, "²", True):
        with pytest.raises(DataError, match="numbered 1 to 2"):
            mixed.column(wrong)
    with pytest.raises(DataError, match="did you mean 'clicks'"):
        mixed.column("click")
    with pytest.raises(DataError, match="has no features"):
        QueryDataset(None, [0], qid=[1]).column(1)


def test_arrays_are_frozen(mixed):
    view = mixed.select([2, 0])
    for data in (mixed, view, pickle.loads(pickle.dumps(view))):
        columns = [data.X, data.y, data.qid, data.query_ids, data.query_ptr, data.query_of_row]
        columns += [data.weight, data.query_weight, data.query_keys, data.docid, data.column(1)]
        for array in columns:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[0]
    with pytest.raises(ValueError, match="read-only"):
        mixed.order[0] = 1


def test_parts_handed_over_are_frozen_too():
    data = QueryDataset.from_parts(
        np.zeros((2, 1), np.float32), np.zeros(2), np.array([7]), np.zeros(2, np.int64)
    )
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1


def test_labels_and_weights_are_copies():
    y, weight = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    data = QueryDataset(None, y, qid=[1, 1], weight=weight)
    y[0] = weight[0] = 9
    assert data.y[0] == 0
    assert data.weight[0] == 1


def test_a_view_pickles_only_its_rows():
    X = np.random.default_rng(0).random((5000, 20), np.float32)
    data = QueryDataset(X, np.zeros(5000), qid=np.repeat(np.arange(500), 10), docid=range(5000))
    part = data.select([3, 8])
    packed = pickle.dumps(part)
    assert len(packed) < 10_000
    again = pickle.loads(packed)
    assert np.array_equal(again.X, part.X)
    assert again.docid.tolist() == part.docid.tolist()
    assert again.query_ptr.tolist() == part.query_ptr.tolist()


# -- ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qid", "ids"),
    [
        ([2, 1, 2], [2, 1]),
        ([2.0, 1.0, 2.0], [2, 1]),
        (["x", "y", "x"], ["x", "y"]),
        ([b"x", b"y", b"x"], ["x", "y"]),
        (np.array(["x", 3, "x"], dtype=object), ["x", "3"]),
        (np.array([2, 1, 2], dtype=object), [2, 1]),
        ([2**70, 1, 2**70], [str(2**70), "1"]),
        (np.array([2**63, 1, 2**63], np.uint64), [2**63, 1]),
    ],
)
def test_ids_of_all_kinds(qid, ids):
    assert QueryDataset(None, [0, 1, 2], qid=qid).query_ids.tolist() == ids


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1 has no StringDType")
def test_ids_of_numpys_strings():
    qid = np.array(["x", "y", "x"], np.dtypes.StringDType())
    assert QueryDataset(None, [0, 1, 2], qid=qid).query_ids.tolist() == ["x", "y"]


def test_keys_depend_on_the_id_alone():
    a = QueryDataset(None, [0, 0], qid=[5, 7])
    b = QueryDataset(None, [0, 0, 0], qid=["7", "9", "5"])
    assert a.query_keys[0] == b.query_keys[2]
    assert a.query_keys[1] == b.query_keys[0]
    assert len(set(b.query_keys.tolist())) == 3


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([1, 2], "qid has 2 rows and y has 3"),
        ([[1], [1], [1]], "one query id per row"),
        ([1.5, 1, 1], "Got 1.5 at row 0"),
        ([1.0, np.nan, 1.0], "Got nan at row 1"),
        ([1e300, 1.0, 1.0], "at row 0"),
        (["a", None, "b"], "Row 1 has None"),
        (["a", float("nan"), "b"], "Row 1 has nan"),
        (np.zeros(3, bool), "whole numbers or texts"),
        (np.zeros(3, "M8[s]"), "whole numbers or texts"),
    ],
)
def test_bad_ids(qid, message):
    with pytest.raises(DataError, match=message):
        QueryDataset(None, [0, 1, 2], qid=qid)


def test_pandas_missing_id():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="Row 1 has <NA>"):
        QueryDataset(None, [0, 1], qid=np.array([1, pandas.NA], dtype=object))


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": [["x"], ["y"]]}, "Features must be numbers"),
        ({"X": np.zeros((2, 1), "M8[s]")}, "Features must be numbers"),
        ({"X": np.zeros((2, 1), complex)}, "Features must be numbers"),
        ({"X": [1.0, 2.0]}, "two dimensions"),
        ({"X": [[1.0]]}, "X has 1 row and y has 2"),
        ({"X": [[1e300], [0]]}, "maximum is 3.4e38. Got 1e\\+300"),
        ({"X": scipy.sparse.csr_matrix([[1e300], [0]])}, "maximum is 3.4e38"),
        ({"X": scipy.sparse.csr_matrix((3, 1))}, "X has 3 rows and y has 2"),
        ({"y": ["good", "bad"]}, "Labels must be numbers"),
        ({"y": [[0, 1], [0, 1]]}, "one label per row"),
        ({"y": [0, np.nan]}, "Got nan at row 1"),
        ({"y": [0, np.inf]}, "finite numbers"),
        ({"weight": [1]}, "one number per row \\(2\\)"),
        ({"weight": [1, -1]}, "Got -1.0 at row 1"),
        ({"weight": [0, 0]}, "must not be 0 everywhere"),
        ({"weight": ["x", "y"]}, "weight must be numbers"),
        ({"query_weight": [1, 2]}, "one number per query \\(1\\)"),
        ({"query_weight": {"z": 1}}, "no weight for the query 1"),
        ({"docid": ["a"]}, "docid has 1 row and y has 2"),
        ({"feature_names": ["a", "b"]}, "2 names for 1 feature"),
    ],
)
def test_bad_input(changes, message):
    arguments = {"X": [[1.0], [2.0]], "y": [0, 1], "qid": [1, 1]} | changes
    with pytest.raises(DataError, match=message):
        QueryDataset(**arguments)


def test_no_rows_and_equal_names():
    with pytest.raises(DataError, match="at least one row"):
        QueryDataset(None, [], qid=[])
    with pytest.raises(DataError, match="'a' appears twice"):
        QueryDataset([[1, 2]], [0], qid=[1], feature_names=["a", "a"])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([], "selection is empty"),
        ([False, False, False], "selection is empty"),
        ([True, False], "must have 3 entries"),
        ([3], "between 0 and 2"),
        ([-1], "between 0 and 2"),
        ([0, 0], "name a query twice"),
        ([0.5], "positions or a mask"),
        (1, "positions or a mask"),
        (["a"], "positions or a mask"),
    ],
)
def test_bad_selections(mixed, chosen, message):
    with pytest.raises(DataError, match=message):
        mixed.select(chosen)


def test_unknown_id(mixed):
    with pytest.raises(DataError, match="no query with the id 'z'"):
        mixed.select_ids(["a", "z"])


# -- sparse, looks ----------------------------------------------------------------------------


def test_sparse_features():
    dense = np.array([[0, 1.5], [2.5, 0], [0, 0]])
    for kind in (scipy.sparse.coo_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array):
        data = QueryDataset(kind(dense), [0, 1, 0], qid=[1, 2, 1])
        assert data.is_sparse
        assert np.array_equal(data.X.toarray(), dense)
        assert np.array_equal(data.select([1]).X.toarray(), dense[[1]])
        with pytest.raises(ValueError, match="read-only"):
            data.X.data[0] = 1


def test_a_sparse_matrix_with_duplicates_is_summed_but_not_changed():
    given = scipy.sparse.csr_matrix(
        (np.ones(3, np.float32), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    data = QueryDataset(given, [0], qid=[1])
    assert data.X.toarray().tolist() == [[1, 2]]
    assert data.X.nnz == 2
    assert given.indices.tolist() == [1, 0, 1]


def test_repr():
    data = QueryDataset([[0.0]] * 3, [0, 0, 2], qid=[1, 1, 2], weight=[1, 1, 1])
    assert (
        repr(data) == "QueryDataset(3 rows, 2 queries, 1 feature, weighted rows; labels 0: 2, 2: 1)"
    )
    many = QueryDataset(
        scipy.sparse.csr_matrix((1200, 2)), np.arange(1200), qid=np.zeros(1200, int)
    )
    assert repr(many) == ("QueryDataset(1,200 rows, 1 query, 2 features, sparse; labels 0 to 1199)")


# -- text columns -----------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=20))
def test_text_column_gives_back_its_texts(texts):
    column = TextColumn.from_texts(texts)
    assert len(column) == len(texts)
    assert column.to_array().tolist() == texts
    back = column.take(np.arange(len(texts))[::-1])
    assert back.to_array().tolist() == texts[::-1]
    compact = back.compact()
    assert compact.to_array().tolist() == texts[::-1]
    assert compact.blob.size == sum(len(text.encode()) for text in texts)


def test_text_column_of_other_things():
    column = TextColumn.from_texts([None, 12, b"bytes", "é"])
    assert column.to_array().tolist() == ["", "12", "bytes", "é"]
    assert column[-1] == "é"
    assert column.take(slice(1, 3)).compact().to_array().tolist() == ["12", "bytes"]
    with pytest.raises(IndexError):
        column[4]


def test_attributes_cannot_be_set(mixed):
    for name in ("y", "X", "docid", "query_ptr", "features", "anything"):
        with pytest.raises(AttributeError, match=f"frozen: its attribute '{name}' cannot be set"):
            setattr(mixed, name, 3)
    with pytest.raises(AttributeError, match="frozen: its attribute 'y' cannot be deleted"):
        del mixed.y
    assert mixed.qid is mixed.qid  # what is computed once is still kept
    for again in (pickle.loads(pickle.dumps(mixed)), copy.copy(mixed), copy.deepcopy(mixed)):
        assert again.qid.tolist() == mixed.qid.tolist()
        with pytest.raises(AttributeError, match="frozen"):
            again.y = 3


@pytest.mark.parametrize("n_threads", [1, 2])
def test_conversion_in_pieces_names_the_first_value(monkeypatch, n_threads):
    monkeypatch.setattr(dataset_checks, "_WORTH_THREADS", 100)
    monkeypatch.setattr(parallel, "available_threads", lambda: 2)
    values = np.random.default_rng(0).normal(size=(9000, 7))
    for array in (values, np.asfortranarray(values), values[::2], values > 0, np.int64(values)):
        kept = dataset_checks.check_features(array, len(array), n_threads=n_threads)
        assert kept.flags.c_contiguous
        assert kept.dtype == np.float32
        assert np.array_equal(kept, array.astype(np.float32))
    for shape in ((9000, 0), (0, 7)):
        empty = dataset_checks.check_features(np.empty(shape), shape[0], n_threads=n_threads)
        assert empty.shape == shape
    values[[10, 8000], [2, 3]] = [-1e300, 1e39]
    with pytest.raises(DataError, match=r"kept as float32.* Got -1e\+300: scale"):
        dataset_checks.check_features(values, 9000, n_threads=n_threads)


def test_numbers_beyond_float64_are_refused():
    with pytest.raises(DataError, match="must be numbers: int too large"):
        QueryDataset(np.array([[10**400], [1]], object), [0, 1], [0, 0])
    long = np.full((2, 1), np.finfo(np.longdouble).max)
    if long.dtype == np.float64 or np.finfo(np.longdouble).maxexp == 1024:
        pytest.skip("long double is no wider than float64 here")
    with pytest.raises(DataError, match=r"float64, whose maximum is 1\.8e308\. Got 1\.18.*e\+"):
        dataset_checks.check_features(long, 2, double=True)
