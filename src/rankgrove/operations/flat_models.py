"""One model of a ranker, as formats take it: a sum of trees, a linear model or a net."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

import numpy as np

from rankgrove.data.categories import Categories
from rankgrove.errors import ParameterError
from rankgrove.formats.write import Model
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import BY_QUERY, Linear
from rankgrove.model.mlp import Network
from rankgrove.model.tree import Tree
from rankgrove.operations.unprepared import unprepared
from rankgrove.operations.wide_nets import are_alike, fill_alike, net_sum
from rankgrove.rankers.auto.auto import AutoRanker
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.bag_scores import summed
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.ensembles.calibrated import CalibratedRanker
from rankgrove.rankers.ensembles.combination import CombinedRanker
from rankgrove.rankers.ensembles.early_exit import EarlyExitRanker
from rankgrove.rankers.ensembles.prepared import PreparedRanker
from rankgrove.rankers.ensembles.stacking import StackedRanker
from rankgrove.rankers.trees.mcrank import McRank
from rankgrove.validation import with_article


def flat_model(ranker: Ranker) -> Model:
    """Return a ranker's score as trees, a linear model or a net; refuse other rankers."""
    parts = _parts(ranker, 1.0)
    if len(parts) == 1 and parts[0][0] == 1.0:
        return _within(parts[0][1], ranker.n_features_in_)
    weights = np.array([weight for weight, _ in parts])
    linear = [model for _, model in parts if isinstance(model, Linear)]
    if len(linear) == len(parts):
        return _linear_sum(linear, weights, ranker.n_features_in_)
    nets = [model for _, model in parts if isinstance(model, Network)]
    if len(nets) == len(parts) and are_alike(nets):
        if may_have_learned_missing(ranker) and not fill_alike(nets):
            raise ParameterError(
                f"The nets in this {type(ranker).__name__} take different numbers for missing "
                "values, the means of their own training queries, so that they cannot be joined. "
                "Fill missing values before training, or convert the nets one by one."
            )
        return net_sum(nets, weights)
    if not all(isinstance(model, Ensemble) and model.n_columns == 1 for _, model in parts):
        shown = ", ".join(f"{weight:.6g}" for weight in weights[:5])
        raise ParameterError(
            f"The score of this {type(ranker).__name__} is a sum of models that are neither all "
            "trees nor all linear, nor nets of one activation and depth, which no format can hold. "
            f"Convert them one by one, and add their scores with the weights {shown}"
            f"{', ...' if weights.size > 5 else ''}."
        )
    ensembles = [model for _, model in parts if isinstance(model, Ensemble)]
    _check_codes(ranker, {}, ranker)
    return summed(ensembles, weights, ranker.n_features_in_)


def may_have_learned_missing(model: object) -> bool:
    """Return whether a ranker or one of its members may have seen missing values."""
    if not isinstance(model, Ranker):
        return True
    inside = any(may_have_learned_missing(member) for member in model.members())
    if model.is_bag or model.combined():
        return inside
    return inside or model.saw_missing_ is not False


def _linear_sum(models: Sequence[Linear], weights: np.ndarray, n_features: int) -> Linear:
    """Return the sum of linear models, each times its weight.

    A missing value counts as the mean of the fills of all models, weighted by what the models make
    of it, so that it gives their sum too.
    """
    total, filled, intercept = np.zeros(n_features), np.zeros(n_features), 0.0
    for model, weight in zip(models, weights.tolist(), strict=True):
        own = weight * model.raw_weights()[0]
        total[: own.size] += own
        filled[: own.size] += own * model.shift
        intercept += weight * model.intercept
    fill = np.divide(filled, total, out=np.zeros(n_features), where=total != 0.0)
    return Linear(
        n_features,
        total,
        "standard" if fill.any() else "none",
        fill,
        np.ones(n_features),
        np.empty(0, np.float32),
        np.empty(0, np.int64),
        intercept - float(filled[total == 0.0].sum()),
    )


def _check_codes(ranker: object, known: Categories, whole: Ranker) -> None:
    """Refuse rankers whose codes stand for different categories: their trees cannot be joined.

    known : inout, the names of every column so far; one model may know more of them than another
    """
    if not isinstance(ranker, Ranker):
        return
    own = {} if ranker.combined() else ranker.categories_  # a combination has no trees of its own
    for j, names in own.items():
        before = known.setdefault(j, names)
        first, second = sorted((before or (), names or ()), key=len)
        if second[: len(first)] != first:
            raise ParameterError(
                f"The models in this {type(whole).__name__} have different codes for the "
                f"categories of {whole._names()[j]!r}, so that their trees cannot be joined. Train "
                "them on the same data set, or convert them one by one."
            )
        known[j] = second or None
    for member in ranker.members():
        _check_codes(member, known, whole)


def _within(model: Model, n_features: int) -> Model:
    if isinstance(model, Ensemble) and model.n_features != n_features:
        return replace(model, n_features=n_features)
    return model


@singledispatch
def _parts(ranker: object, weight: float) -> list[tuple[float, Model]]:
    """Return the models whose weighted sum is a ranker's score; registered by class below."""
    kind = type(ranker).__name__
    raise ParameterError(f"A {kind} is not a rankgrove ranker: it cannot be converted.")


