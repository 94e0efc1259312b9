"""The base class of boosted rankers: training, and the trained trees.

A boosted ranker builds a `Recipe` from its parameters and the training data, in ``_recipe``; this
class does the rest: bins, validation, checkpoint, the loop, the learned attributes. A ranker with a
parameter `submodel` starts from the submodel's scores, in training and in scoring.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.boosting.loop import Callback, Progress, TrainingRows, boost
from rankgrove.boosting.step import ConstantStep, Step
from rankgrove.boosting.tree_checkpoint import TreeCheckpoint
from rankgrove.data.arrays import Rows
from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.data.categories import Names
from rankgrove.data.category_bins import Target
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.partition import leaves_of
from rankgrove.measures.base import Measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.objectives.position_bias import PositionBias
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker, plain_parameters
from rankgrove.rankers.binned_scores import scores_of_bins
from rankgrove.rankers.fitting import (
    Training,
    digest_of,
    fingerprint,
    validation_of_run,
    watch_of,
)
from rankgrove.rankers.inner_rankers import pack, unpack
from rankgrove.rankers.trees.recipe import BoostingData, Recipe
from rankgrove.rankers.trees.starts import (
    BASE_SCORE,
    ConstantStart,
    Start,
    SubmodelStart,
    check_takes_base_score,
    describe,
    resolve,
    submodel_scores,
)
from rankgrove.rankers.trees.tree_model import TreeModel
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History, Watch
from rankgrove.validation import check_integer

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from rankgrove.data.arrays import Matrix
    from rankgrove.rankers.given import Documents

# Parameters in which a checkpoint of the same run may differ, in addition to OF_THE_RUN.
_FREE = {"n_trees", "early_stopping", "overfitting_tolerance", "checkpoint_every"}

_log = logging.getLogger("rankgrove")
NO_TREE = "%s: no tree could be grown, so all documents get the same score from the trees. %s"


class BoostedRanker(TreeModel):
    """Base of the rankers that are boosted trees.

    A subclass declares its parameters and has ``_recipe``: the objective, the grower, the sampler
    and the start. If it has ``objective_on``, Trada knows the objective of its trees.
    """

    # the parameters that training reads, with their values where a ranker does not declare them
    measure: str | Measure = "ndcg@10"
    n_trees: int
    learning_rate: float = 1.0
    n_leaves: int = 31
    min_leaf: int | float = 20
    max_depth: int | None = None
    feature_fraction: float = 1.0
    growth: str = "leafwise"
    monotone: Mapping[str | int, int] | None = None
    interactions: Sequence[Sequence[str | int]] | None = None
    category_rules: Mapping[str, float] | None = None
    random_state: int = 0
    early_stopping: int | None = None
    overfitting_tolerance: float = 0.0
    max_bins: int = 255
    checkpoint: str | Path | None = None
    checkpoint_every: int = 25
    n_threads: int | None = None
    progress: bool = False
    submodel: Any = None

    history_: History
    start_values_: dict[str, dict[str, float]]  # the measures before the first round
    best_round_: int | None
    interrupted_: bool
    submodel_: Any = None
    submodel_weight_: float = 1.0

    trainable: ClassVar[bool] = True
    uses_bins: ClassVar[bool] = True
    bins_depend_on: ClassVar[frozenset[str]] = frozenset({"max_bins", "submodel"})
    held: ClassVar[frozenset[str]] = frozenset({"submodel"})
    trained: ClassVar[frozenset[str]] = frozenset({"submodel"})
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"base_score": True}
    _saved: ClassVar[dict[str, str]] = {
        "history": "history_",
        "start_values": "start_values_",
        "best_round": "best_round_",
        "interrupted": "interrupted_",
        "steps": "steps_",
    }
    _rounds_name: ClassVar[str] = "n_trees"  # the parameter that is the number of rounds

    # -- methods that a subclass defines ----------------------------------------------------------

    def _recipe(self, data: BoostingData) -> Recipe:
        raise NotImplementedError

    def _step(self, train: QueryDataset | None, watch: Watch) -> Step:
        """Return the rule for the weight of a tree."""
        return ConstantStep(self.learning_rate)

    def _binner(self, train: QueryDataset, rows: Rows) -> Binner:
        """Return the bins of the rows' features."""
        return Binner.fit(
            train.features,
            rows,
            self.max_bins,
            self.n_threads,
            categorical=train.categories,
            target=Target.of(train) if train.categories else None,
        )

    def _rank_by(self, columns: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        """Return the one score per row that ranks, from scores of shape (columns, rows)."""
        return np.asarray(columns[0])

    # -- training ---------------------------------------------------------------------------------

    @property
    def _rounds(self) -> int:
        """Maximum number of rounds."""
        rounds: int = getattr(self, self._rounds_name)
        return rounds

    @property
    def _starts_from_model(self) -> bool:
        """Whether there is a model to start from, so that 0 can be the best number of trees."""
        return self.submodel is not None

    def _check_together(self) -> None:
        low = 0 if self._starts_from_model else 1
        check_integer(self._rounds_name, type(self).__name__, self._rounds, low=low)

    @property
    def _needs_valid(self) -> str | None:
        if self.early_stopping is None and self.overfitting_tolerance:
            return "overfitting_tolerance"
        return super()._needs_valid

    def _check_takes_base_score(self, owner: str) -> None:
        if "submodel" not in self._get_param_names():
            super()._check_takes_base_score(owner)
        check_takes_base_score(resolve(self.submodel, type(self).__name__), owner)

    def _fit(self, training: Training) -> Learned:
        train = training.train
        binned = self.bins(train) if training.bins is None else training.bins
        recipe = self._recipe(BoostingData(training, binned, train.row_keys, self.n_threads))
        start = recipe.start
        scores = start.scores(train, recipe.n_columns)
        watch = watch_of(
            training,
            self.early_stopping,
            self.n_threads,
            scores=lambda data: start.scores(data, recipe.n_columns),
            binner=binned.binner,
            ranked=lambda columns: self._ranked(recipe, columns),
            keeps_start=start.is_model,
            bias=recipe.bias,
        )
        saver = self._saver(training, binned, start, scores, watch, recipe.bias)
        recipe = self._weighted_start(recipe, training, binned, scores, watch)
        trees, steps = _resumed(saver, binned, scores, watch, self._rounds, self.n_threads)
        rows = None
        done = Progress(round=0, rounds=0, watch=watch, trees=[])
        if self._rounds > 0:
            rows = recipe.rows(scores, self.n_threads)
            step = self._step(train, watch)
            callbacks = training.callbacks
            done = self._loop(rows, step, start.rounds, watch, trees, steps, saver, callbacks)
        learned = self._learned(done, recipe.start, recipe.n_columns, train.n_features)
        if recipe.bias is not None:
            learned["position_bias_"] = recipe.bias.learned(learned["ensemble_"].n_rounds)
        return (
            learned | {"saw_missing_": binned.has_missing} | self._also_learned(recipe, rows, done)
        )

    def bins(self, train: QueryDataset) -> BinnedMatrix:
        """Return the bins of a data set's rows in query order."""
        if isinstance(train, BinnedDataset):
            return self._given_bins(train)
        binner = self._binner(train, query_order_rows(train))
        if binner.columns.size == 0:
            raise DataError(
                "Every feature has the same value in all rows: there is nothing to split."
            )
        return binner.transform_training(train, self.n_threads)

    def _given_bins(self, train: BinnedDataset) -> BinnedMatrix:
        """Return the bins that the data came with; refuse them where they are not the ranker's."""
        owner = f"{type(self).__name__}.fit"
        self.check_uses_bins(owner)
        if train.max_bins != self.max_bins:
            raise ParameterError(
                f"{owner}: the data in {train.folder} has max_bins={train.max_bins}, the ranker "
                f"{self.max_bins}: open the data with max_bins={self.max_bins}, or set that of the "
                "ranker."
            )
        return train.bins

    def shared_bins(self, train: QueryDataset) -> tuple[QueryDataset, BinnedMatrix] | None:
        """Return data and its bins, of one byte each, for use in many fits.

        None where the ranker uses the features themselves, or where bins depend on labels, which
        a part of the data must not see.
        """
        if self._starts_from_model or isinstance(train, BinnedDataset):
            return None
        bins = self.bins(train)
        return None if bins.binner.has_ordered else (train.without_features(), bins)

    def _categories_before(self, train: QueryDataset) -> Mapping[int, Names]:
        """Return the categories of the submodel."""
        return getattr(resolve(self.submodel, type(self).__name__), "categories_", {})

    def _start(self, constant: float = 0.0) -> Start:
        """Return the start of boosting: the submodel where there is one, or a constant."""
        submodel = resolve(self.submodel, type(self).__name__)
        if submodel is None:
            return ConstantStart(constant)
        return SubmodelStart(submodel, 1.0, f"{type(self).__name__}.fit", self.n_threads)

    def _weighted_start(
        self,
        recipe: Recipe,
        training: Training,
        binned: BinnedMatrix,
        scores: np.ndarray,
        watch: Watch,
    ) -> Recipe:
        """Find the start's weight and scale scores by it; return the recipe with that weight."""
        return recipe

    def _ranked(self, recipe: Recipe, columns: np.ndarray) -> np.ndarray:
        """Return the scores that rank validation data during training."""
        return self._rank_by(columns)

    def _saver(
        self,
        training: Training,
        binned: BinnedMatrix,
        start: Start,
        scores: np.ndarray,
        watch: Watch,
        bias: PositionBias | None = None,
    ) -> TreeCheckpoint | None:
        if self.checkpoint is None:
            return None
        run = self._run_of(training) | {"training data": fingerprint(training.train, binned)}
        if start.is_model:
            run["submodel's rounds"] = start.rounds
            run["submodel's scores"] = digest_of(
                [scores, *(valid.scores for valid in watch.watched.values())]
            )
        if bias is not None:
            run["position bias"] = digest_of([bias.start])
        n_features = training.train.n_features
        return TreeCheckpoint(self.checkpoint, self.checkpoint_every, run, n_features, bias)

    def _run_of(self, training: Training) -> dict[str, Any]:
        """Return the values that a checkpoint must agree with, apart from the training data."""
        run = {k: v for k, v in plain_parameters(self).items() if k not in _FREE}
        run |= {"ranker": self.kind} | dict(training.depends_on)
        return run | validation_of_run(self.measure, training.valid, training.measures)

    def _loop(
        self,
        rows: TrainingRows,
        step: Step,
        rounds_before: int,
        watch: Watch,
        trees: Sequence[Tree],
        steps: Sequence[float],
        saver: TreeCheckpoint | None,
        callbacks: Sequence[Callback],
    ) -> Progress:
        bar = ProgressBar(type(self).__name__) if self.progress else None
        called: list[Callback] = [*([saver] if saver else []), *([bar] if bar else []), *callbacks]
        try:
            done = boost(
                rows,
                rounds=self._rounds,
                step=step,
                watch=watch,
                trees=trees,
                steps=steps,
                rounds_before=rounds_before,
                callbacks=called,
            )
        finally:
            if bar:
                bar.close()
        if done.interrupted and not done.trees:
            raise KeyboardInterrupt
        if saver is not None:
            saver.write(done)
        return done

    def _learned(self, done: Progress, start: Start, n_columns: int, n_features: int) -> Learned:
        """Return the learned attributes by name."""
        if done.trees and all(tree.n_nodes == 0 for tree in done.trees):
            reason = "No threshold of a feature helps: check features and labels."
            if "min_leaf" in self.get_params(deep=False):
                reason = (
                    f"A leaf has at least min_leaf={self.min_leaf} rows: lower it for few rows."
                )
            _log.warning(NO_TREE, type(self).__name__, reason)
        kept = done.watch.rounds_to_keep(self.overfitting_tolerance)
        n_trees = (done.round if kept is None else kept) * n_columns
        learned: Learned = {
            "history_": done.watch.history,
            "start_values_": {
                name: dict(values) for name, values in (done.watch.start or {}).items()
            },
            "best_round_": done.watch.best_round,
            "interrupted_": done.interrupted,
            "steps_": done.steps[:n_trees],
            "ensemble_": Ensemble.from_trees(
                done.trees[:n_trees], n_features, start.constant, n_columns
            ),
        }
        if isinstance(start, SubmodelStart):
            learned |= {"submodel_": start.submodel, "submodel_weight_": start.weight}
        return learned

    def _also_learned(self, recipe: Recipe, rows: TrainingRows | None, done: Progress) -> Learned:
        """Return further learned attributes of a subclass."""
        return {}

    # -- scores -----------------------------------------------------------------------------------

    def predict(
        self, X: Documents, n_threads: int | None = None, *, base_score: ArrayLike | None = None
    ) -> np.ndarray:
        """Return one float64 score per row, in the caller's order: the higher, the better.

        Parameters
        ----------
        X : a data set, or features as in training
        n_threads : number of threads; None: the ranker's own `n_threads`
        base_score : the rows' scores, where the submodel is ``"base_score"`` and `X` is no data set
        """
        owner = f"{type(self).__name__}.predict"
        self._check_is_fitted()
        if isinstance(X, BinnedDataset) and base_score is None:
            return scores_of_bins(self, X, lambda part: self.predict(part, n_threads), owner)
        X = self._aligned(X, owner)
        features, rows, threads = self._checked_input(X, "predict", n_threads, is_aligned=True)
        if base_score is not None:
            if isinstance(X, QueryDataset):
                raise DataError(
                    f"{owner}: a QueryDataset holds its own base scores: set them there."
                )
            check_takes_base_score(self.submodel_, owner)
        if self.submodel_ is None:
            return self._scores(features, rows, threads)
        scores = submodel_scores(self.submodel_, X, base_score, threads, owner)
        start = self.submodel_weight_ * scores
        return score_ensemble(self.ensemble_, features, rows, threads, start)

    def _scores(self, features: Matrix, rows: Rows, n_threads: int | None) -> np.ndarray:
        columns = score_ensemble(self.ensemble_, features, rows, n_threads)
        return self._rank_by(np.atleast_2d(columns), n_threads)

    # -- the trained trees ------------------------------------------------------------------------

    @property
    def _n_before(self) -> int:
        """Number of trees of ``ensemble_`` that were there before the first round."""
        return 0

    def truncated(self, n_trees: int) -> Self:
        """Return the ranker of the first `n_trees` rounds (with classes: of as many per class)."""
        shorter = super().truncated(n_trees)
        watch = Watch({}, history=self.history_, start=self.start_values_ or None)
        watch.cut(max(0, n_trees - self._n_before))
        shorter.history_, shorter.best_round_ = watch.history, watch.best_round
        return shorter

    def members(self) -> list[Any]:
        """Return the submodel, where there is one."""
        return [] if self.submodel_ is None else [self.submodel_]

    def flat_ensemble(self) -> Ensemble:
        """Return one ensemble of the submodel's trees and the new ones, with the same scores.

        The submodel must be boosted trees with one score per row and weight 1. (If it is another
        library's and adds in float32, scores may differ by rounding.)
        """
        self._check_is_fitted()
        if self.submodel_ is None:
            return self.ensemble_
        inner = self.submodel_
        trees = inner.own_trees() if isinstance(inner, Ranker) else None
        if trees is None or self.submodel_weight_ != 1.0:
            raise DataError(
                f"The submodel ({describe(inner)}, weight {self.submodel_weight_:g}) and the trees "
                "are not one ensemble: only boosted trees of weight 1 can be joined."
            )
        below = inner.all_trees()
        if below.n_columns != 1:
            raise DataError(
                f"The submodel has {below.n_columns} scores per row: it cannot be joined."
            )
        joined = [part.tree(t) for part in (below, self.ensemble_) for t in range(part.n_trees)]
        return Ensemble.from_trees(joined, self.n_features_in_, below.base)

    def all_trees(self) -> Ensemble:
        """Return the trees, after those of the submodel."""
        return self.flat_ensemble()

    def flat(self) -> Ensemble | None:
        """Return the trees whose sum is the score, or None where the score is no such sum."""
        if self.submodel_ is None:
            return super().flat()
        inner = self.submodel_
        # only models of this class add up their trees in the same way
        below = inner.flat() if isinstance(inner, BoostedRanker) else None
        if below is None or self.submodel_weight_ != 1.0:
            return None
        # trees of another library may compare and add in another precision
        fits = below.threshold.dtype == self.ensemble_.threshold.dtype and not below.single
        return self.flat_ensemble() if fits else None

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its size, its validation, its most important features."""
        self._check_is_fitted()
        trees = self.ensemble_
        aim = f" for {self.measure}" if "measure" in self._get_param_names() else ""
        lines = [f"{type(self).__name__}{aim}: {self._sizes()}", *self._about()]
        for name, measures in self.history_.items():
            for measure_name, values in measures.items():
                n = max(0, trees.n_rounds - self._n_before)
                start = self.start_values_.get(name, {}).get(measure_name)
                value = values[n - 1] if n else start
                if value is not None:
                    lines.append(f"{name} {measure_name}: {value:.4f} after {trees.size_text()}")
        return "\n".join([*lines, *self._feature_lines(n_features)])

    def _about(self) -> list[str]:
        """Return further lines of the summary."""
        lines = [] if self.position_bias_ is None else self.position_bias_.lines()
        if self.submodel_ is not None:
            weight = f"weight {self.submodel_weight_:g}"
            lines = [f"starting from {describe(self.submodel_)}, {weight}", *lines]
        return lines

    def _feature_lines(self, n_features: int) -> list[str]:
        """Return the summary's table of features."""
        gain, split = self.feature_importance("gain"), self.ensemble_.importance("split")
        names = self._names()
        best = [j for j in np.argsort(-gain, kind="stable")[:n_features] if gain[j] > 0]
        width = max([7, *(len(names[j]) for j in best)])
        return [
            f"{'feature':<{width}}  {'gain':>6}  {'splits':>7}",
            *(f"{names[j]:<{width}}  {gain[j]:6.1%}  {split[j]:7,.0f}" for j in best),
        ]

    # -- the model file ---------------------------------------------------------------------------

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = self._content(), self.ensemble_.to_arrays()
        if "submodel" not in self._get_param_names():
            return content, arrays
        inner = self.submodel_
        content["submodel_weight"] = self.submodel_weight_
        content["submodel"] = inner
        if isinstance(inner, Ranker):
            content["submodel"], inside = pack(inner, "submodel")
            arrays = {**arrays, **inside}
        elif inner is not None and not isinstance(inner, str):
            raise ParameterError(
                f"The submodel, a {type(inner).__name__}, cannot be written into a model file: "
                f"only rankers of rankgrove can. Set model.submodel_ = {BASE_SCORE!r} before "
                "saving, and give its scores with the data; or pickle the ranker."
            )
        return content, arrays

    def _restore(self, content: Content, arrays: Arrays) -> None:
        self._take(content)
        self.ensemble_ = Ensemble.from_arrays(arrays)
        if "submodel" not in self._get_param_names():
            return
        packed = content["submodel"]
        inner = unpack(packed, arrays, "submodel") if isinstance(packed, dict) else packed
        self.submodel = self.submodel_ = inner
        self.submodel_weight_ = float(content["submodel_weight"])


def scaled(ensemble: Ensemble, factor: float) -> Ensemble:
    """Return an ensemble with all values times a factor."""
    return replace(ensemble, value=factor * ensemble.value)


def _resumed(
    saver: TreeCheckpoint | None,
    binned: BinnedMatrix,
    scores: np.ndarray,
    watch: Watch,
    most_rounds: int,
    n_threads: int | None,
) -> tuple[list[Tree], list[float]]:
    """Return a checkpoint's trees and weights; bring scores and history up to date with them."""
    state = saver.read(watch.history) if saver is not None else None
    if state is None:
        return [], []
    n_columns = len(scores)
    trees, steps, history = state
    trees, steps = trees[: most_rounds * n_columns], steps[: most_rounds * n_columns]
    for t, tree in enumerate(trees):
        leaf_of = leaves_of(tree, binned, n_threads=n_threads)
        add_leaf_values(scores[t % n_columns], tree.value, leaf_of, n_threads=n_threads)
    watch.history = history
    watch.cut(most_rounds)
    watch.catch_up(trees)
    return trees, steps
