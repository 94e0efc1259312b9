"""The oracle of the pairwise hinge loss over graded labels: RankSVM."""

from __future__ import annotations

import numpy as np

from rankgrove.compiling import announce
from rankgrove.measures.base import QueryPieces
from rankgrove.svm.design import Design
from rankgrove.svm.oracles import RankingOracle
from rankgrove.validation import check_choice

COUNTED = ("query", "all")  # all queries have the same weight, or all pairs


def label_levels(labels: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Return the rank of every row's label among the labels of its query: 1 for the lowest."""
    sizes = np.diff(query_ptr)
    order = np.lexsort((labels, np.repeat(np.arange(sizes.size), sizes)))
    is_new = np.ones(labels.size, np.int64)
    is_new[1:] = labels[order][1:] > labels[order][:-1]
    is_new[query_ptr[:-1]] = 1
    steps = np.cumsum(is_new)
    level = np.empty(labels.size, np.int64)
    level[order] = steps - np.repeat(steps[query_ptr[:-1]] - 1, sizes)
    return level


class PairOracle(RankingOracle):
    """The hinge loss of pairs: for a query, the mean over its pairs of max(0, 1 - (s_i - s_j)).

    The most violated choice includes every pair whose margin is below 1. With c+_i and c-_i the
    numbers of such pairs in which a document is the better and the worse one, its loss is the sum
    of c+ and its coefficients are c+ - c-, both divided by the number of pairs (Joachims 2006).
    They are counted in O(n log n).

    Parameters
    ----------
    labels : one per row; every query has unequal labels
    pairs : ``"all"``: the share of a query is proportional to its number of pairs, so that all
        pairs have the same weight; ``"query"``: all queries have the same weight
    """

    def __init__(
        self,
        design: Design,
        query_ptr: np.ndarray,
        labels: np.ndarray,
        *,
        pairs: str = "all",
        weights: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:

        announce()
        self._n_threads = n_threads
        level = label_levels(labels, query_ptr)
        self._numbers = self._pair_numbers(query_ptr, level)
        if check_choice("pairs", "PairOracle", pairs, COUNTED) == "all":
            weights = self._numbers if weights is None else weights * self._numbers
        super().__init__(design, query_ptr, level, weights=weights, n_threads=n_threads)

    def rankings(
        self, scores: np.ndarray, query_ptr: np.ndarray, relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        better, worse = self._counts(scores, query_ptr, relevant)
        numbers = self._numbers
        if query_ptr is not self._ptr:  # not all queries
            numbers = self._pair_numbers(query_ptr, relevant)
        loss = np.add.reduceat(better, query_ptr[:-1]) / numbers
        return loss, (better - worse) / np.repeat(numbers, np.diff(query_ptr))

    def _pair_numbers(self, query_ptr: np.ndarray, level: np.ndarray) -> np.ndarray:
        """Return the numbers of pairs of queries: with equal scores, all pairs are violated."""
        better, _ = self._counts(np.zeros(level.size), query_ptr, level)
        return np.asarray(np.add.reduceat(better, query_ptr[:-1]))

    def _counts(
        self, scores: np.ndarray, query_ptr: np.ndarray, level: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return c+ and c- of every document."""
        from rankgrove.svm._pair_kernels import violated_pairs

        better, worse = np.empty((2, scores.size), np.int64)
        QueryPieces(query_ptr, self._n_threads).run(
            lambda a, b: violated_pairs(query_ptr, level, scores, a, b, better, worse)
        )
        return better, worse
