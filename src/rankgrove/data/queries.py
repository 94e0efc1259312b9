"""The data set: rows of features with a label each, in groups called queries.

Outside, everything that belongs to rows is in the caller's order. Inside, kernels need the rows of
a query next to each other: ``order`` lists the caller's rows query by query, ``query_ptr`` cuts
that list::

    caller's rows   0  1  2  3  4          qid = a b a a b
    order           0  2  3 | 1  4
    query_ptr       0         3    5       query_ids = a b

If the caller's rows are already in that order, ``order`` is None and nothing is ever copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.arrays import Rows, frozen, frozen_matrix
from rankgrove.data.categories import (
    Categories,
    categorical_columns,
    check_codes,
    code_table,
    feature_place,
    names_text,
    recoded,
    without_unknown,
)
from rankgrove.data.dataset_checks import (
    check_absent,
    check_base_score,
    check_docids,
    check_feature_names,
    check_labels,
    check_queries,
    check_query_weights,
    check_weights,
    has_missing,
    resized,
    table_or_features,
)
from rankgrove.data.positions import Positions, check_positions
from rankgrove.data.subsets import chosen_queries, subset
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import DataError
from rankgrove.frames import Tabular
from rankgrove.random import string_keys
from rankgrove.showing import html_table
from rankgrove.validation import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.arrays import Features, Frame, Matrix
    from rankgrove.data.categories import Categorical
    from rankgrove.frames import Columns


class QueryDataset(Tabular):
    """Judged query-document data.

    A data set is frozen: neither its attributes nor their arrays can be written to. Subsets of
    queries are views. `to_pandas`, `to_polars` and `to_arrow` return it as a table, which
    `from_frame` reads again (name the columns ``weight`` and ``base_score`` there, if it has them).

    Parameters
    ----------
    X : array, scipy sparse matrix or None, shape (n_rows, n_features)
        Features; kept as float32. NaN is a missing value. None: no features.
        A float32 array that is stored row by row is not copied: do not write to it afterwards.
        Columns of text and of categories of a data frame are categorical.
    y : array of n_rows labels, whole or real numbers; higher is better
    qid : array of n_rows query ids, whole numbers or texts; rows of a query need not be adjacent
    weight : array of n_rows non-negative weights, optional
    docid : sequence of n_rows document ids, optional
    feature_names : sequence of n_features names, optional (``f1``, ``f2``, ... by default)
    query_weight : array of non-negative weights, one per query in order of first appearance,
        or a mapping from query id to weight, optional
    base_score : array of n_rows finite scores from which a ranker may start (``submodel=
        "base_score"``), optional
    absent : ``"zero"`` or ``"missing"``, the value of a feature that a row does not mention, in
        data that leaves features out, as text does. None: missing if any value is NaN, else zero.
        A ranker that is trained on the data keeps it as ``absent_``, also in its model file
    categorical : the categorical features, by 1-based number or name; or a mapping from them to
        the names of their codes (None: no names). In an array such a column holds codes: whole
        numbers from 0 and below 2**20, or NaN
    position : array of n_rows whole numbers from 1, where the documents were shown when they got
        the clicks that are the labels, optional; for rankers with ``position_bias``
    position_context : array of n_rows values, or a list of such, such as the device: positions are
        seen differently in different contexts. Optional

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.QueryDataset([[0.1], [0.7], [0.3]], [0, 2, 1], qid=["a", "b", "a"])
    >>> data
    QueryDataset(3 rows, 2 queries, 1 feature; labels 0: 1, 1: 1, 2: 1)
    >>> data.query_ptr
    array([0, 2, 3])
    """

    features: Matrix
    rows: Rows
    y: np.ndarray
    query_ids: np.ndarray
    query_of_row: np.ndarray
    weight: np.ndarray | None
    query_weight: np.ndarray | None
    base_score: np.ndarray | None
    positions: Positions | None
    docid_column: TextColumn | None
    query_ptr: np.ndarray
    order: np.ndarray | None
    _feature_names: tuple[str, ...] | None
    absent_given: str | None
    _categories: Categories

    def __init__(
        self,
        X: Features | None,
        y: ArrayLike,
        qid: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        docid: Iterable[object] | TextColumn | None = None,
        feature_names: Sequence[str] | None = None,
        query_weight: ArrayLike | Mapping[Any, float] | None = None,
        base_score: ArrayLike | None = None,
        absent: str | None = None,
        categorical: Categorical | None = None,
        position: ArrayLike | None = None,
        position_context: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> None:
        labels = check_labels(y)
        n_rows = labels.size
        query_ids, query_of_row = check_queries(qid, n_rows)
        features, categories = table_or_features(X, n_rows, feature_names, categorical)
        self._assemble(
            features,
            None,
            labels,
            query_ids,
            query_of_row,
            weight=check_weights("weight", weight, n_rows, "row"),
            docid=check_docids(docid, n_rows),
            feature_names=check_feature_names(feature_names, features.shape[1]),
            query_weight=check_query_weights(query_weight, query_ids),
            base_score=check_base_score(base_score, n_rows),
            positions=check_positions(position, position_context, n_rows),
            absent=absent if absent is None else check_absent(absent, "QueryDataset"),
            categories=categories,
        )
        if categories is None:  # an array, whose names have been checked now
            self.__dict__["_categories"] = self._checked_categories(categorical)

    @classmethod
    def from_parts(
        cls,
        features: Matrix,
        y: np.ndarray,
        query_ids: np.ndarray,
        query_of_row: np.ndarray,
        *,
        rows: Rows = None,
        feature_hashes: np.ndarray | None = None,
        **columns: Any,
    ) -> QueryDataset:
        """Build from parts that are already in their final form, unchecked: for readers and views.

        `feature_hashes` may be passed if they are already known; `columns` are the keyword
        arguments of :meth:`_assemble`.
        """
        self = cls.__new__(cls)
        self._assemble(features, rows, y, query_ids, query_of_row, **columns)
        if feature_hashes is not None:
            vars(self)["feature_hashes"] = feature_hashes
        return self

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        *,
        label: str | None = "label",
        qid: str = "qid",
        features: Sequence[str] | None = None,
        weight: str | None = None,
        docid: str | None = None,
        base_score: str | None = None,
        categorical: Categorical | None = None,
        position: str | None = None,
        position_context: str | Sequence[str] | None = None,
    ) -> QueryDataset:
        """Build from a pandas, polars or pyarrow table by column names.

        `label` None: nothing is judged, and all labels are 0. `docid` None takes the column
        ``docid``, if there is one without another role; `features`
        None takes every column without another role. Columns of text, and of the table's type for
        categories, are categorical; `categorical` names others, such as whole numbers that are
        ids.
        """
        from rankgrove.data.tabular import dataset_from_frame

        return dataset_from_frame(
            frame,
            label=label,
            qid=qid,
            features=features,
            weight=weight,
            docid=docid,
            base_score=base_score,
            categorical=categorical,
            position=position,
            position_context=position_context,
        )

    def table_columns(self) -> Columns:
        """Return the table's columns, as `from_frame` reads them: ids, label, weights, features."""
        from rankgrove.data.dataset_columns import columns_of

        return columns_of(self)

    def _assemble(
        self,
        features: Matrix,
        rows: Rows,
        y: np.ndarray,
        query_ids: np.ndarray,
        query_of_row: np.ndarray,
        *,
        weight: np.ndarray | None = None,
        docid: TextColumn | None = None,
        feature_names: tuple[str, ...] | None = None,
        query_weight: np.ndarray | None = None,
        base_score: np.ndarray | None = None,
        positions: Positions | None = None,
        absent: str | None = None,
        categories: Categories | None = None,
    ) -> None:
        sizes = np.bincount(query_of_row, minlength=query_ids.size)
        adjacent = bool(np.all(query_of_row[1:] >= query_of_row[:-1]))
        self.__dict__.update(  # __setattr__ refuses; cached properties are stored here too
            features=frozen_matrix(features),
            rows=rows,
            y=frozen(y),
            query_ids=frozen(query_ids),
            query_of_row=frozen(query_of_row),
            weight=None if weight is None else frozen(weight),
            query_weight=None if query_weight is None else frozen(query_weight),
            base_score=None if base_score is None else frozen(base_score),
            positions=positions,
            docid_column=docid,
            _feature_names=feature_names,
            absent_given=absent,
            _categories=categories or {},
            query_ptr=frozen(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])),
            order=None if adjacent else frozen(np.argsort(query_of_row, kind="stable")),
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"A QueryDataset is frozen: its attribute {name!r} cannot be set. "
            "Make a new one with QueryDataset(X, y, qid=...)."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A QueryDataset is frozen: its attribute {name!r} cannot be deleted.")

    # -- sizes and columns ------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return int(self.y.size)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return int(self.query_ids.size)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.features.shape[1])

    @cached_property
    def X(self) -> Matrix:
        """The features in the caller's row order, float32 (a view's rows are copied once)."""
        if self.rows is None:
            return self.features
        return frozen_matrix(self.features[self.rows])

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a scipy CSR matrix."""
        return not isinstance(self.features, np.ndarray)

    @cached_property
    def qid(self) -> np.ndarray:
        """The query id of every row."""
        return frozen(self.query_ids[self.query_of_row])

    @cached_property
    def docid(self) -> np.ndarray | None:
        """The document id of every row, or None where the data has none."""
        return None if self.docid_column is None else frozen(self.docid_column.to_array())

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The feature names; ``f1``, ``f2``, ... if none were given."""
        return self._feature_names or tuple(f"f{i + 1}" for i in range(self.n_features))

    @property
    def has_feature_names(self) -> bool:
        """Whether the feature names were given by the caller."""
        return self._feature_names is not None

    @property
    def given_names(self) -> tuple[str, ...] | None:
        """The feature names that were given, or None."""
        return self._feature_names

    @cached_property
    def absent(self) -> str:
        """``"zero"`` or ``"missing"``: the value of a feature that a row does not mention."""
        if self.absent_given is not None:
            return self.absent_given
        return "missing" if has_missing(self.features) else "zero"

    @cached_property
    def query_keys(self) -> np.ndarray:
        """A uint64 key per query, from its id, for random draws independent of file order."""
        return frozen(string_keys(self.query_ids))

    @cached_property
    def row_keys(self) -> np.ndarray:
        """A uint64 key per row, in query order, computed from its query id and features.

        Random draws depend on it, not on file order. Rows of a query with equal features are
        distinguished by label, weight and base score, and then by their order.
        """
        from rankgrove.data.row_keys import content_keys

        return frozen(content_keys(self, self.feature_hashes))

    @cached_property
    def feature_hashes(self) -> np.ndarray:
        """A hash of the features of every row, in query order."""
        from rankgrove.data.row_keys import hash_features

        return frozen(hash_features(self))

    def column(self, feature: int | str) -> np.ndarray:
        """Return one feature of every row, by 1-based number or by name."""
        j = self.feature_index(feature)
        rows = slice(None) if self.rows is None else self.rows
        if isinstance(self.features, np.ndarray):
            return frozen(self.features[rows, j])
        return frozen(self.features[:, [j]].toarray()[:, 0][rows])

    def copy_features(self, out: np.ndarray) -> None:
        """Write the features of every row, in the caller's order, into `out`."""
        rows = slice(None) if self.rows is None else self.rows
        picked = self.features[rows]
        out[...] = picked if isinstance(picked, np.ndarray) else picked.toarray()

    def feature_index(self, feature: int | str) -> int:
        """Return the column of a feature given by 1-based number (as in LETOR files) or name."""
        return feature_place(feature, self.feature_names)

    # -- categorical features ---------------------------------------------------------------

    @property
    def categories(self) -> Categories:
        """The categorical columns: column (from 0) -> the names of its codes, or None.

        None: the codes are plain numbers, without names. Empty: no column is categorical.
        """
        return dict(self._categories)

    @property
    def categorical(self) -> dict[int, tuple[str, ...] | None]:
        """The categorical features as the constructor takes them, by 1-based number."""
        return {column + 1: names for column, names in self._categories.items()}

    def with_categorical(self, categorical: Categorical | None) -> QueryDataset:
        """Return the data set with these categorical features, and no others.

        Parameters
        ----------
        categorical : as in the constructor; their columns must hold codes

        Examples
        --------
        >>> import rankgrove as rg
        >>> data = rg.QueryDataset([[0.1, 1], [0.7, 0]], [0, 2], qid=["a", "a"])
        >>> data.with_categorical({2: ["acme", "bolt"]}).categories
        {1: ('acme', 'bolt')}
        """
        return self._with(categories=self._checked_categories(categorical))

    def recoded(self, categories: Categories) -> QueryDataset:
        """Return the data set with the codes of other names, of columns that have names in both.

        A category whose name is not among them becomes a missing value. Columns where all names
        are the same are not copied.
        """
        tables = {
            column: code_table(names, wanted)
            for column, wanted in categories.items()
            if wanted is not None
            and (names := self._categories.get(column)) is not None
            and names != wanted
        }
        if not tables:
            return self
        new: Categories = self._categories | {column: categories[column] for column in tables}
        return QueryDataset.from_parts(
            recoded(self.X, tables),
            self.y,
            self.query_ids,
            self.query_of_row,
            **self._columns() | {"categories": new},
        )

    def with_codes_of(self, categories: Categories) -> QueryDataset:
        """Return the data set with its columns taken as codes of these categories.

        Codes without a name become missing values.
        """
        if categories == self._categories:
            return self
        given = self._categories
        new = {j: v for j, v in categories.items() if v is not None and given.get(j) is None}
        if not new or (known := without_unknown(self.X, new)) is self.X:
            return self._with(categories=categories)
        return QueryDataset.from_parts(
            known,
            self.y,
            self.query_ids,
            self.query_of_row,
            **self._columns() | {"categories": categories},
        )

    def _checked_categories(self, categorical: Categorical | None) -> Categories:
        categories = categorical_columns(categorical, self.feature_names)
        check_codes(self.X, categories, self.feature_names)
        return categories

    # -- between the caller's order and query order -----------------------------------------

    def grouped(self, values: np.ndarray) -> np.ndarray:
        """Return `values`, one per row in the caller's order, in query order."""
        return values if self.order is None else values[self.order]

    def ungrouped(self, values: np.ndarray) -> np.ndarray:
        """Return `values`, one per row in query order, in the caller's order."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out

    # -- subsets ----------------------------------------------------------------------------

    def select(self, queries: ArrayLike) -> QueryDataset:
        """Return the data set of some queries, as a view.

        Parameters
        ----------
        queries : positions in ``query_ids`` in the desired order, or a mask of n_queries booleans
        """
        return subset(self, chosen_queries(queries, self.n_queries))

    def select_ids(self, ids: ArrayLike) -> QueryDataset:
        """Return the data set of the queries with these ids, in the order of `ids`."""
        position = {token: i for i, token in enumerate(self.query_ids.tolist())}
        try:
            return self.select([position[token] for token in np.atleast_1d(ids).tolist()])
        except KeyError as missing:
            raise DataError(f"There is no query with the id {missing.args[0]!r}.") from None

    def with_base_score(self, scores: ArrayLike | None) -> QueryDataset:
        """Return the data set with these base scores, one per row (None: without base scores).

        Examples
        --------
        >>> import rankgrove as rg
        >>> data = rg.QueryDataset([[0.1], [0.7]], [0, 2], qid=["a", "a"])
        >>> data.with_base_score([1.5, 0.5]).base_score
        array([1.5, 0.5])
        """
        return self._with(base_score=check_base_score(scores, self.n_rows))

    def with_positions(
        self,
        position: ArrayLike | Positions | None,
        context: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> QueryDataset:
        """Return the data set with these positions, one per row (None: without positions).

        Parameters
        ----------
        position, context : as `position` and `position_context` of the constructor; or the
            ``positions`` of another data set with the same rows
        """
        if not isinstance(position, Positions):
            position = check_positions(position, context, self.n_rows)
        return self._with(positions=position)

    def _with(self, **changed: Any) -> QueryDataset:
        """Return the data set with other columns, which are arguments of :meth:`_assemble`."""
        columns = self._columns() | changed
        return QueryDataset.from_parts(
            self.features, self.y, self.query_ids, self.query_of_row, rows=self.rows, **columns
        )

    def with_n_features(self, n_features: int) -> QueryDataset:
        """Return the data set with `n_features` features: last ones cut, or absent ones added."""
        if n_features == self.n_features:
            return self
        columns = self._columns()
        if n_features > self.n_features:
            columns["feature_names"] = None
        elif self._feature_names is not None:
            columns["feature_names"] = self._feature_names[:n_features]
        columns["categories"] = {j: v for j, v in self._categories.items() if j < n_features}
        return QueryDataset.from_parts(
            resized(self.features, n_features, self.absent),
            self.y,
            self.query_ids,
            self.query_of_row,
            rows=self.rows,
            **columns,
        )

    def without_features(self) -> QueryDataset:
        """Return the data set with the same number of features, all 0, which take no memory."""
        import scipy.sparse

        shape: Any = (self.n_rows, self.n_features)  # scipy's stubs do not know this form
        return QueryDataset.from_parts(
            scipy.sparse.csr_matrix(shape, dtype=np.float32),
            self.y,
            self.query_ids,
            self.query_of_row,
            feature_hashes=self.feature_hashes,  # row_keys stay the same
            **self._columns() | {"absent": self.absent},
        )

    def _columns(self) -> dict[str, Any]:
        """Return the keyword arguments of :meth:`_assemble`."""
        return {
            "weight": self.weight,
            "docid": self.docid_column,
            "feature_names": self._feature_names,
            "query_weight": self.query_weight,
            "base_score": self.base_score,
            "positions": self.positions,
            "absent": self.absent_given,
            "categories": self._categories,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the rows of a view; the copy is frozen too."""
        columns = self._columns()
        if self.docid_column is not None:
            columns["docid"] = self.docid_column.compact()
        parts = (self.X, np.array(self.y), np.array(self.query_ids), np.array(self.query_of_row))
        hashes = vars(self).get("feature_hashes")
        return partial(QueryDataset.from_parts, feature_hashes=hashes, **columns), parts

    # -- representation ---------------------------------------------------------------------

    def __len__(self) -> int:
        return self.n_rows

    def _repr_html_(self) -> str:
        sizes = np.diff(self.query_ptr)
        rows = [
            ["rows", f"{self.n_rows:,}"],
            ["queries", f"{self.n_queries:,}, of {sizes.min():,} to {sizes.max():,} rows"],
            ["features", f"{self.n_features:,}{' (sparse)' if self.is_sparse else ''}"],
            ["absent features", "0" if self.absent == "zero" else "missing"],
            ["labels", self._label_text()],
        ]
        if self._categories:
            texts = (
                f"{self.feature_names[j]}: {names_text(v)}" for j, v in self._categories.items()
            )
            rows.append(["categorical features", "; ".join(texts)])
        return html_table("QueryDataset", [], rows)

    def _label_text(self) -> str:
        values, counts = np.unique(self.y, return_counts=True)
        if values.size > 10:
            return f"{values[0]:g} to {values[-1]:g}"
        return ", ".join(f"{v:g}: {c:,}" for v, c in zip(values, counts, strict=True))

    def __repr__(self) -> str:
        n_categorical = len(self._categories)
        extras = "".join(
            f", {name}"
            for name, there in [
                ("weighted rows", self.weight is not None),
                ("weighted queries", self.query_weight is not None),
                ("base scores", self.base_score is not None),
                ("positions", self.positions is not None),
                ("sparse", self.is_sparse),
                (f"{n_categorical} categorical", n_categorical),
            ]
            if there
        )
        return (
            f"QueryDataset({counted(self.n_rows, 'row')}, "
            f"{counted(self.n_queries, 'query', 'queries')}, "
            f"{counted(self.n_features, 'feature')}{extras}; labels {self._label_text()})"
        )


def query_order_rows(data: QueryDataset) -> np.ndarray | slice | None:
    """Return the rows of ``data.features`` in query order."""
    if data.order is None:
        return data.rows
    if data.rows is None:
        return data.order
    all_rows = np.arange(data.features.shape[0])
    return np.asarray(all_rows[data.rows][data.order])
