"""Documents that a search engine has scored: the features it logged, and the scores it gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rankgrove.errors import DataError
from rankgrove.showing import html_table
from rankgrove.validation import counted


@dataclass(frozen=True, eq=False)
class FeatureLog:
    """Scored documents with their features, as :func:`rankgrove.read_feature_log` reads them.

    Attributes
    ----------
    kind : ``"elasticsearch"`` (OpenSearch too), ``"solr"``, ``"vespa"`` or ``"table"``
    features : names of the logged features, in the order in which they first appear
    values : (documents, features) float64; NaN where the engine logged no value
    query, document : ids as texts, one per document
    score : the scores that the engine gave; NaN where there is none
    files : the files that were read
    file, line, hit : where a document was found: the number of the file, the line (of a response:
        the one where it begins; 0: unknown), and the number of the hit in it from 1 (0: none)
    notes : what was left out, and what was taken for granted
    """

    kind: str
    features: tuple[str, ...]
    values: np.ndarray
    query: np.ndarray
    document: np.ndarray
    score: np.ndarray
    files: tuple[Path, ...] = ()
    file: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    line: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    hit: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.score)
        if self.values.shape != (n, len(self.features)) or len(self.query) != n:
            raise DataError(
                f"A log of {counted(n, 'score')} and {counted(len(self.features), 'feature')} "
                f"needs as many rows of features and ids. Got values of shape {self.values.shape} "
                f"and {counted(len(self.query), 'query id')}."
            )

    def __len__(self) -> int:
        return int(self.score.size)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return int(np.unique(self.query).size)

    def where(self, row: int) -> str:
        """Return where a document was found, such as ``log.json:3, hit 2``."""
        if not self.files:
            return f"row {row}"
        line, hit = int(self.line[row]), int(self.hit[row])
        place = f"{self.files[int(self.file[row])]}" + (f":{line}" if line else "")
        return place + (f", hit {hit}" if hit else "")

    def column(self, name: str) -> np.ndarray:
        """Return the values of one feature."""
        if name not in self.features:
            raise DataError(
                f"The log has no feature {name!r}. Its features are {', '.join(self.features)}."
            )
        return self.values[:, self.features.index(name)]

    def _rows(self) -> list[tuple[str, str]]:
        missing = int(np.isnan(self.values).sum())
        share = missing / max(self.values.size, 1)
        rows = [
            ("log", f"{self.kind}, {counted(len(self.files), 'file')}"),
            ("documents", f"{len(self):,} of {counted(self.n_queries, 'query', 'queries')}"),
            ("features", f"{len(self.features):,}; {share:.1%} of the values are missing"),
        ]
        scored = self.score[np.isfinite(self.score)]
        span = f"{scored.min():.6g} to {scored.max():.6g}" if scored.size else "none"
        without = len(self) - scored.size
        rows.append(("scores", span + (f"; {without:,} documents have none" if without else "")))
        return [*rows, *(("note", note) for note in self.notes)]

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {text}" for name, text in self._rows())

    def __repr__(self) -> str:
        return (
            f"FeatureLog({self.kind}, {counted(len(self), 'document')}, "
            f"{counted(self.n_queries, 'query', 'queries')}, "
            f"{counted(len(self.features), 'feature')})"
        )

    def _repr_html_(self) -> str:
        return html_table("Feature log", [], self._rows())
