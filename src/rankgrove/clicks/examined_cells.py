"""Cells of examination: a context and a position each, numbered context by context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankgrove.clicks.log import ClickLog
from rankgrove.errors import DataError


class Cells(NamedTuple):
    """The cells of a log.

    names : the contexts, several names of a context joined by commas
    n_positions : the number of positions
    of_session : the context of every session
    of_impression : the cell of every impression
    seen : whether a cell occurs
    """

    names: tuple[str, ...]
    n_positions: int
    of_session: np.ndarray
    of_impression: np.ndarray
    seen: np.ndarray

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.names) * self.n_positions


def context_cells(log: ClickLog, context: str | Sequence[str] | None, owner: str) -> Cells:
    """Return the cells of a log, where positions are examined differently in each context."""
    chosen = () if context is None else (context,) if isinstance(context, str) else tuple(context)
    codes = np.zeros(log.n_sessions, np.int64)
    names: tuple[str, ...] = ("",)
    for name in chosen:
        if name not in log.contexts:
            there = ", ".join(map(repr, log.contexts)) or "none"
            raise DataError(f"{owner} needs the context {name!r}; the click log has {there}.")
        column = log.contexts[name]
        codes = codes * len(column.names) + column.codes
        names = tuple(f"{a}, {b}" if a else b for a in names for b in column.names)
    n = log.n_positions
    cell = codes[log.session_of] * n + log.position - 1
    seen = np.bincount(cell, minlength=len(names) * n) > 0
    return Cells(names, n, codes, cell, seen)


def reference_cells(cells: Cells) -> np.ndarray:
    """Return a mask of the first position that occurs in every context: its examination is 1."""
    seen = cells.seen.reshape(len(cells.names), cells.n_positions)
    first = np.zeros_like(seen)
    rows = np.flatnonzero(seen.any(axis=1))
    first[rows, seen[rows].argmax(axis=1)] = True
    return first.ravel()


def context_references(cells: Cells) -> np.ndarray:
    """Return, for every cell, the reference cell of its context."""
    fixed = reference_cells(cells).reshape(len(cells.names), cells.n_positions)
    rows = np.arange(len(cells.names)) * cells.n_positions
    return np.repeat(rows + fixed.argmax(axis=1), cells.n_positions)


def cell_table(examination: np.ndarray, cells: Cells) -> np.ndarray:
    """Return examinations by context and position; by position alone for one context.

    A position that does not occur has the value between its neighbours that do; a context that
    does not occur has the mean of the others.
    """
    seen = cells.seen.reshape(len(cells.names), cells.n_positions)
    table = examination.reshape(seen.shape).copy()
    at = np.arange(cells.n_positions)
    for row, there in zip(table, seen, strict=True):
        if there.any():
            row[:] = np.interp(at, at[there], row[there])
    empty = ~seen.any(axis=1)
    table[empty] = table[~empty].mean(axis=0)
    return table[0] if cells.names == ("",) else table
