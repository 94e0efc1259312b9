"""How far to go along a tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from rankgrove.model.tree import Tree
from rankgrove.training.watch import Watch


class Step(Protocol):
    """Gives a tree the values that are added to the scores, and says with what weight."""

    def __call__(
        self, tree: Tree, leaf_of: np.ndarray, scores: np.ndarray, watch: Watch
    ) -> tuple[Tree, float]:
        """Return the tree with its values weighted, and the weight."""


class ConstantStep:
    """Every leaf's own (Newton) value, times the learning rate."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def __call__(
        self, tree: Tree, leaf_of: np.ndarray, scores: np.ndarray, watch: Watch
    ) -> tuple[Tree, float]:
        """Return the tree with its values times the learning rate."""
        return replace(tree, value=self.learning_rate * tree.value), self.learning_rate
