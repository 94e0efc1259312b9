"""LETOR text block by block, with the rules and errors of `read_letor`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.categories import categorical_columns
from rankgrove.data.letor_assemble import add_tokens, ids_of_tokens, queries_of_files
from rankgrove.data.letor_parse import (
    Queries,
    ReadOptions,
    count_source,
    first_kind,
    parse_sources,
    without_rows,
)
from rankgrove.data.letor_source import Source
from rankgrove.data.row_blocks import Block, RowFacts, Seen, pieces
from rankgrove.data.text_stream import open_stream

if TYPE_CHECKING:
    from rankgrove.data.categories import Categorical

BLOCK_BYTES = 8 << 20  # of text


class LetorBlocks:
    """Reads files as if they were one; see :class:`~rankgrove.data.row_blocks.RowReader`."""

    def __init__(
        self,
        paths: list[Path],
        queries: Queries,
        options: ReadOptions,
        n_threads: int,
        block_bytes: int = BLOCK_BYTES,
        categorical: Categorical | None = None,
    ) -> None:
        self.hole = 0.0 if options.absent == "zero" else float("nan")
        self._paths = paths
        self._queries = queries
        self._options = options
        self._n_threads = n_threads
        self._block_bytes = block_bytes
        self._categorical = categorical
        self._kind = ""
        self._position: dict[bytes, int] = {}
        self._rows: list[int] = []
        self._n_features = options.n_features or 0

    def blocks(self, seen: Seen) -> Iterator[Block]:
        """Yield all rows."""
        sizes = [os.stat(path).st_size if path.is_file() else 0 for path in self._paths]
        self._kind = ""
        for at, path in enumerate(self._paths):
            n_rows, lines, has_comments = 0, 0, False
            side = Queries([self._queries.side_files[at]], self._queries.named)
            with open_stream(path) as stream:
                for text in stream.blocks(self._block_bytes):
                    has_comments = has_comments or b"#" in text
                    block = self._parse(Source(path, self._chunk(text), text, lines), side)
                    lines += text.count(b"\n")
                    if block is not None:
                        n_rows += block.n_rows
                        yield from pieces(block)
                    seen(sum(sizes[:at]) + stream.n_read, sum(sizes))
            if n_rows == 0:
                raise without_rows(path, has_comments)
            self._rows.append(n_rows)

    def facts(self) -> RowFacts:
        """Return what is known after the last block."""
        ids, query_of_row = ids_of_tokens(self._position), None
        if self._by_side_file:
            ids, query_of_row = queries_of_files(self._paths, self._rows, self._queries.side_files)
        names = [f"f{j + 1}" for j in range(self._n_features)]
        return RowFacts(
            self._n_features,
            ids,
            query_of_row,
            absent=self._options.absent,
            categories=categorical_columns(self._categorical, names),
        )

    @property
    def _by_side_file(self) -> bool:
        return self._queries.named or self._kind == "without"

    def _chunk(self, text: bytes) -> int:
        return max(len(text) // (4 * self._n_threads), 1 << 16)

    def _parse(self, source: Source, side: Queries) -> Block | None:
        n_rows = count_source(source, self._n_threads)
        if n_rows == 0:  # the kernels look at it, for mistakes in comments
            if source.segments:
                parse_sources(
                    [source], 0, side, self._options, self._n_threads, self._kind or "with"
                )
            return None
        features, out = parse_sources(
            [source], n_rows, side, self._options, self._n_threads, self._kind or None
        )
        self._kind = self._kind or first_kind([source])
        query = None if self._by_side_file else add_tokens([source], out, self._position)
        self._n_features = max(self._n_features, int(features.shape[1]))
        return Block(features, np.asarray(out.y), query)
