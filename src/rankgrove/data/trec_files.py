"""TREC runs and judgements as values and as files.

A run has the scores of the documents that a system retrieved for every query; qrels have the
grades of documents. Both are plain dicts of dicts, which other tools accept as they are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rankgrove.data.queries import QueryDataset
from rankgrove.data.text_files import read_text_bytes
from rankgrove.errors import DataError, ParameterError, ParseError
from rankgrove.files import atomic_output
from rankgrove.validation import check_scores, counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Value = TypeVar("Value", int, float)


class Run(dict[str, dict[str, float]]):
    """The scores of one retrieval system: ``run[qid][docid]``.

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

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {_counts(self, 'document')})"


class Qrels(dict[str, dict[str, int]]):
    """Judgements: ``qrels[qid][docid]`` is a whole-number grade; higher is better.

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

    def __repr__(self) -> str:
        return f"Qrels({_counts(self, 'judgement')})"


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


# -- reading ----------------------------------------------------------------------------------


def read_run(path: str | Path, *, name: str | None = None) -> Run:
    """Read a run file, plain or gzip, with lines ``qid Q0 docid rank score tag``.

    Lines that begin with ``#`` are comments; a tag may have several words.

    Parameters
    ----------
    path : the file; compression is recognised by its first bytes
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
    Run('bm25', 1 query, 2 documents)
    """
    lines = _fields(path, 6, "qid Q0 docid rank score tag", long_tags=True)
    run = Run(name=name or "")

    def entries() -> Iterator[tuple[int, bytes, bytes, bytes]]:
        for number, fields in lines:
            run.name = run.name or b" ".join(fields[5:]).decode()
            yield number, fields[0], fields[2], fields[4]

    _collect(path, entries(), _score, "a score must be a finite number", run)
    return run


def read_qrels(path: str | Path) -> Qrels:
    """Read a qrels file, plain or gzip, with lines ``qid iteration docid grade`` or # comments.

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


def _fields(
    path: str | Path, count: int, form: str, long_tags: bool = False
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield line number and fields of every line except empty ones and comments.

    With `long_tags` the last field may have several words. If the rank is then not a number, the
    document id contains a space, which is an error.
    """
    for number, line in enumerate(read_text_bytes(path).split(b"\n"), start=1):
        fields = line.split()
        if b"\r" in line.rstrip():
            raise ParseError(
                path,
                number,
                "lines end in a carriage return without a line feed. Expected a line feed after "
                "every line: convert the line ends of the file.",
            )
        if not fields or fields[0].startswith(b"#"):
            continue
        if len(fields) == count or (long_tags and len(fields) > count and fields[3].isdigit()):
            yield number, fields
        else:
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
    """Put (line, qid, docid, value) entries into `out`; refuse repeats and an empty file."""
    for number, qid, docid, token in entries:
        try:
            value = convert(token)
        except ValueError:
            raise ParseError(path, number, f"{rule}. Got {token.decode()!r}.") from None
        documents = out.setdefault(qid.decode(), {})
        document = docid.decode()
        if document in documents:
            raise ParseError(
                path, number, f"the document {document!r} appears twice in query {qid.decode()!r}."
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
    run: Mapping[str, Mapping[str, float]] | tuple[QueryDataset, ArrayLike],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
) -> None:
    """Write a run file, the best document of a query first, ranks from 1.

    Equal scores are ordered as trec_eval orders them: by document id, descending. The file appears
    under its name only when it is complete; it is compressed if the name ends in ``.gz``.

    Parameters
    ----------
    run : a Run or a plain mapping like one, or a pair of a data set and one score per row. A row
        without a document id is called ``row`` plus its number in the data set, from 0. Documents
        with score minus infinity were not retrieved and are left out
    path : where to write
    name : the last field of every line; by default the name of the run, its words joined by
        underscores, or ``rankgrove``

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "out.run"
    >>> data = QueryDataset(None, [0, 1], qid=[7, 7], docid=["d1", "d2"])
    >>> write_run((data, [0.5, 1.5]), path, name="mine")
    >>> print(path.read_text(), end="")
    7 Q0 d2 1 1.5 mine
    7 Q0 d1 2 0.5 mine
    """
    _check_arguments(run, path)
    with atomic_output(path) as file:
        for line in run_lines(run, name):
            file.write(line.encode())


def run_lines(
    run: Mapping[str, Mapping[str, float]] | tuple[QueryDataset, ArrayLike],
    name: str | None = None,
    top: int | None = None,
) -> Iterator[str]:
    """Yield the lines of a run file: of all documents, or of the best `top` of every query.

    `run` and `name` are those of `write_run`.
    """
    if isinstance(run, tuple):
        dataset, scores = run
        run = run_of_scores(dataset, scores)
        tag = name or "rankgrove"
    else:
        check_run(run)
        tag = name or "_".join(str(getattr(run, "name", "")).split()) or "rankgrove"
    _check_token("run name", tag)
    for qid, documents in run.items():
        _check_token("query id", str(qid))
        for rank, (docid, score) in enumerate(_ranked(qid, documents)[:top], start=1):
            yield f"{qid} Q0 {docid} {rank} {score!r} {tag}\n"


def _check_arguments(run: object, path: object) -> None:
    pair = isinstance(run, tuple) and len(run) == 2 and isinstance(run[0], QueryDataset)
    if not (pair or isinstance(run, Mapping)):
        order = (
            " Write write_run(run, path): the run comes first."
            if isinstance(run, str | os.PathLike)
            else ""
        )
        raise ParameterError(
            "The 'run' parameter of write_run must be a Run, a mapping {query id: {document id: "
            f"score}}}} or a pair (dataset, scores). Got {type(run).__name__} instead.{order}"
        )
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(
            f"The 'path' parameter of write_run must be a path. Got {type(path).__name__} instead."
        )


def run_of_scores(dataset: QueryDataset, scores: ArrayLike) -> Run:
    """Return the scores of a data set's rows as a run; document ids as in `write_run`."""
    values = check_scores(scores, dataset.n_rows, "write_run").tolist()
    column = dataset.docid_column
    run = Run(((str(qid), {}) for qid in dataset.query_ids.tolist()), name="rankgrove")
    names = list(run)
    for row, (query, score) in enumerate(zip(dataset.query_of_row.tolist(), values, strict=True)):
        docid = (column[row] if column is not None else "") or f"row{row}"
        documents = run[names[query]]
        if docid in documents:
            raise DataError(
                f"The document {docid!r} appears twice in query {names[query]!r}: "
                "a run needs distinct document ids."
            )
        documents[docid] = score
    return run


def _ranked(qid: str, documents: Mapping[str, float]) -> list[tuple[str, float]]:
    scored = []
    for docid, score in documents.items():
        _check_token("document id", str(docid))
        value = float(score)
        if value != -math.inf:
            scored.append((docid, value))
    scored.sort(key=lambda pair: (pair[1], str(pair[0]).encode()), reverse=True)
    return scored


def _check_token(noun: str, token: str) -> None:
    if len(token.encode().split()) != 1 or token.encode().split()[0] != token.encode():
        raise DataError(
            f"A {noun} in a run file must not be empty or have white space. Got {token!r}."
        )
