# mypy: ignore-errors
"""Walking down trees: the simplest way to score, and the reference for all others."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit

BLOCK = 64  # rows that go down one tree before the next tree is fetched


@njit(cache=True, nogil=True, inline="always")
def in_set(x, set_words, first, last):
    """Return whether the category of a value that is not NaN is in the set of some words."""
    if x < 0 or x >= 32 * (last - first):
        return False
    code = np.int64(x)
    return (set_words[first + (code >> 5)] >> np.uint32(code & 31)) & np.uint32(1) != 0


@njit(cache=True, nogil=True)
def walk_rows(
    features, rows, begin, end,
    node_ptr, leaf_ptr, feature, threshold, left, right, missing_left, value,
    set_of, set_ptr, set_words, scores,
):  # fmt: skip
    """Add the values of all trees, in their order, to the scores of rows[begin:end].

    If `rows` is empty, the rows are begin, ..., end - 1. `scores` has the shape (columns, rows);
    tree t adds to column t modulo the number of columns.
    """
    n_columns = scores.shape[0]
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        for t in range(node_ptr.size - 1):
            nodes = node_ptr[t]
            leaves = leaf_ptr[t]
            is_leaf = node_ptr[t + 1] == nodes
            column = t % n_columns
            for i in range(first, last):
                row = rows[i] if rows.size else i
                node = -1 if is_leaf else 0
                while node >= 0:
                    at = nodes + node
                    x = threshold.dtype.type(features[row, feature[at]])
                    if np.isnan(x):
                        node = left[at] if missing_left[at] else right[at]
                    elif set_of[at] >= 0:
                        first_word, last_word = set_ptr[set_of[at]], set_ptr[set_of[at] + 1]
                        inside = in_set(x, set_words, first_word, last_word)
                        node = left[at] if inside else right[at]
                    else:
                        node = left[at] if x <= threshold[at] else right[at]
                scores[column, i] += value[leaves + ~node]
