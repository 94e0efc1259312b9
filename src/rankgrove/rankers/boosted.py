"""What all boosted rankers share: training on binned rows, validation, checkpoints, the trees."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.boosting.checkpoint import TreeCheckpoint
from rankgrove.boosting.loop import Callback, Objective, Progress, TrainingRows, boost
from rankgrove.boosting.rows import HeldTraining
from rankgrove.boosting.sampling import Sampler
from rankgrove.boosting.step import ConstantStep, Step
from rankgrove.compiling import announce
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError
from rankgrove.growth.grower import Grower
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.rankers.base import plain_parameters
from rankgrove.rankers.boosted_data import (
    check_takes_base_score,
    digest_of,
    fingerprint,
    listed_callbacks,
    looked_at_of,
    named_measures,
    resume,
)
from rankgrove.rankers.boosted_parameters import BoostedParameters
from rankgrove.rankers.given import valid_datasets
from rankgrove.rankers.kept import HasFeatures
from rankgrove.rankers.watching import check_alike, check_defined
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import Watch, Watched

if TYPE_CHECKING:
    from typing import Self

# What a checkpoint may differ in and still be of the same run.
_FREE = {
    "n_trees",
    "early_stopping",
    "overfitting_tolerance",
    "checkpoint",
    "checkpoint_every",
    "n_threads",
    "progress",
}

_log = logging.getLogger("rankgrove")


class BoostedRanker(BoostedParameters):
    """Base of the rankers that are boosted trees.

    A subclass names its parameters in ``__init__`` (scikit-learn reads them there), and gives
    ``_objective``: what the trees follow.
    """

    trainable: ClassVar[bool] = True
    _start: float = 0.0  # what every score begins with; an objective may say otherwise

    # -- training -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        group: Any = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_qid: Any = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        weight: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        base_score: Any = None,
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        group : in place of `qid`, the number of rows of every query in turn, as LightGBM has it
        valid : a QueryDataset or (X, y, qid), or several in a dict or list, looked at every round;
            the model keeps the trees up to the best round of the first
        eval_set, eval_group, eval_qid : in place of `valid`, a list of (X, y) with the numbers of
            rows of every query, or with query ids: as LightGBM and XGBoost have them
        valid_measures : what to measure there; the first decides. Default: the ranker's `measure`
        weight, query_weight, base_score : as in a QueryDataset, where `X` is none
        sample_weight : scikit-learn's name of `weight`
        callbacks : one function or several, called after every round with a ``Progress``;
            returning True ends training
        """
        announce()
        owner = type(self).__name__
        self.check_parameters()
        called = listed_callbacks(callbacks, f"{owner}.fit")
        self._begin()
        if base_score is not None:
            check_takes_base_score(self._takes_base_score, f"{owner}.fit")
        train = self._training_data(
            X,
            y,
            qid,
            group,
            f"{owner}.fit",
            weight=weight,
            sample_weight=sample_weight,
            query_weight=query_weight,
            base_score=base_score,
        )
        watched = valid_datasets(valid, f"{owner}.fit", eval_set, eval_group, eval_qid)
        self.check_valid(bool(watched))
        measures = named_measures(valid_measures, parse_measure(self.measure), bool(watched))
        binned = self._bin(train)
        names = train.given_names
        keys = train.row_keys
        objective = self._objective(train, keys)
        self._before_trees(train, binned, objective)
        self.saw_missing_ = binned.has_missing
        scores = self._starting_scores(train, objective.n_columns)
        watch = self._watch(watched, binned.binner, measures, names, objective.n_columns)
        saver = self._saver(train, binned, watched, measures)
        if saver is not None and self._goes_on:
            saver.run["submodel's rounds"] = self._rounds_before()
            saver.run["submodel's scores"] = digest_of(
                [scores, *(one.scores for one in watch.watched.values())]
            )
        done = self._boost(train, binned, objective, keys, scores, watch, saver, called)
        self._keep(train, done, objective.n_columns)
        return self

    def with_bins(self, train: QueryDataset) -> tuple[QueryDataset, BinnedMatrix] | None:
        """Return what :meth:`fit` can take in place of some data, many times: bins, a byte each.

        None where the ranker looks at features themselves.
        """
        if self._goes_on:
            return None
        return train.without_features(), self._bin(train)

    def take_bins(self, binned: BinnedMatrix) -> None:
        """Take bins that were made before, for the next ``fit``."""
        self._ready_bins: BinnedMatrix | None = binned

    def _bin(self, train: QueryDataset) -> BinnedMatrix:
        """Bin the rows in query order, where that is not done already."""
        ready: BinnedMatrix | None = self.__dict__.pop("_ready_bins", None)
        if ready is not None:
            return ready
        rows = query_order_rows(train)
        binner = self._fitted_binner(train, rows)
        if binner.columns.size == 0:
            raise DataError(
                "Every feature has the same value in all rows: there is nothing to split."
            )
        return binner.transform(train.features, rows, self.n_threads)

    def _fitted_binner(self, train: QueryDataset, rows: Any) -> Binner:
        """Return the bins of the rows' features."""
        return Binner.fit(train.features, rows, self.max_bins, self.n_threads)

    def _watch(
        self,
        watched: dict[str, QueryDataset],
        binner: Binner,
        measures: dict[str, Measure],
        names: Sequence[str] | None,
        n_columns: int,
    ) -> Watch:
        owner = type(self).__name__
        looked_at, before = {}, {}
        for name, data in watched.items():
            check_alike(data, name, binner.n_features, names, owner)
            one = Watched(
                binner.transform(data.features, query_order_rows(data), self.n_threads),
                data.grouped(data.y),
                data.query_ptr,
                measures,
                self._starting_scores(data, n_columns),
                self._rank_by,
                self.n_threads,
            )
            before[name] = check_defined(one, name, owner)
            looked_at[name] = one
        start = before if self._goes_on else None
        return Watch(looked_at, self.early_stopping, start=start)

    def _saver(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        watched: dict[str, QueryDataset],
        measures: dict[str, Measure],
    ) -> TreeCheckpoint | None:
        if self.checkpoint is None:
            return None
        run = self._run_of(watched, measures)
        run["training data"] = fingerprint(train, binned)
        return TreeCheckpoint(self.checkpoint, self.checkpoint_every, run, train.n_features)

    def _run_of(
        self, watched: dict[str, QueryDataset], measures: dict[str, Measure]
    ) -> dict[str, Any]:
        """Return what a run depends on beside the training data."""
        run = {k: v for k, v in plain_parameters(self).items() if k not in _FREE}
        return run | {"ranker": self.kind} | looked_at_of(self, watched, measures)

    # -- what a subclass defines or may change ----------------------------------------------------

    @property
    def _takes_base_score(self) -> bool:
        """Whether the data's base scores are what training goes on from."""
        return False

    def _begin(self) -> None:
        """Called when training begins."""

    def _before_trees(
        self, train: QueryDataset, binned: BinnedMatrix, objective: Objective
    ) -> None:
        """Called before the first round, when nothing has been scored yet."""

    def _rounds_before(self) -> int:
        """Return the number of rounds that random draws go on from."""
        return 0

    def _step(self, train: QueryDataset, watch: Watch) -> Step:
        """Return how far to go along a tree."""
        return ConstantStep(self.learning_rate)

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        raise NotImplementedError

    def _leaf_l2(self) -> float:
        return self.l2

    def _starting_scores(self, data: QueryDataset, n_columns: int) -> np.ndarray:
        """Return the scores before the first tree, of shape (columns, rows), in query order."""
        return np.full((n_columns, data.n_rows), self._start)

    def _rank_by(self, columns: np.ndarray, n_threads: int | None = None) -> np.ndarray:
        """Return the one score a row that ranks, of scores of shape (columns, rows)."""
        return np.asarray(columns[0])

    # -- the loop ---------------------------------------------------------------------------------

    def _boost(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
        watch: Watch,
        saver: TreeCheckpoint | None,
        callbacks: Sequence[Callback],
    ) -> Progress:
        rows = self._training_rows(train, binned, objective, keys, scores)
        trees, steps = resume(saver, binned, scores, watch, self._rounds, self.n_threads)
        return self._loop(rows, self._step(train, watch), watch, trees, steps, saver, callbacks)

    def _training_rows(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
    ) -> TrainingRows:
        """Return what the loop trains on."""
        grower, sampler = self._grower(binned, keys), self._sampler(train, keys)
        return HeldTraining(objective, grower, scores, sampler, self.n_threads)

    def _loop(
        self,
        rows: TrainingRows,
        step: Step,
        watch: Watch,
        trees: Sequence[Tree],
        steps: Sequence[float],
        saver: TreeCheckpoint | None,
        callbacks: Sequence[Callback],
    ) -> Progress:
        bar = ProgressBar(type(self).__name__) if self.progress else None
        wanted: list[Callback] = [*([saver] if saver else []), *([bar] if bar else []), *callbacks]
        try:
            done = boost(
                rows,
                rounds=self._rounds,
                step=step,
                watch=watch,
                trees=trees,
                steps=steps,
                rounds_before=self._rounds_before(),
                callbacks=wanted,
            )
        finally:
            if bar:
                bar.close()
        if done.interrupted and not done.trees:
            raise KeyboardInterrupt
        if saver is not None:
            saver.write(done)
        return done

    def _grower(self, binned: BinnedMatrix, keys: np.ndarray) -> Grower:
        return Grower(
            binned,
            n_leaves=self.n_leaves,
            row_keys=keys,
            seed=self.random_state,
            n_threads=self.n_threads,
            split=self.split,
            min_leaf=self._min_leaf(binned.n_rows),
            min_gain=self.min_gain,
            max_depth=self.max_depth,
            l2=self._leaf_l2(),
            feature_fraction=self.feature_fraction,
        )

    def _sampler(self, train: QueryDataset, keys: np.ndarray) -> Sampler:
        return Sampler(
            train.query_keys,
            keys,
            train.query_ptr,
            query_fraction=self.query_fraction,
            row_fraction=self.row_fraction,
            seed=self.random_state,
        )

    def _keep(self, train: HasFeatures, done: Progress, n_columns: int) -> None:
        """Put what was learned into the attributes."""
        if done.trees and all(tree.n_nodes == 0 for tree in done.trees):
            why = "No threshold of a feature helps: check features and labels."
            if "min_leaf" in self.get_params(deep=False):
                why = f"A leaf has at least min_leaf={self.min_leaf} rows: lower it for few rows."
            _log.warning(
                "%s: no tree could be grown, so that the trees tell no documents apart. %s",
                type(self).__name__,
                why,
            )
        self.__dict__.pop("pruning_", None)  # it was that of other trees
        self.history_ = done.watch.history
        self.start_values_ = {name: dict(one) for name, one in (done.watch.start or {}).items()}
        self.best_round_ = done.watch.best_round
        self.interrupted_ = done.interrupted
        kept = done.watch.rounds_to_keep(self.overfitting_tolerance)
        rounds = done.round if kept is None else kept
        self.steps_ = done.steps[: rounds * n_columns]
        self.ensemble_ = Ensemble.from_trees(
            done.trees[: rounds * n_columns], train.n_features, self._start, n_columns
        )
        self._keep_features(train)

    # -- for the base class -----------------------------------------------------------------------

    def _scores(
        self, features: Any, rows: np.ndarray | slice | None, n_threads: int | None
    ) -> np.ndarray:
        found = score_ensemble(self.ensemble_, features, rows, n_threads)
        return self._rank_by(np.atleast_2d(found), n_threads)
