"""Labels as classes, as in McRank: one score per class, or per threshold between classes.

Both forms give the probability of every label; the ranking score is the expected label.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankgrove import parallel
from rankgrove.errors import DataError
from rankgrove.objectives.over_queries import WeightedObjective

MOST_CLASSES = 32
SERIAL_SCORES = 1 << 14  # fewer are not worth a second thread


class SoftmaxObjective(WeightedObjective):
    """The cross entropy of K classes: -log p_y, p the softmax of the K scores of a row.

    Every round has one tree per class, all on the probabilities before the round (Friedman's
    algorithm for K classes). A leaf's value is (K - 1) / K sum r / sum |r| (1 - |r|) with
    r = 1[y = k] - p_k. |r| (1 - |r|) is p_k (1 - p_k), so this is the Newton step of one class
    times (K - 1) / K; with it two classes learn exactly the same as the two-class loss.

    Parameters
    ----------
    labels : one per row, in query order; `classes` holds all labels of rows with a weight
    classes : the distinct labels, ascending
    query_ptr : the borders of queries
    weight : one per row; None: all 1
    """

    def __init__(
        self,
        labels: np.ndarray,
        classes: np.ndarray,
        query_ptr: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> None:
        super().__init__(query_ptr, weight)
        self.classes = classes
        self.n_columns = int(classes.size)
        self.codes = np.searchsorted(classes, labels).astype(np.uint8)

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        from rankgrove.objectives._pointwise_kernels import softmax_queries

        softmax_queries(queries, self.query_ptr, self.codes, self.weight, scores, gradient, hessian)

    @staticmethod
    def expected(
        scores: np.ndarray, classes: np.ndarray, n_threads: int | None = None
    ) -> np.ndarray:
        """Return the sum over k of p_k times the label of class k, for scores (classes, rows)."""
        from rankgrove.objectives._pointwise_kernels import expected_by_softmax

        return _expected(expected_by_softmax, scores, classes, n_threads)

    @staticmethod
    def probabilities(scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, of shape (rows, classes)."""
        from scipy.special import softmax

        return np.ascontiguousarray(softmax(scores, axis=0).T)


class OrdinalObjective(WeightedObjective):
    """K - 1 two-class losses, one for each threshold between K ordered classes.

    Score k is the log odds of y > classes[k]: 1 / (1 + exp(-F_k)) = 1 - P(y <= classes[k]). The
    loss and its Newton step are those of the two-class loss with sigma = 1/2.

    Parameters are those of :class:`SoftmaxObjective`.
    """

    def __init__(
        self,
        labels: np.ndarray,
        classes: np.ndarray,
        query_ptr: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> None:
        super().__init__(query_ptr, weight)
        self.classes = classes
        self.n_columns = int(classes.size) - 1
        self.signs = np.where(labels > classes[:-1, None], 1, -1).astype(np.int8)

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        from rankgrove.objectives._pointwise_kernels import logistic_queries

        # arrays of a single column have one dimension
        columns = [np.atleast_2d(array) for array in (scores, gradient, hessian)]
        for signs, *arrays in zip(self.signs, *columns, strict=True):
            logistic_queries(queries, self.query_ptr, signs, 0.5, self.weight, *arrays)

    @staticmethod
    def expected(
        scores: np.ndarray, classes: np.ndarray, n_threads: int | None = None
    ) -> np.ndarray:
        """Return the expected label: the lowest, plus every step to the next label times 1 - P.

        For the labels 0, 1, ... this is the sum over k of 1 - P(y <= k).
        """
        from rankgrove.objectives._pointwise_kernels import expected_by_thresholds

        return _expected(expected_by_thresholds, scores, classes, n_threads)

    @staticmethod
    def probabilities(scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, of shape (rows, classes).

        The thresholds are learned separately, so P(y > classes[k]) may rise with k; it is replaced
        by its running minimum.
        """
        from scipy.special import expit

        above = np.minimum.accumulate(expit(scores), axis=0)
        edges = np.vstack([np.ones(above.shape[1]), above, np.zeros(above.shape[1])])
        return np.ascontiguousarray(-np.diff(edges, axis=0).T)


FORMS: dict[str, type[SoftmaxObjective] | type[OrdinalObjective]] = {
    "classes": SoftmaxObjective,
    "ordinal": OrdinalObjective,
}


def find_classes(labels: np.ndarray, weight: np.ndarray | None, owner: str) -> np.ndarray:
    """Return the distinct labels of the rows that have a weight, ascending."""
    classes = np.unique(labels if weight is None else labels[weight > 0]).astype(np.float64)
    if classes.size < 2:
        raise DataError(
            f"{owner}: there is nothing to learn from: the labels of all rows (with a weight above "
            "0) are equal."
        )
    if classes.size > MOST_CLASSES:
        raise DataError(
            f"{owner}: the labels have {classes.size:,} different values, and every value would be "
            f"a class; at most {MOST_CLASSES} are possible. Round the labels to fewer grades, or "
            "train MART, which takes labels as numbers."
        )
    return classes


def _expected(
    kernel: Callable[..., None], scores: np.ndarray, classes: np.ndarray, n_threads: int | None
) -> np.ndarray:
    """Run a kernel for expected labels over pieces of the rows."""
    n_rows = scores.shape[1]
    out = np.empty(n_rows)
    few = 1 if scores.size < SERIAL_SCORES else n_threads
    bounds = parallel.piece_bounds(np.arange(n_rows + 1), few)
    parallel.run_pieces(lambda a, b: kernel(classes, scores, a, b, out), bounds, few)
    return out
