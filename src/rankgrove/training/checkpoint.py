"""Checkpoints: the state of a run, from which a killed run can continue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import DataError, ModelFileError
from rankgrove.model import sense
from rankgrove.model.store import DAMAGE, read_model, said, write_model
from rankgrove.training.watch import History

KIND = "checkpoint"


class Checkpoint:
    """A file that holds the state of one run.

    Parameters
    ----------
    path : the file
    every : rounds between two writes
    run : values that the run depends on, by name; a checkpoint with other values is refused
    """

    def __init__(self, path: str | Path, every: int, run: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.every = every
        self.run = dict(run)

    def write_state(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write the state; the file is replaced at once, so a killed run leaves the last state."""
        write_model(self.path, KIND, {"run": self.run, **content}, arrays)

    def read_state(self, history: History) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the state as it was written, or None if there is no checkpoint yet.

        The file must have the same data sets and measures, by name, as `history`.
        """
        if not self.path.exists():
            return None
        kind, content, arrays = read_model(self.path)
        if kind != KIND:
            raise DataError(
                f"{self.path} is a {kind} model, not a checkpoint: give 'checkpoint' another name."
            )
        with self.reading():
            run = sense.table(content["run"], "the data and parameters of the run")
        for name in sorted({*self.run, *run}):
            before, value = run.get(name), self.run.get(name)
            if before != value:
                raise DataError(
                    f"{self.path} belongs to another run: there {name} was {before!r}, here it "
                    f"is {value!r}. Train with the same data and parameters, remove the file, or "
                    "give this run another one."
                )
        with self.reading():
            sense.history(content["history"], "the history")
            if _names(content["history"]) != _names(history):
                raise ValueError("a history of other measures")
        return content, arrays

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn any error inside into the message that the file is damaged."""
        try:
            yield
        except DAMAGE as error:
            reason = f"{type(error).__name__}, {said(error)}"
            raise ModelFileError(
                f"{self.path} is damaged ({reason}). Remove it to train from the beginning."
            ) from None


def _names(history: History) -> dict[str, list[str]]:
    return {name: list(measures) for name, measures in history.items()}
