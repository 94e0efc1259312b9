"""Parsing LETOR text into the arrays of a data set: allocate, call the kernels, assemble."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data import _letor_count_kernels as counting
from rankgrove.data import _letor_kernels as kernels
from rankgrove.data._letor_kernels import MOST_INDEX, Arrays, Rules
from rankgrove.data.arrays import frozen
from rankgrove.data.letor_assemble import assemble_sparse, documents, side_queries, token_queries
from rankgrove.data.letor_mistakes import (
    bare_returns,
    endless_label,
    explain,
    has_bare_returns,
    no_qid,
    overflow,
)
from rankgrove.data.letor_source import Segment, Source, excerpt
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import DataError, ParseError
from rankgrove.parallel import run_pieces
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

_LEAST_CHUNK, _MOST_CHUNK = 1 << 18, 1 << 22  # bytes; smaller chunks are not worth a thread
_DENSE_ALWAYS = 64 << 20  # bytes up to which the matrix is dense, whatever the size of the text
_DENSE_FACTOR = 8  # a larger one is dense if it takes at most this many times the text
_SAMPLE_LINES, _SAMPLE_BYTES = 64, 1 << 20
_INDEX = re.compile(rb"(?:^|[ \t])([0-9]{1,10}):")


@dataclass(frozen=True)
class ReadOptions:
    """The parameters of read_letor that change the result."""

    absent: str
    zero_based: bool
    sparse: bool | str
    n_features: int | None

    def rules(self, dense: bool) -> Rules:
        """Return the options in the form that the kernels take."""
        return Rules(
            base=0 if self.zero_based else 1,
            absent=np.float32(0.0 if self.absent == "zero" else np.nan),
            limit=MOST_INDEX + 1 if self.n_features is None else self.n_features,
            dense=dense,
        )


@dataclass(frozen=True)
class Parts:
    """The arrays of a data set, in the form that QueryDataset.from_parts takes."""

    features: Matrix
    y: np.ndarray
    query_ids: np.ndarray
    query_of_row: np.ndarray
    docid: TextColumn | None


@dataclass(frozen=True)
class Queries:
    """Side files with query sizes (None: there is none), and whether the caller named them."""

    side_files: list[Path | None]
    named: bool


def parse(paths: list[Path], queries: Queries, options: ReadOptions, n_threads: int) -> Parts:
    """Parse files as if they were one."""
    sources = [Source(path, _chunk_bytes(path, n_threads)) for path in paths]
    n_rows = count_rows(sources, n_threads)
    features, out = parse_sources(sources, n_rows, queries, options, n_threads)
    if queries.named or first_kind(sources) == "without":
        query_ids, query_of_row = side_queries(sources, queries.side_files)
    else:
        query_ids, query_of_row = token_queries(sources, out)
    return Parts(features, out.y, query_ids, query_of_row, documents(sources, out))


def parse_sources(
    sources: list[Source],
    n_rows: int,
    queries: Queries,
    options: ReadOptions,
    n_threads: int,
    kind: str | None = None,
) -> tuple[Matrix, Arrays]:
    """Parse texts whose rows are counted; return the features and the other arrays.

    `kind` is "with" or "without" a query id in every row, None: as in the first row.
    """
    out, slow = _fill(sources, n_rows, options, n_threads)
    fixes = _check(sources, slow, queries, options, out, kind or first_kind(sources))
    if out.X.shape[0]:
        for row, column, value in fixes:
            out.X[row, column] = value
        return frozen(out.X), out
    return assemble_sparse(sources, out, options.n_features, fixes), out


def _chunk_bytes(path: Path, n_threads: int) -> int:
    """Return the size of the chunks of a file that are parsed side by side."""
    size = path.stat().st_size if path.is_file() else 0
    return min(max(size // (16 * n_threads), _LEAST_CHUNK), _MOST_CHUNK)


def count_rows(sources: list[Source], n_threads: int) -> int:
    """Set the first row of every chunk; return the number of rows, which no file is without."""
    total = 0
    for source in sources:
        before = total
        total = count_source(source, n_threads, total)
        if total == before:
            raise without_rows(source.path, source.text.find(b"#") >= 0)
    return total


def count_source(source: Source, n_threads: int, total: int = 0) -> int:
    """Set the first row of every chunk of a text after `total` rows; return the new total."""
    _refuse_bare_returns(source)
    for segment in source.segments:
        rows = np.zeros(segment.state.shape[0], np.int64)
        _count_chunks(segment, rows, n_threads)
        segment.state[:, kernels.FIRST_ROW] = total + np.cumsum(rows) - rows
        segment.first_row, segment.n_rows = total, int(rows.sum())
        total += segment.n_rows
    return total


def _count_chunks(segment: Segment, rows: np.ndarray, n_threads: int) -> None:
    words = segment.data[: segment.data.size // 8 * 8].view(np.uint64)

    def count(first: int, last: int) -> None:
        for chunk in range(first, last):
            rows[chunk] = counting.count_chunk(segment.data, words, *segment.state[chunk, :2])

    run_pieces(count, np.arange(rows.size + 1), n_threads)


def _parse_chunks(segment: Segment, rules: Rules, out: Arrays, n_threads: int) -> None:
    def read(first: int, last: int) -> None:
        for chunk in range(first, last):
            kernels.parse_chunk(segment.data, segment.state, chunk, rules, out)

    run_pieces(read, np.arange(segment.state.shape[0] + 1), n_threads)


def without_rows(path: Path, has_comments: bool) -> ParseError:
    """Return the error for a file without data rows."""
    only = "comments" if has_comments else "empty lines"
    return ParseError(
        path,
        None,
        f"the file has no data rows, only {only}. Expected rows such as 1 qid:7 1:0.5.",
    )


def _refuse_bare_returns(source: Source) -> None:
    """Refuse a file with carriage returns only: the rows after a comment would be lost."""
    if source.text.find(b"\n") < 0:
        text = bytes(source.text)
        if has_bare_returns(text):
            raise source.error(0, bare_returns(text))


def _fill(
    sources: list[Source], n_rows: int, options: ReadOptions, n_threads: int
) -> tuple[Arrays, list[np.ndarray]]:
    """Run the kernels; run them again if the guessed width or list of hard numbers is too small."""
    segments = [segment for source in sources for segment in source.segments]
    width = options.n_features
    if width is None:
        width = _guess_width(sources) + (1 if options.zero_based else 0)
    text_bytes = sum(len(source.text) for source in sources)
    hard = 64
    while True:
        dense = _is_dense(options, n_rows, width, text_bytes)
        out = _allocate(segments, n_rows, width if dense else None)
        slow = []
        for segment in segments:
            slow.append(np.empty((segment.state.shape[0], hard, 3), np.int64))
            arrays = out._replace(slow=slow[-1])
            _parse_chunks(segment, options.rules(dense), arrays, n_threads)
        highest = max(int(segment.state[:, kernels.HIGHEST].max()) for segment in segments) + 1
        hardest = max(int(segment.state[:, kernels.N_SLOW].max()) for segment in segments)
        if (highest <= width or not dense) and hardest <= hard:
            return out, slow
        width, hard = max(width, highest), max(hard, hardest)
        del out, arrays


def _guess_width(sources: list[Source]) -> int:
    """Return the highest feature index on some lines of every file."""
    highest = 0
    for source in sources:
        text = source.text
        size = len(text)
        places = [i * size // _SAMPLE_LINES for i in range(_SAMPLE_LINES)]
        budget = _SAMPLE_BYTES
        for place in places:
            start = text.find(b"\n", place) + 1 if place else 0
            end = text.find(b"\n", start)
            end = min(end if end >= 0 else size, start + budget)
            line = bytes(text[start:end])
            budget -= len(line)
            for index in _INDEX.findall(line.partition(b"#")[0]):
                if int(index) <= MOST_INDEX:  # otherwise a mistake, which the kernel will report
                    highest = max(highest, int(index))
            if budget <= 0:
                break
    return highest


def _is_dense(options: ReadOptions, n_rows: int, width: int, text_bytes: int) -> bool:
    need = 4 * n_rows * width
    if options.sparse is True:
        return False
    large = need > max(_DENSE_ALWAYS, _DENSE_FACTOR * text_bytes)
    if large and options.sparse == "auto" and options.absent == "zero":
        return False
    if need > _physical_memory():
        raise DataError(_too_wide(n_rows, width))
    return True


def _physical_memory() -> float:
    """Return the bytes of memory of the machine; infinity if that is unknown.

    The system may hand out more, and kill the process later: an early error is better.
    """
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _too_wide(n_rows: int, width: int) -> str:
    return (
        f"A dense matrix of {counted(n_rows, 'row')} and {counted(width, 'feature')} takes "
        f"{4 * n_rows * width / 2**30:.0f} GB, more than this machine has. "
        "Read the file with sparse=True and absent='zero', or check its feature indices."
    )


def _allocate(segments: list[Segment], n_rows: int, width: int | None) -> Arrays:
    """Return the arrays to fill; sparse ones if `width` is None."""
    n_slots = 0
    if width is None:
        for segment in segments:
            colons = np.zeros(segment.state.shape[0], np.int64)
            counting.count_colons(segment.data, segment.state, colons)
            segment.state[:, kernels.FIRST_SLOT] = n_slots + np.cumsum(colons) - colons
            n_slots += int(colons.sum())
    try:
        X = np.empty((0, 0) if width is None else (n_rows, width), np.float32)
        return Arrays(
            X=X,
            bits=X.view(np.uint32),
            columns=np.empty(n_slots, np.int32),
            values=np.empty(n_slots, np.float32),
            row_size=np.empty(n_rows if width is None else 0, np.int64),
            y=np.empty(n_rows),
            doc_start=np.empty(n_rows, np.int64),
            doc_end=np.empty(n_rows, np.int64),
            run_row=np.empty(n_rows, np.int64),
            run_start=np.empty(n_rows, np.int64),
            run_end=np.empty(n_rows, np.int64),
            slow=np.empty((0, 0, 3), np.int64),
        )
    except (MemoryError, ValueError):
        raise DataError(_too_wide(n_rows, width or 0)) from None


# -- mistakes, and numbers left to Python --------------------------------------------------------


def _check(
    sources: list[Source],
    slow: list[np.ndarray],
    queries: Queries,
    options: ReadOptions,
    out: Arrays,
    kind: str,
) -> list[tuple[int, int, np.float32]]:
    """Raise an error for the first mistake; return the feature values parsed by Python."""
    fixes: list[tuple[int, int, np.float32]] = []
    hard = iter(slow)
    for source, side in zip(sources, queries.side_files, strict=True):
        mistakes: list[tuple[int, int, str]] = []
        for segment in source.segments:
            state = segment.state
            for chunk in np.flatnonzero(state[:, kernels.ERROR]):
                place = segment.base + int(state[chunk, kernels.WHERE])
                mistakes.append((place, int(state[chunk, kernels.ERROR]), ""))
            mistakes += _settle_hard(source, segment, next(hard), out, fixes)
        mistakes += _kind_mistakes(source, kind, side, queries.named)
        if mistakes:
            place, code, message = min(mistakes)
            if message:
                raise source.error(place, message)
            raise explain(source, place, code, options.rules(True))
    return fixes


def _settle_hard(
    source: Source,
    segment: Segment,
    hard: np.ndarray,
    out: Arrays,
    fixes: list[tuple[int, int, np.float32]],
) -> list[tuple[int, int, str]]:
    """Parse hard numbers by Python's float: labels are set, features are appended to `fixes`."""
    mistakes = []
    for chunk, count in enumerate(segment.state[:, kernels.N_SLOW].tolist()):
        for offset, row, column in hard[chunk, :count].tolist():
            place = segment.base + offset
            token = source.token(place)
            number = float(token.rpartition(b":")[2])
            if column == kernels.LABEL_COLUMN:
                out.y[row] = number
                if np.isinf(number):
                    mistakes.append((place, 0, endless_label(token)))
                continue
            with np.errstate(over="ignore"):
                value = np.float32(number)
            if np.isinf(value):
                mistakes.append((place, 0, overflow(token)))
            fixes.append((row, column, value))
    return mistakes


