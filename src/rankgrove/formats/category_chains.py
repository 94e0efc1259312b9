"""Splits on sets of categories, expressed by other splits, for programs that lack them.

``one_hot`` replaces a categorical feature by features that are 1 where a document has a category,
and a split on the set {a, c} by a chain. What is left of the set is repeated at every link::

    brand in {a, c}?               brand=a <= 0.5?
      yes: L                         no: L
      no: R                          yes: brand=c <= 0.5?
                                       no: L
                                       yes: R

Below a link it is known which category it is, or which ones it is not, so that further splits on
the feature are shorter or go away. ``missing_right`` is for programs that send missing values away
from the set: a split that tells missing values from all others comes before the set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.formats.foreign import Categories, TreeParts, codes_of_nodes, tested_codes
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree

MOST_LINKS = 256  # on a path: parsers of JSON allow about 1000 levels, two per split
LEAST_ROOM, MOST_TIMES = 1 << 17, 64  # limits of the number of leaves, and of its growth
SHOWN = 5  # features in a message
Place = tuple[int, bool] | None


def one_hot(
    ensemble: Ensemble, names: Sequence[str], categories: Categories
) -> tuple[Ensemble, list[str]]:
    """Return trees on one feature per category, and the names of all features.

    A categorical feature becomes, at its place, one feature per code that a split tests, in the
    order of the codes. Missing values are like unknown categories: all these features are 0.
    """
    tested = tested_codes(ensemble)
    new_names: list[str] = []
    place: list[int] = []  # of every feature that stays
    of_code: dict[int, dict[int, int]] = {}  # column -> code -> new column
    for column, name in enumerate(names):
        place.append(len(new_names))
        if column not in tested or np.any(ensemble.set_of[ensemble.feature == column] < 0):
            new_names.append(name)  # also if some splits have thresholds
        if column in tested:
            codes = tested[column].tolist()
            of_code[column] = {code: len(new_names) + j for j, code in enumerate(codes)}
            words = categories.get(column)
            new_names += [f"{name}={code if words is None else words[code]}" for code in codes]
    twice = [name for name, n in Counter(new_names).items() if n > 1]
    if twice:
        raise ParameterError(
            f"Two features would be named {twice[0]!r}. Give other names: features= (--features)."
        )
    sets = [frozenset(ensemble.sets.codes(s).tolist()) for s in range(len(ensemble.sets))]
    room = _Room(ensemble, names, "With one feature per category")
    trees = [
        _chained(ensemble.tree(t), sets, place, of_code, room) for t in range(ensemble.n_trees)
    ]
    made = Ensemble.from_trees(
        trees, len(new_names), ensemble.base, ensemble.n_columns, ensemble.single
    )
    return made, new_names


def listed(names: Sequence[str]) -> str:
    """Return the first of some names, for a message."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


class _Room:
    """Counts leaves and links, and refuses a model that becomes too large.

    `names` are those of all features, `way` says how it becomes larger.
    """

    def __init__(self, ensemble: Ensemble, names: Sequence[str], way: str) -> None:
        self.names, self.way = names, way
        self.blamed = [names[j] for j in ensemble.categorical_features().tolist()]
        self.leaves = max(LEAST_ROOM, MOST_TIMES * ensemble.n_leaves)

    def leaf(self) -> None:
        self.leaves -= 1
        if self.leaves < 0:
            raise ParameterError(
                f"{self.way} the trees would have more than {MOST_TIMES} times as many leaves, "
                f"because of their splits on {listed(self.blamed)}. Train with smaller sets of "
                "categories, or without such features."
            )

    def links(self, column: int, n: int) -> None:
        if n > MOST_LINKS:
            raise ParameterError(
                f"{self.way} a path of a tree would test more than {MOST_LINKS} categories, the "
                f"last of them of {self.names[column]!r}. Train with smaller sets of categories, "
                "pool the rare categories of this feature, or leave it out."
            )


def _chained(
    tree: Tree,
    sets: Sequence[frozenset[int]],
    place: Sequence[int],
    of_code: Mapping[int, Mapping[int, int]],
    room: _Room,
) -> Tree:
    """Return a tree whose splits on sets are chains, without recursion."""
    parts = TreeParts()
    # a node, its place, the links above it, and what is known: column -> (code or None, not these)
    known: dict[int, tuple[int | None, frozenset[int]]] = {}
    todo: list[tuple[int, Place, int, dict[int, tuple[int | None, frozenset[int]]]]]
    todo = [(0 if tree.n_nodes else -1, None, 0, known)]
    while todo:
        child, at, links, known = todo.pop()
        if child < 0:
            parts.leaf(at, float(tree.value[~child]))
            room.leaf()
            continue
        column, left, right = (int(a[child]) for a in (tree.feature, tree.left, tree.right))
        if tree.set_of[child] < 0:
            node = parts.split(
                at, place[column], float(tree.threshold[child]), bool(tree.missing_left[child])
            )
            todo += [(right, (node, False), links, known), (left, (node, True), links, known)]
            continue
        codes = sets[tree.set_of[child]]
        code, others = known.get(column, (None, frozenset()))
        if code is not None:
            todo.append((left if code in codes else right, at, links, known))
            continue
        for link in sorted(codes - others):
            node = parts.split(at, of_code[column][link], 0.5, True)
            links, at = links + 1, (node, True)
            room.links(column, links)
            todo.append((left, (node, False), links, {**known, column: (link, frozenset())}))
        todo.append((right, at, links, {**known, column: (None, codes | others)}))
    return parts.tree(tree.threshold.dtype)


def missing_right(ensemble: Ensemble, names: Sequence[str], program: str) -> Ensemble:
    """Return the ensemble with missing values on the right at all splits on sets.

    Where they go left, a split before the set leads them to a copy of the left subtree.
    """
    if not np.any(ensemble.missing_left & (ensemble.set_of >= 0)):
        return ensemble
    room = _Room(
        ensemble, names, f"As {program} sends missing values away from sets of categories,"
    )
    trees = [_with_copies(ensemble.tree(t), room) for t in range(ensemble.n_trees)]
    return Ensemble.from_trees(
        trees, ensemble.n_features, ensemble.base, ensemble.n_columns, ensemble.single
    )


def _with_copies(tree: Tree, room: _Room) -> Tree:
    """Return a tree without splits on sets that send missing values left; copies lack counts."""
    turned = tree.missing_left & (tree.set_of >= 0)
    if not turned.any():
        return tree
    parts, categories = TreeParts(), codes_of_nodes(tree)
    todo: list[tuple[int, Place]] = [(0, None)]
    while todo:
        child, at = todo.pop()
        if child < 0:
            parts.leaf(at, float(tree.value[~child]))
            room.leaf()
            continue
        column, left, right = (int(a[child]) for a in (tree.feature, tree.left, tree.right))
        missing_left, gain = bool(tree.missing_left[child]), float(tree.gain[child])
        if turned[child]:  # every value is at most infinity
            node = parts.split(at, column, np.inf, False)
            todo.append((left, (node, False)))
            at, missing_left = (node, True), False
        threshold, codes = float(tree.threshold[child]), categories[child]
        node = parts.split(at, column, threshold, missing_left, codes, gain=gain)
        todo += [(right, (node, False)), (left, (node, True))]
    return parts.tree(tree.threshold.dtype)
