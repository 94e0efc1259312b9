from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from rankgrove.data.concatenate import concatenate
from rankgrove.data.folds import Fold, Split, k_fold, letor_folds, random_trials
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError


def queries(n: int, reverse: bool = False) -> QueryDataset:
    """n queries of two rows each; the label is the number of the query."""
    ids = np.arange(n)[::-1] if reverse else np.arange(n)
    qid = np.repeat(ids, 2)
    return QueryDataset(qid[:, None].astype(np.float32), qid, qid=qid)


def ids(dataset: QueryDataset) -> list:
    return sorted(dataset.query_ids.tolist())


# -- concatenation ----------------------------------------------------------------------------


def test_concatenate_keeps_rows_in_order():
    a = QueryDataset([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"], docid=["x", "y", "z"])
    b = QueryDataset([[4.0]], [3], qid=["c"], weight=[5.0], query_weight=[7.0])
    whole = concatenate([a.select([1]), b, a.select([0])])
    assert whole.X[:, 0].tolist() == [2, 4, 1, 3]
    assert whole.qid.tolist() == ["a", "c", "b", "b"]
    assert whole.docid.tolist() == ["y", "", "x", "z"]
    assert whole.weight.tolist() == [1, 5, 1, 1]
    assert whole.query_weight.tolist() == [1, 7, 1]


def test_concatenate_of_one_is_that_one():
    a = queries(2)
    assert concatenate([a]) is a


def test_concatenate_mixes_kinds():
    dense = QueryDataset([[1.0, 0.0]], [0], qid=[1], feature_names=["p", "q"])
    sparse = QueryDataset(scipy.sparse.csr_matrix([[0.0, 2.0]]), [1], qid=["1x"])
    whole = concatenate([dense, sparse])
    assert whole.is_sparse
    assert whole.X.toarray().tolist() == [[1, 0], [0, 2]]
    assert whole.query_ids.tolist() == ["1", "1x"]
    assert whole.feature_names == ("p", "q")


def test_shared_queries():
    a, b = queries(3), queries(2)
    with pytest.raises(DataError, match="query '0' is in the data sets 0 and 1"):
        concatenate([a, b])
    whole = concatenate([a, b], allow_shared_queries=True)
    assert whole.n_queries == 3
    assert np.diff(whole.query_ptr).tolist() == [4, 4, 2]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (QueryDataset([[1.0, 2.0]], [0], qid=["x"]), "Number 0 has 1, number 1 has 2"),
        (QueryDataset([[1.0]], [0], qid=["x"], feature_names=["b"]), "same feature names"),
    ],
)
def test_unlike_data_sets(other, message):
    first = QueryDataset([[1.0]], [0], qid=["a"], feature_names=["a"])
    with pytest.raises(DataError, match=message):
        concatenate([first, other])


def test_conflicting_query_weights_and_nothing():
    a = QueryDataset(None, [0], qid=["a"], query_weight=[1.0])
    b = QueryDataset(None, [0], qid=["a"], query_weight=[2.0])
    with pytest.raises(DataError, match="the weight 1 in one data set and 2 in another"):
        concatenate([a, b], allow_shared_queries=True)
    with pytest.raises(DataError, match="at least one"):
        concatenate([])


# -- LETOR ------------------------------------------------------------------------------------


def test_letor_folds_are_letors():
    parts = [QueryDataset([[float(i)]] * 2, [i, i], qid=[f"S{i}"] * 2) for i in range(1, 6)]
    folds = list(letor_folds(parts))
    assert len(folds) == 5
    # LETOR: fold k trains on S_k, S_(k+1), S_(k+2), validates on S_(k+3), tests on S_(k+4).
    assert folds[0].train.query_ids.tolist() == ["S1", "S2", "S3"]
    assert folds[3].train.query_ids.tolist() == ["S4", "S5", "S1"]
    assert folds[3].train.X[:, 0].tolist() == [4, 4, 5, 5, 1, 1]
    assert [fold.valid.query_ids[0] for fold in folds] == ["S4", "S5", "S1", "S2", "S3"]
    assert [fold.test.query_ids[0] for fold in folds] == ["S5", "S1", "S2", "S3", "S4"]


def test_letor_folds_refuse_at_the_call():
    with pytest.raises(DataError, match=r"at least 3 parts.*Got 2"):
        letor_folds([queries(1), queries(1)])
    same = [queries(1)] * 3
    with pytest.raises(DataError, match="is in the data sets 0 and 1"):
        letor_folds(same)
    assert len(list(letor_folds(same, allow_shared_queries=True))) == 3


# -- k folds ----------------------------------------------------------------------------------


