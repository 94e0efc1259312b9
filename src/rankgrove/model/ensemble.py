"""Tree models as flat, frozen arrays.

The nodes of all trees are stored one after the other, and so are the leaves; children are numbered
within their tree, a leaf as ``~leaf``::

    node_ptr  0        3     5          tree t has the nodes node_ptr[t] .. node_ptr[t+1]-1
    leaf_ptr  0           4        7    and the leaves leaf_ptr[t] .. leaf_ptr[t+1]-1

The score of a row is ``base`` plus the values of its leaves, added in the order of the trees, in
float64: boosting adds in the same order, so a model's scores equal the training scores to the bit.
A model of another library may have thresholds in float64, or add in float32 (``single``), so that
its scores equal those of that library to the bit.
If a row has several scores, one per class, tree t adds to column ``t % n_columns``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.errors import DataError, ModelFileError
from rankgrove.model import sense
from rankgrove.model.category_sets import (
    MOST_CATEGORIES,
    NO_SETS,
    WORD_BITS,
    CategorySets,
    joined,
)
from rankgrove.model.store import needed
from rankgrove.model.tree import Tree
from rankgrove.validation import check_integer, counted

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# The arrays with one entry per node, and those with one per leaf; `count`, `weight` and `mean` of a
# Tree are split into a part for nodes and a part for leaves.
TREE_FIELDS = ("feature", "threshold", "left", "right", "missing_left", "gain", "set_of")
NODE_FIELDS = (*TREE_FIELDS, "node_count", "node_weight", "node_mean")
LEAF_FIELDS = ("value", "leaf_count", "leaf_weight", "leaf_mean")
# Statistics of the training rows at nodes and leaves, which a foreign model or an old file may
# lack. An unknown count is -1, an unknown weight or mean is NaN.
STATISTICS = tuple(
    f"{of}_{name}" for of in ("node", "leaf") for name in ("count", "weight", "mean")
)
_TYPES = {
    "feature": np.int32,
    "left": np.int32,
    "right": np.int32,
    "missing_left": np.bool_,
    "set_of": np.int32,
    "node_count": np.int64,
    "leaf_count": np.int64,
    "node_ptr": np.int64,
    "leaf_ptr": np.int64,
}


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees whose values are summed.

    Attributes
    ----------
    n_features : number of columns of the data
    node_ptr, leaf_ptr : where the nodes and leaves of every tree begin
    feature, threshold, left, right, missing_left, gain, set_of : one per node, as in a ``Tree``
    sets : the sets of categories that nodes test
    value : one per leaf, multiplied by the learning rate and the weight of the tree
    node_count, node_weight, node_mean, leaf_count, leaf_weight, leaf_mean : number of training rows
        that reached a node or leaf, the sum of their hessians, and the mean response there (without
        learning rate); -1 and NaN if unknown, see :func:`unknown_statistics`
    base : the start value of every score
    n_columns : number of scores of a row
    single : whether scores are added up in float32
    """

    n_features: int
    node_ptr: np.ndarray
    leaf_ptr: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    gain: np.ndarray
    node_count: np.ndarray
    node_weight: np.ndarray
    node_mean: np.ndarray
    value: np.ndarray
    leaf_count: np.ndarray
    leaf_weight: np.ndarray
    leaf_mean: np.ndarray
    base: float = 0.0
    n_columns: int = 1
    single: bool = False
    set_of: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    sets: CategorySets = NO_SETS

    def __post_init__(self) -> None:
        if np.size(self.set_of) != np.size(self.feature) and len(self.sets) == 0:
            object.__setattr__(self, "set_of", np.full(np.size(self.feature), -1, np.int32))
        for name in ("node_ptr", "leaf_ptr", *NODE_FIELDS, *LEAF_FIELDS):
            values = getattr(self, name)
            dtype: DTypeLike = _TYPES.get(name, np.float64)
            if name == "threshold":
                dtype = np.float64 if np.asarray(values).dtype == np.float64 else np.float32
            array = np.ascontiguousarray(values, dtype).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[Tree],
        n_features: int,
        base: float = 0.0,
        n_columns: int = 1,
        single: bool = False,
    ) -> Ensemble:
        """Return the ensemble of some trees."""

        def whole(name: str, leaves: bool | None = None) -> np.ndarray:
            """Return an array of all trees; for statistics, the part of nodes or of leaves."""
            pieces = [np.empty(0, np.float32 if name == "threshold" else np.float64)]
            for tree in trees:
                values, n = getattr(tree, name), tree.n_nodes
                pieces.append(values if leaves is None else values[n:] if leaves else values[:n])
            return np.concatenate(pieces)

        set_of, sets = joined([(tree.set_of, tree.sets) for tree in trees])
        return cls(
            n_features=int(n_features),
            node_ptr=np.cumsum([0, *(tree.n_nodes for tree in trees)]),
            leaf_ptr=np.cumsum([0, *(tree.n_leaves for tree in trees)]),
            **{name: whole(name) for name in (*TREE_FIELDS[:-1], "value")},
            **{f"node_{name}": whole(name, leaves=False) for name in ("count", "weight", "mean")},
            **{f"leaf_{name}": whole(name, leaves=True) for name in ("count", "weight", "mean")},
            base=float(base),
            n_columns=int(n_columns),
            single=single,
            set_of=set_of,
            sets=sets,
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.node_ptr.size - 1)

    @property
    def n_rounds(self) -> int:
        """Number of rounds: a round has one tree per column."""
        return self.n_trees // self.n_columns

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int(self.value.size)

    def tree(self, t: int) -> Tree:
        """Return one tree."""
        nodes = slice(self.node_ptr[t], self.node_ptr[t + 1])
        leaves = slice(self.leaf_ptr[t], self.leaf_ptr[t + 1])
        return Tree(
            **{name: getattr(self, name)[nodes] for name in TREE_FIELDS},
            value=self.value[leaves],
            **{
                name: np.concatenate(
                    [getattr(self, f"node_{name}")[nodes], getattr(self, f"leaf_{name}")[leaves]]
                )
                for name in ("count", "weight", "mean")
            },
            sets=self.sets,
        )

    @property
    def has_sets(self) -> bool:
        """Whether a node tests a set of categories."""
        return bool((self.set_of >= 0).any())

    def categorical_features(self) -> np.ndarray:
        """Return the columns that nodes test for sets of categories, ascending."""
        return np.unique(self.feature[self.set_of >= 0])

    def for_float32(self) -> Ensemble:
        """Return the ensemble with float32 thresholds that decide in the same way on float32 data.

        A float32 value is at most t if and only if it is at most the highest float32 up to t.
        """
        if self.threshold.dtype == np.float32:
            return self
        return replace(self, threshold=floor_float32(self.threshold))

    def size_text(self) -> str:
        """Return the number of trees in words: ``200 trees``, or ``200 rounds of 5 trees``."""
        if self.n_columns == 1:
            return counted(self.n_rounds, "tree")
        return f"{counted(self.n_rounds, 'round')} of {self.n_columns} trees"

    def truncated(self, n_rounds: int) -> Ensemble:
        """Return the ensemble of the first `n_rounds` rounds: `n_rounds` trees per column."""
        check_integer("n_trees", "truncated", n_rounds)
        if not 0 <= n_rounds <= self.n_rounds:
            raise DataError(f"The model has {self.size_text()}. Got n_trees={n_rounds}.")
        n_trees = n_rounds * self.n_columns
        nodes, leaves = int(self.node_ptr[n_trees]), int(self.leaf_ptr[n_trees])
        return replace(
            self,
            node_ptr=self.node_ptr[: n_trees + 1],
            leaf_ptr=self.leaf_ptr[: n_trees + 1],
            **{name: getattr(self, name)[:nodes] for name in NODE_FIELDS},
            **{name: getattr(self, name)[:leaves] for name in LEAF_FIELDS},
        )

    def importance(self, kind: str = "gain") -> np.ndarray:
        """Return one number per feature: the gain of its splits, or their number ("split")."""
        weights = self.gain if kind == "gain" else np.ones(self.gain.size)
        return np.bincount(self.feature, weights, minlength=self.n_features)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return everything as named arrays, for the model file."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sets"}
        if self.has_sets:
            arrays |= {"set_ptr": self.sets.ptr, "set_words": self.sets.words}
        else:  # as in the files of models that know no categories
            del arrays["set_of"]
        arrays["n_features"] = np.array(self.n_features)
        arrays["base"] = np.array(self.base)
        arrays["n_columns"] = np.array(self.n_columns)
        arrays["single"] = np.array(self.single)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Ensemble:
        """Build from named arrays; refuse arrays that do not fit together."""
        n_nodes, n_leaves = (np.size(arrays.get(name, [])) for name in ("feature", "value"))
        older = {"single": np.array(False), **unknown_statistics(n_nodes, n_leaves)}
        older["set_of"] = np.full(n_nodes, -1, np.int32)
        arrays = {**older, **arrays}
        values = needed(arrays, (f.name for f in fields(cls) if f.name != "sets"))
        try:
            values["sets"] = _sets_of(arrays)
            for name in ("node_ptr", "leaf_ptr", *NODE_FIELDS, *LEAF_FIELDS):
                sense.typed(values[name], _TYPES.get(name, np.float64), f"the array {name!r}")
            values["n_features"] = sense.whole(values["n_features"], "n_features")
            values["base"] = sense.number(values["base"], "base")
            values["n_columns"] = sense.whole(values["n_columns"], "n_columns", low=1)
            values["single"] = bool(values["single"])
            ensemble = cls(**values)
            ensemble.check()
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise ModelFileError(f"The trees of the model file do not fit: {error}") from None
        return ensemble

    def check(self) -> None:
        """Raise ValueError unless every path down every tree ends in a leaf with a value."""
        if self.n_columns < 1 or self.n_trees % self.n_columns:
            raise ValueError(f"{self.n_trees} trees do not fit {self.n_columns} columns.")
        for names, ptr in ((NODE_FIELDS, self.node_ptr), (LEAF_FIELDS, self.leaf_ptr)):
            n = getattr(self, names[0]).size
            if any(getattr(self, name).shape != (n,) for name in names):
                raise ValueError("arrays of unequal length.")
            sense.borders(ptr, n, "trees")
        n_nodes, n_leaves = np.diff(self.node_ptr), np.diff(self.leaf_ptr)
        if n_leaves.size != n_nodes.size or np.any(n_leaves != n_nodes + 1):
            raise ValueError("a tree must have one leaf more than it has nodes.")
        self._check_numbers()
        tree = np.repeat(np.arange(self.n_trees), n_nodes)
        node = np.arange(self.feature.size) - self.node_ptr[tree]
        seen = []
        for child in (self.left, self.right):
            inner = child >= 0
            if np.any(child[inner] <= node[inner]) or np.any(child >= n_nodes[tree]):
                raise ValueError("a child before its parent, or beyond its tree.")
            if np.any(~child[~inner] >= n_leaves[tree][~inner]):
                raise ValueError("a leaf beyond its tree.")
            # one number per child: inner nodes first, then leaves
            at = np.where(inner, self.node_ptr[tree] + child, self.leaf_ptr[tree] + ~child)
            seen.append(np.where(inner, at, self.feature.size + at))
        if np.unique(np.concatenate(seen)).size != 2 * self.feature.size:
            raise ValueError("two parents of one child.")

    def _check_numbers(self) -> None:
        """Raise ValueError for features that do not exist, and for scores beyond the limits."""
        if (
            self.feature.size
            and not 0 <= self.feature.min() <= self.feature.max() < self.n_features
        ):
            raise ValueError("a split on a feature that does not exist.")
        if self.set_of.size and not -1 <= self.set_of.min() <= self.set_of.max() < len(self.sets):
            raise ValueError("a split on a set of categories that does not exist.")
        finite = np.isfinite(self.value).all() and np.isfinite(self.base)
        if np.isnan(self.threshold).any() or not finite:
            raise ValueError("a threshold or a leaf value that is not a number.")
        highest = np.maximum.reduceat(np.abs(self.value), self.leaf_ptr[:-1]) if self.n_trees else 0
        limit = float(np.finfo(np.float32).max) if self.single else sense.LARGEST
        if not abs(self.base) + np.sum(highest) <= limit:
            raise ValueError(f"scores that can be beyond {limit:g}.")


