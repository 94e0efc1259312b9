"""LightGBM's rule for zeros, expressed by plain thresholds.

LightGBM treats values with an absolute value of at most `ZERO` as 0: they all go to the side of 0,
and a threshold among them is moved to their end. If zero means missing, a split sends them to its
default side, whatever the threshold::

    x <= t: left        -ZERO <= x <= ZERO: the default side        else: right

If the default side is not that of the threshold, a node becomes a chain of up to three nodes, and
its subtrees are repeated below each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import TreeParts, codes_of_nodes
from rankgrove.model.tree import Tree

ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold
BELOW = math.nextafter(-ZERO, -math.inf)  # the highest number that is below every zero
LEAST_ROOM, MOST_TIMES = 1 << 17, 8  # limits of the number of leaves, and of its growth


def room_for(trees: Iterable[Tree]) -> int:
    """Return the number of leaves that some trees may have after the conversion."""
    return max(LEAST_ROOM, MOST_TIMES * sum(tree.n_leaves for tree in trees))


def without_zero_rule(tree: Tree, is_zero: np.ndarray, room: int) -> Tree:
    """Return a tree of plain splits.

    `is_zero` says which splits have the rule; their `missing_left` is the default side. `room` is
    the maximum number of leaves.
    """
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
    """Return the tree with all values that LightGBM treats as 0 on the side of 0."""
    threshold = np.array(tree.threshold, np.float64)
    threshold[(threshold >= 0.0) & (threshold < ZERO) & (tree.set_of < 0)] = ZERO
    threshold[(threshold < 0.0) & (threshold > BELOW)] = BELOW
    return replace(tree, threshold=threshold)


def _chain(threshold: float, default_left: bool) -> list[tuple[float, bool]]:
    """Return (threshold, whether the left child leads left) of the nodes of a split's chain.

    The right child of each is the next node; that of the last leads to the side opposite its left.
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
    """Return the tree with nodes replaced by chains.

    The number of rows that reached each end of a chain is not known. Rows are divided evenly: a
    subtree is repeated equally often below left and right ends, so the shares of rows on either
    side, on which Shapley values depend, stay the same. These numbers are not whole; they are kept
    as weights, and counts are unknown.
    """
    parts, categories = TreeParts(), codes_of_nodes(tree)
    rows = np.where(tree.count < 0, np.nan, tree.count.astype(np.float64)).tolist()
    todo: list[tuple[int, tuple[int, bool] | None, float]] = [(0, None, 1.0)]
    while todo:
        child, place, share = todo.pop()
        if child < 0:
            weight = share * rows[tree.n_nodes + ~child]
            parts.leaf(place, float(tree.value[~child]), weight=weight)
            if len(parts.value) > room:
                raise ModelFileError(
                    "it was trained with zero_as_missing, and with plain thresholds its trees "
                    f"would have more than {MOST_TIMES} times as many leaves. Train it with NaN "
                    "for missing values and without zero_as_missing."
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
            feature, codes = int(tree.feature[child]), categories[child]
            node = parts.split(place, feature, threshold, to_left, codes, **known)
            leaving, place = sides[leads_left], (node, False)
            todo.append((leaving, (node, True), part))
            weight -= part * rows[leaving if leaving >= 0 else tree.n_nodes + ~leaving]
            if at == len(chain) - 1:
                todo.append((sides[not leads_left], place, part))
    return parts.tree()
