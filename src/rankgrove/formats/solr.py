"""Models for Solr's model store: trees, linear models and nets, as JSON.

A tree's value goes left where x <= t + 1e-6, both float32 and their sum too; so the threshold that
is written is one whose sum with 1e-6 is ours. A feature that a document lacks is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankgrove.formats.foreign import beside
from rankgrove.formats.nested import Node, dumped, nested_tree, single_text, with_base
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.model.tree import Tree

PACKAGE = "org.apache.solr.ltr.model."
SLACK = np.float32(1e-6)


def write_trees(ensemble: Ensemble, names: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return a MultipleAdditiveTreesModel, and notes on what is not exact."""
    trees = with_base(ensemble)
    used = np.unique(ensemble.feature)
    threshold = ensemble.for_float32().threshold
    error = gap(written(threshold), threshold)
    notes = []
    if np.any(error > 0):
        notes.append(
            f"Solr adds 1e-6 to thresholds: {np.count_nonzero(error):,} of {threshold.size:,} "
            f"cannot be written exactly, and are off by {error.max():.2g} at the most."
        )
    params = {"trees": [{"weight": "1", "root": _root(tree, names)} for tree in trees]}
    return _document(
        "MultipleAdditiveTreesModel", name, [names[j] for j in used.tolist()], params
    ), notes


def write_linear(model: Linear, names: Sequence[str], name: str) -> str:
    """Return a LinearModel; there is no intercept, which would lift all documents alike."""
    weight, _ = model.raw_weights()
    used = np.flatnonzero(weight)
    params = {"weights": {names[j]: weight[j] for j in used.tolist()}}
    return _document("LinearModel", name, [names[j] for j in used.tolist()], params)


def write_net(net: Network, names: Sequence[str], name: str) -> str:
    """Return a NeuralNetworkModel; the scaling of inputs stands in the first layer's weights."""
    layers: list[Node] = []
    weights = [*net.layers, (net.output[:, None], np.zeros(1))]
    for number, (matrix, bias) in enumerate(weights):
        if number == 0:
            matrix, bias = net.scale[:, None] * matrix, bias - (net.mean * net.scale) @ matrix
        last = number == len(weights) - 1
        layers.append(
            {
                "matrix": matrix.T.tolist(),
                "bias": bias.tolist(),
                "activation": "identity" if last else net.activation,
            }
        )
    return _document("NeuralNetworkModel", name, names, {"layers": layers})


def written(threshold: np.ndarray) -> np.ndarray:
    """Return the float32 numbers whose sums with 1e-6 are nearest to some thresholds."""
    first = np.asarray(threshold, np.float32) - SLACK
    best = first
    for direction in (-np.inf, np.inf):
        near = beside(first, direction)
        best = np.where(gap(near, threshold) < gap(best, threshold), near, best)
    return best


def gap(number: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Return how far what Solr makes of numbers is from some thresholds."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.abs(reached(number).astype(np.float64) - threshold), posinf=np.inf)


def reached(number: np.ndarray) -> np.ndarray:
    """Return what Solr makes of a threshold."""
    return np.asarray(number, np.float32) + SLACK


def _root(tree: Tree, names: Sequence[str]) -> Node:
    at = written(tree.threshold)

    def split(node: int, left: Node, right: Node) -> Node:
        text = _java(at[node])
        feature = names[tree.feature[node]]
        return {"feature": feature, "threshold": text, "left": left, "right": right}

    return nested_tree(tree, lambda n: {"value": _java(tree.value[n])}, split)


def _java(value: Any) -> str:
    text = single_text(value)
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def _document(kind: str, name: str, used: Sequence[str], params: dict[str, Any]) -> str:
    features = [{"name": one} for one in used]
    return dumped({"class": PACKAGE + kind, "name": name, "features": features, "params": params})
