"""Models for a target domain from a base model: Trada, and the methods it is compared with.

Every method is a function of a trained base model and the target's data that returns a trained
ranker; :func:`adapt_with` calls them by name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from rankgrove.adapt.statistics import statistics_of
from rankgrove.adapt.target import TargetRows
from rankgrove.data.concatenate import concatenate
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.categorical import coded_like
from rankgrove.rankers.trees.base_trees import (
    base_categories,
    base_trees,
    check_dataset,
    fitted_base,
    objective_for,
)
from rankgrove.rankers.trees.lambdamart import LambdaMART
from rankgrove.rankers.trees.trada import OBJECTIVES, Trada
from rankgrove.validation import check_choice, check_real

EXTRA_TREES = 30  # the paper's number, for every method that adds trees


def adapt_with(
    method: str,
    base: Any,
    target: QueryDataset,
    *,
    source: QueryDataset | None = None,
    valid: Any = None,
    weight: float | None = None,
    **settings: Any,
) -> Ranker:
    """Make a model for a target domain with one of the methods that the Trada paper compares.

    Parameters
    ----------
    method : ``"trada"``: adapt the base model's trees; ``"additive"``: append trees to the base
        model, which does not change; ``"submodel"``: LambdaSMART; ``"small"``: train a ranker like
        the base model on the target's data alone; ``"combine"``: train one on the source's and the
        target's data together; ``"base"``: the base model itself
    base : the model of the source domain: a trained ranker, or the path of its file
    target : the target's data
    source : the source's data, for ``"combine"``; for ``"trada"`` if the base model does not
        record how many rows reached its leaves
    valid : validation data of the target
    weight : how much more a query of the target counts than one of the source, for ``"combine"``;
        None is 10
    **settings : parameters of the ranker that is trained; others are refused

    Returns
    -------
    a trained ranker

    Examples
    --------
    >>> import rankgrove as rg
    >>> big, small = rg.make_domains(60, 20, seed=1)
    >>> base = rg.MART(n_trees=10, n_leaves=6).fit(big)
    >>> rg.adapt_with("additive", base, small, extra_trees=3).ensemble_.n_trees
    13
    >>> rg.adapt_with("combine", base, small, source=big, n_trees=5)
    MART(n_leaves=6, n_trees=5)
    """
    check_choice("method", "adapt_with", method, METHODS)
    _check_use(method, source, valid, weight, settings)
    model = fitted_base(base, "adapt_with")
    check_dataset("target", "adapt_with", target)
    if method == "combine":
        if source is None:
            raise ParameterError("The method 'combine' needs the source's data: give source=.")
        if weight is not None:
            settings["weight"] = weight
        return combined(model, target, source, valid=valid, **settings)
    if source is not None:
        options = {k: settings[k] for k in ("objective", "measure", "n_threads") if k in settings}
        model = statistics_from_data(model, source, **options)
    return METHODS[method](model, target, valid=valid, **settings)


def _check_use(
    method: str, source: object, valid: object, weight: float | None, settings: dict[str, Any]
) -> None:
    """Refuse arguments that a method does not use."""
    if method == "base" and (settings or valid is not None):
        raise ParameterError(
            "The method 'base' trains nothing: it takes neither parameters nor validation data."
        )
    if source is not None and method not in ("trada", "combine"):
        raise ParameterError(
            f"The method {method!r} does not use the source's data: leave source= out."
        )
    if weight is not None and method != "combine":
        raise ParameterError(f"weight= is for the method 'combine'. Got the method {method!r}.")
    number, other = "n_trees", "extra_trees"
    if method in ("trada", "additive"):
        number, other = other, number
    for name in settings:
        if name in _SET_BY_METHOD.get(method, ()):
            raise ParameterError(f"The method {method!r} does not take {name}=: leave it out.")
        if name == other:
            raise ParameterError(
                f"The method {method!r} takes the number of trees as {number}=. Got {other}=."
            )


def adapted(base: Any, target: QueryDataset, *, valid: Any = None, **settings: Any) -> Ranker:
    """Adapt the trees of the base model: :class:`Trada`."""
    return Trada(base, **settings).fit(target, valid=valid)


def additive(
    base: Any,
    target: QueryDataset,
    *,
    extra_trees: int = EXTRA_TREES,
    valid: Any = None,
    **settings: Any,
) -> Ranker:
    """Append trees that are trained on the base model's residuals; the base does not change."""
    return Trada(base, beta=0.0, extra_trees=extra_trees, **settings).fit(target, valid=valid)


def small_only(base: Any, target: QueryDataset, *, valid: Any = None, **settings: Any) -> Ranker:
    """Train a ranker like the base model, with 30 more trees, on the target's data alone."""
    return _ranker_like(base, settings).fit(target, valid=valid)


def combined(
    base: Any,
    target: QueryDataset,
    source: QueryDataset,
    *,
    weight: float = 10.0,
    valid: Any = None,
    **settings: Any,
) -> Ranker:
    """Train a ranker like the base model, with 30 more trees, on both domains' data together."""
    together = combined_data(source, target, weight)
    return _ranker_like(base, settings).fit(together, valid=valid)


def lambdasmart(
    base: Any,
    target: QueryDataset,
    *,
    n_trees: int = EXTRA_TREES,
    valid: Any = None,
    **settings: Any,
) -> Ranker:
    """Start from the base model's scores and add LambdaMART trees: LambdaSMART."""
    return LambdaMART(submodel=base, n_trees=n_trees, **settings).fit(target, valid=valid)


