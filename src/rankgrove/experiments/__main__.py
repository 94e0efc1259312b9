"""``python -m rankgrove.experiments NAME``: run an experiment of a paper, or go on with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.errors import RankgroveError
from rankgrove.experiments import yue2007
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study
from rankgrove.files import write_atomically
from rankgrove.validation import check_choice

EXPERIMENTS = {one.name: one for one in yue2007.EXPERIMENTS}


def main(
    name: Annotated[str, typer.Argument(help=f"Which one: {', '.join(EXPERIMENTS)}.")],
    scale: Annotated[str, typer.Option(help="small (minutes) or full (the paper's sizes).")] = (
        "small"
    ),
    results: Annotated[
        Path | None, typer.Option(help="Keep results in this file as they come, and go on from it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the tables to this file too.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of every fit.")] = None,
) -> None:
    """Run an experiment and print its tables."""
    experiment = EXPERIMENTS[check_choice("name", "experiments", name, EXPERIMENTS)]
    check_choice("--scale", "experiments", scale, ["small", "full"])
    store = ResultStore(results, {"experiment": name, "scale": scale})
    study = Study(scale, store, None, threads, lambda text: typer.echo(text, err=True))
    text = f"## {experiment.shows}\n\n{experiment.run(study)}\n"
    typer.echo(text)
    if out is not None:
        write_atomically(out, text)


if __name__ == "__main__":
    try:
        typer.run(main)
    except RankgroveError as error:
        sys.exit(f"error: {error}")
