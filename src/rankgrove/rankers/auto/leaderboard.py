"""The table of an AutoRanker: what every candidate reached, its time and its size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rankgrove.rankers.base import Ranker
from rankgrove.rankers.inner_rankers import undescribed
from rankgrove.showing import html_text


@dataclass(frozen=True)
class Entry:
    """A candidate of the search.

    Attributes
    ----------
    name : its name in the table
    settings : the ranker: its kind, its parameters and, for prepared features, those of its base
    value : the mean of the measure by out-of-fold scores
    low, high : its 95 % confidence interval (Student's t over queries)
    weight : its share in the final model
    fits, seconds : number of fits and their time; 0: not known, as of a file of a search that was
        limited by a number of fits
    trees : number of trees of a model, the mean over its models; None: no trees
    """

    name: str
    settings: dict[str, Any]
    value: float
    low: float
    high: float
    weight: float
    fits: int
    seconds: float
    trees: int | None

    def ranker(self) -> Ranker:
        """Return the candidate untrained, with the parameters that it was tried with."""
        return undescribed(self.settings)


class Leaderboard(Sequence[Entry]):
    """The candidates of a search, the best first; prints as a table."""

    def __init__(self, entries: Sequence[Entry], measure: str) -> None:
        self._entries = list(entries)
        self.measure = measure

    def __getitem__(self, i: Any) -> Any:
        return self._entries[i]

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return self.text(20)

    def _repr_html_(self) -> str:
        return html_text("Leaderboard", repr(self))

    def text(self, most: int | None = None) -> str:
        """Return the table of the best candidates, and of all that are in the final model."""
        shown = [e for i, e in enumerate(self) if most is None or i < most or e.weight > 0.0]
        columns = {
            "candidate": [e.name for e in shown],
            self.measure: [f"{e.value:.4f}" for e in shown],
            "95 % interval": [interval_text(e.low, e.high) for e in shown],
            "weight": [share_text(e.weight) if e.weight > 0.0 else "" for e in shown],
            "fits": [f"{e.fits:,}" for e in shown],
            "time": [f"{e.seconds:,.1f} s" if e.seconds > 0.0 else "-" for e in shown],
            "trees/model": ["-" if e.trees is None else f"{e.trees:,}" for e in shown],
        }
        if not any(e.seconds > 0.0 for e in shown):
            del columns["time"]  # as after loading the file of a search with `n_fits`
        lines = _aligned(columns)
        hidden = len(self) - len(shown)
        return "\n".join(lines + ([f"... and {hidden:,} more"] if hidden else []))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the entries as plain values."""
        return [asdict(entry) for entry in self]

    def to_frame(self) -> Any:
        """Return the entries as a pandas DataFrame, one row each."""
        import pandas

        return pandas.DataFrame(self.to_list(), columns=[field.name for field in fields(Entry)])


def share_text(weight: float) -> str:
    """Return a weight as a percentage."""
    return f"{100.0 * weight:.1f} %"


def interval_text(low: float, high: float) -> str:
    """Return an interval as text; one query has none."""
    return "none" if math.isnan(low) else f"{low:.4f} - {high:.4f}"


def _aligned(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines of a table; the first column starts its lines, others end at one place."""
    widths = [max(map(len, [title, *cells])) for title, cells in columns.items()]
    lines = []
    for first, *others in zip(*([title, *cells] for title, cells in columns.items()), strict=True):
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines
