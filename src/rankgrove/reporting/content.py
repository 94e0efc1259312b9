"""Everything a report shows, as plain values for the page's data block."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.compare import Comparison, compare
from rankgrove.evaluation.evaluate import Evaluation, evaluate
from rankgrove.measures.base import Measure
from rankgrove.reporting.changes import adaptation_data, alpha_curves, pruning_data
from rankgrove.reporting.dependence import Dependence, dependences
from rankgrove.reporting.distribution import label_groups, score_distribution
from rankgrove.reporting.importance import Importance, feature_importance
from rankgrove.reporting.learning import LearningCurve, learning_curves
from rankgrove.reporting.rankings import Ranking, brief_queries, ranking, shown_queries
from rankgrove.reporting.reasons import are_sums, reasons
from rankgrove.reporting.sizes import scoring_time, size_curve
from rankgrove.reporting.systems import System

SCALE = 10_000  # a query's values are kept as whole numbers of so many parts
MOST_POINTS = 250  # of a line
LEAST_POINTS = 40  # of one of many lines
N_FEATURES = 12  # of importance


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about, scored and measured.

    ``comparisons`` has one entry a measure, none where there is a single system.
    """

    systems: list[System]
    data: QueryDataset
    valid: dict[str, QueryDataset]
    measures: list[str]
    specs: dict[str, str | Measure]
    convention: str
    evaluations: list[Evaluation]
    comparisons: dict[str, Comparison]
    n_threads: int | None


def measured(
    systems: list[System],
    data: QueryDataset,
    valid: dict[str, QueryDataset],
    measures: Sequence[str | Measure],
    convention: str,
    n_threads: int | None,
) -> Subject:
    """Measure and compare systems."""
    specs = {str(one): one for one in measures}
    evaluations = [
        evaluate(one.scores, data, measures, convention, n_threads=n_threads) for one in systems
    ]
    comparisons = {}
    if len(systems) > 1:
        scores = {one.name: one.scores for one in systems}
        for name, spec in specs.items():
            comparisons[name] = compare(scores, data, spec, convention, n_threads=n_threads)
    return Subject(
        systems, data, valid, list(specs), specs, convention, evaluations, comparisons, n_threads
    )


def content(subject: Subject, queries: Sequence[int], n_documents: int) -> dict[str, Any]:
    """Return what the page's scripts draw."""
    systems, data = subject.systems, subject.data
    leading = subject.specs[subject.measures[0]]
    ranked = [one for one in systems if one.model is not None]
    looked_at = {"this data": data, **subject.valid}
    importances = [
        None
        if one.model is None
        else feature_importance(one.name, one.model, data, leading, n_threads=subject.n_threads)
        for one in systems
    ]
    curves = [curve for one in ranked for curve in learning_curves(one.name, one.model)]
    sizes = [
        size_curve(one.name, one.model, looked_at, leading, subject.convention, subject.n_threads)
        for one in ranked
    ]
    return {
        "models": [one.name for one in systems],
        "measures": subject.measures,
        "labels": list(label_groups(data.y)[0]),
        "queries": _per_query(subject),
        "rankings": _rankings(subject, importances, queries, n_documents),
        "learning": [_learning(curve, curves) for curve in curves],
        "importance": [_importance(one) for one in importances if one is not None and one.top(1)],
        "dependence": [
            _dependence(one) for one in dependences(systems, data, importances, subject.n_threads)
        ],
        "scores": [_distribution(one, data) for one in systems],
        "micros": {one.name: rounded(scoring_time(one.model, data)) for one in ranked},
        "sizes": [
            {
                "model": one.model,
                "unit": one.unit,
                "sizes": one.sizes.tolist(),
                "values": {name: rounded(values) for name, values in one.values.items()},
                "micros": rounded(one.micros),
            }
            for one in sizes
            if one is not None
        ],
        "alpha": alpha_curves(ranked, looked_at, leading, subject.convention, subject.n_threads),
        "adaptation": [adaptation_data(one.name, one.model.report_) for one in _adapted(ranked)],
        "pruning": [made for one in ranked if (made := pruning_data(one)) is not None],
    }


def _adapted(systems: Iterable[System]) -> list[System]:
    from rankgrove.adapt.report import AdaptationReport

    return [s for s in systems if isinstance(getattr(s.model, "report_", None), AdaptationReport)]


def _per_query(subject: Subject) -> dict[str, Any]:
    """Return every query's id, size and values; a value is a whole number of 1/SCALE, or null."""
    data = subject.data
    return {
        "ids": [str(qid) for qid in data.query_ids.tolist()],
        "sizes": np.diff(data.query_ptr).tolist(),
        "scale": SCALE,
        "values": [
            [_whole(one.per_query[measure]) for one in subject.evaluations]
            for measure in subject.measures
        ],
    }


def _whole(values: np.ndarray) -> list[int | None]:
    return [None if math.isnan(v) else round(v * SCALE) for v in values.tolist()]


