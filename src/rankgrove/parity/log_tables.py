"""Logs of scored documents as tables: a column per feature, and columns of ids and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data.file_kinds import is_text_table
from rankgrove.data.table_files import line_of_row, read_table_file, table_columns
from rankgrove.data.tabular import check_column, column_names, numbers_of
from rankgrove.errors import DataError, ParseError
from rankgrove.parity.log import FeatureLog
from rankgrove.parity.responses import Options

# What columns are called, in the order of preference; upper and lower case are the same.
NAMES = {
    "query": ("query_id", "qid", "query", "q"),
    "document": ("document_id", "doc_id", "docid", "docno", "document", "documentid", "_id", "id"),
    "score": ("score", "_score", "relevance"),
    "grade": ("grade", "label", "rel", "judgement", "judgment", "rating"),
}


def role_column(
    role: str, given: str | None, names: Sequence[Any], path: Path, *, needed: bool = True
) -> str | None:
    """Return the column of a role; None if there is none and it is not needed."""
    if given is not None:
        try:
            check_column(given, f"the {role} ({role}=, --{role})", list(names))
        except DataError as error:
            raise ParseError(path, None, str(error)) from None
        return given
    lower = {str(name).lower(): str(name) for name in reversed(list(names))}
    found = next((lower[name] for name in NAMES[role] if name in lower), None)
    if found is None and needed:
        raise ParseError(
            path,
            None,
            f"there is no column of the {role} ({', '.join(NAMES[role])}): name it, {role}= "
            f"(--{role}). The columns are {', '.join(map(str, names[:12]))}.",
        )
    return found


def texts_of(table: Any, name: str) -> np.ndarray:
    """Return a column of ids as texts."""
    return np.array([str(value) for value in table.column(name).to_pylist()], dtype=object)


def read_tables(files: Sequence[Path], options: Options, absent: str | None) -> FeatureLog:
    """Read tables of features and scores; every column of numbers without a role is a feature."""
    parts = [_read(file, options) for file in files]
    features = list(dict.fromkeys(name for part in parts for name in part["features"]))
    blocks, places = [], []
    for number, part in enumerate(parts):
        block = np.full((part["score"].size, len(features)), 0.0 if absent == "zero" else np.nan)
        for name, values in part["features"].items():
            block[:, features.index(name)] = values
        if absent == "zero":
            block[np.isnan(block)] = 0.0
        blocks.append(block)
        places.append(np.full(part["score"].size, number))
    values = np.vstack(blocks)
    log = {name: np.concatenate([part[name] for part in parts]) for name in ("query", "document")}
    lines = np.concatenate([part["line"] for part in parts])
    notes = tuple(dict.fromkeys(note for part in parts for note in part["notes"]))
    score = np.concatenate([part["score"] for part in parts])
    nothing = np.zeros(score.size, np.int64)
    return FeatureLog(
        "table", tuple(features), values, log["query"], log["document"], score,
        tuple(files), np.concatenate(places), lines, nothing, notes,
    )  # fmt: skip


def _read(path: Path, options: Options) -> Mapping[str, Any]:
    """Return the columns of one table."""
    is_text = is_text_table(path)
    names = table_columns(path) if is_text else []
    query = role_column("query", options.query, names, path, needed=False) if is_text else None
    document = role_column("document", options.document, names, path, needed=False)
    texts = [name for name in (query, document) if name is not None] if is_text else []
    table = read_table_file(path, texts)
    try:
        names = column_names(table)
    except DataError as error:
        raise ParseError(path, None, str(error)) from None
    n = table.num_rows
    if not n:
        raise ParseError(path, None, "the table has no rows.")
    roles = {
        role: role_column(role, getattr(options, role, None), names, path, needed=False)
        for role in ("query", "document", "score", "grade")
    }
    notes = []
    if roles["query"] is None:
        notes.append("no column of queries: all documents are taken for those of one query")
    if roles["document"] is None:
        notes.append("no column of documents: they are called by their row, from 0")
    rows = np.arange(n)
    try:
        features, skipped = _features(table, [c for c in names if c not in roles.values()])
        score = np.full(n, np.nan)
        if roles["score"] is not None:
            score = numbers_of(table, roles["score"], "Scores").astype(np.float64)
    except DataError as error:
        line = None if error.row is None else line_of_row(path, error.row)
        raise ParseError(path, line, str(error)) from None
    if skipped:
        notes.append(f"columns that are no numbers left out: {', '.join(skipped)}")
    if not features:
        shown = ", ".join(f"{name} ({str(table.column(name)[0])[:24]!r})" for name in skipped[:3])
        said = f" These are no numbers: {shown}." if skipped else ""
        raise ParseError(
            path, None, f"the table has no column of numbers that could be a feature.{said}"
        )
    return {
        "features": features,
        "score": score,
        "query": np.full(n, "1", object) if not roles["query"] else texts_of(table, roles["query"]),
        "document": rows.astype(str).astype(object)
        if not roles["document"]
        else texts_of(table, roles["document"]),
        "line": rows + 2 if is_text else np.zeros(n, np.int64),
        "notes": notes,
    }


def _features(table: Any, names: Sequence[str]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return columns of numbers, and the names of the others."""
    import pyarrow

    types = pyarrow.types
    other_kinds = (types.is_string, types.is_large_string, types.is_temporal, types.is_nested)
    features, skipped = {}, []
    for name in names:
        kind = table.column(name).type
        if pyarrow.types.is_null(kind):
            features[name] = np.full(table.num_rows, np.nan)
        elif any(is_kind(kind) for is_kind in other_kinds):
            skipped.append(name)
        else:
            features[name] = numbers_of(table, name, "Features").astype(np.float64)
    return features, skipped
