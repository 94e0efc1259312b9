"""Runs and judgements in other forms: data frames, classes of ranx, tuples of ir_datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from rankgrove.data.arrays import DataFrame
from rankgrove.data.tabular import column_names, numbers_of, tokens_of
from rankgrove.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from rankgrove.data.arrays import Frame
    from rankgrove.frames import Columns

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
        return table_of_frame(cast(DataFrame, table), role)
    if _is_of_ranx(table):
        return table_of_ranx(cast(RanxTable, table), role)
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


def table_of_frame(frame: Frame, role: str) -> Table:
    """Return a run or qrels (`role`) from a table, or from a mapping of columns."""
    names = _names([str(name) for name in column_names(frame)], role, "columns")
    queries, documents = (_ids(frame, name, role) for name in names[:2])
    numbers = numbers_of(frame, names[2], f"The values of the {role}").tolist()
    if role == "qrels":
        numbers = [int(x) if isinstance(x, float) and x.is_integer() else x for x in numbers]
    return _collected(zip(queries, documents, numbers, strict=True), role)


def _ids(frame: Frame, name: str, role: str) -> list[Any]:
    ids: list[Any] = tokens_of(frame, name, nulls=True).tolist()
    if None in ids:
        raise DataError(
            f"Every row of the {role} needs a query and a document. The column {name!r} has none "
            f"in row {ids.index(None)}."
        )
    return ids


def columns_of(table: Table, value: str) -> Columns:
    """Return a run or qrels as columns: query_id, doc_id and `value`."""
    kind = np.float64 if value == "score" else None  # grades may be whole numbers
    return {
        "query_id": [str(qid) for qid, documents in table.items() for _ in documents],
        "doc_id": [str(docid) for documents in table.values() for docid in documents],
        value: np.array([x for documents in table.values() for x in documents.values()], kind),
    }


def without_empty(table: Table, kind: type) -> dict[str, dict[str, Any]]:
    """Return plain dicts of the queries that have documents, with values of one type."""
    return {
        str(qid): {str(docid): kind(value) for docid, value in documents.items()}
        for qid, documents in table.items()
        if documents
    }


def _is_of_ranx(table: object) -> bool:
    return type(table).__module__.partition(".")[0] == "ranx"


def table_of_ranx(table: RanxTable, role: str) -> Table:
    """Return the plain dicts of a ranx Run or Qrels."""
    if not _is_of_ranx(table) or not hasattr(table, "to_dict"):
        raise DataError(
            f"{role.capitalize()}.from_ranx takes a ranx {role.capitalize()}. Got "
            f"{type(table).__name__}: give mappings to rg.{role.capitalize()}(...), and tables to "
            "from_frame."
        )
    kind = float if role == "run" else int
    return {
        str(qid): {str(docid): kind(value) for docid, value in documents.items()}
        for qid, documents in table.to_dict().items()
    }


def ranx(purpose: str) -> Any:
    """Return the package ranx, imported."""
    try:
        import ranx as package
    except ImportError:
        raise MissingExtraError("ranx", "ranx", purpose) from None
    return package


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
