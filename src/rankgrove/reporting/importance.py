"""Feature importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.measures.base import Measure
from rankgrove.model.linear import Linear
from rankgrove.random import generator
from rankgrove.rankers.base import Ranker
from rankgrove.reporting.systems import Model, some_queries, with_features
from rankgrove.validation import check_choice

KINDS = ("gain", "split", "weight", "permutation")
PERMUTED_ROWS = 4000  # maximum: they are scored once per feature
PERMUTED_FEATURES = 1000  # more would take too long


@dataclass(frozen=True, eq=False)
class Importance:
    """How much every feature matters to a model.

    Attributes
    ----------
    model : the model's name
    kind : ``"gain"`` or ``"split"`` (shares of trees' gains or splits), ``"weight"`` (how far a
        linear model's feature moves scores), ``"permutation"`` (how much the measure falls when
        the feature's values are permuted)
    features : all names, in the data's order
    values : one per feature
    of_base : whether the gains are those of the base model's training, which adapted trees keep
    """

    model: str
    kind: str
    features: tuple[str, ...]
    values: np.ndarray
    of_base: bool = False

    @property
    def label(self) -> str:
        """A description of the values."""
        return {
            "gain": "share of all gains" + (" (the base model’s)" if self.of_base else ""),
            "split": "share of all splits",
            "weight": "reach of the weight",
            "permutation": "fall of the measure if permuted",
        }[self.kind]

    def top(self, n: int) -> list[int]:
        """Return the columns of the `n` most important features, without those of importance 0."""
        order = np.argsort(-self.values, kind="stable")[:n]
        return [int(j) for j in order if self.values[j] > 0]


def feature_importance(
    name: str,
    model: Model,
    data: QueryDataset,
    measure: str | Measure,
    kind: str | None = None,
    n_threads: int | None = None,
) -> Importance | None:
    """Return a model's own feature importance, or its permutation importance if it has none.

    None if there are too many features to permute, or no features.
    """
    if kind is not None:
        check_choice("kind", "importance", kind, KINDS)
    linear = getattr(model, "linear_", None)
    values = None
    if kind in (None, "gain", "split") and hasattr(model, "feature_importance"):
        values = model.feature_importance(kind or "gain")
        if kind is None and not np.nansum(values) > 0:  # the trees' file has no gains
            kind, values = "split", model.feature_importance("split")
        kind = kind or "gain"
    elif kind in (None, "weight") and isinstance(linear, Linear):
        kind, values = "weight", linear.influence()
    elif kind in (None, "permutation"):
        if not 0 < data.n_features <= PERMUTED_FEATURES:
            return None
        kind, values = "permutation", _by_permutation(model, data, measure, n_threads)
    if values is None:
        raise DataError(
            f"{type(model).__name__} has no importance of the kind {kind!r}: leave kind out, or "
            "give 'permutation'."
        )
    values = np.pad(values, (0, max(0, data.n_features - values.size)))  # unknown to the model: 0
    adapted = isinstance(model, Ranker) and model.adapted_from() is not None
    of_base = kind == "gain" and adapted
    return Importance(name, str(kind), tuple(data.feature_names), np.nan_to_num(values), of_base)


def overall(importances: Sequence[Importance | None], n: int) -> list[int]:
    """Return the columns of the `n` features with the largest shares in all models together."""
    sizes = [importance.values.clip(0) for importance in importances if importance is not None]
    shares = [values / values.sum() for values in sizes if values.sum() > 0.0]
    if not shares:
        return []
    total = np.sum(shares, axis=0)
    return [int(j) for j in np.argsort(-total, kind="stable")[:n] if total[j] > 0.0]


def _by_permutation(
    model: Model, data: QueryDataset, measure: str | Measure, n_threads: int | None
) -> np.ndarray:
    """Return how much the measure falls when a feature's values are permuted among documents."""
    sample = some_queries(data, PERMUTED_ROWS)
    features = np.empty((sample.n_rows, sample.n_features), np.float32)
    sample.copy_features(features)
    order = generator(0, "permutation importance").permutation(sample.n_rows)

    def value(matrix: np.ndarray) -> float:
        permuted = with_features(sample, matrix)
        (mean,) = evaluate(model, permuted, measure, n_threads=n_threads).mean.values()
        return mean

    before = value(features)
    falls = np.zeros(sample.n_features)
    for j in range(sample.n_features):
        if (features[:, j] == features[0, j]).all():
            continue
        moved = features.copy()
        moved[:, j] = features[order, j]
        falls[j] = before - value(moved)
    return falls
