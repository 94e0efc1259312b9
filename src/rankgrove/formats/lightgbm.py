"""LightGBM: reads its text files (versions 2 to 4) and dumped JSON, writes its text.

A value goes left if x <= threshold, in double; a child that is a leaf is written as ``~leaf``.
Values with an absolute value of at most 1e-35 count as 0 (see zero_missing).

Where a missing value (NaN) goes depends on the type of the split: "NaN": to the default side;
"None": where 0 goes; "Zero": zeros are missing too. Scores are added in double, in the order of the
trees; the start value is in the leaves of the first tree. Those of a random forest (boosting=rf)
are divided by the number of rounds at the end.

A split on categories has the number of a set instead of a threshold; the sets are 32-bit words, of
which set s has those from ``cat_boundaries[s]`` to ``cat_boundaries[s + 1]``. What is in the set
goes left, everything else right: other codes, numbers below 0, and missing values. In a dump the
set is the codes, ``"3||7"``; a dump for Vespa (vespa.py) may send missing values left there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.category_chains import missing_right
from rankgrove.formats.foreign import (
    ABSENT,
    MOST_FEATURES,
    Averaged,
    Categories,
    Foreign,
    SetRoom,
    TreeParts,
    absent_of,
    as_list,
    inside,
    joined,
    make_tree,
    named_categories,
    names_or_none,
    reals,
    refuse_category,
    tested_codes,
    whole,
    whole_number,
)
from rankgrove.formats.zero_missing import room_for, without_zero_rule
from rankgrove.model.category_sets import MOST_CATEGORIES, WORD_BITS, CategorySets
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree

CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of a split's decision_type; the missing type follows
MISSING = ("None", "Zero", "NaN")
MOST_COLUMNS = 1 << 16
PLAIN = "Column_{}"  # the name of a feature that has none
JSON_INFINITY = 1e300  # written by dump_model for infinity
PANDAS = "pandas_categorical"  # the names of the categories of a data frame's columns
UNNAMED = "rankgrove_unnamed"  # in a dump: columns whose names of categories are their codes


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
        "feature_infos": header.get("feature_infos", "").split(),
        PANDAS: _pandas_line(text),
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
    trees, room = as_list(inside(document, "tree_info"), "tree_info"), SetRoom()
    return _assembled(document, [_tree_of_json(t, tree, room) for t, tree in enumerate(trees)])


def _pandas_line(text: str) -> Any:
    """Return the lists of categories in the last line that has some; None: there is none."""
    _, found, rest = text.rpartition(f"\n{PANDAS}:")
    return json.loads(rest.partition("\n")[0]) if found else None


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
        is_zero = (kinds == MISSING.index("Zero")) & (tree.set_of < 0)
        plain.append(without_zero_rule(tree, is_zero, room))
        room -= plain[-1].n_leaves if is_zero.any() else 0
    if any(new.n_leaves > tree.n_leaves for new, (tree, _) in zip(plain, trees, strict=True)):
        # counts of rows as weights in all trees, instead of hessians, as in the enlarged trees
        plain = [
            replace(new, weight=np.where(new.count < 0, new.weight, new.count)) for new in plain
        ]
    # a categorical split has the type NaN also where rare categories are pooled
    saw_missing = any(
        (kinds[tree.set_of < 0] == MISSING.index("NaN")).any() for tree, kinds in trees
    )
    objective = str(about.get("objective") or "") or None
    ensemble = joined(plain, n_features, 0.0, n_columns, single=False)
    averaged = None
    if about.get("average_output") and ensemble.n_trees:
        averaged = Averaged(ensemble, ensemble.n_rounds)
    categories, notes = _categories(about, ensemble)
    return Foreign(
        ensemble if averaged is None else averaged.flat(),
        "LightGBM",
        objective,
        names_or_none(about.get("feature_names", []), n_features, PLAIN),
        classes=(objective or "").split(" ")[0] == "multiclass",
        averaged=averaged,
        absent=absent_of(about.get(ABSENT), saw_missing),
        notes=notes,
        categories=categories,
    )


def _categories(about: Mapping[str, Any], ensemble: Ensemble) -> tuple[Categories, tuple[str, ...]]:
    """Return the categorical columns, with the names of a data frame's categories, and notes.

    There is one list of names per column of the type category, but it is not said which columns
    these are. Where all values of a column were the same, its type is not known either.
    """
    infos = about.get("feature_infos") or []
    if isinstance(infos, Mapping):  # of a dump: by name, without columns of one value
        infos = [infos.get(name, "none") for name in about.get("feature_names", [])]
    if len(infos) != ensemble.n_features:  # as in files of version 2
        infos = ["["] * ensemble.n_features
    unknown = {j for j, info in enumerate(infos) if info == "none"}
    columns = {j for j, info in enumerate(infos) if j not in unknown and _is_categorical(info)}
    columns |= set(ensemble.categorical_features().tolist())
    names = as_list(about.get(PANDAS) or [], PANDAS)
    if len(names) == len(columns | unknown):
        columns |= unknown
    if len(names) == len(columns):
        unnamed = set(whole(about.get(UNNAMED) or [], UNNAMED).tolist())
        pairs = {
            column: None if column in unnamed else listed
            for column, listed in zip(sorted(columns), names, strict=True)
        }
        return named_categories(pairs, ensemble), ()
    note = (
        f"It has names of categories for {len(names)} columns, and {len(columns)} categorical "
        "features: it is not known which is which. Give codes of categories as numbers."
    )
    return named_categories(dict.fromkeys(columns), ensemble), (note,) if names else ()


def _is_categorical(info: object) -> bool:
    """Return whether a feature's info lists codes of categories, and not a range of values."""
    if isinstance(info, Mapping):
        return bool(info.get("values"))
    return isinstance(info, str) and not info.startswith("[")


