"""Going on from a submodel: LambdaSMART (LambdaMART paper, section 3, Algorithm 1, step 2).

A submodel is a trained ranker of ours, any object with ``predict``, or scores that come with the
data. Its scores are what boosting starts with; the trees are added to them.
"""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.boosting.loop import Objective, Progress
from rankgrove.boosting.step import OptimalStep
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.parse import target_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.boosted import BoostedRanker
from rankgrove.rankers.boosted_data import BASE_SCORE, check_takes_base_score
from rankgrove.rankers.foreign import TreeRanker
from rankgrove.rankers.given import features_of
from rankgrove.rankers.kept import HasFeatures
from rankgrove.rankers.nested import pack, unpack
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.training.watch import Watch
from rankgrove.validation import check_choice, check_real, check_scores, refuse

if TYPE_CHECKING:
    from rankgrove.model.tree import Tree

OPTIMAL = "optimal"
_NO_BASE_SCORE = (
    "the ranker goes on from scores that come with the data, and this data has none: give them by "
    "QueryDataset(..., base_score=...) or data.with_base_score(scores), with plain features by "
    "base_score=..., on the command line by --base-score."
)


class SubmodelRanker(BoostedRanker):
    """Base of the boosted rankers that can go on from a submodel, and find weights exactly."""

    held: ClassVar[frozenset[str]] = frozenset({"submodel"})
    trained: ClassVar[frozenset[str]] = frozenset({"submodel"})
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"base_score": True}

    submodel: Any
    submodel_weight: float | str
    step_on: str
    step_bounds: tuple[float, float]
    submodel_: Any
    submodel_weight_: float

    @property
    def _goes_on(self) -> bool:
        return self.submodel is not None

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        if self.submodel_weight != OPTIMAL:
            if isinstance(self.submodel_weight, str):
                refuse("submodel_weight", owner, f"a number or {OPTIMAL!r}", self.submodel_weight)
            check_real("submodel_weight", owner, self.submodel_weight, above=0.0)
        check_choice("step_on", owner, self.step_on, ["train", "valid"])
        bounds = self.step_bounds
        if not (isinstance(bounds, tuple | list) and len(bounds) == 2):
            refuse("step_bounds", owner, "two numbers, the lowest and the highest weight", bounds)
        low = check_real("step_bounds", owner, bounds[0], above=0.0)
        check_real("step_bounds", owner, bounds[1], above=low)

    # -- training -------------------------------------------------------------------------------

    def _begin(self) -> None:
        # kept apart until training has ended well: a ranker trained before stays as it was
        self._found = resolve(self.submodel, type(self).__name__)
        self._found_weight = 1.0 if self.submodel_weight == OPTIMAL else float(self.submodel_weight)

    @property
    def _takes_base_score(self) -> bool:
        return needs_base_score(self._found)

    def _rounds_before(self) -> int:
        return rounds_of(self._found)

    def _starting_scores(self, data: QueryDataset, n_columns: int) -> np.ndarray:
        if self._found is None:
            return super()._starting_scores(data, n_columns)
        owner = f"{type(self).__name__}.fit"
        found = scores_of(self._found, data, None, self.n_threads, owner)
        return np.array(self._found_weight * data.grouped(found), ndmin=2)

    @property
    def _is_exact(self) -> bool:
        """Whether some weight is found exactly."""
        return self._goes_on and self.submodel_weight == OPTIMAL

    @property
    def _needs_valid(self) -> str | None:
        if self._is_exact and self.step_on == "valid":
            return "step_on='valid'"
        return super()._needs_valid

    def _optimal_step(self, train: QueryDataset, watch: Watch, mean_response: bool) -> OptimalStep:
        """Return what finds the weight at which the training measure is highest."""
        watched = next(iter(watch.watched.values())) if self.step_on == "valid" else None
        labels = train.grouped(train.y) if watched is None else watched.labels
        query_ptr = train.query_ptr if watched is None else watched.query_ptr
        target = target_measure(self.measure).with_(ties="expected")
        low, high = self.step_bounds
        return OptimalStep(
            target.prepare(labels, query_ptr, self.n_threads),
            (float(low), float(high)),
            self.learning_rate,
            watched=watched,
            mean_response=mean_response,
            l2=self._leaf_l2(),
            n_threads=self.n_threads,
        )

    def _boost(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
        watch: Watch,
        *others: Any,
    ) -> Progress:
        if self._found is not None and self.submodel_weight == OPTIMAL and self.n_trees > 0:
            self._scale_submodel(train, binned, objective, keys, scores, watch)
        return super()._boost(train, binned, objective, keys, scores, watch, *others)

    def _scale_submodel(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
        watch: Watch,
    ) -> None:
        """Find the submodel's weight by a tree grown for the purpose; scale all scores by it.

        Lambdas know the scale of scores, rankings do not: the tree is grown on the lambdas of the
        submodel's scores brought to a spread of about 1, so that the weight makes up for any scale.
        """
        spread = _spread(scores[0], train.query_ptr)
        queries, rows = self._sampler(train, keys).draw(self._rounds_before())
        gradient, hessian = np.zeros(train.n_rows), np.zeros(train.n_rows)
        objective.gradients(scores[0] / spread, gradient, hessian, queries, self.n_threads)
        grower = self._grower(binned, keys)
        tree, leaf_of = grower.grow(gradient, hessian, self._rounds_before(), rows)
        step = self._optimal_step(train, watch, mean_response=False)
        weight = step.weight_of_scores(tree, leaf_of, scores[0], spread) / spread
        for one in (scores, *(one.scores for one in watch.watched.values())):
            one *= weight
        self._found_weight = weight

    def _keep(self, train: HasFeatures, done: Progress, n_columns: int) -> None:
        super()._keep(train, done, n_columns)
        self.submodel_, self.submodel_weight_ = self._found, self._found_weight
        del self._found, self._found_weight

    # -- the trained ranker -----------------------------------------------------------------------

    def predict(
        self, X: Any, n_threads: int | None = None, *, base_score: Any = None
    ) -> np.ndarray:
        """Return one float64 score a row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : threads to use; None takes the ranker's own `n_threads`
        base_score : the rows' scores, where the submodel is ``"base_score"`` and `X` no data set
        """
        owner = f"{type(self).__name__}.predict"
        X = self._aligned(X, owner)
        features, rows, threads = self._checked_input(X, "predict", n_threads)
        if base_score is not None:
            if isinstance(X, QueryDataset):
                raise DataError(f"{owner}: a QueryDataset has its own base scores: give it them.")
            check_takes_base_score(needs_base_score(self.submodel_), owner)
        start = None
        if self.submodel_ is not None:
            found = scores_of(self.submodel_, X, base_score, threads, owner)
            start = self.submodel_weight_ * found
        return score_ensemble(self.ensemble_, features, rows, threads, start)

    def flat_ensemble(self) -> Ensemble:
        """Return one ensemble of the submodel's trees and the new ones, with the same scores.

        The submodel must be boosted trees with one score a row, of weight 1. (Where it is another
        library's that adds in float32, the scores are the same but for rounding.)
        """
        self._check_is_fitted()
        if self.submodel_ is None:
            return self.ensemble_
        inner = self.submodel_
        if not isinstance(inner, BoostedRanker | TreeRanker) or self.submodel_weight_ != 1.0:
            raise DataError(
                f"The submodel ({describe(inner)}, weight {self.submodel_weight_:g}) and the trees "
                "are not one ensemble: only boosted trees of weight 1 can be joined."
            )
        below = inner.flat_ensemble() if isinstance(inner, SubmodelRanker) else inner.ensemble_
        if below.n_columns != 1:
            raise DataError(
                f"The submodel has {below.n_columns} scores a row: it cannot be joined."
            )
        trees: list[Tree] = []
        for part in (below, self.ensemble_):
            trees += [part.tree(t) for t in range(part.n_trees)]
        return Ensemble.from_trees(trees, self.n_features_in_, below.base)

    def _one_ensemble(self) -> Ensemble | None:
        if self.submodel_ is None:
            return self.ensemble_
        inner = self.submodel_
        below = inner._one_ensemble() if isinstance(inner, BoostedRanker) else None
        if below is None or self.submodel_weight_ != 1.0:
            return None
        # trees of another library may compare and add in another precision
        alike = below.threshold.dtype == self.ensemble_.threshold.dtype and not below.single
        return self.flat_ensemble() if alike else None

    def _about(self) -> list[str]:
        if self.submodel_ is None:
            return []
        return [f"going on from {describe(self.submodel_)}, weight {self.submodel_weight_:g}"]

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content, arrays = super()._state()
        inner = self.submodel_
        content["submodel_weight"] = self.submodel_weight_
        content["submodel"] = inner
        if isinstance(inner, Ranker):
            content["submodel"], inside = pack(inner, "submodel")
            arrays = {**arrays, **inside}
        elif inner is not None and not isinstance(inner, str):
            raise ParameterError(
                f"The submodel, a {type(inner).__name__}, cannot be written into a model file: "
                f"only rankers of rankgrove can. Say model.submodel_ = {BASE_SCORE!r} before "
                "saving, and give its scores with the data; or pickle the ranker."
            )
        return content, arrays

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(content, arrays)
        found = content["submodel"]
        self.submodel_ = unpack(found, arrays, "submodel") if isinstance(found, dict) else found
        self.submodel_weight_ = float(content["submodel_weight"])
        self.submodel = self.submodel_


