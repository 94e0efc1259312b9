"""Vespa: what it makes of model files, and how a content node adds it up.

An importer turns a file into one ranking expression, ``if (CONDITION, TRUE, FALSE) + if (...)``:

========================  =============================  =======================================
file                      condition of a split           leaves, base
========================  =============================  =======================================
LightGBM's dump           x < t; !(x >= t) where missing  the file's float64; no base
                          values go left; x in [...]
XGBoost's dump (an array) the same, t a float32           the file's float64; no base
XGBoost's UBJ             the same, t the float32 below   ``base_weights``; base_score, or its
                          the file's                      logit for objectives ":logistic"
========================  =============================  =======================================

Neighbouring constants are added up first. A content node computes in double, tree after tree. Sums
of many or large trees become a "VM forest": thresholds and leaves are rounded to float32, and the
trees are added in another order. With ``vespa.eval.use_fast_forest`` values are rounded, too.

Values of features are numbers, NaN where a document has none. Of a feature whose categories are
strings they stand for strings: a whole number is the place in the list of names, everything else an
unknown string, NaN the empty string.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats import ubjson
from rankgrove.parity.descent import leaves_reached
from rankgrove.parity.engine import EngineModel
from rankgrove.parity.vespa_expressions import read_profile

_IMPORTERS = "model-integration/src/main/java/ai/vespa/rankingexpression/importer"
SOURCES = tuple(
    f"vespa-engine/vespa 1f79d33d {path}"
    for path in (
        f"{_IMPORTERS}/lightgbm/LightGBMParser.java",
        f"{_IMPORTERS}/xgboost/AbstractXGBoostParser.java",
        f"{_IMPORTERS}/xgboost/XGBoostParser.java",
        f"{_IMPORTERS}/xgboost/XGBoostUbjParser.java",
        "searchlib/src/main/java/com/yahoo/searchlib/rankingexpression/transform/Simplifier.java",
        "eval/src/vespa/eval/eval/gbdt.cpp",
        "eval/src/vespa/eval/eval/vm_forest.cpp",
        "eval/src/vespa/eval/eval/fast_forest.cpp",
        "eval/src/vespa/eval/eval/llvm/llvm_wrapper.cpp",
    )
)
LESS, NOT_GREATER_EQUAL, IN, NAN_OR_IN = range(4)  # kinds of conditions
_LARGE_TREE, _LONG_PATHS, _MOST_LEAVES = 12, 2500.0, 25000
_UBJ_LENGTHS = (b"i", b"U", b"I", b"l", b"L")  # how a key begins in UBJ
_MOST_IN_VM_SET, _MOST_FIXED, _MOST_FAST = 255, 64, 2048


@dataclass
class VespaTree:
    """An expression of nested ifs; its true branch is left."""

    kind: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    constant: list[float] = field(default_factory=list)
    members: list[frozenset[float]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    root: int = -1

    @property
    def is_constant(self) -> bool:
        """Whether the tree has one leaf: a constant, not a tree, to Vespa."""
        return self.root < 0

    @property
    def is_tree(self) -> bool:
        """Whether a content node takes it for a tree of a forest."""
        return not self.is_constant and NAN_OR_IN not in self.kind

    def add_leaf(self, value: float) -> int:
        """Add a leaf; return its place."""
        self.value.append(value)
        return ~(len(self.value) - 1)

    def add_split(
        self, kind: int, column: int, constant: float, members: frozenset[float] = frozenset()
    ) -> int:
        """Add a node, whose children are still to be set; return its place."""
        self.kind.append(kind)
        self.column.append(column)
        self.constant.append(constant)
        self.members.append(members)
        self.left.append(-1)
        self.right.append(-1)
        return len(self.kind) - 1

    def set_child(self, parent: int, is_left: bool, child: int) -> None:
        """Hang a node or leaf below its parent; -1: it is the root."""
        if parent < 0:
            self.root = child
        else:
            (self.left if is_left else self.right)[parent] = child

    def mean_depth(self) -> float:
        """Return the mean number of nodes above a leaf."""
        depth, total = {self.root: 0}, 0
        for node in range(len(self.kind)):  # parents come first
            for child in (self.left[node], self.right[node]):
                depth[child] = depth[node] + 1
                total += depth[child] if child < 0 else 0
        return total / len(self.value)

    def scores(self, values: np.ndarray, *, single: bool) -> np.ndarray:
        """Return the leaves of documents; `single`: thresholds and leaves are float32."""
        constant, value = np.array(self.constant), np.array(self.value)
        if single:
            with np.errstate(over="ignore"):
                constant = constant.astype(np.float32).astype(np.float64)
                value = value.astype(np.float32).astype(np.float64)
        kind, column = np.array(self.kind, np.int64), np.array(self.column, np.int64)

        def is_true(nodes: np.ndarray, rows: np.ndarray) -> np.ndarray:
            x, t = values[rows, column[nodes]], constant[nodes]
            true = np.where(kind[nodes] == LESS, x < t, ~(x >= t))
            for node in np.unique(nodes[kind[nodes] >= IN]).tolist():
                here = nodes == node
                true[here] = np.isin(x[here], list(self.members[node]))
                if kind[node] == NAN_OR_IN:
                    true[here] |= np.isnan(x[here])
            return true

        left, right = np.array(self.left, np.int64), np.array(self.right, np.int64)
        return value[leaves_reached(len(values), self.root, left, right, is_true)]


@dataclass(frozen=True)
class VespaForest:
    """A sum of trees and constants in a content node.

    Attributes
    ----------
    features : names of the features that splits test, in the order of the first one of each
    parts : the parts of the sum, in the order of the expression
    link : ``"sigmoid"``, ``"exp"`` or ``""``
    strings : columns whose values stand for strings
    fast : whether vespa.eval.use_fast_forest is set
    """

    features: tuple[str, ...]
    parts: tuple[VespaTree, ...]
    link: str = ""
    strings: frozenset[int] = frozenset()
    fast: bool = False

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return a content node's scores of documents; NaN where a document lacks a feature."""
        values = np.array(values, np.float64)
        for column in self.strings:  # no string is NaN
            values[np.isnan(values[:, column]), column] = -1.0
        parts = _folded(self.parts)
        n_trees = next((n for n, part in enumerate(parts) if not part.is_tree), len(parts))
        # only a sum of trees is a forest, and only from its begin on
        forest = parts[:n_trees] if n_trees > 1 else []
        fast = self.fast and n_trees == len(parts) > 1 and not self.link
        total = _fast_forest(forest, values) if fast else None
        if total is None and forest and _is_large(forest):
            total = np.zeros(len(values))
            for tree in _extracted(forest):
                total = total + tree.scores(values, single=True)
        if total is None:
            forest, total = [], np.zeros(len(values))
        for number, part in enumerate(parts[len(forest) :]):
            score = part.scores(values, single=False)
            total = score if number == 0 and not forest else total + score
        with np.errstate(over="ignore"):
            if self.link == "sigmoid":
                return np.asarray(1.0 / (1.0 + np.exp(-1.0 * total)))
            return np.exp(total) if self.link == "exp" else total


