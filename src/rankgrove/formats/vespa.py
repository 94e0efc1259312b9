"""Vespa: trees in the form of LightGBM's ``Booster.dump_model``, which Vespa imports.

Vespa makes one ranking expression of the file, ``if (CONDITION, LEFT, RIGHT) + if (...) + ...``.
The condition of a split depends on the field "default_left", not on "missing_type"::

    "<="    x < t                   if missing values go right
            !(x >= t)               if they go left
    "=="    x in [a, b]             if missing values go right
            isNan(x) || x in [a, b] if they go left

Vespa asks x < t where LightGBM and our reader ask x <= t. A threshold is written as a number
between two float32 numbers, where both are the same. It is nearer to the upper one, because Vespa
keeps thresholds and leaves of large models as float32.

A category is compared by its name, as a string, or by its code, as a number, if it has no name (the
list of its feature's names is 0, 1, 2, ... then). A document without a string has the empty string,
which is not NaN but an unknown category. For us unknown names are missing values. So a split on
names that sends missing values to the side of its set is written as the set of all other names,
with the children exchanged, and a threshold on codes that have names as the set of these names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.formats.foreign import ABSENT, Categories, beside, codes_of_nodes
from rankgrove.formats.lightgbm import (
    JSON_INFINITY,
    PANDAS,
    UNNAMED,
    categorical_columns,
    header,
    shrinkage,
    statistics,
    trees_with_base,
)
from rankgrove.formats.nested_trees import Node, dumped, nested_tree
from rankgrove.model.ensemble import Ensemble, floor_float32
from rankgrove.model.tree import Tree

# A rank feature or a function: name, name(arguments), name.output, name(arguments).output.
_FEATURE = re.compile(
    r"[A-Za-z_@][\w@$]*(\(([^()\n]|\(([^()\n]|\([^()\n]*\))*\))*\))?(\.[\w@$.]+)?", re.ASCII
)
_RESERVED = ("f", "true", "false")  # which ranking expressions take for something else
_CATEGORY = re.compile(r"[ !#-\[\]-~]*")  # what stays itself between quotes


def write_json(
    ensemble: Ensemble,
    names: Sequence[str],
    absent: str | None,
    categories: Categories,
    expanded: bool = False,
    probability: bool = False,
) -> str:
    """Return the JSON of a model for the folder ``models`` of a Vespa application.

    `expanded`: whether some features were made of categories, whose names Vespa cannot take;
    `probability`: Vespa takes the sigmoid of the sum.
    """
    check_features([names[j] for j in np.unique(ensemble.feature).tolist()], expanded)
    columns, codes = categorical_columns(ensemble, categories)
    unspeakable = {
        column: np.array([_CATEGORY.fullmatch(text) is None for text in of_codes])
        for column, of_codes in columns.items()
        if of_codes is not None
    }
    trees = [
        {
            "tree_index": t,
            "shrinkage": shrinkage(tree, base),
            "tree_structure": _root(tree, base, names, columns, unspeakable),
        }
        for t, (tree, base) in enumerate(trees_with_base(ensemble))
    ]
    return dumped(
        {
            "name": "tree",
            **header(ensemble, probability),
            "average_output": False,
            "feature_names": list(names),
            "feature_infos": {
                name: {"values": codes.get(column, [])} for column, name in enumerate(names)
            },
            **({ABSENT: absent} if absent else {}),
            "tree_info": trees,
            PANDAS: [
                list(range(max(codes[column]) + 1)) if of_codes is None else list(of_codes)
                for column, of_codes in columns.items()
            ],
            UNNAMED: [column for column, of_codes in columns.items() if of_codes is None],
        }
    )


def limits(threshold: np.ndarray) -> np.ndarray:
    """Return numbers t for which x < t and x <= t mean x <= threshold, for all float32 x.

    Rounded to float32 they are the float32 above the threshold. If the threshold is between float32
    numbers, nearer to the upper one, x < t decides like it for float64 x, too.
    """
    exact = np.asarray(threshold, np.float64)
    low = floor_float32(exact).astype(np.float64)
    high = beside(low, np.inf).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity becomes NaN, which fmax leaves out
        middle = low + (np.minimum(high, 2.0**128) - low) / 2.0
    above = np.fmax(np.nextafter(middle, np.inf), np.nextafter(exact, np.inf))
    most = np.nextafter(np.minimum(high, JSON_INFINITY), -np.inf)
    return np.where(np.isinf(exact), np.copysign(JSON_INFINITY, exact), np.minimum(above, most))


def _root(
    tree: Tree,
    base: float,
    names: Sequence[str],
    columns: Categories,
    unspeakable: Mapping[int, np.ndarray],
) -> Node:
    """Return a tree; `unspeakable` says which codes have names that Vespa cannot take."""
    known = {name: values.tolist() for name, values in statistics(tree, base).items()}
    at, sets = limits(tree.threshold).tolist(), codes_of_nodes(tree)

    def described(of: str, number: int) -> dict[str, Any]:
        return {name: values[number] for name, values in known.items() if name.startswith(of)}

    def leaf(number: int) -> Node:
        return {"leaf_index": number, **described("leaf_", number)}

    def split(node: int, left: Node, right: Node) -> Node:
        column, missing_left = int(tree.feature[node]), bool(tree.missing_left[node])
        codes, of_codes = sets[node], columns.get(column)
        if of_codes is not None:
            every = np.arange(len(of_codes))
            inside = every <= tree.threshold[node] if codes is None else np.isin(every, codes)
            if missing_left:
                inside, left, right, missing_left = ~inside, right, left, False
            codes = np.flatnonzero(inside)
            for code in np.flatnonzero(inside & unspeakable[column]).tolist():
                _refuse_category(of_codes[code], names[column])
        threshold: float | str = at[node]
        if codes is not None and codes.size == 0:
            if not missing_left:
                return right
            threshold, codes = -JSON_INFINITY, None  # which is above missing values alone
        elif codes is not None:
            threshold = "||".join(map(str, codes.tolist()))
        return {
            "split_index": node,
            "split_feature": column,
            "split_gain": float(tree.gain[node]),
            "threshold": threshold,
            "decision_type": "<=" if codes is None else "==",
            "default_left": missing_left,
            "missing_type": "NaN",
            **described("internal_", node),
            "left_child": left,
            "right_child": right,
        }

    return nested_tree(tree, leaf, split)


def check_features(names: Sequence[str], expanded: bool = False) -> None:
    """Refuse features whose names mean something else, or nothing, in an expression."""
    for name in names:
        if _FEATURE.fullmatch(name) is None or name in _RESERVED:
            remedy = (
                "Vespa holds sets of categories: leave expand_categories (--expand-categories) out."
                if expanded
                else "Use the names of rank features, such as 'bm25(title)' or 'attribute(price)', "
                "or of functions of the rank profile (letters, digits and underscores): features= "
                "(--features)."
            )
            raise ParameterError(
                f"Vespa puts the names of features into a ranking expression, where {name!r} is "
                f"not a feature. {remedy}"
            )


def _refuse_category(text: str, feature: str) -> None:
    raise ParameterError(
        "Vespa puts the names of categories into a ranking expression, whose strings are printable "
        f"ASCII without quotes and backslashes, and {feature!r} has the category {text!r}. Rename "
        "it, in the index and in the model's categories_; or train on codes without names, which "
        "are compared as numbers."
    )
