"""Runs the fits of ``rg.tune``, here or on a cluster, and stores each as soon as it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.base import clone

from rankgrove.bagging.out_of_bag import missed_part
from rankgrove.cluster.engine import run_tasks
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import MissingExtraError, ParameterError
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.measures.base import Measure
from rankgrove.random import derive_seed
from rankgrove.rankers.base import Ranker, plain_parameters
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.fitting import fingerprint
from rankgrove.training.progress import TaskBar
from rankgrove.tuning.result_store import ResultStore
from rankgrove.tuning.search_space import Parameters
from rankgrove.tuning.tuning_result import Trial, merged
from rankgrove.validation import counted

Task = tuple[Parameters, int, int]  # the parameters of a fit, its fold, its seed


class Parts(NamedTuple):
    """The data of one fold: training, validation, a second held-out set, test."""

    train: QueryDataset
    valid: QueryDataset
    second: QueryDataset | None
    test: QueryDataset | None


class Runner:
    """Runs trials and stores every fit."""

    def __init__(
        self,
        base: Ranker,
        folds: list[Parts],
        measures: list[str | Measure],
        convention: str,
        choose_by: str,
        n_seeds: int,
        random_state: int,
        cluster: Any,
        n_threads: int | None,
    ) -> None:
        self.base, self.folds, self.measures = base, folds, measures
        self.convention, self.choose_by = convention, choose_by
        self.n_seeds, self.seed = n_seeds, random_state
        self.cluster, self.n_threads = cluster, n_threads
        self.store = ResultStore(None, {})

    def open(self, path: str | Path | None, second: float) -> None:
        """Open the file of results; without a path nothing is stored."""
        if path is None:
            return
        data = [[None if p is None else fingerprint(p) for p in fold] for fold in self.folds]
        about = {
            "ranker": type(self.base).__name__,
            **{f"parameter {k}": v for k, v in plain_parameters(self.base).items()},
            **_about_base(self.base),
            "data": data,
            "measures": [str(m) for m in self.measures],
            "convention": self.convention,
            "random_state": self.seed,
            "second": second,
            **({} if self.choose_by == "valid" else {"choose_by": self.choose_by}),
        }
        self.store = ResultStore(path, json.loads(json.dumps(about)))

    def all_of(self, combinations: list[Parameters], progress: bool) -> list[Trial]:
        """Return a trial per combination; only fits that are not in the store are run."""
        tasks = [
            (parameters, fold, seed)
            for parameters in combinations
            for fold in range(len(self.folds))
            for seed in range(self.n_seeds)
        ]
        pending = [task for task in tasks if _key(task) not in self.store]
        bar = TaskBar("tuning", len(tasks), "fits") if progress else None
        try:
            if bar is not None:
                bar.advance(len(tasks) - len(pending))

            def on_done(i: int, record: dict[str, Any]) -> None:
                self.store.put(_key(pending[i]), record)
                if bar is not None:
                    bar.advance()

            folds = _binned(self.base, self.folds, {n for p in combinations for n in p})
            rule = (self.measures, self.convention, self.choose_by)
            shared = (self.base, folds, *rule, self.seed)
            run_tasks(
                fit_one,
                shared,
                pending,
                cluster=self.cluster,
                n_threads=self.n_threads,
                on_done=on_done,
            )
        finally:
            if bar is not None:
                bar.close()
        per_trial = len(self.folds) * self.n_seeds
        records = [self.store[_key(task)] for task in tasks]
        return [
            _trial(parameters, records[i * per_trial : (i + 1) * per_trial])
            for i, parameters in enumerate(combinations)
        ]

    def by_optuna(self, space: Mapping[str, list[Any]], n: int, progress: bool) -> list[Trial]:
        """Run the trials that Optuna proposes, one after the other.

        With the same seed and results Optuna proposes the same trials again, so a second run
        finds the fits of the first in the store.
        """
        try:
            import optuna
        except ImportError:
            raise MissingExtraError("optuna", "optuna", "search='optuna'") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=self.seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        trials: list[Trial] = []
        bar = TaskBar("tuning", n, "trials") if progress else None
        try:
            for _ in range(n):
                proposal = study.ask()
                parameters = {
                    name: values[proposal.suggest_categorical(name, list(range(len(values))))]
                    for name, values in space.items()
                }
                (trial,) = self.all_of([parameters], progress=False)
                study.tell(proposal, trial.mean(self.choose_by, str(self.measures[0])))
                trials.append(trial)
                if bar is not None:
                    bar.advance()
        finally:
            if bar is not None:
                bar.close()
        return trials


def _binned(base: Ranker, folds: list[Parts], tuned: set[str]) -> list[tuple[Parts, Any]]:
    """Return folds with the bins of their training data, if all fits can share these.

    Bins are a quarter of the size of features, and are made once instead of in every fit.
    """
    binned: list[tuple[Parts, Any]] = []
    for parts in folds:
        ready = None if base.bins_depend_on & tuned else base.shared_bins(parts.train)
        binned.append(
            (parts, None) if ready is None else (parts._replace(train=ready[0]), ready[1])
        )
    return binned


def _about_base(bag: Ranker) -> dict[str, Any]:
    """Return the parameters of a bag's base ranker; nothing for a ranker that is not a bag."""
    if not bag.is_bag:
        return {}
    parameters = {f"the base's {k}": v for k, v in plain_parameters(bag.base).items()}
    return {"base": type(bag.base).__name__, **parameters}