def _lines(text: str) -> dict[str, str]:
    """Return the values of ``key=value`` lines by key; other lines are keys with an empty value."""
    pairs = (line.partition("=") for line in text.splitlines() if line.strip())
    return {key.strip(): value for key, _, value in pairs}


def _tree_of_lines(number: int, lines: Mapping[str, str]) -> tuple[Tree, np.ndarray]:
    n_leaves = whole_number(inside(lines, "num_leaves"), "num_leaves", 1, 1 << 31)
    if lines.get("is_linear", "0") != "0":
        _refuse_linear(number)

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
    if np.any(kind < 0) or np.any(kind >> 2 > 2):
        raise ModelFileError(f"tree {number} has an unknown 'decision_type'.")
    is_set, missing = (kind & CATEGORICAL) != 0, kind >> 2
    default_left = ((kind & DEFAULT_LEFT) != 0) & ~is_set
    categories = None
    if is_set.any():
        n_sets = whole_number(inside(lines, "num_cat"), "num_cat", 0, n)
        bounds = integers("cat_boundaries", n_sets + 1)
        words = [int(word) for word in inside(lines, "cat_threshold").split()]
        sets = _sets(number, threshold[is_set], bounds, whole(words, "cat_threshold"))
        categories = np.where(is_set, threshold, -1.0).astype(np.int32), sets
        threshold = np.where(is_set, 0.0, threshold)
    rate = float(lines.get("shrinkage", 1.0)) or 1.0
    tree = make_tree(
        _features(integers("split_feature", n)),
        threshold,
        integers("left_child", n),
        integers("right_child", n),
        np.where((missing == 0) & ~is_set, threshold >= 0.0, default_left),
        value,
        gain=numbers("split_gain", n, 0.0),
        categories=categories,
        **{
            name: np.concatenate(
                [numbers(f"internal_{name}", n, out), numbers(f"leaf_{name}", n_leaves, out)]
            )
            for name, out in (("count", -1.0), ("weight", np.nan))
        },
        mean=np.concatenate([numbers("internal_value", n, np.nan), value]) / rate,
    )
    return tree, missing


