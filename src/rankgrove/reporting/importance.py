"""Which features a model looks at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.measures.base import Measure
from rankgrove.model.linear import Linear
from rankgrove.random import generator
from rankgrove.rankers.trees.trada import Trada
from rankgrove.reporting.systems import some_queries
from rankgrove.validation import check_choice

KINDS = ("gain", "split", "weight", "permutation")
PERMUTED_ROWS = 4000  # of the data, at the most: every feature costs a scoring of them
PERMUTED_FEATURES = 1000  # more of them would take too long


@dataclass(frozen=True, eq=False)
class Importance:
    """How much every feature matters to a model.

    Attributes
    ----------
    model : its name
    kind : ``"gain"`` or ``"split"`` (shares of trees' gains or splits), ``"weight"`` (how far a
        linear model's feature moves scores), ``"permutation"`` (how much the measure falls when
        the feature's values change places)
    features : all names, in the data's order
    values : one a feature
    of_base : whether gains are those of the base model's training, which adapted trees keep
    """

    model: str
    kind: str
    features: tuple[str, ...]
    values: np.ndarray
    of_base: bool = False

    @property
    def label(self) -> str:
        """What the values are, in words."""
        return {
            "gain": "share of all gains" + (" (the base model’s)" if self.of_base else ""),
            "split": "share of all splits",
            "weight": "reach of the weight",
            "permutation": "fall of the measure if permuted",
        }[self.kind]

    def top(self, n: int) -> list[int]:
        """Return the columns of the `n` most important features, leaving out those of none."""
        order = np.argsort(-self.values, kind="stable")[:n]
        return [int(j) for j in order if self.values[j] > 0]


def feature_importance(
    name: str,
    model: Any,
    data: QueryDataset,
    measure: str | Measure,
    kind: str | None = None,
    n_threads: int | None = None,
) -> Importance | None:
    """Return a model's feature importance: its own where it has one, else by permutation.

    None where there are too many features to permute, or none at all.
    """
    if kind is not None:
        check_choice("kind", "importance", kind, KINDS)
    linear = getattr(model, "linear_", None)
    values = None
    if kind in (None, "gain", "split") and hasattr(model, "feature_importance"):
        values = model.feature_importance(kind or "gain")
        if kind is None and not np.nansum(values) > 0:  # trees of a file that has no gains
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
            "ask for 'permutation'."
        )
    values = np.pad(values, (0, max(0, data.n_features - values.size)))  # what it does not know of
    of_base = kind == "gain" and isinstance(model, Trada)
    return Importance(name, str(kind), tuple(data.feature_names), np.nan_to_num(values), of_base)


def overall(importances: Sequence[Importance | None], n: int) -> list[int]:
    """Return the columns of the `n` features with the largest shares in all models together."""
    sizes = [one.values.clip(0) for one in importances if one is not None]
    shares = [one / one.sum() for one in sizes if one.sum() > 0.0]
    if not shares:
        return []
    total = np.sum(shares, axis=0)
    return [int(j) for j in np.argsort(-total, kind="stable")[:n] if total[j] > 0.0]


def _by_permutation(
    model: Any, data: QueryDataset, measure: str | Measure, n_threads: int | None
) -> np.ndarray:
    """Return how much the measure falls when a feature's values change places among documents."""
    sample = some_queries(data, PERMUTED_ROWS)
    features = np.empty((sample.n_rows, sample.n_features), np.float32)
    sample.copy_features(features)
    order = generator(0, "permutation importance").permutation(sample.n_rows)

    def value(matrix: np.ndarray) -> float:
        names = sample.feature_names if sample.has_feature_names else None
        moved = QueryDataset(
            matrix,
            sample.y,
            sample.qid,
            feature_names=names,
            base_score=sample.base_score,
            absent=sample.absent_given,
        )
        (mean,) = evaluate(model, moved, measure, n_threads=n_threads).mean.values()
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
