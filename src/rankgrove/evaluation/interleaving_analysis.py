"""Which ranking wins the clicks on interleaved lists: shares, intervals and tests."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.evaluation.interleaving import Interleaved, check_sessions
from rankgrove.evaluation.significance import holm, randomisation
from rankgrove.files import write_atomically
from rankgrove.random import generator
from rankgrove.showing import html_table
from rankgrove.validation import check_choice, check_integer, check_real, counted, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BY = ("session", "query")
DIGITS = 9  # sums of credits that are equal to so many are equal


@dataclass(frozen=True)
class Preference:
    """One ranking against another.

    ``wins``, ``losses`` and ``ties`` count sessions (or queries) for `system`. ``delta`` is
    (wins + ties / 2) / all - 1/2, or for optimised interleaving the share of the credit that is for
    `system`, minus 1/2. It is from -1/2 to 1/2, above 0 where `system` is better; ``low`` and
    ``high`` are its interval. ``p_*`` are two-sided p-values, ``holm_*`` the same corrected for the
    number of pairs of rankings. There is no sign test (None) for optimised interleaving.
    """

    system: str
    against: str
    wins: int
    losses: int
    ties: int
    delta: float
    low: float
    high: float
    p_sign: float | None
    p_randomisation: float
    holm_sign: float | None = None
    holm_randomisation: float = math.nan


@dataclass(frozen=True)
class InterleavingAnalysis:
    """The result of :func:`analyse_interleaving`; prints as a table.

    Attributes
    ----------
    preferences : for every pair of rankings the later against the earlier
    by : what was counted, ``"session"`` or ``"query"``
    n_sessions : the number of sessions with a click
    without_click : the number of sessions without one, which are left out
    n_queries : the number of queries with a click, where counted by query
    level : of the intervals
    """

    preferences: tuple[Preference, ...]
    by: str
    n_sessions: int
    without_click: int
    n_queries: int | None
    level: float

    def __repr__(self) -> str:
        return str(self)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        several = len(self.preferences) > 1
        p = "Holm p" if several else "p"
        header = ["comparison", "win/loss/tie", "delta", f"{100 * self.level:g} % interval"]
        rows = [
            [
                f"{one.system} - {one.against}",
                f"{one.wins}/{one.losses}/{one.ties}",
                f"{one.delta:+.4f}",
                f"{one.low:+.4f} to {one.high:+.4f}",
                _p_value(one.holm_sign if several else one.p_sign),
                f"{one.holm_randomisation if several else one.p_randomisation:.4f}",
            ]
            for one in self.preferences
        ]
        return [*header, f"{p}: sign", f"{p}: randomis."], rows

    def _note(self) -> str:
        text = counted(self.n_sessions, "session") + " with a click"
        if self.n_queries is not None:
            text += f" of {counted(self.n_queries, 'query', 'queries')}, which count alike"
        if self.without_click:
            text += f"; left out: {self.without_click:,} without a click"
        return text

    def __str__(self) -> str:
        header, rows = self._table()
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in [header, *rows]
        ]
        return "\n".join([*lines, self._note()])

    def _repr_html_(self) -> str:
        header, rows = self._table()
        return html_table("Interleaving", header, rows, self._note())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return asdict(self) | {"preferences": [asdict(one) for one in self.preferences]}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return everything as JSON text, and write it to `path` if one is given."""
        text = json.dumps(self.to_dict())
        if path is not None:
            write_atomically(path, text + "\n")
        return text


