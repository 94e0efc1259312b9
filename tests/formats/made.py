"""Ensembles and rows made up for tests of formats."""

from __future__ import annotations

import numpy as np

from rankgrove.formats.foreign import TreeParts
from rankgrove.model.ensemble import Ensemble

N_FEATURES = 4
CATEGORIES = {1: 5, 3: 300}  # categorical columns, if there are any, and their numbers of codes


def random_codes(rng: np.random.Generator, n: int):
    """A set of some of n codes: one, a few or many of them, seldom none."""
    size = rng.choice([0, 1, 2, 3, n // 8, n // 2], p=[0.02, 0.3, 0.2, 0.2, 0.2, 0.08])
    return rng.choice(n, int(size), replace=False)


def random_tree(rng: np.random.Generator, n_leaves: int, dtype: type, categories: str = ""):
    """A tree of some shape: any leaf may be the next to be split; thresholds often come again.

    `categories`: "right", if there are categorical columns, whose missing values go right, or
    "both", if they go anywhere.
    """
    parts = TreeParts()
    grid = np.array([-2.5, -1.0, -0.1, 0.0, 0.1, 0.3, 1.0, 7.5])
    open_places: list = [None]
    while len(open_places) < n_leaves:
        place = open_places.pop(int(rng.integers(len(open_places))))
        kind = rng.random()
        threshold = rng.choice(grid) if kind < 0.5 else rng.normal() * 10.0 ** rng.integers(-6, 7)
        if kind > 0.95:
            threshold = np.inf
        feature, codes, missing = int(rng.integers(N_FEATURES)), None, bool(rng.integers(2))
        if categories and feature in CATEGORIES:
            threshold, codes = 0.0, random_codes(rng, CATEGORIES[feature])
            missing = missing and categories == "both"
        node = parts.split(place, feature, float(dtype(threshold)), missing, codes)
        open_places += [(node, True), (node, False)]
    for place in open_places:
        parts.leaf(place, float(rng.normal()))
    return parts.tree(dtype)


def random_ensemble(
    seed: int,
    n_trees: int = 5,
    most_leaves: int = 12,
    *,
    dtype: type = np.float32,
    base: float = 0.0,
    n_columns: int = 1,
    single: bool = False,
    categories: str = "",
) -> Ensemble:
    rng = np.random.default_rng(seed)
    trees = [
        random_tree(rng, int(rng.integers(1, most_leaves + 1)), dtype, categories)
        for _ in range(n_trees * n_columns)
    ]
    made = Ensemble.from_trees(trees, N_FEATURES, base, n_columns, single)
    made.check()
    return made


def rows_for(ensemble: Ensemble, seed: int, n: int = 200, dtype: type = np.float32) -> np.ndarray:
    """Rows whose values stand on thresholds, just beside them, anywhere, or are missing.

    Values of categorical columns are codes, a few of them unknown or below 0.
    """
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(n, ensemble.n_features)) * 3).astype(dtype)
    at = ensemble.threshold[np.abs(ensemble.threshold) < 1e30].astype(dtype)
    if at.size:
        near = rng.choice(at, rows.shape)
        beside = np.nextafter(near, rng.choice([-np.inf, np.inf], rows.shape).astype(dtype))
        kind = rng.random(rows.shape)
        rows = np.where(kind < 0.3, near, np.where(kind < 0.6, beside, rows)).astype(dtype)
    for column in ensemble.categorical_features().tolist():
        n_codes = CATEGORIES[column]
        codes = rng.integers(0, n_codes, n)
        odd = rng.choice([-1, -7, n_codes, n_codes + 50, 10**6, 10**9], n)
        rows[:, column] = np.where(rng.random(n) < 0.9, codes, odd)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[rng.random(rows.shape) < 0.1] = 0.0
    return rows


def walked(ensemble: Ensemble, rows: np.ndarray) -> np.ndarray:
    """Scores by the definition: base, then every tree, in float64 or float32."""
    kind = np.float32 if ensemble.single else np.float64
    scores = np.full((ensemble.n_columns, len(rows)), ensemble.base, kind)
    for t in range(ensemble.n_trees):
        tree = ensemble.tree(t)
        leaf = tree.apply(rows)
        scores[t % ensemble.n_columns] = (
            scores[t % ensemble.n_columns].astype(np.float64) + tree.value[leaf]
        )
    return scores.astype(np.float64)


def same_trees(a: Ensemble, b: Ensemble, *names: str) -> None:
    """Both have the same trees, numbered alike."""
    for name in names or ("feature", "threshold", "left", "right", "missing_left", "value"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.base == b.base
    assert (a.n_features, a.n_columns, a.single) == (b.n_features, b.n_columns, b.single)
