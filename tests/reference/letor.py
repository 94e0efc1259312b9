"""The LETOR reader, slow and plain: the oracle of the fast one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

SPACE = b" \t\r\v\f"
DECIMAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
WORD = re.compile(rb"[+-]?(nan|inf|infinity)|null", re.IGNORECASE)
DOCID = re.compile(rb"(?:^|(?<=[ \t\r\v\f]))docid[ \t\r\v\f]*=[ \t\r\v\f]*([^ \t\r\v\f]+)")


class Mistake(Exception):
    """The text is not LETOR; `line` says where (None: as a whole)."""

    def __init__(self, line: int | None) -> None:
        super().__init__(line)
        self.line = line


@dataclass
class Rows:
    y: list[float] = field(default_factory=list)
    qid: list[bytes] = field(default_factory=list)
    features: list[dict[int, np.float32]] = field(default_factory=list)
    docid: list[str] = field(default_factory=list)

    @property
    def n_features(self) -> int:
        return max((column for row in self.features for column in row), default=-1) + 1

    def dense(self, absent: float = 0.0) -> np.ndarray:
        X = np.full((len(self.y), self.n_features), absent, np.float32)
        for i, row in enumerate(self.features):
            for column, value in row.items():
                X[i, column] = value
        return X


def value(token: bytes) -> np.float32:
    if WORD.fullmatch(token):
        text = token.decode().lower()
        return np.float32(float("nan" if text == "null" else text))
    if not DECIMAL.fullmatch(token):
        raise ValueError(token)
    if Decimal("1.79769e308") <= abs(Decimal(token.decode())) < Decimal("1.7977e308"):
        return np.float32("nan")  # Istella's missing value
    with np.errstate(over="ignore"):
        number = np.float32(float(token))
    if np.isinf(number):
        raise ValueError(token)
    return number


def label(token: bytes) -> float:
    if not DECIMAL.fullmatch(token) or np.isinf(float(token)):
        raise ValueError(token)
    return float(token)


def features(tokens: list[bytes], base: int) -> dict[int, np.float32]:
    row: dict[int, np.float32] = {}
    for token in tokens:
        index, colon, text = token.partition(b":")
        if not colon or not re.fullmatch(rb"[0-9]{1,10}", index):
            raise ValueError(token)
        column = int(index) - base
        if column < 0 or int(index) > 2**31 - 1 or column in row:
            raise ValueError(token)
        row[column] = value(text)
    return row


def parse(text: bytes, *, zero_based: bool = False) -> Rows:
    """Read a text with qid; rows with and without are a mistake, as are rows without alone."""
    rows = Rows()
    if text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
    for number, line in enumerate(text.split(b"\n"), start=1):
        content, _, comment = line.partition(b"#")
        tokens = content.split()
        if comment.strip(SPACE) and b"\r" in comment.rstrip(SPACE):
            raise Mistake(number)
        if not tokens:
            continue
        try:
            rows.y.append(label(tokens[0]))
            if len(tokens) < 2 or not re.fullmatch(rb"qid:[^\x00-\x20]+", tokens[1]):
                raise ValueError(line)
            rows.qid.append(tokens[1][4:])
            rows.features.append(features(tokens[2:], 0 if zero_based else 1))
        except ValueError:
            raise Mistake(number) from None
        named = DOCID.search(comment.strip(SPACE))
        document = named[1] if named else comment.strip(SPACE)
        rows.docid.append(document.decode(errors="replace"))
    if not rows.y:
        raise Mistake(None)
    return rows
