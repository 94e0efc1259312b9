"""Transforming features value by value; normalising them within every query.

Missing values stay missing, and are left out of sums, means, ranges and ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove import parallel

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

# Functions of single values.
TRANSFORMS = ("log1p",)
# The first three are the values of RankLib's option -norm.
NORMALISATIONS = ("sum", "linear", "zscore", "percentile")


def transformed(features: Matrix, how: str) -> Matrix:
    """Return features of which every value is transformed, as float32; sparse ones stay sparse.

    Parameters
    ----------
    how : ``"log1p"``: x becomes sign(x) log(1 + abs(x)), so that counts of any size come close
        together and zeros stay zeros

    Examples
    --------
    >>> transformed(np.array([[0.0, 1.0, 1e6, -1e6]], np.float32), "log1p").round(3).tolist()
    [[0.0, 0.6930000185966492, 13.815999984741211, -13.815999984741211]]
    """
    if not isinstance(features, np.ndarray):
        changed = features.copy()
        changed.data = _signed_log1p(features.data)
        return changed
    return _signed_log1p(features)


def _signed_log1p(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.float64)
    return np.copysign(np.log1p(np.abs(values)), values).astype(np.float32)


@np.errstate(invalid="ignore")  # of infinite values
def normalised(features: np.ndarray, query_ptr: np.ndarray, how: str) -> np.ndarray:
    """Return features (dense, rows in query order) normalised within every query, as float32.

    Parameters
    ----------
    how : ``"sum"``: a value is divided by the sum of the query's absolute values, where that is
        above 0; ``"linear"``: (value - least) / (largest - least), 0 where all are equal;
        ``"zscore"``: (value - mean) / deviation, the deviation of a sample (n - 1); a feature
        that is the same in the whole query stays as it is; ``"percentile"``: the share of the
        query's values that are lower, equal values (the value itself too) counted half

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [5.0]], np.float32)
    >>> for how in NORMALISATIONS:
    ...     print(how, normalised(X, np.array([0, 2, 3]), how)[:, 0].round(3))
    sum [0.25 0.75 1.  ]
    linear [0. 1. 0.]
    zscore [-0.707  0.707  5.   ]
    percentile [0.25 0.75 0.5 ]
    """
    if how == "percentile":
        return _percentiles(np.ascontiguousarray(features, np.float32), query_ptr)
    values = features.astype(np.float64)
    starts, sizes = query_ptr[:-1], np.diff(query_ptr)
    known = ~np.isnan(values)

    def of_rows(of_queries: np.ndarray) -> np.ndarray:
        return np.repeat(of_queries, sizes, axis=0)

    def sums(terms: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.where(known, terms, 0.0), starts, axis=0)

    if how == "sum":
        total = of_rows(sums(np.abs(values)))
        scaled = np.divide(values, total, out=values.copy(), where=total > 0.0)
    elif how == "linear":
        low = of_rows(np.minimum.reduceat(np.where(known, values, np.inf), starts, axis=0))
        high = of_rows(np.maximum.reduceat(np.where(known, values, -np.inf), starts, axis=0))
        zero = np.where(known, 0.0, values)
        scaled = np.divide(values - low, high - low, out=zero, where=high > low)
    else:
        count = np.add.reduceat(known.astype(np.float64), starts, axis=0)
        away = values - of_rows(sums(values) / np.maximum(count, 1.0))
        deviation = of_rows(np.sqrt(sums(away * away) / np.maximum(count - 1.0, 1.0)))
        scaled = np.divide(away, deviation, out=values.copy(), where=deviation > 0.0)
    return scaled.astype(np.float32)


def _percentiles(features: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    from rankgrove.data._scaling_kernels import mid_rank_queries

    out = np.empty_like(features)
    bounds = parallel.piece_bounds(query_ptr, None)
    parallel.run_pieces(lambda a, b: mid_rank_queries(features, query_ptr, a, b, out), bounds, None)
    return out