def resolve(given: Any, owner: str) -> Any:
    """Return what a `submodel` stands for: None, ``"base_score"``, or an object with predict."""
    if given is None or (isinstance(given, str) and given == BASE_SCORE):
        return None if given is None else BASE_SCORE
    rule = f"a trained ranker, a model file, an object with predict, or {BASE_SCORE!r}"
    if isinstance(given, str | Path):
        if not Path(given).exists():
            refuse("submodel", owner, rule + ", and there is no such file", str(given))
        from rankgrove.rankers.load import load  # it knows all rankers, this one too

        return load(given)
    if type(given).__name__ == "FrozenEstimator":  # scikit-learn's, for grids of parameters
        given = given.estimator
    if isinstance(given, Ranker):
        if not hasattr(given, "n_features_in_"):
            raise ParameterError(
                f"The 'submodel' parameter of {owner} must be trained, and this "
                f"{type(given).__name__} is not. (scikit-learn's searches untrain a ranker in a "
                "grid of parameters: wrap it in sklearn.frozen.FrozenEstimator there, or give its "
                "model file.)"
            )
        return copy.copy(given)  # training `given` anew leaves this one as it is
    if callable(getattr(given, "predict", None)) and not isinstance(given, type):
        return given
    return refuse("submodel", owner, rule, given)


