"""``rankgrove survey``: all rankers on the user's data, in one table."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rankgrove.cli.options import Convention, Reading, Threads, reads_data
from rankgrove.errors import ParameterError
from rankgrove.reporting.defaults import MEASURES

REPORTED = 6  # number of best rankers on the page


class Scale(StrEnum):
    """How long rankers are trained."""

    small = "small"
    full = "full"


@reads_data("weight", has_model=False)
def survey(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Judged data to train on: LETOR files (plain or gzip), or one CSV/parquet file. "
            "Without --test it is divided into folds."
        ),
    ],
    valid: Annotated[
        Path | None,
        typer.Option(
            help="Validation data, which chooses the number of rounds and C.",
            show_default="a fifth of the training queries",
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Data to measure all rankers on.", show_default="cross-validation"),
    ] = None,
    folds: Annotated[int, typer.Option(min=3, help="Number of folds, without --test.")] = 5,
    ranker: Annotated[
        list[str] | None,
        typer.Option(
            help="Train only this ranker, named as in the table; repeat for several.",
            show_default="all",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help="Measure to compute; repeat for several. The first decides.",
            show_default=" ".join(MEASURES),
        ),
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="small: few rounds, minutes; full: the papers' rounds.")
    ] = Scale.small,
    convention: Convention = "papers",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split of the queries.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write the table to; JSON if it ends in .json."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help=f"HTML page to write, on the best {REPORTED} rankers.")
    ] = None,
    *,
    reading: Reading,
    threads: Threads = None,
) -> None:
    """Train all rankers on your data and compare them: measures, intervals, p-values, times.

    Examples:

    rankgrove survey train.txt --out table.md

    rankgrove survey train.txt --valid vali.txt --test test.txt --report survey.html
    """
    import rankgrove as rg
    from rankgrove.cli.inputs import check_exists, check_measures
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.files import write_atomically

    inputs = [path for path in [*data, valid, test] if path is not None]
    for path in inputs:
        check_exists(path)
    check_writable("survey", {"--out": out, "--report": report}, inputs)
    measures = measure or list(MEASURES)
    check_measures(measures, convention)
    if valid is not None and test is None:
        raise ParameterError("--valid needs --test too; or leave both out for folds.")
    train = reading.load(data)
    valid_data, test_data = (
        None if path is None else reading.load_like(train, [path], weight=None)
        for path in (valid, test)
    )

    def print_ranker(name: str, surveyed: Any) -> None:
        if surveyed is not None:
            value = surveyed.evaluation.mean[measures[0]]
            typer.echo(f"{name}: {measures[0]} {value:.4f}, {surveyed.seconds:.1f} s", err=True)

    result = rg.survey(
        train,
        valid_data,
        test_data,
        rankers=ranker or None,
        measures=measures,
        convention=convention,
        scale=scale.value,
        n_folds=folds,
        seed=seed,
        n_threads=threads,
        callback=print_ranker,
    )
    typer.echo(str(result))
    if out is not None:
        as_json = out.suffix.lower() == ".json"
        text = json.dumps(result.to_dict(), allow_nan=False) if as_json else str(result)
        write_atomically(out, text + "\n")
    if report is not None:
        best = {
            surveyed.name: surveyed.scores if surveyed.model is None else surveyed.model
            for surveyed in result.rankers[:REPORTED]
        }
        title = f"The best {len(best)} of {len(result.rankers)} rankers"
        rg.report(
            best,
            result.data,
            measures,
            report,
            convention=convention,
            title=title,
            n_threads=threads,
        )
    say_written(out, report)
