"""Cross-validation by query for scikit-learn's tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.random import string_keys
from rankgrove.validation import check_integer, refuse


class QueryKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds that never split a query; each query is in the test part of exactly one fold.

    The query ids are passed as ``groups=``, as to scikit-learn's own group splitters, or, with
    metadata routing enabled, as ``params={"qid": qid}``: the ranker then gets the same ids.
    The parts differ by at most one query, and depend on the ids and the seed, not on row order.

    Parameters
    ----------
    n_splits : number of folds
    shuffle : whether to assign queries at random; otherwise a fold has neighbouring queries
    random_state : seed of the random assignment; None: another one every time

    Examples
    --------
    >>> import numpy as np
    >>> qid = np.array([1, 1, 2, 2, 3, 3])
    >>> for train, test in QueryKFold(n_splits=3, shuffle=False).split(np.zeros((6, 1)), qid=qid):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 4 5] [2 3]
    [0 1 2 3] [4 5]
    """

    # scikit-learn's metadata routing: split() takes these two if they are passed.
    __metadata_request__split = {"groups": True, "qid": True}  # noqa: RUF012

    def __init__(
        self, n_splits: int = 5, shuffle: bool = True, random_state: int | None = 0
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None, *, qid: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row numbers of training and test data, fold by fold.

        Parameters
        ----------
        X : the rows, or a `QueryDataset`, which has its own query ids
        y : not used
        groups, qid : the query id of every row; one of the two
        """
        del y
        query_ids, query_of_row = self._queries(X, groups, qid)
        part = assign_parts(string_keys(query_ids), self.n_splits, self._seed(), "QueryKFold")
        part_of_row = part[query_of_row]
        for i in range(self.n_splits):
            yield np.flatnonzero(part_of_row != i), np.flatnonzero(part_of_row == i)

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, *, qid: Any = None
    ) -> int:
        """Return the number of folds."""
        del X, y, groups, qid
        return check_integer("n_splits", "QueryKFold", self.n_splits, low=2)

    def _queries(self, X: Any, groups: Any, qid: Any) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(X, QueryDataset) and qid is None and groups is None:
            return X.query_ids, X.query_of_row
        ids = qid if qid is not None else groups
        if ids is None:
            raise DataError(
                "QueryKFold needs the query id of every row. Pass groups=qid, or switch metadata "
                "routing on with sklearn.set_config(enable_metadata_routing=True) and pass "
                "params={'qid': qid}."
            )
        if qid is not None and groups is not None and not np.array_equal(qid, groups):
            raise DataError("QueryKFold got both qid and groups, and they differ: pass one.")
        n_rows = X.n_rows if isinstance(X, QueryDataset) else np.shape(X)[0]
        labels = np.zeros(n_rows) if n_rows else [0]
        rows = QueryDataset(None, labels, qid=ids)
        return rows.query_ids, rows.query_of_row

    def _seed(self) -> int | None:
        if not self.shuffle:
            return None
        state = self.random_state
        if state is None:
            return int(np.random.default_rng().integers(2**63))
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if not isinstance(state, int | np.integer):
            refuse("random_state", "QueryKFold", "a whole number, a RandomState or None", state)
        return int(state)