def _folded(parts: Sequence[VespaTree]) -> list[VespaTree]:
    """Return the parts with neighbouring constants added up, as the config server does."""
    made: list[VespaTree] = []
    for part in parts:
        if part.is_constant and made and made[-1].is_constant:
            made[-1] = VespaTree(value=[made[-1].value[0] + part.value[0]])
        else:
            made.append(part)
    return made


def _extracted(forest: Sequence[VespaTree]) -> list[VespaTree]:
    """Return trees in the order in which forests keep them: the sum is taken apart from its end."""
    return [*reversed(forest[2:]), *forest[:2]]


def _is_large(forest: Sequence[VespaTree]) -> bool:
    """Return whether a sum becomes a VM forest."""
    sizes = [len(tree.value) for tree in forest]
    long_paths = sum(tree.mean_depth() for tree in forest) > _LONG_PATHS
    if not ((max(sizes) > _LARGE_TREE and long_paths) or sum(sizes) > _MOST_LEAVES):
        return False
    largest_set = max((len(codes) for tree in forest for codes in tree.members), default=0)
    return largest_set <= _MOST_IN_VM_SET


def _fast_forest(forest: Sequence[VespaTree], values: np.ndarray) -> np.ndarray | None:
    """Return the scores of the fast forest; None if it does not take such trees."""
    most = max(len(tree.value) for tree in forest)
    if any(IN in tree.kind for tree in forest) or most > _MOST_FAST:
        return None
    with np.errstate(over="ignore"):
        single = values.astype(np.float32).astype(np.float64)
    leaves = [tree.scores(single, single=True) for tree in _extracted(forest)]
    sums = [np.zeros(len(values)), np.zeros(len(values))]
    in_fours = len(leaves) - len(leaves) % 4 if most <= _MOST_FIXED else 0
    for number, leaf in enumerate(leaves):
        lane = number % 2 if number < in_fours else 0
        sums[lane] = sums[lane] + leaf
    return sums[0] + sums[1] if most <= _MOST_FIXED else sums[0]


