"""``rg.rank``: the documents of every query in the order of a model's scores, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.dataset_checks import is_frame
from rankgrove.data.dataset_columns import feature_column
from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec_values import Run
from rankgrove.errors import DataError
from rankgrove.evaluation.evaluate import Predictor, scores_of
from rankgrove.frames import Tabular, write_columns
from rankgrove.measures.base import rank as ranked
from rankgrove.operations.named_features import dataset_of_frame
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.early_exit import calibrated_in
from rankgrove.showing import html_table
from rankgrove.validation import check_flag, check_integer, counted

if TYPE_CHECKING:
    from rankgrove.data.arrays import Frame
    from rankgrove.frames import Columns

OWNER = "rank"
COLUMNS = ("qid", "docid", "rank", "score", "row")
SHOWN_ROWS = 10


@dataclass(frozen=True, eq=False, repr=False)
class RankedDocuments(Tabular):
    """Documents in the order of a model's scores: the result of :func:`rank`.

    `to_pandas`, `to_polars` and `to_arrow` have a row per document, with all these columns.

    Attributes
    ----------
    qid : the query id of every document; queries in the order of the data
    docid : the document ids; ``row12`` where the data has none
    rank : from 1 in every query
    score : descending in every query
    row : the number of the document's row in the data, from 0
    features : the columns of the features by name; empty unless they were asked for
    relevance : the expected grade, where the model is calibrated; else None
    """

    qid: np.ndarray
    docid: np.ndarray
    rank: np.ndarray
    score: np.ndarray
    row: np.ndarray
    features: Mapping[str, np.ndarray] = field(default_factory=dict)
    relevance: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.row.size)

    def __repr__(self) -> str:
        n_queries = np.count_nonzero(self.rank == 1)
        queries = counted(int(n_queries), "query", "queries")
        return f"RankedDocuments({counted(len(self), 'document')}, {queries})"

    def _repr_html_(self) -> str:
        names = ["qid", "docid", "rank", "score"]
        names += [] if self.relevance is None else ["relevance"]
        rows = [
            [q, d, str(r), *(f"{value:.4f}" for value in values)]
            for q, d, r, *values in zip(
                *(getattr(self, name)[:SHOWN_ROWS].tolist() for name in names), strict=True
            )
        ]
        more = len(self) - len(rows)
        note = f"and {counted(more, 'other document')}" if more else ""
        return html_table(repr(self), names, rows, note)

    def table_columns(self) -> Columns:
        """Return the columns: qid, docid, rank, score, row, maybe relevance, and the features."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        if self.relevance is not None:
            columns["relevance"] = self.relevance
        return columns | dict(self.features)

    def to_run(self, name: str = "rankgrove") -> Run:
        """Return the ranking as a run, which other tools and `rg.evaluate` with qrels take."""
        run: dict[str, dict[str, float]] = {}
        for qid, docid, score in zip(
            self.qid.tolist(), self.docid.tolist(), self.score.tolist(), strict=True
        ):
            documents = run.setdefault(str(qid), {})
            if docid in documents:
                raise DataError(
                    f"The document {docid!r} appears twice in query {qid!r}: a run needs distinct "
                    "document ids."
                )
            documents[docid] = score
        return Run(run, name=name)

    def write(self, path: str | Path) -> None:
        """Write the table as parquet, CSV, TSV or arrow, by the ending of the name.

        Needs the extra ``tables`` (pyarrow).
        """
        write_columns(self.table_columns(), path, "a ranking")


def rank(
    model: Predictor,
    data: QueryDataset | Frame,
    *,
    top: int | None = None,
    features: bool = False,
    qid: str = "qid",
    docid: str | None = None,
    n_threads: int | None = None,
) -> RankedDocuments:
    """Rank the documents of every query by a model, and return them as a table.

    Documents with equal scores stay in the order of the data's rows, as :func:`evaluate` has them.

    Parameters
    ----------
    model : a ranker, or any object with ``predict``
    data : a data set; or a pandas, polars or pyarrow table with the model's features as columns, in
        any order and among others. It needs no labels
    top : the number of documents to keep per query; scoring of others stops early. None: all
    features : whether the table has the features too
    qid, docid : the columns of query ids and document ids, where `data` is a table; `docid` None
        takes the column ``docid``, if there is one
    n_threads : number of threads; None: the ranker's own

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.QueryDataset([[0.1], [0.7]], [0, 2], qid=["a", "a"], docid=["d1", "d2"])
    >>> class First:
    ...     def predict(self, X):
    ...         return X[:, 0]
    >>> ranking = rg.rank(First(), data)
    >>> ranking.docid.tolist(), ranking.rank.tolist()
    (['d2', 'd1'], [1, 2])
    """
    check_flag("features", OWNER, features)
    if top is not None:
        check_integer("top", OWNER, top, low=1)
    if not isinstance(data, QueryDataset):
        if not (is_frame(data) or isinstance(data, Mapping)):
            raise DataError(
                f"{OWNER} takes a QueryDataset, or a pandas, polars or pyarrow table with a column "
                f"of query ids. Got {type(data).__name__}."
            )
        data = dataset_of_frame(model, data, OWNER, qid=qid, docid=docid)
    scores = _scores(model, data, top, n_threads)
    expected = None
    calibrated = calibrated_in(model)
    if calibrated is not None:
        expected = calibrated.relevance_of(scores).expected
    return table_of_scores(data, scores, top, features, expected)


def table_of_scores(
    data: QueryDataset,
    scores: np.ndarray,
    top: int | None = None,
    features: bool = False,
    relevance: np.ndarray | None = None,
) -> RankedDocuments:
    """Return the ranking of one score per row; rows with the score minus infinity are left out.

    relevance : the expected grade of every row, for calibrated models
    """
    ranking = ranked(data.grouped(scores), data.query_ptr)
    sizes = np.diff(data.query_ptr)
    place = np.arange(data.n_rows) - np.repeat(data.query_ptr[:-1], sizes) + 1
    rows = ranking.order if data.order is None else data.order[ranking.order]
    kept = scores[rows] != -np.inf
    if top is not None:
        kept &= place <= top
    rows = rows[kept]
    names = data.feature_names if features else ()
    taken = [name for name in names if name in (*COLUMNS, "relevance")]
    if taken:
        raise DataError(
            f"{OWNER}: the feature {taken[0]!r} has the name of a column of the ranking: leave "
            "features=True out, and join them by 'row'."
        )
    return RankedDocuments(
        data.qid[rows],
        _documents(data, rows),
        place[kept],
        scores[rows],
        rows,
        {name: feature_column(data, j)[rows] for j, name in enumerate(names)},
        None if relevance is None else relevance[rows],
    )


def _scores(
    model: Predictor, data: QueryDataset, top: int | None, n_threads: int | None
) -> np.ndarray:
    if isinstance(model, Ranker):
        if top is not None:
            return model.predict_top(data, top, n_threads).scores
        return model.predict(data, n_threads)
    return scores_of(model, data, OWNER)[1]


def _documents(data: QueryDataset, rows: np.ndarray) -> np.ndarray:
    ids: Any = [""] * data.n_rows if data.docid is None else data.docid
    return np.array([ids[row] or f"row{row}" for row in rows.tolist()], dtype=object)
