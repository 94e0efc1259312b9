"""Missing values in programs that do not ask the model where they go.

A program may treat a missing value as 0, or send it right at every split. In the second case a
split that sends it left gets another split before it, which every number passes on its left::

    f <= 2, missing left?          f <= infinity?
      yes: L                         yes: f <= 2?
      no: R                            yes: L
                                       no: R
                                     no (missing): L

Below it is known whether the feature is missing, so further splits on it are not preceded again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.formats.foreign import TreeParts
from rankgrove.formats.targets import Target, targets_of
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.model.tree import Tree
from rankgrove.validation import counted

LEAST_ROOM, MOST_TIMES = 1 << 17, 64  # limits of the number of leaves, and of its growth
_NEWER = {
    "opensearch": "from OpenSearch 3.8 on",
    "elasticsearch": "from version 1.5.9 on",
    "solr": "from Solr 9.2 on",
}


def as_held(
    model: Ensemble | Linear | Network,
    program: str,
    target: Target | None,
    *,
    missing: str,
    learned: bool,
) -> tuple[Ensemble | Linear | Network, list[str]]:
    """Return a model with missing values as a program has them, and notes.

    program : its name in messages
    target : the engine; None: a program that keeps the model's directions in all versions
    missing : ``"refuse"``: refuse what the program cannot hold; ``"zero"``: treat missing values
        as 0; ``"keep"``: hold the model's directions, with more splits if need be
    learned : whether the model may have learned where missing values go
    """
    if not isinstance(model, Ensemble):
        if target is None or target.fills:
            return model, _filled_with_mean(model, program, missing)
        return model, _filled_with_zero(model, program, missing, learned)
    rule = "kept" if target is None else target.missing
    if rule == "kept" and missing != "zero":
        return model, []
    as_zero = np.where(model.set_of < 0, model.threshold >= 0.0, model.missing_left)
    n = int(np.count_nonzero(model.missing_left != as_zero))
    notes = []
    if missing == "zero" or (missing == "refuse" and not learned):
        if n and missing == "refuse":
            notes.append(
                "No value was missing in training, so nothing was learned for missing values: "
                f"in {program} they count as 0."
            )
        model = replace(model, missing_left=as_zero)
    elif n and rule == "zero":
        assert target is not None
        raise ParameterError(_no_directions(model, n, program, target, missing))
    if rule == "right":
        assert target is not None
        return _right(model, program, target, missing, notes)
    return model, notes


def depends_on_version(model: Ensemble, target: Target) -> bool:
    """Return whether other engines of the format treat missing values in another way."""
    others = {other.missing for other in targets_of(target.format)} - {target.missing}
    held = model.missing_left
    return ("zero" in others and bool(np.any(held != (model.threshold >= 0.0)))) or (
        "right" in others and bool(np.any(held))
    )


def _no_directions(model: Ensemble, n: int, program: str, target: Target, missing: str) -> str:
    sends = "sends" if n == 1 else "send"
    asked = " and missing='keep' cannot be done" if missing == "keep" else ""
    newer = _NEWER.get(target.format, "")
    update = f" Or update: {newer} learned directions are kept." if newer else ""
    if not newer:
        update = " Or train on data in which missing values are 0."
    return (
        f"{program} treats a missing value as 0, but {counted(n, 'split')} of "
        f"{model.feature.size:,} {sends} it elsewhere than 0{asked}. If no value is missing, or "
        f"the index has 0 for missing values, pass missing='zero' (--missing zero).{update}"
    )


def _fills(model: Linear | Network) -> int:
    """Return for how many features a missing value is another number than 0."""
    fill = model.shift if isinstance(model, Linear) else model.mean
    return int(np.count_nonzero(fill[model.scale > 0]))


def _filled_with_mean(model: Linear | Network, program: str, missing: str) -> list[str]:
    """Return notes on a model without trees, for a program that can hold what it fills in."""
    n = _fills(model)
    if not n or missing != "zero":
        return []
    return [
        f"The model uses the mean of {counted(n, 'feature')} for a missing value, and so does "
        f"{program}: missing='zero' (--missing zero) changes nothing. Send 0 for missing values if "
        "they mean 0."
    ]


def _filled_with_zero(
    model: Linear | Network, program: str, missing: str, learned: bool
) -> list[str]:
    """Return notes on a model without trees, for a program that takes missing values as 0."""
    n = _fills(model)
    if not n or missing == "zero":
        return []
    if learned or missing == "keep":
        raise ParameterError(
            f"{program} treats a missing value as 0, but this model uses the mean of "
            f"{counted(n, 'feature')} for it. If no value is missing, or the index has 0 for "
            "missing values, pass missing='zero' (--missing zero). Or train with scaling='none' on "
            "data in which missing values are 0; or use to='solr', to='vespa' or to='onnx', which "
            "can hold the mean."
        )
    return [
        "No value was missing in training, so nothing was learned for missing values: "
        f"in {program} they count as 0."
    ]


def _right(
    model: Ensemble, program: str, target: Target, missing: str, notes: list[str]
) -> tuple[Ensemble, list[str]]:
    """Return a model for an engine that sends missing values right at every split."""
    n = int(np.count_nonzero(model.missing_left))
    if n == 0:
        return model, notes
    if missing == "refuse":
        raise ParameterError(
            f"{target.title} sends a missing value right at every split, but "
            f"{counted(n, 'split')} of {model.feature.size:,} {'sends' if n == 1 else 'send'} it "
            "left. Pass missing='keep' (--missing keep), which writes more splits so that the "
            "scores are the model's; or missing='zero' (--missing zero), likewise for missing "
            f"values that mean 0; or update: {_NEWER['opensearch']} no more splits are needed, "
            "with engine='opensearch-3.8' (--engine)."
        )
    limit = max(LEAST_ROOM, MOST_TIMES * model.n_leaves)
    trees, room = [], limit
    for t in range(model.n_trees):
        trees.append(_preceded(model.tree(t), room))
        room -= trees[-1].n_leaves
    made = Ensemble.from_trees(trees, model.n_features, model.base, model.n_columns, model.single)
    return made, [
        *notes,
        f"{target.title} sends missing values right: splits that tell them from numbers were "
        f"added, and the trees have {made.n_leaves:,} leaves instead of {model.n_leaves:,}.",
    ]


def _preceded(tree: Tree, room: int) -> Tree:
    """Return a tree that decides alike if all missing values go right; counts are unknown."""
    if not tree.missing_left.any():
        return tree
    parts = TreeParts()
    # a node, its place, and what is known of features: whether they are missing
    known: dict[int, bool] = {}
    todo: list[tuple[int, tuple[int, bool] | None, dict[int, bool]]] = [(0, None, known)]
    while todo:
        child, place, known = todo.pop()
        if child < 0:
            parts.leaf(place, float(tree.value[~child]))
            if len(parts.value) > room:
                raise ParameterError(
                    "With splits that tell missing values from numbers the trees would have more "
                    f"than {MOST_TIMES} times as many leaves. Pass missing='zero' (--missing "
                    "zero) if missing values mean 0, or use a later version of the engine."
                )
            continue
        column, left, right = (int(a[child]) for a in (tree.feature, tree.left, tree.right))
        is_missing, to_left = known.get(column), bool(tree.missing_left[child])
        if is_missing:
            todo.append((left if to_left else right, place, known))
            continue
        if is_missing is None and to_left:  # every number is at most infinity
            node = parts.split(place, column, np.inf, False)
            todo += [
                (left, (node, False), {**known, column: True}),
                (child, (node, True), {**known, column: False}),
            ]
            continue
        node = parts.split(place, column, float(tree.threshold[child]), False)
        todo += [(right, (node, False), known), (left, (node, True), {**known, column: False})]
    return parts.tree(tree.threshold.dtype)
