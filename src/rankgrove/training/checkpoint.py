"""Checkpoints: the state of a run and what it belongs to, so that a killed run can continue."""

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
    run : what the run depends on, plain values by name; a checkpoint of another run is refused
    """

    def __init__(self, path: str | Path, every: int, run: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.every = every
        self.run = dict(run)

    def write_state(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write the state; the file is replaced whole, so a kill leaves the one before it."""
        write_model(self.path, KIND, {"run": self.run, **content}, arrays)

    def read_state(self, history: History) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the state as it was written, or None: no checkpoint yet.

        `history` has the data sets and measures that are watched, by name: the file must have the
        same ones.
        """
        if not self.path.exists():
            return None
        kind, content, arrays = read_model(self.path)
        if kind != KIND:
            raise DataError(
                f"{self.path} is a {kind} model, not a checkpoint: give 'checkpoint' another name."
            )
        with self.reading():
            run = sense.table(content["run"], "what the run depends on")
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
        """Say of anything that goes wrong inside that the file is damaged."""
        try:
            yield
        except DAMAGE as error:
            what = f"{type(error).__name__}, {said(error)}"
            raise ModelFileError(
                f"{self.path} is damaged ({what}). Remove it: training begins anew."
            ) from None


def _names(history: History) -> dict[str, list[str]]:
    return {name: list(measures) for name, measures in history.items()}
