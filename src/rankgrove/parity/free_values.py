"""The last hypothesis about values: that one feature has others than those logged.

A feature decides nothing but on which side of the thresholds a document is, so a few values stand
for all: one between every two neighbouring thresholds, and the missing value. Where for nearly all
documents one of them gives exactly the logged score, the feature is found, though not what was done
to it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankgrove.parity.case import Case, Hypothesis, sample_of

RANK = 5000
_ROWS = 30  # documents on which features are tried
_MOST_WORK = 1e9  # documents times trees that are scored in the search
_MOST_VALUES = 1 << 24  # values that are scored at once
_SHARE = 0.9  # of the documents for which a value must be found
_LEAST = 5  # documents that differ


def free_values(case: Case, rows: np.ndarray) -> Iterator[Hypothesis]:
    """Yield the feature whose value explains nearly all rows, if there is one."""
    trees = case.production.ensemble
    if trees is None or case.production.whole or rows.size < _LEAST:
        return
    few = sample_of(rows, _ROWS)
    left = _MOST_WORK / max(1, trees.n_trees)
    best: tuple[int, int] | None = None
    sets = set(trees.categorical_features().tolist())
    for column in [int(j) for j in case.used if int(j) not in sets]:
        values = _values_between(trees.threshold[trees.feature == column])
        left -= values.size * few.size
        if left < 0:
            return
        n = int(case.agree(_nearest(case, column, values, few)[0], few, case.noise).sum())
        if best is None or n > best[0]:
            best = (n, column)
    if best is None or best[0] < _SHARE * few.size:
        return
    column = best[1]
    values = _values_between(trees.threshold[trees.feature == column])
    yield Hypothesis(
        "feature-changed",
        f"scores fit other values of {case.names[column]}{_example(case, column, values, few)}",
        lambda at: _nearest(case, column, values, at)[0],
        RANK,
        _LEAST,
        case.noise,
    )


def _values_between(threshold: np.ndarray) -> np.ndarray:
    """Return one value per interval of a feature, ascending, and NaN at the end."""
    ascending = np.unique(np.float64(threshold[np.isfinite(threshold)]))
    return np.concatenate([ascending, [np.inf, np.nan]])


def _nearest(
    case: Case, column: int, values: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for every row the score nearest to the logged one, and the number of its value."""
    block = max(1, _MOST_VALUES // (values.size * case.values.shape[1]))
    scores, numbers = np.empty(rows.size), np.empty(rows.size, np.int64)
    for start in range(0, rows.size, block):
        part = rows[start : start + block]
        x = np.repeat(case.values[part], values.size, axis=0)
        x[:, column] = np.tile(values, part.size)
        tried = case.quick(x).reshape(part.size, values.size)
        off = np.abs(tried - case.log.score[part][:, None])
        best = np.argmin(np.where(np.isnan(off), np.inf, off), axis=1)
        numbers[start : start + block] = best
        scores[start : start + block] = tried[np.arange(part.size), best]
    return scores, numbers


def _example(case: Case, column: int, values: np.ndarray, rows: np.ndarray) -> str:
    """Return in words what a document's value was and what it should have been."""
    scores, numbers = _nearest(case, column, values, rows)
    k = int(np.argmax(case.agree(scores, rows, case.noise)))
    row, number = int(rows[k]), int(numbers[k])
    logged = case.values[row, column]
    was = "missing" if np.isnan(logged) else f"{logged:.6g}"
    if number == values.size - 1:
        should = "a missing one"
    elif number == 0:
        should = f"one up to {values[0]:.6g}"
    elif number == values.size - 2:
        should = f"one above {values[number - 1]:.6g}" if number else "any number"
    else:
        should = f"one above {values[number - 1]:.6g} and up to {values[number]:.6g}"
    return (
        f": document {case.log.document[row]} of query {case.log.query[row]} was logged with "
        f"{was}, its score fits {should}"
    )
