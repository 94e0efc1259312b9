"""Everything that a report shows, as plain values for the page's JSON data block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, overload

import numpy as np

from rankgrove.adapt.adaptation_report import AdaptationReport
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.compare import Comparison, compare
from rankgrove.evaluation.evaluate import Evaluation, evaluate
from rankgrove.measures.base import Measure
from rankgrove.reporting.changes import (
    AdaptationData,
    AlphaCurves,
    adaptation_data,
    alpha_curves,
)
from rankgrove.reporting.click_logs import (
    ClickFigures,
    ExaminationCurve,
    examination_curves,
    learned_curves,
)
from rankgrove.reporting.dependence import Dependence, dependences
from rankgrove.reporting.distribution import label_groups, score_distribution
from rankgrove.reporting.importance import Importance, feature_importance
from rankgrove.reporting.learning import LearningCurve, learning_curves
from rankgrove.reporting.rankings import Ranking, brief_queries, ranking, shown_queries
from rankgrove.reporting.reasons import are_sums, reasons
from rankgrove.reporting.sizes import scoring_time, size_curve
from rankgrove.reporting.systems import System

SCALE = 10_000  # the values of queries are stored as whole multiples of 1 / SCALE
MOST_POINTS = 250  # per line
LEAST_POINTS = 40  # per line, where a chart has many lines
N_FEATURES = 12  # in the importance charts
MOST_POSITIONS = 100  # in the charts of clicks


@dataclass(frozen=True, eq=False)
class Subject:
    """The subject of a report: systems with their scores and measures.

    ``comparisons`` has one entry per measure, and none for a single system.
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
    clicks: ClickFigures | None = None


Json = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | None
JsonObject = dict[str, Json]


class Content(TypedDict):
    """The page's data block; lists have one entry per model, curve or feature that is drawn."""

    models: list[str]
    measures: list[str]
    labels: list[str]
    queries: JsonObject
    rankings: JsonObject
    learning: list[JsonObject]
    importance: list[JsonObject]
    dependence: list[JsonObject]
    scores: list[JsonObject]
    micros: dict[str, float | None]
    sizes: list[JsonObject]
    alpha: list[AlphaCurves]
    adaptation: list[AdaptationData]
    pruning: list[JsonObject]
    clicks: JsonObject


def measured(
    systems: list[System],
    data: QueryDataset,
    valid: dict[str, QueryDataset],
    measures: Sequence[str | Measure],
    convention: str,
    n_threads: int | None,
    clicks: ClickFigures | None = None,
) -> Subject:
    """Evaluate and compare systems."""
    specs = {str(spec): spec for spec in measures}
    evaluations = [
        evaluate(system.scores, data, measures, convention, n_threads=n_threads)
        for system in systems
    ]
    comparisons = {}
    if len(systems) > 1:
        scores = {system.name: system.scores for system in systems}
        for name, spec in specs.items():
            comparisons[name] = compare(scores, data, spec, convention, n_threads=n_threads)
    return Subject(
        systems,
        data,
        valid,
        list(specs),
        specs,
        convention,
        evaluations,
        comparisons,
        n_threads,
        clicks,
    )


