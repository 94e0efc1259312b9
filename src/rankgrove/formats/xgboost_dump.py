"""XGBoost's dumps: the JSON of ``Booster.get_dump`` and ``dump_model``.

A dump is a list of nested trees: a value goes to "yes" if x < split_condition, in float32, a
missing value to "missing". If split_condition is a list of categories, these go to "yes". A dump
lacks the base score, the numbers of classes and features, and the weights of dart; features have
names, by default ``f0``, ``f1``, ...
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
    SetRoom,
    TreeParts,
    absent_of,
    as_list,
    beside,
    inside,
    joined,
    learned_directions,
    named_categories,
)
from rankgrove.model.tree import Tree

_PLAIN = re.compile(r"f(\d{1,8})")
NO_BASE = (
    "XGBoost's dump does not have the base score, which is added to all scores: scores are lower "
    "than XGBoost's by that number, and rank the same. To make them equal, give base_score= "
    "(--base-score), the margin that scores start from."
)


def read_dump(document: Any, features: Sequence[str] | None, base_score: float | None) -> Foreign:
    """Read a dump; `features` are the names of all columns, in order."""
    listed = [
        json.loads(tree) if isinstance(tree, str) else tree for tree in as_list(document, "dump")
    ]
    columns, room = _Columns(features), SetRoom()
    trees = [_tree(t, tree, columns, room) for t, tree in enumerate(listed)]
    base = 0.0 if base_score is None else float(np.float32(base_score))
    n_features = columns.highest + 1 if features is None else len(features)
    ensemble = joined(trees, n_features, base, 1, single=True)
    return Foreign(
        ensemble,
        "XGBoost",
        None,
        None if features is None else tuple(features),
        least_features=features is None,
        absent=absent_of(None, learned_directions(ensemble)),
        notes=(NO_BASE,) if base_score is None else (),
        categories=named_categories({}, ensemble),
    )


class _Columns:
    """The columns of features by their names."""

    def __init__(self, features: Sequence[str] | None) -> None:
        self.place = {name: j for j, name in enumerate(features or ())}
        self.given = features is not None
        self.highest = 0

    def of(self, name: object, number: int) -> int:
        plain = _PLAIN.fullmatch(name) if isinstance(name, str) else None
        if isinstance(name, str) and name in self.place:
            column = self.place[name]
        elif plain and (not self.given or int(plain[1]) < len(self.place)):
            column = int(plain[1])
        elif self.given:
            raise ModelFileError(
                f"tree {number} splits on a feature {name!r}, which is not among the "
                f"{len(self.place)} of features= (--features). Name all features as XGBoost did."
            )
        else:
            raise ModelFileError(
                f"tree {number} splits on a feature {name!r}, but an XGBoost dump does not say "
                "which column that is. Give the names of all features in the order of the data: "
                "rg.load(path, features=[...]), or rankgrove convert --features names.txt."
            )
        if column > MOST_FEATURES:
            raise ModelFileError(f"tree {number} splits on a feature {name!r}: it is damaged.")
        self.highest = max(self.highest, column)
        return column


def _tree(number: int, root: Any, columns: _Columns, room: SetRoom) -> Tree:
    """Read one tree of nested nodes, without recursion."""
    parts = TreeParts()
    todo: list[tuple[Any, tuple[int, bool] | None]] = [(root, None)]
    while todo:
        node, place = todo.pop()
        if not isinstance(node, Mapping):
            raise ModelFileError(f"tree {number} has a node that is not an object: it is damaged.")
        if "leaf" in node:
            parts.leaf(place, _single(node["leaf"], number), **_known(node))
            continue
        name = inside(node, "split")
        if "split_condition" not in node:
            raise ModelFileError(
                f"tree {number} splits {name!r} as an indicator ('i' of a feature map), which a "
                "dump does not fully describe. Use the file that save_model writes."
            )
        column = columns.of(name, number)
        children = {
            inside(child, "nodeid"): child
            for child in as_list(inside(node, "children"), "children")
        }
        yes, no = inside(node, "yes"), inside(node, "no")
        missing = node.get("missing", yes)
        if len(children) != 2 or {yes, no} != set(children) or missing not in children:
            raise ModelFileError(
                f"a node of tree {number} lacks one of its children: it is damaged."
            )
        condition, at, codes = node["split_condition"], 0.0, None
        if isinstance(condition, list):
            codes = room.checked(condition, number)
        else:  # x < t is x <= the float32 before t
            at = float(beside(np.array(_single(condition, number)), -math.inf))
        at_node = parts.split(place, column, at, missing == yes, codes, **_known(node))
        todo.append((children[no], (at_node, False)))
        todo.append((children[yes], (at_node, True)))
    return parts.tree(np.float32)


def _known(node: Mapping[str, Any]) -> dict[str, float]:
    """Return the statistics that ``with_stats=True`` adds."""
    named = {"gain": "gain", "weight": "cover"}
    return {name: float(node[word]) for name, word in named.items() if word in node}


def _single(value: object, number: int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"tree {number} has {value!r} instead of a number: it is damaged.")
    with np.errstate(over="ignore"):
        return float(np.float32(value))
