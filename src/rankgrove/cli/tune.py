"""``rankgrove tune``: many combinations of parameters, every fit kept."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankgrove.cli.options import (
    Combine,
    Convention,
    PlotFile,
    Reading,
    Sample,
    Threads,
    reads_data,
)
from rankgrove.errors import ParameterError

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset
    from rankgrove.tuning.tuning_result import Tuning


class ChooseBy(StrEnum):
    """What decides."""

    valid = "valid"
    out_of_bag = "out-of-bag"


class Search(StrEnum):
    """How combinations are chosen."""

    auto = "auto"
    grid = "grid"
    random = "random"
    optuna = "optuna"


Data = Annotated[
    list[Path],
    typer.Argument(help="Training data; with --letor-folds, the parts of the collection."),
]
Valid = Annotated[
    Path | None, typer.Option(help="Validation data, which decides.", show_default=False)
]
Test = Annotated[Path | None, typer.Option(help="Test data, reported beside it.")]
LetorFolds = Annotated[
    bool,
    typer.Option("--letor-folds", help="Cross-validate: the files are parts S1, S2, S3, ..."),
]
RankerName = Annotated[str, typer.Option(help="What to tune; see `rankgrove train`.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A parameter that all have, as in early_stopping=250.", metavar="NAME=VALUE"
    ),
]
Space = Annotated[
    str,
    typer.Option(
        help="What to try: small-data (1,008 combinations, small trees), large-data (162, large "
        "trees), or a TOML file with a list of values for each parameter."
    ),
]
SearchUsed = Annotated[
    Search,
    typer.Option(
        help="auto: all combinations where there are no more than --trials, else so many at "
        "random; grid: all; random; optuna."
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(min=1, help="Number of combinations at most.", show_default="20"),
]
Seeds = Annotated[int, typer.Option(min=1, help="Seeds of every combination and fold.")]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure", "-m", help="The first decides.", show_default="the ranker's, else ndcg@10"
    ),
]
Second = Annotated[
    float, typer.Option(help="Share of the validation queries set apart, to see overfitting.")
]
Patience = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="With --second: say where tuning should have ended, since so many trials did not "
        "better the measure there.",
        show_default=False,
    ),
]
BagSize = Annotated[
    int | None,
    typer.Option(
        min=1, help="Tune bags of so many models; parameters are the models'.", show_default=False
    ),
]
ChosenBy = Annotated[
    ChooseBy,
    typer.Option(
        help="What decides: validation data, or, of bags, the training queries, each scored by "
        "the models that did not see it."
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(help="Keep every fit in this file as it ends, and go on from it."),
]
Out = Annotated[Path | None, typer.Option(help="CSV file of all trials.")]
Best = Annotated[
    Path | None,
    typer.Option(help="TOML file for the best parameters, as `rankgrove train --config` reads it."),
]
Show = Annotated[int, typer.Option(min=1, help="How many of the best to print.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="local, or the address of a Dask scheduler.", metavar="tcp://HOST:PORT"),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all random draws.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


@reads_data()
def tune(
    data: Data,
    valid: Valid = None,
    test: Test = None,
    letor_folds: LetorFolds = False,
    ranker: RankerName = "lambdamart",
    models: BagSize = None,
    sample: Sample = None,
    combine: Combine = None,
    settings: Settings = None,
    space: Space = "small-data",
    search: SearchUsed = Search.auto,
    trials: Trials = None,
    seeds: Seeds = 1,
    measure: Measures = None,
    choose_by: ChosenBy = ChooseBy.valid,
    second: Second = 0.0,
    patience: Patience = None,
    store: Store = None,
    out: Out = None,
    best: Best = None,
    plot: PlotFile = None,
    show: Show = 5,
    cluster: Cluster = None,
    random_state: Seed = 0,
    quiet: Quiet = False,
    convention: Convention = "papers",
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Try many combinations of parameters; print the best ones.

    Examples:

    rankgrove tune train.txt --valid vali.txt --set early_stopping=50 --best best.toml

    rankgrove train train.txt --valid vali.txt --config best.toml --out web.rg

    rankgrove tune train.txt --valid vali.txt --test test.txt --trials 50
    --set early_stopping=50 --store trials.jsonl

    rankgrove tune S1.txt S2.txt S3.txt S4.txt S5.txt --letor-folds --seeds 3 --store trials.jsonl

    rankgrove tune train.txt --valid vali.txt --models 15 --choose-by out-of-bag --search random
    --trials 30 --set early_stopping=50
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_measures
    from rankgrove.cli.outputs import check_writable, say_written, says_what_is_kept
    from rankgrove.cli.parameters import bag_options, parameters, write_toml
    from rankgrove.reporting.figure import save_figure
    from rankgrove.tuning.trial_runner import seed_of_fit

    read = [path for path in [*data, valid, test] if path is not None]
    for path in read:
        check_exists(path)
    written = {"--out": out, "--best": best, "--plot": plot, "--store": store}
    check_writable("tune", written, read)
    if plot is not None and test is None and not letor_folds:
        raise ParameterError("--plot shows validation and test: give --test, or --letor-folds.")
    if letor_folds and not (valid is None and test is None):
        raise ParameterError("--letor-folds makes its own validation and test data.")
    if valid is None and not letor_folds:
        raise ParameterError("Tuning needs validation data: give --valid, or --letor-folds.")
    if patience is not None and not second:
        raise ParameterError("--patience looks at the queries set apart: give --second too.")
    check_measures(measure or [], convention)
    _check_choice(search, trials, choose_by, models)
    bag = bag_options(models, sample, combine)
    base, listed = _tuned(ranker, settings or [], space, measure)
    if models is not None:
        base = rg.BaggedRanker(base, models, **bag)
        if not isinstance(listed, str):
            listed = {f"base__{name}": values for name, values in listed.items()}
    if not quiet:
        measured = (measure or [str(getattr(base, "measure", "ndcg@10"))])[0]
        n_fits = seeds * (len(data) if letor_folds else 1)
        typer.echo(_plan(base, listed, search, trials, n_fits, measured), err=True)
    with says_what_is_kept("fits", store, "--store FILE"):
        found = rg.tune(
            base,
            _folds(data, reading) if letor_folds else _parts(data, valid, test, reading),
            listed,
            search=search.value,
            n_trials=trials,
            n_seeds=seeds,
            measures=measure or None,
            convention=convention,
            choose_by=choose_by.value.replace("-", "_"),
            second=second,
            store=store,
            cluster=cluster,
            n_threads=threads,
            random_state=random_state,
            progress=not quiet,
        )
    found = _by_plain_names(found)
    if out is not None:
        found.to_csv(out)
    if best is not None:
        kept = parameters(None, settings or []) | found.best_parameters
        known = base.get_params(deep=True)
        if "random_state" in known:  # so that `train --config` gives the model of the first seed
            kept.setdefault("random_state", seed_of_fit(random_state, 0))
        if measure and "measure" in (known if models is None else base.base.get_params()):
            kept.setdefault("measure", measure[0])
        write_toml(best, kept)
    if plot is not None:
        save_figure(rg.plot.tuning(found), plot)
    typer.echo("\n".join([found.table(show), *_overfitting(found, patience)]))
    say_written(*written.values())


def _plan(
    base: Any, space: Any, search: Search, trials: int | None, n_fits: int, measure: str
) -> str:
    """Say what is going to be done: how many fits of how many, and what decides."""
    from rankgrove.tuning.search_space import checked_space, planned

    plan = planned(checked_space(space, "tune"), search.value, trials, "tune")
    more = ""
    if plan.n_trials < plan.total:
        more = "; --trials N tries more, --search grid all"
    return (
        f"tuning {type(base).__name__} by {measure}: {plan}, {plan.n_trials * n_fits:,} fits{more}"
    )


def _check_choice(
    search: Search, trials: int | None, choose_by: ChooseBy, models: int | None
) -> None:
    """Refuse options that need others."""
    if search is Search.grid and trials is not None:
        raise ParameterError("--search grid tries all combinations: leave --trials out.")
    if choose_by is ChooseBy.out_of_bag and models is None:
        raise ParameterError("--choose-by out-of-bag is for bags: give --models too.")


def _by_plain_names(found: Tuning) -> Tuning:
    """Return trials with a bag's parameters named as --set and the space name them."""
    trials = [
        replace(
            one,
            parameters={n.removeprefix("base__"): value for n, value in one.parameters.items()},
        )
        for one in found.trials
    ]
    return replace(found, trials=trials)


