"""Models for Elasticsearch's own learning to rank, from version 8.12 on.

The output is the body of ``PUT _ml/trained_models/NAME``: an ensemble of trees whose scores are
summed, and the queries that extract the features. Values, thresholds, leaves and sums are float64;
the score of a document is the float32 nearest to the sum. A value goes left if x <= t, where -0 is
below 0; infinite values count as missing. JSON has no infinity, so that a split that every value
passes has the largest float64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.formats.nested_trees import Node
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.model.tree import Tree

PLACEHOLDER = "REPLACE_WITH_A_FIELD"
_MOST = float(np.finfo(np.float64).max)


def write_trees(ensemble: Ensemble, names: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return the request that creates a model, and a note on what is to be filled in."""
    trees = [ensemble.tree(t) for t in range(ensemble.n_trees)]
    if ensemble.base or not trees:
        trees.insert(0, Tree.constant(ensemble.base))
    used = _used(ensemble, names)
    trained = {
        "feature_names": used,
        "target_type": "regression",
        "aggregate_output": {"weighted_sum": {}},
        "trained_models": [_tree(tree, names) for tree in trees],
    }
    body = {
        "description": f"{name}, written by rankgrove",
        "inference_config": _config(used),
        "definition": {"trained_model": {"ensemble": trained}},
    }
    return json.dumps(body), [
        f"The queries in inference_config are placeholders ({PLACEHOLDER}): replace them by those "
        "that gave the features of the training data."
    ]


def inference_config(model: Ensemble | Linear | Network, names: Sequence[str]) -> str:
    """Return the ``inference_config`` of a model, with queries that are to be replaced."""
    assert isinstance(model, Ensemble)  # others are refused before
    return json.dumps(_config(_used(model, names)), indent=2) + "\n"


def limits(threshold: np.ndarray) -> np.ndarray:
    """Return float64 numbers t for which x <= t means that the float32 nearest to x is at most t.

    For float64 thresholds, the thresholds. Neither has a negative zero, which is below 0 there.
    """
    if threshold.dtype == np.float64:
        return threshold + 0.0  # -0.0 becomes 0.0
    at = threshold + np.float32(0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        above = np.nextafter(at, np.float32(np.inf)).astype(np.float64)
        above = np.minimum(above, 2.0**128)  # what is rounded up to infinity begins halfway to it
        low = at.astype(np.float64)
        middle = low + (above - low) / 2.0
        below = np.nextafter(middle, -np.inf)
    even = (at.view(np.uint32) & 1) == 0  # a number halfway is rounded to the even neighbour
    return np.where(np.isfinite(at), np.where(even, middle, below) + 0.0, low)


def _used(ensemble: Ensemble, names: Sequence[str]) -> list[str]:
    return [names[j] for j in np.unique(ensemble.feature).tolist()]


def _tree(tree: Tree, names: Sequence[str]) -> Node:
    """Return a tree: its nodes by number, leaves after them; its features are numbered anew."""
    features, place = np.unique(tree.feature, return_inverse=True)
    n = tree.n_nodes
    at = limits(tree.threshold).tolist()
    children = {
        side: np.where(child >= 0, child, n + ~child).tolist()
        for side, child in (("left_child", tree.left), ("right_child", tree.right))
    }
    counts = [{"number_samples": c} if c >= 0 else {} for c in tree.count.astype(int).tolist()]
    nodes: list[Node] = [
        {
            "node_index": node,
            "split_feature": int(place[node]),
            # every number is at most the largest; none is below the least
            "decision_type": "lt" if at[node] == -math.inf else "lte",
            "threshold": min(_MOST, max(-_MOST, at[node])),
            "default_left": bool(tree.missing_left[node]),
            "left_child": children["left_child"][node],
            "right_child": children["right_child"][node],
            **counts[node],
        }
        for node in range(n)
    ]
    nodes += [
        {"node_index": n + leaf, "leaf_value": value, **counts[n + leaf]}
        for leaf, value in enumerate(tree.value.tolist())
    ]
    return {
        "tree": {
            "feature_names": [names[j] for j in features.tolist()],
            "target_type": "regression",
            "tree_structure": nodes,
        }
    }


def _config(names: Sequence[str]) -> Node:
    for name in names:
        if not name.strip():
            raise ParameterError(f"Elasticsearch needs names of features, and {name!r} is empty.")
    extractors = [
        {
            "query_extractor": {
                "feature_name": name,
                "query": {"match": {PLACEHOLDER: "{{query}}"}},
            }
        }
        for name in names
    ]
    return {"learning_to_rank": {"feature_extractors": extractors}}
