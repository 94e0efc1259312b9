"""Where documents were shown: a position per row, and the context in which it was seen.

The examination of a position may differ between contexts (devices, kinds of pages). A context and
a position are a *cell*; cells are numbered context by context::

    context   phone      desktop            n_positions = 3
    position  1  2  3    1  2  3
    cell      0  1  2    3  4  5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.arrays import frozen
from rankgrove.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_POSITION = 10_000
MOST_CONTEXTS = 1 << 12
NO_CONTEXT = ("",)  # the names of contexts where there is only one


@dataclass(frozen=True, eq=False)
class Positions:
    """The positions of rows, in the caller's order.

    Attributes
    ----------
    place : uint16, from 1
    context : a code per row, or None where all rows have the same context
    names : the names of contexts, by code
    pair : a number per row, equal where the same document was shown for the same query; or None
        where that is not known
    """

    place: np.ndarray
    context: np.ndarray | None = None
    names: tuple[str, ...] = field(default=NO_CONTEXT)
    pair: np.ndarray | None = None

    @property
    def highest(self) -> int:
        """The highest position."""
        return int(self.place.max(initial=0))

    def cells(self, names: Sequence[str], n_positions: int) -> np.ndarray:
        """Return the cell of every row, where contexts have these names, in their order.

        A context without a name, or a position above `n_positions`, has the cell -1.
        """
        number = {name: code for code, name in enumerate(names)}
        codes = np.array([number.get(name, -1) for name in self.names], np.int32)
        of_row = codes[0] if self.context is None else codes[self.context]
        place = self.place.astype(np.int32)
        known = (of_row >= 0) & (place <= n_positions)
        return np.where(known, of_row * np.int32(n_positions) + place - 1, np.int32(-1))

    def take(self, rows: np.ndarray) -> Positions:
        """Return the positions of some rows."""
        return Positions(
            frozen(self.place[rows]),
            None if self.context is None else frozen(self.context[rows]),
            self.names,
            None if self.pair is None else frozen(self.pair[rows]),
        )

    def arrays(self) -> list[np.ndarray]:
        """Return what a hash of the data has to cover."""
        names = np.frombuffer("\0".join(self.names).encode(), np.uint8)
        return [self.place, names, *([] if self.context is None else [self.context])]


def check_positions(
    position: ArrayLike | None, context: ArrayLike | Sequence[ArrayLike] | None, n_rows: int
) -> Positions | None:
    """Return checked positions; `context` has one value per row, or is a list of such columns."""
    if position is None:
        if context is not None:
            raise DataError("position_context needs position: give both, or neither.")
        return None
    place = check_places(position, n_rows)
    if context is None:
        return Positions(frozen(place))
    codes, names = context_codes(context, n_rows)
    return Positions(frozen(place), frozen(codes), names)


def check_places(position: ArrayLike, n_rows: int) -> np.ndarray:
    """Return positions as uint16; refuse those that are no whole numbers from 1 to 10,000."""
    given: Any = np.asarray(position)
    if given.shape != (n_rows,):
        raise DataError(f"position must have one number per row, {n_rows}. Got {given.shape}.")
    if given.dtype.kind not in "iuf":
        raise DataError(f"Positions must be whole numbers from 1. Got {given.dtype}.")
    wrong = ~(given >= 1) | (given > MOST_POSITION) | (given != np.floor(given))  # also NaN
    if wrong.any():
        row = int(np.argmax(wrong))
        remedy = " Add 1 to all if they start at 0." if given[row] == 0 else ""
        raise DataError(
            f"Positions must be whole numbers from 1 to {MOST_POSITION:,}. Got {given[row]:g} in "
            f"row {row}.{remedy}"
        )
    return given.astype(np.uint16)


def context_codes(
    context: ArrayLike | Sequence[ArrayLike], n_rows: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a code per row and the names of codes; several columns are one context together."""
    given = np.asarray(context)
    columns = [given] if given.shape == (n_rows,) else [np.asarray(column) for column in context]  # type: ignore[union-attr]
    if not columns or any(column.shape != (n_rows,) for column in columns):
        raise DataError(f"position_context must have one value per row, {n_rows}.")
    codes = np.zeros(n_rows, np.int64)
    names = np.array([""])
    for column in columns:
        texts, of_row = np.unique(column.astype(str), return_inverse=True)
        codes = codes * texts.size + of_row
        joined = [f"{name}, {text}" if name else str(text) for name in names for text in texts]
        used, codes = np.unique(codes, return_inverse=True)
        names = np.array(joined)[used]
    if names.size > MOST_CONTEXTS:
        raise DataError(
            f"Positions may have {MOST_CONTEXTS:,} contexts. Got {names.size:,}: group their "
            "values."
        )
    order = np.argsort(names)  # as a cluster sorts the contexts of all its files
    return np.argsort(order)[codes].astype(np.int16), tuple(names[order].tolist())


def joined(parts: Sequence[Positions | None]) -> Positions | None:
    """Return the positions of several data sets, one after the other."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    if len(there) < len(parts):
        i = next(i for i, part in enumerate(parts) if part is None)
        raise DataError(
            f"Data set {i} (counted from 0) has no positions, but another one has: add them to "
            "all, or to none."
        )
    names = tuple(dict.fromkeys(name for part in there for name in part.names))
    number = {name: code for code, name in enumerate(names)}
    codes = [
        np.array([number[name] for name in part.names], np.int16)[
            np.zeros(part.place.size, np.int16) if part.context is None else part.context
        ]
        for part in there
    ]
    pairs = [part.pair for part in there if part.pair is not None]
    return Positions(
        frozen(np.concatenate([part.place for part in there])),
        None if len(names) == 1 else frozen(np.concatenate(codes)),
        names,
        frozen(np.concatenate(pairs)) if len(pairs) == len(there) else None,
    )
