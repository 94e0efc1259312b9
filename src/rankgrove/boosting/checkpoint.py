"""Checkpoints: the trees so far and what they belong to, so that a killed run can go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankgrove.boosting.loop import Progress
from rankgrove.boosting.watch import History
from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.store import read_model, write_model
from rankgrove.model.tree import Tree

KIND = "checkpoint"


class Checkpoint:
    """A callback that writes the state every so many rounds, and reads it back.

    Parameters
    ----------
    path : the file
    every : rounds between two writes
    run : what the run depends on, plain values by name; a checkpoint of another run is refused
    n_features : of the data
    """

    def __init__(
        self, path: str | Path, every: int, run: Mapping[str, Any], n_features: int
    ) -> None:
        self.path = Path(path)
        self.every = every
        self.run = dict(run)
        self.n_features = n_features

    def __call__(self, progress: Progress) -> None:
        if progress.round % self.every == 0:
            self.write(progress)

    def write(self, progress: Progress) -> None:
        """Write the state; the file is replaced whole, so a kill leaves the one before it."""
        content = {
            "run": self.run,
            "history": progress.watch.history,
            "steps": progress.steps,
        }
        trees = Ensemble.from_trees(progress.trees, self.n_features)
        write_model(self.path, KIND, content, trees.to_arrays())

    def read(self) -> tuple[list[Tree], list[float], History] | None:
        """Return the trees, their weights and the history so far, or None: no checkpoint yet."""
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
        ensemble = Ensemble.from_arrays(arrays)
        trees = [ensemble.tree(t) for t in range(ensemble.n_trees)]
        return trees, content["steps"], content["history"]
