"""``rg.Relevance``: what the scores of a calibrated ranker say about documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.frames import Tabular
from rankgrove.showing import html_table
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.frames import Columns

_SHOWN_ROWS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Relevance(Tabular):
    """What scores say about documents, one row per document; prints as a table of the first ones.

    `to_pandas`, `to_polars` and `to_arrow` have the columns expected, low and high, and one per
    grade, ``P(grade=2)``.

    Attributes
    ----------
    expected : expected grade
    low, high : interval of `expected`: of the mean grade of documents with this score, not of the
        grade of one document
    grades : the grades, lowest first; None where the labels were soft
    probabilities : of every grade, of shape (documents, grades); None where the labels were soft
    """

    expected: np.ndarray
    low: np.ndarray
    high: np.ndarray
    grades: np.ndarray | None
    probabilities: np.ndarray | None

    def __len__(self) -> int:
        return int(self.expected.size)

    def at_least(self, grade: float) -> np.ndarray:
        """Return the probability that a document has this grade or a higher one."""
        if self.grades is None or self.probabilities is None:
            raise ParameterError(
                "Relevance.at_least needs grades, and the ranker was calibrated on soft labels: "
                "use `expected`."
            )
        return np.asarray(self.probabilities[:, self.grades >= grade].sum(axis=1))

    def table_columns(self) -> Columns:
        """Return the columns: expected, low, high, and the probabilities of the grades."""
        columns = {"expected": self.expected, "low": self.low, "high": self.high}
        if self.grades is not None and self.probabilities is not None:
            for k, grade in enumerate(self.grades.tolist()):
                columns[f"P(grade={grade:g})"] = self.probabilities[:, k]
        return columns

    def _rows(self) -> list[list[str]]:
        columns = [column[:_SHOWN_ROWS] for column in self.table_columns().values()]
        return [[f"{value:.4f}" for value in row] for row in zip(*columns, strict=True)]

    def _note(self) -> str:
        more = len(self) - _SHOWN_ROWS
        return f"and {counted(more, 'other document')}" if more > 0 else ""

    def __repr__(self) -> str:
        grades = "" if self.grades is None else f", {counted(self.grades.size, 'grade')}"
        return f"Relevance({counted(len(self), 'document')}{grades})"

    def __str__(self) -> str:
        names = list(self.table_columns())
        lines = [names, *self._rows()]
        texts = ["  ".join(f"{text:>{max(8, len(n))}}" for n, text in zip(names, line, strict=True))
                 for line in lines]  # fmt: skip
        return "\n".join([repr(self), *texts, *filter(None, [self._note()])])

    def _repr_html_(self) -> str:
        return html_table(repr(self), list(self.table_columns()), self._rows(), self._note())
