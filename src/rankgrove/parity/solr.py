"""Solr's model store: MultipleAdditiveTreesModel, LinearModel and NeuralNetworkModel.

All arithmetic is float32, in Java's order: every product and every sum is rounded. A value goes
left if it is at most the threshold plus 1e-6. A feature that a document lacks has the
`defaultValue` of the feature store, which is 0 unless the store says otherwise. With
``isNullSameAsZero: false`` (from Solr 9.2) it is NaN, which follows the node's field ``missing``;
the feature store must have the `defaultValue` ``"NaN"`` for this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.parity.descent import leaves_reached

_FOLDER = "solr/modules/ltr/src/java/org/apache/solr/ltr"
SOURCES = (
    f"apache/solr 62863bc3 {_FOLDER}/model/MultipleAdditiveTreesModel.java",
    f"apache/solr 62863bc3 {_FOLDER}/model/LinearModel.java",
    f"apache/solr 62863bc3 {_FOLDER}/model/NeuralNetworkModel.java",
    f"apache/solr 62863bc3 {_FOLDER}/model/LTRScoringModel.java",
    f"apache/solr 62863bc3 {_FOLDER}/norm/StandardNormalizer.java",
    f"apache/solr 62863bc3 {_FOLDER}/norm/MinMaxNormalizer.java",
    "apache/solr 62863bc3 solr/core/src/java/org/apache/solr/util/SolrPluginUtils.java",
)
OLD_SOURCES = tuple(source.replace("62863bc3", "releases/solr/9.1.1") for source in SOURCES)
_PACKAGE = "org.apache.solr.ltr."
_SLACK = np.float32(1e-6)
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
Norm = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class SolrModel:
    """A model in Solr's memory.

    Attributes
    ----------
    features : names of its features, in the order of its list
    norms : one function per feature
    keeps_missing : whether a missing value stays NaN; otherwise it is 0, and normalised
    score : scores of rows of normalised float32 values
    """

    features: tuple[str, ...]
    norms: tuple[Norm, ...]
    keeps_missing: bool
    score: Callable[[np.ndarray], np.ndarray]

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return Solr's scores of documents; NaN where a document lacks a feature."""
        with np.errstate(all="ignore"):
            row = np.asarray(values, np.float64).astype(np.float32)
            if not self.keeps_missing:
                row = np.where(np.isnan(row), _ZERO, row)
            for column, norm in enumerate(self.norms):
                row[:, column] = norm(row[:, column])
            return self.score(row).astype(np.float64)


def read(data: bytes) -> SolrModel:
    """Parse a model as Solr 9.2 and later do."""
    return _read(data, nulls=True)


def read_9_1(data: bytes) -> SolrModel:
    """Parse a model as Solr 9.0 and 9.1 do."""
    return _read(data, nulls=False)


def _read(data: bytes, nulls: bool) -> SolrModel:
    try:
        document = json.loads(data)
        kind = str(document["class"]).removeprefix(_PACKAGE + "model.")
        listed = document["features"]
        features = tuple(str(entry["name"]) for entry in listed)
        params = document["params"]
        norms = tuple(_norm(entry.get("norm")) for entry in listed)
        if not features:
            raise ModelFileError("Solr refuses a model without features.")
        if len(set(features)) != len(features):
            raise ModelFileError("Solr refuses a model that lists a feature twice.")
        if kind == "MultipleAdditiveTreesModel":
            return _trees(params, features, norms, nulls)
        if kind == "LinearModel":
            return SolrModel(features, norms, False, _linear(params, features))
        if kind == "NeuralNetworkModel":
            return SolrModel(features, norms, False, _net(params, len(features)))
    except ModelFileError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"Solr cannot read the model: {error!r}.") from None
    raise ModelFileError(f"Solr's class {kind!r} is not emulated.")