def _rankings(
    subject: Subject,
    importances: Sequence[Importance | None],
    queries: Sequence[int],
    n_documents: int,
) -> dict[str, Any]:
    """Return the documents of the queries that are shown with them, by the query's place."""
    data, systems = subject.data, subject.systems
    values = [one.per_query[subject.measures[0]] for one in subject.evaluations]
    shown = shown_queries(values, np.diff(data.query_ptr), n_documents, queries)
    groups = label_groups(data.y)[1]
    docids = data.docid
    made: dict[str, Any] = {}
    place: dict[int, int] = {}  # of a feature's column in the list of names

    def plain(one: Ranking) -> dict[str, Any]:
        rows = one.rows
        return {
            "total": one.n_documents,
            "docs": [str(d) for d in docids[rows].tolist()]
            if docids is not None
            else (rows + 1).tolist(),
            "labels": [f"{v:g}" for v in data.y[rows].tolist()],
            "groups": groups[rows].tolist(),
            "ranks": one.ranks.tolist(),
            "scores": rounded(one.scores, 5),
        }

    for query, why in reasons(systems, data, shown, importances, subject.n_threads):
        one = ranking(query, data, systems)
        made[str(query)] = plain(one) | {
            "why": {
                "features": [j if j < 0 else place.setdefault(j, len(place)) for j in why.features],
                "of": [_thousandths(parts, one.places) for parts in why.of],
            },
        }
    brief, most = brief_queries(values, np.diff(data.query_ptr), n_documents, shown)
    for query in brief:
        made[str(query)] = plain(ranking(query, data, systems, most))
    return {
        "of": made,
        "features": [data.feature_names[j] for j in place],
        "exact": bool(shown) and are_sums(systems, data.select(shown[:1])),
        "row_numbers": docids is None,
    }


def _thousandths(parts: np.ndarray | None, places: np.ndarray) -> list[list[int]] | None:
    return None if parts is None else np.round(1000 * parts[places]).astype(np.int64).tolist()


def _learning(curve: LearningCurve, all_curves: Sequence[LearningCurve]) -> dict[str, Any]:
    """Return a curve's points; `same` names the model whose own curve a combination's is."""
    n_lines = 1 if curve.of is None else len(curve.of)
    keep = thin(curve.x.size, max(LEAST_POINTS, MOST_POINTS // n_lines))
    same = None
    if curve.member is not None:
        own = (one for one in all_curves if one.member is None and curve.is_record_of(one))
        same = next((one.model for one in own), None)
    made = {
        "model": curve.model,
        "data": curve.data,
        "measure": curve.measure,
        "unit": curve.unit,
        "x": rounded(curve.x[keep], 6),
        "y": rounded(curve.y[keep], 6),
        "best": curve.best,
        "member": curve.member,
        "same": same,
    }
    if curve.of is not None:
        made["of"] = [rounded(row[np.isfinite(row)], 5) for row in curve.of[:, keep]]
        made["kept"] = _kept(curve)
    return made


def _kept(curve: LearningCurve) -> list[list[float]]:
    """Return the counts that a bag's models kept, and their values there."""
    assert curve.of is not None
    assert curve.kept is not None
    found = []
    for row, kept in zip(curve.of, curve.kept.tolist(), strict=True):
        at = np.flatnonzero(curve.x == kept)
        if at.size:
            found.append([kept, rounded(row[at[0]], 5)])
    return found


def _importance(one: Importance) -> dict[str, Any]:
    top = one.top(N_FEATURES)
    return {
        "model": one.model,
        "kind": one.kind,
        "label": one.label,
        "features": [one.features[j] for j in top],
        "values": rounded(one.values[top], 5),
        "used": int((one.values > 0).sum()),
        "of": len(one.features),
    }


def _dependence(one: Dependence) -> dict[str, Any]:
    x = rounded(one.grid)
    return {
        "feature": one.feature,
        "tenths": rounded(one.tenths),
        "lines": [{"model": name, "x": x, "y": rounded(y)} for name, y in one.lines.items()],
    }


def _distribution(one: System, data: QueryDataset) -> dict[str, Any]:
    found = score_distribution(one.name, one.scores, data.y)
    return {
        "model": one.name,
        "labels": list(found.labels),
        "counts": found.counts.tolist(),
        "edges": rounded(found.edges, 5),
        "shares": rounded(found.shares),
    }


def thin(n: int, most: int = MOST_POINTS) -> np.ndarray:
    """Return the places of at most `most` of `n` points, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def rounded(values: Any, digits: int = 4) -> Any:
    """Return numbers as plain values with so many significant digits; null for what is none."""
    if isinstance(values, np.ndarray):
        return [rounded(v, digits) for v in values.tolist()]
    if isinstance(values, Mapping):
        return {key: rounded(v, digits) for key, v in values.items()}
    if isinstance(values, list | tuple):
        return [rounded(v, digits) for v in values]
    if values is None or not math.isfinite(values):
        return None
    short = float(f"{values:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short
