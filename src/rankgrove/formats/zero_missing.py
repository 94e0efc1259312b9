"""What LightGBM takes for zero, as plain thresholds.

Values of at most `ZERO` in size are 0 to it: they stand all on the side of 0, and a threshold among
them is moved to their end. Where zero stands for missing, a split sends them to one side, whatever
the threshold says::

    x <= t: left        -ZERO <= x <= ZERO: the default side        else: right

Where the default side is not that of the threshold, a node becomes up to three in a row, and what
hangs below it hangs below each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import TreeParts
from rankgrove.model.tree import Tree

ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold
BELOW = math.nextafter(-ZERO, -math.inf)  # the highest number that is below every zero
LEAST_ROOM, MOST_TIMES = 1 << 17, 8  # leaves that all trees together may become


def room_for(trees: Iterable[Tree]) -> int:
    """Return how many leaves some trees may become."""
    return max(LEAST_ROOM, MOST_TIMES * sum(tree.n_leaves for tree in trees))


def without_zero_rule(tree: Tree, is_zero: np.ndarray, room: int) -> Tree:
    """Return a tree of plain splits; `is_zero` says which have the rule, their `missing_left` is
    the default side. `room` is how many leaves it may have at the most."""
    tree = _with_zeros_together(tree)
    if not is_zero.any():
        return tree
    chains = {
        int(node): _chain(float(tree.threshold[node]), bool(tree.missing_left[node]))
        for node in np.flatnonzero(is_zero)
    }
    if all(len(chain) == 1 for chain in chains.values()):
        threshold = np.array(tree.threshold, np.float64)
        for node, [(new, _)] in chains.items():
            threshold[node] = new
        return replace(tree, threshold=threshold)
    return _spread(tree, chains, room)


def _with_zeros_together(tree: Tree) -> Tree:
    """Return the tree with all values that are 0 to LightGBM on the side of 0."""
    threshold = np.array(tree.threshold, np.float64)
    threshold[(threshold >= 0.0) & (threshold < ZERO)] = ZERO
    threshold[(threshold < 0.0) & (threshold > BELOW)] = BELOW
    return replace(tree, threshold=threshold)


def _chain(threshold: float, default_left: bool) -> list[tuple[float, bool]]:
    """Return (threshold, does the left child lead left) of the nodes that a split becomes.

    The right child of each is the next one; of the last, it is the other side than its left.
    """
    if default_left:
        if threshold >= ZERO:
            return [(threshold, True)]
        if threshold >= BELOW:
            return [(ZERO, True)]
        return [(threshold, True), (BELOW, False), (ZERO, True)]
    if threshold <= BELOW:
        return [(threshold, True)]
    if threshold <= ZERO:
        return [(BELOW, True)]
    return [(BELOW, True), (ZERO, False), (threshold, True)]


def _spread(tree: Tree, chains: dict[int, list[tuple[float, bool]]], room: int) -> Tree:
    """Return the tree with chains in the place of nodes.

    How many rows reached each of a chain's ends is not known. They are divided evenly: what hangs
    below a split hangs equally often below its left and its right ends, so that the shares of rows
    on either side, which Shapley values hang on, stay what they were. Such numbers are not whole;
    they stand as weights, and counts are unknown.
    """
    made = TreeParts()
    rows = np.where(tree.count < 0, np.nan, tree.count.astype(np.float64)).tolist()
    todo: list[tuple[int, tuple[int, bool] | None, float]] = [(0, None, 1.0)]
    while todo:
        child, place, share = todo.pop()
        if child < 0:
            weight = share * rows[tree.n_nodes + ~child]
            made.leaf(place, float(tree.value[~child]), weight=weight)
            if len(made.value) > room:
                raise ModelFileError(
                    "it was trained with zero_as_missing, and as plain thresholds its trees would "
                    f"have more than {MOST_TIMES} times as many leaves. Train it with NaN for "
                    "missing values and without zero_as_missing."
                )
            continue
        default_left = bool(tree.missing_left[child])
        sides = (int(tree.right[child]), int(tree.left[child]))
        chain = chains.get(child, [(float(tree.threshold[child]), True)])
        part = share / ((len(chain) + 1) // 2)
        gain, weight = share * float(tree.gain[child]), share * rows[child]
        for at, (threshold, leads_left) in enumerate(chain):
            # a missing value leaves the chain at the first node that leads to its side
            to_left = leads_left == default_left
            known = {"weight": weight, "gain": gain if at == 0 else 0.0}
            node = made.split(place, int(tree.feature[child]), threshold, to_left, **known)
            leaving, place = sides[leads_left], (node, False)
            todo.append((leaving, (node, True), part))
            weight -= part * rows[leaving if leaving >= 0 else tree.n_nodes + ~leaving]
            if at == len(chain) - 1:
                todo.append((sides[not leads_left], place, part))
    return made.tree()
