"""Ensembles of every shape, and the plainest way to score them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from rankgrove.model.category_sets import CategorySets
from rankgrove.model.ensemble import Ensemble, unknown_statistics

TINY = np.float32(1e-45)  # the smallest denormal
# Few, so that values meet thresholds.
NUMBERS = [-np.inf, -3.4e38, -1.5, -1.0, -1e-40, -0.0, 0.0, TINY, 1e-40, 0.5, 1.0, 2.0, 7.0, 3.4e38]
NUMBERS = [float(np.float32(x)) for x in [*NUMBERS, np.inf]]
# Numbers that float32 would round onto or over each other.
FINE = [*NUMBERS, 0.1, np.nextafter(0.1, 1), 1 + 1e-12, 1 - 1e-12, 1e300, -1e300, 5e-324, 1e-46]


def grown(rng: np.random.Generator, n_leaves: int, shape: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the children of a tree: "chain", "balanced" or "any"."""
    n_nodes = n_leaves - 1
    left, right = np.zeros(n_nodes, np.int32), np.zeros(n_nodes, np.int32)
    slots: list[tuple[int, np.ndarray]] = []
    for node in range(n_nodes):
        if node:
            which = {"chain": -1, "balanced": 0, "any": rng.integers(len(slots))}[shape]
            if shape == "chain" and rng.random() < 0.5:
                which = -2 if len(slots) > 1 else -1
            parent, side = slots.pop(which)
            side[parent] = node
        slots += [(node, left), (node, right)]
    for leaf, at in enumerate(rng.permutation(len(slots))):
        parent, side = slots[at]
        side[parent] = ~leaf
    return left, right


def make_ensemble(
    rng: np.random.Generator,
    leaves: list[int],
    n_features: int,
    numbers: list[float] | np.ndarray,
    *,
    shape: str = "any",
    exact: bool = False,
    n_columns: int = 1,
    single: bool = False,
    base: float = 0.0,
    missing: str = "both",
    categorical: dict[int, int] | None = None,
    n_sets: int = 5,
) -> Ensemble:
    """Return an ensemble of trees of so many leaves, with thresholds out of some numbers.

    categorical : number of categories of some features, whose nodes test one of `n_sets` sets each
    """
    trees = [grown(rng, n, shape) for n in leaves]
    n_nodes = sum(leaves) - len(leaves)
    thresholds = rng.choice(np.asarray(numbers), n_nodes)
    with np.errstate(over="ignore"):
        thresholds = thresholds.astype(np.float64 if exact else np.float32)
    none = np.empty(0, np.int32)
    feature = rng.integers(0, n_features, n_nodes)
    set_of, sets = np.full(n_nodes, -1, np.int32), []
    for column, n_categories in (categorical or {}).items():
        here = feature == column
        set_of[here] = len(sets) + rng.integers(0, n_sets, np.count_nonzero(here))
        thresholds[here] = 0.0
        for _ in range(n_sets):
            share = rng.choice([0.0, 0.1, 0.5, 1.0])
            sets.append(np.flatnonzero(rng.random(n_categories) < share))
    return Ensemble(
        n_features=n_features,
        node_ptr=np.cumsum([0, *(n - 1 for n in leaves)]),
        leaf_ptr=np.cumsum([0, *leaves]),
        feature=feature,
        threshold=thresholds,
        left=np.concatenate([none, *(left for left, _ in trees)]),
        right=np.concatenate([none, *(right for _, right in trees)]),
        missing_left=(
            rng.random(n_nodes) < 0.5 if missing == "both" else np.full(n_nodes, missing == "left")
        ),
        gain=np.zeros(n_nodes),
        value=rng.normal(size=sum(leaves)) * 10.0 ** rng.integers(-9, 9, sum(leaves)),
        base=base,
        n_columns=n_columns,
        single=single,
        set_of=set_of,
        sets=CategorySets.of(sets),
        **unknown_statistics(n_nodes, sum(leaves)),
    )


