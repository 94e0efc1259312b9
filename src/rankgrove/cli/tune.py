"""``rankgrove tune``: hyperparameter search that stores every fit."""

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
    """The data by which the best combination is chosen."""

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
    Path | None, typer.Option(help="Validation data, which chooses the best.", show_default=False)
]
Test = Annotated[Path | None, typer.Option(help="Test data, measured as well.")]
LetorFolds = Annotated[
    bool,
    typer.Option("--letor-folds", help="Cross-validate: the files are parts S1, S2, S3, ..."),
]
RankerName = Annotated[str, typer.Option(help="Ranker to tune; see `rankgrove train`.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A parameter of all trials, as in early_stopping=250.", metavar="NAME=VALUE"
    ),
]
Space = Annotated[
    str,
    typer.Option(
        help="Combinations to try: small-data (1,008, small trees), large-data (162, large "
        "trees), or a TOML file with a list of values for each parameter."
    ),
]
SearchUsed = Annotated[
    Search,
    typer.Option(
        help="auto: all combinations if there are at most --trials, otherwise --trials random "
        "ones; grid: all; random: --trials random ones; optuna: Optuna's sampler."
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of combinations.", show_default="20"),
]
Seeds = Annotated[int, typer.Option(min=1, help="Number of seeds per combination and fold.")]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help="Measure to compute; repeat for several. The first decides.",
        show_default="the ranker's, else ndcg@10",
    ),
]
Second = Annotated[
    float, typer.Option(help="Share of the validation queries to set apart, to detect overfitting.")
]
Patience = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Show after which trial to stop: the one followed by this many trials without "
        "improvement on the --second queries.",
        show_default=False,
    ),
]
BagSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Tune bags with this number of models; the parameters are those of the models.",
        show_default=False,
    ),
]
ChosenBy = Annotated[
    ChooseBy,
    typer.Option(
        help="Choose by validation data or, for bags, by the training queries, each scored by the "
        "models that were not trained on it."
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(help="Store every finished fit in this file, and continue from it."),
]
Out = Annotated[Path | None, typer.Option(help="CSV file to write, with all trials.")]
Best = Annotated[
    Path | None,
    typer.Option(help="TOML file to write the best parameters to, for `rankgrove train --config`."),
]
Show = Annotated[int, typer.Option(min=1, help="Number of best combinations to print.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Run fits in parallel: local, or the address of a Dask scheduler.",
        metavar="tcp://HOST:PORT",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all random draws.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress bar.")]


@reads_data(has_model=False)
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
        raise ParameterError("--patience uses the queries set apart: give --second too.")
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
        result = rg.tune(
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
    result = _with_plain_names(result)
    if out is not None:
        result.to_csv(out)
    if best is not None:
        kept = parameters(None, settings or []) | result.best_parameters
        known = base.get_params(deep=True)
        if "random_state" in known:  # so that `train --config` gives the model of the first seed
            kept.setdefault("random_state", seed_of_fit(random_state, 0))
        if measure and "measure" in (known if models is None else base.base.get_params()):
            kept.setdefault("measure", measure[0])
        write_toml(best, kept)
    if plot is not None:
        save_figure(rg.plot.tuning(result), plot)
    typer.echo("\n".join([result.table(show), *_overfitting(result, patience)]))
    say_written(*written.values())


def _plan(
    base: Any, space: Any, search: Search, trials: int | None, n_fits: int, measure: str
) -> str:
    """Return a line that says how many fits will be made, and by which measure they are chosen."""
    from rankgrove.tuning.search_space import checked_space, planned

    plan = planned(checked_space(space, "tune"), search.value, trials, "tune")
    more = ""
    if plan.n_trials < plan.total:
        more = "; --trials N tries more, --search grid tries all"
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


def _with_plain_names(result: Tuning) -> Tuning:
    """Return trials with a bag's parameters named as in --set and in the space."""
    trials = [
        replace(
            trial,
            parameters={n.removeprefix("base__"): value for n, value in trial.parameters.items()},
        )
        for trial in result.trials
    ]
    return replace(result, trials=trials)


def _overfitting(result: Tuning, patience: int | None) -> list[str]:
    """Return lines on choosing within every fold, and on where tuning should have ended."""
    lines = []
    if result.n_folds > 1 and "test" in result.trials[0].values:
        mean = sum(value for _, value in result.nested()) / result.n_folds
        lines.append(
            f"With the best combination chosen within every fold, the mean test {result.measure} "
            f"is {mean:.4f}; only this is a fair estimate."
        )
    if patience is not None:
        last = result.early_stop(patience)
        number = result.trials.index(last) + 1
        shown = [f"{name}={value}" for name, value in last.parameters.items()]
        lines.append(
            f"By the queries set apart, tuning should have ended with trial {number} of "
            f"{len(result.trials)}: {', '.join(shown)}"
        )
    return [f"\n{line}" for line in lines]


def _tuned(
    ranker: str, settings: list[str], space: str, measures: list[str] | None
) -> tuple[Any, Any]:
    """Return the ranker to tune, and the space: a preset's name, or lists of values.

    A ranker with a parameter `measure` is also trained for the first measure.
    """
    from rankgrove.cli.inputs import hint
    from rankgrove.cli.parameters import new_ranker, parameters, read_toml
    from rankgrove.tuning.search_space import BY_DATA, PRESETS

    params = parameters(None, settings)
    base = new_ranker(ranker, "tune")
    if measures and "measure" in base.get_params(deep=False):
        base.set_params(measure=measures[0])
    base.set_params(**params)
    base.check_parameters()
    lists = read_toml(Path(space)) if space.endswith(".toml") else None
    if space in PRESETS:
        hint(f"--space {space}", f"--space {space}-data")
        space = f"{space}-data"
    if lists is None and space not in BY_DATA:
        raise ParameterError(
            f"--space is {', '.join(BY_DATA)}, or a TOML file with a list of values for each "
            f"parameter. Got {space!r}."
        )
    for name in PRESETS[BY_DATA[space]] if lists is None else lists:
        if name in params:
            raise ParameterError(f"--set {name}: --space {space} tries {name}; leave one out.")
    if lists is not None:
        return base, lists
    if "n_leaves" not in base.get_params(deep=False):
        raise ParameterError(
            f"--space {space} is for boosted trees, and {ranker} is not one. "
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
    """Return training, validation and, if given, test data."""
    train = reading.load(data)
    others = [path for path in (valid, test) if path is not None]
    return [train, *(reading.load_like(train, [path]) for path in others)]
