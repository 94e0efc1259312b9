"""Interleaving: one list made of two or more rankings, so that clicks say which of them is better.

A list is made per session. What was shown, and which ranking gets the credit of a click, is kept in
an :class:`Interleaved`; `interleaving_analysis` counts the winners of many sessions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.optimised_interleaving import CREDITS, rank_credits, unbiased_lists
from rankgrove.random import generator
from rankgrove.validation import check_choice, check_integer, counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

METHODS = ("team-draft", "optimised", "balanced")
OTHER_SPELLINGS = {"optimized": "optimised", "team_draft": "team-draft", "tdi": "team-draft"}

# The documents of a query, best first, or a score by document.
OneRanking: TypeAlias = Sequence[Hashable] | Mapping[Any, float]


@dataclass(frozen=True)
class Interleaved:
    """A list to show, and what a click on each of its documents says.

    All attributes are tuples: ``dataclasses.asdict`` makes a dict for JSON, and
    ``Interleaved(**loaded)`` makes the list of it.

    Attributes
    ----------
    documents : what to show, best first
    teams : for every document the number of the ranking (from 0) that a click on it favours; -1
        where it favours none
    ranks : for every ranking the ranks (from 1) of the shown documents in it; one more than its
        length for a document that it lacks
    credits : for every ranking what a click on each document counts for it; empty for balanced
        interleaving, where documents have no credit of their own
    method : ``"team-draft"``, ``"optimised"`` or ``"balanced"``
    """

    documents: tuple[Any, ...]
    teams: tuple[int, ...]
    ranks: tuple[tuple[int, ...], ...]
    credits: tuple[tuple[float, ...], ...]
    method: str

    def __post_init__(self) -> None:
        for name in ("documents", "teams"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("ranks", "credits"):
            object.__setattr__(self, name, tuple(tuple(row) for row in getattr(self, name)))

    def __len__(self) -> int:
        return len(self.documents)

    def credit(self, clicks: ArrayLike) -> np.ndarray:
        """Return what the clicks of a session count for every ranking.

        Parameters
        ----------
        clicks : one boolean, or 0 or 1, per shown document

        Examples
        --------
        >>> import rankgrove as rg
        >>> shown = rg.interleave(["a", "b", "c"], ["b", "d", "a"], seed=1)
        >>> shown.documents, shown.teams
        (('b', 'a', 'd'), (1, 0, 1))
        >>> shown.credit([1, 0, 1])
        array([0., 2.])
        """
        clicked = np.asarray(clicks)
        if clicked.shape != (len(self),) or not np.isin(clicked, (0, 1)).all():
            raise DataError(
                f"The clicks of a session must be one boolean per shown document, {len(self)}. "
                f"Got {clicks!r}."
            )
        clicked = clicked.astype(np.bool_)
        if self.method == "balanced":
            return self._balanced_credit(clicked)
        return np.array(self.credits, np.float64) @ clicked

    def _balanced_credit(self, clicked: np.ndarray) -> np.ndarray:
        """Return the clicks among the first j of each ranking.

        The lowest clicked document is among the first j of one of them, and of none for less.
        """
        ranks = np.array(self.ranks)
        if not clicked.any():
            return np.zeros(len(self.ranks))
        lowest = int(np.flatnonzero(clicked)[-1])
        return (ranks[:, clicked] <= ranks[:, lowest].min()).sum(axis=1).astype(np.float64)


@overload
def interleave(
    *rankings: Sequence[Hashable],
    method: str = ...,
    k: int | None = ...,
    seed: int = ...,
    session: object = ...,
    credit: str = ...,
) -> Interleaved: ...


@overload
def interleave(
    *rankings: Mapping[Any, OneRanking],
    method: str = ...,
    k: int | None = ...,
    seed: int = ...,
    session: object = ...,
    credit: str = ...,
) -> dict[Any, Interleaved]: ...


def interleave(
    *rankings: Any,
    method: str = "team-draft",
    k: int | None = None,
    seed: int = 0,
    session: object = None,
    credit: str = "inverse",
) -> Interleaved | dict[Any, Interleaved]:
    """Make one list of two rankings, or of more, to see by clicks which is better.

    Team-draft interleaving (Radlinski, Kurup and Joachims 2008) lets the rankings choose
    documents in turns, in random order in every round; a click counts for the ranking that chose
    the document. It takes any number of rankings (team-draft multileaving). Optimised interleaving
    (Radlinski and Craswell 2013) draws among all lists that begin, at any length, with the first
    documents of both rankings; the probabilities solve a linear programme, such that clicks at
    random ranks favour neither ranking, and that the expected information of a click is largest.
    Balanced interleaving (Joachims 2003) lets a coin decide which ranking is first. It is biased
    for some pairs of rankings: use it to repeat earlier experiments only.

    Parameters
    ----------
    rankings : documents, best first; or, for many queries, mappings from query ids to documents or
        to scores by document, as TREC runs are. Queries that a mapping lacks are left out. Equal
        scores are ranked by document id, descending, as by trec_eval
    method : ``"team-draft"``, ``"optimised"`` or ``"balanced"``; the last two take two rankings
    k : the number of documents to show; None, or more than the shortest ranking has: as many as it
        has, because below that only the other one could get credit
    seed : of all draws
    session : the id of the session. The draw is a hash of the seed, the session and the query:
        another session has another list, the same one gets the same list again
    credit : for optimised interleaving, what a click on a document counts: ``"inverse"``, the
        difference of 1 / rank between the two rankings, or ``"linear"``, that of the ranks

    Returns
    -------
    Interleaved, or for many queries a dict of them by query id

    Notes
    -----
    Where no probabilities make optimised interleaving unbiased, which we have not met for lists of
    equal length, the list is made by team draft, and its ``method`` says so.

    Examples
    --------
    >>> import rankgrove as rg
    >>> rg.interleave("abcd", "badc", method="optimised", session="s1").documents
    ('b', 'a', 'c', 'd')
    """
    owner = "interleave"
    check_choice("method", owner, method, METHODS, OTHER_SPELLINGS)
    check_choice("credit", owner, credit, CREDITS)
    check_integer("seed", owner, seed, low=0)
    if k is not None:
        k = check_integer("k", owner, k, low=1)
    if len(rankings) < 2 or (len(rankings) > 2 and method != "team-draft"):
        rule = "at least two rankings" if method == "team-draft" else "two rankings"
        raise ParameterError(f"interleave needs {rule} for {method}. Got {len(rankings)}.")
    mappings = [isinstance(ranking, Mapping) for ranking in rankings]
    if not any(mappings):
        draw = generator(seed, "interleave", session)
        return _interleaved([_listed(r) for r in rankings], method, k, draw, credit)
    if not all(mappings):
        raise DataError("interleave: give all rankings for one query, or all by query.")
    common = [qid for qid in rankings[0] if all(qid in other for other in rankings[1:])]
    if not common:
        raise DataError("interleave: there is no query for which all have a ranking.")
    return {
        qid: _interleaved(
            [_listed(ranking[qid]) for ranking in rankings],
            method,
            k,
            generator(seed, "interleave", session, qid),
            credit,
        )
        for qid in common
    }


def _listed(ranking: Any) -> list[Any]:
    """Return the documents of a ranking, best first, or refuse it."""
    if isinstance(ranking, Mapping):
        return ranked_documents(ranking)
    if not isinstance(ranking, Iterable):
        raise DataError(
            "interleave: a ranking is a list of documents, best first; or, for many queries, give "
            "mappings from query ids to documents or to scores by document. Got "
            f"{ranking!r} where the documents of a query should be."
        )
    documents = ranking.tolist() if isinstance(ranking, np.ndarray) else list(ranking)
    documents = [d.item() if isinstance(d, np.generic) else d for d in documents]
    if not documents:
        raise DataError("interleave: a ranking must have at least one document. Got none.")
    if len(set(documents)) < len(documents):
        twice = next(d for i, d in enumerate(documents) if d in documents[:i])
        raise DataError(f"interleave: a ranking has the document {twice!r} twice.")
    return documents


def ranked_documents(scores: Mapping[Any, float]) -> list[Any]:
    """Return the documents of a query by descending score, equal ones by descending id."""
    if not scores:
        raise DataError("A ranking must have at least one document. Got none.")
    by_id = sorted(scores, key=lambda document: str(document).encode(), reverse=True)
    return sorted(by_id, key=lambda document: -scores[document])


def _interleaved(
    rankings: list[list[Any]], method: str, k: int | None, draw: np.random.Generator, credit: str
) -> Interleaved:
    shortest = min(map(len, rankings))
    length = shortest if k is None else min(k, shortest)
    if method == "optimised":
        lists, chances = unbiased_lists(*(tuple(r[:length]) for r in rankings), credit)
        if lists:
            chosen = int(np.searchsorted(np.cumsum(chances), draw.random() * sum(chances)))
            documents: Sequence[Any] = lists[min(chosen, len(lists) - 1)]
            ranks = _ranks(rankings, documents, length)
            worth = rank_credits(ranks[0], ranks[1], credit)
            teams = [-1 if w == 0 else int(w < 0) for w in worth]
            both = [np.maximum(sign * worth, 0.0).tolist() for sign in (1.0, -1.0)]
            return _assembled(documents, teams, ranks, both, method)
        method = "team-draft"
    if method == "balanced":
        documents = _balanced(rankings, length, bool(draw.integers(2)))
        return _assembled(documents, [-1] * length, _ranks(rankings, documents), [], method)
    documents, teams = _team_draft(rankings, length, draw)
    credits = [[float(team == i) for team in teams] for i in range(len(rankings))]
    return _assembled(documents, teams, _ranks(rankings, documents), credits, method)


def _assembled(
    documents: Iterable[Any], teams: Any, ranks: Any, credits: Any, method: str
) -> Interleaved:
    return Interleaved(tuple(documents), teams, ranks, credits, method)


def _ranks(
    rankings: list[list[Any]], documents: Iterable[Any], length: int | None = None
) -> list[list[int]]:
    """Return the ranks of documents in every ranking, which ends after `length` documents."""
    listed = list(documents)
    ranks = []
    for ranking in rankings:
        cut = ranking[:length]
        place = {document: r for r, document in enumerate(cut, 1)}
        ranks.append([place.get(document, len(cut) + 1) for document in listed])
    return ranks


def _team_draft(
    rankings: list[list[Any]], length: int, draw: np.random.Generator
) -> tuple[list[Any], list[int]]:
    """Return the shown documents and who chose them: in every round all choose, in random order."""
    documents: list[Any] = []
    teams: list[int] = []
    shown: set[Any] = set()
    following = [iter(ranking) for ranking in rankings]
    while True:
        for team in draw.permutation(len(rankings)).tolist():
            if len(documents) == length:
                return documents, teams
            document = next(d for d in following[team] if d not in shown)
            shown.add(document)
            documents.append(document)
            teams.append(team)


def _balanced(rankings: list[list[Any]], length: int, second_first: bool) -> list[Any]:
    """Return the documents of two rankings in turns, without those that are already there."""
    first, second = reversed(rankings) if second_first else rankings
    merged = [document for pair in zip(first, second, strict=False) for document in pair]
    return list(dict.fromkeys(merged))[:length]


def check_sessions(shown: Sequence[Interleaved], clicks: Sequence[Any]) -> None:
    """Refuse lists and clicks of unequal number, or lists of different numbers of rankings."""
    if len(shown) != len(clicks):
        raise DataError(
            f"There must be clicks for every shown list. Got {counted(len(shown), 'list')} and "
            f"clicks of {counted(len(clicks), 'session')}."
        )
    if not shown:
        raise DataError("There must be at least one session. Got none.")
    other = next((one for one in shown if not isinstance(one, Interleaved)), None)
    if other is not None:
        raise DataError(
            "The shown lists must be those of interleave. Got "
            f"{type(other).__name__}: rg.Interleaved(**stored) restores a list that was stored as "
            "a dict."
        )
    if len({len(one.ranks) for one in shown}) > 1:
        raise DataError("All lists must be made of the same number of rankings.")
