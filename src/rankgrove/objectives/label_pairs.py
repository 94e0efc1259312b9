"""Losses of pairs of documents with different labels: RankBoost's, and GBRank's targets."""

from __future__ import annotations

import numpy as np

from rankgrove.errors import DataError
from rankgrove.objectives.over_queries import over_queries


class LabelPairs:
    """All pairs of documents of one query with different labels, without a list of pairs.

    Parameters
    ----------
    labels : one per row, in query order
    query_ptr : the borders of queries
    row_weight, query_weight : a pair's weight is the product of its documents' weights and its
        query's weight; None: all 1
    even_queries : divide by the sum of a query's pairs, so that all queries have equal weight

    Attributes
    ----------
    order : the rows of every query by ascending label
    weight : weight of every row
    factor : factor of every query; 0 where it has no pair
    counts : the number of pairs of every query
    """

    def __init__(
        self,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        row_weight: np.ndarray | None = None,
        query_weight: np.ndarray | None = None,
        *,
        even_queries: bool = False,
    ) -> None:
        self.labels = np.array(labels, np.float64)
        self.query_ptr = np.ascontiguousarray(query_ptr, np.int64)
        n_queries = self.query_ptr.size - 1
        self.weight = np.ones(self.labels.size) if row_weight is None else np.array(row_weight)
        query = np.repeat(np.arange(n_queries), np.diff(self.query_ptr))
        self.order = np.lexsort((self.labels, query))
        ranked = self.labels[self.order]
        new = np.flatnonzero(np.diff(ranked, prepend=np.nan) != 0)  # NaN: the first row is new too
        runs = np.union1d(new, self.query_ptr[:-1])
        self.counts = _pairs(np.ones(self.labels.size), runs, query, n_queries).astype(np.int64)
        totals = _pairs(self.weight[self.order], runs, query, n_queries)
        self.factor = np.ones(n_queries) if query_weight is None else np.array(query_weight)
        self.factor[(totals <= 0.0) | (self.counts == 0)] = 0.0
        if even_queries:
            np.divide(self.factor, totals, out=self.factor, where=self.factor > 0.0)
        if not self.factor.any():
            raise DataError(
                "No query has two documents of different labels (with a weight above 0): there is "
                "no order to learn. Check the labels."
            )
        self.total = float(np.sort(self.factor * totals).sum())

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the arguments of the kernels."""
        return self.query_ptr, self.order, self.labels, self.weight, self.factor


def _pairs(weight: np.ndarray, runs: np.ndarray, query: np.ndarray, n_queries: int) -> np.ndarray:
    """Return every query's sum of products of two weights from different runs."""
    sums = np.add.reduceat(weight, runs)
    owner = query[runs]
    whole = np.bincount(owner, sums, n_queries)
    return np.maximum(0.0, (whole**2 - np.bincount(owner, sums**2, n_queries)) / 2)


class ExponentialPairs:
    """RankBoost's weights of pairs, exp(score of the worse - score of the better), by document.

    The gradient is the potential pi: the weights of the pairs in which a document is the better
    one, minus those in which it is the worse one. A pair's weight is a product of one factor per
    document, so two passes by label give all sums: O(n) per query and round. The hessian is half
    the weight of a document's pairs: its sum is the weight of all pairs. Both are divided by the
    largest weight, which keeps them in the range of float64 for any scores.
    """

    n_columns = 1
    varies_by_round = False

    def __init__(self, pairs: LabelPairs) -> None:
        self.pairs = pairs
        self._up = np.empty(pairs.labels.size)
        self._widest = np.empty(pairs.factor.size)

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill `gradient` and `hessian` for the rows of all queries, or of the given ones."""
        from rankgrove.objectives._label_pair_kernels import exponential_queries, widest_mistakes

        arrays, ptr = self.pairs.arrays(), self.pairs.query_ptr
        over_queries(
            lambda piece: widest_mistakes(piece, scores, self._widest, *arrays),
            ptr,
            queries,
            n_threads,
        )
        shift = float(self._widest.max() if queries is None else self._widest[queries].max())
        over_queries(
            lambda piece: exponential_queries(
                piece, shift, scores, self._up, gradient, hessian, *arrays
            ),
            ptr,
            queries,
            n_threads,
        )


class MarginPairs:
    """GBRank's regression: targets for the documents of pairs without a margin of tau.

    A document may be in many such pairs: the gradient is the sum of its targets and the hessian
    their number (both weighted by the pairs' weights), so a leaf's Newton step is the mean target.

    Parameters
    ----------
    pairs : the pairs
    tau : margin of the better document's score
    first_round : the round whose scores are those of the start. After k more rounds the scores are
        the sum of the start and k trees, and their mean is the ranking function
    """

    n_columns = 1
    varies_by_round = False

    def __init__(self, pairs: LabelPairs, tau: float, first_round: int = 0) -> None:
        self.pairs = pairs
        self.tau = float(tau)
        self.first_round = first_round

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill `gradient` and `hessian` for the rows of all queries, or of the given ones."""
        from rankgrove.objectives._label_pair_kernels import margin_queries

        scale = 1.0 / (round - self.first_round + 1)

        def work(piece: np.ndarray) -> None:
            margin_queries(piece, scale, self.tau, scores, gradient, hessian, *self.pairs.arrays())

        over_queries(work, self.pairs.query_ptr, queries, n_threads)
