"""TREC runs and judgements as values.

A run has the scores of the documents that a system retrieved for every query; qrels have the
grades of documents. Both are plain dicts of dicts, which other tools accept as they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rankgrove.errors import DataError
from rankgrove.frames import Tabular
from rankgrove.showing import html_table
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.data.arrays import Frame
    from rankgrove.data.trec_tables import RanxTable
    from rankgrove.frames import Columns

SHOWN_GRADES = 10
Value = TypeVar("Value", int, float)


class Run(Tabular, dict[str, dict[str, float]]):
    """The scores of one retrieval system: ``run[qid][docid]``.

    `to_pandas`, `to_polars` and `to_arrow` have the columns query_id, doc_id and score, as
    ir_measures has them.

    Parameters
    ----------
    scores : mapping from query id to a mapping from document id to score
    name : the system's name, the last field of a run file

    Raises
    ------
    DataError
        If a score is not a number; the message names query and document. Minus infinity is
        allowed: it means that a document was not retrieved.

    Examples
    --------
    >>> run = Run({"7": {"d1": 0.5, "d2": 1.5}}, name="bm25")
    >>> run.name, run["7"]["d2"]
    ('bm25', 1.5)
    """

    def __init__(
        self,
        scores: Mapping[str, dict[str, float]] | Iterable[tuple[str, dict[str, float]]] = (),
        name: str = "run",
    ) -> None:
        super().__init__(_pairs(scores, "a run", "score"))
        self.name = name
        check_run(self)

    @classmethod
    def from_frame(cls, frame: Frame, name: str = "run") -> Self:
        """Return the run of a pandas, polars or pyarrow table, or a mapping of columns.

        Its columns are query_id, qid or q_id; doc_id, docno or docid; and score.

        Examples
        --------
        >>> Run.from_frame({"qid": ["7", "7"], "docno": ["d1", "d2"], "score": [0.5, 1.5]})
        Run('run', 1 query, 2 documents)
        """
        from rankgrove.data.trec_tables import table_of_frame

        return cls(table_of_frame(frame, "run"), name=name)

    @classmethod
    def from_ranx(cls, run: RanxTable) -> Self:
        """Return the run of a ranx Run."""
        from rankgrove.data.trec_tables import table_of_ranx

        return cls(table_of_ranx(run, "run"), getattr(run, "name", None) or "run")

    def to_ranx(self) -> Any:
        """Return a ranx Run of the same name; it has no queries without documents."""
        from rankgrove.data.trec_tables import ranx, without_empty

        return ranx("Run.to_ranx").Run(without_empty(self, float), name=self.name)

    def table_columns(self) -> Columns:
        """Return the table's columns, one row per document."""
        from rankgrove.data.trec_tables import columns_of

        return columns_of(self, "score")

    def _repr_html_(self) -> str:
        return html_table(f"Run {self.name!r}", [], _sizes(self, "documents"))

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {_counts(self, 'document')})"


class Qrels(Tabular, dict[str, dict[str, int]]):
    """Judgements: ``qrels[qid][docid]`` is a whole-number grade; higher is better.

    `to_pandas`, `to_polars` and `to_arrow` have the columns query_id, doc_id and relevance, as
    ir_measures has them.

    Parameters
    ----------
    grades : mapping from query id to a mapping from document id to grade

    Raises
    ------
    DataError
        If a grade is not a finite number; the message names query and document.

    Examples
    --------
    >>> Qrels({"7": {"d1": 0, "d2": 2}})
    Qrels(1 query, 2 judgements)
    """

    def __init__(
        self, grades: Mapping[str, dict[str, int]] | Iterable[tuple[str, dict[str, int]]] = ()
    ) -> None:
        super().__init__(_pairs(grades, "qrels", "grade"))
        check_qrels(self)

    @classmethod
    def from_frame(cls, frame: Frame) -> Self:
        """Return the judgements of a pandas, polars or pyarrow table, or a mapping of columns.

        Its columns are query_id, qid or q_id; doc_id, docno or docid; and relevance, label, rel or
        grade.

        Examples
        --------
        >>> Qrels.from_frame({"qid": ["7", "7"], "docno": ["d1", "d2"], "label": [0, 2]})
        Qrels(1 query, 2 judgements)
        """
        from rankgrove.data.trec_tables import table_of_frame

        return cls(table_of_frame(frame, "qrels"))

    @classmethod
    def from_ranx(cls, qrels: RanxTable) -> Self:
        """Return the judgements of a ranx Qrels."""
        from rankgrove.data.trec_tables import table_of_ranx

        return cls(table_of_ranx(qrels, "qrels"))

    def to_ranx(self) -> Any:
        """Return a ranx Qrels; it has no queries without judgements."""
        from rankgrove.data.trec_tables import ranx, without_empty

        return ranx("Qrels.to_ranx").Qrels(without_empty(self, int))

    def table_columns(self) -> Columns:
        """Return the table's columns, one row per judgement."""
        from rankgrove.data.trec_tables import columns_of

        return columns_of(self, "relevance")

    def _repr_html_(self) -> str:
        grades = Counter(grade for documents in self.values() for grade in documents.values())
        rows = [[f"grade {grade}", f"{n:,}"] for grade, n in sorted(grades.items())[:SHOWN_GRADES]]
        return html_table("Qrels", [], [*_sizes(self, "judgements"), *rows])

    def __repr__(self) -> str:
        return f"Qrels({_counts(self, 'judgement')})"


