"""``rg.TreeRanker``: trees that another library trained."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError
from rankgrove.formats.foreign import Foreign
from rankgrove.model.ensemble import Ensemble
from rankgrove.objectives.classes import FORMS
from rankgrove.rankers.base import features_of
from rankgrove.rankers.tree_model import TreeModel
from rankgrove.scoring.score import score as score_ensemble

if TYPE_CHECKING:
    from typing import Self

# What objectives of other libraries are here.
_OBJECTIVES = {
    "lambdarank": "lambdas", "rank:ndcg": "lambdas", "rank:map": "lambdas", "LambdaMART": "lambdas",
    "regression": "squared", "reg:squarederror": "squared", "MART": "squared",
}  # fmt: skip
_MARGIN = {"binary": "log odds", "cross_entropy": "log odds", "binary:logistic": "log odds"}


class TreeRanker(TreeModel):
    """The trees of a LightGBM, XGBoost or RankLib model, as :func:`rankgrove.load` reads it.

    Its scores are that library's raw scores to the last bit, in its own arithmetic: float64
    features meet LightGBM's float64 thresholds, XGBoost's and RankLib's sums are float32. Of a
    model for several classes the score is the expected class, as in McRank. It cannot be trained
    further, but is evaluated, combined, saved and converted as other rankers, and is a submodel of
    ``LambdaMART`` or the base model of ``Trada``.

    Parameters
    ----------
    n_threads : threads to use; None: all cores

    Attributes
    ----------
    ensemble_ : the trees
    source_ : the library
    objective_ : what it was trained for, in that library's words, or None
    n_classes_ : number of classes whose scores the columns of the trees are; 1: no classes
    n_features_in_, feature_names_ : of the model; RankLib's does not say how many features there
        are, so that data may have more

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_artificial(20, seed=1)
    >>> model = rg.LambdaMART(n_trees=3).fit(data)
    >>> rg.convert(model, "model.txt", to="lightgbm")
    >>> again = rg.load("model.txt")
    >>> again.source_, bool((again.predict(data) == model.predict(data)).all())
    ('LightGBM', True)
    """

    kind: ClassVar[str] = "trees"

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    @classmethod
    def of(cls, model: Foreign) -> TreeRanker:
        """Return the ranker of a model that was read."""
        made = cls()
        made.ensemble_ = model.ensemble
        made.source_ = model.source
        made.objective_ = model.objective
        made.n_classes_ = model.ensemble.n_columns if model.classes else 1
        made.least_features_ = model.least_features
        made.n_features_in_ = model.ensemble.n_features
        if model.feature_names is not None:
            made.feature_names_ = model.feature_names
        made.steps_ = [1.0] * model.ensemble.n_trees
        return made

    def __repr__(self) -> str:
        if not hasattr(self, "ensemble_"):
            return f"{type(self).__name__}()"
        what = " ".join([self.source_, *([self.objective_] if self.objective_ else [])])
        return f"{type(self).__name__}({what}, {self.ensemble_.size_text()})"

    # -- scores -----------------------------------------------------------------------------------

    def raw_scores(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """Return the library's raw scores: one a row, or of shape (rows, classes)."""
        features, rows, threads = self._checked_input(X, "raw_scores", n_threads)
        found = score_ensemble(self.ensemble_, features, rows, threads)
        return found if found.ndim == 1 else np.ascontiguousarray(found.T)

    def _features(self, X: Any, owner: str) -> tuple[Any, np.ndarray | slice | None]:
        double = self.ensemble_.threshold.dtype == np.float64
        features, rows = features_of(X, owner, double=double)
        if self.least_features_ and features.shape[1] > self.n_features_in_:
            features = features[:, : self.n_features_in_]
        return features, rows

    def _scores(
        self, features: Any, rows: np.ndarray | slice | None, n_threads: int | None
    ) -> np.ndarray:
        found = score_ensemble(self.ensemble_, features, rows, n_threads)
        if found.ndim == 1:
            return found
        if self.n_classes_ == 1:
            raise DataError(
                f"The model has {self.ensemble_.n_columns} scores a row ({self.objective_}), which "
                "are not classes of a softmax: there is no one score to rank by. raw_scores has "
                "them."
            )
        labels = np.arange(float(self.n_classes_))
        return FORMS["classes"].expected(found, labels, n_threads)

    @property
    def trained_for(self) -> str | None:
        """The objective's name here, ``"lambdas"`` or ``"squared"``, or None where it has none."""
        return _OBJECTIVES.get((self.objective_ or "").split(" ")[0])

    # -- the trees --------------------------------------------------------------------------------

    def widened(self, data: QueryDataset) -> Self:
        """Return the ranker for data that may have more features than the file knows of."""
        if not self.least_features_ or data.n_features <= self.n_features_in_:
            return self
        made = copy.copy(self)
        made.ensemble_ = replace(self.ensemble_, n_features=data.n_features)
        made.n_features_in_ = data.n_features
        return made

    def summary(self) -> str:
        """Return a text about the model."""
        self._check_is_fitted()
        what = f" for {self.objective_}" if self.objective_ else ""
        lines = [f"{self.source_} model{what}: {self._sizes()}"]
        transformed = _MARGIN.get((self.objective_ or "").split(" ")[0])
        if transformed:
            lines.append(f"scores are {transformed}, before they are made probabilities")
        if self.n_classes_ > 1:
            lines.append(f"scores are the expected one of {self.n_classes_} classes")
        return "\n".join(lines)

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content = {
            "source": self.source_,
            "objective": self.objective_,
            "n_classes": self.n_classes_,
            "least_features": self.least_features_,
            "steps": self.steps_,
        }
        return content, self.ensemble_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.ensemble_ = Ensemble.from_arrays(arrays)
        self.source_ = str(content["source"])
        self.objective_ = None if content["objective"] is None else str(content["objective"])
        self.n_classes_ = int(content["n_classes"])
        self.least_features_ = bool(content["least_features"])
        self.steps_ = content["steps"]
        if self.n_classes_ not in (1, self.ensemble_.n_columns):
            raise ModelFileError("The number of classes does not fit the trees: it is damaged.")
