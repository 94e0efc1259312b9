"""MART: boosted regression trees on losses of single rows, or of whole queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.measures.base import Measure
from rankgrove.objectives.clicks import AdditiveObjective, SoftLogistic
from rankgrove.objectives.list_losses import QuerySquaredError, SoftmaxCrossEntropy
from rankgrove.objectives.pointwise import Balanced, Logistic, SquaredError
from rankgrove.objectives.position_bias import (
    AdditiveBias,
    AffineBias,
    PositionBias,
    Propensities,
)
from rankgrove.rankers import parameters as shared
from rankgrove.rankers import positions
from rankgrove.rankers.declaring import choice, declares_parameters, parameter, real
from rankgrove.rankers.estimator import available_if
from rankgrove.rankers.fitting import row_weights
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.recipe import (
    BoostingData,
    TreeRecipe,
    drawn_rows,
    histogram_trees,
)
from rankgrove.rankers.trees.starts import ConstantStart

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents

_TWO_CLASSES = {"logistic": Logistic, "balanced": Balanced}
_OF_QUERIES = ("softmax", "query_squared")
_Loss = SquaredError | Logistic | SoftLogistic | SoftmaxCrossEntropy | QuerySquaredError
# Other libraries' names of losses, and ours
_ELSEWHERE = {
    "queryrmse": "query_squared",
    "rank_xendcg": "softmax",
    "xendcg": "softmax",
    "xe_ndcg": "softmax",
    "xe_ndcg_mart": "softmax",
    "xe-ndcg": "softmax",
}


def _has_two_classes(ranker: MART) -> bool:
    if ranker.loss not in _TWO_CLASSES:
        raise AttributeError(
            f"MART(loss={ranker.loss!r}) has no probabilities: train with loss='logistic' or "
            "'balanced', or use the scores of predict."
        )
    return True


@declares_parameters
class MART(BoostedRanker):
    """Boosted regression trees (Friedman's; overview paper, sections 5 and 6).

    A tree follows the gradients of a loss of labels and scores, and every leaf takes the Newton
    step, sum of gradients over sum of second derivatives. By default every row counts by itself;
    two of the losses compare the documents of a query.

    Attributes
    ----------
    ensemble_ : the trees, up to the best round where there was validation data; its ``base`` is
        the constant score of least loss, from which boosting starts
    best_round_ : the round with the best validation value, or None
    position_bias_ : a table of what was learned about positions; None without `position_bias`
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
    takes_categories: ClassVar[bool] = True

    loss: str = parameter(
        "squared",
        '``"squared"``: the score is a regression of the label; ``"logistic"``: half the log odds '
        'that the document is relevant (over sigma); ``"balanced"``: the same, but relevant and '
        "other documents have equal total weight (equation 15), for data where one kind is rare; "
        '``"softmax"``: the cross entropy of a query\'s labels and the softmax of its scores '
        '(XE-NDCG, Bruch 2021); ``"query_squared"``: the squared error after the mean error of '
        "each query has been taken out (QueryRMSE)",
        choice(["squared", *_TWO_CLASSES, *_OF_QUERIES], _ELSEWHERE),
    )
    measure: str | Measure = shared.MEASURE
    n_trees: int = trees.N_TREES
    n_leaves: int = trees.N_LEAVES
    learning_rate: float = trees.LEARNING_RATE
    min_leaf: int | float = trees.MIN_LEAF
    query_fraction: float = trees.QUERY_FRACTION
    row_fraction: float = trees.ROW_FRACTION
    feature_fraction: float = trees.FEATURE_FRACTION
    split: str = trees.SPLIT
    sigma: float = trees.SIGMA
    relevant: float = parameter(
        1.0, "lowest label of a relevant document, for the two-class losses", real()
    )
    early_stopping: int | None = shared.EARLY_STOPPING
    overfitting_tolerance: float = trees.OVERFITTING_TOLERANCE
    max_bins: int = trees.MAX_BINS
    max_depth: int | None = trees.MAX_DEPTH
    min_gain: float = trees.MIN_GAIN
    l2: float = trees.L2(
        0.1,
        "added (times sigma squared) to the sum of second derivatives of a leaf, so that a leaf of "
        "little weight takes no giant step; 0: as in the papers",
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
    position_bias: str | None = positions.POSITION_BIAS(
        meaning="how learning from clicks corrects for positions (the data has them, and labels "
        'are clicks): ``"additive"``: a number per position is added to scores in training, '
        'learned with the trees; ``"ips"``: clicks are divided by propensities; ``"affine"``: '
        "clicks are corrected for trust in high positions too; None: labels are taken as they are",
    )
    propensities: Any = positions.PROPENSITIES
    n_positions: int | None = positions.N_POSITIONS
    position_clip: float = positions.POSITION_CLIP
    position_l2: float = positions.POSITION_L2

    @available_if(_has_two_classes)
    def predict_proba(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return the probabilities of being irrelevant and relevant, of shape (rows, 2).

        The second is the paper's P+ = 1 / (1 + exp(-2 sigma F)). With the balanced loss it is the
        probability where both kinds are equally frequent. With squared loss the method does not
        exist.
        """
        from scipy.special import expit

        odds = 2.0 * self.sigma * self._scores(*self._checked_input(X, "predict_proba", n_threads))
        return np.column_stack([expit(-odds), expit(odds)])

    def _default_qid(self, n_rows: int) -> np.ndarray | None:
        return None if self.loss in _OF_QUERIES else np.arange(n_rows)  # every row is a query

    def _check_together(self) -> None:
        super()._check_together()
        positions.check_unused(self)
        method, loss = self.position_bias, self.loss
        if (
            method == "ratios"
            or (method in ("ips", "affine") and loss == "balanced")
            or (method == "affine" and loss == "softmax")
        ):
            why = {
                "ratios": "weighs pairs of documents: use LambdaMART",
                "ips": "changes how much of a class there is, and 'balanced' evens that out: use "
                "loss='logistic'",
                "affine": "gives labels below 0, which this loss cannot have: use "
                "loss='query_squared' or 'logistic'",
            }[str(method)]
            raise ParameterError(
                f"MART: position_bias={method!r} cannot be used with loss={loss!r}: it {why}."
            )

    def _recipe(self, data: BoostingData) -> TreeRecipe:
        # second derivatives of the two-class losses scale with sigma squared
        slope = self.sigma if self.loss in _TWO_CLASSES else 1.0
        l2 = self.l2 * slope**2
        additive = positions.additive_bias(
            self, by_difference=self.loss in _OF_QUERIES, slope=slope
        )
        bias = positions.bias_of(self, data.train, data.training.owner, additive)
        objective = self.objective_on(data.train, data.keys, bias)
        return TreeRecipe(
            objective,
            histogram_trees(self, data, split=self.split, min_gain=self.min_gain, l2=l2),
            drawn_rows(data, self.query_fraction, self.row_fraction, self.random_state),
            ConstantStart(objective.start),
        )

    def objective_on(
        self, train: QueryDataset, keys: np.ndarray, bias: PositionBias | None = None
    ) -> _Loss | AdditiveObjective:
        """Return the objective of the trees on rows in query order.

        With a `bias` labels are clicks, whose positions count.
        """
        labels = train.grouped(train.y)
        if bias is None:
            return self._loss_of(labels, train, keys)
        cell = positions.cells_of_rows(bias, train)
        if isinstance(bias, AdditiveBias):
            return AdditiveObjective(self._loss_of(labels, train, keys), bias, cell)
        assert isinstance(bias, Propensities | AffineBias)
        corrected = bias.corrected(labels, cell)
        if self.loss == "softmax":  # the loss is linear in 2^label, not in the label
            corrected = np.log2(1.0 + corrected)
        loss: Any = self._loss_of(corrected, train, keys, soft=True)
        loss.bias = bias
        return loss

    def _loss_of(
        self, labels: np.ndarray, train: QueryDataset, keys: np.ndarray, *, soft: bool = False
    ) -> _Loss:
        """Return the loss of labels in query order; `soft`: they may be any numbers."""
        weight = row_weights(train)
        if self.loss == "softmax":
            return SoftmaxCrossEntropy(
                labels,
                train.query_ptr,
                row_keys=keys,
                seed=self.random_state,
                weight=None if train.weight is None else train.grouped(train.weight),
                query_weight=train.query_weight,
            )
        if self.loss == "query_squared":
            return QuerySquaredError(labels, train.query_ptr, weight)
        if self.loss == "squared":
            return SquaredError(labels, train.query_ptr, weight)
        if soft:
            return SoftLogistic(labels, train.query_ptr, self.sigma, weight)
        signs = np.where(labels >= self.relevant, 1, -1)
        return _TWO_CLASSES[self.loss](signs, train.query_ptr, self.sigma, weight)
