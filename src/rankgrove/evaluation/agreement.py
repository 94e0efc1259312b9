"""How alike two systems rank: rank correlation between them, without judgements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec import as_run
from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.evaluate import Evaluation, evaluate, named_measures, scores_of
from rankgrove.measures.base import Measure

MEASURES = ("kendall", "spearman")


def agreement(
    first: Any,
    second: Any,
    dataset: QueryDataset | None = None,
    measures: str | Measure | Iterable[str | Measure] = MEASURES,
    *,
    n_threads: int | None = None,
) -> Evaluation:
    """Measure how alike two systems rank the documents of every query.

    Parameters
    ----------
    first, second : models or scores of a data set's rows; without a data set, two runs in the forms
        that :func:`evaluate` takes, of which the documents count that both retrieved
    dataset : the documents to rank; its labels do not matter
    measures : ``"kendall"`` (tau-b), ``"spearman"`` or ``"pairs"`` (of the pairs that `second`
        orders, the share that `first` orders alike)
    n_threads : threads to use, None for all cores; the figures do not depend on it

    Returns
    -------
    Evaluation
        Queries that `second` does not order (one document, or equal scores) are left out.

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.QueryDataset(None, [0, 0, 0], qid=[1, 1, 1])
    >>> found = rg.agreement([3, 2, 1], [3, 1, 2], data)
    >>> {name: round(mean, 3) for name, mean in found.mean.items()}
    {'kendall': 0.333, 'spearman': 0.5}
    """
    for name, one in named_measures(measures, "papers").items():
        if one.name not in (*MEASURES, "pairs"):
            raise ParameterError(
                f"The 'measures' parameter of agreement must be of 'kendall', 'spearman' and "
                f"'pairs': others need judgements. Got {name!r} instead."
            )
    if dataset is None:
        data, scores = _common(as_run(first), as_run(second))
    else:
        given, order = scores_of(second, dataset, "agreement")
        scores = scores_of(first, dataset, "agreement")[1]
        data = QueryDataset(None, order, qid=given.qid)
    found = evaluate(scores, data, measures, n_threads=n_threads)
    why = "equal scores by the second, or one document"
    dropped = {name: dict.fromkeys(queries, why) for name, queries in found.dropped.items()}
    return replace(found, dropped=dropped, convention="")


def _common(first: Any, second: Any) -> tuple[QueryDataset, np.ndarray]:
    """Return the documents that both runs retrieved, labelled by the second, and first scores."""
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
