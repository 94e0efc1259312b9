"""``rankgrove reproduce``: the papers' tables and figures.

The experiments are in the package ``rankgrove_papers``, which is not part of rankgrove.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from rankgrove._version import __version__
from rankgrove.cli.options import Threads
from rankgrove.errors import RankgroveError

PACKAGE = "rankgrove_papers"


def reproduce(
    which: Annotated[
        str | None,
        typer.Argument(
            help="An experiment or a paper, or mslr, yahoo or istella; leave it out for a list.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of your own data, instead of MQ2008, OHSUMED, generated web data and the "
            "TREC runs: a collection in LETOR form, TREC runs and qrels, or a folder with "
            "several of these, each in a subfolder. For mslr, yahoo and istella: the folder of the "
            "publisher's files.",
            show_default="$RANKGROVE_DATA, else ../shared/data",
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small (a few minutes at most) or full (the paper's sizes).")
    ] = "small",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results, tables and plots; a later run continues there."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Run tasks in parallel: local, or the address of a Dask scheduler (whose workers "
            "must see the data under the same path).",
            metavar="tcp://HOST:PORT",
        ),
    ] = None,
    ranker: Annotated[
        str | None,
        typer.Option(
            help="mslr, yahoo and istella: lambdamart, mart or mcrank.", show_default="lambdamart"
        ),
    ] = None,
    trees: Annotated[
        int | None,
        typer.Option(
            help="mslr, yahoo and istella: rounds of boosting at most.",
            show_default="100, with --scale full 500",
        ),
    ] = None,
    low_memory: Annotated[
        bool,
        typer.Option(
            "--low-memory",
            help="mslr, yahoo and istella: keep a byte per feature value on disk instead of four "
            "in memory; the figures are the same.",
        ),
    ] = False,
    threads: Threads = None,
) -> None:
    """Run the papers' experiments; print their tables, with the papers' values where they exist.

    Examples:

    rankgrove reproduce

    rankgrove reproduce wu2010-table1 --scale small --out results

    rankgrove reproduce mslr --data MSLR-WEB30K --scale full --low-memory --out results

    rankgrove reproduce ganjisaffar2011 --data MQ2007 --scale full --out results --cluster local
    """
    from rankgrove.cli.outputs import says_what_is_kept
    from rankgrove.validation import check_choice

    experiments = papers_module("reproduce")
    if which is None:
        experiments.print_list()
        return
    check_choice("scale", "reproduce", scale, ["small", "full"])
    with says_what_is_kept("results", out, "--out FOLDER"):
        experiments.run(which, data, scale, out, cluster, threads, ranker, trees, low_memory)


def papers_module(name: str) -> ModuleType:
    """Return a module of ``rankgrove_papers``.

    It is imported by name, and only here: rankgrove is complete without the package, and the
    package depends on rankgrove. The folder ``papers`` of a checkout takes precedence over an
    installed package, because the experiments use private modules of rankgrove and must have
    the same version.
    """
    papers = Path(__file__).resolve().parents[3] / "papers"
    if (papers / PACKAGE).is_dir() and str(papers) not in sys.path:
        sys.path.insert(0, str(papers))
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise RankgroveError(
            "The papers' experiments are in a separate package, rankgrove-papers, which is not "
            "installed: clone the project and run the command there, or install the package from "
            f"a checkout of version {__version__} with  pip install ./papers"
        ) from None


def run_on_worker(study: bytes, task: bytes, n_threads: int | None) -> Any:
    """Return the result of a task of an experiment, on a worker of a cluster.

    Study and task are pickled, because a worker in a checkout can load them only after it has
    found ``rankgrove_papers``.
    """
    return papers_module("study").work_on(pickle.loads(study), pickle.loads(task), n_threads)
