"""Checkpoints of boosting: the trees so far."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankgrove.boosting.loop import Progress
from rankgrove.model import sense
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.training.checkpoint import Checkpoint
from rankgrove.training.watch import History


class TreeCheckpoint(Checkpoint):
    """A callback that writes the trees every few rounds, and reads them back.

    Parameters
    ----------
    path, every, run : as in a Checkpoint
    n_features : number of features of the data
    """

    def __init__(
        self, path: str | Path, every: int, run: Mapping[str, Any], n_features: int
    ) -> None:
        super().__init__(path, every, run)
        self.n_features = n_features

    def __call__(self, progress: Progress) -> None:
        if progress.round % self.every == 0:
            self.write(progress)

    def write(self, progress: Progress) -> None:
        """Write the trees, their weights and the history."""
        trees = Ensemble.from_trees(progress.trees, self.n_features)
        content = {"history": progress.watch.history, "steps": progress.steps}
        self.write_state(content, trees.to_arrays())

    def read(self, history: History) -> tuple[list[Tree], list[float], History] | None:
        """Return the trees, their weights and the history, or None if there is no checkpoint."""
        state = self.read_state(history)
        if state is None:
            return None
        content, arrays = state
        with self.reading():
            ensemble = Ensemble.from_arrays(arrays)
            if ensemble.n_features != self.n_features:
                raise ValueError(f"trees of {ensemble.n_features} features")
            steps = sense.numbers(content["steps"], "the steps").tolist()
            if len(steps) != ensemble.n_trees:
                raise ValueError(f"{len(steps)} steps for {ensemble.n_trees} trees")
        trees = [ensemble.tree(t) for t in range(ensemble.n_trees)]
        return trees, steps, content["history"]
