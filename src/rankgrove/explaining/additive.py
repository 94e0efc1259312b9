"""Additive rankers: scores that are sums over features, decomposed into these sums."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import NamedTuple, NoReturn

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.explaining.tree_shap import dense, leaf_cover, tree_contributions
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.rankers.auto.auto import AutoRanker
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.ensembles.calibrated import CalibratedRanker
from rankgrove.rankers.ensembles.combination import CombinedRanker
from rankgrove.rankers.ensembles.prepared import PreparedRanker
from rankgrove.rankers.ensembles.stacking import StackedRanker
from rankgrove.rankers.foreign_models import TreeRanker
from rankgrove.rankers.linear.data import scaled_rows
from rankgrove.rankers.linear.linear_predictor import LinearPredictor
from rankgrove.rankers.nets.net import NetRanker
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.tree_model import TreeModel

_REMEDY = "rg.partial_dependence shows how its scores follow a feature"


class Sum(NamedTuple):
    """Decomposed scores: a base per document, and a contribution per document and feature."""

    base: np.ndarray
    parts: np.ndarray

    def times(self, factor: float | np.ndarray) -> Sum:
        """Return the sum times a factor, which is one number or one per document."""
        return Sum(self.base * factor, self.parts * np.reshape(factor, (-1, 1)))

    def plus(self, other: Sum) -> Sum:
        """Return the sum of two scores."""
        return Sum(self.base + other.base, self.parts + other.parts)


class Context(NamedTuple):
    """The data that contributions are computed on.

    data : the documents to explain
    all_data : the data set that contains them; linear models take their means from it
    background : other data for these means and for the row counts of tree nodes, or None
    """

    data: QueryDataset
    all_data: QueryDataset
    background: QueryDataset | None
    n_threads: int | None


@singledispatch
def taken_apart(model: object, at: Context) -> Sum:
    """Return the score of every document, in the caller's order, as a sum over features.

    How a kind of ranker is decomposed is registered with its class below; subclasses inherit it.
    """
    raise ParameterError(
        f"explain needs a trained rankgrove ranker, whose sums it knows. Got a "
        f"{type(model).__name__}."
    )


@taken_apart.register(Ranker)
def _unknown(model: Ranker, at: Context) -> Sum:
    _refuse(type(model).__name__, "its form is not known here")


def _refuse(name: str, reason: str) -> NoReturn:
    article = "An" if name[0] in "AEIOU" else "A"
    raise DataError(
        f"{article} {name} cannot be explained as a sum over features: {reason}. {_REMEDY}."
    )


def _trees(model: TreeModel, at: Context) -> Sum:
    trees = model.ensemble_
    if trees.n_columns != 1:
        _refuse(
            type(model).__name__,
            f"its score is the expected label, not a sum of its {trees.n_columns} sums of trees",
        )
    cover = leaf_cover(trees, at.background, at.n_threads)
    features = dense(at.data.features, at.data.rows)
    base, parts = tree_contributions(trees, features, cover, at.n_threads)
    return Sum(np.full(at.data.n_rows, base), parts)


@taken_apart.register(TreeRanker)
def _foreign(model: TreeRanker, at: Context) -> Sum:
    return _trees(model.widened(at.data), at)


@taken_apart.register(BoostedRanker)
def _boosted(model: BoostedRanker, at: Context) -> Sum:
    trees = _trees(model, at)
    if getattr(model, "submodel_", None) is None:
        return trees
    if isinstance(model.submodel_, str):  # scores that come with the data
        below = Sum(np.array(at.data.base_score), np.zeros_like(trees.parts))
    else:
        below = taken_apart(model.submodel_, at)
    return below.times(model.submodel_weight_).plus(trees)


@taken_apart.register(LinearPredictor)
def _linear(model: LinearPredictor, at: Context) -> Sum:
    """Take w (x - mean of x) for every scaled feature; with thresholds, its step minus the mean."""
    linear = model.widened(at.data).linear_
    reference = at.all_data if at.background is None else at.background
    parts = _linear_terms(linear, at.data, at.n_threads)
    mean = _column_means(_linear_terms(linear, reference, at.n_threads))
    base = math.fsum([linear.intercept, *mean.tolist()])
    return Sum(np.full(at.data.n_rows, base), parts - mean)


def _linear_terms(linear: Linear, data: QueryDataset, n_threads: int | None) -> np.ndarray:
    """Return the terms of every document's score, one per feature, in the caller's order."""
    features, rows = scaled_rows(data, linear.scaling, n_threads)
    x = dense(features, rows)
    if linear.has_thresholds:
        terms = np.empty(x.shape)
        for j, (thresholds, weights) in enumerate(linear.by_feature()):
            steps = np.concatenate([[0.0], np.cumsum(weights)])
            column = np.where(np.isnan(x[:, j]), -np.inf, x[:, j])  # missing: above no threshold
            terms[:, j] = steps[np.searchsorted(thresholds, column, side="left")]
    else:
        terms = _standardised(x, linear.shift, linear.scale > 0.0) * linear.raw_weights()[0]
    return data.ungrouped(terms)


def _standardised(x: np.ndarray, shift: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return x - shift; 0 where a value is missing or its feature is not used."""
    centred = x.astype(np.float64) - shift
    return np.where(np.isnan(centred) | ~used, 0.0, centred)


