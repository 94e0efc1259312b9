"""``rg.tune``: many fits, every one kept (BL-MART paper, section 3.4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from rankgrove.bagging.out_of_bag import missed_part
from rankgrove.cluster.client import check_cluster
from rankgrove.cluster.engine import run_tasks
from rankgrove.data.folds import Fold, Split
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import MissingExtraError, ParameterError
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.experiments.spaces import Parameters, Space, checked_space, drawn, grid
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.tuning import Trial, Tuning, merged
from rankgrove.measures.base import Measure
from rankgrove.random import derive_seed, mix64
from rankgrove.rankers.bagged import BaggedRanker
from rankgrove.rankers.base import Ranker, plain_parameters
from rankgrove.rankers.boosted_data import fingerprint
from rankgrove.rankers.lambdamart import LambdaMART
from rankgrove.rankers.mart import MART
from rankgrove.rankers.mcrank import McRank
from rankgrove.training.progress import TaskBar
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_output_file,
    check_real,
    counted,
    refuse,
)

SEARCHES = ("grid", "random", "optuna")
CHOOSE_BY = ("valid", "out_of_bag")


class Parts(NamedTuple):
    """The data of one fold: to train on, to stop and choose by, a second such set, to test on."""

    train: QueryDataset
    valid: QueryDataset
    second: QueryDataset | None
    test: QueryDataset | None


def tune(
    base: Ranker,
    data: Any,
    space: str | Space = "small",
    *,
    search: str = "grid",
    n_trials: int | None = None,
    n_seeds: int = 1,
    measures: str | Measure | Sequence[str | Measure] = "ndcg@3",
    convention: str = "papers",
    choose_by: str = "valid",
    second: float = 0.0,
    store: str | Path | None = None,
    cluster: Any = None,
    n_threads: int | None = None,
    random_state: int = 0,
    progress: bool = False,
) -> Tuning:
    """Train a ranker with many combinations of parameters, on every fold with every seed.

    Parameters
    ----------
    base : the ranker, untrained; what the space does not name stays as it is here. Set its
        ``early_stopping`` (the paper: 250). For a bag the space names ``base__n_leaves`` and the
        like. Its ``checkpoint`` is not used: `store` keeps every fit
    data : folds, as ``rg.letor_folds`` and ``rg.k_fold(..., valid=True)`` give them; or one pair
        (train, valid) or triple (train, valid, test) of data sets
    space : ``"small"`` (1,008 combinations) or ``"large"`` (162): the paper's Table 2, of a bag
        its base's; or parameters with lists of values
    search : ``"grid"``: all of them; ``"random"``: `n_trials` of them; ``"optuna"``: Optuna's
        choice of `n_trials`, where it is installed
    n_seeds : seeds of every trial on every fold
    measures : the first decides
    convention : what the measures' names do not say
    choose_by : where it decides: ``"valid"``: on the validation data; ``"out_of_bag"``, of bags:
        on the training queries, each scored by the models that did not see it: more queries, and
        not those that stopped training
    second : share of the validation queries set apart, to see when tuning overfits
    store : file that keeps every fit as it ends; a killed run goes on from it, and a fit that is
        there is never repeated
    cluster, n_threads : as in a BaggedRanker
    random_state : of random draws, and of the fits' seeds
    progress : show a progress bar over fits

    Returns
    -------
    Tuning
        all trials; ``table()``, ``best_parameters``, ``best_of()``, ``nested()``

    Examples
    --------
    >>> import rankgrove as rg
    >>> parts = [rg.make_artificial(30, seed=s) for s in (1, 2, 3)]
    >>> found = rg.tune(
    ...     rg.LambdaMART(n_trees=5), parts, {"n_leaves": [2, 8], "learning_rate": [0.1, 0.3]}
    ... )
    >>> len(found.trials), sorted(found.best_parameters)
    (4, ['learning_rate', 'n_leaves'])
    """
    owner = "tune"
    if not isinstance(base, Ranker) or not hasattr(base, "check_valid"):
        refuse("base", owner, "a ranker to train, such as rg.LambdaMART()", base)
    if isinstance(base, BaggedRanker) and not (cluster is None or base.cluster is None):
        refuse("cluster", owner, "left out where the bag has one, or the bag's left out", cluster)
    check_cluster(cluster, owner)
    listed = checked_space(space, owner)
    if isinstance(space, str) and isinstance(base, BaggedRanker):
        listed = {f"base__{name}": values for name, values in listed.items()}
    check_choice("search", owner, search, SEARCHES)
    check_choice("choose_by", owner, choose_by, CHOOSE_BY)
    if choose_by == "out_of_bag" and not isinstance(base, BaggedRanker):
        refuse("choose_by", owner, f"'valid' for {type(base).__name__}, which is no bag", choose_by)
    check_integer("n_seeds", owner, n_seeds, low=1)
    check_real("second", owner, second, low=0.0)
    if second >= 1.0:
        refuse("second", owner, "a share below 1", second)
    if search == "grid" and n_trials is not None:
        refuse("n_trials", owner, "left out for search='grid', which tries all", n_trials)
    if store is not None:
        check_output_file("store", owner, store)
    if search != "grid":
        if n_trials is None:
            refuse("n_trials", owner, f"a number of trials for search={search!r}", n_trials)
        check_integer("n_trials", owner, n_trials, low=1)
    if isinstance(space, str) and not set(listed) <= set(base.get_params()):
        raise ParameterError(
            f"{owner}: space={space!r} is the paper's grid of LambdaMART's parameters "
            f"({', '.join(listed)}), which {type(base).__name__} does not all have. Give a space "
            "of your own: its parameters with lists of values."
        )
    wanted = []
    if search == "grid":
        wanted = list(grid(listed))
    elif search == "random":
        wanted = drawn(listed, int(n_trials or 0), random_state)
    _check_values(base, listed, wanted)
    folds = [_parts(one, second, random_state, owner) for one in _listed_folds(data, owner)]
    names = [measures] if isinstance(measures, str | Measure) else list(measures)
    rule = (names, convention, choose_by)
    runner = _Runner(base, folds, *rule, n_seeds, random_state, cluster, n_threads)
    runner.open(store, second)
    if search == "optuna":
        trials = runner.by_optuna(listed, int(n_trials or 0), progress)
    else:
        trials = runner.all_of(wanted, progress)
    return Tuning(trials, str(names[0]), len(folds), n_seeds, choose_by)


def _check_values(base: Ranker, space: Space, wanted: list[Parameters]) -> None:
    """Refuse a name or a value that cannot be, before any work.

    Every value is looked at once beside the first ones of the other parameters, and so are the
    combinations that are known to be tried: some values cannot go together.
    """
    first = {name: values[0] for name, values in space.items()}
    each = [{**first, name: value} for name, values in space.items() for value in values]
    for parameters in [*each, *wanted]:
        made: Any = clone(base).set_params(**parameters)
        made.check_parameters()
        made.check_valid(True)


def _listed_folds(data: Any, owner: str) -> list[Any]:
    """Return folds of any form as a list."""
    if isinstance(data, Fold):
        return [data]
    if isinstance(data, QueryDataset) or not isinstance(data, Iterable):
        refuse("data", owner, "folds, or (train, valid) or (train, valid, test)", data)
    listed = list(data)
    if listed and all(isinstance(one, QueryDataset) for one in listed):
        return [tuple(listed)]
    return listed


def _parts(one: Any, second: float, seed: int, owner: str) -> Parts:
    """Return the parts of a fold; the second held-out set is drawn from its validation queries."""
    if isinstance(one, Split) or (isinstance(one, Fold) and one.valid is None):
        raise ParameterError(
            f"{owner}: these folds have no validation data, only test data, which must not choose "
            "parameters. Give rg.k_fold(..., valid=True), or rg.letor_folds."
        )
    sets = tuple(one)
    if len(sets) not in (2, 3) or not all(isinstance(s, QueryDataset) for s in sets):
        raise ParameterError(
            f"{owner}: a fold is (train, valid) or (train, valid, test), all data sets. Got "
            f"{type(one).__name__} of {len(sets)}."
        )
    train, valid = sets[:2]
    apart = None
    if second:
        lot = mix64(valid.query_keys ^ np.uint64(derive_seed(seed, "second")))
        n = round(second * valid.n_queries)
        if not 0 < n < valid.n_queries:
            raise ParameterError(
                f"{owner}: second={second} of {valid.n_queries} validation queries leaves one of "
                "the two sets empty."
            )
        chosen = np.zeros(valid.n_queries, np.bool_)
        chosen[np.argsort(lot, kind="stable")[:n]] = True
        valid, apart = valid.select(~chosen), valid.select(chosen)
    return Parts(train, valid, apart, sets[2] if len(sets) == 3 else None)


class _Runner:
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
            ready = base.with_bins(parts.train)
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
    if bins is not None:
        made.take_bins(bins)
    made.fit(parts.train, valid=parts.valid, valid_measures=measures[0])
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
    scores = train.grouped(bag.out_of_bag_scores_)
    missed = ~np.isnan(scores[train.query_ptr[:-1]])
    if not missed.any():
        raise ParameterError(
            f"A bag of {counted(len(bag.models_), 'model')} with query_fraction="
            f"{bag.query_fraction} left no query out: lower it, or choose_by='valid'."
        )
    return evaluate(*missed_part(scores, missed, train), measures, convention).mean
