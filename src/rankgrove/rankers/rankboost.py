"""RankBoost: thresholds of single features, weighted so that few pairs stay in the wrong order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankgrove.boosting.loop import Objective, TrainingRows
from rankgrove.boosting.rows import HeldTraining
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.growth.stumps import PotentialStumps
from rankgrove.measures.base import Measure
from rankgrove.objectives.label_pairs import ExponentialPairs
from rankgrove.rankers.pair_ranker import StumpRanker


class RankBoost(StumpRanker):
    """Boosting on pairs of documents (Freund, Iyer, Schapire and Singer 2003).

    Every pair of a better and a worse document weighs exp(score of the worse - score of the
    better). A round takes the threshold of a feature with the largest r, the weight of the pairs
    that it orders rightly less that of those it orders wrongly, over that of all; documents above
    it get 1/2 ln((1 + r) / (1 - r)) (below 0 where r is). The sum of all pairs' weights falls by
    sqrt(1 - r^2) or more every round, and bounds the number of pairs in the wrong order.

    Parameters
    ----------
    measure : what decides on validation data: a measure or its name
    n_trees : number of rounds at the most; every round adds a tree with two leaves
    n_thresholds : None: a threshold between any two bins of a feature's values, 255 at the most. A
        number, up to 254: as many thresholds at the most (RankLib has 10)
    spacing : where a number of thresholds is set, ``"even"``: at equal distances from the least
        value to the largest; ``"quantile"``: at equal shares of the rows
    even_queries : give all queries the same weight together; otherwise all pairs of the data weigh
        the same, so that queries with many documents count more. Weights of queries and rows
        (both documents') come on top
    submodel : what to go on from: a trained ranker, the path of a model file, any object with
        ``predict``, or ``"base_score"``: the data set's base scores
    early_stopping : stop when so many rounds have not bettered the validation measure
    overfitting_tolerance : keep trees after the best round until the validation measure is this
        share below its best
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : rounds between two checkpoints
    n_threads : threads to use; None: all cores
    progress : show a progress bar

    Attributes
    ----------
    ensemble_ : the stumps, up to the best round where there was validation data
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : by feature, what its stumps took off the logarithm of the bound
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.RankBoost(n_trees=100).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.5
    True
    """

    kind: ClassVar[str] = "rankboost"

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        n_trees: int = 300,
        n_thresholds: int | None = None,
        spacing: str = "even",
        even_queries: bool = False,
        submodel: Any = None,
        early_stopping: int | None = None,
        overfitting_tolerance: float = 0.0,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 25,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.n_trees = n_trees
        self.n_thresholds = n_thresholds
        self.spacing = spacing
        self.even_queries = even_queries
        self.submodel = submodel
        self.early_stopping = early_stopping
        self.overfitting_tolerance = overfitting_tolerance
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.n_threads = n_threads
        self.progress = progress

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        return ExponentialPairs(self._pairs(train))

    def _training_rows(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
    ) -> TrainingRows:
        stumps = PotentialStumps(binned, self.n_threads)
        sampler = self._sampler(train, keys)  # of everything
        return HeldTraining(objective, stumps, scores, sampler, self.n_threads)
