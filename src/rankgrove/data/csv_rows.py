"""CSV text in blocks of whole rows, by pyarrow's rule for quotes.

A quote at the start of a cell opens a quoted cell. In it two quotes stand for one, and separators
and line feeds are text. Any other quote is an ordinary character.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

_MARK = b"\xef\xbb\xbf"  # of UTF-8
_START, _INSIDE, _QUOTED = 0, 1, 2  # as the kernel has them


def row_blocks(pieces: Iterable[bytes], n_bytes: int, separator: str) -> Iterator[bytes]:
    """Join pieces of text to blocks of at least `n_bytes` that end with a row, but for the last."""
    held: list[bytes] = []
    size = 0
    rows = _Rows(separator)
    for piece in pieces:
        end = rows.end_of_last(piece)
        if not end or size + len(piece) < n_bytes:
            held.append(piece)
            size += len(piece)
            continue
        yield b"".join([*held, piece[:end]])
        held = [piece[end:]]
        size = len(held[0])
    if size:
        yield b"".join(held)


class _Rows:
    """Finds rows in text that comes in pieces."""

    def __init__(self, separator: str) -> None:
        self._separator = separator.encode()
        self._state = np.zeros(1, np.int64)
        self._is_first = True

    def end_of_last(self, piece: bytes) -> int:
        """Return where the last row that ends in the next piece does; 0: none ends there."""
        skipped = len(_MARK) if self._is_first and piece.startswith(_MARK) else 0
        self._is_first = False
        if self._state[0] < _QUOTED and b'"' not in piece:
            starts = piece[-1:] in (self._separator, b"\n", b"\r") or len(piece) == skipped
            self._state[0] = _START if starts else _INSIDE
            return piece.rfind(b"\n") + 1
        from rankgrove.data._csv_kernels import scan_rows

        text = np.frombuffer(piece, np.uint8)[skipped:]
        end: int = scan_rows(text, ord(self._separator), self._state)
        return end + skipped if end else 0