def content(subject: Subject, queries: Sequence[int], n_documents: int) -> Content:
    """Return the data that the page's scripts draw."""
    systems, data = subject.systems, subject.data
    convention, n_threads = subject.convention, subject.n_threads
    leading = subject.specs[subject.measures[0]]
    models = {system.name: system.model for system in systems if system.model is not None}
    datasets = {"this data": data, **subject.valid}
    importance_of = {
        name: feature_importance(name, model, data, leading, n_threads=n_threads)
        for name, model in models.items()
    }
    importances = [importance_of.get(system.name) for system in systems]
    curves = [curve for name, model in models.items() for curve in learning_curves(name, model)]
    sizes = [
        size_curve(name, model, datasets, leading, convention, n_threads)
        for name, model in models.items()
    ]
    return {
        "models": [system.name for system in systems],
        "measures": subject.measures,
        "labels": list(label_groups(data.y)[0]),
        "queries": _per_query(subject),
        "rankings": _rankings(subject, importances, queries, n_documents),
        "learning": [_learning(curve, curves) for curve in curves],
        "importance": [
            _importance(importance)
            for importance in importances
            if importance is not None and importance.top(1)
        ],
        "dependence": [
            _dependence(dependence)
            for dependence in dependences(systems, data, importances, n_threads)
        ],
        "scores": [_distribution(system, data) for system in systems],
        "micros": {name: rounded(scoring_time(model, data)) for name, model in models.items()},
        "sizes": [
            {
                "model": curve.model,
                "unit": curve.unit,
                "sizes": curve.sizes.tolist(),
                "values": {name: rounded(values) for name, values in curve.values.items()},
                "micros": rounded(curve.micros),
            }
            for curve in sizes
            if curve is not None
        ],
        "alpha": alpha_curves(models, datasets, leading, convention, n_threads),
        "adaptation": [
            adaptation_data(name, report)
            for name, model in models.items()
            if isinstance(report := getattr(model, "report_", None), AdaptationReport)
        ],
        "pruning": [
            {"model": name, **record}
            for name, model in models.items()
            if (record := getattr(model, "pruning_", None)) is not None
        ],
        "clicks": {} if subject.clicks is None else _clicks(subject.clicks, models),
    }


