"""Solr's model store as JSON: writes trees, linear models and nets, reads trees.

A value goes left if x <= t + 1e-6, computed in float32; so the threshold t that is written is one
whose sum with 1e-6 is the model's. A feature that a document lacks is 0. Weights, values, their
products and the sum are float32.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import (
    MOST_FEATURES,
    Foreign,
    TreeParts,
    as_list,
    beside,
    inside,
    joined,
)
from rankgrove.formats.nested_trees import Node, dumped, nested_tree, single_text, with_base
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.model.tree import Tree

PACKAGE = "org.apache.solr.ltr.model."
SLACK = np.float32(1e-6)
TREES = "MultipleAdditiveTreesModel"


# -- reading --------------------------------------------------------------------------------------


def read_document(document: Any) -> Foreign:
    """Read a MultipleAdditiveTreesModel.

    If all features are called f1, f2, ..., as in files that are written here for models without
    names, the numbers are the columns; otherwise the columns are in the order of the list.
    """
    kind = str(inside(document, "class")).rpartition(".")[2]
    if kind != TREES:
        raise ModelFileError(
            f"it is Solr's {kind}; only Solr's {TREES} can be read. Load the model that it was "
            "made from."
        )
    names = []
    for feature in as_list(inside(document, "features"), "features"):
        names.append(str(inside(feature, "name")))
        norm = feature.get("norm")
        if norm and "IdentityNormalizer" not in str(inside(norm, "class")):
            raise ModelFileError(
                f"its feature {names[-1]!r} is normalised by Solr, which is not supported here. "
                "Remove the norm from the file, and give the model normalised features."
            )
    if len(set(names)) != len(names):
        raise ModelFileError("two of its features have the same name: it is damaged.")
    params = inside(document, "params")
    zero = str(params.get("isNullSameAsZero", True)).lower() != "false"
    numbers = _numbers(names)
    columns = range(len(names)) if numbers is None else numbers
    place = dict(zip(names, columns, strict=True))
    trees = [
        _read_tree(t, tree, place, zero)
        for t, tree in enumerate(as_list(inside(params, "trees"), "trees"))
    ]
    absent = "zero" if zero else "missing"
    if numbers is not None:
        n_features = max(numbers, default=-1) + 1
        numbered = joined(trees, n_features, 0.0, 1, single=True)
        return Foreign(numbered, "Solr", TREES, least_features=True, absent=absent)
    shown = [f"{name} is column {j + 1}" for j, name in enumerate(names[:5])]
    note = (
        f"Its {len(names)} features are taken in the order of its list ({', '.join(names[:5])}"
        f"{', ...' if len(names) > 5 else ''}): the columns of the data must be in that order "
        f"({', '.join(shown)}{', ...' if len(names) > 5 else ''}). Text with another number of "
        "features is refused."
    )
    named = joined(trees, len(names), 0.0, 1, single=True)
    return Foreign(named, "Solr", TREES, tuple(names), absent=absent, notes=(note,))


def _numbers(names: Sequence[str]) -> list[int] | None:
    """Return the columns (from 0) of features called f1, f2, ..., None if any has another name."""
    matches = [re.fullmatch(r"f([1-9]\d{0,7})", name) for name in names]
    columns = [int(match[1]) - 1 for match in matches if match is not None]
    fit = len(columns) == len(names) and max(columns, default=0) < MOST_FEATURES
    return columns if fit else None


def _read_tree(number: int, tree: Any, place: Mapping[str, int], zero: bool) -> Tree:
    """Read one tree of nested nodes, without recursion; `zero`: a missing value counts as 0."""
    weight, parts = _number(inside(tree, "weight"), number), TreeParts()
    todo: list[tuple[Any, tuple[int, bool] | None]] = [(inside(tree, "root"), None)]
    while todo:
        node, position = todo.pop()
        if not isinstance(node, Mapping):
            raise ModelFileError(f"tree {number} has a node that is not an object: it is damaged.")
        if "value" in node:
            parts.leaf(position, float(weight * _number(node["value"], number)))
            continue
        feature, at = (
            inside(node, "feature"),
            reached(np.array(_number(inside(node, "threshold"), number))),
        )
        left, right = inside(node, "left"), inside(node, "right")
        if feature not in place:  # Solr stops here, with 0
            parts.leaf(position, 0.0)
            continue
        to_left = bool(at >= 0) if zero else node.get("missing") == "left"
        split = parts.split(position, place[feature], float(at), to_left)
        todo.append((right, (split, False)))
        todo.append((left, (split, True)))
    return parts.tree(np.float32)


def _number(value: object, number: int) -> np.float32:
    """Return a float32, which may be written in Java's form, ``"0.5f"``."""
    text = str(value).strip()
    bare = text[:-1] if text[-1:] in ("f", "F", "d", "D") else text
    try:
        return np.float32(bare)
    except ValueError:
        raise ModelFileError(
            f"tree {number} has {text[:40]!r} instead of a number: it is damaged."
        ) from None


# -- writing --------------------------------------------------------------------------------------


def write_trees(ensemble: Ensemble, names: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return a MultipleAdditiveTreesModel, and notes on inexact numbers."""
    trees = with_base(ensemble)
    used = np.unique(ensemble.feature)
    threshold = ensemble.for_float32().threshold
    error = gap(written(threshold), threshold)
    notes = []
    if np.any(error > 0):
        notes.append(
            f"Solr adds 1e-6 to thresholds: {np.count_nonzero(error):,} of {threshold.size:,} "
            f"cannot be written exactly, and are off by at most {error.max():.2g}."
        )
    params = {"trees": [{"weight": "1", "root": _root(tree, names)} for tree in trees]}
    return _document(TREES, name, [names[j] for j in used.tolist()], params), notes


def write_linear(model: Linear, names: Sequence[str], name: str) -> str:
    """Return a LinearModel; it has no intercept, which does not change the ranking."""
    weight, _ = model.raw_weights()
    used = np.flatnonzero(weight)
    params = {"weights": {names[j]: weight[j] for j in used.tolist()}}
    return _document("LinearModel", name, [names[j] for j in used.tolist()], params)


def write_net(net: Network, names: Sequence[str], name: str) -> str:
    """Return a NeuralNetworkModel; the weights of its first layer include the scaling of inputs."""
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
    """Return the distances between the thresholds that Solr computes and those of the model."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.abs(reached(number).astype(np.float64) - threshold), posinf=np.inf)


def reached(number: np.ndarray) -> np.ndarray:
    """Return the value that Solr compares with, given a threshold in the file."""
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
    features = [{"name": feature} for feature in used]
    return dumped({"class": PACKAGE + kind, "name": name, "features": features, "params": params})
