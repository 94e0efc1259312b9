"""Judged data as blocks of rows, one in memory at a time: what all readers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix
    from rankgrove.data.categories import Categories

Seen = Callable[[int, int], None]  # called with the bytes read so far, and their total


@dataclass(frozen=True)
class Block:
    """Some rows of a file, in its order.

    Attributes
    ----------
    features : float32, dense or CSR; a later block may have more columns. Columns of texts hold
        numbers of their texts, which `RowFacts.codes` translates
    query : the number of the query of every row, by first appearance
    texts : the columns of numbers of texts
    """

    features: Matrix
    y: np.ndarray
    query: np.ndarray | None = None
    weight: np.ndarray | None = None
    base_score: np.ndarray | None = None
    texts: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.y.size)


@dataclass(frozen=True)
class RowFacts:
    """What is known once all rows have been read.

    Attributes
    ----------
    query_of_row : None where the blocks have it
    absent : "zero" or "missing", where the reader knows it
    codes : column of texts -> float32 code by number of its text
    """

    n_features: int
    query_ids: np.ndarray
    query_of_row: np.ndarray | None = None
    absent: str | None = None
    feature_names: tuple[str, ...] | None = None
    categories: Categories = field(default_factory=dict)
    codes: dict[int, np.ndarray] = field(default_factory=dict)


class RowReader(Protocol):
    """Reads files block by block.

    Attributes
    ----------
    hole : the value that most features of sparse rows have, 0 or NaN
    """

    hole: float

    def blocks(self, seen: Seen) -> Iterator[Block]:
        """Yield all rows, at most 65536 at once."""

    def facts(self) -> RowFacts:
        """Return what is known after the last block."""


MOST_ROWS = 1 << 16  # of a block: rows are numbered by 16 bits in it


def pieces(block: Block) -> Iterator[Block]:
    """Cut a block into some of at most MOST_ROWS rows."""
    for start in range(0, block.n_rows, MOST_ROWS):
        if block.n_rows <= MOST_ROWS:
            yield block
            return
        part = slice(start, start + MOST_ROWS)
        yield Block(
            block.features[part],
            block.y[part],
            query=None if block.query is None else block.query[part],
            weight=None if block.weight is None else block.weight[part],
            base_score=None if block.base_score is None else block.base_score[part],
            texts=block.texts,
        )
