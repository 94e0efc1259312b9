"""How far labels from clicks should be corrected, judged by the clicks on held-out queries."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.random import string_keys
from rankgrove.rankers.trees.boosted import NO_TREE
from rankgrove.rankers.trees.lambdamart import LambdaMART

N_FOLDS = 3
MEASURE = "ndcg@10"


def least_correction(
    labels: Mapping[float, QueryDataset], judged: QueryDataset, seed: int, owner: str
) -> float:
    """Return the smallest correction whose labels train about as good a ranker as the best.

    Every set of labels trains a ranker on two thirds of the queries, which ranks the others; the
    measure is NDCG@10 by the labels of `judged`. "About as good" is one standard error of the
    difference over queries: a correction that held-out clicks do not ask for only adds noise, and
    throws away what the old ranking knew.

    Parameters
    ----------
    labels : the same rows with labels of every correction
    judged : the rows with labels that say how attractive they are as well as can be told
    """
    ids = [str(token) for token in judged.query_ids.tolist()]
    part = assign_parts(string_keys(ids), N_FOLDS, seed, owner)
    of_row = part[judged.query_of_row]
    values = {}
    for correction, rows in labels.items():
        scores = np.empty(judged.n_rows)
        for k in range(N_FOLDS):
            with without_notes():
                trained = _ranker().fit(rows.select(np.flatnonzero(part != k)))
            scores[of_row == k] = trained.predict(rows.select(np.flatnonzero(part == k)))
        values[correction] = evaluate(scores, judged, MEASURE).per_query[MEASURE]
    best = max(values, key=lambda correction: float(np.nanmean(values[correction])))
    for correction in sorted(values):
        behind = values[best] - values[correction]
        error = float(np.nanstd(behind, ddof=1)) / np.sqrt(np.isfinite(behind).sum())
        if float(np.nanmean(behind)) <= error:
            return correction
    return best


@contextmanager
def without_notes() -> Iterator[None]:
    """Keep back the note that no tree could be grown: of rankers that the user did not make."""

    def wanted(record: logging.LogRecord) -> bool:
        return record.msg != NO_TREE

    log = logging.getLogger("rankgrove")
    log.addFilter(wanted)
    try:
        yield
    finally:
        log.removeFilter(wanted)


def _ranker() -> LambdaMART:
    return LambdaMART(MEASURE, n_trees=100, n_leaves=15, learning_rate=0.1)
