"""Oracles of ranking: the most violated rankings of queries under a loss.

The joint features of a query and a ranking are those of the SVM-map paper: over all pairs of a
relevant document i and an irrelevant one j, Psi = 1 / (P N) * sum of +-(phi_i - phi_j), plus if i
is before j. So the learner needs only the loss of a ranking and one coefficient per document:
Psi(true) - Psi(ranking) = sum of coefficient * phi.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rankgrove.compiling import announce
from rankgrove.errors import DataError
from rankgrove.measures.base import QueryPieces
from rankgrove.svm.cutting_plane import Oracle
from rankgrove.svm.design import Design
from rankgrove.validation import check_choice

LOSSES = ("map", "roc", "mrr", "ndcg")  # in the order of the kernels' codes

# A user's function: scores and relevance of a query -> loss and order of the most violated ranking.
Finder = Callable[[np.ndarray, np.ndarray], tuple[float, ArrayLike]]


class RankingOracle(Oracle):
    """Base of all ranking oracles: scores of queries, and constraints from coefficients.

    Parameters
    ----------
    design : the rows, in query order
    query_ptr : the borders of queries
    relevant : one boolean per row; every query has relevant and irrelevant documents. For an oracle
        of graded labels, numbers
    weights : the weight of every query; None: all equal
    n_threads : threads to use; it does not change the result
    """

    def __init__(
        self,
        design: Design,
        query_ptr: np.ndarray,
        relevant: np.ndarray,
        *,
        weights: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:
        self._design = design
        self._ptr = np.ascontiguousarray(query_ptr, np.int64)
        self._relevant = np.ascontiguousarray(relevant)
        self._n_threads = n_threads
        n_queries = self._ptr.size - 1
        query_weights = np.ones(n_queries) if weights is None else np.asarray(weights, np.float64)
        self.shares = query_weights / query_weights.sum()
        self.n_weights = design.n_columns

    def joint(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = self._design.scores(w, self._n_threads)
        loss, coefficient = self.rankings(scores, self._ptr, self._relevant)
        coefficient *= np.repeat(self.shares, np.diff(self._ptr))
        return float(np.sum(self.shares * loss)), self._design.combine(coefficient, self._n_threads)

    def single(self, w: np.ndarray, example: int) -> tuple[float, np.ndarray]:
        first, last = int(self._ptr[example]), int(self._ptr[example + 1])
        part = self._design.between(first, last)
        ends = np.array([0, last - first])
        loss, coefficient = self.rankings(part.scores(w, 1), ends, self._relevant[first:last])
        return float(loss[0]), part.combine(coefficient, 1)

    def rankings(
        self, scores: np.ndarray, query_ptr: np.ndarray, relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the most violated rankings: one loss per query, one coefficient per document."""
        raise NotImplementedError


class LossOracle(RankingOracle):
    """The exact oracle of a built-in loss.

    ``map``: 1 - average precision, by the paper's Algorithm 2. ``roc``: 1 - ROC area. ``mrr``:
    1 - reciprocal rank. ``ndcg``: 1 - NDCG of binary relevance over all ranks, with the discount
    1 / log2(1 + r); with a cutoff the discount would not be convex, which Algorithm 2 needs.

    Parameters
    ----------
    loss : one of these
    """

    def __init__(
        self,
        loss: str,
        design: Design,
        query_ptr: np.ndarray,
        relevant: np.ndarray,
        *,
        weights: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:
        good = np.asarray(relevant, np.bool_)
        super().__init__(design, query_ptr, good, weights=weights, n_threads=n_threads)
        self._rule = LOSSES.index(check_choice("loss", "LossOracle", loss, LOSSES))
        self._discount = np.empty(0)
        if loss == "ndcg":
            ranks = np.arange(int(np.diff(self._ptr).max()))
            self._discount = 1.0 / np.log2(2.0 + ranks)
        announce()

    def rankings(
        self, scores: np.ndarray, query_ptr: np.ndarray, relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        loss, coefficient, _ = self.positions(scores, query_ptr, relevant)
        return loss, coefficient

    def positions(
        self, scores: np.ndarray, query_ptr: np.ndarray, relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the same as `rankings`, and numbers of irrelevant documents before relevant ones.

        These numbers are laid out like the rows: the first P entries of a query are those of its
        relevant documents, in the order of their scores; the other entries have no meaning.
        """
        from rankgrove.svm._oracle_kernels import most_violated

        loss, coefficient = np.empty(query_ptr.size - 1), np.empty(scores.size)
        before = np.empty(scores.size, np.int64)
        arguments = (self._rule, self._discount, query_ptr, relevant, scores)
        QueryPieces(query_ptr, self._n_threads).run(
            lambda a, b: most_violated(*arguments, a, b, coefficient, loss, before)
        )
        return loss, coefficient, before


class FinderOracle(RankingOracle):
    """The oracle of a user's loss: a function that finds the most violated ranking of one query.

    Parameters
    ----------
    find : a function of a query's scores and relevance (arrays); it returns the loss and the order
        (row numbers within the query, best first) of the ranking that maximises
        loss + w . Psi(ranking), that is loss + 1 / (P N) * sum over pairs of +-(s_i - s_j)
    """

    def __init__(
        self,
        find: Finder,
        design: Design,
        query_ptr: np.ndarray,
        relevant: np.ndarray,
        *,
        weights: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:
        good = np.asarray(relevant, np.bool_)
        super().__init__(design, query_ptr, good, weights=weights, n_threads=n_threads)
        self._find = find

    def rankings(
        self, scores: np.ndarray, query_ptr: np.ndarray, relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        loss, coefficient = np.empty(query_ptr.size - 1), np.empty(scores.size)
        for q in range(loss.size):
            rows = slice(query_ptr[q], query_ptr[q + 1])
            answer = self._find(scores[rows].copy(), relevant[rows].copy())
            if not isinstance(answer, tuple | list) or len(answer) != 2:
                raise DataError(
                    "most_violated must return two values: the loss and the order of the most "
                    f"violated ranking. It returned {answer!r:.80}."
                )
            value, order = answer
            loss[q] = _checked_loss(value)
            coefficient[rows] = pair_coefficients(order, relevant[rows])
        return loss, coefficient


def pair_coefficients(order: ArrayLike, relevant: np.ndarray) -> np.ndarray:
    """Return the coefficient of every document in Psi(true) - Psi(order).

    Every pair in the wrong order adds 2 / (P N) to that of its relevant document and subtracts as
    much from that of its irrelevant one.
    """
    n = relevant.size
    try:
        places = np.asarray(order)
    except ValueError:  # lists of several lengths
        places = np.empty(0)
    if (
        places.shape != (n,)
        or places.dtype.kind not in "iu"
        or not np.array_equal(np.sort(places), np.arange(n))
    ):
        raise DataError(
            f"A ranking of {n} documents must name each of the numbers 0 to {n - 1} once, best "
            f"first. The oracle returned {order!r:.80}."
        )
    good = relevant[places]
    bad_before = np.cumsum(~good)
    good_after = good.sum() - np.cumsum(good)
    pairs = 2.0 / (good.sum() * (n - good.sum()))
    coefficient = np.empty(n)
    coefficient[places] = pairs * np.where(good, bad_before, -good_after)
    return coefficient


def _checked_loss(value: float) -> float:
    try:
        loss = float(value)
    except (TypeError, ValueError):
        loss = np.nan
    if not np.isfinite(loss) or loss < 0.0:
        raise DataError(f"A loss must be a finite number, at least 0. The oracle gave {value!r}.")
    return loss
