"""The base class of rankers whose model is an ensemble of trees."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base import Ranker
from rankgrove.validation import check_choice, counted

if TYPE_CHECKING:
    from typing import Self


class TreeModel(Ranker):
    """Base of the rankers whose model is an ensemble of trees."""

    ensemble_: Ensemble
    steps_: list[float]  # the weight of every tree in training

    @property
    def feature_importances_(self) -> np.ndarray:
        """Gains by feature, adding up to 1."""
        return self.feature_importance("gain")

    def feature_importance(self, kind: str = "gain") -> np.ndarray:
        """Return the share of every feature in all gains (``"gain"``) or splits (``"split"``)."""
        self._check_is_fitted()
        check_choice("kind", "feature_importance", kind, ["gain", "split"])
        shares = self.ensemble_.importance(kind)
        total = shares.sum()
        return np.asarray(shares / total if total > 0 else shares)

    def truncated(self, n_trees: int) -> Self:
        """Return the ranker of the first `n_trees` rounds (with classes: of as many per class)."""
        self._check_is_fitted()
        shorter = copy.copy(self)
        shorter.ensemble_ = self.ensemble_.truncated(n_trees)
        shorter.steps_ = self.steps_[: shorter.ensemble_.n_trees]
        return shorter

    def own_trees(self) -> Ensemble | None:
        """Return the trees, without those of a submodel."""
        return self.ensemble_

    def flat(self) -> Ensemble | None:
        """Return the trees whose sum is the score, or None where the score is no such sum."""
        return self.ensemble_ if self.ensemble_.n_columns == 1 else None

    def _sizes(self) -> str:
        """Return the summary's text about trees, leaves and features."""
        trees = self.ensemble_
        return (
            f"{trees.size_text()}, {counted(trees.n_leaves, 'leaf', 'leaves')}, "
            f"{counted(self.n_features_in_, 'feature')} ({np.unique(trees.feature).size:,} used)"
        )
