"""Losses of single rows, for MART: squared error, and the logistic loss of two classes.

Every objective has ``start``, the constant score of least loss, from which boosting starts.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove.errors import DataError
from rankgrove.objectives.over_queries import WeightedObjective


class SquaredError(WeightedObjective):
    """Half the squared difference of label and score (overview paper, section 5).

    The gradient is the residual and the second derivative is 1, both times the row's weight, so a
    leaf's Newton step is the mean residual of its rows.

    Parameters
    ----------
    labels : one per row, in query order
    query_ptr : the borders of queries
    weight : one per row; None: all 1
    """

    def __init__(
        self, labels: np.ndarray, query_ptr: np.ndarray, weight: np.ndarray | None = None
    ) -> None:
        super().__init__(query_ptr, weight)
        self.labels = np.array(labels, np.float64)
        counted = self.labels if weight is None else self.labels[weight > 0]
        if counted.size == 0 or counted.min() == counted.max():
            raise DataError(
                "There is nothing to learn from: the labels of all rows (with a weight above 0) "
                "are equal."
            )
        if weight is None:
            self.start = _sum(self.labels) / self.labels.size
        else:
            self.start = _sum(weight * self.labels) / _sum(weight)

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        from rankgrove.objectives._pointwise_kernels import squared_queries

        squared_queries(
            queries, self.query_ptr, self.labels, self.weight, scores, gradient, hessian
        )


class Logistic(WeightedObjective):
    """The cross entropy of two classes (overview paper, section 6).

    With P+ = 1 / (1 + exp(-2 sigma F)) the loss is log(1 + exp(-2 y sigma F)) (equation 14). The
    gradient is g = 2 y sigma / (1 + exp(2 y sigma F)) and the second derivative
    |g| (2 sigma - |g|), both times the row's weight; a leaf's Newton step is the ratio of their
    sums.

    Boosting starts from the log odds of the classes, F = log(n+ / n-) / (2 sigma), as in Friedman's
    algorithm (the paper's reference [8]).

    Parameters
    ----------
    signs : 1 or -1 per row, in query order
    query_ptr : the borders of queries
    sigma : slope of the sigmoid; it only scales the scores, by 1 / sigma
    weight : one per row; None: all 1
    """

    def __init__(
        self,
        signs: np.ndarray,
        query_ptr: np.ndarray,
        sigma: float = 1.0,
        weight: np.ndarray | None = None,
    ) -> None:
        super().__init__(query_ptr, weight)
        self.signs = signs.astype(np.int8)
        self.sigma = float(sigma)
        positive, negative = class_totals(self.signs, weight)
        self.start = math.log(positive / negative) / (2.0 * self.sigma)

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        from rankgrove.objectives._pointwise_kernels import logistic_queries

        logistic_queries(
            queries,
            self.query_ptr,
            self.signs,
            self.sigma,
            self.weight,
            scores,
            gradient,
            hessian,
        )


class Balanced(Logistic):
    """The logistic loss with equal weight for both classes (overview paper, section 6.1).

    The loss is (I+ / n+ + I- / n-) log(1 + exp(-2 y sigma F)), so its derivatives are those of the
    logistic loss times I+ / n+ + I- / n-, and the Newton step is equation 15. Here the loss is
    multiplied by n / 2: the mean weight of a row is then 1, as without balancing, and the Newton
    step stays the same. Where rows have weights, n+ and n- are the sums of the weights in the
    classes. The constant score of least loss is 0.
    """

    def __init__(
        self,
        signs: np.ndarray,
        query_ptr: np.ndarray,
        sigma: float = 1.0,
        weight: np.ndarray | None = None,
    ) -> None:
        positive, negative = class_totals(signs, weight)
        half = (positive + negative) / 2.0
        balance = np.where(signs > 0, half / positive, half / negative)
        super().__init__(signs, query_ptr, sigma, balance if weight is None else balance * weight)
        self.start = 0.0


def class_totals(signs: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Return the total weight of the rows of sign 1 and of those of sign -1."""
    if weight is None:
        positive = float(np.count_nonzero(signs > 0))
        negative = signs.size - positive
    else:
        positive, negative = _sum(weight[signs > 0]), _sum(weight[signs <= 0])
    if not (positive and negative):
        raise DataError(
            "There is nothing to learn from: all rows (with a weight above 0) are of one class, "
            f"{'relevant' if positive else 'not relevant'}. Labels of at least 'relevant' are "
            "relevant: choose it above the lowest label, and no higher than the highest."
        )
    return positive, negative


def _sum(values: np.ndarray) -> float:
    """Return the sum rounded once: the order of the rows does not matter."""
    return math.fsum(values.tolist())
