"""Types of the columns of CSV text that is read in blocks: those that pyarrow finds in all of it.

It tries types in an order, and takes the first one that fits all cells of a column. The type of a
later block need not fit the cells of an earlier one: 5 is no boolean, and 0 is one.
"""

from __future__ import annotations

from typing import Any


class ColumnKinds:
    """The types of the columns of blocks, and which types may be those of all rows."""

    def __init__(self) -> None:
        self._found: dict[str, set[Any]] = {}
        self._has_hexadecimal = False

    def add(self, schema: Any, text: bytes) -> None:
        """Add a block."""
        for field in schema:
            self._found.setdefault(field.name, set()).add(field.type)
        # 0x1F is read as a whole number, but not as a float
        self._has_hexadecimal = self._has_hexadecimal or b"0x" in text or b"0X" in text

    def candidates(self) -> dict[str, list[Any]]:
        """Return by column the types that may fit it, in order; text always does."""
        import pyarrow

        return {name: self._of(kinds - {pyarrow.null()}) for name, kinds in self._found.items()}

    def _of(self, kinds: set[Any]) -> list[Any]:
        import pyarrow

        if len(kinds) < 2:
            return [*kinds] or [pyarrow.null()]
        order = _in_order()
        if not kinds.issubset(order):
            return [pyarrow.string()]
        last = max(order.index(kind) for kind in kinds)
        numbers = kinds == {pyarrow.int64(), pyarrow.float64()} and not self._has_hexadecimal
        text = order.index(pyarrow.string())
        return [order[last]] if numbers or last >= text else order[last : text + 1]


def _in_order() -> list[Any]:
    """Return the types that pyarrow tries."""
    import pyarrow

    return [
        pyarrow.int64(),
        pyarrow.bool_(),
        pyarrow.date32(),
        pyarrow.time32("s"),
        pyarrow.timestamp("s"),
        pyarrow.timestamp("ns"),
        pyarrow.timestamp("s", "UTC"),
        pyarrow.timestamp("ns", "UTC"),
        pyarrow.float64(),
        pyarrow.string(),
        pyarrow.binary(),
    ]
