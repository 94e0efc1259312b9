"""Constraints of trees: the direction of a feature's effect, and the features that may meet.

A tree is monotone in a feature if, wherever it tests the feature, no leaf on the side of the higher
values is below a leaf on the other side. A split on the feature is allowed only if the values of
its two children are in order, and the middle of these two is then a bound of all that grows below::

    increasing in x3          x3 <= 0.5
                             /         \\
                      1.0, high 2.0    3.0, low 2.0

Values under bounds are clipped, also where gains are computed. The middle is the "basic" method of
LightGBM, and what XGBoost does.

The search knows quantised sums, and for least squares no hessians; the values of leaves come from
exact sums of both. So the bounds are drawn a second time, from the values of the finished tree
(:func:`bounded`): these make the order exact.

Only values are ordered: missing values go to the side that gains more, and a split that separates
them from all values is not restricted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

NO_SIGNS = np.empty(0, np.int8)
NO_BOUNDS = np.empty((0, 2), np.float64)


@dataclass(frozen=True)
class Constraints:
    """What trees must keep to; features are columns of the matrix.

    Attributes
    ----------
    directions : column -> 1 (values may only rise with the feature) or -1 (only fall)
    groups : sets of columns; all features of a branch must be in one of them, and a feature that is
        in none is alone in its branches. None: all features may meet
    """

    directions: Mapping[int, int] = field(default_factory=dict)
    groups: tuple[frozenset[int], ...] | None = None

    def signs(self, columns: np.ndarray) -> np.ndarray:
        """Return the direction of every column, 0 for none; an empty array if none has one."""
        if not self.directions:
            return NO_SIGNS
        return np.array([self.directions.get(c, 0) for c in columns.tolist()], np.int8)


NO_CONSTRAINTS = Constraints()


class Meeting:
    """Knows which features may meet in a branch, for the columns of a binned matrix."""

    def __init__(self, groups: tuple[frozenset[int], ...], columns: np.ndarray) -> None:
        listed = columns.tolist()
        self._groups = np.array([[c in group for c in listed] for group in groups], np.bool_)
        self._groups = self._groups.reshape(len(groups), len(listed))

    def allowed(self, used: tuple[int, ...]) -> np.ndarray | None:
        """Return a mask of the features below splits on the features `used`; None: all."""
        if not used:
            return None
        above = list(used)
        together = self._groups[:, above].all(axis=1)
        allowed = np.asarray(self._groups[together].any(axis=0))
        allowed[above] = True
        return allowed


def bounded(left: np.ndarray, right: np.ndarray, signs: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the values of a tree's leaves such that every node with a direction is in order.

    A value is that of `mean`, clipped to the bounds of its leaf. Bounds are drawn from the root
    down: the middle of the clipped values of two children; where they are out of order, the value
    of their parent. So they hold exactly, whatever the numbers in `mean`.

    In: children of the nodes as in :class:`~rankgrove.model.tree.Tree`; the sign of every node, 0
    for none; the mean of every node and then of every leaf.
    """
    from rankgrove.growth._bound_kernels import bound_leaves

    values = np.empty(mean.size - left.size)
    bound_leaves(left, right, signs, mean, values)
    return values
