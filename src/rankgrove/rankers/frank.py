"""FRank: thresholds of single features, weighted for the fidelity loss of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankgrove.boosting.fidelity import FidelityTraining
from rankgrove.boosting.loop import Objective, TrainingRows
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.objectives.label_pairs import ExponentialPairs
from rankgrove.rankers.pair_ranker import StumpRanker


class FRank(StumpRanker):
    """Boosting on pairs with the fidelity loss (Tsai, Liu, Qin, Chen and Ma 2007).

    The loss of a pair is 1 - sqrt(P), where P = 1 / (1 + exp(-gap)) is the probability that the
    better document is the better one. It lies between 0 and 1, so that a pair that cannot be put
    right does not rule the others, and queries can be given the same weight. A round adds a
    threshold of a feature, weighted by 1/2 ln(A / B): A and B are the slopes of the loss of the
    pairs that it orders rightly and wrongly.

    Parameters
    ----------
    measure : what decides on validation data: a measure or its name
    n_trees : number of rounds at the most; every round adds a tree with two leaves
    n_thresholds : thresholds of a feature at the most, up to 254; None: one between any two bins
        of values, 255 at the most
    spacing : ``"even"``: at equal distances from the least value to the largest; ``"quantile"``: at
        equal shares of the rows
    even_queries : give all queries the same weight together, as the paper does; otherwise all
        pairs of the data weigh the same. Weights of queries and rows (both documents') come on top
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
    feature_importances_ : by feature, what its stumps took off the loss, adding up to 1
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

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        n_trees: int = 300,
        n_thresholds: int | None = 10,
        spacing: str = "even",
        even_queries: bool = True,
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
        # its pairs are what is wanted; pulls are summed where stumps are sought
        return ExponentialPairs(self._pairs(train))

    def _training_rows(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
    ) -> TrainingRows:
        assert isinstance(objective, ExponentialPairs)
        return FidelityTraining(objective.pairs, binned, scores, self.n_threads)
