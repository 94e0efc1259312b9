"""Judgements from clicks and features: a prior of pairs that was learned from other queries."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from rankgrove.clicks.choosing import calibrated_examinations, choose_click_model
from rankgrove.clicks.judgements import ClickJudgements, judgements
from rankgrove.clicks.learned import estimated_strength
from rankgrove.clicks.training_data import rows_of_pairs
from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.operations.click_correction import N_FOLDS, least_correction, without_notes
from rankgrove.random import string_keys
from rankgrove.rankers.trees.mart import MART
from rankgrove.validation import check_integer, check_real, counted

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

LEAST = 0.005  # priors are at least this far from 0 and 1
FEWEST = 1e-6  # expected examinations of a pair that was shown, at least
CORRECTIONS = (0.5, 1.0)


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
    examinations as weights, one clicks per impression, which contains both the old ranking's order
    and the users' behaviour. A third, small one combines both predictions and the mean position.
    All predict queries that they were not trained on. As the prior of a click model the
    prediction takes the place of one mean for all pairs:
    ``model.fit(log, prior=rg.click_prior(log, data, model))``.

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
    pairs = _Pairs(log, data, model, ranker, (n_folds, seed, owner))
    return pairs.prior(calibrated_examinations(model, log))


class _Pairs:
    """The pairs of a log that were shown and are in the data, in parts of queries.

    Parameters
    ----------
    log, data, model, ranker : as for :func:`click_prior`, the model is fitted
    folds : number of parts, seed of their draw, and the caller's name
    """

    def __init__(
        self,
        log: ClickLog,
        data: QueryDataset,
        model: Any,
        ranker: Any,
        folds: tuple[int, int, str],
    ) -> None:
        n_folds, seed, owner = folds
        row = rows_of_pairs(log, data)
        self.log, self.data = log, data
        self.clicks = np.bincount(log.pair[log.click], minlength=log.n_pairs)
        self.shown = np.bincount(log.pair, minlength=log.n_pairs)
        used = np.flatnonzero((row >= 0) & (self.shown > 0))
        used = used[np.argsort(row[used], kind="stable")]
        queries, self.of_used = np.unique(log.pair_query[used], return_inverse=True)
        if queries.size < n_folds:
            raise DataError(
                f"{owner} needs at least one query per fold. Got "
                f"{counted(queries.size, 'query', 'queries')} with documents of the data for "
                f"n_folds={n_folds}."
            )
        ids = [str(token) for token in log.query_ids[queries].tolist()]
        self.part = assign_parts(string_keys(ids), n_folds, seed, owner)[self.of_used]
        self.used, self.chosen = used, row[used]
        self.strength = float(model.prior_strength_)
        self.regression = _regression() if ranker is None else ranker
        self.by_impressions: np.ndarray | None = None

    def rows(self, label: np.ndarray, weight: np.ndarray | None = None) -> QueryDataset:
        """Return the features of the pairs, with these labels and weights."""
        data, chosen = self.data, self.chosen
        whole = np.arange(data.features.shape[0])
        queries, of_row = np.unique(data.query_of_row[chosen], return_inverse=True)
        return QueryDataset.from_parts(
            data.features,
            label,
            data.query_ids[queries],
            of_row,
            rows=chosen if data.rows is None else whole[data.rows][chosen],
            weight=weight,
            feature_names=data.given_names,
            absent=data.absent,
            categories=data.categories,
        )

    def prior(self, examined: np.ndarray) -> np.ndarray:
        """Return the prior of all pairs of the log, with these expected examinations."""
        used, n = self.used, np.maximum(examined[self.used], FEWEST)
        rate, weight = self.clicks[used] / n, n / (n + self.strength)
        columns = [
            _of_other_parts(self.regression, self.rows(rate, weight), self.part),
            self._of_impressions(),
            _mean_place(self.log)[used],
        ]
        combined = QueryDataset(np.column_stack(columns), rate, self.of_used, weight=weight)
        prior = np.full(self.log.n_pairs, float(np.average(rate, weights=weight)))
        prior[used] = _of_other_parts(_regression(), combined, self.part)
        return np.clip(prior, LEAST, 1 - LEAST)

    def _of_impressions(self) -> np.ndarray:
        """Return predicted clicks per impression."""
        if self.by_impressions is None:
            shown = self.shown[self.used]
            rows = self.rows(self.clicks[self.used] / shown, shown / (shown + self.strength))
            self.by_impressions = _of_other_parts(self.regression, rows, self.part)
        return self.by_impressions


class _Smoothed(NamedTuple):
    """What labels are made of: examinations, the prior, and its estimated strength."""

    clicks: np.ndarray
    examined: np.ndarray
    prior: np.ndarray
    mass: float

    def label(self, strength: float) -> np.ndarray:
        """Return labels, with this factor of the prior's strength."""
        mass = strength * self.mass
        return np.asarray(
            np.minimum((self.clicks + mass * self.prior) / (self.examined + mass), 1.0)
        )