def analyse_interleaving(
    shown: Sequence[Interleaved],
    clicks: Sequence[ArrayLike],
    *,
    names: Sequence[str] | None = None,
    by: str = "session",
    queries: Sequence[object] | None = None,
    level: float = 0.95,
    n_samples: int = 10_000,
    seed: int = 0,
) -> InterleavingAnalysis:
    """Tell which ranking wins the clicks on interleaved lists.

    The winner of a session is the ranking with more credit for its clicks; with equal credit it is
    a tie. Sessions without a click are left out. Delta is (wins + ties / 2) / all - 1/2, as in
    Chapelle, Joachims, Radlinski and Yue (2012).

    Optimised interleaving makes the mean credit of random clicks equal, not the number of sessions
    won: one ranking may have few large credits, and the other one many small ones. So there credits
    count as they are, and delta is the share of all credit, minus 1/2.

    Parameters
    ----------
    shown : the lists that were shown, one per session, made by :func:`interleave`
    clicks : for every session one boolean, or 0 or 1, per shown document
    names : the names of the rankings; None: A, B, C, ...
    by : ``"session"`` counts every session once. ``"query"`` gives every query one vote, the mean
        of its sessions (+1, 0, -1; for optimised interleaving their credits), and resamples
        queries: use it where few queries have most of the sessions, or where sessions of a query
        are alike (a user's id may stand for the query)
    queries : the query id of every session, for ``by="query"``
    level : of the intervals, which are bootstrapped
    n_samples : the number of bootstrap samples, and of sign patterns of the randomisation test
    seed : of both

    Returns
    -------
    InterleavingAnalysis
        Every later ranking against every earlier one, as "B - A". The sign test leaves out ties,
        Fisher's randomisation test changes the signs of sessions (or queries) at random.

    Examples
    --------
    >>> import rankgrove as rg
    >>> shown = [rg.interleave("abc", "bca", session=i) for i in range(200)]
    >>> clicks = [[document == "b" for document in one.documents] for one in shown]
    >>> preference = rg.analyse_interleaving(shown, clicks).preferences[0]
    >>> preference.system, preference.against, preference.p_sign < 0.001
    ('B', 'A', True)
    """
    owner = "analyse_interleaving"
    check_choice("by", owner, by, BY)
    check_real("level", owner, level, low=0.5, high=0.9999)
    check_integer("n_samples", owner, n_samples, low=100)
    check_integer("seed", owner, seed, low=0)
    check_sessions(shown, clicks)
    n_rankings = len(shown[0].ranks)
    called = [chr(ord("A") + i) for i in range(n_rankings)] if names is None else list(names)
    if len(called) != n_rankings or len(set(called)) < n_rankings:
        refuse("names", owner, f"{n_rankings} different names", names)
    credit = np.array([one.credit(mask) for one, mask in zip(shown, clicks, strict=True)])
    clicked = np.array([np.any(mask) for mask in clicks])
    if not clicked.any():
        raise DataError("No session has a click: there is nothing to compare.")
    of_query = _query_numbers(queries, by, len(shown))
    by_credit = any(one.method == "optimised" for one in shown)
    preferences = []
    for i, j in combinations(range(n_rankings), 2):
        difference = np.round(credit[clicked, j] - credit[clicked, i], DIGITS)
        outcome = difference if by_credit else np.sign(difference)
        votes = outcome if of_query is None else _query_means(outcome, of_query[clicked])
        preferences.append(
            _preference(called[j], called[i], votes, by_credit, (level, n_samples, seed))
        )
    return InterleavingAnalysis(
        tuple(_corrected(preferences)),
        by,
        int(clicked.sum()),
        int((~clicked).sum()),
        None if of_query is None else int(np.unique(of_query[clicked]).size),
        float(level),
    )


def _query_numbers(queries: Sequence[object] | None, by: str, n: int) -> np.ndarray | None:
    if by == "session":
        return None
    if queries is None or len(queries) != n:
        raise DataError(f"by='query' needs queries: the query id of every session, {n}.")
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(query, len(numbers)) for query in queries])


def _query_means(outcome: np.ndarray, of_query: np.ndarray) -> np.ndarray:
    numbers = np.unique(of_query, return_inverse=True)[1]
    return np.asarray(np.bincount(numbers, outcome) / np.bincount(numbers))


def _preference(
    system: str, against: str, votes: np.ndarray, by_credit: bool, drawn: tuple[float, int, int]
) -> Preference:
    """Return the preference of votes; `drawn` are the level, the number of samples, their seed."""
    wins, losses = int((votes > 0).sum()), int((votes < 0).sum())
    low, high = bootstrap_interval(votes, *drawn, of_share=by_credit)
    whole = math.fsum(np.abs(votes).tolist()) if by_credit else votes.size
    return Preference(
        system,
        against,
        wins,
        losses,
        votes.size - wins - losses,
        math.fsum(votes.tolist()) / whole / 2.0 if whole else 0.0,
        low / 2.0,
        high / 2.0,
        None if by_credit else _sign_test(wins, losses),
        randomisation(votes, *drawn[1:]),
    )


def _sign_test(wins: int, losses: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def _p_value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _corrected(preferences: list[Preference]) -> list[Preference]:
    """Return preferences with Holm's correction of their p-values."""
    tested = [one.p_sign for one in preferences if one.p_sign is not None]
    signs = holm(tested) if tested else [None] * len(preferences)
    randomised = holm([one.p_randomisation for one in preferences])
    return [
        replace(one, holm_sign=s, holm_randomisation=r)
        for one, s, r in zip(preferences, signs, randomised, strict=True)
    ]


def bootstrap_interval(
    values: np.ndarray, level: float, n_samples: int, seed: int, *, of_share: bool = False
) -> tuple[float, float]:
    """Return the percentile interval of the mean of values that are resampled.

    Equal values are drawn together, by how often they are among a sample's values. `of_share`: of
    their sum over the sum of their sizes, which is 0 if all are 0.
    """
    different, counts = np.unique(values, return_counts=True)
    draw = generator(seed, "bootstrap", values.size)
    chances = counts / values.size
    means = np.empty(n_samples)
    step = max(1, 1_000_000 // different.size)
    for start in range(0, n_samples, step):
        size = min(step, n_samples - start)
        drawn = draw.multinomial(values.size, chances, size=size)
        whole = (drawn * np.abs(different)).sum(axis=1) if of_share else np.full(size, values.size)
        sums = (drawn * different).sum(axis=1)
        means[start : start + size] = np.divide(sums, whole, out=np.zeros(size), where=whole > 0)
    outside = (1.0 - level) / 2.0
    low, high = np.quantile(means, [outside, 1.0 - outside])
    return float(low), float(high)
