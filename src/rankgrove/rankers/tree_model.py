"""What rankers whose model is an ensemble of trees share: features' shares, first trees, texts."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.measures.base import Measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base import Ranker
from rankgrove.training.watch import History, Watch
from rankgrove.validation import check_choice, counted

if TYPE_CHECKING:
    from typing import Self


class TreeModel(Ranker):
    """Base of the rankers whose model is an ensemble of trees."""

    ensemble_: Ensemble
    steps_: list[float]  # how far training went along every tree

    @property
    def feature_importances_(self) -> np.ndarray:
        """Gains by feature, adding up to 1."""
        return self.feature_importance("gain")

    def feature_importance(self, kind: str = "gain") -> np.ndarray:
        """Return the share of every feature in all gains (``"gain"``) or splits (``"split"``)."""
        self._check_is_fitted()
        check_choice("kind", "feature_importance", kind, ["gain", "split"])
        found = self.ensemble_.importance(kind)
        total = found.sum()
        return np.asarray(found / total if total > 0 else found)

    def truncated(self, n_trees: int) -> Self:
        """Return the ranker of the first `n_trees` rounds: so many trees, or so many a class."""
        self._check_is_fitted()
        made = copy.copy(self)
        made.ensemble_ = self.ensemble_.truncated(n_trees)
        made.steps_ = self.steps_[: made.ensemble_.n_trees]
        return made

    def _one_ensemble(self) -> Ensemble | None:
        return self.ensemble_ if self.ensemble_.n_columns == 1 else None

    def _sizes(self) -> str:
        """Return the summary's words on trees, leaves and features."""
        trees = self.ensemble_
        return (
            f"{trees.size_text()}, {counted(trees.n_leaves, 'leaf', 'leaves')}, "
            f"{counted(self.n_features_in_, 'feature')} ({np.unique(trees.feature).size:,} used)"
        )


class TrainedTrees(TreeModel):
    """Base of those that were trained here, and know what validation data said of every round."""

    measure: str | Measure
    history_: History
    start_values_: dict[str, dict[str, float]]  # the measures before the first round
    best_round_: int | None
    interrupted_: bool

    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "start_values": "start_values_",
        "best_round": "best_round_",
        "interrupted": "interrupted_",
        "steps": "steps_",
    }

    @property
    def _n_before(self) -> int:
        """Number of trees of ``ensemble_`` that were there before the first round."""
        return 0

    def truncated(self, n_trees: int) -> Self:
        """Return the ranker of the first `n_trees` rounds: so many trees, or so many a class."""
        made = super().truncated(n_trees)
        watch = Watch({}, history=self.history_, start=self.start_values_ or None)
        watch.cut(max(0, n_trees - self._n_before))
        made.history_, made.best_round_ = watch.history, watch.best_round
        return made

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its size, its validation, its most important features."""
        self._check_is_fitted()
        trees = self.ensemble_
        lines = [f"{type(self).__name__} for {self.measure}: {self._sizes()}", *self._about()]
        for name, measures in self.history_.items():
            for measure_name, values in measures.items():
                n = max(0, trees.n_rounds - self._n_before)
                start = self.start_values_.get(name, {}).get(measure_name)
                value = values[n - 1] if n else start
                if value is not None:
                    lines.append(f"{name} {measure_name}: {value:.4f} after {trees.size_text()}")
        return "\n".join([*lines, *self._feature_lines(n_features)])

    def _feature_lines(self, n_features: int) -> list[str]:
        """Return the summary's table of features."""
        gain, split = self.feature_importance("gain"), self.ensemble_.importance("split")
        names = self._names()
        best = [j for j in np.argsort(-gain, kind="stable")[:n_features] if gain[j] > 0]
        width = max([7, *(len(names[j]) for j in best)])
        return [
            f"{'feature':<{width}}  {'gain':>6}  {'splits':>7}",
            *(f"{names[j]:<{width}}  {gain[j]:6.1%}  {split[j]:7,.0f}" for j in best),
        ]

    def _about(self) -> list[str]:
        """Return further lines of the summary."""
        return []

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return self._content(), self.ensemble_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._take(content)
        self.ensemble_ = Ensemble.from_arrays(arrays)