# -- importers ------------------------------------------------------------------------------------


def read(data: bytes, fast: bool = False) -> EngineModel:
    """Parse a file of the folder ``models``, or a rank profile of ours, by what it is."""
    start = data.lstrip()[:12]
    if start.startswith(b"rank-profile"):
        return read_profile(data.decode())
    try:
        if start.startswith(b"["):
            return _xgboost_dump(json.loads(data), fast)
        if data[:1] == b"{" and data[1:2] in _UBJ_LENGTHS:
            return _xgboost_ubj(ubjson.decode(data), fast)
        document = json.loads(data)
        if "tree_info" not in document:
            raise ModelFileError(
                "Vespa imports LightGBM's dump, XGBoost's dump and XGBoost's UBJ; the JSON of "
                "XGBoost's save_model is not imported."
            )
        return _lightgbm(document, fast)
    except ModelFileError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"Vespa cannot import the model: {error!r}.") from None


def read_fast(data: bytes) -> EngineModel:
    """Parse a model for a content node with vespa.eval.use_fast_forest."""
    return read(data, fast=True)


@dataclass
class _Columns:
    """Features in the order of their first split."""

    names: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


def _lightgbm(document: Mapping[str, Any], fast: bool) -> VespaForest:
    names = [str(name) for name in document["feature_names"]]
    lists = _category_lists(document, names)
    columns, strings = _Columns(), set()
    parts = []
    for entry in document["tree_info"]:
        tree = VespaTree()
        todo: list[tuple[Mapping[str, Any], int, bool]] = [(entry["tree_structure"], -1, True)]
        while todo:
            node, parent, is_left = todo.pop()
            if "left_child" not in node and "right_child" not in node:
                tree.set_child(parent, is_left, tree.add_leaf(float(node.get("leaf_value", 0.0))))
                continue
            feature, nan_left = node["split_feature"], bool(node.get("default_left", False))
            column = columns.of(names[feature])
            if node["decision_type"] == "==":
                members, are_strings = _members(str(node["threshold"]), lists.get(feature))
                if are_strings:
                    strings.add(column)
                here = tree.add_split(NAN_OR_IN if nan_left else IN, column, 0.0, members)
            else:
                kind = NOT_GREATER_EQUAL if nan_left else LESS
                here = tree.add_split(kind, column, float(node["threshold"]))
            tree.set_child(parent, is_left, here)
            todo += [(node["right_child"], here, False), (node["left_child"], here, True)]
        parts.append(tree)
    objective = str(document["objective"])
    link = "sigmoid" if objective.startswith("binary") or objective == "cross_entropy" else ""
    link = "exp" if objective in ("poisson", "gamma", "tweedie") else link
    return VespaForest(tuple(columns.names), tuple(parts), link, frozenset(strings), fast)


def _category_lists(document: Mapping[str, Any], names: Sequence[str]) -> dict[int, list[Any]]:
    """Return the list of categories of every feature that Vespa takes for categorical."""
    infos = document.get("feature_infos")
    if isinstance(infos, Mapping):
        columns = [
            j
            for j, name in enumerate(names)
            if (infos.get(name) or {}).get("values") not in (None, [])
        ]
    else:
        found: set[int] = set()
        todo = [entry["tree_structure"] for entry in document["tree_info"]]
        while todo:
            node = todo.pop()
            if "left_child" in node:
                if node["decision_type"] == "==":
                    found.add(node["split_feature"])
                todo += [node["left_child"], node["right_child"]]
        columns = sorted(found)
    return dict(zip(columns, document["pandas_categorical"], strict=False))


