"""Assembling the output of the kernels: a sparse matrix, query ids, document ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data import _letor_kernels as kernels
from rankgrove.data._letor_kernels import MOST_INDEX, Arrays
from rankgrove.data.dataset_checks import plain_ids
from rankgrove.data.letor_source import Source, excerpt, group_sizes
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import ParseError
from rankgrove.validation import counted

if TYPE_CHECKING:
    import scipy.sparse


def assemble_sparse(
    sources: list[Source],
    out: Arrays,
    n_features: int | None,
    fixes: list[tuple[int, int, np.float32]],
) -> scipy.sparse.csr_matrix:
    """Return the sparse matrix; the gaps between the slots of chunks are closed in place."""
    import scipy.sparse

    used, highest = 0, -1
    for source in sources:
        for segment in source.segments:
            for state in segment.state:
                start, n = int(state[kernels.FIRST_SLOT]), int(state[kernels.N_SLOTS])
                out.columns[used : used + n] = out.columns[start : start + n]
                out.values[used : used + n] = out.values[start : start + n]
                used += n
                highest = max(highest, int(state[kernels.HIGHEST]))
    pointers = np.zeros(out.y.size + 1, np.int64)
    np.cumsum(out.row_size, out=pointers[1:])
    for row, column, value in fixes:
        start, end = pointers[row], pointers[row + 1]
        out.values[start + np.searchsorted(out.columns[start:end], column)] = value
    width = highest + 1 if n_features is None else n_features
    index_type = np.int32 if used <= MOST_INDEX else np.int64
    matrix = scipy.sparse.csr_matrix(
        (out.values[:used], out.columns[:used], pointers.astype(index_type)),
        shape=(out.y.size, width),
    )
    matrix.has_canonical_format = True
    return matrix


def token_queries(sources: list[Source], out: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids in order of first appearance and every row's position, from runs of tokens."""
    position: dict[bytes, int] = {}
    query_of_row = add_tokens(sources, out, position)
    return ids_of_tokens(position), query_of_row


def ids_of_tokens(position: dict[bytes, int]) -> np.ndarray:
    """Return the query ids of tokens that are text."""
    return plain_ids([token.decode() for token in position])


def add_tokens(sources: list[Source], out: Arrays, position: dict[bytes, int]) -> np.ndarray:
    """Return the position of every row's query id, and add new ids to `position`."""
    first_row: list[int] = []
    query_of_run: list[int] = []
    for source in sources:
        for segment in source.segments:
            text = segment.data.data
            for state in segment.state:
                first = int(state[kernels.FIRST_ROW])
                runs = slice(first, first + int(state[kernels.N_RUNS]))
                first_row += out.run_row[runs].tolist()
                starts, ends = out.run_start[runs].tolist(), out.run_end[runs].tolist()
                for start, end in zip(starts, ends, strict=True):
                    token = bytes(text[start:end])
                    if token not in position:
                        _check_token(source, segment.base + start, token)
                    query_of_run.append(position.setdefault(token, len(position)))
    lengths = np.diff(np.array([*first_row, out.y.size]))
    return np.repeat(np.array(query_of_run, np.int64), lengths)


def _check_token(source: Source, offset: int, token: bytes) -> None:
    try:
        token.decode()
    except UnicodeDecodeError:
        raise source.error(
            offset, f"the query id {excerpt(token)} is not text. Expected UTF-8."
        ) from None


def side_queries(
    sources: list[Source], side_files: list[Path | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return query ids 1, 2, ... and every row's position, from group sizes in side files."""
    rows = [sum(segment.n_rows for segment in source.segments) for source in sources]
    return queries_of_files([source.path for source in sources], rows, side_files)


def queries_of_files(
    paths: list[Path], rows: list[int], side_files: list[Path | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Like :func:`side_queries`, of files with known numbers of rows."""
    sizes = []
    for path, n_rows, side in zip(paths, rows, side_files, strict=True):
        assert side is not None  # a file without one has been refused
        file_sizes = group_sizes(side, path, n_rows)
        if sum(file_sizes.tolist()) != n_rows:
            raise ParseError(
                side,
                None,
                f"the group sizes add up to {sum(file_sizes.tolist())}, and {path} has "
                f"{counted(n_rows, 'row')}. Expected equal numbers: is it the side file of that "
                "data file?",
            )
        sizes.append(file_sizes)
    of_query = np.concatenate(sizes)
    n_queries = of_query.size
    return np.arange(1, n_queries + 1), np.repeat(np.arange(n_queries), of_query)


def documents(sources: list[Source], out: Arrays) -> TextColumn | None:
    """Return the document ids as a copy, so that the text can be freed."""
    segments = [segment for source in sources for segment in source.segments]
    if not any(segment.state[:, kernels.N_COMMENTS].any() for segment in segments):
        return None
    blob = np.empty(int((out.doc_end - out.doc_start).sum()), np.uint8)
    offset = 0
    for segment in segments:
        rows = slice(segment.first_row, segment.first_row + segment.n_rows)
        offset = kernels.gather_texts(
            segment.data, out.doc_start[rows], out.doc_end[rows], blob, offset
        )
    return TextColumn(blob, out.doc_start, out.doc_end)
