"""``rankgrove reproduce``: the papers' tables and figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.cli.options import Threads
from rankgrove.errors import ParameterError


def reproduce(
    which: Annotated[
        str | None,
        typer.Argument(help="An experiment or a paper; nothing lists them.", show_default=False),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small (minutes at the most) or full (the paper's sizes).")
    ] = "small",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results, tables and plots; an interrupted run goes on."),
    ] = None,
    threads: Threads = None,
) -> None:
    """Run the papers' experiments and print their tables beside the papers' figures.

    Examples:

    rankgrove reproduce

    rankgrove reproduce wu2010-table1 --scale small --out results
    """
    from rankgrove.experiments.catalogue import EXPERIMENTS, chosen
    from rankgrove.experiments.store import ResultStore
    from rankgrove.experiments.study import Study
    from rankgrove.files import write_atomically
    from rankgrove.reporting.figure import save_figure
    from rankgrove.reporting.plots import curves
    from rankgrove.validation import check_choice

    if which is None:
        width = max(len(one.name) for one in EXPERIMENTS)
        for one in EXPERIMENTS:
            typer.echo(f"{one.name:<{width}}  {one.shows}")
        return
    check_choice("scale", "reproduce", scale, ["small", "full"])
    wanted = chosen(which)
    if out is not None:
        if out.exists() and not out.is_dir():
            raise ParameterError(f"--out must be a folder. {out} is a file.")
        out.mkdir(parents=True, exist_ok=True)
    for one in wanted:
        path = None if out is None else out / f"{one.name}-{scale}.jsonl"
        store = ResultStore(path, {"experiment": one.name, "scale": scale})
        began = time.monotonic()
        study = Study(scale, store, threads, lambda text: typer.echo(f"  {text}", err=True))
        typer.echo(f"{one.name}: {one.shows}", err=True)
        found = one.run(study)
        title = f"## {one.shows} ({one.name}, {scale})"
        typer.echo(f"{title}\n\n{found.text}\n")
        typer.echo(f"  {time.monotonic() - began:.0f} s", err=True)
        if out is not None:
            write_atomically(out / f"{one.name}-{scale}.md", f"{title}\n\n{found.text}\n")
            for name, plot in found.figures.items():
                figure = curves(
                    plot.lines,
                    plot.x_label,
                    plot.y_label,
                    plot.title,
                    log_x=plot.log_x,
                    log_y=plot.log_y,
                )
                save_figure(figure, out / f"{name}-{scale}.png")
