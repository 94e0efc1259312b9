"""What lifts documents within their query: contributions of features that models can share.

Scores of different models have different scales. Within a query every model's scores are brought
to mean 0 and deviation 1, and the contributions of its features with them: what features add up to
is then how many deviations a document stands above the query's mean, whatever the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import RankgroveError
from rankgrove.evaluation.evaluate import scores_of
from rankgrove.explaining.explain import explain
from rankgrove.reporting.importance import Importance, overall
from rankgrove.reporting.systems import System

ROWS_AT_ONCE = 5000
N_FEATURES = 8  # of a query: those that move its documents most
MOST_FEATURES = 24  # more of them, until those left out together are small:
SMALL_REST = 0.1  # of the range of the query's scores
N_OMITTED = 24  # features that are looked at where a model is no sum over features


@dataclass(frozen=True, eq=False)
class Reasons:
    """What features add to the documents of one query.

    Attributes
    ----------
    features : columns of the data, those that matter most in this query; -1: all others
    of : one array a system, of shape (documents, features), or None where it is not known
    """

    features: list[int]
    of: list[np.ndarray | None]


def reasons(
    systems: Sequence[System],
    data: QueryDataset,
    queries: Sequence[int],
    importances: Sequence[Importance | None],
    n_threads: int | None,
) -> Iterator[tuple[int, Reasons]]:
    """Return the reasons of every query, with its place; documents in the order of its rows.

    All systems are asked in the same way, so that they can be compared: where every one is a sum
    over features, by :func:`rankgrove.explain`; otherwise by how much a score falls when a feature
    takes its mean in the query, for the features that are most important to all.
    """
    exact = bool(queries) and are_sums(systems, data.select(list(queries[:1])))
    omitted = overall(importances, N_OMITTED)
    for part in _chunks(data, queries):
        chosen = data.select(part)
        found = [_parts(system.model, chosen, exact, omitted, n_threads) for system in systems]
        for k, query in enumerate(part):
            rows = _rows(chosen, k)
            scores = [system.scores[_rows(data, query)] for system in systems]
            yield query, _of_query([None if one is None else one[rows] for one in found], scores)


def are_sums(systems: Sequence[System], data: QueryDataset) -> bool:
    """Return whether all models among the systems are sums over features, as `explain` says."""
    try:
        # trees come last: what else there is refuses sooner
        for system in sorted(systems, key=lambda one: hasattr(one.model, "ensemble_")):
            if system.model is not None:
                explain(system.model, data)
    except RankgroveError:
        return False
    return True


def _rows(data: QueryDataset, query: int) -> np.ndarray:
    rows = np.arange(data.query_ptr[query], data.query_ptr[query + 1])
    return rows if data.order is None else data.order[rows]


def _chunks(data: QueryDataset, queries: Sequence[int]) -> Iterator[list[int]]:
    sizes = np.diff(data.query_ptr)
    part: list[int] = []
    for query in queries:
        if part and sizes[[*part, query]].sum() > ROWS_AT_ONCE:
            yield part
            part = []
        part.append(query)
    if part:
        yield part


def _of_query(found: Sequence[np.ndarray | None], scores: Sequence[np.ndarray]) -> Reasons:
    """Bring all models to one scale, and keep the features that move documents most."""
    scaled: list[np.ndarray | None] = []
    for parts, own in zip(found, scores, strict=True):
        spread = spread_of(own)
        if parts is None or not spread > 0.0:
            scaled.append(None)
        else:
            scaled.append((parts - parts.mean(axis=0)) / spread)
    known = [one for one in scaled if one is not None]
    if not known:
        return Reasons([], [None] * len(scaled))
    size = np.sum([(one**2).sum(axis=0) for one in known], axis=0)
    ranked = [int(j) for j in np.argsort(-size, kind="stable") if size[j] > 0.0]
    totals = [
        None if one is None else (own - own.mean()) / spread_of(own)
        for one, own in zip(scaled, scores, strict=True)
    ]
    pairs = [(p, t) for p, t in zip(scaled, totals, strict=True) if p is not None and t is not None]
    features = sorted(ranked[: _enough(ranked, pairs)])
    of: list[np.ndarray | None] = []
    for one, total in zip(scaled, totals, strict=True):
        if one is None or total is None:
            of.append(None)
            continue
        shown = one[:, features]
        of.append(np.column_stack([shown, total - shown.sum(axis=1)]))
    return Reasons([*features, -1], of)


def _enough(ranked: Sequence[int], pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> int:
    """Return how many of the ranked features to show: until what they leave out is small.

    `pairs` have every known model's parts and scores. At least ``N_FEATURES`` are shown, and at
    most ``MOST_FEATURES``.
    """
    rests = [total - parts[:, ranked[:N_FEATURES]].sum(axis=1) for parts, total in pairs]
    bounds = [SMALL_REST * np.ptp(total) for _, total in pairs]
    n = min(N_FEATURES, len(ranked))
    while n < min(MOST_FEATURES, len(ranked)):
        if all(np.abs(rest).max() <= most for rest, most in zip(rests, bounds, strict=True)):
            break
        rests = [rest - parts[:, ranked[n]] for rest, (parts, _) in zip(rests, pairs, strict=True)]
        n += 1
    return n


def spread_of(scores: np.ndarray) -> float:
    """Return the standard deviation of scores; 0 where they have none that is a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(np.std(scores))
    return spread if np.isfinite(spread) else 0.0


def _parts(
    model: Any, data: QueryDataset, exact: bool, omitted: Sequence[int], n_threads: int | None
) -> np.ndarray | None:
    """Return what every feature adds to every score, one row a document in the caller's order."""
    if model is None or not (exact or omitted):
        return None
    if exact:
        known = explain(model, data, n_threads=n_threads).contributions
        return np.pad(known, ((0, 0), (0, data.n_features - known.shape[1])))
    return _by_omission(model, data, omitted)


def _by_omission(model: Any, data: QueryDataset, features: Sequence[int]) -> np.ndarray:
    before = scores_of(model, data, "report")[1]
    matrix = np.empty((data.n_rows, data.n_features), np.float32)
    data.copy_features(matrix)
    sizes = np.bincount(data.query_of_row)
    names = data.feature_names if data.has_feature_names else None
    parts = np.zeros(matrix.shape)
    for j in features:
        values = np.nan_to_num(matrix[:, j])
        means = np.bincount(data.query_of_row, values) / sizes
        changed = matrix.copy()
        changed[:, j] = means[data.query_of_row]
        as_data = QueryDataset(
            changed,
            data.y,
            data.qid,
            feature_names=names,
            base_score=data.base_score,
            absent=data.absent_given,
        )
        parts[:, j] = before - scores_of(model, as_data, "report")[1]
    return parts
