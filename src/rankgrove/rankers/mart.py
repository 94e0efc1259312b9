"""MART: boosted regression trees on losses of single rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from rankgrove.boosting.loop import Objective
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.objectives.pointwise import Balanced, Logistic, SquaredError
from rankgrove.rankers.boosted import BoostedRanker
from rankgrove.rankers.boosted_data import row_weights
from rankgrove.validation import check_choice, check_real

_TWO_CLASSES = {"logistic": Logistic, "balanced": Balanced}


def _has_two_classes(ranker: MART) -> bool:
    if ranker.loss not in _TWO_CLASSES:
        raise AttributeError(
            f"MART(loss={ranker.loss!r}) knows no probabilities: train with loss='logistic' or "
            "'balanced', or take predict's scores."
        )
    return True


class MART(BoostedRanker):
    """Boosted regression trees (Friedman's; overview paper, sections 5 and 6).

    Every row stands for itself: a tree follows the gradients of a loss of label and score, and
    every leaf takes the Newton step, sum of gradients over sum of second derivatives. The order
    within a query plays no part in it, only in validation.

    Parameters
    ----------
    loss : ``"squared"``: the score is a regression of the label; ``"logistic"``: half the log odds
        that the document is relevant (over sigma); ``"balanced"``: the same with relevant and
        other documents of equal weight in all (equation 15), where one kind is rare
    measure : what decides on validation data: a measure or its name
    n_trees : number of trees at the most
    n_leaves : leaves of a tree at the most
    learning_rate : factor of every leaf's step
    min_leaf : least number of rows of a leaf; below 1, a share of the rows
    query_fraction : share of the queries a round sees, drawn anew every round
    row_fraction : share of those queries' documents a round's trees are grown on, drawn anew
    feature_fraction : share of the features a split may use, drawn anew at every split
    split : how splits are valued: ``"newton"`` (gradient and second derivative; also what weights
        of rows call for) or ``"mse"`` (least squares on the gradients, as the papers do); for
        squared error without weights they are the same
    sigma : slope of the sigmoid of the two-class losses; it changes the scale of the scores, not
        the ranking
    relevant : lowest label of a relevant document, for the two-class losses
    early_stopping : stop when so many rounds have not bettered the validation measure
    overfitting_tolerance : keep trees after the best round until the validation measure is this
        share below its best (0.02: 2 %), 250 at the most, and no more than early_stopping lets
        grow. In the BL-MART paper bags of such models are better; on MQ2008 they are level
    max_bins : most bins of a feature, missing values apart
    max_depth : most splits between root and leaf; None: no limit
    min_gain : a split must gain more than this
    l2 : added (times sigma squared) to the sum of second derivatives of a leaf, so that a leaf of
        little weight takes no giant step; 0 is the papers' own
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : rounds between two checkpoints
    random_state : seed of all random draws
    n_threads : threads to use; None: all cores
    progress : show a progress bar

    Attributes
    ----------
    ensemble_ : the trees, up to the best round where there was validation data; its ``base`` is
        the constant score of least loss, which boosting begins with
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : gains by feature, adding up to 1
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.MART(n_trees=20).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.45
    True
    >>> two_classes = rg.MART("logistic", relevant=2, n_trees=20).fit(train)
    >>> two_classes.predict_proba(test).shape
    (2500, 2)
    """

    kind: ClassVar[str] = "mart"

    def __init__(
        self,
        loss: str = "squared",
        measure: str | Measure = "ndcg@10",
        n_trees: int = 500,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        min_leaf: int | float = 20,
        query_fraction: float = 1.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        split: str = "newton",
        sigma: float = 1.0,
        relevant: float = 1.0,
        early_stopping: int | None = None,
        overfitting_tolerance: float = 0.0,
        max_bins: int = 255,
        max_depth: int | None = None,
        min_gain: float = 0.0,
        l2: float = 0.1,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 25,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.loss = loss
        self.measure = measure
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.min_leaf = min_leaf
        self.query_fraction = query_fraction
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.split = split
        self.sigma = sigma
        self.relevant = relevant
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
        owner = type(self).__name__
        check_choice("loss", owner, self.loss, ["squared", *_TWO_CLASSES])
        check_real("sigma", owner, self.sigma, above=0.0)
        check_real("relevant", owner, self.relevant)

    @available_if(_has_two_classes)
    def predict_proba(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """Return the probabilities of not being relevant and of being so, of shape (rows, 2).

        The second is the paper's P+ = 1 / (1 + exp(-2 sigma F)). With the balanced loss it is the
        probability where both kinds are equally frequent. With squared loss there are none, and no
        such method.
        """
        from scipy.special import expit

        odds = 2.0 * self.sigma * self._scores(*self._checked_input(X, "predict_proba", n_threads))
        return np.column_stack([expit(-odds), expit(odds)])

    def _queries_of_none(self, n_rows: int) -> np.ndarray:
        return np.arange(n_rows)  # every row is drawn by itself

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        labels, weight = train.grouped(train.y), row_weights(train)
        objective: SquaredError | Logistic
        if self.loss == "squared":
            objective = SquaredError(labels, train.query_ptr, weight)
        else:
            signs = np.where(labels >= self.relevant, 1, -1)
            objective = _TWO_CLASSES[self.loss](signs, train.query_ptr, self.sigma, weight)
        self._start = objective.start
        return objective

    def _leaf_l2(self) -> float:
        if self.loss == "squared":
            return self.l2
        return self.l2 * self.sigma**2  # as the second derivatives scale
