"""Starts of boosting: a constant, a submodel's scores, or adapted trees.

LambdaSMART starts from a submodel (LambdaMART paper, section 3, Algorithm 1, step 2): a trained
ranker, any object with ``predict``, or scores that come with the data. The trees are added to its
scores.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.given import features_of, row_count
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.validation import check_scores, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.rankers.given import Documents


BASE_SCORE = "base_score"  # the submodel that is a column of the data
_NO_BASE_SCORE = (
    "the ranker starts from scores that come with the data, and this data has none: give them with "
    "QueryDataset(..., base_score=...) or data.with_base_score(scores), for plain features with "
    "base_score=..., on the command line with --base-score."
)


class Start(Protocol):
    """Where boosting starts.

    ``constant`` is part of the new trees' ensemble; ``rounds`` is the number of boosting rounds in
    the start, from which random draws continue; with ``is_model`` the start is a model that can
    rank, so 0 may be the best number of new trees.
    """

    @property
    def constant(self) -> float: ...

    @property
    def rounds(self) -> int: ...

    @property
    def is_model(self) -> bool: ...

    def scores(self, data: QueryDataset, n_columns: int) -> np.ndarray:
        """Return the scores before the first tree, of shape (columns, rows), in query order."""


@dataclass(frozen=True)
class ConstantStart:
    """The same score for all rows."""

    constant: float = 0.0
    rounds: int = 0
    is_model: bool = False

    def scores(self, data: QueryDataset, n_columns: int) -> np.ndarray:
        """Return the constant."""
        return np.full((n_columns, data.n_rows), self.constant)


ZERO = ConstantStart()


@dataclass(frozen=True)
class SubmodelStart:
    """The scores of a submodel, times a weight."""

    submodel: Any
    weight: float
    owner: str
    n_threads: int | None = None
    constant: float = 0.0
    is_model: bool = True

    @property
    def rounds(self) -> int:
        """Number of rounds of boosting in the submodel."""
        return rounds_of(self.submodel)

    def scores(self, data: QueryDataset, n_columns: int) -> np.ndarray:
        """Return the weighted scores of a data set."""
        scores = submodel_scores(self.submodel, data, None, self.n_threads, self.owner)
        return np.array(self.weight * data.grouped(scores), ndmin=2)


@dataclass(frozen=True)
class TreesStart:
    """The scores of earlier trees, such as those of an adapted model."""

    trees: Ensemble
    train: QueryDataset
    train_scores: np.ndarray  # of the training data, which are known already
    n_threads: int | None = None
    constant: float = 0.0
    is_model: bool = True

    @property
    def rounds(self) -> int:
        """Number of trees."""
        return self.trees.n_trees

    def scores(self, data: QueryDataset, n_columns: int) -> np.ndarray:
        """Return the scores of a data set."""
        if data is self.train:
            return np.array(self.train_scores, ndmin=2)
        rows = query_order_rows(data)
        scores = score_ensemble(self.trees, data.features, rows, self.n_threads)
        return np.array(scores, ndmin=2)


# -- submodels -------------------------------------------------------------------------------------


def resolve(submodel: Any, owner: str) -> Any:
    """Return the submodel, read if it is a file: None, "base_score", or an object with predict."""
    if submodel is None or (isinstance(submodel, str) and submodel == BASE_SCORE):
        return None if submodel is None else BASE_SCORE
    rule = f"a trained ranker, a model file, an object with predict, or {BASE_SCORE!r}"
    if isinstance(submodel, str | Path):
        if not Path(submodel).exists():
            refuse("submodel", owner, rule + ", and there is no such file", str(submodel))
        from rankgrove.rankers.load import load  # imports all rankers, also this one

        return load(submodel)
    if type(submodel).__name__ == "FrozenEstimator":  # scikit-learn's, for grids of parameters
        submodel = submodel.estimator
    if isinstance(submodel, Ranker):
        if not hasattr(submodel, "n_features_in_"):
            raise ParameterError(
                f"The 'submodel' parameter of {owner} must be trained, and this "
                f"{type(submodel).__name__} is not. (scikit-learn's searches clone a ranker in a "
                "grid of parameters, untrained: wrap it in sklearn.frozen.FrozenEstimator there, "
                "or give its model file.)"
            )
        return copy.copy(submodel)  # training the caller's ranker again does not change this copy
    if callable(getattr(submodel, "predict", None)) and not isinstance(submodel, type):
        return submodel
    return refuse("submodel", owner, rule, submodel)


def needs_base_score(submodel: object) -> bool:
    """Return whether a submodel, or that submodel's own submodel, is the data's base scores."""
    if submodel is None or isinstance(submodel, str):
        return submodel is not None
    return needs_base_score(getattr(submodel, "submodel_", None))


def check_takes_base_score(submodel: object, owner: str) -> None:
    """Refuse base scores that would not be used."""
    if not needs_base_score(submodel):
        raise ParameterError(
            f"{owner} got base scores, but this ranker does not start from base scores: set "
            f"submodel={BASE_SCORE!r}, or leave them out."
        )


def rounds_of(submodel: object) -> int:
    """Return the number of rounds of boosting in a submodel."""
    trees = submodel.own_trees() if isinstance(submodel, Ranker) else None
    if trees is None:
        return 0
    return trees.n_trees // trees.n_columns + rounds_of(getattr(submodel, "submodel_", None))


def submodel_scores(
    submodel: Any, X: Documents, base_score: ArrayLike | None, n_threads: int | None, owner: str
) -> np.ndarray:
    """Return a submodel's scores, one per row in the caller's order.

    A ranker gets `X` unchanged and checks the features' names; any other model gets the float32
    feature matrix.
    """
    if isinstance(submodel, str):
        raw = X.base_score if isinstance(X, QueryDataset) else base_score
        if raw is None:
            raise DataError(f"{owner}: {_NO_BASE_SCORE}")
    elif isinstance(submodel, Ranker):
        passed = {} if base_score is None else {"base_score": base_score}
        try:
            raw = submodel.predict(X, n_threads=n_threads, **passed)
        except DataError as error:
            raise DataError(f"The submodel: {error}") from None
    else:
        raw = submodel.predict(X.X if isinstance(X, QueryDataset) else features_of(X, owner)[0])
    scores = check_scores(raw, row_count(X), owner)
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise DataError(
            f"{owner}: the scores of a submodel must be finite. Got {scores[bad[0]]} at row "
            f"{bad[0]}."
        )
    return scores


def spread_of(scores: np.ndarray, query_ptr: np.ndarray) -> float:
    """Return the power of two nearest to the standard deviation of scores within queries."""
    starts, sizes = query_ptr[:-1], np.diff(query_ptr)
    means = np.add.reduceat(scores, starts) / sizes
    squares = np.add.reduceat((scores - np.repeat(means, sizes)) ** 2, starts)
    deviation = math.sqrt(math.fsum(squares.tolist()) / scores.size)
    return math.ldexp(1.0, round(math.log2(deviation))) if deviation > 0.0 else 1.0


def describe(submodel: object) -> str:
    """Return a short description of a submodel."""
    if isinstance(submodel, str):
        return "scores given with the data"
    if isinstance(submodel, Ranker) and submodel.own_trees() is not None:
        return f"a {type(submodel).__name__} of {rounds_of(submodel):,} trees"
    return f"a {type(submodel).__name__}"
