"""Named models and their scores, which reports and plots compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.evaluation.evaluate import scores_of
from rankgrove.rankers.base import Ranker
from rankgrove.validation import counted, refuse


class Model(Protocol):
    """Anything that scores documents: a rankgrove ranker, or a model of another library."""

    def predict(self, X: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class System:
    """A model, or scores without a model.

    Attributes
    ----------
    name : its name
    model : an object with ``predict``; None if scores were given
    scores : one per row of the data, in the caller's order
    """

    name: str
    model: Model | None
    scores: np.ndarray

    @property
    def about(self) -> str:
        """The first line of the model's summary, with a bag's number of trees; or its class."""
        if self.model is None:
            return "given scores"
        if hasattr(self.model, "summary"):
            first = str(self.model.summary()).splitlines()[0]
            trees = getattr(self.model, "n_trees_", None)  # of all models of a bag
            return first if trees is None else f"{first}; {counted(trees, 'tree')} in all"
        members = getattr(self.model, "rankers_", None)
        weights = getattr(self.model, "weights_", None)
        if members is None or weights is None:
            return type(self.model).__name__
        parts = zip(weights.tolist(), members, strict=True)
        text = " + ".join(f"{weight:.4g} {kind_inside(member)}" for weight, member in parts)
        return text.replace("+ -", "− ")


def kind_inside(model: Any) -> str:
    """Return the class of a model; of one on prepared features, that of the ranker in it."""
    return type(model.inside() if isinstance(model, Ranker) else model).__name__


def named_models(models: Any, owner: str) -> dict[str, Any]:
    """Return models by name, from a dict, a list (named by class) or a single model."""
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    else:
        listed = list(models) if isinstance(models, list | tuple) else [models]
        named = {}
        for model in listed:
            kind, n = type(getattr(model, "ranker", None) or model).__name__, 2
            name = kind
            while name in named:
                name, n = f"{kind} {n}", n + 1
            named[name] = model
    if not named:
        refuse("models", owner, "one model, or several by name", models)
    return named


def as_systems(models: Any, dataset: QueryDataset, owner: str) -> list[System]:
    """Return the systems of a caller's models, scored on the data."""
    if not isinstance(dataset, QueryDataset):
        raise DataError(f"{owner} needs a QueryDataset. Got {type(dataset).__name__} instead.")
    systems = []
    for name, value in named_models(models, owner).items():
        # the results of prune and of the combining functions hold their ranker as an attribute
        inner = getattr(value, "ranker", None)
        model = inner if hasattr(inner, "predict") else value
        try:
            scores = scores_of(model, dataset, owner)[1]
        except DataError as error:
            raise DataError(f"The model {name!r}: {error}") from None
        systems.append(System(name, model if hasattr(model, "predict") else None, scores))
    return systems


def with_features(data: QueryDataset, features: np.ndarray) -> QueryDataset:
    """Return the data with other feature values."""
    return QueryDataset(
        features,
        data.y,
        data.qid,
        feature_names=data.feature_names if data.has_feature_names else None,
        base_score=data.base_score,
        absent=data.absent_given,
        categorical=data.categorical,
    )


def some_queries(data: QueryDataset, n_rows: int) -> QueryDataset:
    """Return evenly spaced queries that have about `n_rows` rows in total."""
    if data.n_rows <= n_rows:
        return data
    step = int(np.ceil(data.n_rows / n_rows))
    return data.select(np.arange(0, data.n_queries, step))
