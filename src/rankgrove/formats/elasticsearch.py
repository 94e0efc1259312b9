"""Models for the learning-to-rank plugins of Elasticsearch and OpenSearch.

The output is the body of ``POST _ltr/_featureset/NAME/_createmodel``. A value goes to the first
child if x < t, in float32, so t is the next float32 above the model's. There is no base score:
it becomes a tree with a single leaf. Lucene refuses negative scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankgrove.formats.foreign import beside
from rankgrove.formats.nested_trees import Node, dumped, nested_tree, single_number, with_base
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.tree import Tree

_MOST = float(np.finfo(np.float32).max)


def write_trees(ensemble: Ensemble, names: Sequence[str], name: str) -> str:
    """Return a model of the type ``model/xgboost+json``."""
    trees = [_root(tree, names) for tree in with_base(ensemble)]
    return _body(name, "model/xgboost+json", dumped(trees))


def write_linear(model: Linear, names: Sequence[str], name: str) -> str:
    """Return a model of the type ``model/linear``; it has no intercept."""
    weight, _ = model.raw_weights()
    used = np.flatnonzero(weight).tolist()
    return _body(name, "model/linear", dumped({names[j]: weight[j] for j in used}))


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


def _body(name: str, kind: str, definition: str) -> str:
    return dumped({"model": {"name": name, "model": {"type": kind, "definition": definition}}})