def _sets_of(arrays: dict[str, np.ndarray]) -> CategorySets:
    """Return the sets of categories of a model file."""
    if "set_ptr" not in arrays and "set_words" not in arrays:
        return NO_SETS
    ptr, words = needed(arrays, ("set_ptr", "set_words")).values()
    sense.typed(ptr, np.int64, "the array 'set_ptr'")
    sense.typed(words, np.uint32, "the array 'set_words'")
    sense.borders(ptr, words.size, "sets of categories")
    if np.diff(ptr).max(initial=0) > MOST_CATEGORIES // WORD_BITS:
        raise ValueError(f"a category beyond {MOST_CATEGORIES - 1:,}.")
    return CategorySets(ptr, words)


def floor_float32(values: np.ndarray) -> np.ndarray:
    """Return the highest float32 that is not above the value, for every float64."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
        lower = np.nextafter(rounded, np.float32(-np.inf))
    return np.where(rounded.astype(np.float64) > values, lower, rounded).astype(np.float32)


def unknown_statistics(n_nodes: int, n_leaves: int) -> dict[str, np.ndarray]:
    """Return unknown statistics, for an ensemble without statistics."""
    sizes = {"node": n_nodes, "leaf": n_leaves}
    return {
        name: np.full(sizes[name[:4]], -1 if name.endswith("count") else np.nan)
        for name in STATISTICS
    }
