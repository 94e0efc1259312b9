"""GBRank: regression trees on the pairs that are not yet in the right order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankgrove.boosting.loop import Objective, TrainingRows
from rankgrove.boosting.rows import HeldTraining
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.objectives.label_pairs import MarginPairs
from rankgrove.rankers.pair_ranker import PairRanker
from rankgrove.validation import check_real


class GBRank(PairRanker):
    """Regression on pairs in the wrong order (Zheng, Chen, Sun and Zha 2007).

    With h the ranking function so far, every pair whose better document is not ahead by tau gives
    two targets: h(worse) + tau for the better document, h(better) - tau for the worse. A tree g is
    fitted to all targets, and h becomes (k h + g) / (k + 1), times `learning_rate` at g, in round
    k. That is the mean of all trees so far: the model holds their sum, which ranks the same.

    Parameters
    ----------
    measure : what decides on validation data: a measure or its name
    n_trees : number of trees at the most
    n_leaves : leaves of a tree at the most
    learning_rate : factor of every tree (the paper's eta)
    tau : by how much the better document of a pair is to be ahead; without a submodel it changes
        the scale of the scores alone
    min_leaf : least number of rows of a leaf; below 1, a share of the rows
    query_fraction : share of the queries a round sees, drawn anew every round
    row_fraction : share of those queries' documents a round's tree is grown on, drawn anew
    feature_fraction : share of the features a split may use, drawn anew at every split
    even_queries : give all queries the same weight together; otherwise all pairs of the data weigh
        the same. Weights of queries and rows (both documents') come on top
    submodel : what to go on from, the paper's h_0: a trained ranker, the path of a model file, any
        object with ``predict``, or ``"base_score"``: the data set's base scores
    early_stopping : stop when so many rounds have not bettered the validation measure
    overfitting_tolerance : keep trees after the best round until the validation measure is this
        share below its best
    max_bins : most bins of a feature, missing values apart
    max_depth : most splits between root and leaf; None: no limit
    min_gain : a split must gain more than this
    l2 : added to the weight of a leaf's targets, which are in number about a row's pairs
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : rounds between two checkpoints
    random_state : seed of all random draws
    n_threads : threads to use; None: all cores
    progress : show a progress bar

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
    split: str = "newton"  # a row has as many targets as it has pairs: its weight

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        n_trees: int = 300,
        n_leaves: int = 20,
        learning_rate: float = 1.0,
        tau: float = 1.0,
        min_leaf: int | float = 20,
        query_fraction: float = 1.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        even_queries: bool = False,
        submodel: Any = None,
        early_stopping: int | None = None,
        overfitting_tolerance: float = 0.0,
        max_bins: int = 255,
        max_depth: int | None = None,
        min_gain: float = 0.0,
        l2: float = 0.0,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 25,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.tau = tau
        self.min_leaf = min_leaf
        self.query_fraction = query_fraction
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.even_queries = even_queries
        self.submodel = submodel
        self.early_stopping = early_stopping
        self.overfitting_tolerance = overfitting_tolerance
        self.max_bins = max_bins
        self.max_depth = max_depth
        self.min_gain = min_gain
        self.l2 = l2
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        check_real("tau", type(self).__name__, self.tau, above=0.0)

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        return MarginPairs(self._pairs(train), self.tau)

    def _training_rows(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
    ) -> TrainingRows:
        assert isinstance(objective, MarginPairs)
        grower, sampler = self._grower(binned, keys), self._sampler(train, keys)
        rows = _MeanTraining(objective, grower, scores, sampler, self.n_threads)
        rows.rounds_before = self._rounds_before()
        return rows


class _MeanTraining(HeldTraining):
    """Training rows whose scores are the sum of h_0 and the trees so far, their mean being h."""

    rounds_before = 0

    def follow(self, round: int) -> None:
        assert isinstance(self._objective, MarginPairs)
        self._objective.n_summed = round - self.rounds_before + 1
        super().follow(round)