def _smoothed(pairs: _Pairs, examined: np.ndarray, correction: float) -> _Smoothed:
    """Return what labels of a correction are made of."""
    share = np.divide(examined, pairs.shown, out=np.zeros(examined.size), where=pairs.shown > 0)
    corrected = pairs.shown * share**correction
    prior = pairs.prior(corrected)
    exposures = np.stack([pairs.clicks, corrected, np.zeros(corrected.size)])
    return _Smoothed(pairs.clicks, corrected, prior, estimated_strength(exposures, prior))


def smoothed_judgements(
    log: ClickLog,
    data: QueryDataset,
    model: Any = None,
    *,
    strength: float = 6.0,
    correction: float | None = None,
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

    Where the old ranking was good, its order is evidence too, and the full correction takes it away
    together with the bias. So the correction may be partial: impressions count by a power of how
    often they were examined. The power is 1/2 if its labels train as good a ranker as those of
    power 1, or one that is not behind by more than a standard error, in a cross-validation over
    queries. Held-out queries are judged by fully corrected labels, whatever the ranker was trained
    on.

    Parameters
    ----------
    log : the sessions
    data : the features of the documents, as for :func:`click_prior`
    model : a click model; None: that of :func:`choose_click_model`
    strength : factor of the prior's estimated strength. 1 gives every label its least expected
        error; a ranker learns better from smoother labels
    correction : the power of examinations: 1 corrects fully, 0 not at all; None: chosen as
        described, where fewer than three queries have documents of different labels 1
    ranker, n_folds, seed : as those of :func:`click_prior`
    options : parameters of :func:`judgements`; by default ``labels="soft"``, and one impression is
        enough. There are no intervals

    Returns
    -------
    ClickJudgements
        Its ``correction`` is the power

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, n_docs=8, seed=1)
    >>> log = rg.simulate_clicks(data, data.column(1), sessions=2000, noise=1.0, seed=1)
    >>> judged = rg.smoothed_judgements(log, data, rg.PositionBased(), correction=1)
    >>> ranker = rg.LambdaMART(n_trees=10).fit(judged.dataset(data))
    """
    owner = "smoothed_judgements"
    check_real("strength", owner, strength, above=0)
    if correction is not None:
        check_real("correction", owner, correction, low=0, high=1)
    check_integer("n_folds", owner, n_folds, low=2)
    check_integer("seed", owner, seed)
    if model is None:
        model = choose_click_model(log, seed=seed).model
    else:
        model = copy.deepcopy(_click_model(model, owner))
    if not hasattr(model, "attractiveness_"):
        model.fit(log)
    examined = calibrated_examinations(model, log)
    pairs = _Pairs(log, data, model, ranker, (n_folds, seed, owner))
    if correction is None:
        found = {power: _smoothed(pairs, examined, power) for power in CORRECTIONS}
        labels = {p: pairs.rows(each.label(strength)[pairs.used]) for p, each in found.items()}
        judged = pairs.rows(found[1.0].label(1.0)[pairs.used])
        correction = 1.0
        if _n_orders(judged) >= N_FOLDS:
            correction = least_correction(labels, judged, seed, owner)
        made = found[correction]
    else:
        made = _smoothed(pairs, examined, correction)
    model.attractiveness_ = made.label(strength)
    model.prior_mean_, model.prior_strength_ = made.prior, strength * made.mass
    settings: dict[str, Any] = {"labels": "soft", "min_impressions": 1} | options
    return replace(judgements(log, model, samples=0, **settings), correction=correction)


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


def _n_orders(judged: QueryDataset) -> int:
    """Return how many queries have documents of different labels."""
    best, worst = np.full(judged.n_queries, -np.inf), np.full(judged.n_queries, np.inf)
    np.maximum.at(best, judged.query_of_row, judged.y)
    np.minimum.at(worst, judged.query_of_row, judged.y)
    return int(np.count_nonzero(best > worst))


def _regression() -> MART:
    return MART("squared", n_trees=100, n_leaves=7, learning_rate=0.05)


def _of_other_parts(ranker: Any, rows: QueryDataset, part: np.ndarray) -> np.ndarray:
    """Return predictions of rows by rankers that were trained on the other parts."""
    out = np.empty(part.size)
    of_query = np.empty(rows.n_queries, np.int64)
    of_query[rows.query_of_row] = part
    for k in np.unique(part).tolist():
        known = rows.select(np.flatnonzero(of_query != k))
        if np.ptp(known.y) == 0:  # nothing to learn
            out[part == k] = known.y[0]
            continue
        with without_notes():
            trained = clone(ranker).fit(known)
        out[part == k] = trained.predict(rows.select(np.flatnonzero(of_query == k)))
    return out


def _mean_place(log: ClickLog) -> np.ndarray:
    """Return the mean position of every pair; one below the last where it was not shown."""
    sessions = np.bincount(log.session_query, minlength=log.n_queries)[log.pair_query]
    shown = np.bincount(log.pair, minlength=log.n_pairs)
    places = np.bincount(log.pair, log.position, minlength=log.n_pairs)
    below = np.maximum(sessions - shown, 0) * (log.n_positions + 1)
    return np.asarray((places + below) / np.maximum(sessions, 1))
