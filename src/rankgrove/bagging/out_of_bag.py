"""Out-of-bag scores: training queries scored by the models that did not see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rankgrove.bagging.aggregate import add_scores
from rankgrove.bagging.sample import sampled_queries
from rankgrove.data.queries import QueryDataset


def out_of_bag_scores(
    scorers: Sequence[Callable[[QueryDataset], np.ndarray]],
    train: QueryDataset,
    query_fraction: float,
    seed: int,
    combine: str,
    n_threads: int | None = None,
) -> np.ndarray:
    """Return a score for every document, by the models that did not see its query.

    Parameters
    ----------
    scorers : one function per model that scores queries, in the caller's order
    train : the data that the models were trained on
    query_fraction, seed : parameters of the models' samples
    combine : as in ``aggregate``

    Returns
    -------
    scores in the caller's order, NaN where every model saw the query
    """
    total, n = np.zeros(train.n_rows), np.zeros(train.n_queries)
    for m, scorer in enumerate(scorers):
        missed = ~sampled_queries(train.query_keys, query_fraction, seed, m)
        if not missed.any():
            continue
        part = train.select(missed)
        scores = np.zeros(part.n_rows)
        add_scores(scores, part.grouped(scorer(part)), part.query_ptr, combine, 1.0, n_threads)
        total[np.repeat(missed, np.diff(train.query_ptr))] += scores
        n += missed
    n_models = np.repeat(np.where(n > 0, n, np.nan), np.diff(train.query_ptr))
    return train.ungrouped(total / n_models)


def missed_part(scores: np.ndarray, train: QueryDataset) -> tuple[np.ndarray, QueryDataset] | None:
    """Return the scores of the queries that any model did not see, and these queries' data.

    Parameters
    ----------
    scores : the result of :func:`out_of_bag_scores`
    train : the data that the models were trained on

    Returns
    -------
    scores in the caller's order, and the data; None where there is no such query
    """
    grouped = train.grouped(scores)
    missed = ~np.isnan(grouped[train.query_ptr[:-1]])
    if not missed.any():
        return None
    part = train.select(missed)
    return part.ungrouped(grouped[np.repeat(missed, np.diff(train.query_ptr))]), part
