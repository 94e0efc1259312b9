"""McRank: boosted trees that learn how likely every label is, and rank by the expected label."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankgrove.boosting.loop import Objective
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ModelFileError
from rankgrove.measures.base import Measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.objectives.classes import FORMS, find_classes
from rankgrove.rankers.boosted import BoostedRanker
from rankgrove.rankers.boosted_data import row_weights
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.validation import check_choice


class McRank(BoostedRanker):
    """Ranking by classification: the score is the expected label (Li, Burges and Wu's McRank).

    The baseline of the LambdaMART paper. Every round grows one tree a class (``"classes"``) or one
    a threshold between classes (``"ordinal"``), so that K labels make K or K - 1 times as many
    trees as there are rounds. The paper's setting: n_trees=1000, n_leaves=10, learning_rate=0.05.

    Parameters
    ----------
    form : ``"classes"``: the softmax of K scores; ``"ordinal"``: K - 1 two-class models of a label
        being above a threshold
    measure : what decides on validation data: a measure or its name
    n_trees : number of rounds at the most; a round has one tree a class (or threshold)
    n_leaves : leaves of a tree at the most
    learning_rate : factor of every leaf's step
    min_leaf : least number of rows of a leaf; below 1, a share of the rows
    query_fraction : share of the queries a round sees, drawn anew every round
    row_fraction : share of those queries' documents a round's trees are grown on, drawn anew
    feature_fraction : share of the features a split may use, drawn anew at every split
    split : how splits are valued: ``"mse"`` (least squares on the gradients, as the papers do) or
        ``"newton"`` (gradient and second derivative; also what weights of rows call for)
    early_stopping : stop when so many rounds have not bettered the validation measure
    overfitting_tolerance : keep trees after the best round until the validation measure is this
        share below its best (0.02: 2 %), 250 at the most, and no more than early_stopping lets
        grow. In the BL-MART paper bags of such models are better; on MQ2008 they are level
    max_bins : most bins of a feature, missing values apart
    max_depth : most splits between root and leaf; None: no limit
    min_gain : a split must gain more than this
    l2 : added to the sum of second derivatives of a leaf, so that a leaf of little weight takes no
        giant step; 0 is the papers' own
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : rounds between two checkpoints
    random_state : seed of all random draws
    n_threads : threads to use; None: all cores
    progress : show a progress bar

    Attributes
    ----------
    classes_ : the distinct labels of the training data, ascending, at most 32
    ensemble_ : the trees, one column a class (or threshold), up to the best round where there was
        validation data
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : gains by feature, adding up to 1
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.McRank(n_trees=20).fit(train)
    >>> model.ensemble_.n_trees
    100
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.45
    True
    """

    kind: ClassVar[str] = "mcrank"
    classes_: np.ndarray

    def __init__(
        self,
        form: str = "classes",
        measure: str | Measure = "ndcg@10",
        n_trees: int = 500,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        min_leaf: int | float = 20,
        query_fraction: float = 1.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        split: str = "mse",
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
        self.form = form
        self.measure = measure
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.min_leaf = min_leaf
        self.query_fraction = query_fraction
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.split = split
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
        check_choice("form", type(self).__name__, self.form, FORMS)

    def predict_proba(self, X: Any, n_threads: int | None = None) -> np.ndarray:
        """Return the probability of every label of ``classes_``, of shape (rows, classes)."""
        features, rows, threads = self._checked_input(X, "predict_proba", n_threads)
        columns = np.atleast_2d(score_ensemble(self.ensemble_, features, rows, threads))
        return FORMS[self.form].probabilities(columns)

    def _queries_of_none(self, n_rows: int) -> np.ndarray:
        return np.arange(n_rows)  # every row is drawn by itself

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        labels, weight = train.grouped(train.y), row_weights(train)
        self.classes_ = find_classes(labels, weight, type(self).__name__)
        return FORMS[self.form](labels, self.classes_, train.query_ptr, weight)

    def _rank_by(self, columns: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        """Return the expected labels."""
        threads = self.n_threads if n_threads is None else n_threads
        return FORMS[self.form].expected(columns, self.classes_, threads)

    def _one_ensemble(self) -> Ensemble | None:
        return None  # the score is an expected label, with one column of trees too

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content, arrays = super()._state()
        return content | {"classes": self.classes_.tolist()}, arrays

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(content, arrays)
        self.classes_ = np.array(content["classes"], np.float64)
        if self.form not in FORMS:
            raise ModelFileError(f"The form {self.form!r} is not known here.")
        columns = self.classes_.size - (self.form == "ordinal")
        if self.ensemble_.n_columns != columns:
            raise ModelFileError(
                f"{self.classes_.size} classes do not fit {self.ensemble_.n_columns} columns of "
                "trees: the file is damaged."
            )
