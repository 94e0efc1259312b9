"""The base model of adaptation: its trees, with the target's feature numbers, and its objective."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.boosting.loop import Objective
from rankgrove.data.categories import Names
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.objectives.lambdas import (
    TREES_BEYOND_CUTOFF,
    LambdaObjective,
    default_truncation,
)
from rankgrove.objectives.pointwise import SquaredError
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.fitting import row_weights
from rankgrove.validation import counted, nearest, refuse

_RULE = "a trained ranker of boosted trees, or the path of its model file"


def check_dataset(name: str, owner: str, data: object) -> None:
    """Refuse anything but a data set."""
    if not isinstance(data, QueryDataset):
        shown = repr(data) if isinstance(data, str | Path) else type(data).__name__
        raise DataError(
            f"{owner}: {name} must be a QueryDataset, as rg.read_letor returns. Got {shown}."
        )


def fitted_base(base: Any, owner: str, name: str = "base") -> Ranker:
    """Return the trained ranker that a parameter holds, or whose file it names."""
    rule = f"The {name!r} parameter of {owner} must be {_RULE}."
    if isinstance(base, str | Path):
        if not Path(base).exists():
            refuse(name, owner, _RULE + ", and there is no such file", str(base))
        from rankgrove.rankers.load import load  # imports all rankers

        base = load(base)
    if type(base).__name__ == "FrozenEstimator":  # scikit-learn's, for grids of parameters
        base = base.estimator
    if not isinstance(base, Ranker):
        inside = getattr(base, "ranker", None)
        if isinstance(inside, Ranker):  # the result of a search for weights
            remedy = "give its .ranker"
            if not hasattr(inside, "ensemble_"):
                remedy = "give one of the rankers that its .ranker combines"
            raise ParameterError(f"{rule} Got {type(base).__name__}: {remedy}.")
        refuse(name, owner, _RULE, base)
    base = _unprepared(base)
    if not hasattr(base, "n_features_in_"):
        raise ParameterError(
            f"The {name!r} parameter of {owner} must be trained, and this {type(base).__name__} "
            "is not: train it on the source data first."
        )
    if not isinstance(getattr(base, "ensemble_", None), Ensemble):
        kind = type(base).__name__
        if hasattr(base, "models_"):
            raise ParameterError(
                f"{rule} A {kind} has no trees of its own: adapt its models (models_) one by one."
            )
        raise ParameterError(
            f"{rule} A {kind} has no trees: start from it with LambdaMART(submodel=...)."
        )
    return copy.copy(base)  # training the caller's ranker again does not change this copy


def _unprepared(ranker: Ranker) -> Ranker:
    """Return the ranker inside one on chosen features, with trees on all features."""
    inner: Ranker | None = getattr(ranker, "ranker_", None)
    trees = None if inner is None else ranker.flat()
    if inner is None or trees is None:
        return ranker
    whole = copy.copy(inner)
    whole.__dict__.update(ensemble_=trees, n_features_in_=ranker.n_features_in_)
    for name in ("feature_names_", "categories_"):
        whole.__dict__.pop(name, None)
        if name in vars(ranker):
            setattr(whole, name, getattr(ranker, name))
    return whole


def base_trees(
    base: Ranker, n_features: int, names: Sequence[str] | None, owner: str, domain: str = "target"
) -> Ensemble:
    """Return the trees of a base model, with features numbered as in a domain's data.

    Features are matched by name where both the model and the data have names, else by number; the
    data may have more features than the model.
    """
    try:
        trees = base.all_trees()
    except DataError as error:
        raise DataError(
            f"{owner}: {error} Train the base model with submodel_weight=1, or start from it with "
            "LambdaMART(submodel=...)."
        ) from None
    if trees is None:  # a bag on chosen features, whose trees `_unprepared` joined
        trees = base.ensemble_
    if trees.n_columns != 1:
        raise ParameterError(
            f"{owner}: the base model, a {type(base).__name__}, has {trees.n_columns} scores per "
            "row; only trees that add up to one score can be adapted."
        )
    # adapted trees have float32 thresholds, which split the same rows, and float64 sums
    trees = replace(trees.for_float32(), single=False)
    known = getattr(base, "feature_names_", None)
    if known is None or names is None:
        if n_features < trees.n_features:
            raise DataError(
                f"{owner}: the base model was trained on {counted(trees.n_features, 'feature')}, "
                f"the {domain}'s data has {n_features}. Give it the same features first, in the "
                "same order; others may follow."
            )
        return replace(trees, n_features=n_features)
    place = {name: j for j, name in enumerate(names)}
    for name in known:
        if name not in place:
            raise DataError(
                f"{owner}: the base model was trained with a feature {name!r}, which the "
                f"{domain}'s data does not have{nearest(name, names)}. Add it (NaN where it is "
                "unknown)."
            )
    column = np.array([place[name] for name in known], np.int32)
    return replace(trees, n_features=n_features, feature=column[trees.feature])


def base_categories(base: Ranker, names: Sequence[str] | None) -> Mapping[int, Names]:
    """Return the categorical features of a base model, by their columns in a domain's data."""
    known = getattr(base, "feature_names_", None)
    if known is None or names is None:
        return base.categories_
    place = {name: j for j, name in enumerate(names)}
    return {
        place[known[j]]: of_column for j, of_column in base.categories_.items() if known[j] in place
    }


def check_kinds(trees: Ensemble, data: QueryDataset, owner: str) -> None:
    """Refuse categorical columns of the target where base trees have thresholds."""
    for j in np.unique(trees.feature[trees.set_of < 0]).tolist():
        if j in data.categories:
            raise DataError(
                f"{owner}: the feature {data.feature_names[j]!r} is categorical in the target's "
                "data, and the base model has numbers there: give the target's data the same "
                "numbers, without it in 'categorical'."
            )


def objective_for(
    base: Ranker,
    objective: str,
    measure: str | Measure,
    train: QueryDataset,
    keys: np.ndarray,
    n_threads: int | None,
) -> Objective:
    """Return the objective of responses: the base model's own, or the one with the given name.

    For another library's model that was trained on lambdas, the lambdas are those of `measure`.
    """
    if objective == "auto":
        objective = base.trained_for or objective
    if objective == "auto":
        base = copy.copy(base)
        base.n_threads = n_threads
        followed = base.objective_on(train, keys)
        if followed is None:
            raise ParameterError(
                f"It is not known what the base model, a {type(base).__name__}, was trained for: "
                "choose objective='squared' (labels) or 'lambdas' (with measure=)."
            )
        return followed
    labels = train.grouped(train.y)
    if objective == "squared":
        return SquaredError(labels, train.query_ptr, row_weights(train))
    target = target_measure(measure)
    return LambdaObjective(
        target,
        labels,
        train.query_ptr,
        row_keys=keys,
        truncation=default_truncation(target, TREES_BEYOND_CUTOFF),
        normalise=True,
        row_weight=None if train.weight is None else train.grouped(train.weight),
        query_weight=train.query_weight,
        n_threads=n_threads,
    )
