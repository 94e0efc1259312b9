"""Training data of linear learners: rows in query order, relevance, and scaled features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.data.scaling import mean_and_deviation, scale_by_query
from rankgrove.data.thresholds import indicators, place_thresholds, step_codes
from rankgrove.errors import DataError
from rankgrove.model.linear import BY_QUERY, Linear
from rankgrove.scoring.linear_scores import filled
from rankgrove.svm.design import Design, MatrixDesign, StepDesign
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix


@dataclass(frozen=True)
class LinearData:
    """Training data of a linear ranker.

    Attributes
    ----------
    features, rows : the matrix, and which of its rows to use, query by query
    query_ptr, labels : the borders of queries; one label per row
    row_weight, query_weight : as in the data set, or None
    scaling, shift, scale, thresholds, threshold_ptr : as in ``Linear``
    skipped : number of queries left out, by reason
    """

    features: Matrix
    rows: np.ndarray
    query_ptr: np.ndarray
    labels: np.ndarray
    row_weight: np.ndarray | None
    query_weight: np.ndarray | None
    scaling: str
    shift: np.ndarray
    scale: np.ndarray
    thresholds: np.ndarray
    threshold_ptr: np.ndarray
    skipped: dict[str, int]

    def design(self) -> Design:
        """Return the rows in the form that solvers use; no large array is copied."""
        if not self.threshold_ptr.size:
            factor = np.divide(1.0, self.scale, out=np.zeros(self.scale.size), where=self.scale > 0)
            return MatrixDesign(self.features, self.rows, factor)
        if isinstance(self.features, np.ndarray):
            codes = step_codes(self.features, self.rows, self.thresholds, self.threshold_ptr)
            return StepDesign(codes, self.threshold_ptr)
        return MatrixDesign(self.matrix())

    def matrix(self) -> Matrix:
        """Return the rows as one matrix, scaled, or as threshold features."""
        picked = self.features[self.rows]
        if self.threshold_ptr.size:
            return indicators(picked, self.thresholds, self.threshold_ptr)
        factor = np.divide(1.0, self.scale, out=np.zeros(self.scale.size), where=self.scale > 0)
        if isinstance(picked, np.ndarray):
            return np.asarray((picked - self.shift) * factor)
        return picked.multiply(factor).tocsr()

    def columns(self) -> Callable[[int], np.ndarray]:
        """Return a function that gives a scaled feature of all rows, in float64."""
        picked = self.features[self.rows]
        if not isinstance(picked, np.ndarray):
            picked = picked.tocsc()
        elif picked.shape[0] > 1:
            picked = np.asfortranarray(picked)

        def column(j: int) -> np.ndarray:
            if self.scale[j] == 0.0:
                return np.zeros(self.rows.size)
            if isinstance(picked, np.ndarray):
                return np.asarray((picked[:, j].astype(np.float64) - self.shift[j]) / self.scale[j])
            return np.asarray(picked[:, [j]].toarray()[:, 0] / np.float64(self.scale[j]))

        return column

    def is_constant(self) -> bool:
        """Whether every feature has the same value in all rows."""
        if isinstance(self.features, np.ndarray):
            first = self.features[self.rows[0]]
            return bool((self.features[self.rows] == first).all())
        return not np.any(mean_and_deviation(self.features, self.rows)[1])

    def linear(self, weights: np.ndarray, intercept: float = 0.0) -> Linear:
        """Return the model with the given weights."""
        return Linear(
            n_features=int(self.features.shape[1]),
            weights=weights,
            scaling=self.scaling,
            shift=self.shift,
            scale=self.scale,
            thresholds=self.thresholds,
            threshold_ptr=self.threshold_ptr,
            intercept=intercept,
        )


def linear_data(
    train: QueryDataset,
    *,
    relevant: float | None,
    scaling: str,
    thresholds: int | None,
    n_threads: int | None,
    owner: str,
    weights: bool = False,
    every: bool = False,
) -> LinearData:
    """Return the data of a linear learner, without queries whose documents are equally relevant.

    relevant : the lowest label that counts as relevant; None: labels are graded
    weights : whether the data may have weights of rows
    every : keep all queries; at least one must have documents of different relevance
    """
    if train.weight is not None and not weights:
        raise DataError(
            f"{owner}: weights of rows have no meaning for a loss of whole rankings. Give the data "
            "weights of queries (query_weight), or none."
        )
    kept, skipped = _kept_queries(train.grouped(train.y), train.query_ptr, relevant, owner)
    if every:
        kept, skipped = np.ones_like(kept), dict.fromkeys(skipped, 0)
    chosen = train if kept.all() else train.select(kept)
    if chosen.query_weight is not None and not chosen.query_weight.any():
        raise DataError(f"{owner}: every query that could be learned from has the weight 0.")
    features, rows = chosen.features, _row_numbers(chosen)
    n_features = int(features.shape[1])
    shift, scale = np.zeros(n_features), np.ones(n_features)
    if scaling in BY_QUERY:
        features = scale_by_query(features[rows], chosen.query_ptr, scaling, n_threads)
        rows = np.arange(features.shape[0])
    placed, ptr = np.empty(0, np.float32), np.empty(0, np.int64)
    if thresholds is not None:
        limits = (0.0, 1.0) if scaling in BY_QUERY else None
        placed, ptr = place_thresholds(features, thresholds, rows=rows, limits=limits)
        if not placed.size:
            raise DataError(f"{owner}: every feature has the same value in all rows.")
    else:
        if scaling == "standard":
            shift, scale = mean_and_deviation(features, rows)
            if not isinstance(features, np.ndarray):
                shift = np.zeros(n_features)  # zeros of a sparse matrix must stay 0
        if not np.isfinite(_extremes(features)).all():
            features, rows = filled(features, rows, shift), np.arange(rows.size)
    return LinearData(
        features=features,
        rows=rows,
        query_ptr=chosen.query_ptr,
        labels=chosen.grouped(chosen.y),
        row_weight=None if chosen.weight is None else chosen.grouped(chosen.weight),
        query_weight=chosen.query_weight,
        scaling=scaling,
        shift=shift,
        scale=scale,
        thresholds=placed,
        threshold_ptr=ptr,
        skipped=skipped,
    )


def _kept_queries(
    labels: np.ndarray, query_ptr: np.ndarray, relevant: float | None, owner: str
) -> tuple[np.ndarray, dict[str, int]]:
    """Return which queries have documents of different relevance, and how many do not."""
    if relevant is None:
        starts = query_ptr[:-1]
        equal = np.maximum.reduceat(labels, starts) == np.minimum.reduceat(labels, starts)
        if equal.all():
            raise DataError(
                f"{owner}: of {counted(equal.size, 'query', 'queries')} none has documents of "
                "different labels: there is nothing to learn an order from. Check the labels."
            )
        return ~equal, {"all labels equal": int(equal.sum())}
    good = labels >= relevant
    n_relevant = np.add.reduceat(good.astype(np.int64), query_ptr[:-1])
    none, all_ = n_relevant == 0, n_relevant == np.diff(query_ptr)
    skipped = {"nothing relevant": int(none.sum()), "nothing irrelevant": int(all_.sum())}
    kept = ~(none | all_)
    if not kept.any():
        raise DataError(
            f"{owner}: of {counted(kept.size, 'query', 'queries')} none has both relevant and "
            f"irrelevant documents; a document is relevant if its label is at least {relevant:g}. "
            "Check the labels, and the parameter 'relevant'."
        )
    return kept, skipped


def _row_numbers(data: QueryDataset) -> np.ndarray:
    """Return the rows of ``data.features`` in query order, as numbers."""
    rows = query_order_rows(data)
    numbers = np.arange(data.features.shape[0])
    return numbers if rows is None else numbers[rows]


def _extremes(features: Matrix) -> np.ndarray:
    """Return the lowest and the highest value; NaN where any value is missing."""
    values = features if isinstance(features, np.ndarray) else features.data
    return np.array([values.min(), values.max()]) if values.size else np.zeros(2)


def scaled_rows(
    data: QueryDataset, scaling: str, n_threads: int | None
) -> tuple[Matrix, np.ndarray]:
    """Return features, scaled by query where `scaling` says so, and their rows in query order."""
    rows = _row_numbers(data)
    if scaling not in BY_QUERY:
        return data.features, rows
    scaled = scale_by_query(data.features[rows], data.query_ptr, scaling, n_threads)
    return scaled, np.arange(rows.size)
