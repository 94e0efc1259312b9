"""``rankgrove tune``: many combinations of parameters, every fit kept."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rankgrove.cli.options import (
    Cache,
    Convention,
    DocidColumn,
    FeatureColumns,
    LabelColumn,
    PlotFile,
    QidColumn,
    Threads,
    ZeroBased,
)
from rankgrove.errors import ParameterError, ParseError


class Search(StrEnum):
    """How combinations are chosen."""

    grid = "grid"
    random = "random"
    optuna = "optuna"


def tune(
    data: Annotated[
        list[Path],
        typer.Argument(help="Training data; with --letor-folds, the parts of the collection."),
    ],
    valid: Annotated[
        Path | None, typer.Option(help="Validation data, which decides.", show_default=False)
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Test data, reported beside it.")] = None,
    letor_folds: Annotated[
        bool,
        typer.Option("--letor-folds", help="Cross-validate: the files are parts S1, S2, S3, ..."),
    ] = False,
    ranker: Annotated[str, typer.Option(help="What to tune; see `rankgrove train`.")] = (
        "lambdamart"
    ),
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter that all have, as in early_stopping=250."),
    ] = None,
    space: Annotated[
        str,
        typer.Option(
            help="What to try: small (1,008 combinations), large (162), or a TOML file with a "
            "list of values a parameter."
        ),
    ] = "small",
    search: Annotated[Search, typer.Option(help="All combinations, or how to choose.")] = (
        Search.grid
    ),
    trials: Annotated[
        int | None, typer.Option(min=1, help="Number of combinations, for random and optuna.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of every combination and fold.")] = 1,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="The first decides.", show_default="ndcg@3"),
    ] = None,
    second: Annotated[
        float, typer.Option(help="Share of the validation queries set apart, to see overfitting.")
    ] = 0.0,
    store: Annotated[
        Path | None,
        typer.Option(help="Keep every fit in this file as it ends, and go on from it."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file of all trials.")] = None,
    plot: PlotFile = None,
    show: Annotated[int, typer.Option(min=1, help="How many of the best to print.")] = 5,
    cluster: Annotated[
        str | None,
        typer.Option(help="local, or the address of a Dask scheduler.", metavar="tcp://HOST:PORT"),
    ] = None,
    random_state: Annotated[int, typer.Option("--seed", help="Seed of all random draws.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    convention: Convention = "papers",
    label: LabelColumn = "label",
    qid: QidColumn = "qid",
    docid: DocidColumn = None,
    features: FeatureColumns = None,
    cache: Cache = False,
    zero_based: ZeroBased = False,
    threads: Threads = None,
) -> None:
    """Try many combinations of parameters; print the best ones by validation data.

    Examples:

    rankgrove tune train.txt --valid vali.txt --test test.txt --search random --trials 50
    --set early_stopping=50 --store trials.jsonl

    rankgrove tune S1.txt S2.txt S3.txt S4.txt S5.txt --letor-folds --seeds 3 --store trials.jsonl
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_outputs, load_dataset
    from rankgrove.cli.params import new_ranker, parameters
    from rankgrove.reporting.figure import check_plot, save_figure
    from rankgrove.validation import check_output_file

    read = [path for path in [*data, valid, test] if path is not None]
    for path in read:
        check_exists(path)
    check_outputs({"--out": out, "--plot": plot, "--store": store}, read)
    for option, written in (("--out", out), ("--plot", plot), ("--store", store)):
        if written is not None:
            check_output_file(option, "tune", written)
    if plot is not None:
        check_plot(plot)
        if test is None and not letor_folds:
            raise ParameterError("--plot shows validation and test: give --test, or --letor-folds.")
    for spec in measure or []:
        rg.measure(spec, convention)
    base = new_ranker(ranker).set_params(**parameters(None, settings or []))
    base.check_parameters()
    listed = _space(space)
    if isinstance(listed, str) and not hasattr(base, "n_leaves"):
        raise ParameterError(
            f"--space {listed}: 'small' and 'large' are spaces of boosted trees, and {ranker} is "
            "none. Give a TOML file with lists of values, as in learning_rate = [0.001, 0.01]."
        )
    columns: dict[str, Any] = {
        "label": label,
        "qid": qid,
        "docid": docid,
        "features": features,
        "cache": cache,
        "zero_based": zero_based,
    }
    given: Any
    if letor_folds:
        if valid is not None or test is not None:
            raise ParameterError("--letor-folds makes its own validation and test data.")
        if len(data) < 3:
            raise ParameterError(f"--letor-folds needs three parts or more. Got {len(data)}.")
        given = list(rg.letor_folds([load_dataset([path], **columns) for path in data]))
    else:
        if valid is None:
            raise ParameterError("Tuning needs validation data: give --valid, or --letor-folds.")
        train = load_dataset(data, **columns)
        others = [
            load_dataset([path], **columns, n_features=train.n_features)
            for path in (valid, test)
            if path is not None
        ]
        given = [train, *others]
    found = rg.tune(
        base,
        given,
        listed,
        search=search.value,
        n_trials=trials,
        n_seeds=seeds,
        measures=measure or "ndcg@3",
        convention=convention,
        second=second,
        store=store,
        cluster=cluster,
        n_threads=threads,
        random_state=random_state,
        progress=not quiet,
    )
    if out is not None:
        found.to_csv(out)
    if plot is not None:
        save_figure(rg.plot.tuning(found), plot)
    typer.echo(found.table(show))


def _space(given: str) -> Any:
    """Return a preset's name, or what a TOML file says."""
    import tomllib

    if not given.endswith(".toml"):
        return given
    try:
        return tomllib.loads(Path(given).read_text())
    except OSError as error:
        raise ParseError(given, None, f"the file cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParseError(given, None, f"not a TOML file: {error}.") from None