def _overfitting(found: Tuning, patience: int | None) -> list[str]:
    """Say what choosing by less would have found: fold by fold, or with an early end."""
    lines = []
    if found.n_folds > 1 and "test" in found.trials[0].values:
        mean = sum(value for _, value in found.nested()) / found.n_folds
        lines.append(
            f"Chosen in every fold by its own data, the mean test {found.measure} is {mean:.4f}; "
            "only this is an estimate to go by."
        )
    if patience is not None:
        last = found.early_stop(patience)
        number = found.trials.index(last) + 1
        shown = [f"{name}={value}" for name, value in last.parameters.items()]
        lines.append(
            f"By the queries set apart tuning should have ended with trial {number} of "
            f"{len(found.trials)}: {', '.join(shown)}"
        )
    return [f"\n{line}" for line in lines]


def _tuned(
    ranker: str, settings: list[str], space: str, measures: list[str] | None
) -> tuple[Any, Any]:
    """Return the ranker to tune, and what to try: a preset's name, or lists of values.

    The first measure is what a ranker with a parameter `measure` is trained for, too.
    """
    from rankgrove.cli.inputs import hint
    from rankgrove.cli.parameters import new_ranker, parameters, read_toml
    from rankgrove.tuning.search_space import BY_DATA, PRESETS

    given = parameters(None, settings)
    base = new_ranker(ranker, "tune")
    if measures and "measure" in base.get_params(deep=False):
        base.set_params(measure=measures[0])
    base.set_params(**given)
    base.check_parameters()
    own = read_toml(Path(space)) if space.endswith(".toml") else None
    if space in PRESETS:
        hint(f"--space {space}", f"--space {space}-data")
        space = f"{space}-data"
    if own is None and space not in BY_DATA:
        raise ParameterError(
            f"--space is {', '.join(BY_DATA)}, or a TOML file with a list of values for each "
            f"parameter. Got {space!r}."
        )
    for name in PRESETS[BY_DATA[space]] if own is None else own:
        if name in given:
            raise ParameterError(f"--set {name}: --space {space} tries {name}; leave one out.")
    if own is not None:
        return base, own
    if not hasattr(base, "n_leaves"):
        raise ParameterError(
            f"--space {space} is a space of boosted trees, and {ranker} is none. "
            "Give a TOML file with lists of values, as in learning_rate = [0.001, 0.01]."
        )
    return base, space


def _folds(data: list[Path], reading: Reading) -> list[Any]:
    """Return folds of the parts of a collection."""
    import rankgrove as rg
    from rankgrove.data.concatenate import refuse_shared_queries

    if len(data) < 3:
        raise ParameterError(f"--letor-folds needs three parts or more. Got {len(data)}.")
    parts = [reading.load([path]) for path in data]
    refuse_shared_queries(parts, data)
    return list(rg.letor_folds(parts))


def _parts(
    data: list[Path], valid: Path | None, test: Path | None, reading: Reading
) -> list[QueryDataset]:
    """Return training, validation and, where it is given, test data."""
    train = reading.load(data)
    others = [path for path in (valid, test) if path is not None]
    return [train, *(reading.load_like(train, [path]) for path in others)]
