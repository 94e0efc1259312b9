"""The parameters that all boosted rankers have, and the values that they can take."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from rankgrove.rankers.tree_model import TrainedTrees
from rankgrove.rankers.watching import check_valid_given
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_output_file,
    check_real,
    refuse,
)


class BoostedParameters(TrainedTrees):
    """Base of the boosted rankers, before any training."""

    n_trees: int
    n_leaves: int
    learning_rate: float
    min_leaf: int | float
    query_fraction: float
    row_fraction: float = 1.0
    feature_fraction: float
    split: str
    early_stopping: int | None
    overfitting_tolerance: float = 0.0
    max_bins: int
    max_depth: int | None
    min_gain: float
    l2: float
    checkpoint: str | Path | None
    checkpoint_every: int
    random_state: int
    n_threads: int | None
    progress: bool

    _rounds_name: ClassVar[str] = "n_trees"  # the parameter that has the number of rounds

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        owner = type(self).__name__
        check_integer(self._rounds_name, owner, self._rounds, low=0 if self._goes_on else 1)
        check_integer("n_leaves", owner, self.n_leaves, low=2)
        check_real("learning_rate", owner, self.learning_rate, above=0.0)
        if isinstance(self.min_leaf, int | np.integer):
            check_integer("min_leaf", owner, self.min_leaf, low=1)
        elif not (isinstance(self.min_leaf, float) and 0.0 < self.min_leaf < 1.0):
            refuse(
                "min_leaf",
                owner,
                "a count of at least 1, or a share between 0 and 1",
                self.min_leaf,
            )
        check_real("query_fraction", owner, self.query_fraction, above=0.0, high=1.0)
        check_real("row_fraction", owner, self.row_fraction, above=0.0, high=1.0)
        check_real("feature_fraction", owner, self.feature_fraction, above=0.0, high=1.0)
        check_choice("split", owner, self.split, ["mse", "newton"])
        for name in ("early_stopping", "max_depth"):
            if getattr(self, name) is not None:
                check_integer(name, owner, getattr(self, name), low=1)
        check_real("overfitting_tolerance", owner, self.overfitting_tolerance, low=0.0, high=1.0)
        check_integer("max_bins", owner, self.max_bins, low=2, high=255)
        check_real("min_gain", owner, self.min_gain, low=0.0)
        check_real("l2", owner, self.l2, low=0.0)
        if self.checkpoint is not None:
            check_output_file("checkpoint", owner, self.checkpoint)
        check_integer("checkpoint_every", owner, self.checkpoint_every, low=1)
        check_integer("random_state", owner, self.random_state, low=0)

    def check_valid(self, given: bool) -> None:
        """Refuse training without validation data where a parameter asks for it."""
        check_valid_given(given, self._needs_valid, type(self).__name__)

    @property
    def _needs_valid(self) -> str | None:
        """The parameter that asks for validation data."""
        if self.early_stopping is not None:
            return "early_stopping"
        return "overfitting_tolerance" if self.overfitting_tolerance else None

    @property
    def _goes_on(self) -> bool:
        """Whether there is something to go on from, so that no tree at all can be the best."""
        return False

    @property
    def _rounds(self) -> int:
        """Number of rounds at the most."""
        rounds: int = getattr(self, self._rounds_name)
        return rounds

    def _min_leaf(self, n_rows: int) -> int:
        if isinstance(self.min_leaf, float):
            return max(1, round(self.min_leaf * n_rows))
        return int(self.min_leaf)
