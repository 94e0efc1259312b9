"""LambdaMART: boosted trees that follow the lambdas of a measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rankgrove.boosting.checkpoint import Checkpoint
from rankgrove.boosting.loop import Callback, Progress, boost
from rankgrove.boosting.progress import ProgressBar
from rankgrove.boosting.sampling import Sampler
from rankgrove.boosting.watch import History, Watch, Watched
from rankgrove.compiling import announce
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.growth.grower import Grower
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.objectives.lambdas import LambdaObjective, default_truncation
from rankgrove.random import row_keys
from rankgrove.rankers.base import (
    Ranker,
    as_dataset,
    check_names,
    one_weight,
    plain_parameters,
    valid_datasets,
)
from rankgrove.rankers.boosted import (
    fingerprint,
    listed_callbacks,
    named_measures,
    query_order_rows,
    resume,
)
from rankgrove.scoring.walk import score as score_ensemble
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_output_file,
    check_real,
    counted,
    refuse,
)

# What a checkpoint may differ in and still be of the same run.
_FREE = {"n_trees", "early_stopping", "checkpoint", "checkpoint_every", "n_threads", "progress"}


class LambdaMART(Ranker):
    """Boosted regression trees on lambda gradients.

    Every tree fits the lambdas of all documents (the least-squares tree of the papers, or a Newton
    one), and every leaf takes the Newton step: sum of lambdas over sum of weights (overview paper,
    section 7). The model is the same to the bit for any number of threads, and for any order of
    the queries in the file.

    Parameters
    ----------
    measure : what to maximise: a measure or its name; ``"pairs"`` counts all pairs alike (RankNet
        on trees)
    n_trees : number of trees at the most
    n_leaves : leaves of a tree at the most
    learning_rate : factor of every leaf's step
    min_leaf : least number of rows of a leaf; below 1, a share of the rows
    query_fraction : share of the queries a round sees, drawn anew every round
    feature_fraction : share of the features a split may use, drawn anew at every split
    split : how splits are valued: ``"mse"`` (least squares on the lambdas) or ``"newton"``
        (gradient and hessian)
    truncation : pairs count whose better-ranked document is among so many top ranks; ``"auto"``:
        the measure's cutoff plus 5, all pairs where it has none; None: all pairs
    sigma : slope of the sigmoid; it changes the scale of the scores, not the ranking
    normalise : even out pairs far apart, and queries (see ``LambdaObjective``); False is the
        papers' own
    early_stopping : stop when so many rounds have not bettered the validation measure
    max_bins : most bins of a feature, missing values apart
    max_depth : most splits between root and leaf; None: no limit
    min_gain : a split must gain more than this
    l2 : added (times sigma squared) to the weights' sum of a leaf, so that a leaf of little weight
        takes no giant step; 0 is the papers' own
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
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.LambdaMART(n_trees=20).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.5
    True
    """

    kind: ClassVar[str] = "lambdamart"

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        n_trees: int = 500,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        min_leaf: int | float = 20,
        query_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        split: str = "newton",
        truncation: int | str | None = "auto",
        sigma: float = 1.0,
        normalise: bool = True,
        early_stopping: int | None = None,
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
        self.measure = measure
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.min_leaf = min_leaf
        self.query_fraction = query_fraction
        self.feature_fraction = feature_fraction
        self.split = split
        self.truncation = truncation
        self.sigma = sigma
        self.normalise = normalise
        self.early_stopping = early_stopping
        self.max_bins = max_bins
        self.max_depth = max_depth
        self.min_gain = min_gain
        self.l2 = l2
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

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
        callbacks: Callback | Iterable[Callback] | None = None,
    ) -> LambdaMART:
        """Train.

        Parameters
        ----------
        X : a QueryDataset; or features, with labels `y` and query ids `qid`
        valid : a QueryDataset or (X, y, qid), or several in a dict or list, looked at every round;
            the model keeps the trees up to the best round of the first
        valid_measures : what to measure there; the first decides. Default: the ranker's `measure`
        weight, query_weight : where `X` is not a data set
        sample_weight : scikit-learn's name of `weight`
        callbacks : one function or several, called after every round with a ``Progress``;
            returning True ends training
        """
        from rankgrove.growth._grower_kernels import split_serial
        from rankgrove.objectives._lambda_kernels import lambda_queries

        announce(split_serial, lambda_queries)
        owner = type(self).__name__
        self.check_parameters()
        called = listed_callbacks(callbacks, f"{owner}.fit")
        weight = one_weight(weight, sample_weight, f"{owner}.fit")
        train = as_dataset(X, y, qid, f"{owner}.fit", weight, query_weight)
        watched = valid_datasets(valid, f"{owner}.fit")
        target = parse_measure(self.measure)
        measures = named_measures(valid_measures, target)
        if train.n_features == 0:
            raise DataError(f"{owner}.fit needs data with at least one feature.")
        binned = self._bin(train)
        names = train.feature_names if train.has_feature_names else None
        watch = self._watch(watched, binned.binner, measures, names)
        saver = self._saver(train, binned, watched, measures)
        done = self._boost(train, binned, target, watch, saver, called)
        self._keep(train, done)
        return self

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        check_integer("n_trees", owner, self.n_trees, low=1)
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
        check_real("feature_fraction", owner, self.feature_fraction, above=0.0, high=1.0)
        check_choice("split", owner, self.split, ["mse", "newton"])
        if self.truncation not in (None, "auto"):
            check_integer("truncation", owner, self.truncation, low=1)
        check_real("sigma", owner, self.sigma, above=0.0)
        if not isinstance(self.normalise, bool):
            refuse("normalise", owner, "True or False", self.normalise)
        for name in ("early_stopping", "max_depth"):
            if getattr(self, name) is not None:
                check_integer(name, owner, getattr(self, name), low=1)
        check_integer("max_bins", owner, self.max_bins, low=2, high=255)
        check_real("min_gain", owner, self.min_gain, low=0.0)
        check_real("l2", owner, self.l2, low=0.0)
        if self.checkpoint is not None:
            check_output_file("checkpoint", owner, self.checkpoint)
        check_integer("checkpoint_every", owner, self.checkpoint_every, low=1)
        check_integer("random_state", owner, self.random_state, low=0)

    def _bin(self, train: QueryDataset) -> BinnedMatrix:
        """Bin the rows in query order."""
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
    ) -> Watch:
        owner = type(self).__name__
        if self.early_stopping is not None and not watched:
            raise ParameterError(
                f"{owner}: early_stopping needs validation data: give fit a valid=."
            )
        looked_at = {}
        for name, data in watched.items():
            if data.n_features != binner.n_features:
                raise DataError(
                    f"{owner}: the {name} data has {counted(data.n_features, 'feature')}, the "
                    f"training data {binner.n_features}."
                )
            check_names(names, data.feature_names if data.has_feature_names else None, owner)
            one = Watched(
                binner.transform(data.features, query_order_rows(data), self.n_threads),
                data.grouped(data.y),
                data.query_ptr,
                measures,
                np.zeros(data.n_rows),
                self.n_threads,
            )
            for measure_name, value in one.values().items():
                if np.isnan(value):
                    raise DataError(
                        f"{owner}: {measure_name} leaves out every query of the {name} data "
                        "(nothing relevant, or all labels equal)."
                    )
            looked_at[name] = one
        return Watch(looked_at, self.early_stopping)

    def _saver(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        watched: dict[str, QueryDataset],
        measures: dict[str, Measure],
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        run = {k: v for k, v in plain_parameters(self).items() if k not in _FREE}
        run["measure"] = str(parse_measure(self.measure))
        run["training data"] = fingerprint(train, binned)
        run["validation data"] = [[name, fingerprint(data)] for name, data in watched.items()]
        run["valid_measures"] = [str(measure) for measure in measures.values()]
        return Checkpoint(self.checkpoint, self.checkpoint_every, run, train.n_features)

    def _boost(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        target: Measure,
        watch: Watch,
        saver: Checkpoint | None,
        callbacks: Sequence[Callback],
    ) -> Progress:
        keys = row_keys(train.query_keys, train.query_ptr)
        objective = LambdaObjective(
            target,
            train.grouped(train.y),
            train.query_ptr,
            row_keys=keys,
            truncation=self._truncation(target),
            sigma=self.sigma,
            normalise=self.normalise,
            row_weight=None if train.weight is None else train.grouped(train.weight),
            query_weight=train.query_weight,
            n_threads=self.n_threads,
        )
        grower = Grower(
            binned,
            n_leaves=self.n_leaves,
            row_keys=keys,
            seed=self.random_state,
            n_threads=self.n_threads,
            split=self.split,
            min_leaf=self._min_leaf(train.n_rows),
            min_gain=self.min_gain,
            max_depth=self.max_depth,
            l2=self.l2 * self.sigma**2,  # as the weights scale
            feature_fraction=self.feature_fraction,
        )
        scores = np.zeros(train.n_rows)
        trees = resume(saver, binned, scores, watch, self.n_trees, self.n_threads)
        bar = ProgressBar(type(self).__name__) if self.progress else None
        wanted: list[Callback] = [*([saver] if saver else []), *([bar] if bar else []), *callbacks]
        sampler = Sampler(train.query_keys, train.query_ptr, self.query_fraction, self.random_state)
        try:
            done = boost(
                objective,
                grower,
                scores,
                rounds=self.n_trees,
                learning_rate=self.learning_rate,
                sampler=sampler,
                watch=watch,
                trees=trees,
                callbacks=wanted,
                n_threads=self.n_threads,
            )
        finally:
            if bar:
                bar.close()
        if done.interrupted and not done.trees:
            raise KeyboardInterrupt
        if saver is not None:
            saver.write(done)
        return done

    def _truncation(self, target: Measure) -> int | None:
        if self.truncation == "auto":
            return default_truncation(target)
        return None if self.truncation is None else int(self.truncation)

    def _min_leaf(self, n_rows: int) -> int:
        if isinstance(self.min_leaf, float):
            return max(1, round(self.min_leaf * n_rows))
        return int(self.min_leaf)

    def _keep(self, train: QueryDataset, done: Progress) -> None:
        """Put what was learned into the attributes."""
        self.history_: History = done.watch.history
        self.best_round_ = done.watch.best_round
        self.interrupted_ = done.interrupted
        kept = done.trees[: self.best_round_]
        self.ensemble_ = Ensemble.from_trees(kept, train.n_features)
        self.n_features_in_ = train.n_features
        if train.has_feature_names:
            self.feature_names_ = train.feature_names

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

    def truncated(self, n_trees: int) -> LambdaMART:
        """Return the ranker of the first `n_trees` trees."""
        self._check_is_fitted()
        content, arrays = self._state()
        made = type(self)(**self.get_params(deep=False))
        made.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_"):
            made.feature_names_ = self.feature_names_
        made._restore(content, arrays)
        made.ensemble_ = self.ensemble_.truncated(n_trees)
        return made

    def summary(self, n_features: int = 10) -> str:
        """Return a text about the model: its size, its validation, its most important features."""
        self._check_is_fitted()
        trees = self.ensemble_
        lines = [
            f"{type(self).__name__} for {self.measure}: {counted(trees.n_trees, 'tree')}, "
            f"{counted(trees.n_leaves, 'leaf', 'leaves')}, "
            f"{counted(self.n_features_in_, 'feature')} "
            f"({np.unique(trees.feature).size:,} used)"
        ]
        for name, measures in self.history_.items():
            for measure_name, values in measures.items():
                n = min(self.best_round_ or len(values), trees.n_trees)
                if n:
                    text = f"{values[n - 1]:.4f} after {counted(n, 'tree')}"
                    lines.append(f"{name} {measure_name}: {text}")
        names = getattr(self, "feature_names_", None) or tuple(
            f"f{i + 1}" for i in range(self.n_features_in_)
        )
        gain, split = self.feature_importance("gain"), self.ensemble_.importance("split")
        best = [j for j in np.argsort(-gain, kind="stable")[:n_features] if gain[j] > 0]
        width = max([7, *(len(names[j]) for j in best)])
        lines.append(f"{'feature':<{width}}  {'gain':>6}  {'splits':>7}")
        lines += [f"{names[j]:<{width}}  {gain[j]:6.1%}  {split[j]:7,.0f}" for j in best]
        return "\n".join(lines)

    # -- for the base class -----------------------------------------------------------------------

    def _scores(
        self, features: Any, rows: np.ndarray | slice | None, n_threads: int | None
    ) -> np.ndarray:
        return score_ensemble(self.ensemble_, features, rows, n_threads)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content = {
            "history": self.history_,
            "best_round": self.best_round_,
            "interrupted": self.interrupted_,
        }
        return content, self.ensemble_.to_arrays()

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.history_ = content["history"]
        self.best_round_ = content["best_round"]
        self.interrupted_ = content["interrupted"]
        self.ensemble_ = Ensemble.from_arrays(arrays)
