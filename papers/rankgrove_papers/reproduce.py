"""The work of ``rankgrove reproduce``: list and run experiments, print and write their tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import typer

import rankgrove as rg
from rankgrove.files import write_atomically
from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers.catalogue import EXPERIMENTS, chosen
from rankgrove_papers.published import runs
from rankgrove_papers.published.layouts import LAYOUTS
from rankgrove_papers.sources import Collection, Sources
from rankgrove_papers.study import Curves, Experiment, Study

FORMS = {"letor": "a collection in LETOR form", "trec": "TREC runs and qrels"}


def print_list() -> None:
    """Print the names of all experiments, and what each shows."""
    width = max(len(experiment.name) for experiment in EXPERIMENTS)
    for experiment in EXPERIMENTS:
        form = f" [--data: {FORMS[experiment.takes]}]" if experiment.takes else ""
        typer.echo(f"{experiment.name:<{width}}  {experiment.shows}{form}")
    for name, layout in LAYOUTS.items():
        shows = f"{layout.about}: all conventions at once"
        typer.echo(f"{name:<{width}}  {shows} [--data: the publisher's files]")


def run(
    which: str,
    data: Path | None,
    scale: str,
    out: Path | None,
    cluster: str | None,
    threads: int | None,
    ranker: str | None = None,
    trees: int | None = None,
    low_memory: bool = False,
) -> None:
    """Run experiments; the parameters are the options of the command.

    Parameters
    ----------
    which : the name of an experiment or of a paper, or "all"
    data : folder of the user's data; None: the published collections
    scale : "small" or "full"
    out : folder for results, tables and plots
    cluster : "local", or the address of a Dask scheduler
    threads : threads of every fit
    ranker, trees, low_memory : for the data sets of `LAYOUTS` only, see ``runs.experiment``
    """
    is_published = which in LAYOUTS
    options = {"--ranker": ranker, "--trees": trees, "--low-memory": low_memory or None}
    given = [name for name, value in options.items() if value is not None]
    if given and not is_published:
        raise rg.ParameterError(
            f"{given[0]} is for {', '.join(LAYOUTS)}; the papers' experiments have settings of "
            "their own. Leave it out."
        )
    if is_published and data is None:
        about = LAYOUTS[which]
        raise rg.ParameterError(
            f"{which} needs --data FOLDER, the folder of {about.about}: {about.files}."
        )
    experiments = [] if is_published else chosen(which)
    if out is not None:
        if out.exists() and not out.is_dir():
            raise rg.ParameterError(f"--out must be a folder. {out} is a file.")
        out.mkdir(parents=True, exist_ok=True)
    if is_published and data is not None:
        one = runs.experiment(
            which,
            data,
            ranker=ranker or "lambdamart",
            trees=trees,
            low_memory=low_memory,
            out=out,
        )
        _run_one(one, Sources(data), scale, out, cluster, threads)
        return
    sources = Sources() if data is None else Sources.of(data)
    for experiment in _runnable(experiments, sources):
        _run_one(experiment, sources, scale, out, cluster, threads)


def _run_one(
    experiment: Experiment,
    sources: Sources,
    scale: str,
    out: Path | None,
    cluster: str | None,
    threads: int | None,
) -> None:
    """Run an experiment, print its tables, and write them with its figures."""
    about = {"experiment": experiment.name, "scale": scale}
    data_name, ending = None, scale
    if sources.user_data is not None:
        about["data"] = sources.user_data.about()
        data_name, ending = sources.user_data.name, f"{sources.user_data.name}-{scale}"
    name = f"{experiment.name}-{ending}"
    store = ResultStore(None if out is None else out / f"{name}.jsonl", about)
    began = time.monotonic()
    typer.echo(f"{experiment.name}: {experiment.shows}", err=True)
    findings = experiment.run(Study(scale, store, threads, _tell, sources, cluster))
    text = f"## {experiment.shows} ({name})\n\n{experiment.about(data_name)}\n\n{findings.text}"
    typer.echo(f"{text}\n")
    typer.echo(f"  {time.monotonic() - began:.0f} s", err=True)
    if out is not None:
        _write(out, name, ending, text, findings.figures)


def _tell(text: str) -> None:
    typer.echo(f"  {text}", err=True)


def _runnable(experiments: list[Experiment], sources: Sources) -> list[Experiment]:
    """Return the experiments that can run on the user's data; all if there is none."""
    if sources.user_data is None:
        return experiments
    form = "letor" if isinstance(sources.user_data, Collection) else "trec"
    runnable = [experiment for experiment in experiments if experiment.takes == form]
    if not runnable:
        names = ", ".join(experiment.name for experiment in EXPERIMENTS if experiment.takes == form)
        raise rg.ParameterError(
            f"{', '.join(experiment.name for experiment in experiments)}: cannot run on "
            f"{FORMS[form]}, given by --data. These can: {names}. Leave --data out for the others."
        )
    for experiment in experiments:
        if experiment not in runnable:
            left_out = f"left out, it does not run on {sources.user_data.name}"
            typer.echo(f"{experiment.name}: {left_out}", err=True)
    return runnable


def _write(out: Path, name: str, ending: str, text: str, figures: Mapping[str, Curves]) -> None:
    """Write the tables and plots of an experiment; all file names have the same ending."""
    from rankgrove.reporting.figure import save_figure

    parts = [text]
    for figure, plot in figures.items():
        picture = rg.plot.curves(
            plot.lines, plot.x_label, plot.y_label, plot.title, log_x=plot.log_x, log_y=plot.log_y
        )
        save_figure(picture, out / f"{figure}-{ending}.png")
        parts.append(f"![{plot.title}]({figure}-{ending}.png)")
    write_atomically(out / f"{name}.md", "\n\n".join(parts) + "\n")
