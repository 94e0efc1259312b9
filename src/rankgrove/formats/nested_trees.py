"""Trees as nested JSON, the form that Solr, Elasticsearch and Vespa take."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree

Node = dict[str, Any]


def nested_tree(
    tree: Tree, leaf: Callable[[int], Node], split: Callable[[int, Node, Node], Node]
) -> Node:
    """Return the root of a tree; `leaf` makes a leaf, `split` a node from its two children."""
    nodes: dict[int, Node] = {~n: leaf(n) for n in range(tree.n_leaves)}
    for node in range(tree.n_nodes - 1, -1, -1):  # children come later than their parents
        nodes[node] = split(node, nodes.pop(int(tree.left[node])), nodes.pop(int(tree.right[node])))
    return nodes[0 if tree.n_nodes else -1]


def with_base(ensemble: Ensemble) -> list[Tree]:
    """Return the trees, with float32 thresholds; a base becomes the first tree."""
    single = ensemble.for_float32()
    trees = [single.tree(t) for t in range(single.n_trees)]
    return [Tree.constant(ensemble.base), *trees] if ensemble.base or not trees else trees


def single_text(value: float | np.floating[Any]) -> str:
    """Return the shortest text of the nearest float32."""
    return str(np.float32(value))


def single_number(value: float | np.floating[Any]) -> float:
    """Return the float64 with the shortest text of the nearest float32."""
    return float(single_text(value))


def dumped(document: Node | list[Node]) -> str:
    """Return JSON; refuse a tree that is too deep for it."""
    try:
        return json.dumps(document)
    except RecursionError:
        raise ParameterError(
            "A tree of the model is too deep to be nested in JSON. Train with max_depth=, or "
            "convert to a flat format: lightgbm, xgboost, onnx or c."
        ) from None
