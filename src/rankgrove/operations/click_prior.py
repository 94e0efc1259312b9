"""How attractive documents should be by their features and by the old ranking: a prior of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from rankgrove.clicks.choosing import expected_examinations
from rankgrove.clicks.training_data import rows_of_pairs
from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.random import string_keys
from rankgrove.rankers.trees.mart import MART
from rankgrove.validation import check_integer, counted

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

LEAST = 0.005  # priors are at least this far from 0 and 1


def click_prior(
    log: ClickLog,
    data: QueryDataset,
    model: Any = None,
    *,
    ranker: Any = None,
    n_folds: int = 5,
    seed: int = 0,
) -> np.ndarray:
    """Predict the attractiveness of every pair from the clicks on other queries.

    The first ranker predicts clicks per examination from the features, with the expected
    examinations as weights. The second, a small one, corrects the prediction by how high the old
    ranking showed the document: an old ranking knows something about relevance too. Both predict
    queries that they were not trained on. As the prior of a click model the prediction takes the
    place of one mean for all: ``model.fit(log, prior=rg.click_prior(log, data, model))``.

    Parameters
    ----------
    log : the sessions
    data : the features of the documents, with the ids of the log, as for :func:`click_data`.
        Labels are not used
    model : a click model, fitted to the log or new; None: ``PositionBased()``
    ranker : a regression, trained on weighted rows; None: ``MART("squared")`` with 100 trees of 7
        leaves and a learning rate of 0.05
    n_folds : the number of parts of queries
    seed : of the draw of the parts

    Returns
    -------
    ndarray of float64, one per pair of the log, between 0.005 and 0.995

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, n_docs=8, seed=1)
    >>> log = rg.simulate_clicks(data, data.column(1), sessions=2000, noise=1.0, seed=1)
    >>> model = rg.PositionBased()
    >>> prior = rg.click_prior(log, data, model)
    >>> judged = rg.judgements(log, model.fit(log, prior=prior), labels="soft", samples=0)
    """
    owner = "click_prior"
    check_integer("n_folds", owner, n_folds, low=2)
    check_integer("seed", owner, seed)
    if model is None:
        from rankgrove.clicks.position_based import PositionBased

        model = PositionBased()
    elif not hasattr(model, "fit") or not hasattr(model, "attractiveness"):
        raise ParameterError(
            f"The 'model' parameter of {owner} must be a click model, such as "
            f"rg.PositionBased(). Got {type(model).__name__} instead."
        )
    if not hasattr(model, "attractiveness_"):
        model.fit(log)
    examined = expected_examinations(model, log)
    row = rows_of_pairs(log, data)
    used = np.flatnonzero((row >= 0) & (examined > 0))
    used = used[np.argsort(row[used], kind="stable")]
    queries, of_used = np.unique(log.pair_query[used], return_inverse=True)
    if queries.size < n_folds:
        raise DataError(
            f"{owner} needs at least one query per fold. Got {counted(queries.size, 'query', 'queries')} "
            f"with documents of the data for n_folds={n_folds}."
        )
    ids = [str(token) for token in log.query_ids[queries].tolist()]
    part = assign_parts(string_keys(ids), n_folds, seed, owner)[of_used]
    clicks = np.bincount(log.pair[log.click], minlength=log.n_pairs)[used]
    rate = clicks / examined[used]
    weight = examined[used] / (examined[used] + float(model.prior_strength_))
    chosen = row[used]
    inside = chosen if data.rows is None else np.arange(data.features.shape[0])[data.rows][chosen]
    rows = QueryDataset.from_parts(
        data.features,
        rate,
        data.query_ids[np.unique(data.query_of_row[chosen])],
        np.unique(data.query_of_row[chosen], return_inverse=True)[1],
        rows=inside,
        weight=weight,
        feature_names=data.given_names,
        absent=data.absent,
        categories=data.categories,
    )
    first = _of_other_parts(_regression() if ranker is None else ranker, rows, part)
    columns = np.column_stack([first, _mean_place(log)[used]])
    second = _of_other_parts(
        _regression(), QueryDataset(columns, rate, of_used, weight=weight), part
    )
    prior = np.full(log.n_pairs, float(np.average(rate, weights=weight)))
    prior[used] = second
    return np.clip(prior, LEAST, 1 - LEAST)


def _regression() -> MART:
    return MART("squared", n_trees=100, n_leaves=7, learning_rate=0.05)


def _of_other_parts(ranker: Any, rows: QueryDataset, part: np.ndarray) -> np.ndarray:
    """Return predictions of rows by rankers that were trained on the other parts."""
    out = np.empty(part.size)
    of_query = np.empty(rows.n_queries, np.int64)
    of_query[rows.query_of_row] = part
    for k in np.unique(part).tolist():
        trained = clone(ranker).fit(rows.select(np.flatnonzero(of_query != k)))
        out[part == k] = trained.predict(rows.select(np.flatnonzero(of_query == k)))
    return out


def _mean_place(log: ClickLog) -> np.ndarray:
    """Return the mean position of every pair; one below the last where it was not shown."""
    sessions = np.bincount(log.session_query, minlength=log.n_queries)[log.pair_query]
    shown = np.bincount(log.pair, minlength=log.n_pairs)
    places = np.bincount(log.pair, log.position, minlength=log.n_pairs)
    below = np.maximum(sessions - shown, 0) * (log.n_positions + 1)
    return np.asarray((places + below) / np.maximum(sessions, 1))
