"""One regression tree as flat, frozen arrays.

Internal nodes are numbered 0 .. n_leaves-2, a parent before its children, the root first; a child
that is a leaf is written as ``~leaf``::

    node 0: x3 <= 0.5                   feature  3  1      left   1  ~0
            /        \\                  value    v0 v1 v2  right ~2  ~1
    node 1: x1 <= 7   leaf 2
        /      \\
    leaf 0    leaf 1

A value goes left if ``x <= threshold``; a missing value (NaN) goes left if ``missing_left`` is set.
A node may test a set of categories instead (`category_sets.py`): what is in the set goes left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from rankgrove.model.category_sets import NO_SETS, CategorySets


@dataclass(frozen=True, eq=False)
class Tree:
    """A regression tree.

    Attributes
    ----------
    feature : int32, the column that a node tests
    threshold : float32 (float64 in models of other libraries); infinity sends every value left, so
        that only missing values can go right
    left, right : int32, the children
    missing_left : bool, where NaN goes
    gain : float64, the gain of the split
    value : float64, one per leaf
    count, weight, mean : one per node and then one per leaf: the training rows that reached it, the
        sum of their hessians, and the sum of their gradients over that weight (plus L2), which is
        the mean response if hessians are 1 (or row weights) and there is no L2
    set_of : int32, the set of categories that a node tests; -1: it tests its threshold. The
        threshold of a node that tests a set means nothing, and is 0
    sets : the sets
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    gain: np.ndarray
    value: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    set_of: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    sets: CategorySets = NO_SETS

    def __post_init__(self) -> None:
        if self.set_of.size != self.feature.size:  # not given: all nodes have thresholds
            object.__setattr__(self, "set_of", np.full(self.feature.size, -1, np.int32))
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def constant(cls, value: float) -> Tree:
        """Return the tree with a single leaf."""
        none, zero = np.empty(0), np.zeros(1)
        whole = np.empty(0, np.int32)
        return cls(
            feature=whole.copy(),
            threshold=none.astype(np.float32),
            left=whole.copy(),
            right=whole.copy(),
            missing_left=none.astype(np.bool_),
            gain=none.copy(),
            value=np.array([float(value)]),
            count=zero.copy(),
            weight=zero.copy(),
            mean=zero.copy(),
        )

    @property
    def n_nodes(self) -> int:
        """Number of internal nodes."""
        return int(self.feature.size)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.value.size)

    def depth(self) -> int:
        """Return the number of splits on the longest path from the root to a leaf."""
        level = np.zeros(self.n_nodes + 1, np.int64)
        for node in range(self.n_nodes):
            for child in (self.left[node], self.right[node]):
                if child >= 0:
                    level[child] = level[node] + 1
        return int(level.max()) + 1 if self.n_nodes else 0

    def apply(self, features: np.ndarray) -> np.ndarray:
        """Return the leaf of every row of a dense array, by walking down this one tree."""
        node = np.zeros(len(features), np.int64) if self.n_nodes else np.full(len(features), -1)
        walking = np.flatnonzero(node >= 0)
        while walking.size:
            at = node[walking]
            x = features[walking, self.feature[at]]
            goes_left = x <= self.threshold[at]
            for number in np.unique(self.set_of[at]):
                if number >= 0:
                    here = self.set_of[at] == number
                    goes_left[here] = self.sets.holds(int(number), x[here])
            goes_left = np.where(np.isnan(x), self.missing_left[at], goes_left)
            node[walking] = np.where(goes_left, self.left[at], self.right[at])
            walking = walking[node[walking] >= 0]
        return ~node

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return the value of every row of a dense array."""
        values: np.ndarray = self.value[self.apply(features)]
        return values
