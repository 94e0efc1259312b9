"""Documents on their way down a tree, all at once; shared by the engines that walk trees.

An inner node has its number, a leaf is ``~number``, as everywhere in rankgrove. What decides at a
node is the engine's business: a function of nodes and rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Decision = Callable[[np.ndarray, np.ndarray], np.ndarray]


def leaves_reached(
    n_rows: int, root: int, left: np.ndarray, right: np.ndarray, goes_left: Decision
) -> np.ndarray:
    """Return the number of the leaf that each row reaches.

    Parameters
    ----------
    n_rows : number of rows
    root : the root: a node, or ``~leaf``
    left, right : the children of every node
    goes_left : given nodes and rows (two arrays of equal length), says which go left
    """
    at = np.full(n_rows, root, np.int64)
    rows = np.arange(n_rows) if root >= 0 else np.empty(0, np.int64)
    while rows.size:
        nodes = at[rows]
        at[rows] = np.where(goes_left(nodes, rows), left[nodes], right[nodes])
        rows = rows[at[rows] >= 0]
    return np.invert(at)
