"""Splits: the rules for them, the choice of the best, and the features that a leaf may use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankgrove.random import derive_seed, mix64
from rankgrove.validation import check_choice, check_integer, check_real

CRITERIA = ("mse", "newton")
COUNT_MASK = 0xFFFFFFFF  # the count in a packed sum


@dataclass(frozen=True)
class SplitRules:
    """Which splits are allowed, and how their gain is computed.

    Attributes
    ----------
    split : "mse", the decrease of the squared error of the gradients (hessians are not used), or
        "newton", the decrease of the quadratic model G²/(H + l2)
    min_leaf : minimum number of rows of a leaf
    min_gain : the gain of a split must be higher than this
    max_depth : maximum number of splits between the root and a leaf; None: no limit
    l2 : added to the hessian of a leaf
    feature_fraction : share of the features that a leaf may use, redrawn for every leaf
    """

    split: str = "mse"
    min_leaf: int = 1
    min_gain: float = 0.0
    max_depth: int | None = None
    l2: float = 0.0
    feature_fraction: float = 1.0

    def __post_init__(self) -> None:
        check_choice("split", "SplitRules", self.split, CRITERIA)
        check_integer("min_leaf", "SplitRules", self.min_leaf, low=1)
        check_real("min_gain", "SplitRules", self.min_gain, low=0.0)
        if self.max_depth is not None:
            check_integer("max_depth", "SplitRules", self.max_depth, low=1)
        check_real("l2", "SplitRules", self.l2, low=0.0)
        check_real("feature_fraction", "SplitRules", self.feature_fraction, above=0.0, high=1.0)


@dataclass(frozen=True, slots=True)
class Split:
    """The best split of a leaf; `left_sum` (packed) and `left_weight` are quantised."""

    gain: float
    feature: int  # of the binned matrix
    bin: int
    missing_left: bool
    left_sum: int
    left_weight: int

    @property
    def left_count(self) -> int:
        """Number of rows of the left child."""
        return self.left_sum & COUNT_MASK


def best_split(
    gains: np.ndarray,
    fields: np.ndarray,
    columns: np.ndarray,
    count: int,
    step: float,
    min_gain: float,
) -> Split | None:
    """Return the best split of a leaf, given the best of every block of features.

    Of equal splits, that of the lowest column is taken; None if no gain is above `min_gain`.

    In: gains in units of `step`, one per block, and the `fields` of these splits; the `columns` of
    features; `count` rows of the leaf. If the leaf has no missing values, missing values go to the
    larger child.
    """
    block = int(np.argmax(gains))
    gain = float(gains[block]) * step
    if not gain > min_gain:
        return None
    equals = np.flatnonzero(gains == gains[block])
    if equals.size > 1:
        block = int(equals[np.argmin(columns[fields[equals, 0]])])
    feature, bin, missing_left, any_missing, left_sum, left_weight = fields[block].tolist()
    if not any_missing:
        missing_left = 2 * (left_sum & COUNT_MASK) >= count
    return Split(gain, feature, bin, bool(missing_left), left_sum, left_weight)


class FeatureDraw:
    """Draws the features that a leaf may use: those with the lowest hashes.

    A hash depends only on (seed, round, leaf, column).
    """

    def __init__(self, columns: np.ndarray, fraction: float, seed: int) -> None:
        self.columns = columns.astype(np.uint64)
        self.n_drawn = max(1, round(fraction * columns.size)) if columns.size else 0
        self.seed = seed
        self._all = np.ones(columns.size, np.bool_)

    def __call__(self, round: int, leaf: int) -> np.ndarray:
        """Return a mask of the features."""
        if self.n_drawn == self.columns.size:
            return self._all
        stream = np.uint64(derive_seed(self.seed, "features", round, leaf))
        hashes = mix64(self.columns ^ stream)
        drawn = np.zeros(self.columns.size, np.bool_)
        drawn[np.argpartition(hashes, self.n_drawn - 1)[: self.n_drawn]] = True
        return drawn