@_parts.register(BaggedRanker)
def _of_bag(bag: BaggedRanker, weight: float) -> list[tuple[float, Model]]:
    if bag.combine != "mean":
        raise ParameterError(
            f"The bag scales its models' scores within every query (combine="
            f"{bag.combine!r}), which no format can express. Train it with combine='mean' "
            "(its scores change, and often little else); or write the plain mean of its "
            "models, a different ranking, with convert(combine='mean') (--combine mean)."
        )
    shares = weight * bag.weights_ / bag.weights_.sum()
    return [p for model, w in zip(bag.models_, shares, strict=True) for p in _parts(model, w)]


@_parts.register(AutoRanker)
def _of_search(ranker: AutoRanker, weight: float) -> list[tuple[float, Model]]:
    try:
        return _parts(ranker.model_, weight)
    except ParameterError as error:
        raise ParameterError(
            f"{error} AutoRanker(exportable=True) (rankgrove auto --exportable) keeps to models "
            "that can be converted."
        ) from None


@_parts.register(CalibratedRanker)
def _of_calibrated(ranker: CalibratedRanker, weight: float) -> list[tuple[float, Model]]:
    return _parts(ranker.ranker_, weight)


@_parts.register(EarlyExitRanker)
def _of_early_exit(ranker: EarlyExitRanker, weight: float) -> list[tuple[float, Model]]:
    return _parts(ranker.ranker_, weight)


@_parts.register(CombinedRanker)
def _of_combination(ranker: CombinedRanker, weight: float) -> list[tuple[float, Model]]:
    pairs = zip(ranker.rankers_, ranker.weights_.tolist(), strict=True)
    return [part for member, w in pairs for part in _parts(member, weight * w)]


@_parts.register(PreparedRanker)
def _of_prepared(ranker: PreparedRanker, weight: float) -> list[tuple[float, Model]]:
    return [(w, unprepared(ranker, model)) for w, model in _parts(ranker.ranker_, weight)]


@_parts.register(StackedRanker)
def _of_stack(ranker: StackedRanker, weight: float) -> list[tuple[float, Model]]:
    raise ParameterError(
        "A StackedRanker is a net of other rankers' scores, which no format can express. "
        "Combine them with rg.CombinedRanker instead, whose sum of trees can be converted."
    )


@_parts.register(McRank)
def _of_mcrank(ranker: McRank, weight: float) -> list[tuple[float, Model]]:
    if ranker.form != "classes":
        raise ParameterError(
            "The score of McRank(form='ordinal') is made of one sum of trees per label, which no "
            "format can express. Train it with form='classes', which lightgbm, xgboost and onnx "
            "can hold class by class; or rg.MART, which gives one sum."
        )
    return _of_ranker(ranker, weight)


@_parts.register(Ranker)
def _of_ranker(ranker: Ranker, weight: float) -> list[tuple[float, Model]]:
    """Return the ranker's own model, after the parts of its submodel."""
    below: list[tuple[float, Model]] = []
    submodel = getattr(ranker, "submodel_", None)
    if isinstance(submodel, str):
        raise ParameterError(
            "The ranker starts from scores that come with the data: they are not part of the "
            "model, and cannot be converted."
        )
    if submodel is not None:
        below = _parts(submodel, weight * getattr(ranker, "submodel_weight_", 1.0))
    for name in ("ensemble_", "linear_", "network_"):
        model: Model | None = getattr(ranker, name, None)
        if model is not None:
            return [*below, (weight, _plain(model))]
    kind = with_article(type(ranker).__name__)
    raise ParameterError(
        f"{kind[0].upper()}{kind[1:]} has neither trees nor weights nor a net to be converted. "
        "Convert a LambdaMART, a linear ranker or a RankNet."
    )


def _plain(model: Model) -> Model:
    """Return a model as formats take it: linear models on thresholds become trees of one split."""
    if not isinstance(model, Linear):
        return model
    if model.has_thresholds:
        return _stumps(model)
    if model.scaling in BY_QUERY:
        raise ParameterError(
            f"The model scales features within every query (scaling={model.scaling!r}), which no "
            "format can express. Train it with scaling='standard' or 'none'."
        )
    return model


def _stumps(model: Linear) -> Ensemble:
    """Return trees of one split each: a weight is added where the value is above its threshold."""
    count = np.full(3, -1.0)
    unknown = np.full(3, np.nan)
    trees = [
        Tree(
            feature=np.array([j], np.int32),
            threshold=np.array([threshold], np.float32),
            left=np.array([-1], np.int32),
            right=np.array([-2], np.int32),
            missing_left=np.array([True]),
            gain=np.zeros(1),
            value=np.array([0.0, weight]),
            count=count.copy(),
            weight=unknown.copy(),
            mean=unknown.copy(),
        )
        for j, (thresholds, weights) in enumerate(model.by_feature())
        for threshold, weight in zip(thresholds, weights, strict=True)
        if weight
    ]
    return Ensemble.from_trees(trees, model.n_features, model.intercept)
