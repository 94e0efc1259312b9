"""Reliability: do predicted values agree, on average, with what was observed?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankgrove.errors import DataError
from rankgrove.showing import html_table
from rankgrove.validation import check_integer

_Z95 = 1.959963984540054  # two-sided 95 % quantile of the normal distribution


@dataclass(frozen=True)
class Reliability:
    """Mean prediction and mean observation in bins of equally many rows.

    Attributes
    ----------
    what : what is predicted, such as ``"expected grade"``
    count : number of rows per bin
    predicted, observed : means per bin
    error : standard error of `observed` per bin; rows of a query count as one observation
    scale : the range of the observed values, by which errors are divided
    """

    what: str
    count: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    error: np.ndarray
    scale: float

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean of |predicted - observed| over rows, by bin."""
        gap = np.abs(self.predicted - self.observed)
        return float(np.average(gap, weights=self.count) / self.scale)

    @property
    def low(self) -> np.ndarray:
        """Lower ends of the 95 % intervals of `observed`."""
        return self.observed - _Z95 * self.error

    @property
    def high(self) -> np.ndarray:
        """Upper ends of the 95 % intervals of `observed`."""
        return self.observed + _Z95 * self.error

    def _rows(self) -> list[tuple[str, ...]]:
        columns = zip(
            self.count.tolist(), self.predicted, self.observed, self.low, self.high, strict=True
        )
        return [(f"{n:,}", *(f"{v:.4f}" for v in values)) for n, *values in columns]

    def __str__(self) -> str:
        lines = [f"{self.what}: calibration error {self.ece:.4f} of the range"]
        lines.append(f"{'rows':>10} {'predicted':>10} {'observed':>10}   95 % interval")
        for n, predicted, observed, low, high in self._rows():
            lines.append(f"{n:>10} {predicted:>10} {observed:>10}   {low} to {high}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = f"{self.what}: calibration error {self.ece:.4f} of the range"
        header = ("rows", "predicted", "observed", "low", "high")
        return html_table(title, header, self._rows())


def reliability(
    what: str,
    predicted: np.ndarray,
    observed: np.ndarray,
    query_of_row: np.ndarray,
    weight: np.ndarray | None = None,
    bins: int = 15,
) -> Reliability:
    """Compare predictions with observations, in bins of the prediction.

    Equal predictions are in one bin, so that there may be fewer bins than asked for.

    Parameters
    ----------
    what : what is predicted, for tables and plots
    predicted, observed : one number per row
    query_of_row : the number of every row's query; standard errors are over queries
    weight : weights of the rows; None: all 1. Rows of weight 0 are left out
    bins : the greatest number of bins
    """
    check_integer("bins", "reliability", bins, low=1)
    weight = np.ones(predicted.size) if weight is None else weight
    some = weight > 0
    if not some.any():
        raise DataError("reliability needs at least one row whose weight is not 0.")
    predicted, observed, weight = predicted[some], observed[some], weight[some]
    query_of_row = np.unique(query_of_row[some], return_inverse=True)[1]
    bin_of_row = _equal_bins(predicted, bins)
    n = int(bin_of_row.max()) + 1
    total = np.bincount(bin_of_row, weight, minlength=n)
    means = [
        np.bincount(bin_of_row, weight * v, minlength=n) / total for v in (predicted, observed)
    ]
    # A ratio of sums over queries: its variance is that of the sums of weighted residuals.
    residual = weight * (observed - means[1][bin_of_row])
    cell, at = np.unique(query_of_row * n + bin_of_row, return_inverse=True)
    by_query = np.bincount(at, residual)
    in_bin = cell % n
    squares = np.bincount(in_bin, by_query**2, minlength=n)
    queries = np.bincount(in_bin, minlength=n)
    correction = queries / np.maximum(queries - 1, 1)
    spread = float(observed.max() - observed.min())
    return Reliability(
        what,
        np.bincount(bin_of_row, minlength=n),
        means[0],
        means[1],
        np.sqrt(correction * squares) / total,
        spread or 1.0,
    )


def _equal_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """Return the bin of every value: bins of about equally many rows, ordered by value."""
    ordered = np.sort(values)
    edges = np.unique(ordered[(np.arange(1, bins) * values.size) // bins])
    bin_of_value = np.searchsorted(edges, values, side="right")
    return np.unique(bin_of_value, return_inverse=True)[1].astype(np.int64)
