"""Solr's model store as JSON: writes trees, linear models and nets, reads trees.

A value goes left if x <= t + 1e-6, computed in float32; so the threshold t that is written is one
whose sum with 1e-6 is the model's. Of thresholds near 0 there is not always one: then the feature
gets a normaliser that divides it by a power of two, which is exact, and its thresholds are divided,
too. Weights, values, their products and the sum are float32.

A feature that a document lacks has the ``defaultValue`` of the feature store, 0 if it has none.
From Solr 9.2 on trees may send NaN to either side (``isNullSameAsZero`` false, ``missing``); linear
models and nets replace a missing value by the mean, which is the default to be given.
"""

from __future__ import annotations

import json
import math
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
from rankgrove.formats.nested_trees import (
    Node,
    dumped,
    nested_tree,
    single_number,
    single_text,
    with_base,
)
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.model.tree import Tree

PACKAGE = "org.apache.solr.ltr.model."
STANDARD = "org.apache.solr.ltr.norm.StandardNormalizer"
FIELD = "org.apache.solr.ltr.feature.FieldValueFeature"
SLACK = np.float32(1e-6)
TREES = "MultipleAdditiveTreesModel"
SHOWN = 5  # features in a message
# Exponents as those of math.frexp. From 2^6 on 1e-6 is lost in the sum, so that all can be
# written; from 2^-13 on nearly all can.
_LEAST_EXPONENTS, _MOST_EXPONENT, _MOST_SHIFT = (7, -12), 127, 149


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
    names, scales = [], []
    for feature in as_list(inside(document, "features"), "features"):
        names.append(str(inside(feature, "name")))
        scales.append(_scale_of(feature.get("norm"), names[-1]))
    if len(set(names)) != len(names):
        raise ModelFileError("two of its features have the same name: it is damaged.")
    params = inside(document, "params")
    zero = str(params.get("isNullSameAsZero", True)).lower() != "false"
    numbers = _numbers(names)
    columns = range(len(names)) if numbers is None else numbers
    place = dict(zip(names, zip(columns, scales, strict=True), strict=True))
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


def _scale_of(norm: Any, name: str) -> np.float32:
    """Return the number that Solr divides a feature by; it must be a power of two."""
    kind = str(inside(norm, "class")).rpartition(".")[2] if norm else "IdentityNormalizer"
    if kind == "IdentityNormalizer":
        return np.float32(1.0)
    params = norm.get("params") or {}
    if kind == "StandardNormalizer" and _number(params.get("avg", "0"), 0) == 0:
        scale = _number(params.get("std", "1"), 0)
        if math.frexp(scale)[0] == 0.5:
            return scale
    raise ModelFileError(
        f"its feature {name!r} is normalised by Solr, which is not supported here. "
        "Remove the norm from the file, and give the model normalised features."
    )


def _read_tree(
    number: int, tree: Any, place: Mapping[str, tuple[int, np.float32]], zero: bool
) -> Tree:
    """Read one tree of nested nodes, without recursion.

    place : the column of every feature, and the number that it is divided by
    zero : a missing value counts as 0
    """
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
        column, scale = place[feature]
        split = parts.split(position, column, float(at * scale), to_left)
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
    """Return a MultipleAdditiveTreesModel, and notes on what it needs and on inexact numbers.

    Missing values are told from 0 only if the trees send them elsewhere.
    """
    trees = with_base(ensemble)
    used = np.unique(ensemble.feature)
    threshold = ensemble.for_float32().threshold
    scale = _scales(ensemble.feature, threshold, ensemble.n_features)
    with np.errstate(over="ignore"):
        scaled = threshold / scale[ensemble.feature]
    error = gap(written(scaled), scaled) * scale[ensemble.feature]
    notes = []
    if np.any(error > 0):
        notes.append(
            f"Solr adds 1e-6 to thresholds: {np.count_nonzero(error):,} of {threshold.size:,} "
            f"cannot be written exactly, and are off by at most {error.max():.2g}."
        )
    nulls = tells_missing(ensemble)
    if nulls:
        notes.append(
            'Missing values are told from 0, which takes the "defaultValue" "NaN" in the feature '
            f"store for {_some(used, names)}, as in the file of feature_set= (--feature-set). "
            "Where 0 is meant, pass missing='zero' (--missing zero)."
        )
    params: dict[str, Any] = {"isNullSameAsZero": False} if nulls else {}
    params["trees"] = [{"weight": "1", "root": _root(t, names, scale, nulls)} for t in trees]
    listed = used.tolist() or [0]  # a model without features is refused
    norms = {j: (np.float32(0.0), scale[j]) for j in used.tolist() if scale[j] != 1.0}
    return _document(TREES, name, names, listed, params, norms), notes