def _norm(entry: Mapping[str, Any] | None) -> Norm:
    if not entry:
        return lambda value: value
    kind = str(entry["class"]).removeprefix(_PACKAGE + "norm.")
    params = entry.get("params") or {}
    if kind == "IdentityNormalizer":
        return lambda value: value
    if kind == "StandardNormalizer":
        mean, deviation = _float(params.get("avg", "0")), _float(params.get("std", "1"))
        if deviation <= 0:
            raise ModelFileError("Solr refuses a StandardNormalizer whose std is not positive.")
        return lambda value: (value - mean) / deviation
    if kind == "MinMaxNormalizer":
        low, high = _float(params.get("min", "-inf")), _float(params.get("max", "inf"))
        width = high - low
        if width == 0:
            raise ModelFileError("Solr refuses a MinMaxNormalizer whose min is its max.")
        return lambda value: (value - low) / width
    raise ModelFileError(f"Solr's class {kind!r} is not emulated.")


# -- trees ----------------------------------------------------------------------------------------


@dataclass
class _Tree:
    """The nodes of a tree; a feature of -1 is one that the model does not list."""

    weight: np.float32
    feature: list[int] = field(default_factory=list)
    threshold: list[np.float32] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)  # 1: left, 0: right, -1: the field is absent
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[np.float32] = field(default_factory=list)
    root: int = -1


def _trees(
    params: Mapping[str, Any], features: tuple[str, ...], norms: tuple[Norm, ...], nulls: bool
) -> SolrModel:
    known = {"trees", "isNullSameAsZero"} if nulls else {"trees"}
    _only(params, known)
    same = params.get("isNullSameAsZero", True)
    if not isinstance(same, bool):  # the setter takes a boolean; there is none for a string
        raise ModelFileError("Solr refuses an isNullSameAsZero that is not true or false.")
    place = {name: column for column, name in enumerate(features)}
    trees = [_tree(entry, place, nulls) for entry in params["trees"]]

    def score(rows: np.ndarray) -> np.ndarray:
        total: np.ndarray = np.zeros(len(rows), np.float32)
        for tree in trees:
            total = total + tree.weight * _tree_score(tree, rows, keeps=not same)
        return total

    return SolrModel(features, norms, not same, score)


def _tree(entry: Mapping[str, Any], place: Mapping[str, int], nulls: bool) -> _Tree:
    tree = _Tree(_float(entry["weight"]))
    todo: list[tuple[Mapping[str, Any], int, bool]] = [(entry["root"], -1, True)]
    fields = {"value", "feature", "threshold", "left", "right"} | ({"missing"} if nulls else set())
    while todo:
        node, parent, is_left = todo.pop()
        _only(node, fields)
        if node.get("feature") is None:
            if "left" in node or "right" in node:
                raise ModelFileError("Solr refuses a leaf with children.")
            here = ~len(tree.value)
            tree.value.append(_float(node.get("value", "0")))
        else:
            here = len(tree.feature)
            tree.feature.append(place.get(str(node["feature"]), -1))
            tree.threshold.append(_float(node["threshold"]) + _SLACK)
            side = node.get("missing")
            tree.missing.append(-1 if side is None else int(side == "left"))
            tree.left.append(0)
            tree.right.append(0)
            todo += [(node["right"], here, False), (node["left"], here, True)]
        if parent < 0:
            tree.root = here
        else:
            (tree.left if is_left else tree.right)[parent] = here
    return tree


