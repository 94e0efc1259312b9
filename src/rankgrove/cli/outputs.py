"""Outputs of commands: paths are checked before any work, and Ctrl-C loses no results."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rankgrove.errors import ParameterError
from rankgrove.files import real_path

if TYPE_CHECKING:
    import numpy as np


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Refuse an output file that is also read, or named by two options.

    `outputs` maps options to their files.
    """
    seen = {real_path(path): "a file that is read" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        if real_path(path) in seen:
            raise ParameterError(
                f"{option} {path} would overwrite {seen[real_path(path)]}: give it another name."
            )
        seen[real_path(path)] = f"the file of {option}"


def check_writable(
    command: str, outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]
) -> None:
    """Like :func:`check_outputs`, but also refuse files that cannot be written."""
    from rankgrove.reporting.figure import check_plot
    from rankgrove.validation import check_output_file

    check_outputs(outputs, inputs)
    for option, path in outputs.items():
        if path is not None:
            check_output_file(option, command, path)
            if option == "--plot":
                check_plot(path)


def score_lines(scores: np.ndarray) -> str:
    """Return the text of a score file: one score per line."""
    return "".join(f"{score!r}\n" for score in scores.tolist())


def say_written(*paths: Path | None) -> None:
    """Print the paths of the files that were written; None is skipped."""
    for path in paths:
        if path is not None:
            typer.echo(f"written to {path}")


@contextmanager
def says_what_is_kept(what: str, kept: Path | None, option: str) -> Iterator[None]:
    """Print, when Ctrl-C ends a long run, whether its results (`what`: "models") were kept."""
    try:
        yield
    except KeyboardInterrupt:
        message = f"nothing was kept; with {option} the next run would continue from here."
        if kept is not None and not _holds_anything(kept):
            message = f"nothing was kept: none of the {what} was finished."
        elif kept is not None:
            message = f"the {what} finished so far are in {kept}; the same command continues there."
        typer.echo(f"interrupted: {message}", err=True)
        raise typer.Exit(130) from None


def _holds_anything(kept: Path) -> bool:
    """Return whether a folder holds any file, or a file more than its first line."""
    if kept.is_dir():
        return any(kept.iterdir())
    return kept.exists() and len(kept.read_bytes().splitlines()) > 1


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C stop training; later ones do not interrupt writing the model."""
    pressed = []

    def interrupt(*_: object) -> None:
        pressed.append(True)
        if len(pressed) == 1:
            raise KeyboardInterrupt
        typer.echo("already stopping; the model is being written.", err=True)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
