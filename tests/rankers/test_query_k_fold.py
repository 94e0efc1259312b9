from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline

from rankgrove.data.folds import k_fold
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.operations.query_k_fold import QueryKFold


class Remembering(RegressorMixin, BaseEstimator):
    """Scores 1 where no query of the test rows was trained on; feature 0 is the query."""

    def fit(self, X, y):
        self.seen_ = set(X[:, 0].tolist())
        return self

    def score(self, X, y):
        return float(not self.seen_ & set(X[:, 0].tolist()))


@pytest.fixture
def rows():
    qid = np.random.default_rng(3).integers(0, 17, 120)
    return qid[:, None].astype(float), np.arange(120.0), qid


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_no_query_is_cut_and_each_tests_once(rows):
    X, y, qid = rows
    tested = []
    for train, test in QueryKFold(4).split(X, y, qid):
        assert not set(qid[train]) & set(qid[test])
        assert sorted([*train, *test]) == list(range(120))
        tested += sorted(set(qid[test]))
    assert sorted(tested) == sorted(set(qid))


def test_same_parts_as_k_fold(rows):
    X, y, qid = rows
    data = QueryDataset(X, y, qid=qid)
    ours = [sorted(set(qid[test])) for _, test in QueryKFold(4, random_state=5).split(data)]
    assert ours == [sorted(fold.test.query_ids.tolist()) for fold in k_fold(data, 4, seed=5)]


def test_groups_without_routing(rows):
    X, y, qid = rows
    cv = QueryKFold(5)
    scores = cross_val_score(Remembering(), X, y, groups=qid, cv=cv)
    assert scores.tolist() == [1.0] * 5
    # The test can fail: plain folds cut queries.
    assert cross_val_score(Remembering(), X, y, cv=5).min() == 0
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=cv).fit(X, y, groups=qid)
    assert search.n_splits_ == 5


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("key", ["qid", "groups"])
def test_metadata_routing(rows, key):
    X, y, qid = rows
    cv = QueryKFold(5)
    scores = cross_val_score(Remembering(), X, y, params={key: qid}, cv=cv)
    assert scores.tolist() == [1.0] * 5
    search = GridSearchCV(make_pipeline(Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=cv)
    assert search.fit(X, y, **{key: qid}).n_splits_ == 5
    nested = cross_validate(search, X, y, params={key: qid}, cv=QueryKFold(3))
    assert nested["test_score"].shape == (3,)


def test_row_order_does_not_matter(rows):
    X, _, qid = rows
    turned = slice(None, None, -1)
    a = [set(qid[test]) for _, test in QueryKFold(4).split(X, qid=qid)]
    b = [set(qid[turned][test]) for _, test in QueryKFold(4).split(X, qid=qid[turned])]
    assert a == b


def test_random_state(rows):
    X, _, qid = rows

    def parts(**options):
        return [test.tolist() for _, test in QueryKFold(3, **options).split(X, qid=qid)]

    assert parts() == parts()
    assert parts() != parts(random_state=1)
    assert parts(random_state=None) != parts(random_state=None)
    state = np.random.RandomState(0)
    assert parts(random_state=state) != parts(random_state=state)
    assert parts(random_state=np.int64(1)) == parts(random_state=1)


def test_manners():
    cv = QueryKFold(n_splits=3, random_state=7)
    assert repr(cv) == "QueryKFold(n_splits=3, random_state=7, shuffle=True)"
    assert repr(clone(cv, safe=False)) == repr(cv)
    assert cv.get_n_splits() == 3
    assert clone(GridSearchCV(Ridge(), {}, cv=cv)).cv.n_splits == 3


def test_errors(rows):
    X, y, qid = rows
    with pytest.raises(DataError, match="groups=qid, or switch metadata routing on"):
        next(QueryKFold().split(X, y))
    with pytest.raises(DataError, match="qid has 3 rows and y has 120"):
        next(QueryKFold().split(X, y, qid[:3]))
    with pytest.raises(DataError, match="they differ"):
        next(QueryKFold().split(X, y, qid, qid=qid + 1))
    with pytest.raises(DataError, match="cannot be divided into 30 parts"):
        next(QueryKFold(30).split(X, y, qid))
    with pytest.raises(ParameterError, match="'n_splits' parameter of QueryKFold"):
        next(QueryKFold(1).split(X, y, qid))
    with pytest.raises(ParameterError, match="'random_state'"):
        next(QueryKFold(random_state="x").split(X, y, qid))
