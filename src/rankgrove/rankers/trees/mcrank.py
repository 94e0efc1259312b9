"""McRank: boosted trees that learn label probabilities and rank by the expected label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rankgrove.boosting.loop import Objective, Progress, TrainingRows
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ModelFileError
from rankgrove.measures.base import Measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.objectives.classes import FORMS, find_classes
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned
from rankgrove.rankers.declaring import choice, declares_parameters, learned, parameter
from rankgrove.rankers.fitting import row_weights
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.recipe import (
    BoostingData,
    Recipe,
    TreeRecipe,
    drawn_rows,
    histogram_trees,
)
from rankgrove.rankers.trees.starts import ZERO
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from rankgrove.rankers.given import Documents


@declares_parameters
class McRank(BoostedRanker):
    """Ranking by classification: the score is the expected label (Li, Burges and Wu's McRank).

    The baseline of the LambdaMART paper. Every round grows one tree per class (``"classes"``) or
    one per threshold between classes (``"ordinal"``): K or K - 1 trees for K labels. The paper's
    setting: n_trees=1000, n_leaves=10, learning_rate=0.05.

    Attributes
    ----------
    classes_ : the distinct labels of the training data, ascending, at most 32
    ensemble_ : the trees, one column per class (or threshold), up to the best round where there was
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
    takes_categories: ClassVar[bool] = True
    classes_: np.ndarray = learned()

    form: str = parameter(
        "classes",
        '``"classes"``: the softmax of K scores; ``"ordinal"``: K - 1 two-class models, each of '
        "whether a label is above a threshold",
        choice(FORMS),
    )
    measure: str | Measure = shared.MEASURE
    n_trees: int = trees.N_TREES(
        500, "maximum number of rounds; a round has one tree per class (or threshold)"
    )
    n_leaves: int = trees.N_LEAVES
    learning_rate: float = trees.LEARNING_RATE
    min_leaf: int | float = trees.MIN_LEAF
    query_fraction: float = trees.QUERY_FRACTION
    row_fraction: float = trees.ROW_FRACTION
    feature_fraction: float = trees.FEATURE_FRACTION
    split: str = trees.SPLIT("mse")
    early_stopping: int | None = shared.EARLY_STOPPING
    overfitting_tolerance: float = trees.OVERFITTING_TOLERANCE
    max_bins: int = trees.MAX_BINS
    max_depth: int | None = trees.MAX_DEPTH
    min_gain: float = trees.MIN_GAIN
    l2: float = trees.L2
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = trees.CHECKPOINT_EVERY
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS
    growth: str = trees.GROWTH
    monotone: Mapping[str | int, int] | None = trees.MONOTONE
    interactions: Sequence[Sequence[str | int]] | None = trees.INTERACTIONS
    category_rules: Mapping[str, float] | None = trees.CATEGORY_RULES

    def predict_proba(self, X: Documents, n_threads: int | None = None) -> np.ndarray:
        """Return the probability of every label of ``classes_``, of shape (rows, classes)."""
        features, rows, threads = self._checked_input(X, "predict_proba", n_threads)
        columns = np.atleast_2d(score_ensemble(self.ensemble_, features, rows, threads))
        return FORMS[self.form].probabilities(columns)

    def _check_together(self) -> None:
        super()._check_together()
        if self.form == "classes" and any((self.monotone or {}).values()):
            refuse(
                "form",
                type(self).__name__,
                "'ordinal' with monotone: an expected label that is computed from scores of single "
                "classes may fall even if every score follows its direction",
                self.form,
            )

    def _default_qid(self, n_rows: int) -> np.ndarray:
        return np.arange(n_rows)  # every row is a query

    def _recipe(self, data: BoostingData) -> TreeRecipe:
        return TreeRecipe(
            self.objective_on(data.train, data.keys),
            histogram_trees(self, data, split=self.split, min_gain=self.min_gain, l2=self.l2),
            drawn_rows(data, self.query_fraction, self.row_fraction, self.random_state),
            ZERO,
        )

    def objective_on(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        """Return the objective of the trees on rows in query order."""
        labels, weight = train.grouped(train.y), row_weights(train)
        classes = find_classes(labels, weight, type(self).__name__)
        return FORMS[self.form](labels, classes, train.query_ptr, weight)

    def _ranked(self, recipe: Recipe, columns: np.ndarray) -> np.ndarray:
        classes: np.ndarray = recipe.objective.classes  # type: ignore[attr-defined]
        return FORMS[self.form].expected(columns, classes, self.n_threads)

    def _also_learned(self, recipe: Recipe, rows: TrainingRows | None, done: Progress) -> Learned:
        return {"classes_": recipe.objective.classes}  # type: ignore[attr-defined]

    def _rank_by(self, columns: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        """Return the expected labels."""
        threads = self.n_threads if n_threads is None else n_threads
        return FORMS[self.form].expected(columns, self.classes_, threads)

    def flat(self) -> Ensemble | None:
        """Return None: the score is an expected label, even with one column of trees."""
        return None

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = super()._state()
        return content | {"classes": self.classes_.tolist()}, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        super()._restore(content, arrays)
        self.classes_ = np.array(content["classes"], np.float64)
        if self.form not in FORMS:
            raise ModelFileError(f"The form {self.form!r} is not known.")
        columns = self.classes_.size - (self.form == "ordinal")
        if self.ensemble_.n_columns != columns:
            raise ModelFileError(
                f"{self.classes_.size} classes do not fit {self.ensemble_.n_columns} columns of "
                "trees: the file is damaged."
            )
