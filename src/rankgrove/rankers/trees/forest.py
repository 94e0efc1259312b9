"""Random forests: regression trees on bootstrap samples; their mean is the score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rankgrove.boosting.forest_rows import Bootstrap, BootstrapLabels, ForestRows
from rankgrove.boosting.local_rows import TreeGrower
from rankgrove.boosting.loop import Progress, TrainingRows
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure, exact_mean, rank
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.objectives.pointwise import SquaredError
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned
from rankgrove.rankers.declaring import choice, declares_parameters, learned, parameter, real
from rankgrove.rankers.fitting import row_weights
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker, scaled
from rankgrove.rankers.trees.recipe import BoostingData, Recipe, TreeRecipe, histogram_trees
from rankgrove.rankers.trees.starts import ZERO, Start

if TYPE_CHECKING:
    from typing import Self

SAMPLED = ("queries", "rows")


@dataclass(frozen=True)
class ForestRecipe(TreeRecipe):
    """A forest's recipe: every tree fits the labels of its own bootstrap sample."""

    objective: BootstrapLabels
    grower: TreeGrower
    sampler: Bootstrap
    start: Start

    def rows(self, scores: np.ndarray, n_threads: int | None) -> TrainingRows:
        """Return the rows that the loop trains on, with their scores so far."""
        return ForestRows(self.objective, self.grower, scores, self.sampler, n_threads)


@declares_parameters
class RandomForest(BoostedRanker):
    """A random forest: the mean of regression trees, each on its own sample (Breiman 2001).

    Every tree fits the labels of a bootstrap sample of the queries, drawn with replacement, and
    every split sees a random share of the features.

    Attributes
    ----------
    ensemble_ : the trees, up to the best round where there was validation data; their values are
        divided by their number, so the score is the mean
    out_of_bag_ : the mean of the measure over the training queries, each scored by those of all
        grown trees that did not see it; None where there is no such query, or where the run
        continued from a checkpoint
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
    takes_categories: ClassVar[bool] = True
    out_of_bag_: float | None = learned()

    measure: str | Measure = shared.MEASURE(
        "ndcg@10", "measure (or its name) that decides on validation data, also of `out_of_bag_`"
    )
    n_trees: int = trees.N_TREES(300)
    n_leaves: int = trees.N_LEAVES(100)
    sample: str = parameter(
        "queries",
        'unit of the bootstrap sample: whole ``"queries"``, or single ``"rows"``',
        choice(SAMPLED),
    )
    sample_fraction: float = parameter(
        1.0,
        "size of the bootstrap sample, as a share of all queries or rows",
        real(high=1.0, above=0.0),
    )
    feature_fraction: float = trees.FEATURE_FRACTION(0.3)
    min_leaf: int | float = trees.MIN_LEAF(
        1, "minimum number of different rows of a leaf; below 1, a share of the rows"
    )
    early_stopping: int | None = shared.EARLY_STOPPING
    max_bins: int = trees.MAX_BINS
    max_depth: int | None = trees.MAX_DEPTH
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = trees.CHECKPOINT_EVERY
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS
    monotone: Mapping[str | int, int] | None = trees.MONOTONE
    interactions: Sequence[Sequence[str | int]] | None = trees.INTERACTIONS
    category_rules: Mapping[str, float] | None = trees.CATEGORY_RULES

    def _default_qid(self, n_rows: int) -> np.ndarray:
        return np.arange(n_rows)  # every row is a query

    def objective_on(self, train: QueryDataset, keys: np.ndarray) -> SquaredError:
        """Return the objective of the trees on rows in query order."""
        return SquaredError(train.grouped(train.y), train.query_ptr, row_weights(train))

    def _recipe(self, data: BoostingData) -> Recipe:
        train, whole = data.train, self.sample == "queries"
        bootstrap = Bootstrap(
            train.query_keys if whole else data.keys,
            np.diff(train.query_ptr) if whole else None,
            self.sample_fraction,
            self.random_state,
        )
        objective = BootstrapLabels(self.objective_on(train, data.keys), bootstrap)
        # a row's weight is how often it was drawn; Newton splits use weights
        grower = histogram_trees(self, data, split="newton", min_gain=0.0, l2=0.0)
        return ForestRecipe(objective, grower, bootstrap, ZERO)

    def _learned(self, done: Progress, start: Start, n_columns: int, n_features: int) -> Learned:
        learned = super()._learned(done, start, n_columns, n_features)
        forest = learned["ensemble_"]
        return learned | {"ensemble_": scaled(forest, 1.0 / max(1, forest.n_trees))}

    def _also_learned(self, recipe: Recipe, rows: TrainingRows | None, done: Progress) -> Learned:
        assert isinstance(recipe, ForestRecipe)
        assert isinstance(rows, ForestRows)
        from_the_first = done.first == 0  # a resumed run does not know the earlier trees' samples
        out_of_bag = self._out_of_bag(recipe.objective, rows) if from_the_first else None
        return {"out_of_bag_": out_of_bag}

    def _out_of_bag(self, objective: BootstrapLabels, rows: ForestRows) -> float | None:
        """Return the mean of the measure where trees that did not see a row score it."""
        total, n_trees = rows.unseen
        labels, query_ptr = objective.labels, objective.query_ptr
        if query_ptr.size == labels.size + 1:
            return None  # every query has one row: there are no rankings
        values = parse_measure(self.measure).prepare(labels, query_ptr, self.n_threads)
        ranking = rank(total / np.maximum(n_trees, 1), query_ptr, self.n_threads)
        known = np.minimum.reduceat(n_trees, query_ptr[:-1]) > 0
        mean = exact_mean(values.values(ranking, self.n_threads)[known])
        return None if math.isnan(mean) else mean

    def truncated(self, n_trees: int) -> Self:
        """Return the forest of the first `n_trees` trees."""
        shorter = super().truncated(n_trees)
        shorter.ensemble_ = scaled(shorter.ensemble_, self.ensemble_.n_trees / max(1, n_trees))
        shorter.out_of_bag_ = None
        return shorter

    def _about(self) -> list[str]:
        if self.out_of_bag_ is None:
            return []
        return [f"out of bag {self.measure}: {self.out_of_bag_:.4f}"]

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = super()._state()
        return {**content, "out_of_bag": self.out_of_bag_}, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        super()._restore(content, arrays)
        self.out_of_bag_ = content["out_of_bag"]
