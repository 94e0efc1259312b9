"""RankNet's cost on given pairs: preferences with target probabilities (section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError
from rankgrove.measures.base import SERIAL_ROWS
from rankgrove.random import mix64

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Maximum number of pairs per update, where the caller gave no queries.
MOST_PAIRS = 1000


def pair_cost(
    first: ArrayLike, second: ArrayLike, probability: ArrayLike = 1.0, sigma: float = 1.0
) -> np.ndarray:
    """Return RankNet's cost of pairs: the cross entropy of target and learned probability.

    With P = 1 / (1 + exp(-sigma (first - second))), C = -Pbar log P - (1 - Pbar) log(1 - P)
    (overview paper, section 2).

    Parameters
    ----------
    first, second : scores of the documents of every pair
    probability : Pbar, that the first is preferred
    sigma : the slope of the sigmoid

    Examples
    --------
    >>> pair_cost([0.0, 5.0], [0.0, -5.0])
    array([6.93147181e-01, 4.53988992e-05])
    """
    x = sigma * (np.asarray(first, np.float64) - np.asarray(second, np.float64))
    # log(1 + exp(-x)) without overflow; the cost of Pbar below 1 adds (1 - Pbar) x.
    soft = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0.0)
    return np.asarray(soft + (1.0 - np.asarray(probability, np.float64)) * x)


class Preferences(NamedTuple):
    """Pairs of rows, with the probability that the first is preferred, and the pair's weight."""

    first: np.ndarray
    second: np.ndarray
    probability: np.ndarray
    weight: np.ndarray

    def taken(self, chosen: np.ndarray) -> Preferences:
        """Return the chosen pairs, in the given order."""
        return Preferences(*(column[chosen] for column in self))


def check_preferences(
    pairs: ArrayLike,
    n_rows: int,
    owner: str,
    probability: ArrayLike = 1.0,
    weight: ArrayLike | None = None,
) -> Preferences:
    """Return pairs of row numbers with their probabilities and weights; refuse wrong ones."""
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise DataError(
            f"{owner}: pairs must be an array of whole numbers with two columns, the rows of the "
            f"two documents. Got an array of {rows.dtype}, shape {rows.shape}."
        )
    if rows.shape[0] == 0:
        raise DataError(f"{owner} needs at least one pair. Got none.")
    rows = rows.astype(np.int64)
    bad = np.flatnonzero((rows < 0).any(axis=1) | (rows >= n_rows).any(axis=1))
    if bad.size:
        raise DataError(
            f"{owner}: pair {bad[0]} is {tuple(rows[bad[0]].tolist())}, and rows are numbered from "
            f"0 to {n_rows - 1}."
        )
    same = np.flatnonzero(rows[:, 0] == rows[:, 1])
    if same.size:
        raise DataError(
            f"{owner}: pair {same[0]} compares row {rows[same[0], 0]} with itself: leave it out."
        )
    n = rows.shape[0]
    target = _column("probability", 1.0 if probability is None else probability, n, owner, 1.0)
    counts = _column("weight", 1.0 if weight is None else weight, n, owner, None)
    if not counts.any():
        raise DataError(f"{owner}: weight must not be 0 everywhere.")
    first, second = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
    return Preferences(first, second, target, counts)


def _column(name: str, values: ArrayLike, n: int, owner: str, high: float | None) -> np.ndarray:
    """Return one float64 per pair, given as one number or one per pair, between 0 and `high`."""
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{owner}: {name} must be numbers: {error}.") from None
    if array.shape not in ((), (n,)):
        raise DataError(
            f"{owner}: {name} must be one number, or one per pair ({n:,}). "
            f"Got an array of shape {array.shape}."
        )
    array = np.ascontiguousarray(np.broadcast_to(array, n))
    within = np.isfinite(array) & (array >= 0.0) & (high is None or array <= high)
    bad = np.flatnonzero(~within)
    if bad.size:
        rule = "finite and not negative" if high is None else f"between 0 and {high:g}"
        raise DataError(f"{owner}: {name} must be {rule}. Got {array[bad[0]]} at pair {bad[0]}.")
    return array


