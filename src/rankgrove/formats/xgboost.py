"""XGBoost: reads its JSON and UBJSON files, writes JSON.

A value goes left if x < threshold, in float32, a missing value to the default side; the values of
leaves are stored among the thresholds. Scores are float32: the base score, then every tree, in
their order. The base score is a prediction; its margin is added. This was found by comparing with
versions 1.7, 2.1, 3.0 and 3.2.

A node of the split type 1 has a set of categories, which goes *right*; everything else goes left,
and a missing value to the default side. Node ``categories_nodes[s]`` has ``categories_sizes[s]`` of
the ``categories``, from ``categories_segments[s]`` on. Here sets go left: children are exchanged.
"""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import (
    ABSENT,
    MOST_FEATURES,
    Categories,
    Foreign,
    SetRoom,
    absent_of,
    as_list,
    beside,
    codes_of_nodes,
    inside,
    joined,
    learned_directions,
    make_tree,
    named_categories,
    names_or_none,
    reals,
    whole,
    whole_number,
)
from rankgrove.formats.nested_trees import with_base
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

# Objectives whose base score is a probability or a mean; for the others it is a margin.
LOGISTIC = ("binary:logistic", "reg:logistic")
LOGARITHMIC = ("count:poisson", "reg:gamma", "reg:tweedie")
IDENTICAL = (
    "binary:logitraw", "binary:hinge", "multi:softmax", "multi:softprob", "rank:map", "rank:ndcg",
    "rank:pairwise", "reg:absoluteerror", "reg:linear", "reg:pseudohubererror", "reg:squarederror",
    "reg:squaredlogerror",
)  # fmt: skip
LEAST_PROBABILITY = np.float32(1e-6)  # a base score of 0 or 1 is moved by this
MOST_CLASSES = 1 << 16
_VERSION = [2, 1, 0]  # of the written form; 1.7 to 3.2 were tested to read it
_ROOT = 2147483647  # the parent of the root
_WHOLE_NAMES = (3, 4)  # before, names of categories that are not ASCII are cut at wrong places


# -- reading --------------------------------------------------------------------------------------


def read_document(document: Any) -> Foreign:
    """Read the content of a JSON or UBJSON file, as written by ``Booster.save_model``."""
    learner = inside(document, "learner")
    params = inside(learner, "learner_model_param")
    objective = str(inside(learner, "objective", "name"))
    booster = inside(learner, "gradient_booster")
    name = inside(booster, "name")
    if name not in ("gbtree", "dart"):
        raise ModelFileError(
            f"its booster is {name!r}, which has no trees. Train it with booster=gbtree or dart."
        )
    model = inside(booster, "gbtree", "model") if name == "dart" else inside(booster, "model")
    if whole_number(params.get("num_target", 1), "num_target", 0, MOST_CLASSES) > 1:
        raise ModelFileError(
            "it has several targets, which cannot be read: train one model per target."
        )
    n_features = whole_number(inside(params, "num_feature"), "num_feature", 0, MOST_FEATURES)
    n_columns = max(1, whole_number(params.get("num_class", 0), "num_class", 0, MOST_CLASSES))
    listed = as_list(inside(model, "trees"), "trees")
    factor = np.ones(len(listed), np.float32)
    if name == "dart":
        factor = reals(inside(booster, "weight_drop"), "weight_drop", len(listed))
        factor = factor.astype(np.float32)
    # the hessian of a squared error is 1: the sum of hessians is the number of rows
    counts = objective == "reg:squarederror"
    room = SetRoom()
    trees = [
        _tree(t, tree, np.float32(w), counts, room)
        for t, (tree, w) in enumerate(zip(listed, factor, strict=True))
    ]
    column = whole(inside(model, "tree_info"), "tree_info", len(trees))
    margins = _margins(inside(params, "base_score"), objective, n_columns)
    ordered = _by_round(trees, column, n_columns)
    base = float(margins[0])
    if np.any(margins != margins[0]):  # one per class: a first round of constants
        base = 0.0
        ordered = [*(_constant(float(margin)) for margin in margins), *ordered]
    names = learner.get("feature_names", []) if isinstance(learner, dict) else []
    ensemble = joined(ordered, n_features, base, n_columns, single=True)
    absent = learner["attributes"].get(ABSENT) if learner.get("attributes") else None
    return Foreign(
        ensemble,
        "XGBoost",
        objective,
        names_or_none(names, n_features),
        classes=objective in ("multi:softmax", "multi:softprob"),
        absent=absent_of(absent, learned_directions(ensemble)),
        categories=_categories(learner, model, ensemble, document.get("version")),
    )


