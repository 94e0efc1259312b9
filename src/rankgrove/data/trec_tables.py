"""Runs and judgements in other forms: data frames, classes of ranx, tuples of ir_datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, cast

from rankgrove.data.arrays import DataFrame
from rankgrove.errors import DataError

Table = Mapping[Any, Mapping[Any, Any]]


class RanxTable(Protocol):
    """A ranx Run or Qrels: the members that are used."""

    def to_dict(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the mapping {query id: {document id: value}}."""


# A run or qrels in any form that is understood.
RunLike: TypeAlias = Table | DataFrame | RanxTable | Iterable[tuple[Any, ...]]

# The names that other libraries give to columns and fields.
_QUERY = ("query_id", "qid", "q_id")
_DOCUMENT = ("doc_id", "docno", "docid")
_VALUE = {"run": ("score",), "qrels": ("relevance", "label", "rel", "grade")}


def as_run(run: object) -> Table:
    """Return a run as a mapping {query id: {document id: score}}, or refuse it.

    It may be a mapping, a ranx Run, a pandas or polars data frame (columns query_id or qid; doc_id,
    docno or docid; score) or named tuples with fields of those names.
    """
    return _as_table(run, "run")


def as_qrels(qrels: object) -> Table:
    """Return judgements as a mapping {query id: {document id: grade}}, or refuse them.

    Like :func:`as_run`, but the value is called relevance, label, rel or grade, and a data set of
    ir_datasets is also accepted.
    """
    if hasattr(qrels, "qrels_iter"):
        qrels = qrels.qrels_iter()
    return _as_table(qrels, "qrels")


def _as_table(table: object, role: str) -> Table:
    if isinstance(table, Mapping):
        return table
    if hasattr(table, "columns"):
        return _of_frame(cast(DataFrame, table), role)
    if type(table).__module__.partition(".")[0] == "ranx":
        of_ranx = cast(RanxTable, table)
        return {qid: dict(documents) for qid, documents in of_ranx.to_dict().items()}
    rows = list(table) if isinstance(table, Iterable) and not isinstance(table, str) else []
    if not rows or not hasattr(rows[0], "_fields"):
        raise DataError(
            f"As {role}, give a mapping {{query id: {{document id: {_VALUE[role][0]}}}}}, a ranx "
            f"{role.capitalize()}, a data frame, or tuples with the fields query_id, doc_id and "
            f"{_VALUE[role][0]} (models and plain scores need a QueryDataset). "
            f"Got {type(table).__name__}."
        )
    place = [rows[0]._fields.index(name) for name in _names(rows[0]._fields, role, "fields")]
    return _collected(((row[p] for p in place) for row in rows), role)


def _of_frame(frame: DataFrame, role: str) -> Table:
    names = _names(list(frame.columns), role, "columns")
    return _collected(zip(*(list(frame[name]) for name in names), strict=True), role)


def _names(known: Iterable[str], role: str, kind: str) -> list[str]:
    """Return the names of the query, the document and the value."""
    present = list(known)
    names = []
    for choices in (_QUERY, _DOCUMENT, _VALUE[role]):
        matching = [name for name in choices if name in present]
        if not matching:
            raise DataError(
                f"The {role} must have one of the {kind} {', '.join(choices)}. It has: "
                f"{', '.join(map(str, present))}."
            )
        names.append(matching[0])
    return names


def _collected(entries: Iterable[Iterable[Any]], role: str) -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    for qid, docid, value in entries:
        documents = table.setdefault(str(qid), {})
        if str(docid) in documents:
            raise DataError(
                f"The document {str(docid)!r} appears twice in query {str(qid)!r} of the {role}: "
                "leave one out."
            )
        documents[str(docid)] = value
    return table
