"""Random forests: regression trees on bootstrap samples, ranked by their mean."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.boosting.forest import Bootstrap, ForestTraining
from rankgrove.boosting.loop import Objective, Progress, TrainingRows
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure, exact_mean, rank
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.objectives.pointwise import SquaredError
from rankgrove.rankers.boosted import BoostedRanker
from rankgrove.rankers.boosted_data import row_weights
from rankgrove.rankers.kept import HasFeatures
from rankgrove.validation import check_choice, check_real

if TYPE_CHECKING:
    from typing import Self

SAMPLED = ("queries", "rows")


class RandomForest(BoostedRanker):
    """A random forest: the mean of regression trees, each on its own sample (Breiman 2001).

    Every tree is grown for the labels on a bootstrap sample of the queries, drawn with
    replacement, and every split looks at a random share of the features.

    Parameters
    ----------
    measure : what decides on validation data, and of `out_of_bag_`: a measure or its name
    n_trees : number of trees at the most
    n_leaves : leaves of a tree at the most
    sample : what is drawn with replacement: ``"queries"`` (whole ones), or single ``"rows"``
    sample_fraction : how many are drawn, as a share of those there are; some come several times
    feature_fraction : share of the features a split may use, drawn anew at every split
    min_leaf : least number of different rows of a leaf; below 1, a share of the rows
    early_stopping : stop when so many rounds have not bettered the validation measure
    max_bins : most bins of a feature, missing values apart
    max_depth : most splits between root and leaf; None: no limit
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : rounds between two checkpoints
    random_state : seed of all random draws
    n_threads : threads to use; None: all cores
    progress : show a progress bar

    Attributes
    ----------
    ensemble_ : the trees, up to the best round where there was validation data; their values are
        divided by their number, so that the score is the mean
    out_of_bag_ : the mean of the measure over the training queries, scored by the trees that did
        not see them (all that were grown); None where there is no such query, or the run went on
        from a checkpoint
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : gains by feature, adding up to 1
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.RandomForest(n_trees=30).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.5
    True
    """

    kind: ClassVar[str] = "randomforest"
    # what boosted trees have as parameters, and a forest does not
    learning_rate: float = 1.0
    query_fraction: float = 1.0
    split: str = "newton"  # a row weighs as often as it was drawn
    min_gain: float = 0.0
    l2: float = 0.0

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        n_trees: int = 300,
        n_leaves: int = 100,
        sample: str = "queries",
        sample_fraction: float = 1.0,
        feature_fraction: float = 0.3,
        min_leaf: int | float = 1,
        early_stopping: int | None = None,
        max_bins: int = 255,
        max_depth: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 25,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.sample = sample
        self.sample_fraction = sample_fraction
        self.feature_fraction = feature_fraction
        self.min_leaf = min_leaf
        self.early_stopping = early_stopping
        self.max_bins = max_bins
        self.max_depth = max_depth
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        check_choice("sample", owner, self.sample, SAMPLED)
        check_real("sample_fraction", owner, self.sample_fraction, above=0.0, high=1.0)

    def _queries_of_none(self, n_rows: int) -> np.ndarray:
        return np.arange(n_rows)  # every row is drawn by itself

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        return SquaredError(train.grouped(train.y), train.query_ptr, row_weights(train))

    def _training_rows(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
    ) -> TrainingRows:
        assert isinstance(objective, SquaredError)
        whole = self.sample == "queries"
        bootstrap = Bootstrap(
            train.query_keys if whole else keys,
            np.diff(train.query_ptr) if whole else None,
            self.sample_fraction,
            self.random_state,
        )
        grower, sampler = self._grower(binned, keys), self._sampler(train, keys)
        rows = ForestTraining(objective, grower, scores, sampler, bootstrap, self.n_threads)
        self._unseen = (rows.unseen, objective.labels, train.query_ptr)
        return rows

    def _keep(self, train: HasFeatures, done: Progress, n_columns: int) -> None:
        super()._keep(train, done, n_columns)
        self.ensemble_ = _scaled(self.ensemble_, 1.0 / max(1, self.ensemble_.n_trees))
        self.out_of_bag_ = self._out_of_bag() if done.first == 0 else None
        del self._unseen

    def _out_of_bag(self) -> float | None:
        """Return the mean of the measure where rows are scored by trees that missed them."""
        (total, n), labels, query_ptr = self._unseen
        if query_ptr.size == labels.size + 1:
            return None  # a row is all of its query: there are no rankings
        values = parse_measure(self.measure).prepare(labels, query_ptr, self.n_threads)
        ranking = rank(total / np.maximum(n, 1), query_ptr, self.n_threads)
        known = np.minimum.reduceat(n, query_ptr[:-1]) > 0
        mean = exact_mean(values.values(ranking, self.n_threads)[known])
        return None if math.isnan(mean) else mean

    def truncated(self, n_trees: int) -> Self:
        """Return the forest of the first `n_trees` trees."""
        made = super().truncated(n_trees)
        made.ensemble_ = _scaled(made.ensemble_, self.ensemble_.n_trees / max(1, n_trees))
        made.out_of_bag_ = None
        return made

    def _about(self) -> list[str]:
        if self.out_of_bag_ is None:
            return []
        return [f"out of bag {self.measure}: {self.out_of_bag_:.4f}"]

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content, arrays = super()._state()
        return {**content, "out_of_bag": self.out_of_bag_}, arrays

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(content, arrays)
        self.out_of_bag_ = content["out_of_bag"]


def _scaled(ensemble: Ensemble, factor: float) -> Ensemble:
    return replace(ensemble, value=factor * ensemble.value)
