"""The fits of ``rg.tune``: run here or on a cluster, every one kept as it ends."""

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
from rankgrove.experiments.spaces import Parameters
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.tuning import Trial, merged
from rankgrove.measures.base import Measure
from rankgrove.random import derive_seed
from rankgrove.rankers.base import Ranker, plain_parameters
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.fitting import fingerprint
from rankgrove.rankers.trees.lambdamart import LambdaMART
from rankgrove.rankers.trees.mart import MART
from rankgrove.rankers.trees.mcrank import McRank
from rankgrove.training.progress import TaskBar
from rankgrove.validation import counted


class Parts(NamedTuple):
    """The data of one fold: to train on, to stop and choose by, a second such set, to test on."""

    train: QueryDataset
    valid: QueryDataset
    second: QueryDataset | None
    test: QueryDataset | None


class Runner:
    """Runs trials and keeps every fit."""

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
        """Open the file of results, if there is one."""
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

    def all_of(self, wanted: list[Parameters], progress: bool) -> list[Trial]:
        """Run all trials, those fits that are not known yet."""
        tasks = [
            (parameters, fold, seed)
            for parameters in wanted
            for fold in range(len(self.folds))
            for seed in range(self.n_seeds)
        ]
        open_ = [task for task in tasks if _key(task) not in self.store]
        bar = TaskBar("tuning", len(tasks), "fits") if progress else None
        try:
            if bar is not None:
                bar.advance(len(tasks) - len(open_))

            def on_done(i: int, record: dict[str, Any]) -> None:
                self.store.put(_key(open_[i]), record)
                if bar is not None:
                    bar.advance()

            folds = _binned(self.base, self.folds, {n for p in wanted for n in p})
            rule = (self.measures, self.convention, self.choose_by)
            shared = (self.base, folds, *rule, self.seed)
            run_tasks(
                fit_one,
                shared,
                open_,
                cluster=self.cluster,
                n_threads=self.n_threads,
                on_done=on_done,
            )
        finally:
            if bar is not None:
                bar.close()
        per_trial = len(self.folds) * self.n_seeds
        found = [self.store[_key(task)] for task in tasks]
        return [
            _trial(parameters, found[i * per_trial : (i + 1) * per_trial])
            for i, parameters in enumerate(wanted)
        ]

    def by_optuna(self, space: Mapping[str, list[Any]], n: int, progress: bool) -> list[Trial]:
        """Run trials that Optuna proposes one after the other; known fits are told it first."""
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
                asked = study.ask()
                parameters = {
                    name: values[asked.suggest_categorical(name, list(range(len(values))))]
                    for name, values in space.items()
                }
                (one,) = self.all_of([parameters], progress=False)
                study.tell(asked, one.mean(self.choose_by, str(self.measures[0])))
                trials.append(one)
                if bar is not None:
                    bar.advance()
        finally:
            if bar is not None:
                bar.close()
        return trials


def _binned(base: Ranker, folds: list[Parts], tuned: set[str]) -> list[tuple[Parts, Any]]:
    """Return folds with the bins of their training data, which all fits share, where they can.

    Bins are a quarter of the size of features, and are made once instead of in every fit.
    """
    found: list[tuple[Parts, Any]] = []
    for parts in folds:
        ready = None
        if isinstance(base, LambdaMART | MART | McRank) and not {"max_bins", "submodel"} & tuned:
            ready = base.shared_bins(parts.train)
        found.append((parts, None) if ready is None else (parts._replace(train=ready[0]), ready[1]))
    return found


def _about_base(bag: Ranker) -> dict[str, Any]:
    """Return what the fits of a bag depend on in its base; nothing of another ranker."""
    if not isinstance(bag, BaggedRanker):
        return {}
    own = {f"the base's {k}": v for k, v in plain_parameters(bag.base).items()}
    return {"base": type(bag.base).__name__, **own}


def _key(task: tuple[Parameters, int, int]) -> str:
    parameters, fold, seed = task
    return f"{json.dumps(parameters, sort_keys=True)} fold {fold} seed {seed}"


def _trial(parameters: Parameters, records: list[dict[str, Any]]) -> Trial:
    trees = [record["trees"] for record in records]
    values = merged([record["values"] for record in records])
    return Trial(parameters, values, None if None in trees else trees)


def fit_one(shared: Any, task: tuple[Parameters, int, int], n_threads: int | None) -> Any:
    """Train with some parameters on a fold; return the means on its parts."""
    base, folds, measures, convention, choose_by, random_state = shared
    parameters, fold, seed = task
    made = clone(base).set_params(**parameters)
    own = made.get_params(deep=False)
    if "random_state" in own:
        made.set_params(random_state=derive_seed(random_state, "tune", seed) % (1 << 31))
    if n_threads is not None and "n_threads" in own:
        made.set_params(n_threads=n_threads)
    if "checkpoint" in own:  # it would be that of all fits
        made.set_params(checkpoint=None)
    parts, bins = folds[fold]
    valid = {"valid": parts.valid}
    made.fit_binned(parts.train, bins, valid=valid, valid_measures=[measures[0]])
    if getattr(made, "interrupted_", False):
        raise KeyboardInterrupt
    values = {
        name: evaluate(made, part, measures, convention).mean
        for name, part in zip(Parts._fields[1:], parts[1:], strict=True)
        if part is not None
    }
    trees = made.ensemble_.n_trees if hasattr(made, "ensemble_") else None
    if choose_by == "out_of_bag":
        values["out_of_bag"] = _out_of_bag(made, parts.train, measures, convention)
    if isinstance(made, BaggedRanker):
        trees = getattr(made, "n_trees_", None)
    return {"values": values, "trees": trees}


def _out_of_bag(
    bag: BaggedRanker, train: QueryDataset, measures: list[str | Measure], convention: str
) -> dict[str, float]:
    """Return the means over the queries that some models did not see, by those models."""
    assert bag.out_of_bag_scores_ is not None
    part = missed_part(bag.out_of_bag_scores_, train)
    if part is None:
        raise ParameterError(
            f"A bag of {counted(len(bag.models_), 'model')} with query_fraction="
            f"{bag.query_fraction} left no query out: lower it, or choose_by='valid'."
        )
    return evaluate(*part, measures, convention).mean
