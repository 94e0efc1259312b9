"""TREC runs and judgements as values and as files.

A run says which documents a system retrieved for a query and how it scored them; qrels say how
good documents are. Both are plain dicts of dicts, so that other tools take them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rankgrove.data.queries import QueryDataset
from rankgrove.data.text_files import read_text_bytes
from rankgrove.errors import DataError, ParseError
from rankgrove.files import atomic_output
from rankgrove.validation import check_scores

Value = TypeVar("Value", int, float)


class Run(dict[str, dict[str, float]]):
    """The scores of one retrieval system: ``run[qid][docid]``.

    Parameters
    ----------
    scores : mapping from query id to a mapping from document id to score
    name : the system's name, the last field of a run file

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
        super().__init__(scores)
        self.name = name

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self)} queries, {_documents(self)} documents)"


class Qrels(dict[str, dict[str, int]]):
    """Judgements: ``qrels[qid][docid]`` is a whole-number grade, the more the better.

    Examples
    --------
    >>> Qrels({"7": {"d1": 0, "d2": 2}})
    Qrels(1 queries, 2 judgements)
    """

    def __repr__(self) -> str:
        return f"Qrels({len(self)} queries, {_documents(self)} judgements)"


def _documents(table: Mapping[str, Mapping[str, float]]) -> int:
    return sum(len(documents) for documents in table.values())


# -- reading ----------------------------------------------------------------------------------


def read_run(path: str | Path, *, name: str | None = None) -> Run:
    """Read a run file: ``qid Q0 docid rank score tag`` a line, plain or gzip.

    Parameters
    ----------
    path : the file; whether it is packed shows in its first bytes
    name : the run's name; by default the tag of the file's first line

    Returns
    -------
    Run

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bm25.txt"
    >>> _ = path.write_text("7 Q0 d2 1 1.5 bm25\\n7 Q0 d1 2 0.5 bm25\\n")
    >>> read_run(path)
    Run('bm25', 1 queries, 2 documents)
    """
    lines = _fields(path, 6, "qid Q0 docid rank score tag")
    run = Run(name=name or "")

    def entries() -> Iterator[tuple[int, bytes, bytes, bytes]]:
        for number, fields in lines:
            run.name = run.name or fields[5].decode()
            yield number, fields[0], fields[2], fields[4]

    _collect(path, entries(), _score, "a score must be a finite number", run)
    return run


def read_qrels(path: str | Path) -> Qrels:
    """Read a qrels file: ``qid iteration docid grade`` a line, plain or gzip.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> _ = path.write_text("7 0 d1 0\\n7 0 d2 2\\n")
    >>> read_qrels(path)["7"]
    {'d1': 0, 'd2': 2}
    """
    qrels = Qrels()
    lines = _fields(path, 4, "qid iteration docid grade")
    entries = ((number, fields[0], fields[2], fields[3]) for number, fields in lines)
    _collect(path, entries, _grade, "a grade must be a whole number", qrels)
    return qrels


def _fields(path: str | Path, count: int, form: str) -> Iterator[tuple[int, list[bytes]]]:
    """Give line number and fields of every line that is not blank."""
    for number, line in enumerate(read_text_bytes(path).split(b"\n"), start=1):
        fields = line.split()
        if len(fields) == count:
            yield number, fields
        elif fields:
            raise ParseError(
                path, number, f"a line must have {count} fields, '{form}'. Got {len(fields)}."
            )


def _collect(
    path: str | Path,
    entries: Iterable[tuple[int, bytes, bytes, bytes]],
    convert: Callable[[bytes], Value],
    rule: str,
    out: dict[str, dict[str, Value]],
) -> None:
    """Put (line, qid, docid, value) entries into `out`; an empty file and repeats are refused."""
    for number, qid, docid, token in entries:
        try:
            value = convert(token)
        except ValueError:
            raise ParseError(path, number, f"{rule}. Got {token.decode()!r}.") from None
        documents = out.setdefault(qid.decode(), {})
        document = docid.decode()
        if document in documents:
            raise ParseError(
                path, number, f"the document {document!r} stands twice in query {qid.decode()!r}."
            )
        documents[document] = value
    if not out:
        raise ParseError(path, None, "the file has no lines.")


def _score(token: bytes) -> float:
    score = float(token)
    if not math.isfinite(score) or b"_" in token:
        raise ValueError
    return score


def _grade(token: bytes) -> int:
    if b"_" in token:
        raise ValueError
    return int(token)


# -- writing ----------------------------------------------------------------------------------


def write_run(
    path: str | Path,
    run: Mapping[str, Mapping[str, float]] | tuple[QueryDataset, Any],
    *,
    name: str | None = None,
) -> None:
    """Write a run file, the best document of a query first, ranks from 1.

    Equal scores are ordered as trec_eval orders them: by document id, descending. The file takes
    its name only when it is complete; a name that ends in ``.gz`` packs it.

    Parameters
    ----------
    path : where to write
    run : a run, or a data set and one score a row of it. A row without a document id is called
        ``row`` and its number in the data set, from 0. Documents that score minus infinity were
        not retrieved and are left out
    name : the last field of every line; by default the run's own name, or ``rankgrove``

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "out.run"
    >>> data = QueryDataset(None, [0, 1], qid=[7, 7], docid=["d1", "d2"])
    >>> write_run(path, (data, [0.5, 1.5]), name="mine")
    >>> print(path.read_text(), end="")
    7 Q0 d2 1 1.5 mine
    7 Q0 d1 2 0.5 mine
    """
    if isinstance(run, tuple):
        dataset, scores = run
        run = run_of_scores(dataset, scores)
        tag = name or "rankgrove"
    else:
        tag = name or getattr(run, "name", None) or "rankgrove"
    _check_token("run name", tag)
    with atomic_output(path) as file:
        for qid, documents in run.items():
            _check_token("query id", str(qid))
            for rank, (docid, score) in enumerate(_ranked(qid, documents), start=1):
                file.write(f"{qid} Q0 {docid} {rank} {score!r} {tag}\n".encode())


def run_of_scores(dataset: QueryDataset, scores: Any) -> Run:
    """Return the scores of a data set's rows as a run; document ids as `write_run` states."""
    values = check_scores(scores, dataset.n_rows, "write_run").tolist()
    column = dataset.docid_column
    run = Run(((str(qid), {}) for qid in dataset.query_ids.tolist()), name="rankgrove")
    names = list(run)
    for row, (query, score) in enumerate(zip(dataset.query_of_row.tolist(), values, strict=True)):
        docid = (column[row] if column is not None else "") or f"row{row}"
        documents = run[names[query]]
        if docid in documents:
            raise DataError(
                f"The document {docid!r} stands twice in query {names[query]!r}: "
                "a run needs distinct document ids."
            )
        documents[docid] = score
    return run


def _ranked(qid: str, documents: Mapping[str, float]) -> list[tuple[str, float]]:
    scored = []
    for docid, score in documents.items():
        _check_token("document id", str(docid))
        value = float(score)
        if math.isnan(value) or value == math.inf:
            raise DataError(
                f"The document {docid!r} of query {qid!r} has the score {value}: "
                "scores must be finite, or minus infinity for a document not retrieved."
            )
        if value != -math.inf:
            scored.append((docid, value))
    scored.sort(key=lambda pair: (pair[1], str(pair[0]).encode()), reverse=True)
    return scored


def _check_token(what: str, token: str) -> None:
    if len(token.encode().split()) != 1 or token.encode().split()[0] != token.encode():
        raise DataError(
            f"A {what} in a run file must not be empty and have no white space. Got {token!r}."
        )
