"""Scores that Solr, Vespa and RankLib are predicted to give, from models alone."""

from __future__ import annotations

import numpy as np

from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network


def vespa_sum(model: Ensemble, rows: np.ndarray, large: bool, fast: bool) -> np.ndarray:
    """Return the sum of leaves as Vespa adds them up: neighbouring constants first."""
    trees = [model.tree(t) for t in range(model.n_trees)]
    if not trees:
        return np.full(len(rows), model.base)
    values = [tree.value.copy() for tree in trees]
    values[0] = values[0] + model.base
    fast = fast and len(trees) > 1 and all(tree.n_nodes for tree in trees)
    if large or fast:
        values = [as_single(value) for value in values]
        order = [*range(len(trees) - 1, 1, -1), 0, 1]
        leaves = [values[t][trees[t].apply(rows)] for t in order]
        lanes = [np.zeros(len(rows)), np.zeros(len(rows))]
        for number, leaf in enumerate(leaves):
            lane = number % 2 if fast and number < len(leaves) // 4 * 4 else 0
            lanes[lane] = lanes[lane] + leaf
        return lanes[0] + lanes[1]
    parts: list[np.ndarray] = []
    constant = False
    for tree, value in zip(trees, values, strict=True):
        leaf = value[tree.apply(rows)]
        if constant and tree.n_nodes == 0:
            parts[-1] = parts[-1] + leaf
        else:
            parts.append(leaf)
        constant = tree.n_nodes == 0
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def bound_of(model: Ensemble, double: bool) -> float:
    """Return how far a score can be from the model's: a rounding per leaf and per sum."""
    size = abs(model.base)
    if model.n_trees:
        size += float(np.maximum.reduceat(np.abs(model.value), model.leaf_ptr[:-1]).sum())
    steps = 2 * (model.n_trees + 1)
    if double:
        return size * steps * 2.0**-53 * (1.0 + 1e-6)
    return size * steps * 2.0**-24 * (1.0 + 1e-6) + steps * 2.0**-149


def weighted(
    model: Linear | Network, values: np.ndarray, kind: type
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores in some float width, and the largest sums of sizes on the way to them."""
    if isinstance(model, Linear):
        used = np.flatnonzero(model.weights != 0)
        layers: list[tuple[np.ndarray, np.ndarray | None]] = [(model.weights[:, None], None)]
        mean, deviation, last = model.shift, model.scale, 0
    else:
        used = np.arange(model.n_features)
        mean, deviation = model.mean, 1.0 / model.scale
        layers = [*model.layers, (model.output[:, None], None)]
        last = len(layers) - 1
    single = kind is np.float32
    units = np.zeros(values.shape, kind)
    first = layers[0][0].copy()
    shift = np.zeros(len(mean))
    for j in used.tolist():
        if single:
            x = np.where(np.isnan(values[:, j]), np.float32(mean[j]), values[:, j].astype(kind))
            units[:, j] = (x - np.float32(mean[j])) / np.float32(deviation[j])
            first[j] = first[j] / deviation[j] * float(np.float32(deviation[j]))
            shift[j] = (mean[j] - float(np.float32(mean[j]))) / deviation[j]
        else:
            scaled = (values[:, j] - mean[j]) / deviation[j]
            if isinstance(model, Network):
                scaled = (values[:, j] - mean[j]) * model.scale[j]
            units[:, j] = np.where(np.isnan(values[:, j]), 0.0, scaled)
    size = np.ones(len(values))
    for number, (matrix, bias) in enumerate(layers):
        weights = first if number == 0 else matrix
        begin = np.zeros(weights.shape[1]) if bias is None else bias
        if number == 0 and single and isinstance(model, Network):
            begin = begin - (shift @ matrix)
        total = np.repeat(begin.astype(kind)[None, :], len(values), axis=0)
        for j in range(weights.shape[0]):
            if number or j in used or single:
                total = total + units[:, j, None] * weights[None, j].astype(kind)
        size = size * (1.0 + np.abs(weights).sum(axis=0).max()) * (1 + np.abs(units).max(axis=1))
        if number < last:
            assert isinstance(model, Network)
            wide = total.astype(np.float64)
            total = (np.tanh(wide) if model.activation == "tanh" else np.maximum(wide, 0)).astype(
                kind
            )
        units = total
    return units[:, 0].astype(np.float64), size


def as_single(values: np.ndarray) -> np.ndarray:
    """Return values rounded to float32."""
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32).astype(np.float64)
