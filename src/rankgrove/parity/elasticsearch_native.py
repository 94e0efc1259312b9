"""Elasticsearch's own learning to rank, from 8.12 on: trees of ``_ml/trained_models``.

Everything is float64. ``x <= t`` compares as Java's ``Double.compare``, to which -0 is below 0;
values that are NaN or infinite are missing. The trees' values are added by Java's stream sum, which
carries the rounding errors along (Kahan), and the sum is rounded to float32, the type of scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.parity.uploaded import (
    Fields,
    WalkedTree,
    check_fields,
    objects,
    parsed,
    real,
    whole,
)

NODE = (
    "node_index",
    "split_feature",
    "threshold",
    "decision_type",
    "default_left",
    "left_child",
    "right_child",
    "leaf_value",
    "split_gain",
    "number_samples",
)
_OPERATORS = ("lt", "lte", "gt", "gte")


@dataclass(frozen=True)
class TreesModel:
    """Trees as Elasticsearch holds them; `operator` is one array per tree, one entry per node."""

    features: tuple[str, ...]
    trees: tuple[WalkedTree, ...]
    operators: tuple[np.ndarray, ...]
    weights: tuple[float, ...] | None

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return the scores of documents."""
        values = np.asarray(values, np.float64)
        high, carried, plain = (np.zeros(len(values)) for _ in range(3))
        with np.errstate(over="ignore", invalid="ignore"):
            for t, (tree, operator) in enumerate(zip(self.trees, self.operators, strict=True)):
                leaf = tree.values(values, _rule(tree, operator))
                if self.weights is not None:
                    leaf = leaf * self.weights[t]
                part = leaf - carried
                total = high + part
                carried = (total - high) - part
                high, plain = total, plain + leaf
            exact = high - carried
            exact = np.where(np.isnan(exact) & np.isinf(plain), plain, exact)
            return exact.astype(np.float32).astype(np.float64)


def read(content: bytes) -> TreesModel:
    """Parse the body of ``PUT _ml/trained_models/NAME``."""
    body = parsed(content, "The body of the request")
    definition = body.get("definition") if isinstance(body, dict) else None
    trained = definition.get("trained_model") if isinstance(definition, dict) else None
    if not isinstance(trained, dict) or len(trained) != 1:
        raise ModelFileError("A [definition] with one [trained_model] is needed.")
    _check_config(body.get("inference_config"))
    [(kind, model)] = trained.items()
    if kind == "tree":
        kind, model = "ensemble", {"trained_models": [trained], "feature_names": []}
    if kind != "ensemble" or not isinstance(model, dict):
        raise ModelFileError(f"The model [{kind}] cannot rank; an [ensemble] can.")
    known = ("feature_names", "trained_models", "aggregate_output", "target_type")
    check_fields(model, known, "[ensemble]")
    _check_regression(model, "[ensemble]")
    members = objects(model.get("trained_models"), "[trained_models]")
    if not members:
        raise ModelFileError("[trained_models] must not be empty.")
    places: dict[str, int] = {}
    pairs = [_tree(member, places) for member in members]
    return TreesModel(
        tuple(places),
        tuple(tree for tree, _ in pairs),
        tuple(operator for _, operator in pairs),
        _weights(model.get("aggregate_output"), len(pairs)),
    )


def _check_config(config: object) -> None:
    """Refuse an inference config that is not of learning to rank, or has a feature twice."""
    if not isinstance(config, dict) or list(config) != ["learning_to_rank"]:
        raise ModelFileError("[inference_config] must have [learning_to_rank] and nothing else.")
    inner = config["learning_to_rank"]
    known = ("feature_extractors", "default_params", "num_top_feature_importance_values")
    check_fields(inner, known, "[learning_to_rank]")
    names = []
    for one in objects(inner.get("feature_extractors", []), "[feature_extractors]"):
        extractor = one.get("query_extractor")
        if list(one) != ["query_extractor"] or not isinstance(extractor, dict):
            raise ModelFileError("A feature extractor must be a [query_extractor].")
        check_fields(extractor, ("feature_name", "query", "default_score"), "[query_extractor]")
        name, query = extractor.get("feature_name"), extractor.get("query")
        if not isinstance(name, str) or not isinstance(query, dict):
            raise ModelFileError("A query extractor needs a [feature_name] and a [query].")
        names.append(name)
    if len(set(names)) < len(names):
        raise ModelFileError("[feature_extractors] contains duplicate [feature_name] values.")


def _check_regression(model: Fields, what: str) -> None:
    if model.get("target_type", "regression") != "regression":
        raise ModelFileError(f"{what}: [target_type] must be regression.")


