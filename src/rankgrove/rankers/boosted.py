"""What all boosted rankers share: training on binned rows, validation, checkpoints, the trees."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
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
from rankgrove.errors import DataError, ParameterError
from rankgrove.growth.grower import Grower
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.random import row_keys
from rankgrove.rankers.base import (
    Ranker,
    as_dataset,
    one_weight,
    plain_parameters,
    valid_datasets,
)
from rankgrove.rankers.boosted_data import (
    check_takes_base_score,
    digest_of,
    fingerprint,
    listed_callbacks,
    named_measures,
    resume,
)
from rankgrove.rankers.watching import check_alike, check_defined
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.training.progress import ProgressBar
from rankgrove.training.watch import History, Watch, Watched
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_output_file,
    check_real,
    counted,
    refuse,
)

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


class BoostedRanker(Ranker):
    """Base of the rankers that are boosted trees.

    A subclass names its parameters in ``__init__`` (scikit-learn reads them there), and gives
    ``_objective``: what the trees follow.
    """

    measure: str | Measure
    n_trees: int
    n_leaves: int
    learning_rate: float
    min_leaf: int | float
    query_fraction: float
    row_fraction: float = 1.0
    feature_fraction: float
    split: str
    early_stopping: int | None
    overfitting_tolerance: float = 0.0
    max_bins: int
    max_depth: int | None
    min_gain: float
    l2: float
    checkpoint: str | Path | None
    checkpoint_every: int
    random_state: int
    n_threads: int | None
    progress: bool

    trainable: ClassVar[bool] = True
    _rounds_name: ClassVar[str] = "n_trees"  # the parameter that has the number of rounds
    _start: float = 0.0  # what every score begins with; an objective may say otherwise

    # -- training -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
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
        valid : a QueryDataset or (X, y, qid), or several in a dict or list, looked at every round;
            the model keeps the trees up to the best round of the first
        valid_measures : what to measure there; the first decides. Default: the ranker's `measure`
        weight, query_weight, base_score : as in a QueryDataset, where `X` is none
        sample_weight : scikit-learn's name of `weight`
        callbacks : one function or several, called after every round with a ``Progress``;
            returning True ends training
        """
        announce(*self._kernels())
        owner = type(self).__name__
        self.check_parameters()
        called = listed_callbacks(callbacks, f"{owner}.fit")
        weight = one_weight(weight, sample_weight, f"{owner}.fit")
        self._begin()
        if base_score is not None:
            check_takes_base_score(self._takes_base_score, f"{owner}.fit")
        train = as_dataset(X, y, qid, f"{owner}.fit", weight, query_weight, base_score)
        watched = valid_datasets(valid, f"{owner}.fit")
        self.check_valid(bool(watched))
        measures = named_measures(valid_measures, parse_measure(self.measure), bool(watched))
        if train.n_features == 0:
            raise DataError(f"{owner}.fit needs data with at least one feature.")
        binned = self._bin(train)
        names = train.feature_names if train.has_feature_names else None
        keys = row_keys(train.query_keys, train.query_ptr)
        objective = self._objective(train, keys)
        self._before_trees(train, binned, objective)
        scores = self._starting_scores(train, objective.n_columns)
        watch = self._watch(watched, binned.binner, measures, names, objective.n_columns)
        saver = self._saver(train, binned, watched, measures)
        if saver is not None and self._goes_on:
            saver.run["submodel's rounds"] = self._rounds_before()
            saver.run["submodel's scores"] = digest_of(
                [scores, *(one.scores for one in watch.watched.values())]
            )
        done = self._boost(train, binned, objective, keys, scores, watch, saver, called)
        self._keep(train.n_features, names, done, objective.n_columns)
        return self

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        check_integer(self._rounds_name, owner, self._rounds, low=0 if self._goes_on else 1)
        check_integer("n_leaves", owner, self.n_leaves, low=2)
        check_real("learning_rate", owner, self.learning_rate, above=0.0)
        if isinstance(self.min_leaf, int | np.integer):
            check_integer("min_leaf", owner, self.min_leaf, low=1)
        elif not (isinstance(self.min_leaf, float) and 0.0 < self.min_leaf < 1.0):
            refuse(
                "min_leaf",
                owner,
                "a count of at least 1, or a share between 0 and 1",
                self.min_leaf,
            )
        check_real("query_fraction", owner, self.query_fraction, above=0.0, high=1.0)
        check_real("row_fraction", owner, self.row_fraction, above=0.0, high=1.0)
        check_real("feature_fraction", owner, self.feature_fraction, above=0.0, high=1.0)
        check_choice("split", owner, self.split, ["mse", "newton"])
        for name in ("early_stopping", "max_depth"):
            if getattr(self, name) is not None:
                check_integer(name, owner, getattr(self, name), low=1)
        check_real("overfitting_tolerance", owner, self.overfitting_tolerance, low=0.0)
        check_integer("max_bins", owner, self.max_bins, low=2, high=255)
        check_real("min_gain", owner, self.min_gain, low=0.0)
        check_real("l2", owner, self.l2, low=0.0)
        if self.checkpoint is not None:
            check_output_file("checkpoint", owner, self.checkpoint)
        check_integer("checkpoint_every", owner, self.checkpoint_every, low=1)
        check_integer("random_state", owner, self.random_state, low=0)

    def check_valid(self, given: bool) -> None:
        """Refuse training without validation data where a parameter asks for it."""
        if self._needs_valid and not given:
            raise ParameterError(
                f"{type(self).__name__}: {self._needs_valid} needs validation data: give fit a "
                "valid= (--valid on the command line)."
            )

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
        binner = Binner.fit(train.features, rows, self.max_bins, self.n_threads)
        if binner.columns.size == 0:
            raise DataError(
                "Every feature has the same value in all rows: there is nothing to split."
            )
        return binner.transform(train.features, rows, self.n_threads)

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
        run["ranker"] = self.kind
        run["measure"] = str(parse_measure(self.measure))
        run["validation data"] = [[name, fingerprint(data)] for name, data in watched.items()]
        run["valid_measures"] = [str(measure) for measure in measures.values()]
        return run

    # -- what a subclass defines or may change ----------------------------------------------------

    @property
    def _needs_valid(self) -> str | None:
        """The parameter that asks for validation data."""
        if self.early_stopping is not None:
            return "early_stopping"
        return "overfitting_tolerance" if self.overfitting_tolerance else None

    @property
    def _goes_on(self) -> bool:
        """Whether there is something to go on from, so that no tree at all can be the best."""
        return False

    @property
    def _takes_base_score(self) -> bool:
        """Whether the data's base scores are what training goes on from."""
        return False

    def _begin(self) -> None:
        """Called when training begins."""

    @property
    def _rounds(self) -> int:
        """Number of rounds at the most."""
        rounds: int = getattr(self, self._rounds_name)
        return rounds

    @property
    def _n_before(self) -> int:
        """Number of trees of ``ensemble_`` that were there before the first round."""
        return 0

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

    def _kernels(self) -> list[Any]:
        """Return kernels whose compiling is announced."""
        from rankgrove.growth._grower_kernels import split_serial

        return [split_serial]

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

    def _min_leaf(self, n_rows: int) -> int:
        if isinstance(self.min_leaf, float):
            return max(1, round(self.min_leaf * n_rows))
        return int(self.min_leaf)

    def _keep(
        self, n_features: int, names: Sequence[str] | None, done: Progress, n_columns: int
    ) -> None:
        """Put what was learned into the attributes."""
        if done.trees and all(tree.n_nodes == 0 for tree in done.trees):
            _log.warning(
                "%s: no tree could be grown, so that the trees tell no documents apart. A leaf "
                "has at least min_leaf=%s rows: lower it where there are few.",
                type(self).__name__,
                self.min_leaf,
            )
        self.__dict__.pop("pruning_", None)  # it was that of other trees
        self.history_: History = done.watch.history
        self.start_values_ = {name: dict(one) for name, one in (done.watch.start or {}).items()}
        self.best_round_ = done.watch.best_round
        self.interrupted_ = done.interrupted
        kept = done.watch.rounds_to_keep(self.overfitting_tolerance)
        rounds = done.round if kept is None else kept
        self.steps_ = done.steps[: rounds * n_columns]
        self.ensemble_ = Ensemble.from_trees(
            done.trees[: rounds * n_columns], n_features, self._start, n_columns
        )
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_ = tuple(names)

    # -- what was learned -------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> np.ndarray:
        """Gains by feature, adding up to 1."""
        return self.feature_importance("gain")

    def feature_importance(self, kind: str = "gain") -> np.ndarray:
        """Return the share of every feature in all gains (``"gain"``) or splits (``"split"``)."""
        self._check_is_fitted()
        check_choice("kind", "feature_importance", kind, ["gain", "split"])
        found = self.ensemble_.importance(kind)
        total = found.sum()
        return np.asarray(found / total if total > 0 else found)

    def truncated(self, n_trees: int) -> Self:
        """Return the ranker of the first `n_trees` rounds: so many trees, or so many a class."""
        self._check_is_fitted()
        made = copy.copy(self)
        made.ensemble_ = self.ensemble_.truncated(n_trees)
        made.steps_ = self.steps_[: made.ensemble_.n_trees]
        watch = Watch({}, history=self.history_, start=self.start_values_ or None)
        watch.cut(max(0, n_trees - self._n_before))
        made.history_, made.best_round_ = watch.history, watch.best_round
        return made

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its size, its validation, its most important features."""
        self._check_is_fitted()
        trees = self.ensemble_
        lines = [
            f"{type(self).__name__} for {self.measure}: {trees.size_text()}, "
            f"{counted(trees.n_leaves, 'leaf', 'leaves')}, "
            f"{counted(self.n_features_in_, 'feature')} "
            f"({np.unique(trees.feature).size:,} used)",
            *self._about(),
        ]
        for name, measures in self.history_.items():
            for measure_name, values in measures.items():
                n = max(0, trees.n_rounds - self._n_before)
                start = self.start_values_.get(name, {}).get(measure_name)
                value = values[n - 1] if n else start
                if value is not None:
                    lines.append(f"{name} {measure_name}: {value:.4f} after {trees.size_text()}")
        return "\n".join([*lines, *self._feature_lines(n_features)])

    def _feature_lines(self, n_features: int) -> list[str]:
        """Return the summary's table of features."""
        names = getattr(self, "feature_names_", None) or tuple(
            f"f{i + 1}" for i in range(self.n_features_in_)
        )
        gain, split = self.feature_importance("gain"), self.ensemble_.importance("split")
        best = [j for j in np.argsort(-gain, kind="stable")[:n_features] if gain[j] > 0]
        width = max([7, *(len(names[j]) for j in best)])
        return [
            f"{'feature':<{width}}  {'gain':>6}  {'splits':>7}",
            *(f"{names[j]:<{width}}  {gain[j]:6.1%}  {split[j]:7,.0f}" for j in best),
        ]

    def _about(self) -> list[str]:
        """Return further lines of the summary."""
        return []

    # -- for the base class -----------------------------------------------------------------------

    def _scores(
        self, features: Any, rows: np.ndarray | slice | None, n_threads: int | None
    ) -> np.ndarray:
        found = score_ensemble(self.ensemble_, features, rows, n_threads)
        return self._rank_by(np.atleast_2d(found), n_threads)

    def _one_ensemble(self) -> Ensemble | None:
        return self.ensemble_ if self.ensemble_.n_columns == 1 else None

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content = {
            "history": self.history_,
            "start_values": self.start_values_,
            "best_round": self.best_round_,
            "interrupted": self.interrupted_,
            "steps": self.steps_,
        }
        return content, self.ensemble_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.history_ = content["history"]
        self.start_values_ = content["start_values"]
        self.best_round_ = content["best_round"]
        self.interrupted_ = content["interrupted"]
        self.steps_ = content["steps"]
        self.ensemble_ = Ensemble.from_arrays(arrays)
