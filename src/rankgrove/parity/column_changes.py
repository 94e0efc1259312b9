"""What may have been done to a feature between the log and the model: units, logarithms, scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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


def _filled(title: str, number: Callable[[np.ndarray], float]) -> ColumnChange:
    """Return a change of missing values alone: to a number that is computed from the others."""

    def apply(case: Case, column: int, rows: np.ndarray) -> np.ndarray:
        key = (column, title)
        if key not in case.statistics:
            values = case.values[:, column]
            present = values[~np.isnan(values)]
            found = np.array([number(present) if present.size else 0.0])
            case.statistics[key] = (found, found)
        values = case.values[rows, column]
        return np.where(np.isnan(values), case.statistics[key][0], values)

    return ColumnChange(title, apply)


def _divided(by: float, values: np.ndarray) -> np.ndarray:
    return values / by


_UNITS = (10, 100, 1000, 60, 3600, 86_400, 1024, 1_000_000)  # of money, time and size
CHANGES = (
    _plain("as log1p", lambda x: np.sign(x) * np.log1p(np.abs(x))),
    _plain("as natural logarithm", np.log),
    _plain("as decimal logarithm", np.log10),
    _plain("as square root", np.sqrt),
    *(_plain(f"times {n:,}", partial(np.multiply, float(n))) for n in _UNITS),
    *(_plain(f"divided by {n:,}", partial(_divided, float(n))) for n in _UNITS),
    _plain("with the opposite sign", np.negative),
    _plain("squared", np.square),
    _plain("without its log1p (as expm1)", np.expm1),
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
FILLS = (
    _filled("0", lambda present: 0.0),
    _filled("-1", lambda present: -1.0),
    _filled("1", lambda present: 1.0),
    _filled("the mean of its values", np.mean),
    _filled("the median of its values", np.median),
    _filled("its lowest value", np.min),
    _filled("its highest value", np.max),
    _filled("a number above all thresholds", lambda present: np.inf),
    _filled("a number below all thresholds", lambda present: -np.inf),
)
