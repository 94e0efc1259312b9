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


Bounds = tuple[Fraction | float, Fraction | float]
FREE: Bounds = (-np.inf, np.inf)


@dataclass
class Node:
    """A node of the naive tree; a leaf where `split` is None."""

    rows: np.ndarray
    depth: int
    split: tuple[Fraction, int, int, bool, bool] | None = None  # gain, feature, cut, missing, any
    children: list[Node] = field(default_factory=list)
    leaf: int = -1
    bounds: Bounds = FREE
    used: frozenset[int] = frozenset()


def sums_of(
    g: list[Fraction], h: list[Fraction], rows: np.ndarray, split: str, l2: Fraction
) -> tuple[Fraction, Fraction]:
    """G and n of a leaf's rows ("mse"), or G and H + l2 ("newton")."""
    total = sum((g[i] for i in rows), Fraction(0))
    if split == "mse":
        return total, Fraction(len(rows))
    return total, sum((h[i] for i in rows), Fraction(0)) + l2


def step_of(sums: tuple[Fraction, Fraction], bounds: Bounds = FREE) -> Fraction:
    """The value of a leaf: G/H, or 0 where H is 0, within bounds."""
    step = sums[0] / sums[1] if sums[1] > 0 else Fraction(0)
    return Fraction(min(max(step, bounds[0]), bounds[1]))


def value_of(
    g: list[Fraction],
    h: list[Fraction],
    rows: np.ndarray,
    split: str,
    l2: Fraction,
    bounds: Bounds = FREE,
) -> Fraction:
    """v (2 G - H v) at a leaf's value v: without bounds G²/n ("mse") or G²/(H + l2) ("newton")."""
    sums = sums_of(g, h, rows, split, l2)
    v = step_of(sums, bounds)
    return v * (2 * sums[0] - sums[1] * v)


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
    signs: dict[int, int] | None = None,
    bounds: Bounds = FREE,
    allowed: set[int] | None = None,
) -> tuple[Fraction, int, int, bool, bool] | None:
    """Try every (feature, threshold, side of missing) in order; the first of the best wins.

    The values of leaves are clipped to `bounds`. A feature with a sign must have its two values in
    order, except where all values are on one side.
    """

    def value(chosen: np.ndarray) -> Fraction:
        return value_of(g, h, chosen, split, l2, bounds)

    def step(chosen: np.ndarray) -> Fraction:
        return step_of(sums_of(g, h, chosen, split, l2), bounds)

    best = None
    before = value(rows)
    for feature in range(features.shape[1]):
        if allowed is not None and feature not in allowed:
            continue
        sign = (signs or {}).get(feature, 0)
        x = features[rows, feature]
        missing = np.isnan(x)
        cuts = [*thresholds[feature], np.inf] if missing.any() else thresholds[feature]
        for cut, threshold in enumerate(cuts):
            for missing_left in (False, True) if missing.any() else (False,):
                goes = np.where(missing, missing_left, x <= threshold)
                if min(goes.sum(), (~goes).sum()) < min_leaf:
                    continue
                if threshold < np.inf and sign * (step(rows[~goes]) - step(rows[goes])) < 0:
                    continue
                gain = value(rows[goes]) + value(rows[~goes]) - before
                if gain > 0 and (best is None or gain > best[0]):
                    best = (gain, feature, cut, missing_left, bool(missing.any()))
    return best


def bounds_of_children(
    sums: list[tuple[Fraction, Fraction]], sign: int, bounds: Bounds
) -> list[Bounds]:
    """Those of the parent; with a sign, the middle of the values of the children."""
    if not sign:
        return [bounds, bounds]
    middle = (step_of(sums[0], bounds) + step_of(sums[1], bounds)) / 2
    return [(bounds[0], middle), (middle, bounds[1])][::sign]