@given(st.integers(3, 40), st.data(), st.integers(0, 5) | st.none(), st.booleans())
def test_k_fold_divides(n, data, seed, valid):
    k = data.draw(st.integers(3 if valid else 2, n))
    dataset = queries(n)
    folds = list(k_fold(dataset, k, seed=seed, valid=valid))
    assert len(folds) == k
    for fold in folds:
        assert isinstance(fold, Fold if valid else Split)
        assert sorted(token for part in fold for token in ids(part)) == list(range(n))
    tests = [token for fold in folds for token in ids(fold.test)]
    assert sorted(tests) == list(range(n))
    sizes = [fold.test.n_queries for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    if valid:
        assert [ids(f.valid) for f in folds] == [ids(f.test) for f in folds[1:] + folds[:1]]


def test_k_fold_does_not_depend_on_file_order():
    a = [ids(fold.test) for fold in k_fold(queries(20), 4)]
    b = [ids(fold.test) for fold in k_fold(queries(20, reverse=True), 4)]
    assert a == b
    assert a != [ids(fold.test) for fold in k_fold(queries(20), 4, seed=1)]


def test_k_fold_unshuffled_and_refused():
    assert [ids(test) for _, test in k_fold(queries(5), 2, seed=None)] == [[0, 1, 2], [3, 4]]
    with pytest.raises(ParameterError, match="'k' parameter of k_fold"):
        k_fold(queries(5), 1)
    with pytest.raises(ParameterError, match="of at least 3"):
        k_fold(queries(5), 2, valid=True)
    with pytest.raises(DataError, match="5 queries cannot be divided into 6"):
        k_fold(queries(5), 6)


# -- trials -----------------------------------------------------------------------------------


def role_counts(dataset, trials):
    counts = np.zeros((3, dataset.n_queries), int)
    for trial in trials:
        for role, part in enumerate(trial):
            if part is not None:
                counts[role, part.query_ids] += 1
    return counts


def test_the_svm_map_papers_trials():
    data = queries(50)
    trials = list(random_trials(data, 50, 10, 5, 35))
    for trial in trials:
        assert [part.n_queries for part in trial] == [10, 5, 35]
        assert sorted(ids(trial.train) + ids(trial.valid) + ids(trial.test)) == list(range(50))
    counts = role_counts(data, trials)
    assert (counts == [[10], [5], [35]]).all()
    train = [frozenset(ids(trial.train)) for trial in trials]
    assert len(set(train)) == 50
    # Random sets of 10 of 50 share 2 on average; turned arcs alone would share 9 with a neighbour.
    shared = [len(a & b) for i, a in enumerate(train) for b in train[:i]]
    assert max(shared) <= 8
    assert np.mean(shared) == pytest.approx(1.8, abs=0.3)


@given(st.integers(3, 15), st.integers(1, 40), st.data())
@settings(max_examples=60)
def test_balanced_trials_are_as_even_as_can_be(n, n_trials, data):
    n_train = data.draw(st.integers(1, n - 1))
    n_valid = data.draw(st.integers(0, n - n_train - 1))
    n_test = data.draw(st.integers(1, n - n_train - n_valid))
    dataset = queries(n)
    trials = list(random_trials(dataset, n_trials, n_train, n_valid, n_test, seed=n))
    counts = role_counts(dataset, trials)
    assert (counts.max(axis=1) - counts.min(axis=1) <= 1).all()
    assert (counts.sum(axis=1) == n_trials * np.array([n_train, n_valid, n_test])).all()
    assert all((trial.valid is None) == (n_valid == 0) for trial in trials)


@pytest.mark.parametrize("balanced", [True, False])
def test_trials_depend_on_the_seed_not_on_file_order(balanced):
    def draw(data, seed):
        trials = random_trials(data, 6, 3, 2, seed=seed, balanced=balanced)
        return [[ids(part) for part in trial] for trial in trials]

    assert draw(queries(12), 1) == draw(queries(12, reverse=True), 1)
    assert draw(queries(12), 1) != draw(queries(12), 2)
    assert all(len(test) == 7 for _, _, test in draw(queries(12), 1))


def test_independent_trials_do_not_change_with_their_number():
    data = queries(12)
    few = [ids(t.train) for t in random_trials(data, 3, 3, 2, balanced=False)]
    many = [ids(t.train) for t in random_trials(data, 9, 3, 2, balanced=False)]
    assert many[:3] == few


def test_trials_refused():
    with pytest.raises(DataError, match=r"5 \+ 5 \+ 5 queries are more than the 12"):
        random_trials(queries(12), 1, 5, 5, 5)
    with pytest.raises(ParameterError, match="'n_test'"):
        random_trials(queries(12), 1, 6, 6)
    with pytest.raises(ParameterError, match="'n_train'"):
        random_trials(queries(12), 1, 0, 6)