def needs_base_score(submodel: Any) -> bool:
    """Return whether a submodel, or the one that it goes on from itself, is the data's scores."""
    if submodel is None or isinstance(submodel, str):
        return submodel is not None
    return needs_base_score(getattr(submodel, "submodel_", None))


def rounds_of(submodel: Any) -> int:
    """Return the number of rounds of boosting in a submodel."""
    if not isinstance(submodel, BoostedRanker | TreeRanker):
        return 0
    own = submodel.ensemble_.n_trees // submodel.ensemble_.n_columns
    return own + rounds_of(getattr(submodel, "submodel_", None))


def scores_of(
    submodel: Any, X: Any, base_score: Any, n_threads: int | None, owner: str
) -> np.ndarray:
    """Return a submodel's scores, one a row in the caller's order.

    A ranker of ours is given `X` as it is, and so checks the features' names; any other model the
    float32 feature matrix.
    """
    is_data = isinstance(X, QueryDataset)
    if isinstance(submodel, str):
        found = X.base_score if is_data else base_score
        if found is None:
            raise DataError(f"{owner}: {_NO_BASE_SCORE}")
    elif isinstance(submodel, Ranker):
        passed = {} if base_score is None else {"base_score": base_score}
        try:
            found = submodel.predict(X, n_threads=n_threads, **passed)
        except DataError as error:
            raise DataError(f"The submodel: {error}") from None
    else:
        found = submodel.predict(X.X if is_data else features_of(X, owner)[0])
    scores = check_scores(found, X.shape[0] if hasattr(X, "shape") else len(X), owner)
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise DataError(
            f"{owner}: the scores of a submodel must be finite. Got {scores[bad[0]]} at row "
            f"{bad[0]}."
        )
    return scores


def _spread(scores: np.ndarray, query_ptr: np.ndarray) -> float:
    """Return the power of two nearest to the standard deviation of scores within queries."""
    starts, sizes = query_ptr[:-1], np.diff(query_ptr)
    means = np.add.reduceat(scores, starts) / sizes
    squares = np.add.reduceat((scores - np.repeat(means, sizes)) ** 2, starts)
    deviation = math.sqrt(math.fsum(squares.tolist()) / scores.size)
    return math.ldexp(1.0, round(math.log2(deviation))) if deviation > 0.0 else 1.0


def describe(submodel: Any) -> str:
    """Return a few words about a submodel."""
    if isinstance(submodel, str):
        return "scores given with the data"
    if isinstance(submodel, BoostedRanker | TreeRanker):
        return f"a {type(submodel).__name__} of {rounds_of(submodel):,} trees"
    return f"a {type(submodel).__name__}"
