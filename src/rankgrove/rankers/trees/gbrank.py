"""GBRank: regression trees on the pairs that are not yet in the right order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.objectives.label_pairs import MarginPairs
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import declares_parameters, parameter, real
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.recipe import (
    BoostingData,
    TreeRecipe,
    drawn_rows,
    histogram_trees,
    label_pairs,
)


@declares_parameters
class GBRank(BoostedRanker):
    """Regression on pairs in the wrong order (Zheng, Chen, Sun and Zha 2007).

    Let h be the ranking function so far. Every pair whose better document is not ahead by tau gives
    two targets: h(worse) + tau for the better document, h(better) - tau for the worse. A tree g is
    fitted to all targets, and in round k h becomes (k h + learning_rate g) / (k + 1). That is the
    mean of all trees so far: the model holds their sum, which ranks the same.

    Attributes
    ----------
    ensemble_ : the trees, up to the best round where there was validation data
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : gains by feature, adding up to 1
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.GBRank(n_trees=20).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.5
    True
    """

    kind: ClassVar[str] = "gbrank"
    takes_categories: ClassVar[bool] = True

    measure: str | Measure = shared.MEASURE
    n_trees: int = trees.N_TREES(300)
    n_leaves: int = trees.N_LEAVES(20)
    learning_rate: float = trees.LEARNING_RATE(1.0, "factor of every tree (the paper's eta)")
    tau: float = parameter(
        1.0,
        "margin by which the better document of a pair should be ahead; without a submodel it only "
        "changes the scale of the scores",
        real(above=0.0),
    )
    min_leaf: int | float = trees.MIN_LEAF
    query_fraction: float = trees.QUERY_FRACTION
    row_fraction: float = trees.ROW_FRACTION
    feature_fraction: float = trees.FEATURE_FRACTION
    even_queries: bool = trees.EVEN_QUERIES
    submodel: Any = trees.SUBMODEL
    early_stopping: int | None = shared.EARLY_STOPPING
    overfitting_tolerance: float = trees.OVERFITTING_TOLERANCE
    max_bins: int = trees.MAX_BINS
    max_depth: int | None = trees.MAX_DEPTH
    min_gain: float = trees.MIN_GAIN
    l2: float = trees.L2(
        0.0, "added to the weight of a leaf's targets; a row has about as many as it has pairs"
    )
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = trees.CHECKPOINT_EVERY
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS
    growth: str = trees.GROWTH
    monotone: Mapping[str | int, int] | None = trees.MONOTONE
    interactions: Sequence[Sequence[str | int]] | None = trees.INTERACTIONS
    category_rules: Mapping[str, float] | None = trees.CATEGORY_RULES

    def objective_on(
        self, train: QueryDataset, keys: np.ndarray, first_round: int = 0
    ) -> MarginPairs:
        """Return the regression on pairs of rows in query order."""
        return MarginPairs(label_pairs(train, self.even_queries), self.tau, first_round)

    def _recipe(self, data: BoostingData) -> TreeRecipe:
        start = self._start()
        return TreeRecipe(
            self.objective_on(data.train, data.keys, start.rounds),
            # a row's weight is its number of targets, one per pair; Newton splits use weights
            histogram_trees(self, data, split="newton", min_gain=self.min_gain, l2=self.l2),
            drawn_rows(data, self.query_fraction, self.row_fraction, self.random_state),
            start,
        )
