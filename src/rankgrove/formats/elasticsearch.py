"""Models for the learning-to-rank plugins of Elasticsearch and OpenSearch.

The output is the body of ``POST _ltr/_featureset/NAME/_createmodel``. A value goes to the first
child if x < t, in float32, so t is the next float32 above the model's. There is no base score:
it becomes a tree with a single leaf. Lucene refuses negative scores. Linear models on standardised
features have normalisers, which the plugin applies in float32, (x - mean) / deviation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankgrove.formats.foreign import beside
from rankgrove.formats.nested_trees import Node, dumped, nested_tree, single_number, with_base
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.tree import Tree

PLACEHOLDER = "REPLACE_WITH_A_FIELD"
_MOST = float(np.finfo(np.float32).max)


def write_trees(
    ensemble: Ensemble,
    names: Sequence[str],
    name: str,
    missing_as_zero: bool = False,
    probability: bool = False,
) -> str:
    """Return a model of the type ``model/xgboost+json``.

    missing_as_zero : say so in the model, which takes a version of OpenSearch that knows the flag
    probability : the plugin takes the sigmoid of the sum
    """
    trees: Any = [_root(tree, names) for tree in with_base(ensemble)]
    options: dict[str, Any] = {"objective": "binary:logistic"} if probability else {}
    if missing_as_zero:
        options["missing_as_zero"] = True
    if options:
        trees = options | {"splits": trees}
    return _body(name, "model/xgboost+json", dumped(trees))


def write_linear(model: Linear, names: Sequence[str], name: str) -> str:
    """Return a model of the type ``model/linear``; it has no intercept."""
    used = np.flatnonzero((model.weights != 0) & (model.scale > 0)).tolist()
    normalised = normalised_features(model)
    weight = model.weights if normalised.any() else model.raw_weights()[0]
    normalisers = {
        names[j]: {
            "standard": {
                "mean": single_number(model.shift[j]),
                "standard_deviation": single_number(model.scale[j]),
            }
        }
        for j in used
        if normalised[j]
    }
    definition = dumped({names[j]: single_number(weight[j]) for j in used})
    return _body(name, "model/linear", definition, normalisers)


def normalised_features(model: Linear) -> np.ndarray:
    """Return which features get a normaliser: all, or none if no mean is to be taken off."""
    used = (model.weights != 0) & (model.scale > 0)
    with np.errstate(over="ignore", under="ignore"):
        deviations = model.scale.astype(np.float32)
        means = model.shift.astype(np.float32)
    held = np.isfinite(means) & np.isfinite(deviations) & (deviations > 0)
    if not np.any(model.shift[used]) or not np.all(held[used]):
        return np.zeros(model.n_features, np.bool_)
    return used


def feature_set(names: Sequence[str]) -> str:
    """Return the body of ``PUT _ltr/_featureset/NAME`` with queries that are to be replaced."""
    features = [
        {
            "name": name,
            "params": ["keywords"],
            "template_language": "mustache",
            "template": {"match": {PLACEHOLDER: "{{keywords}}"}},
        }
        for name in names
    ]
    return json.dumps({"featureset": {"features": features}}, indent=2) + "\n"


def _root(tree: Tree, names: Sequence[str]) -> Node:
    above = beside(tree.threshold, np.inf)
    n = tree.n_nodes
    depth = np.zeros(n, np.int64)
    for node in range(n):
        for child in (tree.left[node], tree.right[node]):
            if child >= 0:
                depth[child] = depth[node] + 1

    def leaf(number: int) -> Node:
        return {"nodeid": n + number, "leaf": single_number(tree.value[number])}

    def split(node: int, left: Node, right: Node) -> Node:
        return {
            "nodeid": node,
            "depth": int(depth[node]),
            "split": names[tree.feature[node]],
            "split_condition": min(_MOST, single_number(above[node])),
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": (left if tree.missing_left[node] else right)["nodeid"],
            "children": [left, right],
        }

    return nested_tree(tree, leaf, split)


def _body(
    name: str, kind: str, definition: str, normalisers: Mapping[str, Node] | None = None
) -> str:
    model: Node = {"type": kind, "definition": definition}
    if normalisers:
        model["feature_normalizers"] = normalisers
    return dumped({"model": {"name": name, "model": model}})