def _per_query(subject: Subject) -> JsonObject:
    """Return the id, size and values of every query; a value is in units of 1/SCALE, or null."""
    data = subject.data
    return {
        "ids": [str(qid) for qid in data.query_ids.tolist()],
        "sizes": np.diff(data.query_ptr).tolist(),
        "scale": SCALE,
        "values": [
            [_whole(evaluation.per_query[measure]) for evaluation in subject.evaluations]
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
) -> JsonObject:
    """Return the documents of the queries that can be opened, by the query's position."""
    data, systems = subject.data, subject.systems
    values = [evaluation.per_query[subject.measures[0]] for evaluation in subject.evaluations]
    shown = shown_queries(values, np.diff(data.query_ptr), n_documents, queries)
    groups = label_groups(data.y)[1]
    docids = data.docid
    rankings: JsonObject = {}
    place: dict[int, int] = {}  # column of a feature -> its position in the list of names

    def plain(ranked: Ranking) -> JsonObject:
        rows = ranked.rows
        return {
            "total": ranked.n_documents,
            "docs": [str(d) for d in docids[rows].tolist()]
            if docids is not None
            else (rows + 1).tolist(),
            "labels": [f"{v:g}" for v in data.y[rows].tolist()],
            "groups": groups[rows].tolist(),
            "ranks": ranked.ranks.tolist(),
            "scores": rounded(ranked.scores, 5),
        }

    for query, why in reasons(systems, data, shown, importances, subject.n_threads):
        ranked = ranking(query, data, systems)
        rankings[str(query)] = plain(ranked) | {
            "why": {
                "features": [j if j < 0 else place.setdefault(j, len(place)) for j in why.features],
                "of": [_thousandths(parts, ranked.places) for parts in why.of],
            },
        }
    brief, most = brief_queries(values, np.diff(data.query_ptr), n_documents, shown)
    for query in brief:
        rankings[str(query)] = plain(ranking(query, data, systems, most))
    return {
        "of": rankings,
        "features": [data.feature_names[j] for j in place],
        "exact": bool(shown) and are_sums(systems, data.select(shown[:1])),
        "row_numbers": docids is None,
    }


def _thousandths(parts: np.ndarray | None, places: np.ndarray) -> list[list[int]] | None:
    return None if parts is None else np.round(1000 * parts[places]).astype(np.int64).tolist()


def _learning(curve: LearningCurve, all_curves: Sequence[LearningCurve]) -> JsonObject:
    """Return a curve's points; `same` names the listed model that a combination's member equals."""
    n_lines = 1 if curve.of is None else len(curve.of)
    keep = thin(curve.x.size, max(LEAST_POINTS, MOST_POINTS // n_lines))
    same = None
    if curve.member is not None:
        same_record = (
            other for other in all_curves if other.member is None and curve.is_record_of(other)
        )
        same = next((other.model for other in same_record), None)
    points = {
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
        points["of"] = [rounded(row[np.isfinite(row)], 5) for row in curve.of[:, keep]]
        points["kept"] = _kept(curve)
    return points


def _kept(curve: LearningCurve) -> list[list[float]]:
    """Return the rounds that a bag's models kept, and the values there."""
    assert curve.of is not None
    assert curve.kept is not None
    kept_points = []
    for row, kept in zip(curve.of, curve.kept.tolist(), strict=True):
        at = np.flatnonzero(curve.x == kept)
        if at.size:
            kept_points.append([kept, rounded(row[at[0]], 5)])
    return kept_points


def _importance(importance: Importance) -> JsonObject:
    top = importance.top(N_FEATURES)
    n_features = n_used = len(importance.features)
    if importance.kind != "permutation":  # which says what matters, not what is used
        n_used = int((importance.values > 0).sum())
    return {
        "model": importance.model,
        "kind": importance.kind,
        "label": importance.label,
        "features": [importance.features[j] for j in top],
        "values": rounded(importance.values[top], 5),
        "used": n_used,
        "of": n_features,
    }


def _dependence(dependence: Dependence) -> JsonObject:
    x = rounded(dependence.grid)
    return {
        "feature": dependence.feature,
        "tenths": rounded(dependence.tenths),
        "lines": [{"model": name, "x": x, "y": rounded(y)} for name, y in dependence.lines.items()],
        "names": None if dependence.names is None else list(dependence.names),
    }


def _distribution(system: System, data: QueryDataset) -> JsonObject:
    distribution = score_distribution(system.name, system.scores, data.y)
    return {
        "model": system.name,
        "labels": list(distribution.labels),
        "counts": distribution.counts.tolist(),
        "edges": rounded(distribution.edges, 5),
        "shares": rounded(distribution.shares),
    }


def _clicks(figures: ClickFigures, models: Mapping[str, object]) -> JsonObject:
    """Return a log's clicks by position, its check, and what models say of positions."""
    check, top = figures.check, MOST_POSITIONS
    curves: list[Json] = []
    if check is not None:
        (of_check,) = examination_curves(check, "the log’s check", None, 0, "report")
        curves.append(_examination(of_check, None))
    for name, learned in learned_curves(models).items():
        curves += [_examination(curve, name) for curve in learned]
    return {
        "facts": [[name, text] for name, text in figures.facts.items()],
        "verdict": figures.refusal if check is None else check.verdict,
        "safe": [] if check is None else list(check.safe),
        "impressions": figures.impressions[:top].tolist(),
        "clicks": figures.clicks[:top].tolist(),
        "rate": rounded(figures.rate[:top]),
        "examination": curves,
    }


def _examination(curve: ExaminationCurve, model: str | None) -> JsonObject:
    top = MOST_POSITIONS
    return {
        "name": curve.name,
        "model": model,
        "y": rounded(curve.value[:top]),
        "low": None if curve.low is None else rounded(curve.low[:top]),
        "high": None if curve.high is None else rounded(curve.high[:top]),
    }


def thin(n: int, most: int = MOST_POINTS) -> np.ndarray:
    """Return the indices of at most `most` of `n` points, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


@overload
def rounded(values: float, digits: int = 4) -> float | None: ...


@overload
def rounded(values: np.ndarray, digits: int = 4) -> Json: ...


def rounded(values: float | np.ndarray, digits: int = 4) -> Json:
    """Return numbers as plain values with `digits` significant digits; None if not finite."""
    if isinstance(values, np.ndarray):
        return [rounded(v, digits) for v in values]
    if not math.isfinite(values):
        return None
    short = float(f"{values:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short