def tells_missing(ensemble: Ensemble) -> bool:
    """Return whether some split sends a missing value to another side than 0."""
    return bool(np.any(ensemble.missing_left != (ensemble.threshold >= 0.0)))


def write_linear(model: Linear, names: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return a LinearModel; it has no intercept, which does not change the ranking."""
    used = _used(model)
    norms = _normalised(model.shift, model.scale, used)
    weight = model.raw_weights()[0]
    if norms:
        weight = np.zeros(model.n_features)
        for j, (_, deviation) in norms.items():  # weights make up for the rounding of deviations
            weight[j] = model.weights[j] / model.scale[j] * float(deviation)
    listed = used.tolist() or [0]
    params = {"weights": {names[j]: single_number(weight[j]) for j in listed}}
    notes = _defaults_note(model.shift, used, names)
    return _document("LinearModel", name, names, listed, params, norms), notes


def has_norms(model: Linear) -> bool:
    """Return whether a linear model's features are normalised in Solr, which needs no intercept."""
    return bool(_normalised(model.shift, model.scale, _used(model)))


def write_net(net: Network, names: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Return a NeuralNetworkModel with normalised inputs.

    The first layer makes up for the rounding of means and deviations to float32. Where float32
    cannot hold one, there are no normalisers, and the layer does all of the scaling.
    """
    used = np.flatnonzero(net.scale > 0)
    deviation = np.divide(1.0, net.scale, out=np.zeros(net.n_features), where=net.scale > 0)
    norms = _normalised(net.mean, deviation, used)
    factor, rest = (
        net.scale.copy(),
        net.mean.copy(),
    )  # what the first layer multiplies by, takes off
    for j, (mean, divisor) in norms.items():
        factor[j], rest[j] = net.scale[j] * float(divisor), net.mean[j] - float(mean)
    layers: list[Node] = []
    weights = [*net.layers, (net.output[:, None], np.zeros(1))]
    for number, (matrix, bias) in enumerate(weights):
        if number == 0:
            matrix, bias = factor[:, None] * matrix, bias - (rest * net.scale) @ matrix
        last = number == len(weights) - 1
        layers.append(
            {
                "matrix": matrix.T.tolist(),
                "bias": bias.tolist(),
                "activation": "identity" if last else net.activation,
            }
        )
    notes = _defaults_note(net.mean, used, names)
    params = {"layers": layers}
    columns = list(range(net.n_features))
    return _document("NeuralNetworkModel", name, names, columns, params, norms), notes


def features_json(model: Ensemble | Linear | Network, names: Sequence[str]) -> str:
    """Return features for Solr's feature store, with the defaults that the model needs.

    Every feature reads the field of its name; other kinds of features are to be put in by hand.
    """
    defaults: dict[int, str] = {}
    if isinstance(model, Ensemble):
        used = np.unique(model.feature)
        if tells_missing(model):
            defaults = dict.fromkeys(used.tolist(), "NaN")
    else:
        mean = model.shift if isinstance(model, Linear) else model.mean
        used = _used(model) if isinstance(model, Linear) else np.arange(model.n_features)
        defaults = {j: single_text(mean[j]) for j in used.tolist() if mean[j] and model.scale[j]}
    features = []
    for j in used.tolist() or [0]:
        params = {"field": names[j]}
        if j in defaults:
            params["defaultValue"] = defaults[j]
        features.append({"name": names[j], "class": FIELD, "params": params})
    return json.dumps(features, indent=2) + "\n"


def _used(model: Linear) -> np.ndarray:
    return np.flatnonzero((model.weights != 0) & (model.scale > 0))


def _some(columns: np.ndarray, names: Sequence[str]) -> str:
    listed = ", ".join(repr(names[j]) for j in columns[:SHOWN].tolist())
    return listed + (f" and {columns.size - SHOWN} more" if columns.size > SHOWN else "")


def _defaults_note(mean: np.ndarray, used: np.ndarray, names: Sequence[str]) -> list[str]:
    """Return a note on the values of missing features, if some mean is not 0."""
    filled = used[mean[used] != 0]
    if filled.size == 0:
        return []
    return [
        "For a missing value the model uses the mean of the feature: give it as the "
        f'"defaultValue" of {_some(filled, names)} in the feature store, as in the file of '
        "feature_set= (--feature-set); without it, Solr takes 0."
    ]


def _normalised(
    mean: np.ndarray, deviation: np.ndarray, used: np.ndarray
) -> dict[int, tuple[np.float32, np.float32]]:
    """Return mean and deviation per feature; of none, if all are 0 and 1 or float32 lacks one."""
    with np.errstate(over="ignore", under="ignore"):
        means, deviations = mean.astype(np.float32), deviation.astype(np.float32)
    held = np.isfinite(means) & np.isfinite(deviations) & (deviations > 0)
    plain = not np.any(mean[used]) and np.all(deviation[used] == 1.0)
    if plain or not np.all(held[used]):
        return {}
    return {int(j): (means[j], deviations[j]) for j in used}


def compared(ensemble: Ensemble) -> np.ndarray:
    """Return the thresholds that Solr compares with: the model's, where it can hold them."""
    threshold = ensemble.for_float32().threshold
    scale = _scales(ensemble.feature, threshold, ensemble.n_features)[ensemble.feature]
    return reached(written(threshold / scale)).astype(np.float64) * scale


def _scales(feature: np.ndarray, threshold: np.ndarray, n_features: int) -> np.ndarray:
    """Return the powers of two to divide features by, so that thresholds can be written exactly."""
    scale = np.ones(n_features, np.float32)
    inexact = gap(written(threshold), threshold) > 0
    for column in np.unique(feature[inexact]).tolist():
        own = threshold[feature == column].astype(np.float32)
        if np.any(own == -np.inf):  # large negative values would reach it
            continue
        size = np.abs(own[(own != 0) & np.isfinite(own)].astype(np.float64))
        least, most = math.frexp(size.min())[1], math.frexp(size.max())[1]
        largest = min(_MOST_EXPONENT - most, _MOST_SHIFT)
        shifts = [0, *(min(exponent - least, largest) for exponent in _LEAST_EXPONENTS), largest]
        factors = [np.float32(math.ldexp(1.0, -shift)) for shift in shifts if shift >= 0]
        left = [np.count_nonzero(gap(written(own / f), own / f)) for f in factors]
        scale[column] = factors[int(np.argmin(left))]
    return scale


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


def _root(tree: Tree, names: Sequence[str], scale: np.ndarray, nulls: bool) -> Node:
    at = written(tree.threshold / scale[tree.feature])

    def split(node: int, left: Node, right: Node) -> Node:
        made: Node = {"feature": names[tree.feature[node]], "threshold": _java(at[node])}
        if nulls:  # without it, a missing value is an error
            made["missing"] = "left" if tree.missing_left[node] else "right"
        return {**made, "left": left, "right": right}

    return nested_tree(tree, lambda n: {"value": _java(tree.value[n])}, split)


def _java(value: Any) -> str:
    text = single_text(value)
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def _document(
    kind: str,
    name: str,
    names: Sequence[str],
    columns: Sequence[int],
    params: dict[str, Any],
    norms: Mapping[int, tuple[np.float32, np.float32]],
) -> str:
    """Return a model; `columns`: its features; `norms`: mean and deviation of some of them."""
    features: list[Node] = []
    for j in columns:
        features.append({"name": names[j]})
        if j in norms:
            mean, deviation = map(single_text, norms[j])
            features[-1]["norm"] = {"class": STANDARD, "params": {"avg": mean, "std": deviation}}
    return dumped({"class": PACKAGE + kind, "name": name, "features": features, "params": params})
