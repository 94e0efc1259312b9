"""Objectives on clicks whose positions count: scores with a bias, and lambdas with weights."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.objectives.over_queries import WeightedObjective, over_queries
from rankgrove.objectives.position_bias import (
    AdditiveBias,
    AffineBias,
    PositionBias,
    Propensities,
    RatioBias,
)
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from rankgrove.objectives._position_kernels import ClickLambdas

PairBias = RatioBias | Propensities | AffineBias


class AdditiveObjective:
    """Another objective at scores to which the bias of the rows' cells has been added.

    Parameters
    ----------
    objective : the objective
    bias : moves after every round, by the gradients and second derivatives of the cells' rows
    cell : one per row, in query order

    Attributes
    ----------
    start : the constant score of least loss of the other objective
    sums : exact sums of the newest gradients over cells
    """

    n_columns = 1
    varies_by_round = True

    def __init__(
        self, objective: LambdaObjective | WeightedObjective, bias: AdditiveBias, cell: np.ndarray
    ) -> None:
        self.objective = objective
        self.bias = bias
        self.cell = cell
        self.query_ptr = objective.query_ptr
        self.start: float = getattr(objective, "start", 0.0)
        self.sums = no_sums(bias)
        self._biased = np.zeros(cell.size)

    @property
    def has_pairs(self) -> np.ndarray:
        """Whether queries have something to learn from."""
        there: np.ndarray = getattr(self.objective, "has_pairs", np.ones(1, np.bool_))
        return there

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill `gradient` and `hessian`, and sum them by cell."""
        from rankgrove.objectives._position_kernels import sum_cells

        np.take(self.bias.state, self.cell, out=self._biased)
        self._biased += scores
        self.objective.gradients(self._biased, gradient, hessian, queries, n_threads, round)
        self.sums = no_sums(self.bias)
        lock = threading.Lock()

        def work(piece: np.ndarray) -> None:
            sums = np.zeros_like(self.sums)
            sum_cells(piece, self.query_ptr, self.cell, gradient, hessian, sums)
            with lock:
                self.sums += sums

        over_queries(work, self.query_ptr, queries, n_threads)


class ClickLambdaObjective(LambdaObjective):
    """Lambdas of a measure on clicks, with weights of both documents of a pair by their cells.

    Parameters
    ----------
    measure : a measure whose swap deltas are differences of gains times differences of weights
    clicks : 0 or 1 per row, in query order
    query_ptr : the borders of queries
    bias : the weights
    cell : one per row, in query order
    others : further parameters of a LambdaObjective

    Attributes
    ----------
    sums : exact sums of the newest losses over cells, if the bias moves
    """

    def __init__(
        self,
        measure: Measure,
        clicks: np.ndarray,
        query_ptr: np.ndarray,
        *,
        bias: PairBias,
        cell: np.ndarray,
        **others: Any,
    ) -> None:
        from rankgrove.objectives._lambda_kernels import LINEAR

        self.linear = isinstance(bias, AffineBias)
        # the weights of ranks must not depend on clicks: those of lists with one click
        known = _first_rows(query_ptr) if self.linear else clicks
        super().__init__(measure, known, query_ptr, **others)
        if self.rule not in LINEAR or measure.own_swaps:
            refuse(
                "position_bias",
                "a ranker of lambdas",
                f"'additive' or None for {measure}: {bias.method!r} weighs single clicks, and "
                "needs a measure that adds up documents, such as ndcg, dcg, p or pairs",
                bias.method,
            )
        self.bias = bias
        self.cell = cell
        self.clicked = (clicks > 0).astype(np.uint8)
        self.varies_by_round = self.varies_by_round or bias.moves
        self.sums = no_sums(bias)

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
        from rankgrove.objectives._position_kernels import click_lambda_queries

        clicks = self.clicks_for_kernels()
        seed = self.seed_of(round)
        self.sums = no_sums(self.bias)
        lock = threading.Lock()

        def work(piece: np.ndarray) -> None:
            own = clicks._replace(sums=np.zeros_like(self.sums))
            click_lambda_queries(own, seed, piece, scores, gradient, hessian)
            with lock:
                self.sums += own.sums

        over_queries(work, self.query_ptr, queries, n_threads)

    def clicks_for_kernels(self) -> ClickLambdas:
        """Return the objective as kernels take it."""
        from rankgrove.objectives._position_kernels import ClickLambdas

        lambdas = self.for_kernels()
        return ClickLambdas(
            lambdas,
            self.clicked,
            self.cell,
            self.bias.table(),
            self.linear,
            self.bias.moves,
            no_sums(self.bias),
            lambdas.query_ptr,
            self.has_pairs,
        )


class SoftLogistic(WeightedObjective):
    """The logistic loss of labels that are any numbers, such as clicks over propensities.

    The gradient is that of Logistic with the label in the place of the class; it is linear in the
    label.

    Parameters
    ----------
    labels : one per row, in query order
    query_ptr : the borders of queries
    sigma : slope of the sigmoid
    weight : one per row; None: all 1
    """

    start = 0.0

    def __init__(
        self,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        sigma: float = 1.0,
        weight: np.ndarray | None = None,
    ) -> None:
        super().__init__(query_ptr, weight)
        self.labels = np.array(labels, np.float64)
        self.sigma = float(sigma)

    def _fill(
        self,
        queries: np.ndarray,
        round: int,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> None:
        from rankgrove.objectives._position_kernels import soft_logistic_queries

        soft_logistic_queries(
            queries,
            self.query_ptr,
            self.labels,
            self.sigma,
            self.weight,
            scores,
            gradient,
            hessian,
        )


def _first_rows(query_ptr: np.ndarray) -> np.ndarray:
    """Return labels that are 1 in the first row of every query, and 0 in all others."""
    labels = np.zeros(query_ptr[-1])
    labels[query_ptr[:-1]] = 1.0
    return labels


def no_sums(bias: PositionBias) -> np.ndarray:
    """Return exact sums over a bias's cells that are all 0; without cells if it does not move."""
    return np.zeros((2, bias.cells.size if bias.moves else 0, 3), np.int64)


def check_clicks(labels: np.ndarray, owner: str, method: str) -> None:
    """Refuse labels that are not clicks."""
    wrong = np.flatnonzero((labels != 0.0) & (labels != 1.0))
    if wrong.size:
        raise DataError(
            f"{owner}: position_bias={method!r} needs clicks as labels, 0 or 1. Got "
            f"{labels[wrong[0]]:g}: make labels clicks; LambdaMART(position_bias='additive') takes "
            "grades too."
        )
