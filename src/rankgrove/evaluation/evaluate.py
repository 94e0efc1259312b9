"""Evaluating a ranking: means with intervals, per-query values, queries left out and why."""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.tabular import column_names
from rankgrove.data.trec import as_qrels, as_run, judged_rows, pool, with_irrelevant_document
from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.unjudged import UNJUDGED, bounds, check_unjudged, condensed
from rankgrove.files import write_atomically
from rankgrove.measures.base import Measure, PreparedMeasure, Ranking, exact_mean, rank
from rankgrove.measures.conventions import CONVENTIONS
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.showing import html_table
from rankgrove.validation import check_choice, check_scores, counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.arrays import Features
    from rankgrove.data.trec_tables import RunLike

QueryId = int | str
_UNJUDGED_NOTES = {
    "condensed": "Documents without a judgement are left out of the rankings.",
    "bounds": "worst, best: over the grades that the retrieved documents without a judgement may "
    "have.",
}


class Predictor(Protocol):
    """A model: a ranker, or any object that scores rows of features."""

    def predict(self, X: Any, /) -> Any:
        """Return one score per row."""


# A model, the scores of all rows, or a run; and the judged data, as a data set or (X, y, qid), or
# qrels.
System: TypeAlias = "Predictor | ArrayLike | RunLike"
Judged: TypeAlias = "QueryDataset | RunLike | tuple[Features, ArrayLike, ArrayLike]"


