"""A column of short texts, stored as bytes: the document ids of millions of rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class TextColumn:
    """Texts ``blob[start[i]:end[i]]``, UTF-8; a subset shares the bytes.

    Parameters
    ----------
    blob : uint8 array, the bytes of all texts
    start, end : int64 arrays, one pair per text
    """

    __slots__ = ("blob", "end", "start")

    def __init__(self, blob: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        self.blob = blob
        self.start = start
        self.end = end

    @classmethod
    def from_texts(cls, texts: Iterable[object]) -> TextColumn:
        """Store ``str(text)`` of every text, bytes unchanged; None becomes the empty text."""
        encoded = [_encode(text) for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if encoded else ends
        return cls(np.frombuffer(b"".join(encoded), np.uint8), starts, ends)

    def __len__(self) -> int:
        return self.start.size

    def __getitem__(self, index: int) -> str:
        return bytes(self.blob[self.start[index] : self.end[index]]).decode(errors="replace")

    def take(self, rows: np.ndarray | slice) -> TextColumn:
        """Return the texts of `rows`, sharing the bytes."""
        return TextColumn(self.blob, self.start[rows], self.end[rows])

    def compact(self) -> TextColumn:
        """Return a copy that holds only the bytes of these texts."""
        length = self.end - self.start
        ends = np.cumsum(length)
        starts = ends - length
        source = np.arange(length.sum()) + np.repeat(self.start - starts, length)
        return TextColumn(self.blob[source], starts, ends)

    def to_array(self) -> np.ndarray:
        """Return the texts as an array of str objects."""
        out = np.empty(len(self), dtype=object)
        out[:] = [self[i] for i in range(len(self))]
        return out


def _encode(text: object) -> bytes:
    if isinstance(text, bytes):
        return bytes(text)
    return b"" if text is None else str(text).encode(errors="surrogateescape")