def _categories(learner: Any, model: Any, ensemble: Ensemble, version: Any) -> Categories:
    """Return the categorical columns; files of version 3.1 and later have the names of codes."""
    ascii_only = tuple(as_list([] if version is None else version, "version"))[:2] < _WHOLE_NAMES
    types = as_list(learner.get("feature_types", []), "feature_types")
    names: dict[int, object] = {
        column: None for column, kind in enumerate(types[: ensemble.n_features]) if kind == "c"
    }
    listed = as_list((model.get("cats") or {}).get("enc", []), "enc")
    for column, one in enumerate(listed[: ensemble.n_features]):
        values = as_list(inside(one, "values"), "values")
        if "offsets" in one and len(values):
            ends = whole(one["offsets"], "offsets")
            text = (whole(values, "values") & 255).astype(np.uint8).tobytes()
            pieces = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
            listed_names = [text[first:last].decode(errors="replace") for first, last in pieces]
            names[column] = listed_names if text.isascii() or not ascii_only else None
        elif len(values):
            names[column] = np.asarray(values).tolist()
    return named_categories(names, ensemble)


def _tree(number: int, document: Any, factor: np.float32, counts: bool, room: SetRoom) -> Tree:
    left = whole(inside(document, "left_children"), "left_children")
    n = left.size
    right = whole(inside(document, "right_children"), "right_children", n)
    width = document.get("tree_param", {}).get("size_leaf_vector", 1)
    if whole_number(width, "size_leaf_vector", 0, MOST_CLASSES) > 1:
        raise ModelFileError(
            "its leaves have several values (multi_strategy=multi_output_tree), which cannot be "
            "read. Train it with one_output_per_tree."
        )
    kinds = whole(document.get("split_type", [0] * n), "split_type", n)
    is_leaf = left == -1
    condition = _single(inside(document, "split_conditions"), "split_conditions", n)
    feature = whole(inside(document, "split_indices"), "split_indices", n)
    to_left = whole(inside(document, "default_left"), "default_left", n) != 0
    inner, leaves, left, right = _by_level(number, left, right, is_leaf)
    if inner.size and not 0 <= feature[inner].min() <= feature[inner].max() <= MOST_FEATURES:
        raise ModelFileError(f"tree {number} splits on an unknown feature: it is damaged.")
    at, is_set = condition[inner], kinds[inner] == 1
    # x < t is x <= the float32 before t. Nothing is below minus infinity: such a split separates
    # missing values from all others, and is reversed; so is one on a set, which goes right.
    turned = (at == -np.inf) | is_set
    threshold = np.where(turned, np.float32(np.inf), beside(at, -np.inf))
    threshold[is_set] = 0.0
    categories = None
    if is_set.any():
        codes = _codes(number, document, room)
        missing = np.setdiff1d(inner[is_set], list(codes))
        if missing.size:
            raise ModelFileError(f"node {missing[0]} of tree {number} has no categories.")
        categories = [
            codes[node] if held else None
            for node, held in zip(inner.tolist(), is_set.tolist(), strict=True)
        ]
    left, right = np.where(turned, right, left), np.where(turned, left, right)
    value = (factor * condition[leaves]).astype(np.float64)
    weight = reals(document.get("sum_hessian", [math.nan] * n), "sum_hessian", n)
    response = reals(document.get("base_weights", [math.nan] * n), "base_weights", n)
    if np.array_equal(response[leaves].astype(np.float32), condition[leaves]):
        response[leaves] = np.nan  # they include the learning rate, which is not known
    order = np.concatenate([inner, leaves])
    is_count = counts and np.array_equal(weight, np.round(weight))
    return make_tree(
        feature[inner],
        threshold.astype(np.float32),
        left,
        right,
        to_left[inner] != turned,
        value,
        gain=reals(document.get("loss_changes", [0.0] * n), "loss_changes", n)[inner],
        count=weight[order] if is_count else None,
        weight=weight[order],
        mean=response[order],
        categories=categories,
    )


