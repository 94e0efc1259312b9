"""Assembling a flat tree from the splits of a grown tree and the exact sums of its leaves."""

from __future__ import annotations

import numpy as np

from rankgrove.data.binning import N_BINS, Binner
from rankgrove.growth.constraints import Constraints, bounded
from rankgrove.growth.leaves import ExactSums
from rankgrove.growth.splitting import Split
from rankgrove.model.category_sets import CategorySets
from rankgrove.model.tree import Tree


def assemble(
    splits: list[tuple[int, Split]],
    binner: Binner,
    gradient: ExactSums,
    hessian: ExactSums | None,
    l2: float,
    constraints: Constraints,
) -> Tree:
    """Return the tree of `splits`, each with the leaf that it divides.

    The left child keeps the leaf number of its parent, the right one gets the next free number. The
    sums are those of the finished leaves; those of nodes are added up from them, from the last
    split to the first. `hessian` None: all 1.
    """
    n_nodes = len(splits)
    left, right = np.empty((2, n_nodes), np.int32)
    place: dict[int, tuple[np.ndarray, int]] = {}  # leaf -> where its number is written
    for node, (leaf, _) in enumerate(splits):
        if leaf in place:
            children, parent = place[leaf]
            children[parent] = node
        for child, children in ((leaf, left), (node + 1, right)):
            children[node] = ~child
            place[child] = (children, node)
    count, weight, mean = _statistics(splits, gradient, hessian, l2)
    feature = np.array([binner.columns[s.feature] for _, s in splits], np.int32)
    threshold = np.array([_threshold(binner, s) for _, s in splits], np.float32)
    missing_left = np.array([s.missing_left for _, s in splits], np.bool_)
    value = mean[n_nodes:].copy()
    if constraints.directions:
        signs = np.where(threshold == np.inf, 0, constraints.signs(feature))
        value = bounded(left, right, signs, mean)
    sets = [_categories(binner, split) for _, split in splits]
    set_of = np.full(n_nodes, -1, np.int32)
    with_set = [node for node, codes in enumerate(sets) if codes is not None]
    set_of[with_set] = np.arange(len(with_set))
    # The set is the side without missing values: where these go left, children change places.
    turned = (set_of >= 0) & missing_left
    return Tree(
        feature=feature,
        threshold=threshold,
        left=np.where(turned, right, left).astype(np.int32),
        right=np.where(turned, left, right).astype(np.int32),
        missing_left=missing_left & ~turned,
        gain=np.array([s.gain for _, s in splits], np.float64),
        value=value,
        count=count,
        weight=weight,
        mean=mean,
        set_of=set_of,
        sets=CategorySets.of([codes for codes in sets if codes is not None]),
    )


def _categories(binner: Binner, split: Split) -> np.ndarray | None:
    """Return the categories on the side without missing values; None: the split is of numbers."""
    categories = binner.categories_of(split.feature)
    if categories is None:
        return None
    table = split.table
    if categories.ordered:
        table = ((np.arange(N_BINS) <= split.bin) != split.missing_left).astype(np.uint8)
    return categories.left_codes(table)


def _threshold(binner: Binner, split: Split) -> float:
    if binner.categories_of(split.feature) is not None:
        return 0.0
    thresholds = binner.thresholds[split.feature]
    return float(thresholds[split.bin]) if split.bin < thresholds.size else np.inf


def _statistics(
    splits: list[tuple[int, Split]], gradient: ExactSums, hessian: ExactSums | None, l2: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return count, weight and mean of every node and then of every leaf."""
    n_nodes = len(splits)
    counts = list(gradient.counts)
    sums = list(gradient.units)
    weights = list(counts if hessian is None else hessian.units)
    rows = [(0, 0, 0)] * n_nodes + list(zip(counts, sums, weights, strict=True))
    for node in range(n_nodes - 1, -1, -1):
        leaf = splits[node][0]
        for numbers in (counts, sums, weights):
            numbers[leaf] += numbers[node + 1]
        rows[node] = (counts[leaf], sums[leaf], weights[leaf])
    count = np.array([c for c, _, _ in rows], np.int64)
    weight = np.array([float(w) if hessian is None else hessian.real(w) for _, _, w in rows])
    total = np.array([gradient.real(s) for _, s, _ in rows])
    denominator = weight + l2
    usable = denominator > 0
    mean = np.divide(total, denominator, out=np.zeros_like(total), where=usable)
    return count, weight, mean
