"""``rankgrove reproduce``: the papers' tables and figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankgrove.cli.options import Threads
from rankgrove.errors import ParameterError

if TYPE_CHECKING:
    from rankgrove.experiments.sources import Sources
    from rankgrove.experiments.study import Curves, Experiment


FORMS = {"letor": "a collection in LETOR form", "trec": "TREC runs and qrels"}


def reproduce(
    which: Annotated[
        str | None,
        typer.Argument(
            help="An experiment or a paper; leave it out for a list.", show_default=False
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of your own data in place of MQ2008, OHSUMED, generated web data and the "
            "TREC runs: a collection in LETOR form, TREC runs and qrels, or a folder that holds "
            "such by name.",
            show_default="$RANKGROVE_DATA, else ../shared/data",
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small (minutes at the most) or full (the paper's sizes).")
    ] = "small",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results, tables and plots; an interrupted run goes on."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Work side by side: local, or the address of a Dask scheduler (whose workers "
            "must see the data under the same path).",
            metavar="tcp://HOST:PORT",
        ),
    ] = None,
    threads: Threads = None,
) -> None:
    """Run the papers' experiments; print their tables, beside the papers' figures where it has any.

    Examples:

    rankgrove reproduce

    rankgrove reproduce wu2010-table1 --scale small --out results

    rankgrove reproduce ganjisaffar2011 --data MQ2007 --scale full --out results --cluster local
    """
    from rankgrove.experiments.catalogue import chosen
    from rankgrove.experiments.sources import Sources
    from rankgrove.validation import check_choice

    if which is None:
        _list()
        return
    check_choice("scale", "reproduce", scale, ["small", "full"])
    wanted = chosen(which)
    if out is not None:
        if out.exists() and not out.is_dir():
            raise ParameterError(f"--out must be a folder. {out} is a file.")
        out.mkdir(parents=True, exist_ok=True)
    sources = Sources() if data is None else Sources.of(data)
    for one in _able(wanted, sources):
        _run(one, sources, scale, out, cluster, threads)


def _list() -> None:
    """Print what there is."""
    from rankgrove.experiments.catalogue import EXPERIMENTS

    width = max(len(one.name) for one in EXPERIMENTS)
    for one in EXPERIMENTS:
        form = f" [--data: {FORMS[one.takes]}]" if one.takes else ""
        typer.echo(f"{one.name:<{width}}  {one.shows}{form}")


def _run(
    one: Experiment,
    sources: Sources,
    scale: str,
    out: Path | None,
    cluster: str | None,
    threads: int | None,
) -> None:
    """Run an experiment, print its tables, and write them with its figures."""
    from rankgrove.cli.outputs import says_what_is_kept
    from rankgrove.experiments.study import Study
    from rankgrove.tuning.result_store import ResultStore

    about = {"experiment": one.name, "scale": scale}
    own, ending = None, scale
    if sources.own is not None:
        about["data"] = sources.own.about()
        own, ending = sources.own.name, f"{sources.own.name}-{scale}"
    name = f"{one.name}-{ending}"
    store = ResultStore(None if out is None else out / f"{name}.jsonl", about)
    began = time.monotonic()
    typer.echo(f"{one.name}: {one.shows}", err=True)
    with says_what_is_kept("results", out, "--out FOLDER"):
        found = one.run(Study(scale, store, threads, _tell, sources, cluster))
    text = f"## {one.shows} ({name})\n\n{one.about(own)}\n\n{found.text}"
    typer.echo(f"{text}\n")
    typer.echo(f"  {time.monotonic() - began:.0f} s", err=True)
    if out is not None:
        _write(out, name, ending, text, found.figures)


def _tell(text: str) -> None:
    typer.echo(f"  {text}", err=True)


def _able(wanted: list[Experiment], sources: Sources) -> list[Experiment]:
    """Return the experiments that can run on the user's own data; all, where there is none."""
    from rankgrove.experiments.catalogue import EXPERIMENTS
    from rankgrove.experiments.sources import Collection

    if sources.own is None:
        return wanted
    form = "letor" if isinstance(sources.own, Collection) else "trec"
    able = [one for one in wanted if one.takes == form]
    if not able:
        names = ", ".join(one.name for one in EXPERIMENTS if one.takes == form)
        raise ParameterError(
            f"{', '.join(one.name for one in wanted)}: not on {FORMS[form]}, which --data gives. "
            f"These run on it: {names}. Leave --data out for the others."
        )
    for one in wanted:
        if one not in able:
            typer.echo(f"{one.name}: left out, it does not run on {sources.own.name}", err=True)
    return able


def _write(out: Path, name: str, ending: str, text: str, figures: Mapping[str, Curves]) -> None:
    """Write an experiment's tables and plots; a plot's name has the same ending."""
    from rankgrove.files import write_atomically
    from rankgrove.reporting.figure import save_figure
    from rankgrove.reporting.plots import curves

    parts = [text]
    for figure, plot in figures.items():
        drawn = curves(
            plot.lines, plot.x_label, plot.y_label, plot.title, log_x=plot.log_x, log_y=plot.log_y
        )
        save_figure(drawn, out / f"{figure}-{ending}.png")
        parts.append(f"![{plot.title}]({figure}-{ending}.png)")
    write_atomically(out / f"{name}.md", "\n\n".join(parts) + "\n")