def _codes(number: int, document: Any, room: SetRoom) -> dict[int, np.ndarray]:
    """Return the codes of categories of a tree's nodes, by node."""
    codes = whole(inside(document, "categories"), "categories")
    nodes = whole(inside(document, "categories_nodes"), "categories_nodes")
    first = whole(inside(document, "categories_segments"), "categories_segments", nodes.size)
    size = whole(inside(document, "categories_sizes"), "categories_sizes", nodes.size)
    fit = (first >= 0) & (first <= codes.size) & (size >= 0) & (size <= codes.size - first)
    if not fit.all() or size.sum() > codes.size or np.unique(nodes).size != nodes.size:
        raise ModelFileError(f"the categories of tree {number} do not fit: it is damaged.")
    pieces = zip(nodes.tolist(), first.tolist(), (first + size).tolist(), strict=True)
    return {node: room.checked(codes[begin:end], number) for node, begin, end in pieces}


def _by_level(
    number: int, left: np.ndarray, right: np.ndarray, is_leaf: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes and the leaves below the root, parents first, and the children of nodes."""
    levels, seen = [np.zeros(min(1, left.size), np.int64)], 0
    while levels[-1].size:
        level = levels[-1]
        seen += level.size
        inner = level[~is_leaf[level]]
        below = np.column_stack([left[inner], right[inner]]).ravel()
        if seen > left.size or (below.size and not 0 <= below.min() <= below.max() < left.size):
            raise ModelFileError(f"the nodes of tree {number} do not form a tree: it is damaged.")
        levels.append(below)
    visited = np.concatenate(levels)
    if not visited.size or np.unique(visited).size != visited.size:
        raise ModelFileError(f"the nodes of tree {number} do not form a tree: it is damaged.")
    inner, leaves = visited[~is_leaf[visited]], visited[is_leaf[visited]]
    place = np.zeros(left.size, np.int64)
    place[inner], place[leaves] = np.arange(inner.size), ~np.arange(leaves.size)
    return inner, leaves, place[left[inner]], place[right[inner]]


def _by_round(trees: Sequence[Tree], column: np.ndarray, n_columns: int) -> list[Tree]:
    """Return the trees in an order in which tree t adds to column t modulo `n_columns`."""
    of_column = [[trees[t] for t in np.flatnonzero(column == c).tolist()] for c in range(n_columns)]
    if len({len(trees_of_column) for trees_of_column in of_column}) > 1 or sum(
        map(len, of_column)
    ) != len(trees):
        raise ModelFileError("its classes have unequal numbers of trees: it is damaged.")
    return [tree for trees_of_round in zip(*of_column, strict=True) for tree in trees_of_round]


def _margins(base_score: object, objective: str, n_columns: int) -> np.ndarray:
    """Return the start values of the scores of every class, as float32."""
    listed = json.loads(base_score) if isinstance(base_score, str) else base_score
    scores = _single(listed if isinstance(listed, list) else [listed], "base_score")
    if scores.size == 1:
        scores = np.repeat(scores, n_columns)
    if scores.size != n_columns or not np.isfinite(scores).all():
        raise ModelFileError(f"its base_score is {base_score!r}: it is damaged.")
    unit = np.float32(1.0)
    if objective in LOGISTIC:
        if not np.all((scores >= 0) & (scores <= 1)):
            raise ModelFileError(
                f"its base_score is {base_score!r}, not a probability: it is damaged."
            )
        scores = np.clip(scores, LEAST_PROBABILITY, unit - LEAST_PROBABILITY)
        return np.array([-_log(unit / p - unit) for p in scores], np.float32)
    if objective in LOGARITHMIC:
        if not np.all(scores > 0):
            raise ModelFileError(
                f"its base_score is {base_score!r}, but {objective} needs its logarithm: the model "
                "has no scores, not even in XGBoost. Train it with a base_score above 0."
            )
        return np.array([_log(p) for p in scores], np.float32)
    if objective not in IDENTICAL and np.any(scores != 0):
        raise ModelFileError(
            f"its objective is {objective!r}, and how that uses the base score is not known here. "
            "Train it with base_score=0, or with an objective such as rank:ndcg."
        )
    return scores


def _log(value: np.float32) -> float:
    """Return logf of the C library, like XGBoost: it is not always the nearest float32."""
    try:
        logf = ctypes.CDLL(None).logf
        logf.restype, logf.argtypes = ctypes.c_float, [ctypes.c_float]
        return float(logf(float(value)))
    except (OSError, AttributeError, TypeError):  # not available: the nearest float32
        return math.log(value)


def _single(values: object, name: str, n: int | None = None) -> np.ndarray:
    """Return a list of numbers as float32."""
    with np.errstate(over="ignore"):
        return reals(values, name, n).astype(np.float32)


def _constant(value: float) -> Tree:
    return make_tree([], np.empty(0, np.float32), [], [], [], [value])


# -- writing --------------------------------------------------------------------------------------


def write_json(
    ensemble: Ensemble,
    names: Sequence[str] | None,
    absent: str | None = None,
    categories: Categories | None = None,
    probability: bool = False,
) -> str:
    """Return the JSON of a model that ``xgboost.Booster(model_file=...)`` loads.

    Thresholds and leaves become float32. The objective is ``rank:pairwise``, which does not
    transform scores; for classes it is ``multi:softprob``. The names of categories, which XGBoost
    reads from version 3.1 on, are written if all categorical columns have some, all ASCII. With
    `probability` the objective is ``binary:logistic``, which takes the sigmoid of the sum.
    """
    columns = {**dict.fromkeys(ensemble.categorical_features().tolist()), **(categories or {})}
    types = ["c" if j in columns else "float" for j in range(ensemble.n_features)]
    k, single = ensemble.n_columns, ensemble.for_float32()
    own = with_base(ensemble) if probability else [single.tree(t) for t in range(single.n_trees)]
    trees = [_tree_document(tree, t, single.n_features) for t, tree in enumerate(own)]
    n_trees = len(trees)
    # the name of the parameters in version 2, and in version 1
    params: dict[str, Any] = {"lambdarank_param": {}, "lambda_rank_param": {}}
    objective = {"name": "rank:pairwise", **params}
    base_score = np.float32(ensemble.base)
    if probability:  # the base is a tree: a base score would be a probability
        objective = {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}}
        base_score = np.float32(0.5)
    if k > 1:
        objective = {
            "name": "multi:softprob",
            "softmax_multiclass_param": {"num_class": str(k)},
        }
    gbtree = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(n_trees)},
        "iteration_indptr": list(range(0, n_trees + 1, k)),
        "tree_info": [t % k for t in range(n_trees)],
        "trees": trees,
    }
    if columns and all(names and "".join(names).isascii() for names in columns.values()):
        gbtree["cats"] = _named_codes(columns, ensemble.n_features)
    document = {
        "learner": {
            "attributes": {ABSENT: absent} if absent else {},
            "feature_names": list(names or []),
            "feature_types": types if names or columns else [],
            "gradient_booster": {"model": gbtree, "name": "gbtree"},
            "learner_model_param": {
                "base_score": str(base_score).upper(),
                "boost_from_average": "0",
                "num_class": str(k if k > 1 else 0),
                "num_feature": str(ensemble.n_features),
                "num_target": "1",
            },
            "objective": objective,
        },
        "version": _VERSION,
    }
    return json.dumps(document)


def _named_codes(columns: Categories, n_features: int) -> dict[str, Any]:
    """Return the names of categories: UTF-8, one after the other, and the codes sorted by them."""
    listed, order = [], []
    for column in range(n_features):
        words = [name.encode() for name in columns.get(column) or ()]
        ends = np.cumsum([0, *map(len, words)]).tolist() if words else []
        values = np.frombuffer(b"".join(words), np.int8).tolist()
        listed.append({"offsets": ends, "values": values})
        order.append(sorted(range(len(words)), key=words.__getitem__))
    ends = np.cumsum([0, *map(len, order)]).tolist()
    return {
        "enc": listed,
        "feature_segments": ends,
        "sorted_idx": [j for one in order for j in one],
    }


def _tree_document(tree: Tree, number: int, n_features: int) -> dict[str, Any]:
    """Return a tree, with nodes and leaves numbered so that siblings are neighbours.

    XGBoost expects the right child directly after the left one. Sets go right there; one without
    categories, which XGBoost does not allow, becomes a threshold that no value is below.
    """
    n, n_all = tree.n_nodes, tree.n_nodes + tree.n_leaves
    codes = [[] if one is None else one.tolist() for one in codes_of_nodes(tree)]
    is_set = np.array([len(one) > 0 for one in codes], np.bool_)
    never = (tree.set_of >= 0) & ~is_set
    place = np.zeros(n_all, np.int64)  # of our nodes, and then of our leaves
    left, right = (np.where(c >= 0, c, n + ~c) for c in (tree.left, tree.right))
    left, right = np.where(is_set, right, left), np.where(is_set, left, right)
    place[left], place[right] = 2 * np.arange(n) + 1, 2 * np.arange(n) + 2
    inner = place[:n]

    def spread(of_nodes: np.ndarray, rest: ArrayLike, kind: DTypeLike = np.int64) -> np.ndarray:
        """Return the numbers of nodes and of leaves in the order of places."""
        values = np.full(n_all, rest, kind) if np.ndim(rest) == 0 else np.empty(n_all, kind)
        values[inner] = of_nodes
        if np.ndim(rest):
            values[place[n:]] = rest
        return values

    parents = np.full(n_all, _ROOT, np.int64)
    parents[place[left]], parents[place[right]] = inner, inner
    above = np.where(never, np.float32(-np.inf), beside(tree.threshold, np.inf))
    with_set = np.flatnonzero(is_set)
    with_set = with_set[np.argsort(inner[with_set])]  # in the order of XGBoost's nodes
    sizes = [len(codes[node]) for node in with_set.tolist()]
    mean = np.nan_to_num(tree.mean[:n])
    single, weight = np.float32, np.nan_to_num(tree.weight)
    with np.errstate(over="ignore"):
        value = tree.value.astype(single)
    return {
        # those of leaves include the learning rate, as in XGBoost
        "base_weights": _floats(spread(mean, value, single)),
        "categories": [code for node in with_set.tolist() for code in codes[node]],
        "categories_nodes": inner[with_set].tolist(),
        "categories_segments": np.cumsum([0, *sizes])[:-1].tolist(),
        "categories_sizes": sizes,
        "default_left": spread(tree.missing_left != is_set, 0).tolist(),
        "id": number,
        "left_children": spread(place[left], -1).tolist(),
        "loss_changes": _floats(spread(tree.gain, 0.0, single)),
        "parents": parents.tolist(),
        "right_children": spread(place[right], -1).tolist(),
        "split_conditions": _floats(spread(above, value, single)),
        "split_indices": spread(tree.feature, 0).tolist(),
        "split_type": spread(is_set, 0).tolist(),
        "sum_hessian": _floats(spread(weight[:n], weight[n:], single)),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(n_all),
            "size_leaf_vector": "1",
        },
    }


def _floats(values: np.ndarray) -> list[float]:
    """Return float32 numbers by their shortest text."""
    return [float(str(v)) for v in values.astype(np.float32)]
