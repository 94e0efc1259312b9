"""The command line: collects the commands, and reports a user's mistake in one line."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from rankgrove._version import __version__
from rankgrove.cli.adapt import adapt
from rankgrove.cli.auto import auto
from rankgrove.cli.calibrate import calibrate
from rankgrove.cli.clicks import clicks
from rankgrove.cli.combine import combine
from rankgrove.cli.compare import compare
from rankgrove.cli.compile import compile
from rankgrove.cli.convert import convert
from rankgrove.cli.cv import cv
from rankgrove.cli.demo import demo
from rankgrove.cli.doctor import doctor
from rankgrove.cli.early_exit import early_exit
from rankgrove.cli.evaluate import evaluate
from rankgrove.cli.explain import explain
from rankgrove.cli.generate import generate
from rankgrove.cli.grammar import Command, Group
from rankgrove.cli.info import info
from rankgrove.cli.parameters import params
from rankgrove.cli.parity import join, parity
from rankgrove.cli.prune import prune
from rankgrove.cli.rank import rank
from rankgrove.cli.report import report
from rankgrove.cli.reproduce import reproduce
from rankgrove.cli.serve import serve
from rankgrove.cli.survey import survey
from rankgrove.cli.train import train
from rankgrove.cli.tune import tune
from rankgrove.errors import RankgroveError
from rankgrove.files import why

app = typer.Typer(
    name="rankgrove",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(auto, train, cv, survey, rank, evaluate, compare, explain, combine, adapt, tune, prune),
    *(calibrate, early_exit),
    *(convert, parity, join, serve, report, info, params, compile, generate, reproduce, demo),
    doctor,
):
    app.command(cls=Command)(command)
app.add_typer(clicks)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rankgrove {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Learning to rank: train, evaluate, compare, explain, combine and serve rankers."""


def run() -> None:
    """Run the command line; a user's mistake ends it with a message and status 2."""
    try:
        app(prog_name="rankgrove")
    except RankgroveError as error:
        _end(f"error: {error}", 2)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe: not an error, but nothing can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _end(f"error: {error.filename or 'output'}: {why(error)}", 2)
    except MemoryError:
        _end("error: not enough memory for this data; try fewer queries or features.", 2)


def _end(message: str, status: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(status)
