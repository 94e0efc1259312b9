"""``rg.TreeRanker`` and ``rg.WeightRanker``: trees and linear models of other libraries."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError
from rankgrove.formats.foreign import Averaged, Foreign, ForeignWeights
from rankgrove.formats.read import read_object
from rankgrove.model import sense
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.store import needed
from rankgrove.objectives.classes import FORMS
from rankgrove.rankers.base import Arrays, Content, Ranker
from rankgrove.rankers.given import features_of
from rankgrove.rankers.linear.linear_predictor import LinearPredictor
from rankgrove.rankers.trees.tree_model import TreeModel
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.validation import counted

if TYPE_CHECKING:
    from typing import Self

    from rankgrove.data.arrays import Matrix
    from rankgrove.rankers.given import Documents

# Objectives of other libraries -> their names here.
_OBJECTIVES = {
    "lambdarank": "lambdas", "rank:ndcg": "lambdas", "rank:map": "lambdas", "LambdaMART": "lambdas",
    "regression": "squared", "reg:squarederror": "squared", "MART": "squared",
}  # fmt: skip
_BLOCK = 1 << 14  # rows whose scores of all bags are held at a time
_MARGIN = {"binary": "log odds", "cross_entropy": "log odds", "binary:logistic": "log odds"}


def ranker_of(model: Foreign | ForeignWeights) -> Ranker:
    """Return the ranker of a model that was read."""
    return TreeRanker.of(model) if isinstance(model, Foreign) else WeightRanker.of(model)


def of_object(model: Any) -> Any:
    """Return the ranker of a LightGBM or XGBoost model in memory; anything else unchanged."""
    foreign = None if isinstance(model, Ranker) else read_object(model)
    return model if foreign is None else ranker_of(foreign)


def _without_unknown(features: Matrix, ranker: TreeRanker | WeightRanker) -> Matrix:
    """Return the features that a model knows, where its file does not say how many there were."""
    if ranker.least_features_ and features.shape[1] > ranker.n_features_in_:
        return features[:, : ranker.n_features_in_]
    return features


class TreeRanker(TreeModel):
    """The trees of a model of another library, as :func:`rankgrove.load` reads it.

    Its scores are that library's raw scores to the last bit, in that library's arithmetic: float64
    features are compared with LightGBM's float64 thresholds, XGBoost's and RankLib's sums are
    float32, and a random forest's sum is divided at the end. The score of a model for several
    classes is the expected class, as in McRank. The ranker cannot be trained further, but it can be
    evaluated, combined, saved and converted like other rankers, and can be a submodel of
    ``LambdaMART`` or the base model of ``Trada``.

    Parameters
    ----------
    n_threads : number of threads; None: all cores

    Attributes
    ----------
    ensemble_ : the trees; in a random forest their values are divided by the number of trees
    source_ : the library
    objective_ : the library's name of the objective, or None
    n_classes_ : number of classes, one per column of the trees; 1: no classes
    n_features_in_, feature_names_ : of the model; RankLib's files do not say how many features
        there are, so data may have more
    categories_ : the categorical columns (from 0), each with the names of its codes, or None where
        the file has no names

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
    categories_: dict[int, tuple[str, ...] | None]

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    @classmethod
    def of(cls, model: Foreign) -> TreeRanker:
        """Return the ranker of a model that was read from a file."""
        ranker = cls()
        ranker.ensemble_ = model.ensemble
        ranker.source_ = model.source
        ranker.objective_ = model.objective
        ranker.n_classes_ = model.ensemble.n_columns if model.classes else 1
        ranker.least_features_ = model.least_features
        ranker.absent_ = model.absent
        ranker.n_features_in_ = model.ensemble.n_features
        if model.feature_names is not None:
            ranker.feature_names_ = model.feature_names
        ranker.categories_ = dict(model.categories)
        ranker.steps_ = [1.0] * model.ensemble.n_trees
        ranker._average(model.averaged)
        return ranker

    def _average(self, averaged: Averaged | None) -> None:
        """Set how a random forest's trees are averaged; None: scores are sums."""
        self._averaged = averaged
        if averaged is not None:
            self.ensemble_ = averaged.flat()
        self._of_average = self.ensemble_  # other trees, such as pruned ones, are summed

    def __repr__(self) -> str:
        if not hasattr(self, "ensemble_"):
            return f"{type(self).__name__}()"
        name = " ".join([self.source_, *([self.objective_] if self.objective_ else [])])
        return f"{type(self).__name__}({name}, {self.ensemble_.size_text()})"

    # -- scores -----------------------------------------------------------------------------------

    def raw_scores(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return the library's raw scores: one per row, or of shape (rows, classes)."""
        scores = self._columns(*self._checked_input(X, "raw_scores", n_threads))
        return scores if scores.ndim == 1 else np.ascontiguousarray(scores.T)

    def _columns(self, features: Matrix, rows: Rows, n_threads: int | None) -> np.ndarray:
        """Return the scores of rows, or of shape (classes, rows)."""
        averaged = self._averaged
        if averaged is None or self.ensemble_ is not self._of_average:
            return score_ensemble(self.ensemble_, features, rows, n_threads)
        if not averaged.bags:
            return score_ensemble(averaged.sums, features, rows, n_threads) / averaged.divisor
        places = np.arange(features.shape[0])[slice(None) if rows is None else rows]
        total = np.zeros(places.size)
        for start in range(0, places.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            sums = score_ensemble(averaged.sums, features, places[block], n_threads)
            for bag in np.atleast_2d(sums):
                total[block] += bag
        return total / averaged.divisor

    def check_numbered(self, n_features: int, owner: str) -> None:
        """Refuse text data, whose features only have numbers, if the file has feature names."""
        names = getattr(self, "feature_names_", None)
        if self.source_ != "Solr" or names is None or n_features == len(names):
            return
        raise DataError(
            f"{owner}: the model's file names {counted(len(names), 'feature')} "
            f"({', '.join(names[:5])}{', ...' if len(names) > 5 else ''}), and the text has "
            f"{n_features:,} with numbers: it is not known which is which. Give the features by "
            "name, in that order: a table, or rg.QueryDataset(data.X[:, columns], data.y, "
            "data.qid, feature_names=names)."
        )

    def _aligned(self, X: Documents, owner: str) -> Documents:
        if isinstance(X, QueryDataset) and X.absent_given is not None and not X.has_feature_names:
            self.check_numbered(X.n_features, owner)
        return super()._aligned(X, owner)

    def _features(self, X: Documents, owner: str, n_threads: int | None) -> tuple[Matrix, Rows]:
        double = self.ensemble_.threshold.dtype == np.float64
        features, rows = features_of(X, owner, double=double, n_threads=n_threads)
        return _without_unknown(features, self), rows

    def _scores(self, features: Matrix, rows: Rows, n_threads: int | None) -> np.ndarray:
        scores = self._columns(features, rows, n_threads)
        if scores.ndim == 1:
            return scores
        if self.n_classes_ == 1:
            raise DataError(
                f"The model has {self.ensemble_.n_columns} scores per row ({self.objective_}), "
                "which are not classes of a softmax: there is no single score to rank by. "
                "raw_scores returns them."
            )
        labels = np.arange(float(self.n_classes_))
        return FORMS["classes"].expected(scores, labels, n_threads)

    @property
    def trained_for(self) -> str | None:
        """The objective's name in rankgrove, ``"lambdas"`` or ``"squared"``, or None."""
        return _OBJECTIVES.get((self.objective_ or "").split(" ")[0])

    # -- the trees --------------------------------------------------------------------------------

    def widened(self, data: QueryDataset) -> Self:
        """Return the ranker for data that may have more features than the file mentions."""
        if not self.least_features_ or data.n_features <= self.n_features_in_:
            return self
        wider = copy.copy(self)
        wider.ensemble_ = replace(self.ensemble_, n_features=data.n_features)
        wider.n_features_in_ = data.n_features
        return wider

    def summary(self) -> str:
        """Return a text about the model."""
        self._check_is_fitted()
        objective = f" for {self.objective_}" if self.objective_ else ""
        lines = [f"{self.source_} model{objective}: {self._sizes()}"]
        transformed = _MARGIN.get((self.objective_ or "").split(" ")[0])
        if transformed:
            lines.append(f"scores are {transformed}, not probabilities")
        if self.n_classes_ > 1:
            lines.append(f"scores are the expected class, of {self.n_classes_} classes")
        return "\n".join(lines)

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        content: Content = {
            "source": self.source_,
            "objective": self.objective_,
            "n_classes": self.n_classes_,
            "least_features": self.least_features_,
            "steps": self.steps_,
        }
        averaged = self._averaged
        if averaged is None or self.ensemble_ is not self._of_average:
            return content, self.ensemble_.to_arrays()
        content["averaged"] = {"divisor": averaged.divisor, "bags": averaged.bags}
        return content, averaged.sums.to_arrays()

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self.ensemble_ = Ensemble.from_arrays(arrays)
        self.source_ = str(content["source"])
        self.objective_ = None if content["objective"] is None else str(content["objective"])
        self.n_classes_ = int(content["n_classes"])
        self.least_features_ = bool(content["least_features"])
        self.steps_ = content["steps"]
        averaged = None
        if "averaged" in content:
            divisor, bags = (content["averaged"][name] for name in ("divisor", "bags"))
            if type(divisor) is not int or divisor < 1:
                raise ModelFileError("The divisor of its sums is no number: it is damaged.")
            averaged = Averaged(self.ensemble_, divisor, bool(bags))
        self._average(averaged)
        if self.n_classes_ not in (1, self.ensemble_.n_columns):
            raise ModelFileError("The number of classes does not fit the trees: it is damaged.")


class WeightRanker(LinearPredictor):
    """The linear model of another library, as :func:`rankgrove.load` reads it.

    Its scores are that library's to the last bit: terms are added in float64 in the same order; a
    missing value counts as 0. It cannot be trained further, but it can be evaluated, combined,
    saved and converted like other rankers.

    Parameters
    ----------
    n_threads : not used: scoring runs on one thread

    Attributes
    ----------
    linear_ : the weights, one per feature
    source_ : the library
    objective_ : the library's name of the model
    n_features_in_ : number of features up to the last one used; data may have more

    Examples
    --------
    >>> import pathlib, rankgrove as rg
    >>> _ = pathlib.Path("linear.txt").write_text("## Coordinate Ascent\\n1:0.5 3:0.25\\n")
    >>> model = rg.load("linear.txt")
    >>> model, model.predict([[1, 9, 2]]).tolist()
    (WeightRanker(RankLib Coordinate Ascent, 2 features), [1.0])
    """

    kind: ClassVar[str] = "weights"
    scaling = "none"
    least_features_ = True

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads

    @classmethod
    def of(cls, model: ForeignWeights) -> WeightRanker:
        """Return the ranker of a model that was read."""
        ranker = cls()
        ranker.source_, ranker.objective_ = model.source, model.objective
        ranker.absent_ = "zero"
        ranker.n_features_in_ = int(model.feature.max(initial=0)) + 1
        ranker._take_terms(model.feature, model.weight, model.intercept)
        return ranker

    def _take_terms(self, feature: np.ndarray, weight: np.ndarray, intercept: float) -> None:
        self.terms_ = (feature, weight)
        n = self.n_features_in_
        summed = np.bincount(feature, weight, minlength=n)
        none = np.empty(0)
        self.linear_ = Linear(n, summed, "none", np.zeros(n), np.ones(n), none, none, intercept)
        try:
            self.linear_.check()
        except ValueError as error:
            raise ModelFileError(f"The weights do not fit: {error}") from None

    def __repr__(self) -> str:
        if not hasattr(self, "linear_"):
            return f"{type(self).__name__}()"
        used = counted(np.unique(self.terms_[0]).size, "feature")
        return f"{type(self).__name__}({self.source_} {self.objective_}, {used})"

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its features with the largest weights."""
        self._check_is_fitted()
        first = f"{self.source_} model, {self.objective_}"
        return "\n".join([first, *self._feature_lines(n_features)])

    def widened(self, data: QueryDataset) -> Self:
        """Return the ranker for data that may have more features than the file mentions."""
        if data.n_features <= self.n_features_in_:
            return self
        wider = copy.copy(self)
        wider.n_features_in_ = data.n_features
        wider._take_terms(*self.terms_, self.linear_.intercept)
        return wider

    def _features(self, X: Documents, owner: str, n_threads: int | None) -> tuple[Matrix, Rows]:
        features, rows = features_of(X, owner, n_threads=n_threads)
        return _without_unknown(features, self), rows

    def _scores(self, features: Matrix, rows: Rows, n_threads: int | None) -> np.ndarray:
        chosen = slice(None) if rows is None else rows
        used, place = np.unique(self.terms_[0], return_inverse=True)
        columns = features[:, used]
        columns = columns if isinstance(columns, np.ndarray) else columns.toarray()
        values = np.nan_to_num(columns[chosen].astype(np.float64), posinf=np.inf, neginf=-np.inf)
        total = np.full(values.shape[0], self.linear_.intercept)
        for column, weight in zip(place.tolist(), self.terms_[1].tolist(), strict=True):
            total += weight * values[:, column]
        return total

    def _state(self) -> tuple[Content, Arrays]:
        content = {
            "source": self.source_,
            "objective": self.objective_,
            "intercept": self.linear_.intercept,
        }
        return content, {"feature": self.terms_[0], "weight": self.terms_[1]}

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self.source_, self.objective_ = str(content["source"]), str(content["objective"])
        feature, weight = needed(arrays, ("feature", "weight")).values()
        fits = feature.ndim == weight.ndim == 1 and feature.shape == weight.shape
        if not fits or feature.dtype.kind != "i" or weight.dtype != np.float64:
            raise ModelFileError("The weights do not fit the features: it is damaged.")
        if feature.size and not 0 <= feature.min() <= feature.max() < self.n_features_in_:
            raise ModelFileError("A weight of a feature that does not exist: it is damaged.")
        intercept = sense.number(content["intercept"], "intercept")
        self._take_terms(feature, sense.numbers(weight, "weights"), intercept)
