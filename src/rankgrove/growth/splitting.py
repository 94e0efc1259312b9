"""Splits: the rules for them, the choice of the best, and the features that a leaf may use."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rankgrove.growth._category_kernels import MASK
from rankgrove.growth.constraints import NO_CONSTRAINTS, Constraints
from rankgrove.random import derive_seed, mix64
from rankgrove.validation import check_choice, check_integer, check_real

CRITERIA = ("mse", "newton")
GROWTHS = ("leafwise", "symmetric")
NO_TABLE = np.empty(0, np.uint8)
COUNT_MASK = 0xFFFFFFFF  # the count in a packed sum


@dataclass(frozen=True)
class SplitRules:
    """Which splits are allowed, how their gain is computed, and which is made next.

    Attributes
    ----------
    split : "mse", the decrease of the squared error of the gradients (hessians are not used), or
        "newton", the decrease of the quadratic model G²/(H + l2)
    min_leaf : minimum number of rows of a leaf
    min_gain : the gain of a split must be higher than this
    max_depth : maximum number of splits between the root and a leaf; None: no limit
    l2 : added to the hessian of a leaf
    feature_fraction : share of the features that a leaf may use, redrawn for every leaf (of a
        symmetric tree: for every level)
    growth : "leafwise", the leaf whose split has the highest gain is divided next, or "symmetric",
        one split divides all leaves of a level
    categories : rules for sets of categories
    constraints : directions of features, and features that may meet
    """

    split: str = "mse"
    min_leaf: int = 1
    min_gain: float = 0.0
    max_depth: int | None = None
    l2: float = 0.0
    feature_fraction: float = 1.0
    growth: str = "leafwise"
    categories: CategoryRules = field(default_factory=lambda: CategoryRules())
    constraints: Constraints = NO_CONSTRAINTS

    def __post_init__(self) -> None:
        check_choice("split", "SplitRules", self.split, CRITERIA)
        check_integer("min_leaf", "SplitRules", self.min_leaf, low=1)
        check_real("min_gain", "SplitRules", self.min_gain, low=0.0)
        if self.max_depth is not None:
            check_integer("max_depth", "SplitRules", self.max_depth, low=1)
        check_real("l2", "SplitRules", self.l2, low=0.0)
        check_real("feature_fraction", "SplitRules", self.feature_fraction, above=0.0, high=1.0)
        check_choice("growth", "SplitRules", self.growth, GROWTHS)


@dataclass(frozen=True)
class CategoryRules:
    """Which sets of categories are allowed, and how they are found.

    Attributes
    ----------
    smoothing : gradient over hessian of a category is shrunk towards that of the leaf, as if the
        category had this many more rows of the leaf
    l2 : added to the hessians of both children, in rows of the leaf, when sets are compared
    penalty : times the gain that the best set of categories without any effect is expected to have,
        which is subtracted from gains
    min_rows : a category with fewer rows in a leaf goes where missing values go
    max_set : maximum number of categories that a split separates from all others. Without missing
        values the others may be the set of the node: it is the side of fewer rows
    """

    smoothing: float = 10.0
    l2: float = 0.0
    penalty: float = 1.0
    min_rows: int = 5
    max_set: int = 128

    def __post_init__(self) -> None:
        for name in ("smoothing", "l2", "penalty"):
            check_real(name, "CategoryRules", getattr(self, name), low=0.0)
        for name in ("min_rows", "max_set"):
            check_integer(name, "CategoryRules", getattr(self, name), low=1)

    def numbers(self, noise: float) -> np.ndarray:
        """Return the rules as kernels take them; `noise`: of gradients, in quantised units."""
        penalty = self.penalty * noise
        return np.array([self.smoothing, self.l2, penalty, self.min_rows, self.max_set])


@dataclass(frozen=True, slots=True)
class Split:
    """The best split of a leaf; `left_sum` (packed) and `left_weight` are quantised."""

    gain: float
    feature: int  # of the binned matrix
    bin: int
    missing_left: bool
    left_sum: int
    left_weight: int
    table: np.ndarray = field(default_factory=lambda: NO_TABLE)  # of a set: which bins go left

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
    feature, bin, missing_left, any_missing, left_sum, left_weight = fields[block, :MASK].tolist()
    if not any_missing:
        missing_left = 2 * (left_sum & COUNT_MASK) >= count
    table, words = NO_TABLE, fields[block, MASK:]
    if words.any():
        table = np.unpackbits(words.astype("<i8").view(np.uint8), bitorder="little")
    return Split(gain, feature, bin, bool(missing_left), left_sum, left_weight, table)


class FeatureDraw:
    """Draws the features that a leaf may use: those with the lowest hashes.

    A hash depends only on (seed, round, leaf, column). Where only some features are allowed, the
    same share of these is drawn.
    """

    def __init__(self, columns: np.ndarray, fraction: float, seed: int) -> None:
        self.columns = columns.astype(np.uint64)
        self.fraction = fraction
        self.n_drawn = self._share(columns.size)
        self.seed = seed
        self._all = np.ones(columns.size, np.bool_)

    def __call__(self, round: int, leaf: int, allowed: np.ndarray | None = None) -> np.ndarray:
        """Return a mask of the features; `allowed`, a mask: only of these."""
        if self.n_drawn == self.columns.size:
            return self._all if allowed is None else allowed
        stream = np.uint64(derive_seed(self.seed, "features", round, leaf))
        hashes = mix64(self.columns ^ stream)
        drawn = np.zeros(self.columns.size, np.bool_)
        if allowed is None:
            drawn[np.argpartition(hashes, self.n_drawn - 1)[: self.n_drawn]] = True
        else:
            some = np.flatnonzero(allowed)
            drawn[some[np.argsort(hashes[some])[: self._share(some.size)]]] = True
        return drawn

    def _share(self, n: int) -> int:
        return max(1, round(self.fraction * n)) if n else 0
