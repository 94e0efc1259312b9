"""``rg.join_log``: logged features and judgements made into training data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.clicks.judgements import ClickJudgements
from rankgrove.data.file_kinds import is_table, is_text_table
from rankgrove.data.letor_write import write_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.data.table_files import read_table_file, table_columns
from rankgrove.data.tabular import finite_labels
from rankgrove.data.trec_files import read_qrels
from rankgrove.data.trec_tables import as_qrels
from rankgrove.data.trec_values import check_value
from rankgrove.errors import DataError, ParseError
from rankgrove.parity.log import FeatureLog
from rankgrove.parity.log_tables import role_column, texts_of
from rankgrove.parity.reading import read_feature_log
from rankgrove.showing import html_table
from rankgrove.validation import check_choice, check_output_file, check_real, counted

_OWNER = "join_log"
Grades = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class JoinedLog:
    """Logged documents that have a grade; prints as a summary.

    Attributes
    ----------
    dataset : a :class:`QueryDataset` with names of features and documents, in the log's order
    n_logged : number of documents in the log
    n_unjudged : number of those without a grade, which were left out or got `unjudged`
    n_repeated : number of documents that the log has more than once for a query; the last counts
    n_judged : number of judgements
    n_unlogged : number of those whose document is not in the log for that query
    n_queries_unlogged : number of judged queries of which the log has no document
    n_queries_unjudged : number of logged queries without a judgement
    notes : what else was left out
    """

    dataset: QueryDataset
    n_logged: int
    n_unjudged: int
    n_repeated: int
    n_judged: int
    n_unlogged: int
    n_queries_unlogged: int
    n_queries_unjudged: int
    notes: tuple[str, ...] = ()

    def _rows(self) -> list[tuple[str, str]]:
        data = self.dataset
        grades, counts = np.unique(data.y, return_counts=True)
        shown = ", ".join(
            f"{grade:g}: {n:,}" for grade, n in zip(grades.tolist(), counts.tolist(), strict=True)
        )
        of = counted(data.n_queries, "query", "queries")
        rows = [
            ("joined", f"{counted(data.n_rows, 'document')} of {of}, "
             f"{counted(data.n_features, 'feature')}"),
            ("grades", shown if grades.size <= 10 else f"{grades.min():g} to {grades.max():g}"),
            ("logged only", f"{counted(self.n_unjudged, 'document')} without a grade, of "
             f"{self.n_logged:,}; {counted(self.n_queries_unjudged, 'query', 'queries')} without "
             "any"),
            ("judged only", f"{counted(self.n_unlogged, 'judgement')} without a logged document, "
             f"of {self.n_judged:,}; {counted(self.n_queries_unlogged, 'query', 'queries')} not "
             "in the log"),
        ]  # fmt: skip
        if self.n_repeated:
            rows.append(("repeated", f"{counted(self.n_repeated, 'document')} logged more than "
                         "once for a query: the last one counts"))  # fmt: skip
        return [*rows, *(("note", note) for note in self.notes)]

    def __str__(self) -> str:
        return "\n".join(f"{name:<12} {text}" for name, text in self._rows())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("Joined log", [], self._rows())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write LETOR text, with the names of the features in comments at its head."""
        write_letor(self.dataset, path, names=True)


def join_log(
    log: FeatureLog | str | Path | Sequence[str | Path],
    judgements: Any,
    out: str | Path | None = None,
    *,
    unjudged: float | None = None,
    absent: str | None = None,
    query: str | None = None,
    document: str | None = None,
    grade: str | None = None,
    **reading: Any,
) -> JoinedLog:
    """Join logged features with judgements: the data to train on is what production saw.

    Parameters
    ----------
    log : a :class:`FeatureLog`, or files as :func:`read_feature_log` takes them
    judgements : qrels (a file or a mapping), a table with a row per judgement, a data frame of
        either, or judgements from clicks (:func:`judgements`)
    out : a LETOR file to write, with the names of the features in comments at its head
    unjudged : the grade of logged documents without a judgement, in judged queries. None: they are
        left out
    absent : what a feature is that a document lacks: ``"missing"`` (NaN) or ``"zero"``. None: as it
        was logged
    query, document, grade : the columns of a table of judgements. None: such as query_id, doc_id
        and grade
    **reading : for logs in files: other arguments of :func:`read_feature_log`, with ``log_query``
        and ``log_document`` for its `query` and `document`

    Returns
    -------
    JoinedLog

    Examples
    --------
    >>> import numpy as np, rankgrove as rg
    >>> log = rg.FeatureLog(
    ...     "table", ("bm25", "age"), np.array([[1.5, 3.0], [0.5, np.nan]]),
    ...     np.array(["rain", "rain"]), np.array(["d1", "d2"]), np.array([0.9, 0.1]))
    >>> joined = rg.join_log(log, {"rain": {"d1": 2, "d2": 0, "d3": 1}})
    >>> joined.dataset
    QueryDataset(2 rows, 1 query, 2 features; labels 0: 1, 2: 1)
    >>> joined.n_unlogged
    1
    """
    if absent is not None:
        check_choice("absent", _OWNER, absent, ["zero", "missing"])
    if unjudged is not None:
        unjudged = check_real("unjudged", _OWNER, unjudged)
    if out is not None:
        check_output_file("out", _OWNER, out)
    for name in ("query", "document"):
        if f"log_{name}" in reading:
            reading[name] = reading.pop(f"log_{name}")
    scored = log if isinstance(log, FeatureLog) else read_feature_log(log, **reading)
    joined = _joined(scored, _grades(judgements, query, document, grade), unjudged, absent)
    if out is not None:
        joined.write(out)
    return joined