@dataclass(frozen=True)
class Evaluation:
    """The result of :func:`evaluate`; prints as a table.

    Attributes
    ----------
    measures : the measures, by the names that the caller used
    query_ids : the ids of the queries, in the order of the per-query values
    per_query : for every measure its values, one per query, NaN for a query that was left out
    mean : for every measure its mean over the queries that were not left out
    interval : for every measure the 95 % confidence interval of the mean (Student's t)
    dropped : for every measure a dict from the id of a query that was left out to the reason
    convention : the convention for parameters that the measures' names do not give; "" if labels
        are not used (:func:`agreement`)
    missing : for a run, the judged queries that it lacks
    missing_queries : how they were treated: ``"zero"`` (they count 0) or ``"drop"``
    tied_queries : by trec_eval's convention, the number of queries of a data set with equal scores,
        which are ranked in the order of the rows and not by document id; 0 for a run
    unjudged : how documents without a judgement were treated
    bounds : with ``unjudged="bounds"``, for every measure its mean in the worst and the best case
    per_query_bounds : the same, arrays of one value per query
    """

    measures: dict[str, Measure]
    query_ids: np.ndarray
    per_query: dict[str, np.ndarray]
    mean: dict[str, float]
    interval: dict[str, tuple[float, float]]
    dropped: dict[str, dict[QueryId, str]]
    convention: str
    missing: tuple[QueryId, ...] = ()
    missing_queries: str = "zero"
    tied_queries: int = 0
    unjudged: str = "irrelevant"
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    per_query_bounds: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        total = self.query_ids.size
        width = max(7, *(len(name) for name in self.mean))
        lines = [f"{'measure':<{width}}    mean   95 % interval   queries"]
        lines[0] += "   worst    best" if self.bounds else ""
        for name, mean in self.mean.items():
            interval = interval_text(self.interval[name])
            used = total - len(self.dropped[name])
            line = f"{name:<{width}}  {mean:6.4f}  {interval:>15}  {used:>8,}"
            if self.bounds:
                worst, best = self.bounds[name]
                line += f"  {worst:6.4f}  {best:6.4f}"
            lines.append(line)
        return "\n".join([*lines, *self._notes()])

    def _repr_html_(self) -> str:
        rows = [
            [
                name,
                f"{mean:.4f}",
                interval_text(self.interval[name]),
                f"{self.query_ids.size - len(self.dropped[name]):,}",
                *(f"{bound:.4f}" for bound in self.bounds.get(name, ())),
            ]
            for name, mean in self.mean.items()
        ]
        header = ["measure", "mean", "95 % interval", "queries"]
        header += ["worst", "best"] if self.bounds else []
        return html_table("Evaluation", header, rows, "\n".join(self._notes()))

    def _notes(self) -> list[str]:
        """Return the lines below the table: the convention, queries left out, ties, and so on."""
        begin = f"convention: {self.convention}" if self.convention else ""
        lines = [(begin + self._left_out()).removeprefix("; ")]
        lines += self._without_value()
        if self.tied_queries:
            lines.append(f"Equal scores {tied_text(self.tied_queries)}.")
        if self.missing:
            lines.append(f"The run lacks {missing_text(self)}.")
        lines += unjudged_lines(self.unjudged)
        return [line for line in lines if line]

    def _left_out(self) -> str:
        """Return a text about the queries left out, once if they are the same for all measures."""
        notes: dict[str, list[str]] = {}
        for name, dropped in self.dropped.items():
            if dropped:
                notes.setdefault(reasons_text(dropped), []).append(name)
        parts = []
        for text, names in notes.items():
            scope = "" if len(names) == len(self.mean) else f" (for {', '.join(names)})"
            total = counted(self.query_ids.size, "query", "queries")
            parts.append(f"; left out of {total}: {text}{scope}")
        return "".join(parts)

    def _without_value(self) -> list[str]:
        """Return a line about measures without a mean, because they leave out every query."""
        empty = [name for name, mean in self.mean.items() if math.isnan(mean)]
        if not empty:
            return []
        remedy = " Check the labels, or give another convention." if self.convention else ""
        return [f"No value of {', '.join(empty)}: every query is left out.{remedy}"]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per measure: name, definition, mean, interval, numbers of queries."""
        return [
            {
                "measure": name,
                "definition": str(self.measures[name]),
                "mean": _plain(self.mean[name]),
                "low": _plain(self.interval[name][0]),
                "high": _plain(self.interval[name][1]),
                "queries": self.query_ids.size - len(self.dropped[name]),
                "dropped": len(self.dropped[name]),
            }
            | self._plain_bounds(name)
            for name in self.mean
        ]

    def _plain_bounds(self, name: str) -> dict[str, float | None]:
        found = zip(("worst", "best"), self.bounds.get(name, ()), strict=False)
        return {case: _plain(bound) for case, bound in found}

    def to_pandas(self) -> Any:
        """Return the per-query values as a pandas frame, one row per query."""
        import pandas as pd

        return pd.DataFrame(self.per_query, index=pd.Index(self.query_ids, name="qid"))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values (None for a query that was left out)."""
        return {
            "convention": self.convention,
            "measures": self.rows(),
            "queries": self.query_ids.tolist(),
            "per_query": {
                name: [_plain(v) for v in values.tolist()]
                for name, values in self.per_query.items()
            },
            "dropped": {
                name: {str(qid): why for qid, why in dropped.items()}
                for name, dropped in self.dropped.items()
            },
            "missing": list(self.missing),
            "missing_queries": self.missing_queries,
            "unjudged": self.unjudged,
        } | (
            {
                "per_query_bounds": {
                    name: {
                        case: [_plain(v) for v in values.tolist()]
                        for case, values in zip(("worst", "best"), both, strict=True)
                    }
                    for name, both in self.per_query_bounds.items()
                }
            }
            if self.bounds
            else {}
        )

    def to_json(self, path: str | Path | None = None) -> str:
        """Return everything as JSON text, and write it to `path` if one is given."""
        text = json.dumps(self.to_dict(), allow_nan=False)
        if path is not None:
            write_atomically(path, text + "\n")
        return text

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the per-query values as CSV text (empty cell: left out); write it to `path`.

        Values are rounded to 12 significant digits, which hides rounding errors of sums;
        `per_query` and :meth:`to_json` have all digits.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        named = dict(self.per_query)
        for name, (worst, best) in self.per_query_bounds.items():
            named |= {f"{name} worst": worst, f"{name} best": best}
        writer.writerow(["qid", *named])
        columns = [values.tolist() for values in named.values()]
        for i, qid in enumerate(self.query_ids.tolist()):
            cells = [column[i] for column in columns]
            writer.writerow([qid, *("" if math.isnan(cell) else short(cell) for cell in cells)])
        if path is not None:
            write_atomically(path, out.getvalue())
        return out.getvalue()