_SET_BY_METHOD = {
    "additive": ("beta", "tune", "level", "trim", "betas", "folds", "base_rate"),
    "submodel": ("submodel",),
}
METHODS: dict[str, Callable[..., Ranker]] = {
    "trada": adapted,
    "submodel": lambdasmart,
    "additive": additive,
    "combine": combined,
    "small": small_only,
    "base": lambda base, *_, **__: base,
}


def combined_data(source: QueryDataset, target: QueryDataset, weight: float = 1.0) -> QueryDataset:
    """Return both domains' queries as one data set; the target's have another weight.

    Query ids get their domain as a prefix. Features of the target that the source lacks are
    missing there (0 in sparse data).
    """
    check_real("weight", "combined_data", weight, above=0.0)
    check_dataset("source", "combined_data", source)
    check_dataset("target", "combined_data", target)
    if source.n_features > target.n_features:
        raise DataError(
            f"The source has {source.n_features} features, the target only {target.n_features}: "
            "give the target the same features first, in the same order; others may follow."
        )
    names = target.given_names
    if names and source.has_feature_names and source.feature_names != names[: source.n_features]:
        raise DataError("The target's features must be the source's, by name, and then others.")
    parts = []
    # what the source lacks is missing there, also where it is categorical in the target
    more = {j: v for j, v in target.categories.items() if j >= source.n_features}
    for data, mark, factor in ((source, "source ", 1.0), (target, "target ", weight)):
        query_weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        parts.append(
            QueryDataset.from_parts(
                _widened(data.X, target.n_features),
                data.y,
                np.array([f"{mark}{name}" for name in data.query_ids.tolist()]),
                data.query_of_row,
                weight=data.weight,
                query_weight=factor * query_weight,
                feature_names=names,
                docid=data.docid_column,
                base_score=None,
                absent=data.absent_given,
                categories=data.categories | more,
            )
        )
    return concatenate(parts)


def statistics_from_data(
    model: Any,
    source: QueryDataset,
    *,
    objective: str = "auto",
    measure: str | Measure = "ndcg@10",
    l2: float = 0.1,
    n_threads: int | None = None,
) -> Ranker:
    """Return a model with the number of rows that reach its nodes, and their mean responses.

    Models trained here record this in training. For other models, and for those trained on random
    samples of the rows, the source's data is passed through one tree after the other.

    Parameters
    ----------
    model : a trained ranker of boosted trees, or the path of its file
    source : the data it was trained on
    objective, measure : the objective of the responses, as in :class:`Trada`
    l2 : added to the sum of second derivatives of a node
    n_threads : threads to use; None: all cores

    Returns
    -------
    a copy of the ranker; its scores are the same

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_artificial(30, seed=1)
    >>> model = rg.MART(n_trees=3, row_fraction=0.5).fit(data)
    >>> known = rg.statistics_from_data(model, data)
    >>> int(model.ensemble_.node_count[0]), int(known.ensemble_.node_count[0])
    (750, 1500)
    """
    check_choice("objective", "statistics_from_data", objective, OBJECTIVES)
    check_real("l2", "statistics_from_data", l2, low=0.0)
    base = fitted_base(model, "statistics_from_data", "model")
    check_dataset("source", "statistics_from_data", source)
    names = source.given_names
    trees = base_trees(base, source.n_features, names, "statistics_from_data", "source")
    categories = base_categories(base, names)
    source = coded_like(source, categories, source.n_features, "statistics_from_data")
    keys = source.row_keys
    followed = objective_for(base, objective, measure, source, keys, n_threads)
    rows = TargetRows.of(source.features, query_order_rows(source), np.unique(trees.feature))
    trees = statistics_of(trees, rows, followed, l2, n_threads)
    known = copy.copy(base)
    if getattr(base, "submodel_", None) is None:  # other libraries' models keep their arithmetic
        before = base.ensemble_
        trees = replace(trees, threshold=before.threshold, single=before.single)
    else:  # the submodel's trees are included
        known.submodel_ = known.submodel = None
    known.n_features_in_ = source.n_features
    if names is not None:
        known.feature_names_ = names
    if categories:
        known.categories_ = categories
    known.ensemble_ = trees
    return known


def _ranker_like(base: Any, settings: dict[str, Any]) -> Ranker:
    """Return an untrained ranker with the base model's parameters, except `settings`."""
    model = fitted_base(base, "adapt_with")
    before = model.adapted_from()
    if before is not None:
        return _ranker_like(before, settings)
    if not type(model).trainable:
        raise ParameterError(
            f"A {type(model).__name__} cannot be trained: train a ranker of your choice on the "
            "data instead."
        )
    ranker = clone(model)
    wanted = {"n_trees": model.n_trees + EXTRA_TREES, "early_stopping": None, **settings}
    known = ranker.get_params(deep=False)
    for name, value in {"submodel": None, "submodel_weight": 1.0}.items():
        if name in known:
            wanted.setdefault(name, value)
    return ranker.set_params(**{"checkpoint": None, **wanted})


def _widened(features: Any, n_features: int) -> Any:
    """Return features with additional empty columns."""
    more = n_features - features.shape[1]
    if more == 0:
        return features
    if isinstance(features, np.ndarray):
        return np.pad(features, ((0, 0), (0, more)), constant_values=np.nan)
    wide = features.copy()
    wide.resize((features.shape[0], n_features))
    return wide
