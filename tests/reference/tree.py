"""The naive versions of binning and tree growth: exact arithmetic, no cleverness, no speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np

MISSING = 255


def histogram(codes: np.ndarray, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sum of `values` of `rows` in each of 256 bins of each column."""
    out = np.zeros((codes.shape[1], 256), np.int64)
    for column in range(codes.shape[1]):
        np.add.at(out[column], codes[rows, column], values[rows])
    return out


def midpoints(column: np.ndarray) -> list[float]:
    """Float32 thresholds between all adjacent distinct values of a column of finite values."""
    values = np.unique(column[~np.isnan(column)])
    out = []
    for low, high in pairwise(values):
        middle = np.float32((float(low) + float(high)) / 2)
        out.append(float(low if middle >= high else middle))
    return out


@dataclass
class Node:
    """A node of the naive tree; a leaf where `split` is None."""

    rows: np.ndarray
    depth: int
    split: tuple[Fraction, int, int, bool, bool] | None = None  # gain, feature, cut, missing, any
    children: list[Node] = field(default_factory=list)
    leaf: int = -1


def score(g: Fraction, h: Fraction) -> Fraction:
    return g * g / h if h > 0 else Fraction(0)


def best_split(
    features: np.ndarray,
    thresholds: list[list[float]],
    g: list[Fraction],
    h: list[Fraction],
    rows: np.ndarray,
    *,
    split: str = "mse",
    min_leaf: int = 1,
    l2: Fraction = Fraction(0),
) -> tuple[Fraction, int, int, bool, bool] | None:
    """Try every (feature, threshold, side of missing) in order; the first of the best wins."""

    def value(chosen: np.ndarray) -> Fraction:
        total = sum((g[i] for i in chosen), Fraction(0))
        if split == "mse":
            return score(total, Fraction(len(chosen)))
        return score(total, sum((h[i] for i in chosen), Fraction(0)) + l2)

    best = None
    before = value(rows)
    for feature in range(features.shape[1]):
        x = features[rows, feature]
        missing = np.isnan(x)
        cuts = [*thresholds[feature], np.inf] if missing.any() else thresholds[feature]
        for cut, threshold in enumerate(cuts):
            for missing_left in (False, True) if missing.any() else (False,):
                goes = np.where(missing, missing_left, x <= threshold)
                if min(goes.sum(), (~goes).sum()) < min_leaf:
                    continue
                gain = value(rows[goes]) + value(rows[~goes]) - before
                if gain > 0 and (best is None or gain > best[0]):
                    best = (gain, feature, cut, missing_left, bool(missing.any()))
    return best


def greedy_tree(
    features: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    n_leaves: int,
    *,
    max_depth: int | None = None,
    min_leaf: int = 1,
    **rules: object,
) -> tuple[list[tuple[int, float, bool]], np.ndarray]:
    """Grow leaf-wise; return (feature, threshold, missing left) of the splits in the order they
    were made, and the leaf of every row.

    The left child keeps its parent's leaf number, the right one gets the next.
    """
    g = [Fraction(float(v)) for v in gradient]
    h = [Fraction(float(v)) for v in hessian]
    thresholds = [midpoints(features[:, j]) for j in range(features.shape[1])]

    def search(rows: np.ndarray, depth: int) -> Node:
        node = Node(rows, depth)
        if max_depth is None or depth < max_depth:
            node.split = best_split(
                features,
                thresholds,
                g,
                h,
                rows,
                min_leaf=min_leaf,
                **rules,  # type: ignore[arg-type]
            )
        return node

    leaves = [search(np.arange(len(features)), 0)]
    births = [0]
    made = []
    while len(leaves) < n_leaves:
        able = [i for i, leaf in enumerate(leaves) if leaf.split is not None]
        if not able:
            break
        number = min(able, key=lambda i: (-leaves[i].split[0], births[i]))  # type: ignore[index]
        node = leaves[number]
        assert node.split is not None
        _, feature, cut, missing_left, any_missing = node.split
        x = features[node.rows, feature]
        threshold = [*thresholds[feature], np.inf][cut]
        goes = np.where(np.isnan(x), missing_left, x <= threshold)
        if not any_missing:
            missing_left = bool(goes.sum() >= (~goes).sum())
        births[number] = 2 * len(made) + 1
        births.append(2 * len(made) + 2)
        made.append((feature, threshold, missing_left))
        leaves[number] = search(node.rows[goes], node.depth + 1)
        leaves.append(search(node.rows[~goes], node.depth + 1))
    leaf_of = np.empty(len(features), np.int64)
    for number, leaf in enumerate(leaves):
        leaf_of[leaf.rows] = number
    return made, leaf_of
