"""SmoothRank's smoothed measures, which have a gradient everywhere."""

from __future__ import annotations

import numpy as np

from rankgrove.compiling import announce
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures._value_kernels import SUM
from rankgrove.measures.base import Measure, QueryPieces, rank


def check_smooth(measure: Measure, owner: str) -> None:
    """Refuse a measure that is no sum over ranks of a weight times the gain at the rank."""
    if measure.rule != SUM:
        raise ParameterError(
            f"{owner} smooths measures that add up gains by rank: ndcg, dcg, meanndcg, p, recall "
            f"and auc. {measure} is none of them: use ndcg, or another ranker for it."
        )


class SmoothMeasure:
    """The smooth approximation of a measure on the labels of one data set (Chapelle and Wu 2010).

    In a sum over ranks of weight times gain, the gain of the document at a rank is replaced by a
    mean over all documents, with weights h_i proportional to exp(-(s_i - s_rank)^2 / sigma). As
    sigma goes to 0 it becomes the measure itself.

    Parameters
    ----------
    query_weight : weights of queries in the mean; None: all equal
    """

    def __init__(
        self,
        measure: Measure,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        query_weight: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:

        announce()
        self.prepared = measure.prepare(labels, query_ptr, n_threads)
        self._n_threads = n_threads
        counted = (~self.prepared.is_fixed).astype(np.float64)
        if query_weight is not None:
            counted *= query_weight
        if not counted.any():
            raise DataError(
                f"No order changes {measure} of any query: there is nothing to learn. Check the "
                "labels (and 'relevant', for binary measures)."
            )
        self._share = counted / counted.sum()

    def value_and_gradient(self, scores: np.ndarray, sigma: float) -> tuple[float, np.ndarray]:
        """Return the mean over queries for the given scores, and its derivatives by them."""
        from rankgrove.objectives._smooth_kernels import smooth_queries

        prepared = self.prepared
        order = rank(scores, prepared.query_ptr, self._n_threads).order
        value, gradient = np.empty(self._share.size), np.empty(scores.size)
        labelled = (prepared.query_ptr, prepared.is_fixed, prepared.gain, prepared.weight)
        arguments = (*labelled, order, scores, float(sigma))
        queries = QueryPieces(prepared.query_ptr, self._n_threads)
        queries.run(lambda a, b: smooth_queries(*arguments, a, b, value, gradient))
        gradient *= np.repeat(self._share, queries.sizes)
        return float(np.sum(self._share * value)), gradient
