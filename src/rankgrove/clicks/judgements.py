"""Judgements from clicks: attractiveness with intervals, as grades or as soft labels."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.clicks.choosing import expected_examinations
from rankgrove.clicks.columns import id_at
from rankgrove.clicks.training_data import rows_of_pairs
from rankgrove.data.arrays import frozen
from rankgrove.data.letor_write import write_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec_values import Qrels
from rankgrove.errors import DataError, DataWarning, ParameterError
from rankgrove.files import write_atomically
from rankgrove.showing import html_table
from rankgrove.validation import check_choice, check_integer, check_real, counted, refuse, warn

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

MOST_GRADES = 32


@dataclass(frozen=True)
class ClickJudgements:
    """Judgements that were made from clicks; prints as a summary.

    Attributes
    ----------
    query, document : the ids of every judged pair, query by query
    label : grades, whole numbers from 0; or with soft labels the attractiveness
    weight : how much of the label is due to the pair's own clicks and skips, between 0 and 1: n /
        (n + strength of the prior), n the expected number of examinations. With a prior per pair,
        which is an estimate itself, all weights are 1
    attractiveness, low, high : the probability of a click when examined, with its interval; NaN
        without intervals
    impressions, clicks : of every judged pair
    pooled : which pairs have the label of all rare documents of their query
    thresholds : the lowest attractiveness of the grades from 1; empty with soft labels
    n_left_out : number of pairs with too few impressions that were left out
    min_impressions : what is too few
    n_queries_left_out : number of queries without a judgement
    level : of the intervals
    correction : the power of examinations of :func:`smoothed_judgements`; 1: labels are corrected
        fully
    """

    query: np.ndarray
    document: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    attractiveness: np.ndarray
    low: np.ndarray
    high: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray
    pooled: np.ndarray
    thresholds: tuple[float, ...]
    n_left_out: int
    min_impressions: int
    n_queries_left_out: int
    level: float
    pair: np.ndarray = field(repr=False)
    log: ClickLog = field(repr=False)
    is_soft: bool = False
    correction: float = 1.0

    def __len__(self) -> int:
        return int(self.label.size)

    def _rows(self) -> list[tuple[str, str]]:
        n, n_pooled = len(self), int(self.pooled.sum())
        few = f"fewer than {counted(self.min_impressions, 'impression')}"
        rows = [
            ("judgements", f"{n:,} of {counted(np.unique(self.query).size, 'query', 'queries')}"),
        ]
        if self.min_impressions > 1:
            lacking = counted(self.n_queries_left_out, "query", "queries")
            rows.append(
                ("left out", f"{self.n_left_out:,} with {few}; {lacking} without any judgement")
            )
        if n_pooled:
            rows.append(("pooled", f"{n_pooled:,} with {few}: they have one label per query"))
        if not np.isnan(self.low).all():
            width = float(np.median(self.high - self.low))
            rows.append((f"{self.level:.0%} intervals", f"median width {width:.3f}"))
        if self.is_soft:
            low, high = float(self.label.min()), float(self.label.max())
            rows.append(("soft labels", f"{low:.3f} to {high:.3f}"))
        if self.correction != 1:
            rows.append(("correction", f"{self.correction:g}, where 1 is full and 0 is none"))
        for grade, n_grade in enumerate(np.bincount(self.label.astype(np.int64)).tolist()):
            if not self.is_soft:
                begin = f", from {self.thresholds[grade - 1]:.3f}" if grade else ""
                rows.append((f"grade {grade}", f"{n_grade:,}{begin}"))
        return rows

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}  {text}" for name, text in self._rows())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("Judgements from clicks", [], self._rows())

    def qrels(self) -> Qrels:
        """Return the grades as qrels; ids are texts."""
        if self.is_soft:
            raise ParameterError(
                "Qrels have grades, and these judgements have soft labels: make them with "
                "labels='grades', or use dataset(data)."
            )
        table: dict[str, dict[str, int]] = {}
        rows = zip(self.query.tolist(), self.document.tolist(), self.label.tolist(), strict=True)
        for query, document, grade in rows:
            table.setdefault(str(query), {})[str(document)] = int(grade)
        return Qrels(table)

    def dataset(self, data: QueryDataset) -> QueryDataset:
        """Return the judged rows of `data`, with these labels and weights.

        Queries and documents are matched by the texts of their ids, as by :func:`click_data`. Rows
        without a judgement are left out; so are judgements without a row, with a warning.
        """
        rows = rows_of_pairs(self.log, data)[self.pair]
        there = np.flatnonzero(rows >= 0)
        if not there.size:
            raise DataError(
                "The data has none of the judged documents: its query ids and docid must be those "
                f"of the log, such as {id_at(self.query, 0)!r} and {id_at(self.document, 0)!r}."
            )
        if there.size < rows.size:
            first = int(np.argmax(rows < 0))
            warn(
                f"The data lacks {rows.size - there.size:,} of {rows.size:,} judged documents, "
                f"which are left out; the first is {id_at(self.document, first)!r} of the query "
                f"{id_at(self.query, first)!r}.",
                DataWarning,
            )
        order = there[np.argsort(rows[there], kind="stable")]
        chosen = rows[order]
        queries, of_row = np.unique(data.query_of_row[chosen], return_inverse=True)
        inside = (
            chosen if data.rows is None else np.arange(data.features.shape[0])[data.rows][chosen]
        )
        return QueryDataset.from_parts(
            data.features,
            self.label[order].astype(np.float64),
            data.query_ids[queries],
            of_row,
            rows=inside,
            weight=self.weight[order],
            docid=None if data.docid_column is None else data.docid_column.take(chosen),
            feature_names=data.given_names,
            base_score=None if data.base_score is None else data.base_score[chosen],
            absent=data.absent,
            categories=data.categories,
        )

    def write(self, path: str | Path, data: QueryDataset | None = None) -> None:
        """Write the judgements.

        Parameters
        ----------
        path : a file whose name ends in ``.csv`` gets a table with intervals. Other files are
            qrels, or with `data` LETOR text (which has no weights)
        data : the features of the documents
        """
        if str(path).lower().endswith((".csv", ".csv.gz")):
            if data is not None:
                raise ParameterError(
                    f"A table of judgements has no features, and the name {path} ends in .csv: "
                    "leave the data out, or write LETOR text to a file with another ending."
                )
            write_atomically(path, self._table())
        elif data is not None:
            write_letor(self.dataset(data), path)
        else:
            for token in (*np.unique(self.query).tolist(), *np.unique(self.document).tolist()):
                if not str(token) or any(c.isspace() for c in str(token)):
                    raise DataError(
                        f"Qrels cannot hold the id {str(token)!r}, which has a space or is empty: "
                        "write a table (.csv), or give the data for LETOR text."
                    )
            lines = [
                f"{query} 0 {document} {grade}\n"
                for query, documents in self.qrels().items()
                for document, grade in documents.items()
            ]
            write_atomically(path, "".join(lines))

    def _table(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names = ["query", "document", "label", "weight", "attractiveness", "low", "high"]
        names += ["impressions", "clicks", "pooled"]
        writer.writerow(names)
        columns = [vars(self)[name].tolist() for name in names]
        columns[-1] = [int(value) for value in columns[-1]]
        for row in zip(*columns, strict=True):
            writer.writerow(["" if value != value else value for value in row])
        return out.getvalue()


def judgements(
    log: ClickLog,
    model: Any = None,
    *,
    labels: str = "grades",
    n_grades: int = 5,
    thresholds: Sequence[float] | None = None,
    few: str = "drop",
    min_impressions: int = 10,
    samples: int = 100,
    level: float = 0.95,
    seed: int = 0,
) -> ClickJudgements:
    """Make judgements from clicks.

    Parameters
    ----------
    log : the sessions
    model : a click model, fitted to the log or new; None: ``PositionBased()``
    labels : ``"grades"``, whole numbers from 0; or ``"soft"``, the attractiveness itself
    n_grades : the number of grades; they have about equally many pairs
    thresholds : rising numbers, the lowest attractiveness of the grades 1, 2, ..., in place of
        `n_grades`
    few : what is done with pairs of fewer than `min_impressions`: ``"drop"``, or ``"pool"``: all of
        a query together have one label, if their impressions are enough together
    min_impressions : the number of impressions that is enough
    samples : the number of bootstrap samples of sessions for intervals; 0: no intervals
    level : of the intervals
    seed : of the samples

    Returns
    -------
    ClickJudgements

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, n_docs=8, seed=1)
    >>> log = rg.simulate_clicks(data, data.column(1), sessions=2000, noise=1.0, seed=1)
    >>> judged = rg.judgements(log, n_grades=3, samples=0)
    >>> sorted(set(judged.label.tolist()))
    [0.0, 1.0, 2.0]
    """
    owner = "judgements"
    check_choice("labels", owner, labels, ["grades", "soft"])
    check_choice("few", owner, few, ["drop", "pool"])
    check_integer("min_impressions", owner, min_impressions, low=1)
    check_integer("samples", owner, samples, low=0)
    check_real("level", owner, level, above=0, high=1)
    bounds = _check_thresholds(thresholds)
    if labels == "soft" and thresholds is not None:
        refuse("thresholds", owner, "None with soft labels, which are no grades", thresholds)
    check_integer("n_grades", owner, n_grades, low=2, high=MOST_GRADES)
    if not log.n_clicks:
        raise DataError("judgements needs clicks. Got a log without any.")
    model = _fitted(log, model)
    value, low, high = _learned(log, model, samples, level, seed)
    shown = np.bincount(log.pair, minlength=log.n_pairs)
    clicks = np.bincount(log.pair[log.click], minlength=log.n_pairs)
    rare = (shown > 0) & (shown < min_impressions)
    kept = shown >= min_impressions
    pooled = np.zeros(log.n_pairs, np.bool_)
    evidence = expected_examinations(model, log)
    if few == "pool":
        together = np.bincount(log.pair_query, np.where(rare, shown, 0), minlength=log.n_queries)
        examined = np.bincount(log.pair_query, np.where(rare, evidence, 0), minlength=log.n_queries)
        pooled = rare & (together >= min_impressions)[log.pair_query]
        for values in (value, low, high):
            values[pooled] = _pooled(values, log.pair_query, np.where(rare, shown, 0))[pooled]
        evidence[pooled] = examined[log.pair_query[pooled]]
        kept |= pooled
    if not kept.any():
        raise DataError(
            f"No document has {counted(min_impressions, 'impression')} for a query (the most is "
            f"{shown.max():,}): lower min_impressions, or collect more clicks."
        )
    pair = np.flatnonzero(kept)
    pair = pair[np.argsort(log.pair_query[pair], kind="stable")]
    if labels == "soft":
        bounds, label = (), value[pair]
    else:
        bounds = bounds or _quantiles(value[pair], n_grades)
        label = np.searchsorted(np.array(bounds), value[pair], side="right").astype(np.float64)
    of_log = np.bincount(log.session_query, minlength=log.n_queries) > 0
    judged = np.bincount(log.pair_query[pair], minlength=log.n_queries) > 0
    return ClickJudgements(
        query=frozen(log.query_ids[log.pair_query[pair]]),
        document=frozen(log.document_ids[log.pair_document[pair]]),
        label=frozen(label),
        weight=frozen(_weights(evidence[pair], model)),
        attractiveness=frozen(value[pair]),
        low=frozen(low[pair]),
        high=frozen(high[pair]),
        impressions=frozen(shown[pair]),
        clicks=frozen(clicks[pair]),
        pooled=frozen(pooled[pair]),
        thresholds=tuple(bounds),
        n_left_out=int(((shown > 0) & ~kept).sum()),
        min_impressions=min_impressions,
        n_queries_left_out=int((of_log & ~judged).sum()),
        level=level,
        pair=frozen(pair),
        log=log,
        is_soft=labels == "soft",
    )


def _check_thresholds(thresholds: Sequence[float] | None) -> tuple[float, ...]:
    if thresholds is None:
        return ()
    bounds = tuple(check_real("thresholds", "judgements", value) for value in thresholds)
    if not bounds or any(b <= a for a, b in itertools.pairwise(bounds)):
        raise ParameterError(
            "The 'thresholds' parameter of judgements must be rising numbers, one per grade from "
            f"1. Got {thresholds!r} instead."
        )
    return bounds


def _fitted(log: ClickLog, model: Any) -> Any:
    """Return the click model, fitted."""
    if model is None:
        from rankgrove.clicks.position_based import PositionBased

        model = PositionBased()
    elif not hasattr(model, "fit") or not hasattr(model, "attractiveness"):
        raise ParameterError(
            "The 'model' parameter of judgements must be a click model, such as "
            f"rg.PositionBased(). Got {type(model).__name__} instead."
        )
    if not hasattr(model, "attractiveness_"):
        model.fit(log)
    return model


def _learned(
    log: ClickLog, model: Any, samples: int, level: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return attractiveness per pair, and its interval."""
    value = np.array(model.attractiveness(log), np.float64)
    low, high = np.full(value.size, np.nan), np.full(value.size, np.nan)
    if samples:
        found = model.intervals(log, n=max(samples, 2), seed=seed, level=level)
        low, high = (np.array(side["attractiveness"]) for side in (found.low, found.high))
    return value, low, high


def _weights(examined: np.ndarray, model: Any) -> np.ndarray:
    """Return weights of labels from the expected examinations of their pairs."""
    strength = float(getattr(model, "prior_strength_", 0.0))
    if np.ndim(getattr(model, "prior_mean_", 0.0)):
        return np.ones(examined.size)
    total = examined + strength
    return np.divide(examined, total, out=np.zeros(examined.size), where=total > 0)


def _pooled(values: np.ndarray, query: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted mean of every pair's query."""
    total = np.bincount(query, weight)
    return np.asarray((np.bincount(query, weight * values) / np.maximum(total, 1e-300))[query])


def _quantiles(values: np.ndarray, n_grades: int) -> tuple[float, ...]:
    """Return thresholds between about equally many values; equal ones are left out."""
    edges = np.unique(np.quantile(values, np.arange(1, n_grades) / n_grades))
    return tuple(edge for edge in edges.tolist() if edge > values.min() and math.isfinite(edge))
