"""FRank: thresholds of single features, weighted to reduce the fidelity loss of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankgrove.boosting.fidelity import FidelityRows
from rankgrove.boosting.loop import TrainingRows
from rankgrove.data.binning import BinnedMatrix
from rankgrove.measures.base import Measure
from rankgrove.objectives.label_pairs import LabelPairs
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import declares_parameters
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.rankboost import PairStumps
from rankgrove.rankers.trees.recipe import BoostingData, Recipe, label_pairs
from rankgrove.rankers.trees.starts import Start


@dataclass(frozen=True)
class FidelityRecipe(Recipe):
    """FRank's recipe: slopes belong to pairs, so stumps are found on the pairs themselves."""

    pairs: LabelPairs
    binned: BinnedMatrix
    start: Start
    n_columns: int = 1

    def rows(self, scores: np.ndarray, n_threads: int | None) -> TrainingRows:
        """Return the rows that the loop trains on, with their scores so far."""
        return FidelityRows(self.pairs, self.binned, scores, n_threads)


@declares_parameters
class FRank(PairStumps, BoostedRanker):
    """Boosting on pairs with the fidelity loss (Tsai, Liu, Qin, Chen and Ma 2007).

    The loss of a pair is 1 - sqrt(P), where P = 1 / (1 + exp(-gap)) is the probability that the
    better document is ranked first. It lies between 0 and 1, so a pair that cannot be put in order
    does not dominate the others, and queries can be given the same weight. A round adds a threshold
    of a feature, weighted by 1/2 ln(A / B): A and B are the slopes of the loss of the pairs that it
    orders correctly and wrongly.

    Attributes
    ----------
    ensemble_ : the stumps, up to the best round where there was validation data
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : by feature, the decrease of the loss by its stumps, adding up to 1
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.FRank(n_trees=50).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.5
    True
    """

    kind: ClassVar[str] = "frank"

    measure: str | Measure = shared.MEASURE
    n_trees: int = trees.N_TREES(
        300, "maximum number of rounds; every round adds a tree with two leaves"
    )
    n_thresholds: int | None = trees.N_THRESHOLDS(10)
    spacing: str = trees.SPACING
    even_queries: bool = trees.EVEN_QUERIES(True)
    submodel: Any = trees.SUBMODEL
    early_stopping: int | None = shared.EARLY_STOPPING
    overfitting_tolerance: float = trees.OVERFITTING_TOLERANCE
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = trees.CHECKPOINT_EVERY
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS

    def _recipe(self, data: BoostingData) -> Recipe:
        pairs = label_pairs(data.train, self.even_queries)
        return FidelityRecipe(pairs, data.binned, self._start())