def _sizes(table: Mapping[str, Mapping[str, float]], entries: str) -> list[list[str]]:
    """Return the rows of a small table about a run or qrels."""
    n_entries = sum(len(documents) for documents in table.values())
    return [["queries", f"{len(table):,}"], [entries, f"{n_entries:,}"]]


def _counts(table: Mapping[str, Mapping[str, float]], entry: str) -> str:
    n_entries = sum(len(documents) for documents in table.values())
    return f"{counted(len(table), 'query', 'queries')}, {counted(n_entries, entry)}"


def _pairs(
    table: Mapping[str, dict[str, Value]] | Iterable[tuple[str, dict[str, Value]]],
    noun: str,
    value: str,
) -> dict[str, dict[str, Value]]:
    """Return the queries of a run or of qrels as a dict."""
    try:
        return dict(table)
    except (TypeError, ValueError):
        raise DataError(_not_a_table(table, noun, value)) from None


def _not_a_table(table: object, noun: str, value: str) -> str:
    return (
        f"{noun.capitalize()} must be a mapping {{query id: {{document id: {value}}}}}. "
        f"Got {type(table).__name__}."
    )


def check_run(run: object) -> None:
    """Refuse a run that is not a mapping {query id: {document id: score}}."""
    _check_table(run, "a run", "score")


def check_qrels(qrels: object) -> None:
    """Refuse qrels that are not a mapping {query id: {document id: grade}}."""
    _check_table(qrels, "qrels", "grade")


def _check_table(table: object, noun: str, value: str) -> None:
    if not isinstance(table, Mapping):
        raise DataError(_not_a_table(table, noun, value))
    for qid, documents in table.items():
        if not isinstance(documents, Mapping):
            raise DataError(
                f"The query {qid!r} of {noun} must have a mapping {{document id: {value}}}. "
                f"Got {type(documents).__name__}."
            )
        if _all_plain(documents):
            continue
        for docid, number in documents.items():
            check_value(qid, docid, number, value)


def _all_plain(documents: Mapping[Any, Any]) -> bool:
    """Return whether all values are plain finite numbers; a fast check, two passes in C."""
    values = documents.values()
    try:
        return set(map(type, values)) <= {int, float} and abs(sum(values)) < 1e308
    except OverflowError:  # a whole number too large for a float
        return False


def check_value(qid: object, docid: object, number: object, what: str) -> float:
    """Return a score or a grade (`what`) as a float; an error names query and document."""
    try:
        value = float(number) if isinstance(number, Real) else math.nan
    except OverflowError:
        value = math.inf
    if math.isfinite(value) or (value == -math.inf and what == "score"):
        return value
    rule = (
        "scores must be finite, or minus infinity for a document not retrieved."
        if what == "score"
        else "grades must be finite numbers."
    )
    raise DataError(
        f"The document {docid!r} of query {qid!r} has the {what} {_shown(number)}: {rule}"
    )


def _shown(value: object) -> str:
    text = repr(float(value)) if isinstance(value, float) else repr(value)
    return text if len(text) <= 40 else text[:40] + "..."
