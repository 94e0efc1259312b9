"""``rg.Parity``: whether an engine's scores are the model's, and why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankgrove.parity.causes import CAUSES
from rankgrove.parity.log import FeatureLog
from rankgrove.showing import html_table
from rankgrove.validation import counted

_EXAMPLES = 3
_ALSO = 3


@dataclass(frozen=True)
class Difference:
    """A document whose score differs.

    Attributes
    ----------
    query, document : ids
    logged, recomputed : the engine's score, and the model's from the logged features
    cause : a key such as ``"missing-as-zero"``
    explained : the score that the cause gives; NaN where the cause is not known
    where : file, line and hit
    """

    query: str
    document: str
    logged: float
    recomputed: float
    cause: str
    explained: float
    where: str


@dataclass(frozen=True)
class Cause:
    """A cause of differences.

    Attributes
    ----------
    name : a key such as ``"missing-as-zero"``
    title, detail, remedy : texts
    n_documents : number of documents that it explains
    largest : the largest difference among them
    examples : some of these documents, those with the largest differences
    also : other explanations that fit as well
    note : how it fits the documents whose scores do not differ
    """

    name: str
    title: str
    detail: str
    remedy: str
    n_documents: int
    largest: float
    examples: tuple[Difference, ...]
    also: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, eq=False)
class Parity:
    """The comparison of an engine's scores with the model's; prints as a table.

    Attributes
    ----------
    engine : the name of the engine whose rules were assumed, or ``"rankgrove"``
    n_documents : number of documents with a score
    n_equal : number of those whose scores agree
    causes : the causes of the differences, the most frequent first
    tolerance : of scores, as given
    largest : the largest difference
    notes : what was left out of the log, and what was found beside the scores
    """

    engine: str
    n_documents: int
    n_equal: int
    causes: tuple[Cause, ...]
    tolerance: float
    largest: float
    notes: tuple[str, ...]
    _log: FeatureLog = field(repr=False)
    _rows: np.ndarray = field(repr=False)
    _recomputed: np.ndarray = field(repr=False)
    _explained: np.ndarray = field(repr=False)
    _cause_of: np.ndarray = field(repr=False)

    @property
    def equal(self) -> bool:
        """Whether all scores agree."""
        return self.n_equal == self.n_documents

    @property
    def differences(self) -> list[Difference]:
        """All documents whose scores differ, in the log's order."""
        return [self._difference(k) for k in range(self._rows.size)]

    def _difference(self, k: int) -> Difference:
        return difference_of(
            self._log, int(self._rows[k]), float(self._recomputed[k]),
            self.causes[int(self._cause_of[k])].name, float(self._explained[k]),
        )  # fmt: skip

    # -- texts --------------------------------------------------------------------------------

    def _heading(self) -> str:
        of = counted(self.n_documents, "document")
        if self.equal:
            return (
                f"equal: the scores of {of} are the model's, by the rules of {self.engine} "
                f"(largest difference {self.largest:.2g})"
            )
        n = self.n_documents - self.n_equal
        return (
            f"different: {n:,} of {of} ({n / self.n_documents:.1%}) have other scores than the "
            f"model by the rules of {self.engine} (largest difference {self.largest:.4g})"
        )

    @property
    def table(self) -> list[tuple[str, int, float, str]]:
        """One row per cause: its name, documents, largest difference, and detail."""
        return [(c.name, c.n_documents, c.largest, c.detail or c.title) for c in self.causes]

    def __str__(self) -> str:
        lines = [self._heading()]
        if self.causes:
            width = max(len(cause.name) for cause in self.causes)
            lines += ["", f"{'cause':<{width}}  documents  largest difference  what"]
            lines += [
                f"{name:<{width}}  {n:>9,}  {largest:>18.6g}  {detail}"
                for name, n, largest, detail in self.table
            ]
        for cause in self.causes:
            lines += ["", *_cause_lines(cause)]
        if self.notes:
            lines.append("")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        names = ", ".join(f"{cause.name}: {cause.n_documents:,}" for cause in self.causes)
        equal = f"{self.n_equal:,} of {counted(self.n_documents, 'document')} equal"
        return f"Parity({self.engine}, {equal}{'; ' + names if names else ''})"

    def _repr_html_(self) -> str:
        rows = [(name, f"{n:,}", f"{d:.6g}", what) for name, n, d, what in self.table]
        header = ["cause", "documents", "largest difference", "what"] if rows else []
        note = "\n".join([*(f"{c.name}: {c.remedy}" for c in self.causes), *self.notes])
        return html_table(self._heading(), header, rows, note)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; numbers that are not finite are None."""
        return {
            "equal": self.equal,
            "engine": self.engine,
            "n_documents": self.n_documents,
            "n_equal": self.n_equal,
            "tolerance": self.tolerance,
            "largest_difference": _plain(self.largest),
            "causes": [
                {
                    "name": cause.name,
                    "title": cause.title,
                    "detail": cause.detail,
                    "remedy": cause.remedy,
                    "n_documents": cause.n_documents,
                    "largest_difference": _plain(cause.largest),
                    "also": list(cause.also),
                    "note": cause.note,
                }
                for cause in self.causes
            ],
            "differences": [
                {name: _plain(value) for name, value in vars(one).items()}
                for one in self.differences
            ],
            "notes": list(self.notes),
        }


def difference_of(
    log: FeatureLog, row: int, recomputed: float, cause: str, explained: float
) -> Difference:
    """Return the difference of one document of the log."""
    return Difference(
        str(log.query[row]), str(log.document[row]), float(log.score[row]), recomputed, cause,
        explained, log.where(row),
    )  # fmt: skip


def examples_of(
    log: FeatureLog, rows: np.ndarray, recomputed: np.ndarray, cause: str, explained: np.ndarray
) -> tuple[Difference, ...]:
    """Return the documents with the largest differences."""
    off = np.nan_to_num(np.abs(recomputed - log.score[rows]), nan=np.inf)
    first = np.argsort(-off, kind="stable")[:_EXAMPLES]
    return tuple(
        difference_of(log, int(rows[k]), float(recomputed[k]), cause, float(explained[k]))
        for k in first
    )


def _cause_lines(cause: Cause) -> list[str]:
    lines = [f"{cause.name}: {CAUSES[cause.name].title}"]
    if cause.note:
        lines.append(f"  {cause.note}")
    for one in cause.examples:
        lines.append(
            f"  query {one.query}, document {one.document}: logged {one.logged:.9g}, recomputed "
            f"{one.recomputed:.9g} ({one.where})"
        )
    if cause.also:
        more = len(cause.also) - _ALSO
        shown = "; ".join(cause.also[:_ALSO]) + (f"; and {more} more" if more > 0 else "")
        lines.append(f"  the same documents would also be explained by: {shown}")
    return [*lines, f"  what to do: {cause.remedy}"]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
