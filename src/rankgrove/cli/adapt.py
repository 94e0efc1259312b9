"""``rankgrove adapt``: adapting a model of one domain to another."""

from __future__ import annotations

import itertools
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankgrove.cli.options import Reading, Threads, reads_data
from rankgrove.errors import ParameterError

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset


class Way(StrEnum):
    """Methods of adaptation."""

    trada = "trada"
    submodel = "submodel"
    additive = "additive"
    combine = "combine"
    small = "small"
    base = "base"


class Tune(StrEnum):
    """Which part of the trees is tuned."""

    responses = "responses"
    splits = "splits"


class Level(StrEnum):
    """Where responses are mixed."""

    layer = "layer"
    leaf = "leaf"


Data = Annotated[
    list[Path],
    typer.Argument(
        help="Judged data of the target: LETOR files (plain or gzip), or one CSV/parquet file."
    ),
]
Base = Annotated[Path, typer.Option(help="Model file of the source domain.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")]
Method = Annotated[
    Way,
    typer.Option(
        help="trada: tune the base model's trees; submodel: LambdaSMART, with the base model as "
        "submodel; additive: append trees; combine: train on source and target together; small: "
        "train on the target alone; base: the base model itself, unchanged."
    ),
]
Source = Annotated[
    list[Path] | None,
    typer.Option(
        help="Judged data of the source domain: for combine, and for trada if the base model does "
        "not record how many rows reached its leaves. Repeat for several LETOR files."
    ),
]
Valid = Annotated[
    list[str] | None,
    typer.Option(
        help="Validation data of the target, as in train; the model keeps the number of trees that "
        "is best on it.",
        metavar="FILE",
    ),
]
Beta = Annotated[
    str | None,
    typer.Option(
        help="trada: how much more a target row counts than a source row: a number, or cv to "
        "choose it by cross-validation.",
        show_default="10",
    ),
]
Tuned = Annotated[
    Tune | None,
    typer.Option(
        help="trada: tune responses only, or splits (thresholds too).", show_default="responses"
    ),
]
MixedAt = Annotated[
    Level | None,
    typer.Option(
        help="trada: mix responses at every layer or at the leaves.", show_default="layer"
    ),
]
Trim = Annotated[bool, typer.Option("--trim", help="trada: cut off branches that no row reaches.")]
ExtraTrees = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Number of trees to add.",
        show_default="0 for trada, 30 for additive and submodel",
    ),
]
TargetWeight = Annotated[
    float | None,
    typer.Option(
        "--target-weight",
        help="combine: how much more a target query counts than a source query.",
        show_default="10",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A parameter of the ranker that is trained; repeat for several.",
        metavar="NAME=VALUE",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(help="trada: CSV file to write, with the changes of every tree."),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="trada: picture to write, showing the changes (needs matplotlib)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no summary.")]