def _tree_score(tree: _Tree, rows: np.ndarray, keeps: bool) -> np.ndarray:
    """Return the values of the leaves; 0 where the way ends at a feature that is not listed."""
    feature = np.array(tree.feature, np.int64)
    threshold = np.array(tree.threshold, np.float32)
    missing = np.array(tree.missing, np.int64)
    left, right = np.array(tree.left, np.int64), np.array(tree.right, np.int64)
    # a node of an unknown feature leads to one more leaf, of value 0
    nowhere = ~len(tree.value)
    left, right = np.where(feature < 0, nowhere, left), np.where(feature < 0, nowhere, right)
    value = np.array([*tree.value, _ZERO], np.float32)

    def goes_left(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
        x = rows[at, feature[nodes]]
        below = x <= threshold[nodes]
        if not keeps:
            return below
        absent = np.isnan(x) & (feature[nodes] >= 0)
        if np.any(missing[nodes[absent]] < 0):
            raise ModelFileError(
                "With isNullSameAsZero: false, Solr stops with an error where a value is missing "
                "at a node without the field 'missing'. Give it to every node."
            )
        return below | (absent & (missing[nodes] == 1))

    return value[leaves_reached(len(rows), tree.root, left, right, goes_left)]


# -- linear models and nets -----------------------------------------------------------------------


def _linear(
    params: Mapping[str, Any], features: Sequence[str]
) -> Callable[[np.ndarray], np.ndarray]:
    _only(params, {"weights"})
    lacking = [name for name in features if params["weights"].get(name) is None]
    if lacking:
        raise ModelFileError(f"Solr refuses a LinearModel without weights of {lacking}.")
    weights = [np.float32(float(params["weights"][name])) for name in features]

    def score(rows: np.ndarray) -> np.ndarray:
        total: np.ndarray = np.zeros(len(rows), np.float32)
        for column, weight in enumerate(weights):
            total = total + rows[:, column] * weight
        return total

    return score


# Java's tanh and exp are double; the result is rounded to float32.
_ACTIVATIONS: dict[str, Norm] = {
    "identity": lambda value: value,
    "relu": lambda value: np.where(value < 0, _ZERO, value),
    "leakyrelu": lambda value: np.where(value < 0, np.float32(0.01) * value, value),
    "tanh": lambda value: np.tanh(value.astype(np.float64)).astype(np.float32),
    "sigmoid": lambda value: (1 / (1 + np.exp(-value.astype(np.float64)))).astype(np.float32),
}


def _net(params: Mapping[str, Any], n_inputs: int) -> Callable[[np.ndarray], np.ndarray]:
    _only(params, {"layers"})
    layers: list[tuple[np.ndarray, np.ndarray, Norm]] = []
    width = n_inputs
    for layer in params["layers"]:
        _only(layer, {"matrix", "bias", "activation"})
        matrix = np.array(layer["matrix"], np.float64).astype(np.float32)
        bias = np.array(layer["bias"], np.float64).astype(np.float32)
        if layer["activation"] not in _ACTIVATIONS:
            raise ModelFileError(f"Solr does not know the activation {layer['activation']!r}.")
        if matrix.shape != (bias.size, width):
            raise ModelFileError(
                f"Solr refuses a layer of {matrix.shape[0]} x {matrix.shape[1]} weights and "
                f"{bias.size} biases for {width} inputs."
            )
        layers.append((matrix, bias, _ACTIVATIONS[layer["activation"]]))
        width = bias.size
    if width != 1:
        raise ModelFileError(f"Solr refuses a net with {width} outputs.")

    def score(rows: np.ndarray) -> np.ndarray:
        for matrix, bias, activation in layers:
            units = np.repeat(bias[None, :], len(rows), axis=0)
            for column in range(matrix.shape[1]):
                units = units + rows[:, column, None] * matrix[None, :, column]
            rows = activation(units)
        return rows[:, 0]

    return score


# -- Java -----------------------------------------------------------------------------------------


def _only(entry: Mapping[str, Any], known: set[str]) -> None:
    """Refuse a field without a setter, as Solr does."""
    for name in entry:
        if name not in known:
            raise ModelFileError(f"Solr refuses the field {name!r}: it has no setter for it.")


def _float(value: object) -> np.float32:
    """Return Float.parseFloat of a string; a number is refused where Solr's setter takes none."""
    if not isinstance(value, str):
        raise ModelFileError(
            f"Solr may refuse the number {value!r}, for which it looks for a setter by type: "
            "write it as a string."
        )
    text = value.strip()
    bare = text[:-1] if text[-1:] in "fFdD" and not text.endswith("Infinity") else text
    with np.errstate(over="ignore"):
        return np.float32(bare)