# -- judgements -----------------------------------------------------------------------------------


def _grades(given: Any, query: str | None, document: str | None, grade: str | None) -> Grades:
    """Return judgements of any kind as grades by query and document."""
    if isinstance(given, ClickJudgements):
        return _by_query(given.query.tolist(), given.document.tolist(), given.label, "clicks")
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        if not is_table([path]):
            return read_qrels(path)
        return _of_table(path, query, document, grade)
    table = as_qrels(given)
    return {
        str(qid): {str(doc): check_value(qid, doc, value, "grade") for doc, value in docs.items()}
        for qid, docs in table.items()
    }


def _of_table(path: Path, query: str | None, document: str | None, grade: str | None) -> Grades:
    given = {"query": query, "document": document, "grade": grade}
    is_text = is_text_table(path)
    names = table_columns(path)
    if not names:  # reading it says why
        names = list(read_table_file(path, []).column_names)
    roles = {role: str(role_column(role, name, names, path)) for role, name in given.items()}
    texts = [roles["query"], roles["document"]] if is_text else []
    table = read_table_file(path, texts)
    try:
        grades = finite_labels(table, roles["grade"])
        return _by_query(
            texts_of(table, roles["query"]).tolist(),
            texts_of(table, roles["document"]).tolist(), grades, str(path),
        )  # fmt: skip
    except DataError as error:
        raise ParseError(path, None, str(error)) from None


def _by_query(queries: Sequence[Any], documents: Sequence[Any], grades: Any, of: str) -> Grades:
    table: dict[str, dict[str, float]] = {}
    for qid, doc, value in zip(queries, documents, np.asarray(grades).tolist(), strict=True):
        judged = table.setdefault(str(qid), {})
        if judged.setdefault(str(doc), float(value)) != float(value):
            raise DataError(
                f"The document {str(doc)!r} of query {str(qid)!r} has two grades, "
                f"{judged[str(doc)]:g} and {float(value):g}, in the judgements ({of}): keep one."
            )
    return table


# -- joining --------------------------------------------------------------------------------------


def _joined(
    log: FeatureLog, grades: Grades, unjudged: float | None, absent: str | None
) -> JoinedLog:
    queries = [str(q) for q in log.query]
    documents = [str(d) for d in log.document]
    last = {key: row for row, key in enumerate(zip(queries, documents, strict=True))}
    rows, labels, n_unjudged = [], [], 0
    for (qid, doc), row in last.items():
        judged = grades.get(qid)
        value = None if judged is None else judged.get(doc)
        if value is None:
            n_unjudged += 1
            value = None if judged is None else unjudged
        if value is not None:
            rows.append(row)
            labels.append(float(value))
    n_judged = sum(len(docs) for docs in grades.values())
    n_matched = len(last) - n_unjudged
    if not n_matched:
        raise DataError(_nothing(queries, documents, grades))
    order = np.argsort(rows, kind="stable")
    chosen = np.array(rows)[order]
    values = log.values[chosen]
    if absent == "zero":
        values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    lost = np.isinf(narrow) & np.isfinite(values)
    if lost.any():
        row, column = (int(at[0]) for at in np.nonzero(lost))
        raise DataError(
            f"Features are kept as float32, whose maximum is 3.4e38. {log.where(int(chosen[row]))} "
            f"has {values[row, column]:g} for {log.features[column]!r}: scale it."
        )
    known = set(queries)
    data = QueryDataset(
        narrow,
        np.array(labels)[order],
        np.array([queries[row] for row in chosen.tolist()]),
        docid=[documents[row] for row in chosen.tolist()],
        feature_names=list(log.features),
        absent=absent or ("missing" if np.isnan(narrow).any() else None),
    )
    return JoinedLog(
        data,
        len(last),
        n_unjudged,
        len(queries) - len(last),
        n_judged,
        n_judged - n_matched,
        sum(qid not in known for qid in grades),
        sum(qid not in grades for qid in known),
        log.notes,
    )


def _nothing(queries: Sequence[str], documents: Sequence[str], grades: Grades) -> str:
    qid = next(iter(grades), "")
    doc = next(iter(grades.get(qid, {})), "")
    return (
        f"Nothing matches: no judged document is in the log. The log has, for example, document "
        f"{documents[0]!r} of query {queries[0]!r}, the judgements {doc!r} of query {qid!r}. Say "
        "where the ids are: log_query and log_document (--query, --document)."
    )