@reads_data("weight")
def adapt(
    data: Data,
    base: Base,
    out: Out,
    method: Method = Way.trada,
    source: Source = None,
    valid: Valid = None,
    beta: Beta = None,
    tune: Tuned = None,
    level: MixedAt = None,
    trim: Trim = False,
    extra_trees: ExtraTrees = None,
    weight_of_target: TargetWeight = None,
    settings: Settings = None,
    report: Report = None,
    plot: Plot = None,
    quiet: Quiet = False,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Adapt the model of a large domain to a small domain with little data.

    Examples:

    rankgrove adapt small.txt --base big.rg --beta 10 --out new.rg

    rankgrove adapt small.txt --base big.rg --tune splits --extra-trees 30 --valid vali.txt
    --out new.rg --report changes.csv

    rankgrove adapt small.txt --base big.rg --method combine --source big.txt --out both.rg
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import named_sets
    from rankgrove.cli.outputs import check_writable, one_interrupt, say_written
    from rankgrove.cli.parameters import parameters
    from rankgrove.reporting.figure import save_figure

    trada_options: dict[str, Any] = {
        "--beta": ("beta", beta if beta is None else _beta(beta)),
        "--tune": ("tune", tune and tune.value),
        "--level": ("level", level and level.value),
        "--trim": ("trim", trim or None),
        "--report": (None, report),
        "--plot": (None, plot),
    }
    params = _method_params(method, trada_options, extra_trees, source, weight_of_target)
    if method is not Way.base and threads is not None:
        params["n_threads"] = threads
    params |= _not_again(parameters(None, settings or []), params)
    sets = named_sets(valid or [])
    inputs = [*data, base, *(source or []), *itertools.chain(*sets.values())]
    check_writable("adapt", {"--out": out, "--report": report, "--plot": plot}, inputs)
    base_model = rg.load(base)
    target, other_data = _domains(data, sets, source, reading, base_model.n_features_in_)
    if not quiet:
        typer.echo(f"adapting to {target!r}", err=True)
    with one_interrupt():
        adapted = rg.adapt_with(method.value, base_model, target, **other_data, **params)
        adapted.save(out)
    changes = getattr(adapted, "report_", None)
    if changes is not None and report is not None:
        changes.to_csv(report)
    if changes is not None and plot is not None:
        save_figure(rg.plot.adaptation(adapted), plot)
    if not quiet:
        typer.echo(adapted.summary() if hasattr(adapted, "summary") else str(adapted))
        say_written(out, report, plot)


def _domains(
    data: list[Path],
    sets: dict[str, list[Path]],
    source: list[Path] | None,
    reading: Reading,
    n_features: int,
) -> tuple[QueryDataset, dict[str, Any]]:
    """Read the target's data, and by name its validation data and the source's data.

    `n_features` is the base model's number of features.
    """
    target = reading.load(data)
    if target.n_features < n_features and not target.has_feature_names:
        target = reading.load(data, n_features=n_features)
    # Weights are for training on the target: other files need no weights.
    load = partial(reading.load, weight=None)
    names = target.given_names
    valid = {
        name: load(files, features=names, n_features=target.n_features)
        for name, files in sets.items()
    }
    big = load(source, features=None, n_features=n_features) if source else None
    return target, {"source": big, "valid": valid or None}


def _method_params(
    method: Way,
    trada_options: dict[str, Any],
    extra_trees: int | None,
    source: list[Path] | None,
    weight_of_target: float | None,
) -> dict[str, Any]:
    """Return the parameters that the options set; refuse options of other methods."""
    params: dict[str, Any] = {}
    for option, (name, value) in trada_options.items():
        if value is None:
            continue
        if method is not Way.trada:
            raise ParameterError(f"{option} is for --method trada. Got --method {method.value}.")
        if name is not None:
            params[name] = value
    if extra_trees is not None:
        if method not in (Way.trada, Way.additive, Way.submodel):
            raise ParameterError(
                "--extra-trees is for trada, additive and submodel. Got --method "
                f"{method.value}; small and combine take --set n_trees=N."
            )
        params["n_trees" if method is Way.submodel else "extra_trees"] = extra_trees
    if weight_of_target is not None:
        if method is not Way.combine:
            raise ParameterError("--target-weight is for --method combine.")
        params["weight"] = weight_of_target
    if method is Way.combine and not source:
        raise ParameterError("--method combine needs the source's data: give --source.")
    if source and method not in (Way.trada, Way.combine):
        raise ParameterError(f"--method {method.value} does not use the source's data.")
    return params


def _not_again(settings: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of --set; refuse those that an option sets, or must set."""
    options = {"weight": "--target-weight", "target": "the files of the target's data"}
    options |= {name: f"--{name}" for name in ("method", "base", "source", "valid")}
    for name in settings:
        if name in options:
            raise ParameterError(f"--set does not take {name!r}: give {options[name]} instead.")
        if name in params:
            raise ParameterError(
                f"{name!r} is given twice, by its own option and by --set: leave one out."
            )
    return settings


def _beta(text: str) -> float | str:
    if text == "cv":
        return text
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"Write --beta as a number of at least 0, or cv. Got {text!r}."
        ) from None
