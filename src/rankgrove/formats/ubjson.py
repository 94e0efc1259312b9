"""UBJSON, the binary JSON that XGBoost writes: a decoder that is safe against hostile files.

Every length is checked against the rest of the file before it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError

MOST_DEPTH = 64
# marker of a number -> its form; all numbers are big-endian
_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_CONSTANTS = {"T": True, "F": False, "Z": None}
_LENGTHS = "iUIlL"


def decode(data: bytes) -> Any:
    """Return the decoded value; lists of numbers of one type become arrays."""
    decoder = _Decoder(data)
    value = decoder.value(decoder.marker(), 0)
    if decoder.at != len(data):
        raise ModelFileError("there are bytes after its end: it is damaged.")
    return value


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, n: int) -> bytes:
        if n < 0 or n > len(self.data) - self.at:
            raise ModelFileError("it is damaged or truncated. Copy it again.")
        self.at += n
        return self.data[self.at - n : self.at]

    def marker(self) -> str:
        marker = "N"
        while marker == "N":  # no operation
            marker = chr(self.take(1)[0])
        return marker

    def peek(self) -> str:
        return chr(self.data[self.at]) if self.at < len(self.data) else ""

    def length(self) -> int:
        marker = self.marker()
        if marker not in _LENGTHS:
            raise ModelFileError(f"a length has the type {marker!r}: it is damaged.")
        return int(self.number(marker))

    def number(self, marker: str) -> float:
        form = np.dtype(_NUMBERS[marker])
        return np.frombuffer(self.take(form.itemsize), form)[0].item()

    def text(self) -> str:
        return self.take(self.length()).decode()

    def value(self, marker: str, depth: int) -> Any:
        if depth > MOST_DEPTH:
            raise ModelFileError(f"it is nested more than {MOST_DEPTH} levels deep: it is damaged.")
        if marker in _NUMBERS:
            return self.number(marker)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == "S":
            return self.text()
        if marker == "C":
            return chr(self.take(1)[0])
        if marker == "H":
            return float(self.text())
        if marker == "[":
            return self.array(depth + 1)
        if marker == "{":
            return self.object(depth + 1)
        raise ModelFileError(f"there is no type {marker!r}: it is damaged.")

    def container(self) -> tuple[str | None, int | None]:
        """Return the type of all values of a list or object, and their number, if given."""
        kind = None
        if self.peek() == "$":
            self.take(1)
            kind = chr(self.take(1)[0])
            if self.peek() != "#":
                raise ModelFileError("a list has a type but no length: it is damaged.")
        if self.peek() != "#":
            return kind, None
        self.take(1)
        n = self.length()
        # values without bytes (true, null) must not be repeated endlessly
        if n < 0 or n > len(self.data):
            raise ModelFileError("it is damaged or truncated. Copy it again.")
        return kind, n

    def array(self, depth: int) -> np.ndarray | list[Any]:
        kind, n = self.container()
        if kind in _NUMBERS and n is not None:
            form = np.dtype(_NUMBERS[kind])
            return np.frombuffer(self.take(n * form.itemsize), form)
        values: list[Any] = []
        while n is None or len(values) < n:
            marker = kind or self.marker()
            if n is None and marker == "]":
                break
            values.append(self.value(marker, depth))
        return values

    def object(self, depth: int) -> dict[str, Any]:
        kind, n = self.container()
        values: dict[str, Any] = {}
        read = 0
        while n is None or read < n:
            if n is None and self.peek() == "}":
                self.take(1)
                break
            name = self.text()
            values[name] = self.value(kind or self.marker(), depth)
            read += 1
        return values
