"""Checkpoints of boosting: the trees so far."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.boosting.loop import Progress
from rankgrove.model import sense
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.objectives.position_bias import PositionBias
from rankgrove.training.checkpoint import Checkpoint
from rankgrove.training.watch import History

_STATES = "position_bias"


class TreeCheckpoint(Checkpoint):
    """A callback that writes the trees every few rounds, and reads them back.

    Parameters
    ----------
    path, every, run : as in a Checkpoint
    n_features : number of features of the data
    bias : a state that changes every round, which is written and continued too
    """

    def __init__(
        self,
        path: str | Path,
        every: int,
        run: Mapping[str, Any],
        n_features: int,
        bias: PositionBias | None = None,
    ) -> None:
        super().__init__(path, every, run)
        self.n_features = n_features
        self.bias = bias if bias is not None and bias.moves else None

    def __call__(self, progress: Progress) -> None:
        if progress.round % self.every == 0:
            self.write(progress)

    def write(self, progress: Progress) -> None:
        """Write the trees, their weights and the history."""
        trees = Ensemble.from_trees(progress.trees, self.n_features)
        content = {"history": progress.watch.history, "steps": progress.steps}
        arrays = trees.to_arrays()
        if self.bias is not None:
            states = self.bias.states[: progress.round]  # an interrupted round has one more
            arrays = {**arrays, _STATES: np.array(states).reshape(-1)}
        self.write_state(content, arrays)

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
            if self.bias is not None:
                states = sense.numbers(sense.typed(arrays[_STATES], np.float64, _STATES), _STATES)
                self.bias.resume(states.reshape(len(steps), self.bias.start.size))
        trees = [ensemble.tree(t) for t in range(ensemble.n_trees)]
        return trees, steps, content["history"]
