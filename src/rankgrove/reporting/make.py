"""``rg.report``: a page that compares models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.files import write_atomically
from rankgrove.measures.base import Measure
from rankgrove.measures.conventions import CONVENTIONS
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.rankers.auto.auto import AutoRanker
from rankgrove.rankers.given import valid_datasets
from rankgrove.reporting.auto_page import auto_page
from rankgrove.reporting.click_logs import click_figures
from rankgrove.reporting.content import content, measured
from rankgrove.reporting.defaults import DOCUMENTS, MEASURES
from rankgrove.reporting.page import page
from rankgrove.reporting.rankings import query_places
from rankgrove.reporting.systems import as_systems
from rankgrove.reporting.verdict import verdict, verdict_of_one
from rankgrove.showing import html_text
from rankgrove.validation import check_choice, check_integer, check_output_file


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The result of :func:`report`.

    Attributes
    ----------
    summary : one sentence: which model is better, and whether that is significant
    html : the whole page
    path : the file that it was last written to, or None
    """

    summary: str
    html: str
    path: Path | None = None

    def __repr__(self) -> str:
        return f"Report({self.summary!r})"

    def _repr_html_(self) -> str:
        size = f"{len(self.html.encode()) / 1e6:.1f} MB"
        where = '.save("report.html") writes it'
        if self.path is not None:
            where = f"written to {self.path}"
        return html_text("Report", f"{self.summary}\n{size}; {where}", prose=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        write_atomically(path, self.html)
        object.__setattr__(self, "path", Path(path))


def report(
    models: Any,
    dataset: QueryDataset | None = None,
    measures: str | Measure | Iterable[str | Measure] = MEASURES,
    out: str | Path | None = None,
    *,
    convention: str = "papers",
    valid: Any = None,
    queries: Sequence[Any] | None = None,
    n_documents: int = DOCUMENTS,
    title: str | None = None,
    n_threads: int | None = None,
    clicks: Any = None,
) -> Report:
    """Show one or several models on one self-contained HTML page.

    Parameters
    ----------
    models : a model or several, in a dict by name or in a list; the others are compared with the
        first. Anything that :func:`rankgrove.evaluate` takes: rankers, models with ``predict``,
        scores; also results of :func:`rankgrove.prune` and :func:`rankgrove.optimal_combination`
    dataset : judged data that no model was trained on; None: the page is about the search of an
        :class:`rankgrove.AutoRanker`, and needs none
    measures : the measures to compute; models are compared by the first
    out : the file to write
    convention : how measures are defined where their names do not say it
    valid : further data for model sizes and weights of combinations: a QueryDataset, or several in
        a dict
    queries : ids of queries whose documents are always included in the page
    n_documents : number of documents in the page, with ranks, scores and feature contributions;
        if the data has more, those of the queries with the largest differences
    title : title of the page
    n_threads : threads to use, None for all cores
    clicks : a :class:`rankgrove.ClickLog`, or training data with positions: the page has a section
        on its clicks, how often positions are looked at, what :func:`rankgrove.check_clicks` says,
        and what models with ``position_bias`` have learned

    Returns
    -------
    Report
        the page and its summary in one sentence

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(40, seed=1), rg.make_artificial(20, seed=2)
    >>> model = rg.LambdaMART(n_trees=5).fit(train)
    >>> page = rg.report({"f1": test.column(1), "trees": model}, test, "ndcg@10", "report.html")
    >>> page.summary[:34]
    'trees is significantly better than'
    """
    owner = "report"
    listed = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not listed:
        raise ParameterError("report needs at least one measure, such as 'ndcg@10'.")
    check_choice("convention", owner, convention, CONVENTIONS)
    for spec in listed:
        parse_measure(spec, convention)
    check_integer("n_documents", owner, n_documents, low=0)
    if out is not None:
        check_output_file("out", owner, out)
    if dataset is None:
        if clicks is not None:
            raise ParameterError("report shows clicks together with judged data: give dataset too.")
        return _report_of_search(models, out, title)
    of_clicks = None if clicks is None else click_figures(clicks, owner)
    systems = as_systems(models, dataset, owner)
    wanted = query_places(dataset, queries)
    watched = valid_datasets(valid, owner)
    subject = measured(systems, dataset, watched, listed, convention, n_threads, of_clicks)
    names = [system.name for system in systems]
    first = subject.measures[0]
    if subject.comparisons:
        result = verdict(subject.comparisons[first])
    else:
        evaluation = subject.evaluations[0]
        if len(evaluation.dropped[first]) == dataset.n_queries:
            raise DataError(
                f"report: {first} leaves out every query of the data (nothing relevant, or all "
                "labels equal)."
            )
        result = verdict_of_one(names[0], first, evaluation)
    shown = content(subject, wanted, n_documents)
    page_report = Report(str(result), page(title or _title(names), result, subject, shown))
    if out is not None:
        page_report.save(out)
    return page_report


def _report_of_search(model: Any, out: str | Path | None, title: str | None) -> Report:
    if not isinstance(model, AutoRanker):
        raise ParameterError(
            "report needs judged data that no model was trained on; without data it shows the "
            f"search of one AutoRanker. Got a {type(model).__name__} and no data."
        )
    model._check_is_fitted()
    page_report = Report(model.estimate_text(), auto_page(model, title))
    if out is not None:
        page_report.save(out)
    return page_report


def _title(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) <= 5 else f"{len(names)} models"
