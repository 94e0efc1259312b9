"""Feature contributions to the scores of a query's documents, comparable between models.

Scores of different models have different scales. Within a query, every model's scores are
standardised to mean 0 and deviation 1, and its feature contributions with them. The contributions
of a document then sum to the number of deviations by which it is above the query's mean score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import RankgroveError
from rankgrove.evaluation.evaluate import scores_of
from rankgrove.explaining.explain import explain
from rankgrove.reporting.importance import Importance, overall
from rankgrove.reporting.rankings import query_rows
from rankgrove.reporting.systems import Model, System, with_features

ROWS_AT_ONCE = 5000
N_FEATURES = 8  # at least, per query: those with the largest contributions
MOST_FEATURES = 24  # at most: more than N_FEATURES until the sum of the others is small:
SMALL_REST = 0.1  # of the range of the query's scores
N_OMITTED = 24  # features examined if a model is not a sum over features


@dataclass(frozen=True, eq=False)
class Reasons:
    """Feature contributions to the scores of one query's documents.

    Attributes
    ----------
    features : columns of the data that matter most in this query; -1: all others together
    of : one array per system, of shape (documents, features), or None where not known
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
    """Yield every query's position and its reasons; documents are in the order of its rows.

    The same method is used for all systems, so that they can be compared: :func:`rankgrove.explain`
    if all of them are sums over features; otherwise how much a score falls when a feature is set
    to its mean in the query, for the features most important to all systems.
    """
    exact = bool(queries) and are_sums(systems, data.select(list(queries[:1])))
    omitted = overall(importances, N_OMITTED)
    for part in _chunks(data, queries):
        chosen = data.select(part)
        contributions = [
            _parts(system.model, chosen, exact, omitted, n_threads) for system in systems
        ]
        for k, query in enumerate(part):
            rows = query_rows(chosen, k)
            of_query = [None if parts is None else parts[rows] for parts in contributions]
            scores = [system.scores[query_rows(data, query)] for system in systems]
            yield query, _of_query(of_query, scores)


def are_sums(systems: Sequence[System], data: QueryDataset) -> bool:
    """Return whether `explain` can write all models of the systems as sums over features."""
    try:
        # trees last: other models are refused sooner
        for system in sorted(systems, key=lambda system: hasattr(system.model, "ensemble_")):
            if system.model is not None:
                explain(system.model, data)
    except RankgroveError:
        return False
    return True


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


def _of_query(contributions: Sequence[np.ndarray | None], scores: Sequence[np.ndarray]) -> Reasons:
    """Standardise the contributions of all models, and keep the largest features."""
    scaled: list[np.ndarray | None] = []
    for parts, model_scores in zip(contributions, scores, strict=True):
        spread = spread_of(model_scores)
        if parts is None or not spread > 0.0:
            scaled.append(None)
        else:
            scaled.append((parts - parts.mean(axis=0)) / spread)
    known = [parts for parts in scaled if parts is not None]
    if not known:
        return Reasons([], [None] * len(scaled))
    size = np.sum([(parts**2).sum(axis=0) for parts in known], axis=0)
    ranked = [int(j) for j in np.argsort(-size, kind="stable") if size[j] > 0.0]
    totals = [
        None if parts is None else (model_scores - model_scores.mean()) / spread_of(model_scores)
        for parts, model_scores in zip(scaled, scores, strict=True)
    ]
    pairs = [(p, t) for p, t in zip(scaled, totals, strict=True) if p is not None and t is not None]
    features = sorted(ranked[: _enough(ranked, pairs)])
    of: list[np.ndarray | None] = []
    for parts, total in zip(scaled, totals, strict=True):
        if parts is None or total is None:
            of.append(None)
            continue
        shown = parts[:, features]
        of.append(np.column_stack([shown, total - shown.sum(axis=1)]))
    return Reasons([*features, -1], of)


def _enough(ranked: Sequence[int], pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> int:
    """Return how many of the ranked features to show: until the sum of the others is small.

    `pairs` are the contributions and scores of every known model. The number is between
    ``N_FEATURES`` and ``MOST_FEATURES``.
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
    """Return the standard deviation of scores; 0 if it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(np.std(scores))
    return spread if np.isfinite(spread) else 0.0


def _parts(
    model: Model | None,
    data: QueryDataset,
    exact: bool,
    omitted: Sequence[int],
    n_threads: int | None,
) -> np.ndarray | None:
    """Return the feature contributions, one row per document in the caller's order."""
    if model is None or not (exact or omitted):
        return None
    if exact:
        known = explain(model, data, n_threads=n_threads).contributions
        return np.pad(known, ((0, 0), (0, data.n_features - known.shape[1])))
    return _by_omission(model, data, omitted)


def _by_omission(model: Model, data: QueryDataset, features: Sequence[int]) -> np.ndarray:
    before = scores_of(model, data, "report")[1]
    matrix = np.empty((data.n_rows, data.n_features), np.float32)
    data.copy_features(matrix)
    sizes = np.bincount(data.query_of_row)

    parts = np.zeros(matrix.shape)
    for j in features:
        values = np.nan_to_num(matrix[:, j])
        means = np.bincount(data.query_of_row, values) / sizes
        changed = matrix.copy()
        changed[:, j] = means[data.query_of_row]
        parts[:, j] = before - scores_of(model, with_features(data, changed), "report")[1]
    return parts
