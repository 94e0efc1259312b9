"""Optimised interleaving: the lists that may be shown, and how often each of them should be.

The lists are those whose every beginning is made of the first documents of both rankings. A click
on a document is worth the difference of what its ranks in the two rankings count. The probabilities
of the lists make the expected worth 0 at every rank, so that a user who clicks at random favours
neither ranking, and among those they make the expected information of a click largest.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np

from rankgrove.errors import ParameterError

CREDITS = ("inverse", "linear")
MOST_LISTS = 10_000


def rank_credits(first: Sequence[int], second: Sequence[int], credit: str) -> np.ndarray:
    """Return the worth of clicks on documents of these ranks: above 0 favours the first."""
    a, b = np.array(first, np.float64), np.array(second, np.float64)
    return b - a if credit == "linear" else 1.0 / a - 1.0 / b


def allowed_lists(
    first: Sequence[Hashable], second: Sequence[Hashable]
) -> list[tuple[Hashable, ...]]:
    """Return all lists whose next document is always the best left of one of two rankings.

    They are as long as the rankings, which have equal lengths.
    """
    lists: list[tuple[Hashable, ...]] = [()]
    for _ in range(len(first)):
        longer = []
        for begin in lists:
            following = [next(d for d in ranking if d not in begin) for ranking in (first, second)]
            longer += [(*begin, document) for document in dict.fromkeys(following)]
        lists = longer
        if len(lists) > MOST_LISTS:
            raise ParameterError(
                f"The 'k' parameter of interleave must be smaller for optimised interleaving: of "
                f"two rankings of {len(first)} documents it has more than {MOST_LISTS:,} lists to "
                "choose from. Give k=10, or use method='team-draft'."
            )
    return lists


def information(worth: np.ndarray) -> np.ndarray:
    """Return what a click is expected to tell, in bits, per row of worths in shown order.

    The user is taken to click rank r in proportion to 1 / r. A click tells most where it is as
    likely to favour either ranking, and nothing where documents have the same rank in both.
    """
    chance = 1.0 / np.arange(1, worth.shape[1] + 1)
    chance /= chance.sum()
    first, second = (worth > 0) @ chance, (worth < 0) @ chance
    either = first + second
    bits = np.zeros(worth.shape[0])
    for side in (first, second):
        share = np.divide(side, either, out=np.ones(side.size), where=side > 0)
        bits -= share * np.log2(share)
    return either * bits


@lru_cache(maxsize=4096)
def unbiased_lists(
    first: tuple[Hashable, ...], second: tuple[Hashable, ...], credit: str
) -> tuple[tuple[tuple[Hashable, ...], ...], tuple[float, ...]]:
    """Return the lists to show and their probabilities; no list where none are unbiased.

    Lists with probability 0 are left out.
    """
    from scipy.optimize import linprog

    lists = allowed_lists(first, second)
    if len(lists) == 1:
        return tuple(lists), (1.0,)
    ranks = [{document: r for r, document in enumerate(ranking, 1)} for ranking in (first, second)]
    absent = len(first) + 1
    worth = np.array(
        [
            rank_credits(
                [ranks[0].get(d, absent) for d in one],
                [ranks[1].get(d, absent) for d in one],
                credit,
            )
            for one in lists
        ]
    )
    solved = linprog(
        -information(worth),
        A_eq=np.vstack([np.ones(len(lists)), worth.T]),
        b_eq=np.concatenate([[1.0], np.zeros(len(first))]),
        method="highs",
    )
    if solved.x is None:
        return (), ()
    kept = np.flatnonzero(solved.x > 1e-12)
    return tuple(lists[i] for i in kept), tuple(solved.x[kept].tolist())
