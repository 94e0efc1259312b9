"""The summary of a click log: sizes, click-through rates by position, and what may be wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.clicks.suspects import Suspects, clicks_by_session, suspected
from rankgrove.data.arrays import frozen
from rankgrove.showing import html_table
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

SHOWN_POSITIONS = 20


@dataclass(frozen=True)
class ClickSummary:
    """Numbers about a click log; prints as text.

    Attributes
    ----------
    n_sessions, n_impressions, n_clicks, n_queries, n_documents, n_pairs : sizes
    impressions, clicks : of every position, from 1
    without_clicks : number of sessions without a click
    several_clicks : number of sessions with more than one click
    seen_once : number of pairs of a query and a document that were shown once
    with_gaps : number of sessions in which a position above the last one is missing
    queries_once : number of queries of one session
    suspects : sessions that bots may have made
    notes : what was merged or removed before
    """

    n_sessions: int
    n_impressions: int
    n_clicks: int
    n_queries: int
    n_documents: int
    n_pairs: int
    impressions: np.ndarray
    clicks: np.ndarray
    without_clicks: int
    several_clicks: int
    seen_once: int
    with_gaps: int
    queries_once: int
    suspects: Suspects
    notes: tuple[str, ...]

    @property
    def click_through_rate(self) -> np.ndarray:
        """Clicks per impression of every position; NaN where nothing was shown."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.clicks / self.impressions)

    @property
    def warnings(self) -> list[str]:
        """What may be wrong with the log, in sentences."""
        said = []
        found = self.suspects
        if found.n_sessions:
            said.append(
                f"{counted(found.n_sessions, 'session')} may be of bots ({found.many_clicks:,} "
                f"with too many clicks, {found.all_clicked:,} with a click on everything, "
                f"{found.of_busy_clients:,} of {counted(found.busy_clients, 'busy client')}): "
                "without_bots() leaves them out (--no-bots)."
            )
        if self.with_gaps:
            said.append(
                f"{counted(self.with_gaps, 'session')} "
                f"({_share(self.with_gaps, self.n_sessions)}) lack positions above the last one: "
                "documents that were shown and not clicked may be missing."
            )
        if self.n_clicks == self.n_impressions:
            said.append("Every impression was clicked: impressions without clicks are missing.")
        if not self.n_clicks:
            said.append("There are no clicks: nothing can be learned from the log.")
        return said

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, for JSON."""
        values = asdict(self) | {"notes": list(self.notes), "warnings": self.warnings}
        values["impressions"], values["clicks"] = self.impressions.tolist(), self.clicks.tolist()
        values["suspects"]["sessions"] = self.suspects.n_sessions
        return values

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("sessions", f"{self.n_sessions:,}"),
            ("impressions", f"{self.n_impressions:,}, "
             f"{self.n_impressions / self.n_sessions:.1f} per session"),
            ("clicks", f"{self.n_clicks:,}, {self.n_clicks / self.n_sessions:.2f} per session"),
            ("queries", f"{self.n_queries:,}, "
             f"{_share(self.queries_once, self.n_queries)} with one session only"),
            ("documents", f"{self.n_documents:,}"),
            ("pairs", f"{self.n_pairs:,} of query and document, "
             f"{_share(self.seen_once, self.n_pairs)} shown once only"),
            ("sessions without clicks", f"{self.without_clicks:,}, "
             f"{_share(self.without_clicks, self.n_sessions)}"),
            ("sessions with several clicks", f"{self.several_clicks:,}, "
             f"{_share(self.several_clicks, self.n_sessions)}"),
        ]  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{name:<28}  {text}" for name, text in self._rows()]
        lines += ["", f"{'position':>8}  {'impressions':>12}  {'clicks':>10}  {'CTR':>7}"]
        rates = self.click_through_rate
        for p in range(min(self.impressions.size, SHOWN_POSITIONS)):
            rate = f"{rates[p]:.4f}" if self.impressions[p] else "-"
            lines.append(
                f"{p + 1:>8}  {self.impressions[p]:>12,}  {self.clicks[p]:>10,}  {rate:>7}"
            )
        if self.impressions.size > SHOWN_POSITIONS:
            lines.append(f"    ...  (positions up to {self.impressions.size:,})")
        return "\n".join([*lines, *([""] if self._notes() else []), *self._notes()])

    __repr__ = __str__

    def _notes(self) -> list[str]:
        return [*self.warnings, *(f"Before: {note}." for note in self.notes)]

    def _repr_html_(self) -> str:
        rates = self.click_through_rate
        rows: list[tuple[str, str]] = self._rows()
        rows += [
            (f"CTR at position {p + 1}", f"{rates[p]:.4f} of {self.impressions[p]:,}")
            for p in range(min(self.impressions.size, 10))
            if self.impressions[p]
        ]
        return html_table("Click log", [], rows, "\n".join(self._notes()))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"


def summarise(log: ClickLog) -> ClickSummary:
    """Return the summary of a log."""
    places = log.position
    impressions = np.bincount(places, minlength=log.n_positions + 1)[1:]
    clicks = np.bincount(places[log.click], minlength=log.n_positions + 1)[1:]
    of_session = clicks_by_session(log)
    shown = np.bincount(log.pair, minlength=log.n_pairs)
    last = places[log.session_ptr[1:] - 1]
    of_query = np.bincount(log.session_query, minlength=log.n_queries)
    pairs = shown > 0
    return ClickSummary(
        n_sessions=log.n_sessions,
        n_impressions=log.n_impressions,
        n_clicks=log.n_clicks,
        n_queries=int((of_query > 0).sum()),
        n_documents=int(np.unique(log.pair_document[pairs]).size),
        n_pairs=int(pairs.sum()),
        impressions=frozen(impressions),
        clicks=frozen(clicks),
        without_clicks=int((of_session == 0).sum()),
        several_clicks=int((of_session > 1).sum()),
        seen_once=int((shown == 1).sum()),
        with_gaps=int((last.astype(np.int64) > np.diff(log.session_ptr)).sum()),
        queries_once=int((of_query == 1).sum()),
        suspects=suspected(log, 20, 5, 0.01),
        notes=log.notes,
    )
