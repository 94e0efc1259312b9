"""Checkpoints: the state of a run and what it belongs to, so that a killed run can go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.model.store import read_model, write_model

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

    def read_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the state as it was written, or None: no checkpoint yet."""
        if not self.path.exists():
            return None
        kind, content, arrays = read_model(self.path)
        if kind != KIND:
            raise DataError(
                f"{self.path} is a {kind} model, not a checkpoint: give 'checkpoint' another name."
            )
        for name in sorted({*self.run, *content["run"]}):
            before, value = content["run"].get(name), self.run.get(name)
            if before != value:
                raise DataError(
                    f"{self.path} belongs to another run: there {name} was {before!r}, here it "
                    f"is {value!r}. Train with the same data and parameters, remove the file, or "
                    "give this run another one."
                )
        return content, arrays
