"""LightGBM: reads its text files (versions 2 to 4) and dumped JSON, writes its text.

A value goes left if x <= threshold, in double; a child that is a leaf is written as ``~leaf``.
Values with an absolute value of at most 1e-35 count as 0 (see zero_missing).

Where a missing value (NaN) goes depends on the type of the split: "NaN": to the default side;
"None": where 0 goes; "Zero": zeros are missing too. Scores are added in double, in the order of the
trees; the start value is in the leaves of the first tree. Those of a random forest (boosting=rf)
are divided by the number of rounds at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import (
    ABSENT,
    MOST_FEATURES,
    Averaged,
    Foreign,
    TreeParts,
    absent_of,
    as_list,
    inside,
    joined,
    make_tree,
    names_or_none,
    reals,
    whole,
    whole_number,
)
from rankgrove.formats.zero_missing import room_for, without_zero_rule
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree

CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of a split's decision_type; the missing type follows
MISSING = ("None", "Zero", "NaN")
MOST_COLUMNS = 1 << 16
PLAIN = "Column_{}"  # the name of a feature that has none
JSON_INFINITY = 1e300  # written by dump_model for infinity


# -- reading --------------------------------------------------------------------------------------


def read_text(text: str) -> Foreign:
    """Read a model file of LightGBM, as written by ``Booster.save_model``."""
    trees_end = re.search(r"^(end of trees|feature[ _]importances:)", text, flags=re.MULTILINE)
    before = text[: trees_end.start()] if trees_end else text
    head, *parts = re.split(r"^Tree=.*$", before, flags=re.MULTILINE)
    if not head.strip():
        raise ModelFileError(
            "it begins with a tree: the lines before it ('tree', 'version=' and so on to "
            "'tree_sizes=') are missing. Use the whole file that save_model writes."
        )
    header = _lines(head)
    _check_number(header, len(parts), trees_end is not None)
    about = {
        **header,
        "feature_names": header.get("feature_names", "").split(),
        "average_output": "average_output" in header,
    }
    return _assembled(about, [_tree_of_lines(t, _lines(part)) for t, part in enumerate(parts)])


def _check_number(header: Mapping[str, str], n_trees: int, has_end: bool) -> None:
    """Refuse a file that lacks some of its trees."""
    listed = len(header["tree_sizes"].split()) if "tree_sizes" in header else None
    of_all = f" of the {listed:,} that tree_sizes lists" if listed is not None else ""
    if not has_end:
        raise ModelFileError(
            f"it ends within or after tree {max(0, n_trees - 1):,}{of_all}, without the line 'end "
            "of trees': the rest was lost. Save or copy the model again; if you cut it by hand, "
            "add that line after the last whole tree and remove the line tree_sizes=."
        )
    if listed is not None and listed != n_trees:
        raise ModelFileError(
            f"it has {n_trees:,} trees{of_all}: trees were removed or added by hand. Use the "
            f"whole model; or, to use these {n_trees:,} trees as they are, remove the line "
            "tree_sizes=. (booster.save_model(path, num_iteration=...) writes the first trees.)"
        )


def read_json(document: Any) -> Foreign:
    """Read the result of ``Booster.dump_model``; version 2 does not say whether it is a forest."""
    trees = as_list(inside(document, "tree_info"), "tree_info")
    return _assembled(document, [_tree_of_json(t, tree) for t, tree in enumerate(trees)])


def _assembled(about: Mapping[str, Any], trees: Sequence[tuple[Tree, np.ndarray]]) -> Foreign:
    """Return the model of trees, each with the missing types of its splits, as numbers."""
    n_features = 1 + whole_number(
        inside(about, "max_feature_idx"), "max_feature_idx", 0, MOST_FEATURES
    )
    n_columns = whole_number(
        inside(about, "num_tree_per_iteration"), "num_tree_per_iteration", 1, MOST_COLUMNS
    )
    plain: list[Tree] = []
    room = room_for(tree for tree, _ in trees)
    # check before any tree is traversed
    joined([tree for tree, _ in trees], n_features, 0.0, n_columns, single=False)
    for tree, kinds in trees:
        is_zero = kinds == MISSING.index("Zero")
        plain.append(without_zero_rule(tree, is_zero, room))
        room -= plain[-1].n_leaves if is_zero.any() else 0
    if any(new.n_leaves > tree.n_leaves for new, (tree, _) in zip(plain, trees, strict=True)):
        # counts of rows as weights in all trees, instead of hessians, as in the enlarged trees
        plain = [
            replace(new, weight=np.where(new.count < 0, new.weight, new.count)) for new in plain
        ]
    saw_missing = any((kinds == MISSING.index("NaN")).any() for _, kinds in trees)
    objective = str(about.get("objective") or "") or None
    ensemble = joined(plain, n_features, 0.0, n_columns, single=False)
    averaged = None
    if about.get("average_output") and ensemble.n_trees:
        averaged = Averaged(ensemble, ensemble.n_rounds)
    return Foreign(
        ensemble if averaged is None else averaged.flat(),
        "LightGBM",
        objective,
        names_or_none(about.get("feature_names", []), n_features, PLAIN),
        classes=(objective or "").split(" ")[0] == "multiclass",
        averaged=averaged,
        absent=absent_of(about.get(ABSENT), saw_missing),
    )


def _lines(text: str) -> dict[str, str]:
    """Return the values of ``key=value`` lines by key; other lines are keys with an empty value."""
    pairs = (line.partition("=") for line in text.splitlines() if line.strip())
    return {key.strip(): value for key, _, value in pairs}


def _tree_of_lines(number: int, lines: Mapping[str, str]) -> tuple[Tree, np.ndarray]:
    n_leaves = whole_number(inside(lines, "num_leaves"), "num_leaves", 1, 1 << 31)
    if lines.get("is_linear", "0") != "0":
        _refuse_linear(number)
    if lines.get("num_cat", "0") != "0":
        _refuse_categories(number)

    def numbers(name: str, n: int, default: float | None = None) -> np.ndarray:
        if name not in lines and default is not None:
            return np.full(n, default)
        return reals(inside(lines, name).split(), name, n)

    def integers(name: str, n: int) -> np.ndarray:
        return whole([int(word) for word in inside(lines, name).split()], name, n)

    n = n_leaves - 1
    value = numbers("leaf_value", n_leaves)
    if n == 0:
        return make_tree([], np.empty(0), [], [], [], value), np.zeros(0, np.int64)
    kind, threshold = integers("decision_type", n), numbers("threshold", n)
    if np.any(kind & CATEGORICAL):
        _refuse_categories(number)
    if np.any(kind < 0) or np.any(kind >> 2 > 2):
        raise ModelFileError(f"tree {number} has an unknown 'decision_type'.")
    default_left, missing = (kind & DEFAULT_LEFT) != 0, kind >> 2
    rate = float(lines.get("shrinkage", 1.0)) or 1.0
    tree = make_tree(
        _features(integers("split_feature", n)),
        threshold,
        integers("left_child", n),
        integers("right_child", n),
        np.where(missing == 0, threshold >= 0.0, default_left),
        value,
        gain=numbers("split_gain", n, 0.0),
        **{
            name: np.concatenate(
                [numbers(f"internal_{name}", n, out), numbers(f"leaf_{name}", n_leaves, out)]
            )
            for name, out in (("count", -1.0), ("weight", np.nan))
        },
        mean=np.concatenate([numbers("internal_value", n, np.nan), value]) / rate,
    )
    return tree, missing


def _tree_of_json(number: int, document: Any) -> tuple[Tree, np.ndarray]:
    """Read one tree of nested nodes, without recursion."""
    todo: list[tuple[Any, tuple[int, bool] | None]] = [(inside(document, "tree_structure"), None)]
    if document.get("num_cat"):
        _refuse_categories(number)
    rate = float(document.get("shrinkage", 1.0)) or 1.0
    parts, kinds = TreeParts(), []
    while todo:
        node, place = todo.pop()
        if not isinstance(node, Mapping):
            raise ModelFileError(f"tree {number} has a node that is not an object: it is damaged.")
        if "leaf_value" in node:
            if "leaf_coeff" in node:
                _refuse_linear(number)
            value = float(node["leaf_value"])
            parts.leaf(place, value, **_known(node, "leaf", value / rate))
            continue
        if inside(node, "decision_type") not in ("<=", "no_greater"):
            _refuse_categories(number)
        # early files of version 2 have no type: NaN counts as 0
        kind, threshold = node.get("missing_type", "None"), float(inside(node, "threshold"))
        if abs(threshold) >= JSON_INFINITY:
            threshold = math.copysign(math.inf, threshold)
        if kind not in MISSING:
            raise ModelFileError(f"tree {number} has a missing type {kind!r}: it is damaged.")
        default_left = bool(node.get("default_left", True))
        kinds.append(MISSING.index(kind))
        mean = float(node.get("internal_value", np.nan)) / rate
        at = parts.split(
            place,
            whole_number(inside(node, "split_feature"), "split_feature", 0, MOST_FEATURES),
            threshold,
            threshold >= 0.0 if kind == "None" else default_left,
            gain=float(node.get("split_gain", 0.0)),
            **_known(node, "internal", mean),
        )
        todo.append((inside(node, "right_child"), (at, False)))
        todo.append((inside(node, "left_child"), (at, True)))
    return parts.tree(), np.array(kinds, np.int64)


def _known(node: Mapping[str, Any], of: str, mean: float) -> dict[str, float]:
    statistics = {name: node.get(f"{of}_{name}") for name in ("count", "weight")}
    return {name: float(v) for name, v in statistics.items() if v is not None} | {"mean": mean}


def _features(numbers: np.ndarray) -> np.ndarray:
    if numbers.size and not 0 <= numbers.min() <= numbers.max() <= MOST_FEATURES:
        raise ModelFileError("a split on a feature that does not exist: it is damaged.")
    return numbers


def _refuse_categories(number: int) -> None:
    raise ModelFileError(
        f"tree {number} has a categorical split (a set of categories instead of a threshold), "
        "which cannot be read. Train it with one column per category, and without "
        "categorical_feature."
    )


def _refuse_linear(number: int) -> None:
    raise ModelFileError(
        f"tree {number} has linear functions in its leaves, which cannot be read. Train it without "
        "linear_tree."
    )


# -- writing --------------------------------------------------------------------------------------


def write_text(ensemble: Ensemble, names: Sequence[str] | None, absent: str | None = None) -> str:
    """Return the text of a model that ``lightgbm.Booster(model_file=...)`` loads."""
    k = ensemble.n_columns
    words = names or [PLAIN.format(j) for j in range(ensemble.n_features)]
    trees = [ensemble.tree(t) for t in range(ensemble.n_trees)]
    if not trees:
        trees = [make_tree([], np.empty(0), [], [], [], [0.0]) for _ in range(k)]
    # the base is in the leaves of the first tree of every column, as in LightGBM
    base = [ensemble.base if t < k else 0.0 for t in range(len(trees))]
    parts = [f"Tree={t}\n{_tree_lines(tree, base[t])}\n\n" for t, tree in enumerate(trees)]
    objective = "lambdarank" if k == 1 else f"multiclass num_class:{k}"
    head = [
        "tree",
        "version=v4",
        f"num_class={k}",
        f"num_tree_per_iteration={k}",
        "label_index=0",
        f"max_feature_idx={ensemble.n_features - 1}",
        f"objective={objective}",
        "feature_names=" + " ".join(re.sub(r"\s", "_", name) for name in words),
        "feature_infos=" + " ".join(["[-inf:inf]"] * ensemble.n_features),
        *([f"{ABSENT}={absent}"] if absent else []),
        "tree_sizes=" + " ".join(str(len(part.encode())) for part in parts),
    ]
    return "\n".join(head) + "\n\n" + "".join(parts) + "end of trees\n"


def _tree_lines(tree: Tree, base: float) -> str:
    n = tree.n_nodes
    kinds = (MISSING.index("NaN") << 2) | np.where(tree.missing_left, DEFAULT_LEFT, 0)
    values = base + tree.value if base else tree.value
    lines: dict[str, Any] = {"num_leaves": [tree.n_leaves], "num_cat": [0]}
    if n:
        lines |= {
            "split_feature": tree.feature,
            "split_gain": tree.gain,
            "threshold": tree.threshold.astype(np.float64),
            "decision_type": kinds,
            "left_child": tree.left,
            "right_child": tree.right,
        }
    lines["leaf_value"] = values
    count, weight, mean = (
        np.nan_to_num(array) for array in (np.maximum(tree.count, 0), tree.weight, tree.mean)
    )
    if n:
        rate = _rate(tree)
        lines |= {
            "leaf_weight": weight[n:],
            "leaf_count": count[n:].astype(np.int64),
            "internal_value": rate * mean[:n] + base,
            "internal_weight": weight[:n],
            "internal_count": count[:n].astype(np.int64),
        }
    lines |= {"is_linear": [0], "shrinkage": [1 if base or not n else _rate(tree)]}
    return "".join(
        f"{key}={' '.join(repr(v) for v in np.asarray(values).tolist())}\n"
        for key, values in lines.items()
    )


def _rate(tree: Tree) -> float:
    """Return the ratio of the values of leaves to their responses; 1 if that is unknown."""
    mean = tree.mean[tree.n_nodes :]
    at = int(np.argmax(np.abs(np.nan_to_num(mean))))
    rate = tree.value[at] / mean[at] if mean[at] else np.nan
    return float(rate) if np.isfinite(rate) and rate > 0 else 1.0