def _members(threshold: str, names: Sequence[Any] | None) -> tuple[frozenset[float], bool]:
    """Return the values in a set, and whether they stand for strings."""
    codes = [int(code) for code in threshold.split("||")]
    if names is None:  # Vespa compares with the codes in quotes
        return frozenset(map(float, codes)), True
    if all(isinstance(name, int) and not isinstance(name, bool) for name in names):
        return frozenset(float(names[code]) for code in codes), False
    texts = {str(names[code]) for code in codes}
    return frozenset(float(j) for j, name in enumerate(names) if str(name) in texts), True


def _xgboost_dump(document: Sequence[Any], fast: bool) -> VespaForest:
    known = {
        "nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "leaf", "children"
    }  # fmt: skip
    columns, parts = _Columns(), []
    for root in document:
        tree = VespaTree()
        todo: list[tuple[Mapping[str, Any], int, bool]] = [(root, -1, True)]
        while todo:
            node, parent, is_left = todo.pop()
            for name in node:
                if name not in known:
                    raise ModelFileError(
                        f"Vespa refuses the field {name!r} in XGBoost's dump: dump it without "
                        "statistics (with_stats=False)."
                    )
            if node.get("children") is None:
                tree.set_child(parent, is_left, tree.add_leaf(float(node.get("leaf", 0.0))))
                continue
            yes, no = node["children"]
            if node["yes"] != yes["nodeid"]:
                yes, no = no, yes
            name = _plain_name(str(node["split"]))
            threshold = float(np.float32(node.get("split_condition", 0.0)))
            kind = NOT_GREATER_EQUAL if node.get("missing", 0) == node["yes"] else LESS
            here = tree.add_split(kind, columns.of(name), threshold)
            tree.set_child(parent, is_left, here)
            todo += [(no, here, False), (yes, here, True)]
        parts.append(tree)
    return VespaForest(tuple(columns.names), tuple(parts), fast=fast)


def _plain_name(split: str) -> str:
    return f"xgboost_input_{split}" if split.lstrip("+-").isdigit() else split


def _xgboost_ubj(document: Mapping[str, Any], fast: bool) -> VespaForest:
    learner = document["learner"]
    names = [str(name) for name in learner.get("feature_names") or []]
    columns, parts = _Columns(), []
    for entry in learner["gradient_booster"]["model"]["trees"]:
        left, right = entry["left_children"], entry["right_children"]
        with np.errstate(over="ignore"):
            at = np.asarray(entry["split_conditions"], np.float32)
            lower = np.nextafter(at, -np.finfo(np.float32).max, dtype=np.float32)
        tree = VespaTree()
        todo: list[tuple[int, int, bool]] = [(0, -1, True)]
        while todo:
            node, parent, is_left = todo.pop()
            if left[node] == -1:
                value = float(np.float32(entry["base_weights"][node]))
                tree.set_child(parent, is_left, tree.add_leaf(value))
                continue
            feature = int(entry["split_indices"][node])
            name = names[feature] if names else f"xgboost_input_{feature}"
            kind = NOT_GREATER_EQUAL if entry["default_left"][node] else LESS
            here = tree.add_split(kind, columns.of(name), float(lower[node]))
            tree.set_child(parent, is_left, here)
            todo += [(int(right[node]), here, False), (int(left[node]), here, True)]
        parts.append(tree)
    objective = str((learner.get("objective") or {}).get("name", "reg:squarederror"))
    base = _base_score(learner, objective)
    if objective.endswith(":logistic"):
        base = math.log(base) - math.log(1.0 - base) if 0.0 < base < 1.0 else 0.0
    parts.append(VespaTree(value=[base]))
    return VespaForest(tuple(columns.names), tuple(parts), fast=fast)


def _base_score(learner: Mapping[str, Any], objective: str) -> float:
    text = (learner.get("learner_model_param") or {}).get("base_score")
    if isinstance(text, str):
        return float(text.replace("[", "").replace("]", ""))
    return 0.5 if objective.endswith(":logistic") else 0.0
