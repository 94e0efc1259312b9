"""Normalising features within every query, by RankLib's three rules.

Missing values stay missing, and are left out of sums, means and ranges.
"""

from __future__ import annotations

import numpy as np

# The values of RankLib's option -norm.
NORMALISATIONS = ("sum", "linear", "zscore")


def normalised(features: np.ndarray, query_ptr: np.ndarray, how: str) -> np.ndarray:
    """Return features (dense, rows in query order) normalised within every query, as float32.

    Parameters
    ----------
    how : ``"sum"``: a value is divided by the sum of the query's absolute values, where that is
        above 0; ``"linear"``: (value - least) / (largest - least), 0 where all are equal;
        ``"zscore"``: (value - mean) / deviation, the deviation of a sample (n - 1); a feature
        that is the same in the whole query stays as it is

    Examples
    --------
    >>> X = np.array([[1.0], [3.0], [5.0]], np.float32)
    >>> for how in NORMALISATIONS:
    ...     print(how, normalised(X, np.array([0, 2, 3]), how)[:, 0].round(3))
    sum [0.25 0.75 1.  ]
    linear [0. 1. 0.]
    zscore [-0.707  0.707  5.   ]
    """
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
