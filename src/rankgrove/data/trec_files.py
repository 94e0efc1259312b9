"""TREC runs and judgements as files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rankgrove.data.queries import QueryDataset
from rankgrove.data.text_files import read_text_bytes
from rankgrove.data.trec_values import Qrels, Run, Value, check_run
from rankgrove.errors import DataError, ParameterError, ParseError
from rankgrove.files import atomic_output
from rankgrove.validation import check_scores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
