"""What may have been done to a feature between the log and the model: units, logarithms, scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankgrove.parity.case import Case


@dataclass(frozen=True)
class ColumnChange:
    """A change of one column.

    Attributes
    ----------
    title : in words, after the name of the feature
    apply : the changed values of one column of some rows, from the case, the column and the rows
    lost : whether the values are lost altogether
    """

    title: str
    apply: Callable[[Case, int, np.ndarray], np.ndarray]
    lost: bool = False


def _plain(title: str, function: Callable[[np.ndarray], np.ndarray]) -> ColumnChange:
    def apply(case: Case, column: int, rows: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(case.values[rows, column])

    return ColumnChange(title, apply)


def _scaled(title: str, by_query: bool, how: str) -> ColumnChange:
    """Return a change by statistics of the column, within the query or over the whole log."""

    def apply(case: Case, column: int, rows: np.ndarray) -> np.ndarray:
        values = case.values[:, column]
        with np.errstate(all="ignore"):
            key = (column, title)
            if key not in case.statistics:
                case.statistics[key] = (_by_query if by_query else _overall)(case, values, how)
            centre, size = case.statistics[key]
            size = np.where(size > 0, size, 1.0)
            where = case.query_order[2][rows] if by_query else np.zeros(rows.size, np.int64)
            return (values[rows] - centre[where]) / size[where]

    return ColumnChange(title, apply)


def _overall(case: Case, values: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray]:
    present = values[~np.isnan(values)]
    if not present.size:
        return np.zeros(1), np.ones(1)
    if how == "min-max":
        return np.array([present.min()]), np.array([np.ptp(present)])
    if how == "sum":
        return np.zeros(1), np.array([np.abs(present).sum()])
    return np.array([present.mean()]), np.array([present.std()])


def _by_query(case: Case, values: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray]:
    order, starts, _ = case.query_order
    ordered = values[order]
    present = ~np.isnan(ordered)
    if how == "min-max":
        low = np.fmin.reduceat(ordered, starts)
        return low, np.fmax.reduceat(ordered, starts) - low
    filled = np.where(present, ordered, 0.0)
    if how == "sum":
        total = np.add.reduceat(np.abs(filled), starts)
        return np.zeros_like(total), total
    count = np.maximum(np.add.reduceat(present.astype(np.float64), starts), 1.0)
    mean = np.add.reduceat(filled, starts) / count
    sizes = np.diff(np.append(starts, ordered.size))
    apart = np.where(present, ordered - np.repeat(mean, sizes), 0.0)
    squares = np.add.reduceat(apart**2, starts)
    return mean, np.sqrt(squares / (np.maximum(count - 1.0, 1.0) if how == "z1" else count))


CHANGES = (
    _plain("as log1p", lambda x: np.sign(x) * np.log1p(np.abs(x))),
    _plain("as natural logarithm", np.log),
    _plain("as decimal logarithm", np.log10),
    _plain("as square root", np.sqrt),
    _plain("without its log1p (as expm1)", np.expm1),
    _plain("squared", np.square),
    _plain("with the opposite sign", np.negative),
    _plain("times 10", lambda x: x * 10.0),
    _plain("times 100", lambda x: x * 100.0),
    _plain("times 1,000", lambda x: x * 1000.0),
    _plain("divided by 10", lambda x: x / 10.0),
    _plain("divided by 100", lambda x: x / 100.0),
    _plain("divided by 1,000", lambda x: x / 1000.0),
    _plain("without its fraction", np.trunc),
    _plain("rounded to a whole number", np.rint),
    _plain("rounded to 1 decimal", lambda x: np.round(x, 1)),
    _plain("rounded to 2 decimals", lambda x: np.round(x, 2)),
    _plain("as 0 where it is negative", lambda x: np.maximum(x, 0.0)),
    _scaled("min-max scaled within the query", True, "min-max"),
    _scaled("z-scored within the query", True, "z"),
    _scaled("z-scored within the query (n - 1)", True, "z1"),
    _scaled("divided by the query's sum", True, "sum"),
    _scaled("min-max scaled over the log", False, "min-max"),
    _scaled("z-scored over the log", False, "z"),
)
LOST = (
    ColumnChange("missing", lambda case, column, rows: np.full(rows.size, np.nan), lost=True),
    ColumnChange("0", lambda case, column, rows: np.zeros(rows.size), lost=True),
)