def naive_scores(
    trees: Ensemble, features: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Return scores of shape (columns, rows), by plain Python."""
    kind = np.float32 if trees.single else np.float64
    held = [{*trees.sets.codes(s).tolist()} for s in range(len(trees.sets))]
    in_double = trees.threshold.dtype == np.float64 and features.dtype == np.float64
    with np.errstate(over="ignore", under="ignore"):
        values = features.astype(np.float64 if in_double else np.float32)
    scores = np.full((trees.n_columns, features.shape[0]), trees.base, kind)
    if start is not None:
        scores[...] = start + trees.base if trees.base else start
    for t in range(trees.n_trees):
        nodes, leaves = int(trees.node_ptr[t]), int(trees.leaf_ptr[t])
        for i in range(features.shape[0]):
            node = 0 if trees.node_ptr[t + 1] > nodes else -1
            while node >= 0:
                at = nodes + node
                x = float(values[i, trees.feature[at]])
                if np.isnan(x):
                    left = trees.missing_left[at]
                elif trees.set_of[at] >= 0:
                    left = 0.0 <= x < 1e9 and int(x) in held[trees.set_of[at]]
                else:
                    left = x <= float(trees.threshold[at])
                node = int(trees.left[at] if left else trees.right[at])
            column = t % trees.n_columns
            total = float(scores[column, i]) + float(trees.value[leaves + ~node])
            scores[column, i] = kind(total)
    return scores.astype(np.float64)


def codes(rng: np.random.Generator, n_rows: int, n_categories: int) -> np.ndarray:
    """Return codes of categories, some of them unknown, not whole, negative or missing."""
    found = rng.integers(0, n_categories, n_rows).astype(np.float64)
    odd = [np.nan, -1.0, -0.0, -0.5, -7.0, 0.9, 1.5, n_categories - 0.3, n_categories, 2.0**20]
    odd += [2.0**31, 2.0**40, 1e30, np.inf, -np.inf, np.nextafter(n_categories, 0.0)]
    here = rng.random(n_rows) < 0.3
    found[here] = rng.choice(odd, np.count_nonzero(here))
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[Ensemble, np.ndarray, np.ndarray | None]:
    """Draw an ensemble, features, and scores to begin with."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_columns = draw(st.sampled_from([1, 1, 1, 2, 5]))
    n_trees = n_columns * draw(st.integers(0, 40 // n_columns))
    most = draw(st.sampled_from([1, 2, 3, 8, 33, 70, 256, 300]))
    leaves = rng.integers(1, most + 1, n_trees).tolist()
    if n_trees and draw(st.booleans()):
        leaves[0] = most
    exact = draw(st.booleans())
    numbers = FINE if exact else NUMBERS
    if draw(st.booleans()):
        numbers = [*numbers, *rng.normal(size=draw(st.sampled_from([10, 600]))).tolist()]
    n_features = draw(st.integers(1, 20))
    categorical = {}
    if draw(st.booleans()):
        count = draw(st.integers(1, n_features))
        columns = rng.permutation(n_features)[:count].tolist()
        categorical = {j: int(rng.choice([1, 2, 31, 32, 33, 100, 1000])) for j in columns}
    trees = make_ensemble(
        rng,
        leaves,
        n_features,
        numbers,
        shape=draw(st.sampled_from(["any", "chain", "balanced"])),
        exact=exact,
        n_columns=n_columns,
        single=draw(st.booleans()),
        base=draw(st.sampled_from([0.0, 0.5, -1e9])),
        missing=draw(st.sampled_from(["both", "left", "right"])),
        categorical=categorical,
        n_sets=draw(st.sampled_from([1, 7, 8, 9, 300])),
    )
    n_rows = draw(st.integers(1, 70))
    values = np.asarray([*numbers, np.nan, np.nan])
    features = rng.choice(values, (n_rows, n_features))
    for column, n_categories in categorical.items():
        features[:, column] = codes(rng, n_rows, n_categories)
    if draw(st.booleans()):
        with np.errstate(over="ignore", under="ignore"):
            features = features.astype(np.float32)
    start = None
    if draw(st.booleans()):
        start = rng.normal(size=n_rows if n_columns == 1 else (n_columns, n_rows))
    return trees, features, start
