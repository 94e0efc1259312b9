"""Judgements from clicks and features: a prior of pairs that was learned from other queries."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from rankgrove.clicks.choosing import calibrated_examinations, choose_click_model
from rankgrove.clicks.judgements import ClickJudgements, judgements
from rankgrove.clicks.learned import estimated_strength
from rankgrove.clicks.training_data import rows_of_pairs
from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.random import string_keys
from rankgrove.rankers.trees.mart import MART
from rankgrove.validation import check_integer, check_real, counted

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

    Two rankers learn from features: one predicts clicks per examination, with the expected
    examinations as weights, one clicks per impression, which is what the old ranking thought plus
    what users did. A third, small one combines both predictions and the mean position. All predict
    queries that they were not trained on. As the prior of a click model the prediction takes the
    place of one mean for all pairs: ``model.fit(log, prior=rg.click_prior(log, data, model))``.

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
    model = _click_model(model, owner)
    if not hasattr(model, "attractiveness_"):
        model.fit(log)
    return _prior(log, data, model, calibrated_examinations(model, log), ranker, n_folds, seed)


def _prior(
    log: ClickLog,
    data: QueryDataset,
    model: Any,
    examined: np.ndarray,
    ranker: Any,
    n_folds: int,
    seed: int,
) -> np.ndarray:
    """Return the prior of pairs with these expected examinations."""
    owner = "click_prior"
    row = rows_of_pairs(log, data)
    used = np.flatnonzero((row >= 0) & (examined > 0))
    used = used[np.argsort(row[used], kind="stable")]
    queries, of_used = np.unique(log.pair_query[used], return_inverse=True)
    if queries.size < n_folds:
        raise DataError(
            f"{owner} needs at least one query per fold. Got "
            f"{counted(queries.size, 'query', 'queries')} with documents of the data for "
            f"n_folds={n_folds}."
        )
    ids = [str(token) for token in log.query_ids[queries].tolist()]
    part = assign_parts(string_keys(ids), n_folds, seed, owner)[of_used]
    strength = float(model.prior_strength_)
    clicks = np.bincount(log.pair[log.click], minlength=log.n_pairs)[used]
    shown = np.bincount(log.pair, minlength=log.n_pairs)[used]
    n = examined[used]
    chosen = row[used]
    inside = chosen if data.rows is None else np.arange(data.features.shape[0])[data.rows][chosen]
    ids_of_data, of_row = np.unique(data.query_of_row[chosen], return_inverse=True)

    def rows(label: np.ndarray, weight: np.ndarray) -> QueryDataset:
        return QueryDataset.from_parts(
            data.features,
            label,
            data.query_ids[ids_of_data],
            of_row,
            rows=inside,
            weight=weight,
            feature_names=data.given_names,
            absent=data.absent,
            categories=data.categories,
        )

    rate, weight = clicks / n, n / (n + strength)
    regression = _regression() if ranker is None else ranker
    columns = [
        _of_other_parts(regression, rows(rate, weight), part),
        _of_other_parts(regression, rows(clicks / shown, shown / (shown + strength)), part),
        _mean_place(log)[used],
    ]
    combined = QueryDataset(np.column_stack(columns), rate, of_used, weight=weight)
    prior = np.full(log.n_pairs, float(np.average(rate, weights=weight)))
    prior[used] = _of_other_parts(_regression(), combined, part)
    return np.clip(prior, LEAST, 1 - LEAST)


def smoothed_judgements(
    log: ClickLog,
    data: QueryDataset,
    model: Any = None,
    *,
    strength: float = 3.0,
    ranker: Any = None,
    n_folds: int = 5,
    seed: int = 0,
    **options: Any,
) -> ClickJudgements:
    """Make judgements from clicks and features, to train a ranker on.

    A label is clicks per expected examination, shrunk to the prior of :func:`click_prior`. Pairs
    with few examinations keep about the label that their features suggest, so that no pair is left
    out, and a ranker of these labels has less noise to learn than one of clicks. Examinations are
    those of a click model, times a factor per position that makes them right for pairs that were
    shown at several positions.

    Parameters
    ----------
    log : the sessions
    data : the features of the documents, as for :func:`click_prior`
    model : a click model; None: that of :func:`choose_click_model`
    strength : factor of the prior's estimated strength. 1 gives every label its least expected
        error; a ranker learns better from smoother labels
    ranker, n_folds, seed : as those of :func:`click_prior`
    options : parameters of :func:`judgements`; by default ``labels="soft"``, and one impression is
        enough. There are no intervals

    Returns
    -------
    ClickJudgements

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, n_docs=8, seed=1)
    >>> log = rg.simulate_clicks(data, data.column(1), sessions=2000, noise=1.0, seed=1)
    >>> judged = rg.smoothed_judgements(log, data, rg.PositionBased())
    >>> ranker = rg.LambdaMART(n_trees=10).fit(judged.dataset(data))
    """
    check_real("strength", "smoothed_judgements", strength, above=0)
    if model is None:
        model = choose_click_model(log, seed=seed).model
    else:
        model = copy.deepcopy(_click_model(model, "smoothed_judgements"))
    if not hasattr(model, "attractiveness_"):
        model.fit(log)
    examined = calibrated_examinations(model, log)
    prior = _prior(log, data, model, examined, ranker, n_folds, seed)
    clicks = np.bincount(log.pair[log.click], minlength=log.n_pairs)
    exposures = np.stack([clicks, examined, np.zeros(log.n_pairs)])
    mass = strength * estimated_strength(exposures, prior)
    model.attractiveness_ = np.minimum((clicks + mass * prior) / (examined + mass), 1.0)
    model.prior_mean_, model.prior_strength_ = prior, mass
    settings: dict[str, Any] = {"labels": "soft", "min_impressions": 1} | options
    return judgements(log, model, samples=0, **settings)


def _click_model(model: Any, owner: str) -> Any:
    """Return a click model, checked."""
    if model is None:
        from rankgrove.clicks.position_based import PositionBased

        return PositionBased()
    if not hasattr(model, "fit") or not hasattr(model, "attractiveness"):
        raise ParameterError(
            f"The 'model' parameter of {owner} must be a click model, such as "
            f"rg.PositionBased(). Got {type(model).__name__} instead."
        )
    return model


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
