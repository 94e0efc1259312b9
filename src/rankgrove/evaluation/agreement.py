"""How similarly two systems rank: rank correlation between them, without judgements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec import as_run
from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.evaluate import Evaluation, evaluate, named_measures, scores_of
from rankgrove.measures.base import Measure

if TYPE_CHECKING:
    from rankgrove.data.trec_tables import Table
    from rankgrove.evaluation.evaluate import System

MEASURES = ("kendall", "spearman")


def agreement(
    first: System,
    second: System,
    dataset: QueryDataset | None = None,
    measures: str | Measure | Iterable[str | Measure] = MEASURES,
    *,
    n_threads: int | None = None,
) -> Evaluation:
    """Measure how similarly two systems rank the documents of every query.

    Parameters
    ----------
    first, second : models or scores of a data set's rows; without a data set, two runs in the forms
        that :func:`evaluate` takes, compared on the documents that both retrieved
    dataset : the documents to rank; its labels do not matter
    measures : ``"kendall"`` (tau-b), ``"spearman"`` or ``"pairs"`` (the share of the pairs ordered
        by `second` that `first` orders in the same way)
    n_threads : threads to use, None for all cores; the figures do not depend on it

    Returns
    -------
    Evaluation
        Queries that `second` does not order (one document, or equal scores) are left out.

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.QueryDataset(None, [0, 0, 0], qid=[1, 1, 1])
    >>> result = rg.agreement([3, 2, 1], [3, 1, 2], data)
    >>> {name: round(mean, 3) for name, mean in result.mean.items()}
    {'kendall': 0.333, 'spearman': 0.5}
    """
    for name, measure in named_measures(measures, "papers").items():
        if measure.name not in (*MEASURES, "pairs"):
            raise ParameterError(
                f"The 'measures' parameter of agreement must be among 'kendall', 'spearman' and "
                f"'pairs': others need judgements. Got {name!r} instead."
            )
    if dataset is None:
        data, scores = _common(as_run(first), as_run(second))
    else:
        judged, order = scores_of(second, dataset, "agreement")
        scores = scores_of(first, dataset, "agreement")[1]
        data = QueryDataset(None, order, qid=judged.qid)
    evaluation = evaluate(scores, data, measures, n_threads=n_threads)
    why = "equal scores by the second, or one document"
    dropped = {name: dict.fromkeys(queries, why) for name, queries in evaluation.dropped.items()}
    return replace(evaluation, dropped=dropped, convention="")


def _common(first: Table, second: Table) -> tuple[QueryDataset, np.ndarray]:
    """Return the documents that both runs retrieved, labelled by the second's scores.

    The array has the scores of the first.
    """
    rows = [
        (qid, float(documents[docid]), float(score))
        for qid, documents in second.items()
        for docid, score in first.get(qid, {}).items()
        if docid in documents
    ]
    if not rows:
        raise DataError("The two runs have no document of any query in common.")
    qids, labels, scores = zip(*rows, strict=True)
    return QueryDataset(None, list(labels), qid=list(qids)), np.array(scores)