def _first(source: Source, field: int) -> int | None:
    """Return the offset of the first line of a kind in the source, or None."""
    for segment in source.segments:
        offsets = segment.state[:, field]
        if (offsets >= 0).any():
            return segment.base + int(offsets[offsets >= 0][0])
    return None


def first_kind(sources: list[Source]) -> str:
    """Return whether the first row is "with" or "without" a query id."""
    first_with = _first(sources[0], kernels.WITH_QID)
    first_without = _first(sources[0], kernels.WITHOUT_QID)
    if first_with is None or first_without is None:
        return "without" if first_with is None else "with"
    return "with" if first_with < first_without else "without"


def _kind_mistakes(
    source: Source, kind: str, side: Path | None, named: bool
) -> list[tuple[int, int, str]]:
    """Return the mistake of the first row that differs from the others in having a query id."""
    with_qid = _first(source, kernels.WITH_QID)
    without_qid = _first(source, kernels.WITHOUT_QID)
    if with_qid is not None and named:
        _, line = source.line(with_qid)
        message = (
            f"the row has its own query id ({excerpt(line.strip())}), but query_file gives "
            "the sizes of the queries. Leave query_file out."
        )
        return [(with_qid, 0, message)]
    if without_qid is not None and (side is None or kind == "with"):
        _, line = source.line(without_qid)
        if has_bare_returns(line):
            return [(without_qid, 0, bare_returns(line))]
        others = None
        if kind == "with":
            others = "before it"
        elif with_qid is not None:
            others = f"after it, from line {source.line(with_qid)[0]}"
        return [(without_qid, 0, no_qid(line.strip(), others))]
    if with_qid is not None and kind == "without":
        _, line = source.line(with_qid)
        message = (
            f"the row has a query id ({excerpt(line.strip())}), but the rows before it have none. "
            "Write qid:ID after the label of every row, or of none."
        )
        return [(with_qid, 0, message)]
    return []
