"""``rg.tune``: a search over parameters that stores every fit (BL-MART paper, section 3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from rankgrove.cluster.client import check_cluster
from rankgrove.data.folds import Fold, Split
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.measures.base import Measure
from rankgrove.random import derive_seed, mix64
from rankgrove.rankers.base import Ranker
from rankgrove.tuning.search_space import Parameters, Space, checked_space, drawn, grid, planned
from rankgrove.tuning.trial_runner import Parts, Runner
from rankgrove.tuning.tuning_result import Tuning
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_output_file,
    check_real,
    refuse,
)

SEARCHES = ("auto", "grid", "random", "optuna")
CHOOSE_BY = ("valid", "out_of_bag")


def tune(
    base: Ranker,
    data: Any,
    space: str | Space = "small-data",
    *,
    search: str = "auto",
    n_trials: int | None = None,
    n_seeds: int = 1,
    measures: str | Measure | Sequence[str | Measure] | None = None,
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
    base : the untrained ranker; parameters that the space does not name keep its values. Set its
        ``early_stopping`` (the paper: 250). For a bag the space names ``base__n_leaves`` and the
        like. Its ``checkpoint`` is not used: `store` keeps every fit
    data : folds, as ``rg.letor_folds`` and ``rg.k_fold(..., valid=True)`` give them; or one pair
        (train, valid) or triple (train, valid, test) of data sets
    space : ``"small-data"`` (1,008 combinations, small trees) or ``"large-data"`` (162, large
        trees): the grids of the paper's Table 2 for small and large collections, applied to the
        base ranker of a bag; or parameters with lists of values
    search : ``"auto"``: all combinations if there are at most `n_trials`, otherwise
        `n_trials` of them at random; ``"grid"``: all; ``"random"``: `n_trials` of them at random;
        ``"optuna"``: `n_trials` that Optuna proposes, if it is installed
    n_trials : the maximum number of combinations; None: 20. Every combination is trained on every
        fold with every seed
    n_seeds : number of seeds of every trial on every fold
    measures : measures to compute; the first measure chooses the best trial. None: the ranker's
        measure
    convention : how measures are defined where their names do not say it
    choose_by : the data on which the first measure chooses: ``"valid"``: the validation data;
        ``"out_of_bag"``, for bags only: the training queries, each scored by the models that were
        not trained on it. These are more queries, and they did not stop the training
    second : share of the validation queries to set apart, to see when tuning overfits
    store : file to store the result of every fit in as soon as it ends. A run that was killed
        continues from it, and no fit in it is repeated
    cluster, n_threads : as in a BaggedRanker
    random_state : seed of the random draws and of the fits
    progress : show a progress bar over fits

    Returns
    -------
    Tuning
        all trials; ``table()``, ``best_parameters``, ``best_of()``, ``nested()``

    Examples
    --------
    >>> import rankgrove as rg
    >>> parts = [rg.make_artificial(30, seed=s) for s in (1, 2, 3)]
    >>> tuning = rg.tune(
    ...     rg.LambdaMART(n_trees=5), parts, {"n_leaves": [2, 8], "learning_rate": [0.1, 0.3]}
    ... )
    >>> len(tuning.trials), sorted(tuning.best_parameters)
    (4, ['learning_rate', 'n_leaves'])
    """
    owner = "tune"
    if not isinstance(base, Ranker) or "valid" not in base.fit_takes:
        refuse("base", owner, "a ranker to train, such as rg.LambdaMART()", base)
    if cluster is not None and base.is_bag and base.cluster is not None:
        refuse(
            "cluster",
            owner,
            "left out if the bag has a cluster, or the bag's cluster left out",
            cluster,
        )
    check_cluster(cluster, owner)
    listed = checked_space(space, owner)
    if isinstance(space, str) and base.is_bag:
        listed = {f"base__{name}": values for name, values in listed.items()}
    check_choice("search", owner, search, SEARCHES)
    check_choice("choose_by", owner, choose_by, CHOOSE_BY)
    if choose_by == "out_of_bag" and not base.is_bag:
        refuse(
            "choose_by", owner, f"'valid' for {type(base).__name__}, which is not a bag", choose_by
        )
    if measures is None:
        measures = getattr(base, "measure", "ndcg@10")
    names = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not names:
        refuse("measures", owner, "a measure, or several", measures)
    check_integer("n_seeds", owner, n_seeds, low=1)
    check_real("second", owner, second, low=0.0)
    if second >= 1.0:
        refuse("second", owner, "a share below 1", second)
    plan = planned(listed, search, n_trials, owner)
    if store is not None:
        check_output_file("store", owner, store)
    if isinstance(space, str) and not set(listed) <= set(base.get_params()):
        raise ParameterError(
            f"{owner}: space={space!r} is the paper's grid of LambdaMART's parameters "
            f"({', '.join(listed)}), which {type(base).__name__} does not all have. Give a space "
            "of your own: its parameters with lists of values."
        )
    combinations = []
    if plan.search == "grid":
        combinations = list(grid(listed))
    elif plan.search == "random":
        combinations = drawn(listed, plan.n_trials, random_state)
    _check_values(base, listed, combinations)
    folds = [_parts(fold, second, random_state, owner) for fold in _listed_folds(data, owner)]
    rule = (names, convention, choose_by)
    runner = Runner(base, folds, *rule, n_seeds, random_state, cluster, n_threads)
    runner.open(store, second)
    if plan.search == "optuna":
        trials = runner.by_optuna(listed, plan.n_trials, progress)
    else:
        trials = runner.all_of(combinations, progress)
    return Tuning(trials, str(names[0]), len(folds), n_seeds, choose_by)


