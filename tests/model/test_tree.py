"""The flat tree: walking it by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rankgrove.model.tree import Tree


@pytest.fixture
def tree() -> Tree:
    """Return the tree of the module's picture."""
    return Tree(
        feature=np.array([3, 1], np.int32),
        threshold=np.array([0.5, 7], np.float32),
        left=np.array([1, ~0], np.int32),
        right=np.array([~2, ~1], np.int32),
        missing_left=np.array([True, False]),
        gain=np.array([2.0, 1.0]),
        value=np.array([10.0, 20.0, 30.0]),
        count=np.array([6, 4, 1, 3, 2]),
        weight=np.array([6.0, 4, 1, 3, 2]),
        mean=np.array([22.0, 17.5, 10, 20, 30]),
    )


def test_rows_walk_to_their_leaves(tree: Tree) -> None:
    nan, inf = np.nan, np.inf
    X = np.array(
        [[0, 7, 0, 0.5], [0, 7.5, 0, 0.5], [0, 0, 0, 0.6], [0, nan, 0, nan], [0, -inf, 0, -inf]],
        np.float32,
    )
    assert tree.apply(X).tolist() == [0, 1, 2, 1, 0]
    assert tree.predict(X).tolist() == [10, 20, 30, 20, 10]
    assert (tree.n_nodes, tree.n_leaves, tree.depth()) == (2, 3, 2)


def test_it_is_frozen(tree: Tree) -> None:
    with pytest.raises(ValueError, match="read-only"):
        tree.value[0] = 1.0
