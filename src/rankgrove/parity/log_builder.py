"""Logged documents collected one by one, and made into arrays at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import ParseError
from rankgrove.parity.log import FeatureLog
from rankgrove.validation import counted


class LogBuilder:
    """Collects documents.

    Documents of one search name the same features in the same order (a layout), so the values of
    all documents of a layout become an array at once.
    """

    def __init__(self, kind: str, files: Sequence[Path]) -> None:
        self.kind = kind
        self.files = tuple(files)
        self.notes: list[str] = []
        self.n_without = 0  # documents without logged features
        self.n_tensors = 0  # features that are tensors
        self._columns: dict[str, int] = {}
        self._layouts: dict[tuple[str, ...], tuple[list[int], list[Any]]] = {}
        self._query: list[str] = []
        self._document: list[str] = []
        self._score: list[Any] = []
        self._place: list[tuple[int, int, int]] = []

    def __len__(self) -> int:
        return len(self._score)

    @property
    def n_scored(self) -> int:
        """The number of documents with a score."""
        return sum(score is not None for score in self._score)

    def add(
        self,
        names: tuple[str, ...],
        values: Sequence[Any],
        query: str,
        document: str,
        score: Any,
        place: tuple[int, int, int],
    ) -> None:
        """Add a document; `place` is (number of the file, line, hit)."""
        known = self._layouts.get(names)
        if known is None:
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                self._refuse(place, f"it has the feature {twice!r} twice: name features apart.")
            for name in names:
                self._columns.setdefault(name, len(self._columns))
            known = self._layouts[names] = ([], [])
        known[0].append(len(self._score))
        known[1].append(values)
        self._query.append(query)
        self._document.append(document)
        self._score.append(score)
        self._place.append(place)

    def _refuse(self, place: tuple[int, int, int], message: str) -> None:
        file, line, hit = place
        begin = f"hit {hit}: " if hit else ""
        raise ParseError(self.files[file], line or None, begin + message)

    def log(self, absent: float) -> FeatureLog:
        """Return the log; `absent` is the value of a feature that a document does not name."""
        n = len(self._score)
        values = np.full((n, len(self._columns)), absent)
        for names, (rows, listed) in self._layouts.items():
            columns = [self._columns[name] for name in names]
            if columns:
                values[np.ix_(rows, columns)] = self._numbers(names, rows, listed)
        place = np.array(self._place, np.int64).reshape(n, 3)
        if self.n_without:
            self.notes.append(f"{counted(self.n_without, 'hit')} without features left out")
        if self.n_tensors:
            self.notes.append(f"{counted(self.n_tensors, 'tensor')} among the features left out")
        return FeatureLog(
            self.kind,
            tuple(self._columns),
            values,
            np.array(self._query, dtype=object),
            np.array(self._document, dtype=object),
            self._scores(),
            self.files,
            np.ascontiguousarray(place[:, 0]),
            np.ascontiguousarray(place[:, 1]),
            np.ascontiguousarray(place[:, 2]),
            tuple(self.notes),
        )

    def _numbers(
        self, names: tuple[str, ...], rows: Sequence[int], listed: Sequence[Sequence[Any]]
    ) -> np.ndarray:
        try:
            return np.array(listed, np.float64)  # None becomes NaN
        except (TypeError, ValueError, OverflowError):
            pass
        for row, values in zip(rows, listed, strict=True):
            for name, value in zip(names, values, strict=True):
                try:
                    np.array([value], np.float64)
                except (TypeError, ValueError, OverflowError):
                    self._refuse(
                        self._place[row],
                        f"the feature {name!r} of document {self._document[row]!r} must be a "
                        f"number. Got {str(value)[:60]!r}.",
                    )
        raise AssertionError("an array of numbers was refused")  # pragma: no cover

    def _scores(self) -> np.ndarray:
        scores = np.full(len(self._score), np.nan)
        for row, value in enumerate(self._score):
            if value is None:
                continue
            try:
                scores[row] = float(value)
            except (TypeError, ValueError):
                self._refuse(
                    self._place[row],
                    f"the score of document {self._document[row]!r} must be a number. "
                    f"Got {str(value)[:60]!r}.",
                )
        return scores