def _check_values(base: Ranker, space: Space, combinations: list[Parameters]) -> None:
    """Refuse an unknown name or an invalid value before any training.

    Every value is checked once with the first values of the other parameters. The combinations
    that will be tried are checked too, because some values exclude each other.
    """
    first = {name: values[0] for name, values in space.items()}
    each = [{**first, name: value} for name, values in space.items() for value in values]
    for parameters in [*each, *combinations]:
        ranker: Any = clone(base).set_params(**parameters)
        ranker.check_parameters()
        ranker.check_valid(True)


def _listed_folds(data: Any, owner: str) -> list[Any]:
    """Return folds of any form as a list."""
    if isinstance(data, Fold):
        return [data]
    if isinstance(data, QueryDataset) or not isinstance(data, Iterable):
        refuse("data", owner, "folds, or (train, valid) or (train, valid, test)", data)
    listed = list(data)
    if listed and all(isinstance(part, QueryDataset) for part in listed):
        return [tuple(listed)]
    return listed


def _parts(fold: Any, second: float, seed: int, owner: str) -> Parts:
    """Return the parts of a fold; the second held-out set is drawn from its validation queries."""
    if isinstance(fold, Split) or (isinstance(fold, Fold) and fold.valid is None):
        raise ParameterError(
            f"{owner}: these folds have no validation data, only test data, which must not choose "
            "parameters. Give rg.k_fold(..., valid=True), or rg.letor_folds."
        )
    sets = tuple(fold)
    if len(sets) not in (2, 3) or not all(isinstance(s, QueryDataset) for s in sets):
        raise ParameterError(
            f"{owner}: a fold is (train, valid) or (train, valid, test), all data sets. Got "
            f"{type(fold).__name__} of {len(sets)}."
        )
    train, valid = sets[:2]
    second_part = None
    if second:
        draws = mix64(valid.query_keys ^ np.uint64(derive_seed(seed, "second")))
        n = round(second * valid.n_queries)
        if not 0 < n < valid.n_queries:
            raise ParameterError(
                f"{owner}: second={second} of {valid.n_queries} validation queries leaves one of "
                "the two sets empty."
            )
        chosen = np.zeros(valid.n_queries, np.bool_)
        chosen[np.argsort(draws, kind="stable")[:n]] = True
        valid, second_part = valid.select(~chosen), valid.select(chosen)
    return Parts(train, valid, second_part, sets[2] if len(sets) == 3 else None)
