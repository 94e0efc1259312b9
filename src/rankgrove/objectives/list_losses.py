"""Losses of whole queries, as MART follows them: XE-NDCG and the squared error within queries.

Both depend on differences of scores within a query only: a query's scores can be shifted.
"""

from __future__ import annotations

import numpy as np

from rankgrove.errors import DataError
from rankgrove.objectives.over_queries import WeightedObjective
from rankgrove.random import derive_seed

# Of the softmax loss: 2^800, times a weight of 1e30, times the rows of a query, is a number.
HIGHEST_LABEL = 800


class SoftmaxCrossEntropy(WeightedObjective):
    """XE-NDCG (Bruch 2021): the cross entropy of a query's labels and the softmax of its scores.

    The loss of a query is -sum phi_i log rho_i, where rho is the softmax of the scores, and phi_i
    is proportional to 2^label - gamma_i. The gamma_i are uniform in [0, 1) and redrawn every round;
    they make the loss a bound on NDCG. The gradient is phi - rho, the second derivative
    rho (1 - rho).

    Parameters
    ----------
    labels : one per row, in query order
    query_ptr : the borders of queries
    row_keys : one number per row, from which gamma is drawn
    seed : seed of the draws
    weight : one per row, a factor of 2^label - gamma; None: all 1
    query_weight : one per query, a factor of its loss; None: all 1
    """

    start = 0.0
    varies_by_round = True

    def __init__(
        self,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        *,
        row_keys: np.ndarray,
        seed: int = 0,
        weight: np.ndarray | None = None,
        query_weight: np.ndarray | None = None,
    ) -> None:
        check_differences(labels, query_ptr)
        check_powers(labels)
        super().__init__(query_ptr, weight)
        self.powers = np.exp2(np.asarray(labels, np.float64))
        self.keys = np.ascontiguousarray(row_keys, np.uint64)
        self.seed = seed
        self.query_weight = (
            np.empty(0) if query_weight is None else np.array(query_weight, np.float64)
        )

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        from rankgrove.objectives._list_loss_kernels import cross_entropy_queries

        cross_entropy_queries(
            queries,
            self.query_ptr,
            self.powers,
            self.keys,
            np.uint64(derive_seed(self.seed, "softmax", round)),
            self.weight,
            self.query_weight,
            scores,
            gradient,
            hessian,
        )


class QuerySquaredError(WeightedObjective):
    """Half the squared error of the scores after each query's mean error has been taken out.

    CatBoost calls it QueryRMSE. The gradient of a row is its residual minus the mean residual of
    its query, the second derivative is 1; both times the row's weight.

    Parameters
    ----------
    labels : one per row, in query order
    query_ptr : the borders of queries
    weight : one per row; None: all 1
    """

    start = 0.0

    def __init__(
        self, labels: np.ndarray, query_ptr: np.ndarray, weight: np.ndarray | None = None
    ) -> None:
        check_differences(labels, query_ptr)
        super().__init__(query_ptr, weight)
        self.labels = np.array(labels, np.float64)

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        from rankgrove.objectives._list_loss_kernels import centred_queries

        centred_queries(
            queries, self.query_ptr, self.labels, self.weight, scores, gradient, hessian
        )


def check_powers(labels: np.ndarray) -> None:
    """Refuse labels whose powers of 2, weighted and summed over a query, could overflow or be 0."""
    furthest = float(labels[np.argmax(np.abs(labels))])
    if abs(furthest) > HIGHEST_LABEL:
        raise DataError(
            "The softmax loss takes 2 to the power of a label, so that labels must be at least "
            f"-{HIGHEST_LABEL} and at most {HIGHEST_LABEL}. Got {furthest:g}: give documents "
            "grades, such as 0 to 4, or train with another loss, such as 'query_squared'."
        )


def check_differences(labels: np.ndarray, query_ptr: np.ndarray) -> None:
    """Refuse labels that are equal within every query."""
    starts = query_ptr[:-1]
    if np.all(np.maximum.reduceat(labels, starts) == np.minimum.reduceat(labels, starts)):
        raise DataError(
            "No query has documents of different labels: there is nothing to learn an order from. "
            "Check labels and query ids."
        )