def components(first: np.ndarray, second: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the number of every row's group: the connected components of the pairs."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(first.size, np.int8), (first, second)), shape=(n_rows, n_rows))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


class PairObjective:
    """The gradients of RankNet's cost on given pairs, for boosted trees.

    Inconsistent and cyclic preferences are allowed: the cost of every pair is convex, and so is
    their sum. Every row sums its own pairs in their order, so threads do not change the result.

    Parameters
    ----------
    preferences : pairs of rows in query order
    query_ptr : the borders of queries; both rows of a pair belong to the same query
    sigma : the slope of the sigmoid
    """

    n_columns = 1
    varies_by_round = False

    def __init__(
        self, preferences: Preferences, query_ptr: np.ndarray, *, sigma: float = 1.0
    ) -> None:
        self.preferences = preferences
        self.query_ptr = query_ptr
        self.sigma = float(sigma)
        first, second, probability, weight = preferences
        row = np.concatenate([first, second])
        order = np.argsort(row, kind="stable")
        counts = np.bincount(row, minlength=int(query_ptr[-1]))
        self._ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._neighbour = np.concatenate([second, first])[order]
        self._probability = np.concatenate([probability, 1.0 - probability])[order]
        self._weight = np.concatenate([weight, weight])[order]

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill `gradient` (upwards) and `hessian` for all queries, or for the given ones."""
        from rankgrove.objectives._preference_kernels import preference_rows

        if queries is None:
            rows = np.arange(self._ptr.size - 1)
        else:
            spans = zip(self.query_ptr[queries], self.query_ptr[queries + 1], strict=True)
            rows = np.concatenate([np.arange(a, b) for a, b in spans])
        sizes = self._ptr[rows + 1] - self._ptr[rows]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes + 1)])
        few = 1 if before[-1] < SERIAL_ROWS else n_threads

        def work(begin: int, end: int) -> None:
            preference_rows(
                self.sigma,
                rows[begin:end],
                self._ptr,
                self._neighbour,
                self._probability,
                self._weight,
                scores,
                gradient,
                hessian,
            )

        parallel.run_pieces(work, parallel.piece_bounds(before, few), few)

    def cost(self, scores: np.ndarray) -> float:
        """Return the weighted mean of the pairs' costs."""
        first, second, probability, weight = self.preferences
        costs = pair_cost(scores[first], scores[second], probability, self.sigma)
        return float(np.average(costs, weights=weight))


class PairGroups(NamedTuple):
    """Preferences split into groups of documents, with one update of a net per group.

    ``rows`` are the documents' rows, group by group; ``ptr`` are the borders of groups in ``rows``,
    ``pair_ptr`` those in the pairs; ``first`` and ``second`` are positions within a group; ``keys``
    has one key per group.
    """

    rows: np.ndarray
    ptr: np.ndarray
    pair_ptr: np.ndarray
    first: np.ndarray
    second: np.ndarray
    probability: np.ndarray
    weight: np.ndarray
    keys: np.ndarray


def pair_groups(
    preferences: Preferences,
    group_of_row: np.ndarray,
    group_keys: np.ndarray,
    most_pairs: int | None = None,
) -> PairGroups:
    """Split preferences into groups.

    Parameters
    ----------
    preferences : pairs of rows; both rows of a pair belong to the same group
    group_of_row, group_keys : every row's group, and every group's key (uint64)
    most_pairs : a group of more pairs than this is split at random into several; None: never
    """
    group = group_of_row[preferences.first]
    part = np.zeros(group.size, np.int64)
    if most_pairs is not None:
        part = _dealt(preferences, group, most_pairs)
    order = np.lexsort((part, group))
    chosen = preferences.taken(order)
    group, part = group[order], part[order]
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(group) != 0) | (np.diff(part) != 0)]))
    pair_ptr = np.append(begins, group.size)
    unit = np.repeat(np.arange(begins.size), np.diff(pair_ptr))
    # every unit's rows, ascending, and the positions of both documents of a pair in them
    n_rows = group_of_row.size
    ends = np.concatenate([unit * n_rows + chosen.first, unit * n_rows + chosen.second])
    documents, place = np.unique(ends, return_inverse=True)
    ptr = np.searchsorted(documents, np.arange(begins.size + 1) * n_rows)
    place = place.reshape(2, -1) - ptr[unit]
    key = group_keys[group[begins]]
    return PairGroups(
        documents % n_rows,
        ptr,
        pair_ptr,
        place[0],
        place[1],
        chosen.probability,
        chosen.weight,
        np.where(part[begins] == 0, key, mix64(key + part[begins].astype(np.uint64))),
    )


def _dealt(preferences: Preferences, group: np.ndarray, most_pairs: int) -> np.ndarray:
    """Return the part of its group that a pair belongs to, by a hash of its rows."""
    lot = mix64(mix64(preferences.first.astype(np.uint64)) + preferences.second.astype(np.uint64))
    order = np.lexsort((lot, group))
    sizes = np.bincount(group)
    place = np.empty(group.size, np.int64)
    place[order] = np.arange(group.size) - (np.cumsum(sizes) - sizes)[group[order]]
    n_parts = -(-sizes // most_pairs)
    return np.asarray(place * n_parts[group] // sizes[group])
