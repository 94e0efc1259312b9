"""The table of an AutoRanker: what every candidate reached, its time and its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rankgrove.showing import html_text


@dataclass(frozen=True)
class Entry:
    """A candidate of the search.

    Attributes
    ----------
    name, kind, parameters : the ranker
    value : the mean of the measure by out-of-fold scores
    low, high : its 95 % confidence interval (Student's t over queries)
    weight : its share in the final model
    fits, seconds : number of fits and their time; 0: not known, as of a file of a search that was
        limited by a number of fits
    trees : number of trees per model; None: no trees
    """

    name: str
    kind: str
    parameters: dict[str, Any]
    value: float
    low: float
    high: float
    weight: float
    fits: int
    seconds: float
    trees: int | None


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
        width = max(len("candidate"), *(len(e.name) for e in shown)) if shown else 9
        title = f"{'candidate':<{width}}  {self.measure:>9}  {'95 % interval':>15}  weight"
        lines = [f"{title}  fits    time  trees"]
        for e in shown:
            weight = f"{e.weight:6.1%}" if e.weight > 0.0 else " " * 6
            trees = "" if e.trees is None else f"{e.trees:,}"
            seconds = f"{e.seconds:5.1f} s" if e.seconds > 0.0 else " " * 7
            lines.append(
                f"{e.name:<{width}}  {e.value:9.4f}  {e.low:.4f} - {e.high:.4f}  {weight}  "
                f"{e.fits:4}  {seconds}  {trees:>5}"
            )
        hidden = len(self) - len(shown)
        return "\n".join(lines + ([f"... and {hidden:,} more"] if hidden else []))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the entries as plain values."""
        return [asdict(entry) for entry in self]