def greedy_tree(
    features: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    n_leaves: int,
    *,
    max_depth: int | None = None,
    min_leaf: int = 1,
    split: str = "mse",
    l2: Fraction = Fraction(0),
    signs: dict[int, int] | None = None,
    groups: list[set[int]] | None = None,
) -> tuple[list[tuple[int, float, bool]], np.ndarray]:
    """Grow leaf-wise; return (feature, threshold, missing left) of the splits in the order they
    were made, and the leaf of every row.

    The left child keeps its parent's leaf number, the right one gets the next. The children of a
    feature with a sign have the middle of their values as a bound; all features of a branch are in
    one group, or there is only one.
    """
    g = [Fraction(float(v)) for v in gradient]
    h = [Fraction(float(v)) for v in hessian]
    thresholds = [midpoints(features[:, j]) for j in range(features.shape[1])]

    def search(rows: np.ndarray, depth: int, bounds: Bounds, used: frozenset[int]) -> Node:
        node = Node(rows, depth, bounds=bounds, used=used)
        allowed = None
        if used and groups is not None:
            allowed = set(used).union(*(group for group in groups if used <= group))
        if max_depth is None or depth < max_depth:
            node.split = best_split(
                features,
                thresholds,
                g,
                h,
                rows,
                split=split,
                min_leaf=min_leaf,
                l2=l2,
                signs=signs,
                bounds=bounds,
                allowed=allowed,
            )
        return node

    leaves = [search(np.arange(len(features)), 0, FREE, frozenset())]
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
        sides = [node.rows[goes], node.rows[~goes]]
        sums = [sums_of(g, h, rows, split, l2) for rows in sides]
        sign = (signs or {}).get(feature, 0) if threshold < np.inf else 0
        bounds = bounds_of_children(sums, sign, node.bounds)
        children = [
            search(rows, node.depth + 1, bound, node.used | {feature})
            for rows, bound in zip(sides, bounds, strict=True)
        ]
        leaves[number] = children[0]
        leaves.append(children[1])
    leaf_of = np.empty(len(features), np.int64)
    for number, leaf in enumerate(leaves):
        leaf_of[leaf.rows] = number
    return made, leaf_of


def symmetric_tree(
    features: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    n_levels: int,
    *,
    min_leaf: int = 1,
    split: str = "mse",
    l2: Fraction = Fraction(0),
    signs: dict[int, int] | None = None,
    groups: list[set[int]] | None = None,
) -> tuple[list[tuple[int, float, bool, Fraction]], np.ndarray]:
    """Grow level by level; return (feature, threshold, missing left, gain) of every leaf's split,
    in the order they were made, and the leaf of every row.

    Of all candidates, the one with the highest sum of gains is made in every leaf that it divides:
    whose gain is positive, with children of at least `min_leaf` rows and in the order of the sign.
    """
    g = [Fraction(float(v)) for v in gradient]
    h = [Fraction(float(v)) for v in hessian]
    leaf_of = np.zeros(len(features), np.int64)
    made: list[tuple[int, float, bool, Fraction]] = []
    bounds: list[Bounds] = [FREE]
    used: set[int] = set()
    for _ in range(n_levels):
        leaves = [np.flatnonzero(leaf_of == leaf) for leaf in range(len(made) + 1)]
        leaves = [rows if len(rows) >= 2 * min_leaf else rows[:0] for rows in leaves]
        before = [value_of(g, h, r, split, l2, b) for r, b in zip(leaves, bounds, strict=True)]
        allowed = set(range(features.shape[1]))
        if used and groups is not None:
            allowed = used.union(*(group for group in groups if used <= group))
        best_sum, best = Fraction(0), None
        for feature in sorted(allowed):
            x = features[:, feature]
            for threshold in [*midpoints(x), np.inf]:
                for missing_left in (False, True):
                    goes = np.where(np.isnan(x), missing_left, x <= threshold)
                    gains = []
                    sign = (signs or {}).get(feature, 0) if threshold < np.inf else 0
                    for rows, old, bound in zip(leaves, before, bounds, strict=True):
                        sides = rows[goes[rows]], rows[~goes[rows]]
                        sums = [sums_of(g, h, side, split, l2) for side in sides]
                        gain = Fraction(0)
                        disorder = sign * (step_of(sums[1], bound) - step_of(sums[0], bound)) < 0
                        if min(map(len, sides)) >= min_leaf and not disorder:
                            new = sum(value_of(g, h, side, split, l2, bound) for side in sides)
                            gain = max(new - old, gain)
                        gains.append(gain)
                    if sum(gains) > best_sum:
                        best_sum, best = sum(gains), (feature, threshold, missing_left, goes, gains)
        if best is None:
            break
        feature, threshold, missing_left, goes, gains = best
        used.add(feature)
        sign = (signs or {}).get(feature, 0) if threshold < np.inf else 0
        if not np.isnan(features[np.concatenate(leaves), feature]).any():
            divided = np.concatenate([r for r, gain in zip(leaves, gains, strict=True) if gain])
            missing_left = bool(2 * goes[divided].sum() >= len(divided))
        for leaf, (rows, gain) in enumerate(zip(leaves, gains, strict=True)):
            if gain:
                both = (rows[goes[rows]], rows[~goes[rows]])
                sums = [sums_of(g, h, side, split, l2) for side in both]
                bounds[leaf], last = bounds_of_children(sums, sign, bounds[leaf])
                bounds.append(last)
                made.append((feature, float(threshold), missing_left, gain))
                leaf_of[rows[~goes[rows]]] = len(made)
    return made, leaf_of