def interval_text(interval: tuple[float, float]) -> str:
    """Return an interval as ``0.1000 - 0.3000``; for a single query, which has none, ``-``."""
    low, high = interval
    return "-" if math.isnan(low) else f"{low:6.4f} - {high:6.4f}"


def reasons_text(dropped: Mapping[QueryId, str]) -> str:
    """Return how many queries were left out, by reason: ``51 with all labels equal``."""
    counts = Counter(dropped.values())
    return ", ".join(f"{n:,} with {why}" for why, n in sorted(counts.items()))


def short(value: float) -> str:
    """Return the shortest text of a value rounded to 12 significant digits."""
    return repr(float(f"{value:.12g}"))


def _plain(value: float) -> float | None:
    """Return the value for JSON: None for NaN."""
    return None if math.isnan(value) else value


def evaluate(
    model: object,
    dataset: Judged,
    measures: str | Measure | Iterable[str | Measure],
    convention: str | None = None,
    *,
    missing_queries: str = "zero",
    unjudged: str = "irrelevant",
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluate the ranking of a data set by a model or by given scores.

    Parameters
    ----------
    model : an object with ``predict`` (a ranker, or any model that takes features), or one score
        per row of the data set. Minus infinity means that a document was not retrieved.
        With qrels, a run: a :class:`Run`, a dict, a ranx Run, a data frame (columns query_id or
        qid, doc_id or docno, score) or named tuples with such fields, as in ir_datasets.
    dataset : the judged data, as a data set or (X, y, qid); or qrels to evaluate a run against as
        trec_eval does, in the same forms (their value is called relevance, label, rel or grade)
    measures : names such as ``"ndcg@10"``, or measures
    convention : the source of parameters that the names do not give (see
        :func:`rankgrove.measure`); None: ``"papers"``, and ``"trec"`` for runs against qrels
    missing_queries : judged queries that a run lacks count 0 (``"zero"``, trec_eval's ``-c``), or
        do not count (``"drop"``)
    unjudged : for a run against qrels, documents that the run retrieved and the qrels lack are
        ``"irrelevant"``; or left out of the ranking (``"condensed"``); or irrelevant, and the
        result also has the worst and the best value over all grades that they may have, from 0
        to the highest one of the judgements (``"bounds"``). The bounds are exact; measures for
        which they are not known are refused
    n_threads : threads to use, None for all cores; the figures do not depend on it

    Warns
    -----
    UserWarning
        If a run lacks judged queries.

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.QueryDataset(None, [2, 0, 1, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> print(rg.evaluate([0.3, 0.2, 0.1, 0.5, 0.4], data, ["ndcg@10", "mrr"]))
    measure    mean   95 % interval   queries
    ndcg@10  0.7974  0.0000 - 1.0000         2
    mrr      0.7500  0.0000 - 1.0000         2
    convention: papers
    """
    dataset = judged_data(dataset, model, "evaluate")
    convention = convention or usual_convention(dataset)
    check_choice("convention", "evaluate", convention, CONVENTIONS)
    named = named_measures(measures, convention)
    check_choice("missing_queries", "evaluate", missing_queries, ["zero", "drop"])
    check_treatment(unjudged, named, dataset, "evaluate")
    evaluation = evaluation_of(
        model, dataset, named, convention, missing_queries, n_threads, unjudged
    )
    if evaluation.missing:
        warnings.warn(f"The run lacks {missing_text(evaluation)}.", stacklevel=2)
    return evaluation


def check_treatment(unjudged: str, named: dict[str, Measure], dataset: object, owner: str) -> None:
    """Refuse a treatment of unjudged documents that the data or a measure does not allow."""
    check_choice("unjudged", owner, unjudged, UNJUDGED)
    if unjudged != "irrelevant" and isinstance(dataset, QueryDataset):
        raise DataError(
            f"unjudged={unjudged!r} needs a run and qrels: all documents of a data set are judged. "
            "Write the run by rg.write_run, or give it as a mapping."
        )
    check_unjudged(named, unjudged)


def unjudged_lines(unjudged: str) -> list[str]:
    """Return a line about the treatment of unjudged documents, none for the usual one."""
    return [_UNJUDGED_NOTES[unjudged]] if unjudged in _UNJUDGED_NOTES else []


def judged_data(dataset: Judged, system: object, owner: str) -> QueryDataset | RunLike:
    """Return (X, y, qid) as a data set, qrels unchanged; refuse other data for a model."""
    if isinstance(dataset, tuple) and len(dataset) == 3 and not hasattr(dataset[0], "_fields"):
        X, y, qid = dataset
        is_table = not hasattr(X, "tocsr") and (hasattr(X, "columns") or hasattr(X, "column_names"))
        names = [str(name) for name in column_names(X)] if is_table else None
        return QueryDataset(X, y, qid, feature_names=names)
    if hasattr(system, "predict") and not isinstance(dataset, QueryDataset):
        raise DataError(
            f"{owner}: a model needs a QueryDataset or (X, y, qid). Convert a table with labels "
            "and query ids by rg.QueryDataset.from_frame(table, label=..., qid=...). Got "
            f"{type(dataset).__name__}."
        )
    return dataset


def usual_convention(dataset: object) -> str:
    """Return the default convention for a data set, or for qrels."""
    return "papers" if isinstance(dataset, QueryDataset) else "trec"


def named_measures(
    measures: str | Measure | Iterable[str | Measure], convention: str
) -> dict[str, Measure]:
    """Return one or several measures, by the names that the caller used."""
    listed = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not listed:
        raise ParameterError("Give at least one measure, such as 'ndcg@10'.")
    return {str(spec): parse_measure(spec, convention) for spec in listed}


def evaluation_of(
    model: object,
    dataset: Judged,
    named: dict[str, Measure],
    convention: str,
    missing_queries: str,
    n_threads: int | None,
    unjudged: str = "irrelevant",
) -> Evaluation:
    """Like :func:`evaluate`, but without a warning."""
    missing: tuple[QueryId, ...] = ()
    judged: np.ndarray | None = None
    if isinstance(dataset, QueryDataset):
        data, scores = scores_of(model, dataset, "evaluate")
    else:
        qrels, run = as_qrels(dataset), as_run(model)
        data, scores = pool(run, qrels, complete=missing_queries == "zero")
        missing = tuple(qid for qid in qrels if qid not in run)
        of_measures = any(measure.uses_judgements for measure in named.values())
        if of_measures or unjudged != "irrelevant":
            rows_judged = judged_rows(data, qrels)
            if unjudged == "condensed":
                data, scores = condensed(data, scores, rows_judged)
                rows_judged = np.ones(data.n_rows, np.bool_)
            judged = data.grouped(rows_judged)
    absent = set(missing)
    lacking = np.array([qid in absent for qid in data.query_ids.tolist()])
    pooled = not isinstance(dataset, QueryDataset)
    ranked = _Ranked(data, scores, n_threads)
    with_pairs = ranked
    if pooled and any(measure.needs_pairs for measure in named.values()):
        with_pairs = _Ranked(*with_irrelevant_document(data, scores), n_threads)
    per_query: dict[str, np.ndarray] = {}
    per_query_bounds: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    dropped: dict[str, dict[QueryId, str]] = {}
    for name, measure in named.items():
        rows = with_pairs if measure.needs_pairs else ranked
        prepared = measure.prepare(
            rows.labels, rows.ranking.query_ptr, n_threads, judged=judged, pooled=pooled
        )
        values = prepared.values(rows.ranking, n_threads)
        values[lacking & ~np.isnan(values)] = measure.finish(np.zeros(1), np.zeros(1))[0]
        per_query[name] = values
        if unjudged == "bounds":
            per_query_bounds[name] = bounds(measure, data, scores, rows_judged, values, n_threads)
        dropped[name] = {data.query_ids[q].item(): why for q, why in prepared.drop_reason.items()}
    mean = {name: named[name].shown(exact_mean(values)) for name, values in per_query.items()}
    interval = {}
    for name, values in per_query.items():
        low, high = confidence_interval(values, bounds=named[name].bounds)
        interval[name] = (named[name].shown(low), named[name].shown(high))
    return Evaluation(
        *(named, data.query_ids, per_query, mean, interval, dropped, convention),
        missing=missing,
        missing_queries=missing_queries,
        # a run is ranked as by trec_eval
        tied_queries=_tied_queries(ranked.ranking) if convention == "trec" and not pooled else 0,
        unjudged=unjudged,
        bounds={
            name: (named[name].shown(exact_mean(low)), named[name].shown(exact_mean(high)))
            for name, (low, high) in per_query_bounds.items()
        },
        per_query_bounds=per_query_bounds,
    )


def _tied_queries(ranking: Ranking) -> int:
    """Return the number of queries whose retrieved documents have equal scores."""
    tied = np.flatnonzero(ranking.tied)
    query = np.searchsorted(ranking.query_ptr, tied, "right") - 1
    retrieved = tied - ranking.query_ptr[query] < ranking.retrieved[query]
    return int(np.unique(query[retrieved]).size)


def tied_text(n_queries: int) -> str:
    """Return a note that documents with equal scores were not ranked as by trec_eval."""
    return (
        f"in {counted(n_queries, 'query', 'queries')} were ranked in the order of the rows; "
        "trec_eval ranks them by document id, descending"
    )


class _Ranked:
    """The labels of a data set in query order, and its documents ranked by scores."""

    def __init__(self, data: QueryDataset, scores: np.ndarray, n_threads: int | None) -> None:
        self.labels = data.grouped(data.y)
        self.ranking = rank(data.grouped(scores), data.query_ptr, n_threads)


def missing_text(evaluation: Evaluation) -> str:
    """Return a note on how many judged queries a run lacks, and how they are treated."""
    zero = evaluation.missing_queries == "zero"
    n_missing = len(evaluation.missing)
    total = evaluation.query_ids.size + (0 if zero else n_missing)
    effect = "count 0" if zero else "are left out"
    if n_missing == 1:
        effect = "counts 0" if zero else "is left out"
    dropped = [set(queries) for queries in evaluation.dropped.values()]
    irrelevant = len(set(evaluation.missing).intersection(*dropped)) if zero else 0
    if irrelevant == n_missing:
        effect = f"{'is' if n_missing == 1 else 'are'} left out: no document is relevant"
    elif irrelevant:
        effect += f", except {irrelevant:,} without a relevant document"
    return f"{n_missing:,} of {counted(total, 'judged query', 'judged queries')}, which {effect}"


def prepared_on(
    measure: Measure, data: QueryDataset, owner: str, n_threads: int | None = None
) -> PreparedMeasure:
    """Return a measure prepared for some data; refuse it if it leaves out every query."""
    prepared = measure.prepare(data.grouped(data.y), data.query_ptr, n_threads)
    if np.isnan(prepared.fixed_value[prepared.is_fixed]).sum() == data.n_queries:
        raise DataError(
            f"{owner}: {measure} leaves out every query of the data (nothing relevant, or "
            "everything). Check the labels, or give another measure or convention."
        )
    return prepared


def scores_of(model: object, dataset: Judged, owner: str) -> tuple[QueryDataset, np.ndarray]:
    """Return the data set, and its scores by a model or from an array."""
    if isinstance(model, Mapping) or not isinstance(dataset, QueryDataset):
        raise DataError(
            f"{owner}: a run ({{query: {{document: score}}}}) is evaluated against qrels "
            "({query: {document: grade}}), and scores or models against a QueryDataset. "
            f"Got {type(model).__name__} and {type(dataset).__name__}."
        )
    scores = model
    if hasattr(model, "predict"):
        # Our rankers take the data set; other models take features.
        scores = model.predict(dataset if getattr(model, "takes_datasets", False) else dataset.X)
    return dataset, check_scores(scores, dataset.n_rows, owner)


def confidence_interval(
    values: np.ndarray, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """Return Student's 95 % interval of the mean of values that are not NaN, cut to `bounds`."""
    from scipy.special import stdtrit

    kept = values[~np.isnan(values)]
    if kept.size < 2:
        return (math.nan, math.nan)
    mean = exact_mean(kept)
    variance = math.fsum(((kept - mean) ** 2).tolist()) / (kept.size - 1)
    half = float(stdtrit(kept.size - 1, 0.975)) * math.sqrt(variance / kept.size)
    return (max(mean - half, bounds[0]), min(mean + half, bounds[1]))
