"""Runs and judgements in other forms: data frames, ranx's classes, the tuples of ir_datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rankgrove.errors import DataError

Table = Mapping[Any, Mapping[Any, Any]]

# The names that columns and fields have elsewhere.
_QUERY = ("query_id", "qid", "q_id")
_DOCUMENT = ("doc_id", "docno", "docid")
_VALUE = {"run": ("score",), "qrels": ("relevance", "label", "rel", "grade")}


def as_run(given: Any) -> Table:
    """Return a run as a mapping {query id: {document id: score}}, or refuse it.

    It may be a mapping, a ranx Run, a pandas or polars frame (columns query_id or qid; doc_id,
    docno or docid; score) or tuples with fields of those names.
    """
    return _as_table(given, "run")


def as_qrels(given: Any) -> Table:
    """Return judgements as a mapping {query id: {document id: grade}}, or refuse them.

    As :func:`as_run`; the grade is called relevance, label, rel or grade. A data set of
    ir_datasets is asked for its judgements.
    """
    if hasattr(given, "qrels_iter"):
        given = given.qrels_iter()
    return _as_table(given, "qrels")


def _as_table(given: Any, what: str) -> Table:
    if isinstance(given, Mapping):
        return given
    if hasattr(given, "columns"):
        return _of_frame(given, what)
    if type(given).__module__.partition(".")[0] == "ranx":
        return {qid: dict(documents) for qid, documents in given.to_dict().items()}
    rows = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    if not rows or not hasattr(rows[0], "_fields"):
        raise DataError(
            f"As {what}, give a mapping {{query id: {{document id: {_VALUE[what][0]}}}}}, a ranx "
            f"{what.capitalize()}, a data frame, or tuples with the fields query_id, doc_id and "
            f"{_VALUE[what][0]} (models and plain scores need a QueryDataset). "
            f"Got {type(given).__name__}."
        )
    place = [rows[0]._fields.index(name) for name in _names(rows[0]._fields, what, "fields")]
    return _collected(((row[p] for p in place) for row in rows), what)


def _of_frame(frame: Any, what: str) -> Table:
    names = _names(list(frame.columns), what, "columns")
    return _collected(zip(*(list(frame[name]) for name in names), strict=True), what)


def _names(known: Iterable[str], what: str, kind: str) -> list[str]:
    """Return what the query, the document and the value are called."""
    taken = list(known)
    names = []
    for choices in (_QUERY, _DOCUMENT, _VALUE[what]):
        found = [name for name in choices if name in taken]
        if not found:
            raise DataError(
                f"The {what} must have one of the {kind} {', '.join(choices)}. It has: "
                f"{', '.join(map(str, taken))}."
            )
        names.append(found[0])
    return names


def _collected(entries: Iterable[Iterable[Any]], what: str) -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    for qid, docid, value in entries:
        documents = table.setdefault(str(qid), {})
        if str(docid) in documents:
            raise DataError(
                f"The document {str(docid)!r} stands twice in query {str(qid)!r} of the {what}: "
                "leave one out."
            )
        documents[str(docid)] = value
    return table
