"""What a click log says about the value of another ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from rankgrove.errors import DataError
from rankgrove.showing import html_table
from rankgrove.validation import counted


@dataclass(frozen=True)
class LogEstimate:
    """The result of :func:`estimate_from_log`; prints as a table.

    Attributes
    ----------
    value : the estimate for the new ranking, per session; ``low`` and ``high`` are its interval
    logged : the same for the lists that were shown
    difference : `value` minus `logged`, with the interval ``difference_low``, ``difference_high``
    overlap : the share of the new ranking's weight on documents that the log, or the model, knows;
        where it is below 1, the rest counts as 0, or as the others if self-normalised
    effective_size : the number of impressions that would tell as much if all had one weight
    n_impressions : the number of impressions of the sessions used
    largest_weight : of a click, before clipping; ``clipped`` is the share of the weight cut off
    n_sessions, n_queries : those used
    without_ranking : the queries that the new ranking lacks; their sessions are left out
    method, reward, k, by, level : as given
    session_values, session_logged : what every session contributes; their means are `value` and
        `logged`
    """

    value: float
    low: float
    high: float
    logged: float
    logged_low: float
    logged_high: float
    difference: float
    difference_low: float
    difference_high: float
    overlap: float
    effective_size: float
    n_impressions: int
    largest_weight: float
    clipped: float
    n_sessions: int
    n_queries: int
    without_ranking: int
    method: str
    reward: str
    k: int
    by: str
    level: float
    session_values: np.ndarray = field(repr=False, compare=False)
    session_logged: np.ndarray = field(repr=False, compare=False)
    session_clusters: np.ndarray = field(repr=False, compare=False)

    def minus(self, other: LogEstimate) -> tuple[float, float, float]:
        """Return the difference to another ranking's estimate from the same log, and its interval.

        Sessions are paired, so the interval is shorter than the two estimates' own suggest.
        """
        if not np.array_equal(self.session_clusters, other.session_clusters):
            raise DataError(
                "Estimates can be compared if they are from the same sessions, by the same `by`."
            )
        return mean_interval(
            self.session_values - other.session_values, self.session_clusters, self.level
        )

    def __repr__(self) -> str:
        return str(self)

    def _rows(self) -> list[list[str]]:
        def interval(low: float, high: float, sign: str = "") -> str:
            return "-" if math.isnan(low) else f"{low:{sign}.4f} to {high:{sign}.4f}"

        return [
            ["shown", f"{self.logged:.4f}", interval(self.logged_low, self.logged_high)],
            ["new ranking", f"{self.value:.4f}", interval(self.low, self.high)],
            [
                "difference",
                f"{self.difference:+.4f}",
                interval(self.difference_low, self.difference_high, "+"),
            ],
        ]

    def _notes(self) -> list[str]:
        notes = [
            f"{counted(self.n_sessions, 'session')} of "
            f"{counted(self.n_queries, 'query', 'queries')}; {self.method}; intervals by {self.by}",
            f"overlap {100 * self.overlap:.1f} %; {counted(self.n_impressions, 'impression')}"
            + self._weights(),
        ]
        if self.clipped:
            notes.append(f"{100 * self.clipped:.1f} % of the weight was clipped")
        if self.without_ranking:
            queries = counted(self.without_ranking, "query", "queries")
            notes.append(f"left out: {queries} without a ranking")
        return notes

    def _weights(self) -> str:
        """Return a text about the weights of clicks, which the model does without."""
        if self.method == "model":
            return ""
        return (
            f", worth {self.effective_size:,.0f} of equal weight; largest weight "
            f"{self.largest_weight:.3g}"
        )

    def __str__(self) -> str:
        header = ["", f"{self.reward}@{self.k}", f"{100 * self.level:g} % interval"]
        table = [header, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            f"{name:<{widths[0]}}  {value:>{widths[1]}}  {interval:>{widths[2]}}"
            for name, value, interval in table
        ]
        return "\n".join([*lines, *self._notes()])

    def _repr_html_(self) -> str:
        header = ["", f"{self.reward}@{self.k}", f"{100 * self.level:g} % interval"]
        return html_table("Estimate from a log", header, self._rows(), "\n".join(self._notes()))


def mean_interval(
    values: np.ndarray, clusters: np.ndarray, level: float
) -> tuple[float, float, float]:
    """Return the mean of values with its interval; clusters are independent, values not.

    Few values far above the mean make Student's t skew. With the skewness g of sums of clusters,
    and a = g / sqrt(n), t + a t^2 / 3 + a^2 t^3 / 27 + a / 6 is nearly symmetric (Hall, 1992). It
    always rises with t, so quantiles can be taken back.
    """
    from scipy.special import stdtrit

    mean = math.fsum(values.tolist()) / values.size
    sums = np.bincount(clusters, values - mean)[np.unique(clusters)]
    n = sums.size
    if n < 2:
        return mean, math.nan, math.nan
    square = float((sums**2).sum())
    error = math.sqrt(square * n / (n - 1)) / values.size
    a = float((sums**3).sum()) / square**1.5 if square > 0.0 else 0.0
    t = float(stdtrit(n - 1, (1.0 + level) / 2.0))
    return mean, mean - error * _skewed(t, a), mean - error * _skewed(-t, a)


def _skewed(t: float, a: float) -> float:
    """Return x with x + a x^2 / 3 + a^2 x^3 / 27 + a / 6 = t."""
    if abs(a) < 1e-6:
        return t
    return 3.0 / a * (math.cbrt(1.0 + a * (t - a / 6.0)) - 1.0)