def _weights(aggregate: object, n: int) -> tuple[float, ...] | None:
    if aggregate is None:
        return None
    if not isinstance(aggregate, dict) or list(aggregate) != ["weighted_sum"]:
        raise ModelFileError("[aggregate_output] must be a [weighted_sum].")
    inner = aggregate["weighted_sum"]
    check_fields(inner, ("weights",), "[weighted_sum]")
    if inner.get("weights") is None:
        return None
    weights = tuple(float(weight) for weight in inner["weights"])
    if len(weights) != n:
        raise ModelFileError(f"[weighted_sum] has {len(weights)} weights for {n} models.")
    return weights


def _tree(member: Fields, places: dict[str, int]) -> tuple[WalkedTree, np.ndarray]:
    """Return a tree and its operators; `places` are the columns of the features, inout."""
    tree = member.get("tree")
    if list(member) != ["tree"] or not isinstance(tree, dict):
        raise ModelFileError("Members of an ensemble other than trees are not emulated.")
    check_fields(tree, ("feature_names", "tree_structure", "target_type"), "[tree]")
    _check_regression(tree, "[tree]")
    names = tree.get("feature_names")
    nodes = objects(tree.get("tree_structure"), "[tree_structure]")
    if not isinstance(names, list) or not nodes:
        raise ModelFileError("[tree] needs [feature_names] and a [tree_structure].")
    columns = [places.setdefault(name, len(places)) for name in names]
    n = len(nodes)
    number = np.zeros(n, np.int64)  # of a split, or ~leaf
    splits: list[Fields] = []
    leaves: list[Fields] = []
    for at, fields in enumerate(nodes):
        check_fields(fields, NODE, "[tree_node]")
        is_leaf = fields.get("left_child") is None
        number[at] = ~len(leaves) if is_leaf else len(splits)
        (leaves if is_leaf else splits).append(fields)
    children = [
        [_child(fields, side, n) for side in ("left_child", "right_child")] for fields in splits
    ]
    sides = number[np.array(children, np.int64).reshape(-1, 2)]
    _check_cycles(children, number, n)
    feature = [whole(fields, "split_feature", "[tree_node]") for fields in splits]
    if any(not 0 <= column < len(columns) for column in feature):
        raise ModelFileError("A feature index is out of bounds of [feature_names].")
    operator = [str(fields.get("decision_type", "lte")).strip().lower() for fields in splits]
    if any(name not in _OPERATORS for name in operator):
        raise ModelFileError(f"[decision_type] must be one of {', '.join(_OPERATORS)}.")
    walked = WalkedTree(
        int(number[0]),
        np.array([columns[column] for column in feature], np.int64),
        np.array([real(fields, "threshold", "[tree_node]") for fields in splits], np.float64),
        sides[:, 0],
        sides[:, 1],
        np.array([fields.get("default_left", False) is True for fields in splits], np.bool_),
        np.array([_leaf(fields) for fields in leaves], np.float64),
    )
    return walked, np.array([_OPERATORS.index(name) for name in operator], np.int64)


def _child(fields: Fields, side: str, n: int) -> int:
    child = whole(fields, side, "[tree_node]")
    if not 0 <= child < n:
        raise ModelFileError(f"[tree] contains missing nodes [{child}].")
    return child


def _check_cycles(children: list[list[int]], number: np.ndarray, n: int) -> None:
    """Refuse a tree in which a node is reached twice."""
    seen = np.zeros(n, np.bool_)
    todo = [0]
    while todo:
        at = todo.pop()
        if seen[at]:
            raise ModelFileError(f"[tree] contains cycle at node {at}.")
        seen[at] = True
        if number[at] >= 0:
            todo += children[number[at]]


def _leaf(fields: Fields) -> float:
    value = fields.get("leaf_value")
    if isinstance(value, list):
        if len(value) != 1:
            raise ModelFileError("[tree]: leaves with several values are for classification.")
        fields = {"leaf_value": value[0]}
    return real(fields, "leaf_value", "[tree_node]")


def _rule(tree: WalkedTree, operator: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    is_less, takes_equal = operator < 2, operator % 2 == 1

    def goes_left(x: np.ndarray, node: np.ndarray) -> np.ndarray:
        at = tree.threshold[node]
        both_zero = (x == 0) & (at == 0)
        sign_x, sign_at = np.signbit(x), np.signbit(at)
        below = (x < at) | (both_zero & sign_x & ~sign_at)
        above = (x > at) | (both_zero & ~sign_x & sign_at)
        equal = ~below & ~above
        goes = np.where(is_less[node], below, above) | (equal & takes_equal[node])
        return np.where(np.isfinite(x), goes, tree.missing_left[node])

    return goes_left
