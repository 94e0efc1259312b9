# mypy: ignore-errors
"""Scores of rows with one feature set to every value of a grid, all values in one walk."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def walk_grid(
    features, begin, end, column, grid,
    node_ptr, leaf_ptr, feature, threshold, left, right, missing_left, value, scores,
):  # fmt: skip
    """Add all trees, in their order, to scores[i, g]: row i with grid[g] in the place of `column`.

    The grid ascends. A stretch of it goes down the tree together, and is cut where a node looks at
    the feature.
    """
    n_grid = grid.size
    node_of = np.empty(n_grid + 1, np.int64)  # stretches that wait: where, from and up to what
    first_of = np.empty(n_grid + 1, np.int64)
    last_of = np.empty(n_grid + 1, np.int64)
    for i in range(begin, end):
        for t in range(node_ptr.size - 1):
            nodes, leaves = node_ptr[t], leaf_ptr[t]
            node_of[0] = -1 if node_ptr[t + 1] == nodes else 0
            first_of[0], last_of[0] = 0, n_grid
            waiting = 1
            while waiting:
                waiting -= 1
                node, first, last = node_of[waiting], first_of[waiting], last_of[waiting]
                while node >= 0:
                    at = nodes + node
                    if feature[at] == column:
                        cut = first
                        while cut < last and grid[cut] <= threshold[at]:
                            cut += 1
                        if first < cut < last:
                            node_of[waiting] = right[at]
                            first_of[waiting], last_of[waiting] = cut, last
                            waiting += 1
                            last = cut
                        node = left[at] if cut > first else right[at]
                    else:
                        x = features[i, feature[at]]
                        if np.isnan(x):
                            node = left[at] if missing_left[at] else right[at]
                        else:
                            node = left[at] if x <= threshold[at] else right[at]
                for g in range(first, last):
                    scores[i, g] += value[leaves + ~node]