def _sets(number: int, used: np.ndarray, bounds: np.ndarray, words: np.ndarray) -> CategorySets:
    """Return the sets of a tree, after checking them and the numbers of those that are used."""
    if not np.all((used >= 0.0) & (used < bounds.size - 1) & (used == used.round())):
        raise ModelFileError(f"tree {number} has a set of categories that does not exist.")
    rising = bounds[0] == 0 and bounds[-1] == words.size and np.all(np.diff(bounds) >= 0)
    if not rising or words.min(initial=0) < 0 or words.max(initial=0) >= 1 << WORD_BITS:
        raise ModelFileError(f"the sets of categories of tree {number} do not fit: it is damaged.")
    parts = []
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        filled = np.flatnonzero(words[first:last])
        size = int(filled[-1]) + 1 if filled.size else 0
        if size > MOST_CATEGORIES // WORD_BITS:
            refuse_category(number, (size - 1) * WORD_BITS)
        parts.append(words[first : first + size].astype(np.uint32))
    return CategorySets.of_words(parts)


def _tree_of_json(number: int, document: Any, room: SetRoom) -> tuple[Tree, np.ndarray]:
    """Read one tree of nested nodes, without recursion."""
    todo: list[tuple[Any, tuple[int, bool] | None]] = [(inside(document, "tree_structure"), None)]
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
        rule, categories = inside(node, "decision_type"), None
        # early files of version 2 have no type: NaN counts as 0
        kind, threshold = node.get("missing_type", "None"), inside(node, "threshold")
        if rule in ("==", "is"):  # "is" in the first files of version 2, which have no sets
            codes = [int(code) for code in str(threshold).split("||") if code]
            categories, threshold = room.checked(codes, number), 0.0
        elif rule not in ("<=", "no_greater"):
            raise ModelFileError(f"tree {number} has an unknown 'decision_type'.")
        threshold = float(threshold)
        if abs(threshold) >= JSON_INFINITY:
            threshold = math.copysign(math.inf, threshold)
        if kind not in MISSING:
            raise ModelFileError(f"tree {number} has a missing type {kind!r}: it is damaged.")
        default_left = bool(node.get("default_left", categories is None))
        if categories is None and kind == "None":
            default_left = threshold >= 0.0
        kinds.append(MISSING.index(kind))
        mean = float(node.get("internal_value", np.nan)) / rate
        at = parts.split(
            place,
            whole_number(inside(node, "split_feature"), "split_feature", 0, MOST_FEATURES),
            threshold,
            default_left,
            categories,
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


def _refuse_linear(number: int) -> None:
    raise ModelFileError(
        f"tree {number} has linear functions in its leaves, which cannot be read. Train it without "
        "linear_tree."
    )


# -- writing --------------------------------------------------------------------------------------


def write_text(
    ensemble: Ensemble,
    names: Sequence[str] | None,
    absent: str | None = None,
    categories: Categories | None = None,
    probability: bool = False,
) -> str:
    """Return the text of a model that ``lightgbm.Booster(model_file=...)`` loads.

    The names of categories are written if all categorical columns have some.
    """
    words = names or [PLAIN.format(j) for j in range(ensemble.n_features)]
    ensemble = missing_right(ensemble, words, "LightGBM")
    columns, codes = categorical_columns(ensemble, categories)
    infos = (
        ":".join(map(str, codes[j])) if j in codes else "[-inf:inf]"
        for j in range(ensemble.n_features)
    )
    parts = [
        f"Tree={t}\n{_tree_lines(tree, base)}\n\n"
        for t, (tree, base) in enumerate(trees_with_base(ensemble))
    ]
    head = [
        "tree",
        *(f"{key}={value}" for key, value in header(ensemble, probability).items()),
        "feature_names=" + " ".join(re.sub(r"\s", "_", name) for name in words),
        "feature_infos=" + " ".join(infos),
        *([f"{ABSENT}={absent}"] if absent else []),
        "tree_sizes=" + " ".join(str(len(part.encode())) for part in parts),
    ]
    words_of = list(columns.values())
    pandas = f"\n{PANDAS}:{json.dumps(words_of)}\n" if words_of and all(words_of) else ""
    return "\n".join(head) + "\n\n" + "".join(parts) + "end of trees\n" + pandas


# What the text and the dump for Vespa (vespa.py) share.


def header(ensemble: Ensemble, probability: bool = False) -> dict[str, Any]:
    """Return the first fields of a file; `probability`: LightGBM takes the sigmoid of the sum."""
    k = ensemble.n_columns
    single = "binary sigmoid:1" if probability else "lambdarank"
    return {
        "version": "v4",
        "num_class": k,
        "num_tree_per_iteration": k,
        "label_index": 0,
        "max_feature_idx": ensemble.n_features - 1,
        "objective": single if k == 1 else f"multiclass num_class:{k}",
    }


def categorical_columns(
    ensemble: Ensemble, categories: Categories | None
) -> tuple[Categories, dict[int, list[int]]]:
    """Return the names of categorical columns, and what a file lists as their codes.

    These are -1 for missing values, then the codes that have names, or else that splits test.
    `categories` has the columns that are known to be categorical, with the names of their codes.
    """
    tested = tested_codes(ensemble)
    columns: Categories = {**dict.fromkeys(tested), **(categories or {})}
    codes = {}
    for column, names in columns.items():
        listed = tested.get(column, ()) if names is None else range(len(names))
        codes[column] = [-1, *map(int, listed)]
    return dict(sorted(columns.items())), codes


def trees_with_base(ensemble: Ensemble) -> list[tuple[Tree, float]]:
    """Return the trees, at least one per column, each with what is added to all its leaves.

    The base is in the leaves of the first tree of every column, as in LightGBM.
    """
    k = ensemble.n_columns
    trees = [ensemble.tree(t) for t in range(ensemble.n_trees)] or [Tree.constant(0.0)] * k
    return [(tree, ensemble.base if t < k else 0.0) for t, tree in enumerate(trees)]


def _tree_lines(tree: Tree, base: float) -> str:
    n = tree.n_nodes
    kinds = (MISSING.index("NaN") << 2) | np.where(tree.missing_left, DEFAULT_LEFT, 0)
    with_set = np.flatnonzero(tree.set_of >= 0)
    words = [tree.sets.words_of(number) for number in tree.set_of[with_set].tolist()]
    threshold = tree.threshold.astype(np.float64)
    threshold[with_set], kinds[with_set] = np.arange(len(words)), kinds[with_set] | CATEGORICAL
    lines: dict[str, Any] = {"num_leaves": [tree.n_leaves], "num_cat": [len(words)]}
    if n:
        lines |= {
            "split_feature": tree.feature,
            "split_gain": tree.gain,
            "threshold": threshold,
            "decision_type": kinds,
            "left_child": tree.left,
            "right_child": tree.right,
        }
    lines |= statistics(tree, base)
    if words:
        lines["cat_boundaries"] = np.cumsum([0, *(one.size for one in words)])
        lines["cat_threshold"] = np.concatenate(words)
    lines |= {"is_linear": [0], "shrinkage": [shrinkage(tree, base)]}
    return "".join(
        f"{key}={' '.join(repr(v) for v in np.asarray(values).tolist())}\n"
        for key, values in lines.items()
    )


def statistics(tree: Tree, base: float) -> dict[str, np.ndarray]:
    """Return the values of the leaves, and what is known of training rows: 0 if it is not."""
    n = tree.n_nodes
    values = base + tree.value if base else tree.value
    if not n:
        return {"leaf_value": values}
    count, weight, mean = (
        np.nan_to_num(array) for array in (np.maximum(tree.count, 0), tree.weight, tree.mean)
    )
    return {
        "leaf_value": values,
        "leaf_weight": weight[n:],
        "leaf_count": count[n:].astype(np.int64),
        "internal_value": _rate(tree) * mean[:n] + base,
        "internal_weight": weight[:n],
        "internal_count": count[:n].astype(np.int64),
    }


def shrinkage(tree: Tree, base: float) -> float:
    """Return the number by which a reader divides values to get responses."""
    return 1 if base or not tree.n_nodes else _rate(tree)


def _rate(tree: Tree) -> float:
    """Return the ratio of the values of leaves to their responses; 1 if that is unknown."""
    mean = tree.mean[tree.n_nodes :]
    at = int(np.argmax(np.abs(np.nan_to_num(mean))))
    rate = tree.value[at] / mean[at] if mean[at] else np.nan
    return float(rate) if np.isfinite(rate) and rate > 0 else 1.0
