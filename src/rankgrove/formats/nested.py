"""Trees as nested JSON, which Solr and Elasticsearch take."""

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
    """Return the root of a tree; `leaf` makes a leaf, `split` a node of its two children."""
    made: dict[int, Node] = {~n: leaf(n) for n in range(tree.n_leaves)}
    for node in range(tree.n_nodes - 1, -1, -1):  # children come later than their parents
        made[node] = split(node, made.pop(int(tree.left[node])), made.pop(int(tree.right[node])))
    return made[0 if tree.n_nodes else -1]


def with_base(ensemble: Ensemble) -> list[Tree]:
    """Return the trees, thresholds as float32; a base is the first of them."""
    single = ensemble.for_float32()
    trees = [single.tree(t) for t in range(single.n_trees)]
    return [Tree.constant(ensemble.base), *trees] if ensemble.base or not trees else trees


def single_text(value: Any) -> str:
    """Return the shortest text of the nearest float32."""
    return str(np.float32(value))


def single_number(value: Any) -> float:
    """Return the number of the shortest text of the nearest float32."""
    return float(single_text(value))


def dumped(document: Any) -> str:
    """Return JSON; a tree that is too deep for it is refused."""
    try:
        return json.dumps(document)
    except RecursionError:
        raise ParameterError(
            "A tree of the model is too deep to be nested in JSON. Train with max_depth=, or "
            "convert to a flat format: lightgbm, xgboost, onnx or c."
        ) from None
