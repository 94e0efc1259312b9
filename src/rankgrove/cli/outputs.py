"""What commands write: checked before any work is done, and kept when Ctrl-C ends it."""

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
    """Refuse a file to write that is also read, or written under two options.

    `outputs` are files by the option that names them.
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
    """Do as :func:`check_outputs`, and refuse files that cannot be written."""
    from rankgrove.reporting.figure import check_plot
    from rankgrove.validation import check_output_file

    check_outputs(outputs, inputs)
    for option, path in outputs.items():
        if path is not None:
            check_output_file(option, command, path)
            if option == "--plot":
                check_plot(path)


def score_lines(scores: np.ndarray) -> str:
    """Return scores as a file has them, one a line."""
    return "".join(f"{score!r}\n" for score in scores.tolist())


def say_written(*paths: Path | None) -> None:
    """Say which files were written; none where there is none."""
    for path in paths:
        if path is not None:
            typer.echo(f"written to {path}")


@contextmanager
def says_what_is_kept(what: str, kept: Path | None, option: str) -> Iterator[None]:
    """Say, where Ctrl-C ends a long run, what becomes of `what` was done ("models")."""
    try:
        yield
    except KeyboardInterrupt:
        told = f"nothing was kept; with {option} the next run would go on from here."
        if kept is not None and not _holds_anything(kept):
            told = f"nothing was kept: none of the {what} was done."
        elif kept is not None:
            told = f"the {what} done so far are in {kept}; the same command goes on from there."
        typer.echo(f"interrupted: {told}", err=True)
        raise typer.Exit(130) from None


def _holds_anything(kept: Path) -> bool:
    """Whether there is more in a folder, or a file, than how it begins."""
    if kept.is_dir():
        return any(kept.iterdir())
    return kept.exists() and len(kept.read_bytes().splitlines()) > 1


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C end training, and no further one end the writing of the model."""
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
