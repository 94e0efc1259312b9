"""A combination of trained rankers: the weighted sum of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.combine.interpolate import Searcher, Weighted, weighted_sum
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError, ParameterError
from rankgrove.evaluation.evaluate import scores_of
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker
from rankgrove.rankers.declaring import choice, declares_parameters, integer, learned, parameter
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.inner_rankers import (
    loaded_members,
    member_scores,
    pack_members,
    unpack_members,
)
from rankgrove.validation import check_choice, check_integer, refuse

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents

METHODS = ("cyclic", "powell")


@declares_parameters
class CombinedRanker(Ranker):
    """The weighted sum of the scores of trained rankers.

    ``fit`` finds the weights that are best for a measure; it does not change the rankers. The
    scales of their scores do not matter: the search covers all weights.

    Attributes
    ----------
    rankers_ : the rankers, loaded where they were given as files
    weights_ : one per ranker
    value_ : the mean of the measure on the data the weights were found on
    n_features_in_, feature_names_ : of that data

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, vali = rg.make_artificial(60, seed=1), rg.make_artificial(40, seed=2)
    >>> rankers = [rg.LambdaMART(m, n_trees=5).fit(train) for m in ("ndcg@10", "map")]
    >>> both = rg.CombinedRanker(rankers).fit(vali)
    >>> both.value_ >= max(rg.evaluate(r, vali, "ndcg@10").mean["ndcg@10"] for r in rankers)
    True
    """

    kind: ClassVar[str] = "combination"
    held: ClassVar[frozenset[str]] = frozenset({"rankers"})

    takes_categories: ClassVar[bool] = True  # its rankers know what they were trained on
    fit_takes: ClassVar[frozenset[str]] = frozenset()
    rankers_: tuple[Any, ...] = learned()
    weights_: np.ndarray = learned()
    value_: float = learned()

    rankers: Sequence[Any] = parameter(
        (),
        "the trained rankers, or paths of their model files; or any models with ``predict`` (those "
        "cannot be saved)",
    )
    measure: str | Measure = parameter("ndcg@10", "measure to maximise, or its name")
    method: str = parameter(
        "cyclic",
        '``"cyclic"``, one weight after the other at its exact optimum, or ``"powell"``, Powell\'s '
        "search (the LambdaMART paper's baseline)",
        choice(METHODS),
    )
    rounds: int = parameter(20, "maximum number of passes over all weights", integer(low=1))
    n_threads: int | None = shared.N_THREADS

    def __sklearn_clone__(self) -> CombinedRanker:
        # The rankers are already trained: they are not cloned.
        return type(self)(**self.get_params(deep=False))

    def members(self) -> list[Any]:
        """Return the rankers that are combined."""
        return list(self.rankers_)

    def combined(self) -> list[tuple[Any, float | None]]:
        """Return the rankers and their weights."""
        return list(zip(self.rankers_, self.weights_.tolist(), strict=True))

    def _target(self) -> Measure:
        return target_measure(self.measure)

    def _fit(self, training: Training) -> Learned:
        owner = type(self).__name__
        rankers = loaded_members(self.rankers, 2, owner)
        target = target_measure(self.measure)
        searcher = search_weights(rankers, training.train, target, owner, self.n_threads)
        best = run_search(searcher, self.method, self.rounds, owner)
        return _learned(rankers, best.weights, best.value, owner)

    def with_weights(
        self, weights: np.ndarray, data: QueryDataset, value: float, rankers: Any = None
    ) -> CombinedRanker:
        """Set the weights that were found on some data, and the rankers if they were loaded."""
        listed = self.rankers if rankers is None else rankers
        return self._keep(_learned(listed, weights, value, type(self).__name__), data)

    def predict(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better."""
        self._check_is_fitted()
        threads = self.n_threads if n_threads is None else n_threads
        return weighted_sum(
            [member_scores(ranker, X, threads) for ranker in self.rankers_], self.weights_
        )

    def _state(self) -> tuple[Content, Arrays]:
        packed, arrays = pack_members(self.rankers_, "a combination")
        weights = {"weights": self.weights_.tolist(), "value": self.value_}
        return {"rankers": packed, **weights}, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self.rankers = self.rankers_ = unpack_members(content["rankers"], arrays)
        self.weights_ = np.array(content["weights"], np.float64)
        self.value_ = float(content["value"])
        if self.weights_.shape != (len(self.rankers_),) or not np.isfinite(self.weights_).all():
            raise ModelFileError("The weights of the combination do not fit its rankers.")


def _learned(rankers: Any, weights: np.ndarray, value: float, owner: str) -> Learned:
    return {
        "rankers_": tuple(loaded_members(rankers, 1, owner)),
        "weights_": np.array(weights, np.float64),
        "value_": float(value),
    }


def search_weights(
    rankers: Sequence[Any],
    data: QueryDataset,
    measure: Measure,
    owner: str,
    n_threads: int | None,
) -> Searcher:
    """Return the searcher of the weights of rankers, with their scores on some data."""
    if isinstance(rankers, str) or not hasattr(rankers, "__len__"):
        refuse("rankers", owner, "a list of trained rankers or of scores", rankers)
    if len(rankers) < 2:
        raise ParameterError(f"{owner} needs at least two rankers. Got {len(rankers)}.")
    columns = [data.grouped(scores_of(ranker, data, owner)[1]) for ranker in rankers]
    prepared = measure.prepare(data.grouped(data.y), data.query_ptr, n_threads)
    if np.isnan(prepared.fixed_value[prepared.is_fixed]).sum() == data.n_queries:
        raise DataError(
            f"{owner}: {measure} leaves out every query of the data (nothing relevant, or all "
            "labels equal), so no weights are better than others."
        )
    return Searcher(prepared, columns, n_threads)


def run_search(searcher: Searcher, method: str, rounds: int, owner: str) -> Weighted:
    """Find weights with the method of the given name."""
    check_choice("method", owner, method, METHODS)
    check_integer("rounds", owner, rounds, low=1)
    return searcher.cyclic(rounds) if method == "cyclic" else searcher.powell(rounds)