@taken_apart.register(NetRanker)
def _net(model: NetRanker, at: Context) -> Sum:
    net = model.network_
    if net.hidden:
        _refuse(
            f"{type(model).__name__} with hidden units",
            "their outputs are not sums over features, and Shapley values of a net with n features "
            "take 2^n evaluations",
        )
    reference = at.all_data if at.background is None else at.background
    terms = [_net_terms(net, dense(data.features, data.rows)) for data in (at.data, reference)]
    mean = _column_means(terms[1])
    return Sum(np.full(at.data.n_rows, math.fsum(mean.tolist())), terms[0] - mean)


def _net_terms(net: Network, x: np.ndarray) -> np.ndarray:
    """Return the terms of a net without hidden units, one per feature."""
    return _standardised(x, net.mean, net.scale != 0.0) * (net.scale * net.output)


@taken_apart.register(CombinedRanker)
def _combined(model: CombinedRanker, at: Context) -> Sum:
    return _weighted([taken_apart(ranker, at) for ranker in model.rankers_], model.weights_)


@taken_apart.register(StackedRanker)
def _stacked(model: StackedRanker, at: Context) -> Sum:
    net = model.network_
    if net.hidden:
        _refuse("StackedRanker with hidden units", "their outputs are not sums over rankers")
    total = _weighted([taken_apart(ranker, at) for ranker in model.rankers_], model.weights_)
    return Sum(total.base - float(model.weights_ @ net.mean), total.parts)


@taken_apart.register(AutoRanker)
def _searched(model: AutoRanker, at: Context) -> Sum:
    return taken_apart(model.model_, at)


@taken_apart.register(CalibratedRanker)
def _calibrated(model: CalibratedRanker, at: Context) -> Sum:
    return taken_apart(model.ranker_, at)


@taken_apart.register(BaggedRanker)
def _bag(model: BaggedRanker, at: Context) -> Sum:
    """Take the mean of the models' sums, each scaled within a query as the bag scales it.

    The least and largest scores of the query are held fixed, which makes the scaling linear.
    """
    if model.combine == "borda":
        _refuse(
            "BaggedRanker that combines by borda",
            "it counts the documents that a model ranks lower. Explain one of its models_ instead, "
            'or score by a bag with combine="mean"',
        )
    sums = [taken_apart(member, at) for member in model.models_]
    if model.combine == "minmax":
        columns = model.submodel_scores(at.data, n_threads=at.n_threads)
        sums = [_scaled(total, s, at.data) for total, s in zip(sums, columns, strict=True)]
    return _weighted(sums, model.weights_ / model.weights_.sum())


def _scaled(total: Sum, scores: np.ndarray, data: QueryDataset) -> Sum:
    """Return the sum of scores scaled to 0 ... 1 within every query (all equal: 0)."""
    grouped, starts = data.grouped(scores), data.query_ptr[:-1]
    low, high = (f.reduceat(grouped, starts) for f in (np.minimum, np.maximum))
    span = high - low
    factor = np.divide(1.0, span, out=np.zeros(span.size), where=span > 0)
    of_row = data.query_of_row
    return Sum(total.base - low[of_row], total.parts).times(factor[of_row])


@taken_apart.register(PreparedRanker)
def _prepared(model: PreparedRanker, at: Context) -> Sum:
    """Take the sum of the inner ranker, which uses a subset of the data's features."""
    background = None if at.background is None else model.prepared(at.background)
    inside = Context(model.prepared(at.data), model.prepared(at.all_data), background, at.n_threads)
    total = taken_apart(model.ranker_, inside)
    parts = np.zeros((at.data.n_rows, at.data.n_features))
    for k, j in enumerate(model.origins().tolist()):  # of a feature, its indicators, normalised
        parts[:, j] += total.parts[:, k]
    return Sum(total.base, parts)


def _weighted(sums: list[Sum], weights: np.ndarray) -> Sum:
    total = sums[0].times(float(weights[0]))
    for part, weight in zip(sums[1:], weights[1:].tolist(), strict=True):
        total = total.plus(part.times(weight))
    return total


def _column_means(terms: np.ndarray) -> np.ndarray:
    """Return the mean of every column, rounded once: the order of rows does not matter."""
    return np.array([math.fsum(column) / len(column) for column in terms.T.tolist()])