def _key(task: Task) -> str:
    parameters, fold, seed = task
    return f"{json.dumps(parameters, sort_keys=True)} fold {fold} seed {seed}"


def _trial(parameters: Parameters, records: list[dict[str, Any]]) -> Trial:
    trees = [record["trees"] for record in records]
    values = merged([record["values"] for record in records])
    return Trial(parameters, values, None if None in trees else trees)


def seed_of_fit(random_state: int, seed: int) -> int:
    """Return the `random_state` of the fits of one seed (0, 1, ...) of a search."""
    return derive_seed(random_state, "tune", seed) % (1 << 31)


def fit_one(shared: Any, task: Task, n_threads: int | None) -> dict[str, Any]:
    """Train one ranker on a fold; return its number of trees and the means on the fold's parts."""
    base, folds, measures, convention, choose_by, random_state = shared
    parameters, fold, seed = task
    ranker = clone(base).set_params(**parameters)
    names = ranker.get_params(deep=False)
    if "random_state" in names:
        ranker.set_params(random_state=seed_of_fit(random_state, seed))
    if n_threads is not None and "n_threads" in names:
        ranker.set_params(n_threads=n_threads)
    if "checkpoint" in names:  # all fits would write the same one
        ranker.set_params(checkpoint=None)
    parts, bins = folds[fold]
    valid = {"valid": parts.valid}
    ranker.fit_binned(parts.train, bins, valid=valid, valid_measures=measures[:1])
    if getattr(ranker, "interrupted_", False):
        raise KeyboardInterrupt
    values = {
        name: evaluate(ranker, part, measures, convention).mean
        for name, part in zip(Parts._fields[1:], parts[1:], strict=True)
        if part is not None
    }
    if choose_by == "out_of_bag":
        values["out_of_bag"] = _out_of_bag(ranker, parts.train, measures, convention)
    return {"values": values, "trees": ranker.tree_count()}


def _out_of_bag(
    bag: BaggedRanker, train: QueryDataset, measures: list[str | Measure], convention: str
) -> dict[str, float]:
    """Return the means over the out-of-bag queries, scored by the models that did not see them."""
    assert bag.out_of_bag_scores_ is not None
    part = missed_part(bag.out_of_bag_scores_, train)
    if part is None:
        raise ParameterError(
            f"A bag of {counted(len(bag.models_), 'model')} with query_fraction="
            f"{bag.query_fraction} left no query out: lower it, or choose_by='valid'."
        )
    return evaluate(*part, measures, convention).mean
